/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ChaCha20-Poly1305 in C with vector types: four blocks at once, or eight where the compiler may
 * use AVX2, as aead_batch.h describes. Made for arm64; x86 without AVX2 can run it. Constant time
 * where a multiplication's time does not depend on its operands.
 */
#include "aead.h"

#if defined(__SIZEOF_INT128__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

#define POLY1305_PORTABLE
#include "chacha20_vector.h"
#include "poly1305_scalar.h"

#define BATCH_TARGET
/* At least as many as a group's ChaCha20 blocks have in ten of them: 16 with four lanes, 32 with
 * eight. */
#define STEPS_PER_DOUBLE_ROUND (CHACHA20_LANES / 2)
#include "aead_batch.h"

CHACHA20_INLINE void xor_16(uint8_t *destination, const uint8_t *source, const uint8_t *keystream)
{
    chacha20_quad data, stream;
    memcpy(&data, source, sizeof(data));
    memcpy(&stream, keystream, sizeof(stream));
    data ^= stream;
    memcpy(destination, &data, sizeof(data));
}

static void xor_run(uint8_t *destination, const uint8_t *source, const uint8_t *keystream,
                    uint32_t length)
{
    uint32_t i = 0;
    for (; length - i >= CHACHA20_BLOCK; i += CHACHA20_BLOCK)
        for (uint32_t k = i; k < i + CHACHA20_BLOCK; k += sizeof(chacha20_quad))
            xor_16(destination + k, source + k, keystream + k);
    for (; length - i >= sizeof(chacha20_quad); i += sizeof(chacha20_quad))
        xor_16(destination + i, source + i, keystream + i);
    for (; i < length; i++)
        destination[i] = source[i] ^ keystream[i];
}

/* A double round and the blocks of Poly1305 beside it; what follows is the block after them. */
CHACHA20_INLINE void double_round_and_steps(chacha20_vector x[CHACHA20_WORDS],
                                            struct poly1305 *poly, const struct poly1305_key *key,
                                            const uint8_t *data, bool last)
{
    const uint8_t *following = data + STEPS_PER_DOUBLE_ROUND * POLY1305_BLOCK;
    chacha20_half(x, 0);
    if (STEPS_PER_DOUBLE_ROUND == 4)
        poly1305_multiply(poly, key, data += POLY1305_BLOCK, 1);
    chacha20_half(x, 1);
    poly1305_multiply(poly, key, data += POLY1305_BLOCK, 1);
    chacha20_half(x, 2);
    if (STEPS_PER_DOUBLE_ROUND == 4)
        poly1305_multiply(poly, key, data += POLY1305_BLOCK, 1);
    chacha20_half(x, 3);
    poly1305_multiply(poly, key, last ? poly1305_zero : following, !last);
}

static void group_run(const struct group *group, struct chunk *chunk, struct place end)
{
    struct stretch stretch = poly_stretch(chunk, end, CHACHA20_DOUBLE_ROUNDS);
    size_t round = stretch.turns;
    chacha20_vector x[CHACHA20_WORDS];

    for (int i = 0; i < CHACHA20_WORDS; i++)
        x[i] = chacha20_initial(i, chunk->key, &group->lanes);
    if (stretch.turns) {
        struct poly1305 poly = chunk->worker->poly;
        poly1305_add(&poly, stretch.data);
        for (; stretch.turns; stretch.turns--) {
            double_round_and_steps(x, &poly, stretch.key, stretch.data, stretch.turns == 1);
            stretch.data += STEPS_PER_DOUBLE_ROUND * POLY1305_BLOCK;
        }
        chunk->worker->poly = poly;
    }
    for (; round < CHACHA20_DOUBLE_ROUNDS; round++) {
        chacha20_half(x, 0);
        chacha20_half(x, 1);
        chacha20_half(x, 2);
        chacha20_half(x, 3);
    }
    chacha20_finish(x, chunk->key, &group->lanes, chunk->worker->keystream);
}

static struct aead_worker *create(void)
{
    return batch_create(&aead_portable, sizeof(struct batch_worker));
}

const struct aead_backend aead_portable = {
    .name = "portable",
    .create = create,
    .destroy = batch_destroy,
    .seal_n = batch_seal_n,
    .open_n = batch_open_n,
    .forget = batch_forget,
};

#else

/* Without create() the rest is never called. */
const struct aead_backend aead_portable = {.name = "portable"};

#endif
