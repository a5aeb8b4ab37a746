#include "handlers/html.h"

#include <string.h>

#include "handlers/word.h"

static bool special(char c)
{
    return c == '&' || c == '<' || c == '>' || c == '"' || c == '\'';
}

size_t html_plain(struct str text)
{
    size_t i = 0;
    for (uint64_t w; i + sizeof w <= text.n; i += sizeof w) {
        memcpy(&w, text.p + i, sizeof w);
        /* & and ' differ in one bit, and so do < and >. */
        if (word_has(w | WORD_EACH('&' ^ '\''), '\'') | word_has(w | WORD_EACH('<' ^ '>'), '>') |
            word_has(w, '"'))
            break;
    }
    while (i < text.n && !special(text.p[i]))
        i++;
    return i;
}

static struct str reference(char c)
{
    switch (c) {
    case '&':
        return STR_LIT("&amp;");
    case '<':
        return STR_LIT("&lt;");
    case '>':
        return STR_LIT("&gt;");
    case '"':
        return STR_LIT("&quot;");
    default:
        return STR_LIT("&#39;");
    }
}

bool html_add(struct buf *out, struct str text, size_t max_bytes)
{
    for (;;) {
        size_t plain = html_plain(text);
        if (!buf_add(out, text.p, plain, max_bytes))
            return false;
        if (plain == text.n)
            return true;
        struct str safe = reference(text.p[plain]);
        if (!buf_add(out, safe.p, safe.n, max_bytes))
            return false;
        text = (struct str){text.p + plain + 1, text.n - plain - 1};
    }
}

void html_text(struct json *j, struct str text)
{
    for (;;) {
        size_t plain = html_plain(text);
        json_bytes(j, (struct str){text.p, plain});
        if (plain == text.n)
            return;
        json_bytes(j, reference(text.p[plain]));
        text = (struct str){text.p + plain + 1, text.n - plain - 1};
    }
}
