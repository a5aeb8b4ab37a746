#include "handlers/import_line.h"

#include <stdlib.h>
#include <string.h>

#include "db/doc.h"
#include "fcgi/path.h"

enum {
    MODIFIED_MAX_DIGITS = 18,
    BODY_KEPT_BYTES = 1 << 20, /* memory of a body that is kept for the next line */
};
static const int64_t MODIFIED_MAX = INT64_C(253402300799);
static const char no_json[] = "this is no JSON";

enum state {
    S_START, /* nothing of the line yet */
    S_FIRST, /* behind '{': a name or '}' */
    S_NEXT,  /* behind ',': a name */
    S_COLON,
    S_VALUE,
    S_STRING,
    S_ESCAPE, /* behind a backslash */
    S_HEX,
    S_LOW,       /* a second half of a surrogate pair must follow: its backslash */
    S_LOW_U,     /* … its u */
    S_BARE,      /* a number, true, false or null */
    S_BEHIND,    /* behind a value */
    S_OBJECT_END /* behind '}' */
};

enum field {
    F_OTHER,
    F_HANJI,
    F_VERSION,
    F_DOCUMENTS,
    F_KEY,
    F_TYPE,
    F_MODIFIED,
    F_SIZE,
    F_TEXT,
    F_BASE64,
    FIELDS
};

static const char *const names[FIELDS] = {
    [F_OTHER] = "",          [F_HANJI] = "hanji",       [F_VERSION] = "version",
    [F_DOCUMENTS] = "documents", [F_KEY] = "key",       [F_TYPE] = "type",
    [F_MODIFIED] = "modified", [F_SIZE] = "size",       [F_TEXT] = "text",
    [F_BASE64] = "base64",
};

void import_line_init(struct import_line *l, size_t body_max)
{
    *l = (struct import_line){.body_max = body_max, .fresh = true};
}

void import_line_free(struct import_line *l)
{
    buf_free(&l->key);
    buf_free(&l->type);
    buf_free(&l->body);
}

static enum import_result fault(struct import_line *l, const char *why)
{
    l->fault = why;
    return IMPORT_FAULT;
}

static void begin_line(struct import_line *l)
{
    l->key.len = l->type.len = l->body.len = 0;
    if (l->body.cap > BODY_KEPT_BYTES)
        buf_free(&l->body);
    l->has_modified = false;
    l->modified = 0;
    l->documents = l->size = 0;
    l->seen = 0;
    l->state = S_START;
}

static bool has(const struct import_line *l, enum field f)
{
    return (l->seen & 1u << f) != 0;
}

/* ---- what values mean ------------------------------------------------------------------------ */

/* The field that a name stands for; false when it was there before. */
static bool take_name(struct import_line *l)
{
    l->field = F_OTHER;
    for (unsigned f = F_HANJI; f < FIELDS && !l->word_long; f++)
        if (strlen(names[f]) == l->word_len && memcmp(names[f], l->word, l->word_len) == 0)
            l->field = (uint8_t)f;
    if (l->field != F_OTHER && has(l, l->field))
        return false;
    l->seen |= 1u << l->field;
    return true;
}

static bool is_number(enum field f)
{
    return f == F_VERSION || f == F_DOCUMENTS || f == F_MODIFIED || f == F_SIZE;
}

/* A number, or a word; only the fields of ours are looked into. */
static const char *take_bare(struct import_line *l)
{
    l->word[l->word_len] = 0;
    bool word = strcmp(l->word, "true") == 0 || strcmp(l->word, "false") == 0 ||
                strcmp(l->word, "null") == 0;
    if (l->field == F_OTHER) /* a number is not looked at closely */
        return word || strspn(l->word, "-+.eE0123456789") == l->word_len ? NULL : no_json;
    if (l->word_long || !is_number(l->field) || l->word_len > MODIFIED_MAX_DIGITS ||
        strspn(l->word, "0123456789") != l->word_len)
        return "a value is not what its name says";
    int64_t v = strtoll(l->word, NULL, 10);
    if (l->field == F_MODIFIED && v > MODIFIED_MAX)
        return "the time is beyond the year 9999";
    if (l->field == F_VERSION && v != 1)
        return "the export is of another version than 1: a newer hanji can read it";
    if (l->field == F_MODIFIED)
        l->modified = v;
    else if (l->field == F_SIZE)
        l->size = (uint64_t)v;
    else if (l->field == F_DOCUMENTS)
        l->documents = (uint64_t)v;
    return NULL;
}

static bool begin_string(struct import_line *l)
{
    l->high = l->hex = l->code = 0;
    l->quad = l->padding = 0;
    l->word_len = 0;
    l->word_long = false;
    bool body = l->field == F_TEXT || l->field == F_BASE64;
    /* No larger than it says: then memory is asked for once. */
    if (body && has(l, F_SIZE) && l->size > 0 && l->size <= l->body_max)
        return buf_reserve(&l->body, (size_t)l->size, l->body_max);
    return true;
}

/* What a character of base64 stands for (RFC 4648 4), plus one; 0: it is none. */
static const uint8_t digits[256] = {
    ['A'] = 1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
    20,         21, 22, 23, 24, 25, 26,
    ['a'] = 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45,
    46,         47, 48, 49, 50, 51, 52,
    ['0'] = 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, ['+'] = 63, ['/'] = 64,
};

/* Whole groups of four digits, written at once; returns how many bytes of p they were. */
static size_t take_quads(struct import_line *l, const unsigned char *p, size_t n)
{
    size_t at = 0, groups = n / 4;
    if (groups == 0 || !buf_reserve(&l->body, groups * 3, l->body_max))
        return 0; /* then one by one, and what does not fit is told there */
    unsigned char *out = l->body.data + l->body.len;
    for (; at < groups * 4; at += 4) {
        uint32_t a = digits[p[at]], b = digits[p[at + 1]], c = digits[p[at + 2]],
                 d = digits[p[at + 3]];
        if (a == 0 || b == 0 || c == 0 || d == 0)
            break;
        uint32_t bits = (a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6 | (d - 1);
        *out++ = (unsigned char)(bits >> 16);
        *out++ = (unsigned char)(bits >> 8);
        *out++ = (unsigned char)bits;
    }
    l->body.len += at / 4 * 3;
    return at;
}

/* The bytes of a whole group of four. */
static const char *end_quad(struct import_line *l)
{
    unsigned char bytes[3] = {(unsigned char)(l->code >> 16), (unsigned char)(l->code >> 8),
                              (unsigned char)l->code};
    size_t n = 3u - l->padding;
    for (size_t i = n; i < 3; i++)
        if (bytes[i] != 0)
            return "the base64 is not canonical";
    l->quad = 0;
    l->code = 0;
    return buf_add(&l->body, bytes, n, l->body_max) ? NULL : "the body is too large";
}

static const char *take_base64(struct import_line *l, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (l->quad == 0 && l->padding == 0)
            i += take_quads(l, p + i, n - i);
        if (i == n)
            break;
        uint32_t digit = digits[p[i]];
        if (p[i] == '=' && l->quad >= 2) {
            l->padding++;
            digit = 1;
        } else if (digit == 0 || l->padding > 0) {
            return "the base64 is malformed";
        }
        l->code = l->code << 6 | (digit - 1);
        if (++l->quad < 4)
            continue;
        const char *wrong = end_quad(l);
        if (wrong != NULL)
            return wrong;
    }
    return NULL;
}

/* Decoded bytes of the string that is open. */
static const char *take_bytes(struct import_line *l, const unsigned char *p, size_t n)
{
    switch ((enum field)l->field) {
    case F_KEY:
        return buf_add(&l->key, p, n, DB_KEY_MAX) ? NULL : "the key has more than 512 bytes";
    case F_TYPE:
        return buf_add(&l->type, p, n, DB_TYPE_MAX) ? NULL : "the type has more than 255 bytes";
    case F_TEXT:
        return buf_add(&l->body, p, n, l->body_max) ? NULL : "the body is too large";
    case F_BASE64:
        return take_base64(l, p, n);
    default:
        break;
    }
    if (n > sizeof l->word - 1 - l->word_len) {
        l->word_long = true;
        return NULL;
    }
    memcpy(l->word + l->word_len, p, n);
    l->word_len = (uint8_t)(l->word_len + n);
    return NULL;
}

static const char *end_string(struct import_line *l)
{
    static const char export_word[] = "export", end_word[] = "end";
    if (is_number(l->field))
        return "a value is not what its name says";
    if (l->field == F_BASE64 && l->quad != 0)
        return "the base64 is malformed";
    if (l->field == F_TEXT && !utf8_ok((const char *)l->body.data, l->body.len))
        return "the text is no UTF-8";
    if (l->field != F_HANJI)
        return NULL;
    l->word[l->word_len] = 0;
    bool header = !l->word_long && strcmp(l->word, export_word) == 0;
    if (!header && (l->word_long || strcmp(l->word, end_word) != 0))
        return "this kind of line is not known";
    l->kind = header ? IMPORT_HEADER : IMPORT_END;
    return NULL;
}

static bool key_ok(const struct buf *key)
{
    char path[DB_KEY_MAX + 1] = "/";
    if (key->len == 0 || key->data[key->len - 1] == '/')
        return false;
    memcpy(path + 1, key->data, key->len);
    return path_ok((struct str){path, key->len + 1});
}

static bool type_ok(const struct buf *type)
{
    for (size_t i = 0; i < type->len; i++)
        if (type->data[i] < ' ' || type->data[i] > '~')
            return false;
    return type->len > 0;
}

/* The object has ended. */
static enum import_result end_line(struct import_line *l)
{
    static const char any[] = "application/octet-stream";
    l->state = S_START;
    if (has(l, F_HANJI)) {
        enum field needed = l->kind == IMPORT_END ? F_DOCUMENTS : F_VERSION;
        return has(l, needed) ? IMPORT_LINE : fault(l, "a member is missing");
    }
    l->kind = IMPORT_DOCUMENT;
    l->has_modified = has(l, F_MODIFIED);
    if (!has(l, F_TYPE) && !buf_add(&l->type, any, sizeof any - 1, DB_TYPE_MAX))
        return fault(l, "memory is short");
    if (!key_ok(&l->key))
        return fault(l, "the key is missing, or none that a document can have");
    if (!type_ok(&l->type))
        return fault(l, "the type is none that a document can have");
    if (has(l, F_TEXT) == has(l, F_BASE64))
        return fault(l, "one of text and base64 must be there");
    if (has(l, F_SIZE) && l->size != l->body.len)
        return fault(l, "the body has not the size that the line says");
    return IMPORT_LINE;
}

/* ---- the machine ----------------------------------------------------------------------------- */

/* The bytes at p that a string has as they are. */
static size_t plain_run(const unsigned char *p, size_t n)
{
    size_t i = 0;
    while (i < n && p[i] != '"' && p[i] != '\\' && p[i] >= 0x20)
        i++;
    return i;
}

static const char *put_code(struct import_line *l, uint32_t c)
{
    unsigned char b[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        b[i] = (unsigned char)(0x80 | (c & 0x3f));
    b[0] = (unsigned char)(lead[n] | c);
    return take_bytes(l, b, n);
}

/* All four digits of an escape are there. */
static const char *end_hex(struct import_line *l)
{
    uint32_t c = l->hex;
    bool low = c >= 0xdc00 && c <= 0xdfff;
    if (low != (l->high != 0))
        return "half of a surrogate pair stands alone";
    if (c >= 0xd800 && c <= 0xdbff) {
        l->high = c;
        l->state = S_LOW;
        return NULL;
    }
    if (low)
        c = 0x10000 + ((l->high - 0xd800) << 10) + (c - 0xdc00);
    l->high = 0;
    l->state = S_STRING;
    return put_code(l, c);
}

static const char *take_hex(struct import_line *l, unsigned char c)
{
    uint32_t v = c >= '0' && c <= '9'   ? c - '0' + 0u
                 : c >= 'a' && c <= 'f' ? c - 'a' + 10u
                 : c >= 'A' && c <= 'F' ? c - 'A' + 10u
                                        : 16u;
    l->hex = l->hex << 4 | v;
    return v > 15 ? no_json : ++l->digits < 4 ? NULL : end_hex(l);
}

static const char *take_escape(struct import_line *l, unsigned char c)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *found = c != 0 ? strchr(from, c) : NULL;
    l->state = c == 'u' ? S_HEX : S_STRING;
    l->digits = 0;
    l->hex = 0;
    if (c == 'u')
        return NULL;
    return found == NULL ? no_json : take_bytes(l, (const unsigned char *)&to[found - from], 1);
}

/* A byte of a string that does not stand for itself. */
static const char *take_special(struct import_line *l, unsigned char c)
{
    switch ((enum state)l->state) {
    case S_ESCAPE: return take_escape(l, c);
    case S_HEX: return take_hex(l, c);
    case S_LOW:
        l->state = S_LOW_U;
        return c == '\\' ? NULL : "half of a surrogate pair stands alone";
    case S_LOW_U:
        l->state = S_HEX;
        l->digits = 0;
        l->hex = 0;
        return c == 'u' ? NULL : "half of a surrogate pair stands alone";
    default: break;
    }
    if (c == '\\') {
        l->state = S_ESCAPE;
        return NULL;
    }
    if (c != '"')
        return "a control character is in a string";
    l->state = l->in_name ? S_COLON : S_BEHIND;
    if (!l->in_name)
        return end_string(l);
    l->in_name = false;
    return take_name(l) ? NULL : "a member is there twice";
}

static bool blank(unsigned char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static const char *begin_value(struct import_line *l, unsigned char c)
{
    if (c == '{' || c == '[')
        return "a value is an object or an array";
    l->state = c == '"' ? S_STRING : S_BARE;
    if (!begin_string(l))
        return "memory is short";
    if (c == '"')
        return NULL;
    l->word[0] = (char)c;
    l->word_len = 1;
    return NULL;
}

/* A byte between strings and numbers, not blank. */
static const char *take_token(struct import_line *l, unsigned char c)
{
    bool first = l->state == S_FIRST;
    switch ((enum state)l->state) {
    case S_START:
        l->state = S_FIRST;
        return c == '{' ? NULL : "a line is a JSON object";
    case S_FIRST:
    case S_NEXT:
        l->state = first && c == '}' ? S_OBJECT_END : S_STRING;
        l->field = F_OTHER;
        l->in_name = l->state == S_STRING;
        if (!begin_string(l))
            return "memory is short";
        return c == '"' || l->state == S_OBJECT_END ? NULL : no_json;
    case S_COLON:
        l->state = S_VALUE;
        return c == ':' ? NULL : no_json;
    case S_VALUE: return begin_value(l, c);
    case S_BEHIND:
        l->state = c == ',' ? S_NEXT : S_OBJECT_END;
        return c == ',' || c == '}' ? NULL : no_json;
    default: return "something stands behind the object";
    }
}

/* A byte of a number or a word, or the first one behind it. */
static const char *take_bare_byte(struct import_line *l, unsigned char c)
{
    if (!blank(c) && c != ',' && c != '}') {
        l->word_long = l->word_long || l->word_len >= sizeof l->word - 1;
        if (!l->word_long)
            l->word[l->word_len++] = (char)c;
        return NULL;
    }
    const char *wrong = take_bare(l);
    l->state = S_BEHIND;
    return wrong != NULL || blank(c) ? wrong : take_token(l, c);
}

static const char *take_byte(struct import_line *l, unsigned char c)
{
    switch ((enum state)l->state) {
    case S_STRING:
    case S_ESCAPE:
    case S_HEX:
    case S_LOW:
    case S_LOW_U: return take_special(l, c);
    case S_BARE: return take_bare_byte(l, c);
    default: return blank(c) ? NULL : take_token(l, c);
    }
}

static enum import_result line_end(struct import_line *l)
{
    if (l->state == S_OBJECT_END)
        return end_line(l);
    if (l->state != S_START)
        return fault(l, "the line ends too early");
    l->kind = IMPORT_BLANK;
    return IMPORT_LINE;
}

enum import_result import_line_feed(struct import_line *l, const unsigned char *p, size_t n,
                                    size_t *used)
{
    const char *wrong = NULL;
    if (l->fresh)
        begin_line(l);
    l->fresh = false;
    for (*used = 0; *used < n && wrong == NULL;) {
        size_t run = l->state == S_STRING ? plain_run(p + *used, n - *used) : 0;
        if (run > 0) {
            wrong = take_bytes(l, p + *used, run);
            *used += run;
            continue;
        }
        unsigned char c = p[(*used)++];
        if (c == '\n') {
            l->fresh = true;
            return line_end(l);
        }
        wrong = take_byte(l, c);
    }
    return wrong != NULL ? fault(l, wrong) : IMPORT_MORE;
}

enum import_result import_line_finish(struct import_line *l)
{
    if (l->fresh || l->state == S_START)
        return IMPORT_MORE;
    l->fresh = true;
    return line_end(l);
}
