/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BLAKE2s (RFC 7693 §3.3) and HMAC over it. A handshake is nearly a hundred compressions of one
 * block each, one after the other. Both pads of an HMAC's key are hashed at once, and once for all
 * results under that key.
 */
#include "hash.h"
#include "blake2s.h"

#include <sodium.h>
#include <string.h>

/* Holds the frames of a compression and of what calls it below hash_kdf: some of a key may be left
 * there. */
#define STACK_USED 2048

struct hasher {
    uint32_t h[BLAKE2S_STATE_WORDS];
    uint32_t
        filled; /* bytes of `block`; it is compressed when more comes, for it may be the last */
    uint64_t length; /* bytes compressed */
    uint8_t block[BLAKE2S_BLOCK];
};

static void absorb(struct hasher *hasher, const void *data, size_t length)
{
    const uint8_t *next = data;
    while (length) {
        if (hasher->filled == BLAKE2S_BLOCK) {
            hasher->length += BLAKE2S_BLOCK;
            blake2s_compress(hasher->h, hasher->block, hasher->length, false);
            hasher->filled = 0;
        }
        const size_t room = BLAKE2S_BLOCK - hasher->filled;
        const size_t taken = length < room ? length : room;
        memcpy(hasher->block + hasher->filled, next, taken);
        hasher->filled += (uint32_t)taken;
        next += taken;
        length -= taken;
    }
}

/* Wipes `hasher`. */
static void finish(struct hasher *hasher, uint8_t *out, size_t length)
{
    memset(hasher->block + hasher->filled, 0, BLAKE2S_BLOCK - hasher->filled);
    blake2s_compress(hasher->h, hasher->block, hasher->length + hasher->filled, true);
    memcpy(out, hasher->h, length);
    sodium_memzero(hasher, sizeof(*hasher));
}

void blake2s_256(uint8_t out[BLAKE2S_LENGTH], const struct hash_part *parts, size_t count)
{
    struct hasher hasher = {.filled = 0};
    blake2s_initialise(hasher.h, BLAKE2S_LENGTH, 0);
    for (size_t i = 0; i < count; i++)
        absorb(&hasher, parts[i].data, parts[i].length);
    finish(&hasher, out, BLAKE2S_LENGTH);
}

void blake2s_mac128(uint8_t out[16], const uint8_t *key, size_t key_length, const void *data,
                    size_t length)
{
    struct hasher hasher = {.filled = BLAKE2S_BLOCK};
    blake2s_initialise(hasher.h, 16, (uint32_t)key_length);
    memcpy(hasher.block, key, key_length); /* and zeros, a block of its own */
    absorb(&hasher, data, length);
    finish(&hasher, out, 16);
}

/* ---- HMAC (RFC 2104 §2) and HKDF (RFC 5869) ------------------------------------------------- */

/* The states of the inner and the outer hash once each has taken its pad. */
struct hmac_key {
    uint32_t h[2][BLAKE2S_STATE_WORDS];
};

static void make_pads(uint8_t pads[2][BLAKE2S_BLOCK], const uint8_t key[BLAKE2S_LENGTH])
{
    memset(pads[0], 0x36, BLAKE2S_BLOCK);
    memset(pads[1], 0x5c, BLAKE2S_BLOCK);
    for (size_t i = 0; i < BLAKE2S_LENGTH; i++) {
        pads[0][i] ^= key[i];
        pads[1][i] ^= key[i];
    }
}

static void hmac_key_set(struct hmac_key *hmac, const uint8_t key[BLAKE2S_LENGTH])
{
    uint8_t pads[2][BLAKE2S_BLOCK];
    make_pads(pads, key);
    blake2s_initialise(hmac->h[0], BLAKE2S_LENGTH, 0);
    blake2s_initialise(hmac->h[1], BLAKE2S_LENGTH, 0);
    blake2s_compress_two(hmac->h, pads, BLAKE2S_BLOCK);
    sodium_memzero(pads, sizeof(pads));
}

/* Of `data` followed by `suffix`, together at least one byte: the pad must not be the last block.
 */
static void hmac(uint8_t out[BLAKE2S_LENGTH], const struct hmac_key *key, struct hash_part data,
                 struct hash_part suffix)
{
    struct hasher inner = {.length = BLAKE2S_BLOCK}, outer = {.length = BLAKE2S_BLOCK};
    memcpy(inner.h, key->h[0], sizeof(inner.h));
    memcpy(outer.h, key->h[1], sizeof(outer.h));
    absorb(&inner, data.data, data.length);
    absorb(&inner, suffix.data, suffix.length);
    finish(&inner, outer.block, BLAKE2S_LENGTH);
    outer.filled = BLAKE2S_LENGTH;
    finish(&outer, out, BLAKE2S_LENGTH);
}

/* The same of no data. */
static void hmac_of_nothing(uint8_t out[BLAKE2S_LENGTH], const uint8_t key[BLAKE2S_LENGTH])
{
    uint8_t pads[2][BLAKE2S_BLOCK], inner[BLAKE2S_LENGTH];
    make_pads(pads, key);
    blake2s_256(inner, (const struct hash_part[]){{pads[0], BLAKE2S_BLOCK}}, 1);
    blake2s_256(out, (const struct hash_part[]){{pads[1], BLAKE2S_BLOCK}, {inner, sizeof(inner)}},
                2);
    sodium_memzero(pads, sizeof(pads));
    sodium_memzero(inner, sizeof(inner));
}

static void extract(uint8_t out[BLAKE2S_LENGTH], const uint8_t salt[BLAKE2S_LENGTH],
                    struct hash_part input)
{
    if (!input.length) {
        hmac_of_nothing(out, salt);
        return;
    }
    struct hmac_key key;
    hmac_key_set(&key, salt);
    hmac(out, &key, input, (struct hash_part){NULL, 0});
    sodium_memzero(&key, sizeof(key));
}

/* Extract, then expand with an empty info: T(i) = HMAC(PRK, T(i-1) || i). */
void hash_kdf(uint8_t *out1, uint8_t *out2, uint8_t *out3, const uint8_t chaining_key[32],
              const void *input, size_t input_length)
{
    uint8_t *const outputs[] = {out1, out2, out3};
    const size_t last = out3 ? 3 : out2 ? 2 : 1;
    uint8_t pseudorandom_key[BLAKE2S_LENGTH];
    uint8_t block[BLAKE2S_LENGTH];
    struct hmac_key key;

    extract(pseudorandom_key, chaining_key, (struct hash_part){input, input_length});
    hmac_key_set(&key, pseudorandom_key);
    for (size_t i = 0; i < last; i++) {
        const uint8_t number = (uint8_t)(i + 1);
        hmac(block, &key, (struct hash_part){block, i ? sizeof(block) : 0},
             (struct hash_part){&number, 1});
        if (outputs[i])
            memcpy(outputs[i], block, sizeof(block));
    }
    sodium_memzero(&key, sizeof(key));
    sodium_memzero(pseudorandom_key, sizeof(pseudorandom_key));
    sodium_memzero(block, sizeof(block));
    sodium_stackzero(STACK_USED);
}
