/* seal/envelope over any bytes: what is read is what writing it again gives, and stays within its bounds; and nothing opens
 * that nobody whom we know has signed. */
#include "seal/envelope.h"
#include "seal/envelope_internal.h"
#include "tests/fuzz/must.h"

static size_t write_again(const struct seal_parsed *p, char *out)
{
    if (p->skip)
        return seal_tombstone_write(p->id, p->from, &p->place, p->proof, out);
    static struct seal_draft d;
    struct seal_letter letter = {
        .id = p->id, .line = p->line, .type = {p->type, p->type_bytes}, .created = p->created, .to_count = p->count};
    d.letter = &letter;
    d.ct = p->ct;
    d.ct_bytes = p->ct_bytes;
    memcpy(d.from, p->from, sizeof d.from);
    memcpy(d.stanza, p->stanza, p->count * sizeof *d.stanza);
    memcpy(d.commitment, p->commitment, sizeof d.commitment);
    memcpy(d.signature, p->signature, sizeof d.signature);
    size_t n = seal_envelope_write(&d, out);
    char *stored = malloc(n);
    MUST(stored != NULL);
    memcpy(stored, out, n);
    n = seal_envelope_send((struct seal_text){stored, n}, &p->place, p->proof, out);
    free(stored);
    return n;
}

/* Everybody is known, by a key whose secret no input has. */
static bool trust(void *arg, const unsigned char id[SEAL_KEY_ID_BYTES], unsigned char key[SEAL_KEY_BYTES])
{
    (void)id;
    memset(key, 7, SEAL_KEY_BYTES);
    return *(bool *)arg;
}

static void open_it(struct seal_text json, bool well_formed)
{
    static struct seal_keys *none;
    struct seal_opened opened;
    if (none == NULL)
        none = seal_keys_none();
    MUST(none != NULL && seal_init());
    for (unsigned known = 0; known < 2; known++) {
        bool all = known == 1;
        enum seal_envelope result = seal_envelope_open(none, json, trust, &all, &opened);
        MUST(result == (!well_formed ? SEAL_ENVELOPE_MALFORMED : all ? SEAL_ENVELOPE_SIGNATURE : SEAL_ENVELOPE_SENDER));
        MUST(opened.body.p == NULL && opened.memory == NULL);
        seal_opened_free(&opened);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seal_parsed p;
    unsigned char from[SEAL_KEY_ID_BYTES];
    struct seal_text json = {(const char *)data, size};
    enum seal_envelope result = seal_envelope_parse(json, &p);
    bool has_from = seal_envelope_from(json, from);
    if (result == SEAL_ENVELOPE_OK) {
        MUST(p.count <= SEAL_RECIPIENTS_MAX && p.line.n <= SEAL_LINE_MAX && p.id.n == SEAL_MESSAGE_ID_LEN);
        MUST(p.skip || (has_from && memcmp(from, p.from, sizeof from) == 0));
        char *again = malloc(size + SEAL_PLACE_JSON_MAX + SEAL_TOMBSTONE_MAX);
        MUST(again != NULL);
        MUST(write_again(&p, again) == size && memcmp(again, data, size) == 0);
        free(again);
    }
    open_it(json, result == SEAL_ENVELOPE_OK);
    free(p.memory);
    return 0;
}
