/* Cards: foreign bytes are refused or make a card whose keys are sound, named and within their numbers. */
#include "seal/card.h"
#include "tests/fuzz/must.h"

static void look(enum seal_key_kind kind, const struct seal_card_key *k, unsigned n)
{
    unsigned char id[SEAL_KEY_ID_BYTES];
    MUST(n >= 1 && n <= SEAL_CARD_KEYS_MAX);
    for (unsigned i = 0; i < n; i++) {
        seal_key_id(kind, k[i].key, id);
        MUST(seal_key_sound(kind, k[i].key) && memcmp(id, k[i].id, sizeof id) == 0);
        MUST(k[i].valid_until == 0 || k[i].valid_from <= k[i].valid_until);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct seal_card card;
    static bool begun;
    struct seal_error error = {""};
    begun = begun || seal_init();
    if (!seal_card_read((struct seal_text){(const char *)data, size}, &card, &error)) {
        MUST(error.text[0] != 0 && card.identities == 0);
        return 0;
    }
    MUST(size < SEAL_CARD_MAX);
    look(SEAL_IDENTITY, card.identity, card.identities);
    look(SEAL_TRANSPORT, card.transport, card.transports);
    look(SEAL_SEALING, card.sealing, card.sealings);
    return 0;
}
