#include "handlers/courier_answer.h"

#include <string.h>

#include "handlers/json_check.h"
#include "handlers/json_read.h"

enum { SAID_MAX_DIGITS = 18 };

/* What the body says, where it is ours. */
struct said {
    struct str code;
    uint64_t expected;
    bool again;
};

static uint64_t number(struct str value)
{
    uint64_t v = 0;
    if (value.n > SAID_MAX_DIGITS)
        return 0;
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] < '0' || value.p[i] > '9')
            return 0;
        v = v * 10 + (uint64_t)(value.p[i] - '0');
    }
    return v;
}

static struct said read_body(struct str body)
{
    struct said said = {.code = STR_LIT("")};
    struct str name, value, whole = json_value(body);
    if (body.n == 0 || !json_check_all(body.p, body.n, NULL) || json_kind(whole) != JSON_OBJECT)
        return said;
    for (struct json_walk w = json_enter(whole); json_member(&w, &name, &value);) {
        enum json_kind kind = json_kind(value);
        if (kind == JSON_STRING && said.code.n == 0 && json_says(name, "code"))
            said.code = value;
        else if (kind == JSON_NUMBER && said.expected == 0 && json_says(name, "expected"))
            said.expected = number(value);
        else if (kind == JSON_TRUE && json_says(name, "again"))
            said.again = true;
    }
    return said;
}

static enum courier_outcome by_status(unsigned status)
{
    switch (status) {
    case 401: return COURIER_UNAUTHORIZED;
    case 410: return COURIER_GONE;
    case 413: return COURIER_TOO_LARGE;
    case 429:
    case 503: return COURIER_THROTTLED;
    default: break;
    }
    return status >= 300 && status < 400   ? COURIER_REDIRECT
           : status >= 400 && status < 500 ? COURIER_REJECTED
                                           : COURIER_ERROR;
}

/* A code means something with its status only. */
static const struct {
    const char *code;
    unsigned status;
    enum courier_outcome outcome;
} codes[] = {
    {"gap", 409, COURIER_GAP},
    {"busy", 409, COURIER_BUSY},
    {"id_conflict", 422, COURIER_ID_CONFLICT},
    {"unknown_recipient_key", 422, COURIER_UNKNOWN_KEY},
    {"does_not_open", 422, COURIER_DOES_NOT_OPEN},
    {"malformed", 400, COURIER_REJECTED},
    {"malformed", 422, COURIER_REJECTED},
    {"rejected", 422, COURIER_REJECTED},
    {"too_large", 413, COURIER_TOO_LARGE},
};

void courier_answer(struct str body, struct courier_end *end)
{
    struct said said = read_body(body);
    end->coded = false;
    end->expected = 0;
    if (end->status >= 200 && end->status < 300) {
        end->outcome = said.again ? COURIER_DUPLICATE : COURIER_DELIVERED;
        return;
    }
    end->outcome = by_status(end->status);
    for (size_t i = 0; said.code.n > 0 && i < sizeof codes / sizeof *codes; i++)
        if (codes[i].status == end->status && json_says(said.code, codes[i].code)) {
            end->outcome = codes[i].outcome;
            end->coded = true;
            end->expected = said.expected;
        }
}

/* Bytes of the character at p that people can see, 0: there is none. */
static size_t visible(const unsigned char *p, size_t n)
{
    if (p[0] < 0x80)
        return p[0] > 0x20 && p[0] != 0x7f;
    size_t bytes = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n < bytes)
        return 0;
    for (size_t i = 1; i < bytes; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    unsigned second = p[1];
    bool wrong = (p[0] == 0xe0 && second < 0xa0) || (p[0] == 0xed && second >= 0xa0) ||
                 (p[0] == 0xf0 && second < 0x90) || (p[0] == 0xf4 && second >= 0x90) ||
                 (p[0] == 0xc2 && second < 0xa0); /* C1 controls */
    /* line separators, and what turns the direction of the text around it */
    bool moves = p[0] == 0xe2 && ((second == 0x80 && (p[2] == 0x8e || p[2] == 0x8f ||
                                                      (p[2] >= 0xa8 && p[2] <= 0xae))) ||
                                  (second == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9));
    return wrong || moves ? 0 : bytes;
}

void courier_printable(struct str text, char *out, size_t room)
{
    size_t at = 0;
    bool blank = false;
    for (size_t i = 0; i < text.n;) {
        const unsigned char *p = (const unsigned char *)text.p + i;
        size_t bytes = visible(p, text.n - i);
        if (bytes == 0) {
            blank = at > 0;
            i++;
            continue;
        }
        if (at + blank + bytes >= room)
            break;
        if (blank)
            out[at++] = ' ';
        memcpy(out + at, p, bytes);
        at += bytes;
        i += bytes;
        blank = false;
    }
    out[at] = 0;
}
