/* SPDX-License-Identifier: Apache-2.0 */
/* ChaCha20 (RFC 8439 §2.3), four or eight blocks side by side, as chacha20_lanes.h describes, in
 * the vector types of gcc and clang. */
#ifndef CTUNNEL_CHACHA20_VECTOR_H
#define CTUNNEL_CHACHA20_VECTOR_H

/* One register per state word. Two would be more than any machine's registers hold. */
#ifdef __AVX2__
#define CHACHA20_LANES 8
#else
#define CHACHA20_LANES 4
#endif
/* A call would pass the vectors through memory. */
#define CHACHA20_INLINE __attribute__((always_inline)) static inline
#include "chacha20_lanes.h"

#define CHACHA20_WORDS 16

typedef uint32_t chacha20_quad __attribute__((vector_size(16)));
typedef uint64_t chacha20_pair __attribute__((vector_size(16)));

/* State word `i` before the rounds. */
CHACHA20_INLINE chacha20_vector chacha20_initial(int i, const uint8_t key[32],
                                                 const struct chacha20_lanes *lanes)
{
    static const uint32_t constants[4] = {CHACHA20_CONSTANTS};
    if (i < 4)
        return chacha20_same(constants[i]);
    if (i < 12)
        return chacha20_key_word(key, i - 4);
    return i == 12   ? chacha20_lane_words(lanes->block)
           : i == 13 ? (chacha20_vector){0}
           : i == 14 ? chacha20_lane_words(lanes->counter_low)
                     : chacha20_lane_words(lanes->counter_high);
}

#define CHACHA20_ROTATE(x, n) ((x) << (n) | (x) >> (32 - (n)))

/* Rotations by whole bytes are one permutation on arm64 (rev32, tbl); compilers make two shifts of
 * them there, and know better for x86. */
CHACHA20_INLINE chacha20_vector chacha20_rotate_16(chacha20_vector x)
{
#ifdef __aarch64__
    typedef uint16_t halves __attribute__((vector_size(16)));
    return (chacha20_vector)__builtin_shufflevector((halves)x, (halves)x, 1, 0, 3, 2, 5, 4, 7, 6);
#else
    return CHACHA20_ROTATE(x, 16);
#endif
}

CHACHA20_INLINE chacha20_vector chacha20_rotate_8(chacha20_vector x)
{
#ifdef __aarch64__
    typedef uint8_t bytes __attribute__((vector_size(16)));
    return (chacha20_vector)__builtin_shufflevector((bytes)x, (bytes)x, 3, 0, 1, 2, 7, 4, 5, 6, 11,
                                                    8, 9, 10, 15, 12, 13, 14);
#else
    return CHACHA20_ROTATE(x, 8);
#endif
}

/* Two quarter rounds (RFC 8439 §2.1) side by side: neither waits for its own last result. */
CHACHA20_INLINE void chacha20_quarter_rounds(chacha20_vector *a0, chacha20_vector *b0,
                                             chacha20_vector *c0, chacha20_vector *d0,
                                             chacha20_vector *a1, chacha20_vector *b1,
                                             chacha20_vector *c1, chacha20_vector *d1)
{
    *a0 += *b0;
    *a1 += *b1;
    *d0 = chacha20_rotate_16(*d0 ^ *a0);
    *d1 = chacha20_rotate_16(*d1 ^ *a1);
    *c0 += *d0;
    *c1 += *d1;
    *b0 ^= *c0;
    *b1 ^= *c1;
    *b0 = CHACHA20_ROTATE(*b0, 12);
    *b1 = CHACHA20_ROTATE(*b1, 12);
    *a0 += *b0;
    *a1 += *b1;
    *d0 = chacha20_rotate_8(*d0 ^ *a0);
    *d1 = chacha20_rotate_8(*d1 ^ *a1);
    *c0 += *d0;
    *c1 += *d1;
    *b0 ^= *c0;
    *b1 ^= *c1;
    *b0 = CHACHA20_ROTATE(*b0, 7);
    *b1 = CHACHA20_ROTATE(*b1, 7);
}

/* A column round is halves 0 and 1, a diagonal one halves 2 and 3, each of two quarter rounds. */
CHACHA20_INLINE void chacha20_half(chacha20_vector x[CHACHA20_WORDS], int half)
{
    const int k = half >> 1, i = 2 * (half & 1), j = i + 1;
    chacha20_quarter_rounds(&x[i], &x[4 + ((i + k) & 3)], &x[8 + ((i + 2 * k) & 3)],
                            &x[12 + ((i + 3 * k) & 3)], &x[j], &x[4 + ((j + k) & 3)],
                            &x[8 + ((j + 2 * k) & 3)], &x[12 + ((j + 3 * k) & 3)]);
}

/* Lanes 4 `part` to 4 `part` + 3. */
CHACHA20_INLINE chacha20_quad chacha20_part(chacha20_vector x, int part)
{
#if CHACHA20_LANES == 4
    (void)part;
    return x;
#else
    return part ? __builtin_shufflevector(x, x, 4, 5, 6, 7)
                : __builtin_shufflevector(x, x, 0, 1, 2, 3);
#endif
}

/* Words `i` to `i` + 3 of four lanes, to where their blocks have them. */
CHACHA20_INLINE void chacha20_transpose(const chacha20_vector x[CHACHA20_WORDS], int i, int part,
                                        uint8_t (*blocks)[CHACHA20_BLOCK])
{
    const chacha20_quad w0 = chacha20_part(x[i], part), w1 = chacha20_part(x[i + 1], part);
    const chacha20_quad w2 = chacha20_part(x[i + 2], part), w3 = chacha20_part(x[i + 3], part);
    const chacha20_pair low_0 = (chacha20_pair)__builtin_shufflevector(w0, w1, 0, 4, 1, 5);
    const chacha20_pair high_0 = (chacha20_pair)__builtin_shufflevector(w0, w1, 2, 6, 3, 7);
    const chacha20_pair low_1 = (chacha20_pair)__builtin_shufflevector(w2, w3, 0, 4, 1, 5);
    const chacha20_pair high_1 = (chacha20_pair)__builtin_shufflevector(w2, w3, 2, 6, 3, 7);
    const chacha20_pair rows[4] = {__builtin_shufflevector(low_0, low_1, 0, 2),
                                   __builtin_shufflevector(low_0, low_1, 1, 3),
                                   __builtin_shufflevector(high_0, high_1, 0, 2),
                                   __builtin_shufflevector(high_0, high_1, 1, 3)};
    for (int lane = 0; lane < 4; lane++)
        memcpy(blocks[4 * part + lane] + 4 * i, &rows[lane], sizeof(rows[lane]));
}

/* Adds the initial state, which is cheaper made again than kept, and stores the blocks. */
CHACHA20_INLINE void chacha20_finish(chacha20_vector x[CHACHA20_WORDS], const uint8_t key[32],
                                     const struct chacha20_lanes *lanes,
                                     uint8_t (*blocks)[CHACHA20_BLOCK])
{
    for (int i = 0; i < CHACHA20_WORDS; i++)
        x[i] += chacha20_initial(i, key, lanes);
    for (int i = 0; i < CHACHA20_WORDS; i += 4)
        for (int part = 0; part < CHACHA20_LANES / 4; part++)
            chacha20_transpose(x, i, part, blocks);
}

#endif
