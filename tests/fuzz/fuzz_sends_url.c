/* Addresses of lines: whatever was taken has one host for every parser. */
#include "db/line.h"
#include "handlers/sends_url.h"
#include "tests/fuzz/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str url = {(const char *)data, size};
    if (sends_url_wrong(url) != NULL)
        return 0;
    MUST(size <= DB_LINE_URL_MAX);
    MUST(size > 7 && (memcmp(data, "http://", 7) == 0 || memcmp(data, "https://", 8) == 0));
    size_t at = data[4] == 's' ? 8 : 7, host = at;
    for (size_t i = 0; i < size; i++)
        MUST(data[i] > ' ' && data[i] <= '~' && data[i] != '\\' && data[i] != '#');
    MUST(at < size && data[at] != '/' && data[at] != '?' && data[at] != ':');
    for (; at < size && data[at] != '/' && data[at] != '?'; at++)
        MUST(data[at] != '@' && data[at] != '%');
    /* it can be cut anywhere behind the host, and is an address still or is not one */
    for (size_t n = host; n < size; n++)
        (void)!sends_url_wrong((struct str){(const char *)data, n});
    return 0;
}
