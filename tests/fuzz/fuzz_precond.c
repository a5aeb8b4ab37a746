/* Lists of entity tags: what is read can be written and read again, and stood in the header. */
#include <stdio.h>

#include "handlers/precond.h"
#include "tests/fuzz/must.h"

static size_t write_tags(const struct db_tags *tags, char *out, size_t room)
{
    size_t n = 0;
    if (tags->any)
        n += (size_t)snprintf(out, room, "*");
    for (unsigned i = 0; i < tags->count; i++)
        n += (size_t)snprintf(out + n, room - n, "%s\"%llu\"", i > 0 ? ", " : "", (unsigned long long)tags->seq[i]);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str header = {(const char *)data, size};
    struct db_tags tags, again;
    char text[1024];
    if (!precond_tags(header, &tags))
        return 0;
    MUST(tags.given && tags.count <= DB_TAGS_MAX && !(tags.any && tags.count > 0));
    for (unsigned i = 0; i < tags.count; i++) {
        int n = snprintf(text, sizeof text, "\"%llu\"", (unsigned long long)tags.seq[i]);
        MUST(tags.seq[i] > 0 && memmem(header.p, header.n, text, (size_t)n) != NULL);
    }
    MUST(!tags.any || memchr(header.p, '*', header.n) != NULL);
    if (tags.any || tags.count > 0) {
        size_t n = write_tags(&tags, text, sizeof text);
        MUST(n < sizeof text && precond_tags((struct str){text, n}, &again));
        MUST(memcmp(&tags, &again, sizeof tags) == 0);
    }
    struct db_precond match = {.match = tags}, none = {.none_match = tags};
    MUST(!db_precond_holds(&match, false, 0, 0) && db_precond_holds(&none, false, 0, 0));
    for (uint64_t seq = 1; seq < 20; seq++)
        MUST(db_precond_holds(&match, true, seq, 0) != db_precond_holds(&none, true, seq, 0));
    return 0;
}
