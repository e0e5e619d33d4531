/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ChaCha20 (RFC 8439 §2.3) of several blocks side by side begins with, whatever the
 * instructions: word i of all the blocks is one vector. The blocks need not belong together: each
 * has its own nonce and block counter, under one key.
 *
 * For the one file that has the rounds to include. It defines CHACHA20_LANES, how many blocks, and
 * CHACHA20_INLINE, the attributes of functions that use its instructions.
 */
#ifndef CTUNNEL_CHACHA20_LANES_H
#define CTUNNEL_CHACHA20_LANES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CHACHA20_BLOCK         64
#define CHACHA20_DOUBLE_ROUNDS 10
#define CHACHA20_VECTOR_SIZE   (4 * CHACHA20_LANES)

/* "expand 32-byte k" */
#define CHACHA20_CONSTANTS 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574

typedef uint32_t chacha20_vector __attribute__((vector_size(CHACHA20_VECTOR_SIZE)));

/* What differs between the lanes: state words 12, 14 and 15. Word 13 is zero (WireGuard §5.4.6). */
struct chacha20_lanes {
    /* The second half of each takes what is stored past the last lane. */
    _Alignas(CHACHA20_VECTOR_SIZE) uint32_t block[2 * CHACHA20_LANES];
    _Alignas(CHACHA20_VECTOR_SIZE) uint32_t counter_low[2 * CHACHA20_LANES];
    _Alignas(CHACHA20_VECTOR_SIZE) uint32_t counter_high[2 * CHACHA20_LANES];
};

CHACHA20_INLINE chacha20_vector chacha20_same(uint32_t word)
{
    return (chacha20_vector){0} + word;
}

CHACHA20_INLINE chacha20_vector chacha20_key_word(const uint8_t key[32], int i)
{
    uint32_t word;
    memcpy(&word, key + 4 * i, sizeof(word));
    return chacha20_same(word);
}

CHACHA20_INLINE chacha20_vector chacha20_lane_words(const uint32_t words[CHACHA20_LANES])
{
    return *(const chacha20_vector *)words; /* aligned as one */
}

/* From any lane on. */
CHACHA20_INLINE void chacha20_set_words(uint32_t *words, chacha20_vector vector)
{
    memcpy(words, &vector, sizeof(vector));
}

/* Gives consecutive blocks of one nonce to the lanes from `lane` on: to all of them, as that is one
 * store. */
CHACHA20_INLINE void chacha20_set_lanes(struct chacha20_lanes *lanes, size_t lane, uint32_t block,
                                        uint64_t counter)
{
    static const uint32_t steps[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    chacha20_vector blocks;
    memcpy(&blocks, steps, sizeof(blocks));
    blocks += block;
    chacha20_set_words(lanes->block + lane, blocks);
    chacha20_set_words(lanes->counter_low + lane, chacha20_same((uint32_t)counter));
    chacha20_set_words(lanes->counter_high + lane, chacha20_same((uint32_t)(counter >> 32)));
}

#endif
