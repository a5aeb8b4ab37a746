#include "answer.h"

#include <string.h>
#include <strings.h>

void answer_begin(struct answer *answer, const struct workload *load, const struct kind *kind,
                  uint32_t key)
{
    answer->load = load;
    answer->kind = kind;
    answer->key = key;
    answer->compare = work_answer_size(kind) != SIZE_ANY;
    answer->body = NULL;
    answer->status = 0;
    answer->length = 0;
    answer->has_length = false;
    answer->close = false;
    answer->chunked = false;
    answer->head_done = false;
    answer->differs = false;
    answer->got = 0;
    answer->head_len = 0;
}

/* The value of header `name` (length name_len, lower case) when `line` is that header, else NULL. */
static const char *value_of(const char *line, size_t len, const char *name, size_t name_len)
{
    if (len <= name_len || line[name_len] != ':' || (line[0] | 0x20) != name[0] ||
        strncasecmp(line, name, name_len) != 0)
        return NULL;
    line += name_len + 1;
    while (*line == ' ')
        line++;
    return line;
}

/* Three digits, or 0. */
static unsigned status_at(const char *text, size_t len)
{
    unsigned status = 0;

    if (len < 3)
        return 0;
    for (int i = 0; i < 3; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        status = status * 10 + (unsigned)(text[i] - '0');
    }
    return status;
}

static bool take_length(struct answer *answer, const char *digits)
{
    uint64_t length = 0;

    if (answer->has_length || *digits < '0' || *digits > '9')
        return false;
    for (; *digits >= '0' && *digits <= '9'; digits++) {
        if (length > UINT64_MAX / 100)
            return false;
        length = length * 10 + (uint64_t)(*digits - '0');
    }
    answer->length = length;
    answer->has_length = *digits == '\r';
    return answer->has_length;
}

#define VALUE_OF(line, len, name) value_of(line, len, name, sizeof(name) - 1)

/* One line of the head; it ends in CR LF, which `len` does not count. */
static bool take_line(struct answer *answer, const char *line, size_t len, bool first)
{
    const char *value;

    if (first && len > 12 && memcmp(line, "HTTP/1.1 ", 9) == 0) {
        answer->status = status_at(line + 9, len - 9);
        return answer->status != 0;
    }
    switch (line[0] | 0x20) {
    case 's':
        if ((value = VALUE_OF(line, len, "status")) != NULL && answer->status == 0)
            answer->status = status_at(value, (size_t)(line + len - value));
        break;
    case 'c':
        if ((value = VALUE_OF(line, len, "content-length")) != NULL)
            return take_length(answer, value);
        if ((value = VALUE_OF(line, len, "connection")) != NULL)
            answer->close = strncasecmp(value, "close", 5) == 0;
        break;
    case 't':
        if (VALUE_OF(line, len, "transfer-encoding") != NULL)
            answer->chunked = true;
        break;
    default:
        break;
    }
    return true;
}

/* Reads a head. Sets *used to its length with the blank line, or to 0 when it has not ended yet;
 * false when it is malformed. */
static bool take_head(struct answer *answer, const char *bytes, size_t len, size_t *used)
{
    size_t at = 0;

    *used = 0;
    answer->status = 0;
    answer->has_length = false;
    answer->close = false;
    answer->chunked = false;
    while (at < len) {
        const char *end = memchr(bytes + at, '\n', len - at);
        size_t line_len;

        if (end == NULL)
            return true;
        line_len = (size_t)(end - (bytes + at));
        if (line_len == 0 || end[-1] != '\r')
            return false;
        if (line_len == 1) {
            *used = at + 2;
            return answer->status != 0;
        }
        if (!take_line(answer, bytes + at, line_len - 1, at == 0))
            return false;
        at += line_len + 1;
    }
    return true;
}

static bool has_body(const struct answer *answer)
{
    return answer->status != 204 && answer->status != 304 && answer->status >= 200 &&
           strcmp(answer->kind->method, "HEAD") != 0;
}

static bool matches(const struct answer *answer, const char *bytes, size_t len)
{
    if (answer->got + len > work_answer_size(answer->kind))
        return false;
    if (answer->kind->wanted != NULL)
        return memcmp(answer->kind->wanted + answer->got, bytes, len) == 0;
    return work_match(answer->load, answer->key, (size_t)answer->got, bytes, len);
}

static enum outcome feed_body(struct answer *answer, const char *bytes, size_t len)
{
    if (len == 0)
        return MORE;
    if (!has_body(answer) || (answer->has_length && len > answer->length - answer->got))
        return BAD_PROTOCOL;
    if (answer->body != NULL)
        answer->body(answer, bytes, len);
    else if (answer->compare && !answer->differs)
        answer->differs = !matches(answer, bytes, len);
    answer->got += len;
    return MORE;
}

enum outcome answer_feed(struct answer *answer, const char *bytes, size_t len)
{
    size_t used;

    if (answer->head_done)
        return feed_body(answer, bytes, len);
    if (answer->head_len == 0) { /* the usual case: the whole head in one piece */
        if (!take_head(answer, bytes, len, &used))
            return BAD_PROTOCOL;
        if (used > 0) {
            answer->head_done = true;
            return feed_body(answer, bytes + used, len - used);
        }
    }
    while (len > 0) {
        if (answer->head_len == HEAD_MOST)
            return BAD_PROTOCOL;
        answer->head[answer->head_len++] = *bytes;
        bytes++;
        len--;
        if (bytes[-1] != '\n')
            continue;
        if (!take_head(answer, answer->head, answer->head_len, &used))
            return BAD_PROTOCOL;
        if (used > 0) {
            answer->head_done = true;
            return feed_body(answer, bytes, len);
        }
    }
    return MORE;
}

bool answer_whole(const struct answer *answer)
{
    if (!answer->head_done)
        return false;
    return !has_body(answer) || (answer->has_length && answer->got == answer->length);
}

enum outcome answer_judge(const struct answer *answer)
{
    const struct kind *kind = answer->kind;

    if (!work_expects(kind, answer->status))
        return BAD_STATUS;
    if (has_body(answer) && answer->got != answer->length)
        return BAD_LENGTH;
    if (work_answer_size(kind) == SIZE_ANY || answer->status >= 300)
        return DONE;
    if (!answer->has_length || answer->length != work_answer_size(kind))
        return BAD_LENGTH;
    return answer->differs ? BAD_BODY : DONE;
}
