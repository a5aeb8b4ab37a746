/* HTTP dates: what is read can be written and is read again as the same second; any number can be written. */
#include "fcgi/resp.h"
#include "tests/fuzz/must.h"

static const int64_t year_10000 = INT64_C(253402300800);

static void write_any(int64_t when)
{
    char http[HTTP_DATE_LEN], rfc3339[RFC3339_LEN];
    put_http_date(http, when);
    put_rfc3339(rfc3339, when);
    for (size_t i = 0; i < sizeof http; i++)
        MUST(http[i] >= ' ' && http[i] <= 'z');
    for (size_t i = 0; i < sizeof rfc3339; i++)
        MUST(rfc3339[i] >= '-' && rfc3339[i] <= 'Z');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t when = 0, again = 0;
    if (size >= sizeof when) {
        memcpy(&when, data, sizeof when);
        write_any(when);
    }
    if (!parse_http_date((struct str){(const char *)data, size}, &when) || when >= year_10000)
        return 0;
    char text[HTTP_DATE_LEN];
    put_http_date(text, when);
    MUST(parse_http_date((struct str){text, sizeof text}, &again) && again == when);
    return 0;
}
