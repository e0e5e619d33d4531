/* SPDX-License-Identifier: Apache-2.0 */
/* ChaCha20-Poly1305 for AVX2: eight blocks at once, as aead_batch.h describes. */
#include "aead.h"

#if defined(__x86_64__)

#include "chacha20_avx2.h"
#include "poly1305_scalar.h"

#define BATCH_TARGET AVX2
/* Three take about as long as a double round, and ten times three are nearly the 32 of eight
 * ChaCha20 blocks. */
#define STEPS_PER_DOUBLE_ROUND 3
#include "aead_batch.h"

struct avx2_worker {
    struct batch_worker batch;
    chacha20_vector resting[4]; /* state words 8-11 */
};

AVX2_INLINE void xor_32(uint8_t *destination, const uint8_t *source, const uint8_t *keystream)
{
    const __m256i data = _mm256_loadu_si256((const __m256i *)source);
    const __m256i stream = _mm256_load_si256((const __m256i *)keystream);
    _mm256_storeu_si256((__m256i *)destination, _mm256_xor_si256(data, stream));
}

AVX2 static void xor_tail(uint8_t *destination, const uint8_t *source, const uint8_t *keystream,
                          uint32_t length)
{
    uint32_t i = 0;
    if (length & 32) {
        xor_32(destination, source, keystream);
        i = 32;
    }
    if (length & 16) {
        const __m128i data = _mm_loadu_si128((const __m128i *)(source + i));
        const __m128i stream = _mm_load_si128((const __m128i *)(keystream + i));
        _mm_storeu_si128((__m128i *)(destination + i), _mm_xor_si128(data, stream));
        i += 16;
    }
    for (; i < length; i++)
        destination[i] = source[i] ^ keystream[i];
}

AVX2 static void xor_run(uint8_t *destination, const uint8_t *source, const uint8_t *keystream,
                         uint32_t length)
{
    for (; length >= CHACHA20_BLOCK; length -= CHACHA20_BLOCK) {
        xor_32(destination, source, keystream);
        xor_32(destination + 32, source + 32, keystream + 32);
        destination += CHACHA20_BLOCK;
        source += CHACHA20_BLOCK;
        keystream += CHACHA20_BLOCK;
    }
    if (length)
        xor_tail(destination, source, keystream, length);
}

AVX2 static void group_run(const struct group *group, struct chunk *chunk, struct place end)
{
    struct stretch stretch = poly_stretch(chunk, end, CHACHA20_DOUBLE_ROUNDS);
    struct chacha20 x = {.c_rest = ((struct avx2_worker *)chunk->worker)->resting};
    size_t round = 0;

    chacha20_initialise(&x, chunk->key, &group->lanes);
    while (stretch.turns) {
        struct poly1305 poly = chunk->worker->poly;
        poly1305_add(&poly, stretch.data);
        round += stretch.turns;
        for (; stretch.turns; stretch.turns--) {
            const bool last = stretch.turns == 1;
            chacha20_half(&x, 0);
            poly1305_multiply(&poly, stretch.key, stretch.data + 16, 1);
            chacha20_half(&x, 1);
            poly1305_multiply(&poly, stretch.key, stretch.data + 32, 1);
            chacha20_half(&x, 2);
            stretch.data += STEPS_PER_DOUBLE_ROUND * POLY1305_BLOCK;
            poly1305_multiply(&poly, stretch.key, last ? poly1305_zero : stretch.data, !last);
            chacha20_half(&x, 3);
        }
        chunk->worker->poly = poly;
        if (round < CHACHA20_DOUBLE_ROUNDS - 1)
            stretch = poly_next_packet(chunk, end, CHACHA20_DOUBLE_ROUNDS - round);
    }
    for (; round < CHACHA20_DOUBLE_ROUNDS; round++) {
        chacha20_half(&x, 0);
        chacha20_half(&x, 1);
        chacha20_half(&x, 2);
        chacha20_half(&x, 3);
    }
    chacha20_finish(&x, chunk->key, &group->lanes, chunk->worker->keystream);
}

static void forget(struct aead_worker *base)
{
    struct avx2_worker *worker = (struct avx2_worker *)base;
    sodium_memzero(worker->resting, sizeof(worker->resting));
    batch_forget(base);
}

static struct aead_worker *create(void)
{
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2"))
        return NULL;
    return batch_create(&aead_avx2, sizeof(struct avx2_worker));
}

const struct aead_backend aead_avx2 = {
    .name = "avx2",
    .create = create,
    .destroy = batch_destroy,
    .seal_n = batch_seal_n,
    .open_n = batch_open_n,
    .forget = forget,
};

#else

/* Without create() the rest is never called. */
const struct aead_backend aead_avx2 = {.name = "avx2"};

#endif
