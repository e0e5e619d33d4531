/* SPDX-License-Identifier: Apache-2.0 */
/* The list of AEAD back-ends, and the choice of one by measurement. */
#include "aead.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct aead_backend *const aead_backends[] = {
    &aead_avx512,   &aead_avx2,      &aead_ipsec_mb, &aead_libcrypto,
    &aead_portable, &aead_libsodium, NULL,
};

#define MAX_BACKENDS (sizeof(aead_backends) / sizeof(aead_backends[0]) - 1)

#define ROUNDS       7
#define BATCH        32
#define FULL_LENGTH  1424 /* an inner packet of the default MTU, padded */
#define SMALL_LENGTH 64
/* Bulk traffic is what saturates a core; small packets are bound by system calls first. */
#define FULL_WEIGHT   3
#define SMALL_REPEATS 4 /* batches per sample, so that a sample is well above the clock's grain */
#define FULL_SIZE     (FULL_LENGTH + AEAD_TAG_LENGTH)

struct candidate {
    const struct aead_backend *backend;
    struct aead_worker *worker;
    uint64_t samples[ROUNDS];
};

static uint64_t thread_time(void)
{
    /* The thread's CPU time: what others do on this core meanwhile does not count. */
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t time_seals(struct aead_worker *worker, uint8_t *slab, uint32_t length, int repeats)
{
    static const struct aead_key key = {{1}};
    struct aead_packet packets[BATCH];

    for (size_t i = 0; i < BATCH; i++) {
        uint8_t *packet = slab + i * FULL_SIZE;
        packets[i] = (struct aead_packet){packet, packet, i, length, false};
    }
    const uint64_t start = thread_time();
    for (int i = 0; i < repeats; i++)
        aead_seal_n(worker, &key, packets, BATCH);
    return thread_time() - start;
}

static uint64_t sample(struct aead_worker *worker, uint8_t *slab)
{
    return FULL_WEIGHT * time_seals(worker, slab, FULL_LENGTH, 1) +
           time_seals(worker, slab, SMALL_LENGTH, SMALL_REPEATS) / SMALL_REPEATS;
}

static int compare_samples(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The candidate with the least median; the rounds are interleaved, so that a change of the core's
 * clock rate or a neighbour's load hits all alike. */
static const struct aead_backend *fastest(struct candidate *candidates, size_t count)
{
    const struct aead_backend *best = candidates[0].backend;
    uint64_t best_time = UINT64_MAX;
    uint8_t *slab = count > 1 ? calloc(BATCH, FULL_SIZE) : NULL;

    if (!slab)
        return best;
    for (size_t i = 0; i < count; i++)
        sample(candidates[i].worker, slab); /* warms caches and contexts */
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < count; i++)
            candidates[i].samples[round] = sample(candidates[i].worker, slab);
    free(slab);

    for (size_t i = 0; i < count; i++) {
        qsort(candidates[i].samples, ROUNDS, sizeof(uint64_t), compare_samples);
        if (candidates[i].samples[ROUNDS / 2] < best_time) {
            best_time = candidates[i].samples[ROUNDS / 2];
            best = candidates[i].backend;
        }
    }
    return best;
}

static const struct aead_backend *choose_fastest(void)
{
    struct candidate candidates[MAX_BACKENDS];
    size_t count = 0;

    for (size_t i = 0; aead_backends[i]; i++) {
        if (!aead_self_test(aead_backends[i]))
            continue;
        struct aead_worker *worker = aead_worker_create(aead_backends[i]);
        if (worker)
            candidates[count++] = (struct candidate){aead_backends[i], worker, {0}};
    }
    const struct aead_backend *choice = count ? fastest(candidates, count) : NULL;
    for (size_t i = 0; i < count; i++)
        aead_worker_destroy(candidates[i].worker);
    return choice;
}

const struct aead_backend *aead_choose(const char *name)
{
    if (!name || !*name)
        return choose_fastest();
    for (size_t i = 0; aead_backends[i]; i++)
        if (strcmp(aead_backends[i]->name, name) == 0)
            return aead_self_test(aead_backends[i]) ? aead_backends[i] : NULL;
    return NULL;
}
