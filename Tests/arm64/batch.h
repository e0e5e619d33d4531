/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The batches both sides compute: of every count and length that changes how blocks are grouped,
 * the same on every run and machine. The host seals them with libsodium, arm64 compares.
 */
#ifndef ARM64_BATCH_H
#define ARM64_BATCH_H

#include "crypto/aead.h"

#include <string.h>

#define BATCHES     200
#define MAX_PACKETS 100
#define MAX_LENGTH  1600
#define MAX_SIZE    (MAX_PACKETS * (size_t)(MAX_LENGTH + AEAD_TAG_LENGTH))

struct batch {
    struct aead_key key;
    struct aead_packet packets[MAX_PACKETS];
    size_t offsets[MAX_PACKETS];
    size_t count, size;
    uint8_t plain[MAX_SIZE], sealed[MAX_SIZE], expected[MAX_SIZE];
};

/* splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014). */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static inline uint32_t next_length(uint64_t *state)
{
    const uint64_t random = next_random(state);
    switch (random >> 8 & 7) {
    case 0:
        return random >> 32 & 15;
    case 1:
        return 16 * (uint32_t)(random >> 32 & 63);
    case 2:
        return 64 * (uint32_t)(random >> 32 & 15) + (uint32_t)(random >> 40) % 3;
    case 3:
        return 1424;
    default:
        return (uint32_t)(random >> 32) % (MAX_LENGTH + 1);
    }
}

/* The packets lie end to end, hence at every alignment. */
static inline void batch_fill(struct batch *batch, uint64_t number)
{
    uint64_t state = number;
    for (size_t i = 0; i < AEAD_KEY_LENGTH; i++)
        batch->key.bytes[i] = (uint8_t)next_random(&state);
    batch->count = number % 8 == 0 ? MAX_PACKETS : 1 + number % 40;
    batch->size = 0;
    for (size_t i = 0; i < batch->count; i++) {
        batch->packets[i].length = next_length(&state);
        batch->packets[i].counter = next_random(&state);
        batch->offsets[i] = batch->size;
        batch->size += batch->packets[i].length + AEAD_TAG_LENGTH;
    }
    for (size_t i = 0; i < batch->size; i++)
        batch->plain[i] = (uint8_t)next_random(&state);
}

static inline void batch_point(struct batch *batch, uint8_t *destination, const uint8_t *source)
{
    for (size_t i = 0; i < batch->count; i++) {
        batch->packets[i].destination = destination + batch->offsets[i];
        batch->packets[i].source = source + batch->offsets[i];
        batch->packets[i].ok = false;
    }
}

#endif
