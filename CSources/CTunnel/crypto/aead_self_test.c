/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a back-end computes ChaCha20-Poly1305 on this machine: a known answer, then a batch of
 * mixed lengths and alignments against libsodium, sealed and opened in place and not, with forged
 * packets among the good.
 */
#include "aead.h"
#include "aead_vectors.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define PACKETS       80
#define FORGED(i)     ((i) % 3 == 1)
#define LARGEST       65519
#define RANDOM_LENGTH 1500

/* Where block counts and tails change; the rest of the batch has random lengths. */
static const uint32_t edges[] = {0,   1,   15,  16,  17,  31,  32,  33,  63,  64,   65,
                                 127, 128, 129, 255, 256, 257, 511, 512, 513, 1424, LARGEST};

#define EDGES      (sizeof(edges) / sizeof(edges[0]))
#define ARENA_SIZE (LARGEST + PACKETS * (size_t)(RANDOM_LENGTH + AEAD_TAG_LENGTH))

/* The packets lie end to end, so they start at any alignment. */
struct arena {
    struct aead_key key;
    struct aead_packet packets[PACKETS];
    size_t offsets[PACKETS];
    size_t size;
    uint8_t plain[ARENA_SIZE], expected[ARENA_SIZE], work[ARENA_SIZE], sealed[ARENA_SIZE];
};

static bool known_answer(struct aead_worker *worker)
{
    uint8_t buffer[AEAD_VECTOR_LENGTH + AEAD_TAG_LENGTH];
    struct aead_packet packet = {buffer, aead_vector_plaintext, aead_vector_counter,
                                 AEAD_VECTOR_LENGTH, false};
    struct aead_key key;

    memcpy(key.bytes, aead_vector_key, sizeof(key.bytes));
    aead_seal_n(worker, &key, &packet, 1);
    if (memcmp(buffer, aead_vector_ciphertext, AEAD_VECTOR_LENGTH) != 0 ||
        memcmp(buffer + AEAD_VECTOR_LENGTH, aead_vector_tag, AEAD_TAG_LENGTH) != 0)
        return false;
    packet.source = buffer;
    return aead_open_n(worker, &key, &packet, 1) == 1 && packet.ok &&
           memcmp(buffer, aead_vector_plaintext, AEAD_VECTOR_LENGTH) == 0;
}

static void arena_fill(struct arena *arena)
{
    randombytes_buf(arena->key.bytes, sizeof(arena->key.bytes));
    arena->size = 0;
    for (size_t i = 0; i < PACKETS; i++) {
        struct aead_packet *packet = &arena->packets[i];
        packet->length = i < EDGES ? edges[i] : randombytes_uniform(RANDOM_LENGTH + 1);
        randombytes_buf(&packet->counter, sizeof(packet->counter));
        arena->offsets[i] = arena->size;
        arena->size += packet->length + AEAD_TAG_LENGTH;
    }
    randombytes_buf(arena->plain, arena->size);
}

static void arena_point(struct arena *arena, uint8_t *destination, const uint8_t *source)
{
    for (size_t i = 0; i < PACKETS; i++) {
        arena->packets[i].destination = destination + arena->offsets[i];
        arena->packets[i].source = source + arena->offsets[i];
        arena->packets[i].ok = false;
    }
}

/* Every packet that should be ok has its plaintext back, every other one is zero. */
static bool arena_opened(const struct arena *arena, const uint8_t *opened, bool with_forged)
{
    for (size_t i = 0; i < PACKETS; i++) {
        const uint8_t *bytes = opened + arena->offsets[i];
        const uint32_t length = arena->packets[i].length;
        const bool good = !with_forged || !FORGED(i);
        if (arena->packets[i].ok != good)
            return false;
        if (good ? memcmp(bytes, arena->plain + arena->offsets[i], length) != 0
                 : !sodium_is_zero(bytes, length))
            return false;
    }
    return true;
}

static bool seals_like_libsodium(struct aead_worker *worker, struct aead_worker *oracle,
                                 struct arena *arena)
{
    arena_fill(arena);
    arena_point(arena, arena->expected, arena->plain);
    aead_seal_n(oracle, &arena->key, arena->packets, PACKETS);

    arena_point(arena, arena->sealed, arena->plain);
    aead_seal_n(worker, &arena->key, arena->packets, PACKETS);
    if (memcmp(arena->sealed, arena->expected, arena->size) != 0)
        return false;

    memcpy(arena->work, arena->plain, arena->size);
    arena_point(arena, arena->work, arena->work);
    aead_seal_n(worker, &arena->key, arena->packets, PACKETS);
    return memcmp(arena->work, arena->expected, arena->size) == 0;
}

/* After seals_like_libsodium: `work` and `sealed` hold the sealed batch. */
static bool opens_what_is_good(struct aead_worker *worker, struct arena *arena)
{
    arena_point(arena, arena->work, arena->sealed);
    if (aead_open_n(worker, &arena->key, arena->packets, PACKETS) != PACKETS ||
        !arena_opened(arena, arena->work, false))
        return false;

    size_t good = 0;
    for (size_t i = 0; i < PACKETS; i++) {
        const uint32_t size = arena->packets[i].length + AEAD_TAG_LENGTH;
        if (FORGED(i))
            arena->sealed[arena->offsets[i] + randombytes_uniform(size)] ^=
                (uint8_t)(1u << randombytes_uniform(8));
        else
            good++;
    }
    arena_point(arena, arena->sealed, arena->sealed);
    return aead_open_n(worker, &arena->key, arena->packets, PACKETS) == good &&
           arena_opened(arena, arena->sealed, true);
}

bool aead_self_test(const struct aead_backend *backend)
{
    struct aead_worker *worker = aead_worker_create(backend);
    struct aead_worker *oracle = aead_worker_create(&aead_libsodium);
    struct arena *arena = malloc(sizeof(*arena));

    const bool passed = worker && oracle && arena && known_answer(oracle) && known_answer(worker) &&
                        seals_like_libsodium(worker, oracle, arena) &&
                        opens_what_is_good(worker, arena);
    free(arena);
    aead_worker_destroy(oracle);
    aead_worker_destroy(worker);
    return passed;
}
