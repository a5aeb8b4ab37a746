/* handlers/courier_answer over any status and body: an outcome that fits the status, and text that can be shown. */
#include "handlers/courier_answer.h"

#include <string.h>

#include "fcgi/path.h"
#include "tests/fuzz/must.h"

static void show(struct str body, size_t room)
{
    char out[DB_MARK_DETAIL_MAX];
    courier_printable(body, out, room);
    size_t n = strlen(out);
    MUST(n < room && utf8_ok(out, n));
    for (size_t i = 0; i < n; i++)
        MUST((unsigned char)out[i] >= ' ' && out[i] != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    if (n < 3)
        return 0;
    struct courier_end end = {.status = ((unsigned)p[0] << 8 | p[1]) % 1000, .sent = true};
    struct str body = {(const char *)p + 3, n - 3};
    courier_answer(body, &end);
    bool good = end.outcome == COURIER_DELIVERED || end.outcome == COURIER_DUPLICATE;
    MUST(good == (end.status >= 200 && end.status < 300));
    MUST(end.outcome < COURIER_OUTCOMES);
    MUST(end.coded || end.expected == 0);
    show(body, DB_MARK_DETAIL_MAX);
    show(body, (size_t)p[2] + 1);
    return 0;
}
