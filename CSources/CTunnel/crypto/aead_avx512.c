/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ChaCha20-Poly1305 for AVX-512 with IFMA: sixteen ChaCha20 blocks at once, as aead_batch.h
 * describes, and eight Poly1305 blocks (poly1305_avx512.h) beside a double round of them. Both want
 * the vector units; a step of Poly1305 is a chain of products and carries that alone would leave
 * them idle at times, and the double round fills that.
 */
#include "aead.h"

#if defined(__x86_64__) || defined(AVX512_EMULATED)

#include "chacha20_avx512.h"
#include "poly1305_avx512.h"

#define BATCH_TARGET AVX512
#define BATCH_STACK  4096
/* Eight of the ten double rounds are enough for what a group encrypts. */
#define STEPS_PER_DOUBLE_ROUND 1
#include "aead_batch.h"

AVX512 static void xor_run(uint8_t *destination, const uint8_t *source, const uint8_t *keystream,
                           uint32_t length)
{
    for (; length >= VECTOR_SIZE; length -= VECTOR_SIZE) {
        vector_store(destination, vector_load(source) ^ vector_load(keystream));
        destination += VECTOR_SIZE;
        source += VECTOR_SIZE;
        keystream += VECTOR_SIZE;
    }
    if (length)
        vector_store_bytes(destination, length,
                           vector_load_bytes(source, length) ^ vector_load(keystream));
}

AVX512 static void group_run(const struct group *group, struct chunk *chunk, struct place end)
{
    struct stretch stretch = poly_stretch(chunk, end, CHACHA20_DOUBLE_ROUNDS);
    size_t round = 0;
    struct chacha20 x = chacha20_initial(chunk->key, &group->lanes);

    while (stretch.turns) {
        const struct poly1305_factor factor = poly1305_factor(stretch.key);
        struct poly1305 poly = chunk->worker->poly;
        round += stretch.turns;
        for (; stretch.turns; stretch.turns--) {
            chacha20_double_round(&x);
            poly1305_step(&poly, &factor, stretch.data);
            stretch.data += POLY1305_STEP;
        }
        chunk->worker->poly = poly;
        if (round < CHACHA20_DOUBLE_ROUNDS)
            stretch = poly_next_packet(chunk, end, CHACHA20_DOUBLE_ROUNDS - round);
    }
    for (; round < CHACHA20_DOUBLE_ROUNDS; round++)
        chacha20_double_round(&x);
    chacha20_finish(&x, chunk->key, &group->lanes, chunk->worker->keystream);
}

/* The processor has it and the operating system keeps its registers: the compiler's support
 * function looks at both. */
static bool can_run(void)
{
#ifdef AVX512_EMULATED
    return true;
#else
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512ifma") &&
           __builtin_cpu_supports("bmi2");
#endif
}

static struct aead_worker *create(void)
{
    return can_run() ? batch_create(&aead_avx512, sizeof(struct batch_worker)) : NULL;
}

const struct aead_backend aead_avx512 = {
    .name = "avx512",
    .create = create,
    .destroy = batch_destroy,
    .seal_n = batch_seal_n,
    .open_n = batch_open_n,
    .forget = batch_forget,
};

#else

/* Without create() the rest is never called. */
const struct aead_backend aead_avx512 = {.name = "avx512"};

#endif
