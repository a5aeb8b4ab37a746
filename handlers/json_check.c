#include "handlers/json_check.h"

#include "handlers/json.h"

/* What may come next. */
enum state {
    VALUE,
    FIRST_ITEM, /* a value, or the end of an empty array */
    FIRST_NAME, /* a name, or the end of an empty object */
    NAME,
    COLON,
    AFTER, /* a comma, or the end of what is open; outside of everything only white space */
    STRING,
    ESCAPE,
    HEX,
    CHARACTER, /* the rest of one of several bytes */
    WORD,
    MINUS,
    ZERO,
    DIGITS,
    POINT,
    FRACTION,
    EXPONENT,
    EXPONENT_SIGN,
    EXPONENT_DIGITS,
    WRONG
};

static bool is_digit(unsigned char b)
{
    return b >= '0' && b <= '9';
}

static bool is_hex(unsigned char b)
{
    return is_digit(b) || (b >= 'a' && b <= 'f') || (b >= 'A' && b <= 'F');
}

static bool is_blank(unsigned char b)
{
    return b == ' ' || b == '\n' || b == '\r' || b == '\t';
}

static bool in_array(const struct json_check *c)
{
    unsigned level = c->depth - 1u;
    return (c->arrays[level / 8] >> level % 8 & 1) != 0;
}

static enum state open_level(struct json_check *c, bool array)
{
    unsigned level = c->depth, bit = 1u << level % 8;
    if (level == JSON_DEPTH_MAX)
        return WRONG;
    c->arrays[level / 8] = (uint8_t)(array ? c->arrays[level / 8] | bit
                                           : c->arrays[level / 8] & ~bit);
    c->depth++;
    return array ? FIRST_ITEM : FIRST_NAME;
}

static enum state close_level(struct json_check *c, bool array)
{
    if (c->depth == 0 || in_array(c) != array)
        return WRONG;
    c->depth--;
    return AFTER;
}

static enum state begin_string(struct json_check *c, bool name)
{
    c->name = name;
    return STRING;
}

static enum state begin_word(struct json_check *c, const char *rest)
{
    c->word = rest;
    return WORD;
}

static enum state begin_value(struct json_check *c, unsigned char b)
{
    switch (b) {
    case '{': return open_level(c, false);
    case '[': return open_level(c, true);
    case '"': return begin_string(c, false);
    case '-': return MINUS;
    case '0': return ZERO;
    case 't': return begin_word(c, "rue");
    case 'f': return begin_word(c, "alse");
    case 'n': return begin_word(c, "ull");
    default: return is_digit(b) ? DIGITS : WRONG;
    }
}

static enum state after_value(struct json_check *c, unsigned char b)
{
    if (is_blank(b))
        return AFTER;
    if (b == ',' && c->depth > 0)
        return in_array(c) ? VALUE : NAME;
    return b == ']' ? close_level(c, true) : b == '}' ? close_level(c, false) : WRONG;
}

/* The first byte of a character of several: RFC 3629 4, no overlong forms, no surrogates. */
static enum state begin_character(struct json_check *c, unsigned char b)
{
    if (b < 0xc2 || b > 0xf4)
        return WRONG;
    c->more = b >= 0xf0 ? 3 : b >= 0xe0 ? 2 : 1;
    c->low = b == 0xe0 ? 0xa0 : b == 0xf0 ? 0x90 : 0x80;
    c->high = b == 0xed ? 0x9f : b == 0xf4 ? 0x8f : 0xbf;
    return CHARACTER;
}

static enum state in_string(struct json_check *c, unsigned char b)
{
    if (b == '"')
        return c->name ? COLON : AFTER;
    if (b == '\\')
        return ESCAPE;
    return b < 0x20 ? WRONG : b < 0x80 ? STRING : begin_character(c, b);
}

static enum state in_escape(struct json_check *c, unsigned char b)
{
    switch (b) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't': return STRING;
    case 'u': c->more = 4; return HEX;
    default: return WRONG;
    }
}

static enum state in_character(struct json_check *c, unsigned char b)
{
    if (b < c->low || b > c->high)
        return WRONG;
    c->low = 0x80;
    c->high = 0xbf;
    return --c->more > 0 ? CHARACTER : STRING;
}

static enum state in_word(struct json_check *c, unsigned char b)
{
    if (b != (unsigned char)*c->word)
        return WRONG;
    return *++c->word != 0 ? WORD : AFTER;
}

/* A number ends where another byte comes. */
static enum state in_number(struct json_check *c, unsigned char b)
{
    bool digit = is_digit(b), e = b == 'e' || b == 'E';
    switch ((enum state)c->state) {
    case MINUS: return b == '0' ? ZERO : digit ? DIGITS : WRONG;
    case ZERO: return b == '.' ? POINT : e ? EXPONENT : after_value(c, b);
    case DIGITS: return digit ? DIGITS : b == '.' ? POINT : e ? EXPONENT : after_value(c, b);
    case POINT: return digit ? FRACTION : WRONG;
    case FRACTION: return digit ? FRACTION : e ? EXPONENT : after_value(c, b);
    case EXPONENT: return b == '+' || b == '-' ? EXPONENT_SIGN : digit ? EXPONENT_DIGITS : WRONG;
    case EXPONENT_SIGN: return digit ? EXPONENT_DIGITS : WRONG;
    default: return digit ? EXPONENT_DIGITS : after_value(c, b);
    }
}

static enum state step(struct json_check *c, unsigned char b)
{
    enum state now = c->state;
    switch (now) {
    case VALUE: return is_blank(b) ? now : begin_value(c, b);
    case FIRST_ITEM:
        return is_blank(b) ? now : b == ']' ? close_level(c, true) : begin_value(c, b);
    case FIRST_NAME:
        if (b == '}')
            return close_level(c, false);
        return is_blank(b) ? now : b == '"' ? begin_string(c, true) : WRONG;
    case NAME: return is_blank(b) ? now : b == '"' ? begin_string(c, true) : WRONG;
    case COLON: return is_blank(b) ? now : b == ':' ? VALUE : WRONG;
    case AFTER: return after_value(c, b);
    case STRING: return in_string(c, b);
    case ESCAPE: return in_escape(c, b);
    case HEX: return !is_hex(b) ? WRONG : --c->more > 0 ? HEX : STRING;
    case CHARACTER: return in_character(c, b);
    case WORD: return in_word(c, b);
    case WRONG: return WRONG;
    default: return in_number(c, b);
    }
}

void json_check_start(struct json_check *c)
{
    *c = (struct json_check){.state = VALUE};
}

bool json_check_feed(struct json_check *c, const void *p, size_t n)
{
    const unsigned char *from = p;
    size_t i = 0;
    while (i < n && c->state != WRONG) {
        if (c->state == STRING) /* most of most documents */
            i += json_plain((const char *)from + i, n - i);
        if (i == n)
            break;
        c->state = (uint8_t)step(c, from[i]);
        i += c->state != WRONG;
    }
    c->at += i;
    return c->state != WRONG;
}

bool json_check_end(const struct json_check *c)
{
    bool number = c->state == ZERO || c->state == DIGITS || c->state == FRACTION ||
                  c->state == EXPONENT_DIGITS;
    return c->depth == 0 && (c->state == AFTER || number);
}

bool json_check_all(const void *p, size_t n, uint64_t *wrong)
{
    struct json_check c;
    json_check_start(&c);
    bool ok = json_check_feed(&c, p, n) && json_check_end(&c);
    if (wrong != NULL)
        *wrong = c.at;
    return ok;
}
