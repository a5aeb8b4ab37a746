#include "handlers/sends_form.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/sends_url.h"

enum { RATE_TEXT_MAX = 24 };

static const double rate_max = 1e6;

__attribute__((format(printf, 2, 3)))
static bool refuse(struct sends_form *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(f->wrong, sizeof f->wrong, format, args);
    va_end(args);
    return false;
}

static bool is(struct str s, const char *word)
{
    return str_eq(s, (struct str){word, strlen(word)});
}

void sends_form_start(struct sends_form *f, struct str name)
{
    *f = (struct sends_form){.fifo = true};
    memcpy(f->name, name.p, name.n);
}

void sends_form_free(struct sends_form *f)
{
    free(f->ca);
    explicit_bzero(f, sizeof *f);
}

bool sends_form_url(struct sends_form *f, struct str url)
{
    const char *wrong = sends_url_wrong(url);
    if (wrong != NULL)
        return refuse(f, "The address %s.", wrong);
    memcpy(f->url, url.p, url.n);
    f->url[url.n] = 0;
    f->has_url = true;
    return true;
}

bool sends_form_order(struct sends_form *f, struct str order)
{
    f->fifo = is(order, "fifo");
    f->has_order = f->fifo || is(order, "any");
    return f->has_order || refuse(f, "The order is fifo or any.");
}

bool sends_form_rate(struct sends_form *f, struct str rate)
{
    char text[RATE_TEXT_MAX + 1];
    char *end = text;
    if (rate.n > 2 && memcmp(rate.p + rate.n - 2, "/s", 2) == 0)
        rate.n -= 2;
    bool digits = rate.n > 0 && rate.n <= RATE_TEXT_MAX;
    for (size_t i = 0; digits && i < rate.n; i++)
        digits = (rate.p[i] >= '0' && rate.p[i] <= '9') || (rate.p[i] == '.' && i > 0);
    if (digits) {
        memcpy(text, rate.p, rate.n);
        text[rate.n] = 0;
        f->rate = strtod(text, &end);
    }
    f->has_rate = digits && *end == 0 && isfinite(f->rate) && f->rate <= rate_max;
    return f->has_rate || refuse(f, "The rate is so many a second, up to 1000000, as 10/s or "
                                    "0.5/s; 0: no limit.");
}

void sends_form_private(struct sends_form *f, bool yes)
{
    f->private_ = yes;
    f->has_private = true;
}

bool sends_form_ca(struct sends_form *f, struct str pem)
{
    static const char mark[] = "-----BEGIN CERTIFICATE-----";
    if (pem.n > DB_LINE_CA_MAX)
        return refuse(f, "The certificates have at most 65536 bytes.");
    if (pem.n > 0 && (memmem(pem.p, pem.n, mark, sizeof mark - 1) == NULL ||
                      memchr(pem.p, 0, pem.n) != NULL))
        return refuse(f, "The certificates are no PEM: there is no -----BEGIN CERTIFICATE-----.");
    free(f->ca);
    f->ca = NULL;
    f->has_ca = true;
    if (pem.n == 0)
        return true;
    f->ca = malloc(pem.n + 1);
    if (f->ca == NULL)
        return refuse(f, "Memory is short.");
    memcpy(f->ca, pem.p, pem.n);
    f->ca[pem.n] = 0;
    return true;
}

bool sends_form_secret(struct sends_form *f, struct str text)
{
    struct seal_text secret = {text.p, text.n};
    f->new_secret[0] = 0;
    f->secret_bytes = 0;
    f->has_secret = true;
    if (is(text, "none"))
        return true;
    if (is(text, "new")) {
        seal_whsec_new(f->new_secret);
        secret = (struct seal_text){f->new_secret, strlen(f->new_secret)};
    }
    return seal_whsec_read(secret, f->secret, &f->secret_bytes) ||
           refuse(f, "The secret is new, none, or whsec_ and the base64 of 24 to 64 bytes.");
}

void sends_form_no_keys(struct sends_form *f)
{
    f->key_count = 0;
    f->has_keys = true;
}

/* True when the line has it already: the same card, or two cards of one owner. */
static bool has_key(const struct sends_form *f, const unsigned char *id)
{
    for (unsigned i = 0; i < f->key_count; i++)
        if (memcmp(f->keys[i].id, id, sizeof f->keys[i].id) == 0)
            return true;
    return false;
}

static bool add_key(struct sends_form *f, const struct seal_card *card,
                    const struct seal_card_key *key)
{
    if (has_key(f, key->id))
        return true;
    if (f->key_count == DB_LINE_KEYS_MAX)
        return refuse(f, "A line has at most 64 keys.");
    struct db_line_key *to = &f->keys[f->key_count++];
    memcpy(to->id, key->id, sizeof to->id);
    memcpy(to->key, key->key, sizeof to->key);
    memcpy(to->owner, card->identity[0].id, sizeof to->owner);
    to->valid_from = key->valid_from;
    to->valid_until = key->valid_until;
    to->horizon_s = card->horizon_s;
    return true;
}

bool sends_form_card(struct sends_form *f, const struct seal_card *card, int64_t now_s)
{
    unsigned valid = 0;
    f->has_keys = true;
    for (unsigned i = 0; i < card->sealings; i++) {
        const struct seal_card_key *k = &card->sealing[i];
        valid += k->valid_from <= now_s && (k->valid_until == 0 || now_s < k->valid_until);
        if (!add_key(f, card, k))
            return false;
    }
    return valid > 0 || refuse(f, "No sealing key of this card is valid now: ask for a new one.");
}

bool sends_form_card_text(struct sends_form *f, struct str text, int64_t now_s)
{
    struct seal_card card;
    struct seal_error error = {""};
    if (!seal_card_read((struct seal_text){text.p, text.n}, &card, &error))
        return refuse(f, "This is no card (`hanji key export` prints one): %s.", error.text);
    return sends_form_card(f, &card, now_s);
}

static enum db_result copy_keys(struct sends_form *f, struct db_reader *r, int64_t line)
{
    unsigned count = 0;
    if (f->has_keys)
        return DB_OK;
    enum db_result result = db_line_keys(r, line, f->keys, &count);
    f->key_count = result == DB_OK ? count : 0;
    return result;
}

enum db_result sends_form_complete(struct sends_form *f, struct db_reader *r)
{
    struct db_line line;
    enum db_result result = db_line_find(r, f->name, strlen(f->name), &line);
    if (result != DB_OK)
        return result;
    if (!f->has_url)
        snprintf(f->url, sizeof f->url, "%s", line.url);
    if (!f->has_order)
        f->fifo = line.fifo;
    if (!f->has_rate)
        f->rate = line.rate;
    if (!f->has_private)
        f->private_ = line.private_;
    if (!f->has_ca && line.ca != NULL) {
        f->ca = strdup(line.ca);
        if (f->ca == NULL)
            return DB_NO_MEMORY;
    }
    return copy_keys(f, r, line.id);
}

struct db_op *sends_form_op(struct sends_form *f, const struct seal_keys *own, bool only_new)
{
    unsigned char hidden[SEAL_WHSEC_MAX + SEAL_HIDDEN_EXTRA];
    char about[DB_LINE_NAME_MAX + 8];
    size_t bytes = 0;
    if (f->url[0] == 0) {
        (void)refuse(f, "The address (url) is missing.");
        return NULL;
    }
    int n = snprintf(about, sizeof about, "line:%s", f->name);
    if (f->secret_bytes > 0)
        bytes = seal_hide(own, (struct seal_text){about, (size_t)n}, f->secret, f->secret_bytes,
                          hidden);
    if (f->secret_bytes > 0 && bytes == 0) {
        (void)refuse(f, "There is no key to hide the secret with; `hanji key new` makes it.");
        return NULL;
    }
    return db_line_set_op(&(struct db_line_set){
        .name = f->name,
        .url = f->url,
        .ca = f->ca,
        .fifo = f->fifo,
        .private_ = f->private_,
        .rate = f->rate,
        .secret = bytes > 0 ? hidden : NULL,
        .secret_bytes = bytes,
        .keys = f->keys,
        .key_count = f->key_count,
        .keep_secret = !f->has_secret,
        .only_new = only_new,
    });
}
