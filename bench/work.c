#include "work.h"

#include "util.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char filler_text[] = "hanji-keeps-every-byte-of-a-document-just-as-it-was-written/";

static void *need(void *memory)
{
    if (memory == NULL)
        die("out of memory");
    return memory;
}

/* Copies the next word of *rest into `word`; false when there is none. */
static bool next_word(const char **rest, char *word, size_t size)
{
    size_t len;

    *rest += strspn(*rest, " ");
    len = strcspn(*rest, " ");
    if (len == 0)
        return false;
    if (len >= size)
        die("too long: %s", *rest);
    memcpy(word, *rest, len);
    word[len] = '\0';
    *rest += len;
    return true;
}

static void parse_statuses(struct kind *kind, char *word)
{
    for (char *part = strtok(word, ","); part != NULL; part = strtok(NULL, ",")) {
        if (kind->statuses_len == STATUSES_MOST)
            die("too many statuses");
        kind->statuses[kind->statuses_len++] = (unsigned)parse_number("status", part, 100, 999);
    }
}

/* The whole of a file, and its length; lives as long as the program. */
static const char *read_whole(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    struct text text = {0};
    char piece[65536];
    size_t got;

    if (file == NULL)
        die("cannot open %s", path);
    while ((got = fread(piece, 1, sizeof piece, file)) > 0)
        text_add(&text, piece, got);
    if (ferror(file) || text.len == 0)
        die("nothing to read in %s", path);
    (void)fclose(file);
    *len = text.len;
    return text.bytes;
}

static void parse_size(struct kind *kind, char *word)
{
    char *answer = strchr(word, '=');

    kind->size = SIZE_ANY;
    if (answer != NULL) {
        *answer = '\0';
        kind->wanted = read_whole(answer + 1, &kind->wanted_len);
    }
    if (word[0] == '@')
        kind->sent = read_whole(word + 1, &kind->size);
    else if (answer == NULL && strcmp(word, "-") != 0)
        kind->size = parse_number("size", word, 0, 1u << 30);
    if (kind->size == SIZE_ANY && kind->sends)
        die("%s needs a size", kind->method);
    if (kind->sent != NULL && !kind->sends)
        die("%s sends no body", kind->method);
    if (kind->size > 0 && kind->size < BODY_SMALLEST && kind->sent == NULL)
        die("a body has 0 or at least %d bytes", BODY_SMALLEST);
}

void work_add(struct workload *load, const char *description)
{
    const char *rest = description;
    struct kind *kind = &load->kinds[load->kinds_len];
    char word[512];

    if (load->kinds_len == KINDS_MOST)
        die("at most %d kinds of request", KINDS_MOST);
    memset(kind, 0, sizeof *kind);
    if (!next_word(&rest, kind->method, sizeof kind->method) ||
        !next_word(&rest, kind->path, sizeof kind->path) || kind->path[0] != '/' ||
        !next_word(&rest, word, sizeof word))
        die("not METHOD /PATH STATUS SIZE [WEIGHT]: %s", description);
    parse_statuses(kind, word);
    if (!next_word(&rest, word, sizeof word))
        die("size is missing: %s", description);
    kind->sends = strcmp(kind->method, "PUT") == 0 || strcmp(kind->method, "POST") == 0;
    parse_size(kind, word);
    kind->weight = 1;
    if (next_word(&rest, word, sizeof word))
        kind->weight = (unsigned)parse_number("weight", word, 1, 1000);
    load->kinds_len++;
}

static void shuffle(struct workload *load)
{
    uint64_t random = load->seed;

    load->order = need(malloc(load->keys * sizeof *load->order));
    for (uint32_t i = 0; i < load->keys; i++)
        load->order[i] = i;
    for (uint32_t i = load->keys - 1; i > 0; i--) {
        uint32_t j = (uint32_t)(random_next(&random) % (i + 1));
        uint32_t swap = load->order[i];
        load->order[i] = load->order[j];
        load->order[j] = swap;
    }
}

void work_ready(struct workload *load)
{
    size_t largest = BODY_SMALLEST;

    if (load->kinds_len == 0)
        die("no request given");
    for (size_t i = 0; i < load->kinds_len; i++) {
        load->weights += load->kinds[i].weight;
        if (load->kinds[i].size != SIZE_ANY && load->kinds[i].size > largest)
            largest = load->kinds[i].size;
    }
    load->filler = need(malloc(largest));
    for (size_t i = 0; i < largest; i++)
        load->filler[i] = filler_text[i % (sizeof filler_text - 1)];
    memcpy(load->filler, load->nonce, NONCE_DIGITS);
    load->random = load->seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
    if (load->deck)
        shuffle(load);
}

const struct kind *work_next(struct workload *load, uint32_t *key)
{
    size_t i = 0;

    if (load->deck)
        *key = load->order[load->dealt++ % load->keys];
    else
        *key = (uint32_t)(((random_next(&load->random) >> 32) * load->keys) >> 32);
    if (load->kinds_len > 1) {
        unsigned lot = (unsigned)((random_next(&load->random) >> 32) % load->weights);
        while (lot >= load->kinds[i].weight)
            lot -= load->kinds[i++].weight;
    }
    return &load->kinds[i];
}

void work_digits(char *at, uint32_t key)
{
    for (int i = KEY_DIGITS - 1; i >= 0; i--) {
        at[i] = (char)('0' + key % 10);
        key /= 10;
    }
}

void work_body(const struct workload *load, char *at, size_t size, uint32_t key)
{
    if (size == 0)
        return;
    work_digits(at, key);
    memcpy(at + KEY_DIGITS, load->filler, size - KEY_DIGITS);
}

bool work_match(const struct workload *load, uint32_t key, size_t offset, const char *bytes,
                size_t len)
{
    if (offset < KEY_DIGITS && len > 0) {
        char digits[KEY_DIGITS];
        size_t part = KEY_DIGITS - offset < len ? KEY_DIGITS - offset : len;

        work_digits(digits, key);
        if (memcmp(digits + offset, bytes, part) != 0)
            return false;
        offset += part;
        bytes += part;
        len -= part;
    }
    return len == 0 || memcmp(load->filler + (offset - KEY_DIGITS), bytes, len) == 0;
}

size_t work_answer_size(const struct kind *kind)
{
    if (kind->wanted != NULL)
        return kind->wanted_len;
    return kind->sends ? SIZE_ANY : kind->size;
}

bool work_expects(const struct kind *kind, unsigned status)
{
    for (size_t i = 0; i < kind->statuses_len; i++)
        if (kind->statuses[i] == status)
            return true;
    return false;
}

void text_add(struct text *text, const void *bytes, size_t len)
{
    if (text->len + len > text->size) {
        text->size = (text->len + len) * 2;
        text->bytes = need(realloc(text->bytes, text->size));
    }
    memcpy(text->bytes + text->len, bytes, len);
    text->len += len;
}

void text_print(struct text *text, const char *format, ...)
{
    char line[4096];
    va_list arguments;
    int len;

    va_start(arguments, format);
    len = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (len < 0 || (size_t)len >= sizeof line)
        die("too long: %s", line);
    text_add(text, line, (size_t)len);
}

static void mark(struct kind *kind, size_t offset)
{
    if (kind->marks_len == MARKS_MOST)
        die("only one {} in a path");
    kind->marks[kind->marks_len++] = offset;
}

void text_add_path(struct text *text, struct kind *kind)
{
    const char *hole = strstr(kind->path, "{}");

    if (hole == NULL) {
        text_add(text, kind->path, strlen(kind->path));
        return;
    }
    text_add(text, kind->path, (size_t)(hole - kind->path));
    mark(kind, text->len);
    text_add(text, "00000000", KEY_DIGITS);
    text_add(text, hole + 2, strlen(hole + 2));
}

void text_add_body(struct text *text, struct kind *kind, const struct workload *load)
{
    char *body;

    if (!kind->sends || kind->size == 0)
        return;
    if (kind->sent != NULL) {
        text_add(text, kind->sent, kind->size);
        return;
    }
    body = need(malloc(kind->size));
    work_body(load, body, kind->size, 0);
    mark(kind, text->len);
    text_add(text, body, kind->size);
    free(body);
}
