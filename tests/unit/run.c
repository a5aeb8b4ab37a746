#include "tests/unit/run.h"

TCase *run_case(Suite *s, const char *name)
{
    TCase *t = tcase_create(name);
    tcase_set_timeout(t, 60);
    suite_add_tcase(s, t);
    return t;
}

int run_suite(Suite *s)
{
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    bool none = srunner_ntests_run(runner) == 0;
    srunner_free(runner);
    return failed > 0 || none ? EXIT_FAILURE : EXIT_SUCCESS;
}
