/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ChaCha20-Poly1305 by libsodium: packet by packet, no state. The oracle for the other back-ends
 * and the last resort.
 */
#include "aead.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES == AEAD_KEY_LENGTH, "key length");
static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == AEAD_TAG_LENGTH, "tag length");

/* No state to keep, so every thread shares one worker. */
static struct aead_worker shared_worker = {.backend = &aead_libsodium};

static struct aead_worker *create(void)
{
    return sodium_init() < 0 ? NULL : &shared_worker;
}

static void destroy(struct aead_worker *worker)
{
    (void)worker;
}

static void make_nonce(uint8_t nonce[12], uint64_t counter)
{
    memset(nonce, 0, 4);
    memcpy(nonce + 4, &counter, 8);
}

static void seal_n(struct aead_worker *worker, const struct aead_key *key,
                   struct aead_packet *packets, size_t count)
{
    (void)worker;
    for (size_t i = 0; i < count; i++) {
        struct aead_packet *packet = &packets[i];
        uint8_t nonce[12];
        make_nonce(nonce, packet->counter);
        crypto_aead_chacha20poly1305_ietf_encrypt_detached(
            packet->destination, packet->destination + packet->length, NULL, packet->source,
            packet->length, NULL, 0, NULL, nonce, key->bytes);
    }
}

static size_t open_n(struct aead_worker *worker, const struct aead_key *key,
                     struct aead_packet *packets, size_t count)
{
    size_t opened = 0;
    (void)worker;
    for (size_t i = 0; i < count; i++) {
        struct aead_packet *packet = &packets[i];
        uint8_t nonce[12];
        make_nonce(nonce, packet->counter);
        packet->ok = crypto_aead_chacha20poly1305_ietf_decrypt_detached(
                         packet->destination, NULL, packet->source, packet->length,
                         packet->source + packet->length, NULL, 0, nonce, key->bytes) == 0;
        if (!packet->ok)
            sodium_memzero(packet->destination, packet->length);
        opened += packet->ok;
    }
    return opened;
}

const struct aead_backend aead_libsodium = {
    .name = "libsodium",
    .create = create,
    .destroy = destroy,
    .seal_n = seal_n,
    .open_n = open_n,
};
