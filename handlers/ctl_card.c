/* Cards that commands are given. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/ctl.h"

static bool refuse(const char *command, const char *from, const char *why)
{
    fprintf(stderr, "hanji %s: %s: %s\n", command, from, why);
    return false;
}

/* Reads to the end, or until there is more than a card can be. */
static bool read_file(const char *command, const char *from, const char *name, struct ctl_card *c)
{
    FILE *f = strcmp(from, "-") == 0 ? stdin : fopen(from, "re");
    if (f == NULL)
        return refuse(command, name, strerror(errno));
    c->n = fread(c->text, 1, sizeof c->text, f);
    int unread = ferror(f) != 0 ? errno : 0;
    if (f != stdin)
        fclose(f);
    if (unread != 0)
        return refuse(command, name, strerror(unread));
    return c->n > 0 || refuse(command, name, "it is empty; `hanji key export` prints a card");
}

bool ctl_card(const char *command, const char *from, struct ctl_card *c)
{
    struct seal_error error;
    const char *blank = " \t\r\n";
    bool is_text = from[strspn(from, blank)] == '{';
    const char *name = is_text ? "the card" : strcmp(from, "-") == 0 ? "standard input" : from;
    if (is_text) {
        c->n = strlen(from) < sizeof c->text ? strlen(from) : sizeof c->text;
        memcpy(c->text, from, c->n);
    } else if (!read_file(command, from, name, c)) {
        return false;
    }
    while (c->n > 0 && strchr(blank, c->text[c->n - 1]) != NULL && c->text[c->n - 1] != 0)
        c->n--;
    if (!seal_card_read((struct seal_text){c->text, c->n}, &c->card, &error))
        return refuse(command, name, error.text);
    c->text[c->n] = 0; /* a card is shorter than its room */
    return true;
}

void ctl_card_tell(const struct seal_card *card, FILE *out)
{
    char fingerprint[SEAL_FINGERPRINT_LEN + 1], id[SEAL_KEY_ID_HEX + 1];
    seal_fingerprint(card->identity[0].key, fingerprint);
    seal_key_hex(card->identity[0].id, id);
    fprintf(out, "fingerprint %s\nidentity    %s\n", fingerprint, id);
}
