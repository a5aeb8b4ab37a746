#include "handlers/html.h"

void html_text(struct json *j, struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char one[2] = {text.p[i], 0};
        const char *safe = text.p[i] == '<'    ? "&lt;"
                           : text.p[i] == '>'  ? "&gt;"
                           : text.p[i] == '&'  ? "&amp;"
                           : text.p[i] == '"'  ? "&quot;"
                           : text.p[i] == '\'' ? "&#39;"
                                               : one;
        json_raw(j, safe);
    }
}
