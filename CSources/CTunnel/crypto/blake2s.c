/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row of the 4 × 4 words of RFC 7693 §3.2 is a vector: the four calls of G for the columns are
 * one then, and so are those for the diagonals once the rows have been turned. What takes the time
 * is that each step waits for the one before. A second state beside the first fills such waits.
 * Constant time: what is hashed decides neither branches nor addresses.
 */
#include "blake2s.h"

#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the words of blocks and results are little endian (RFC 7693 §2.4)"
#endif

#define ROUNDS        10
#define BLOCK_WORDS   16
#define ALWAYS_INLINE __attribute__((always_inline)) static inline

typedef uint32_t row __attribute__((vector_size(16)));

struct rows {
    row a, b, c, d;
};

/* §2.6. */
static const uint32_t initial[BLAKE2S_STATE_WORDS] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

/* §2.7. */
static const uint8_t sigma[ROUNDS][BLOCK_WORDS] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

/* Four words of the message, the 1st, 3rd, 5th and 7th of eight in the order of a round. */
ALWAYS_INLINE row pick(const uint32_t m[BLOCK_WORDS], const uint8_t *order)
{
    return (row){m[order[0]], m[order[2]], m[order[4]], m[order[6]]};
}

/* G (§3.1) of four columns, with the rotations of §2.1. */
ALWAYS_INLINE void mix(struct rows *v, row x, row y)
{
    v->a += v->b + x;
    v->d ^= v->a;
    v->d = v->d >> 16 | v->d << 16;
    v->c += v->d;
    v->b ^= v->c;
    v->b = v->b >> 12 | v->b << 20;
    v->a += v->b + y;
    v->d ^= v->a;
    v->d = v->d >> 8 | v->d << 24;
    v->c += v->d;
    v->b ^= v->c;
    v->b = v->b >> 7 | v->b << 25;
}

/* Diagonals become columns. Row b stays, for it is the one that is ready last. */
ALWAYS_INLINE void turn(struct rows *v)
{
    v->a = __builtin_shufflevector(v->a, v->a, 3, 0, 1, 2);
    v->d = __builtin_shufflevector(v->d, v->d, 2, 3, 0, 1);
    v->c = __builtin_shufflevector(v->c, v->c, 1, 2, 3, 0);
}

ALWAYS_INLINE void turn_back(struct rows *v)
{
    v->a = __builtin_shufflevector(v->a, v->a, 1, 2, 3, 0);
    v->d = __builtin_shufflevector(v->d, v->d, 2, 3, 0, 1);
    v->c = __builtin_shufflevector(v->c, v->c, 3, 0, 1, 2);
}

/* The diagonals come in the order that `turn` leaves them in: the last of the RFC's is first. */
ALWAYS_INLINE void rounds(struct rows *v, uint32_t m[][BLOCK_WORDS], int states)
{
#pragma GCC unroll 10
    for (int round = 0; round < ROUNDS; round++) {
        const uint8_t *const s = sigma[round];
        const uint8_t diagonal[8] = {s[14], s[15], s[8], s[9], s[10], s[11], s[12], s[13]};
        for (int i = 0; i < states; i++)
            mix(&v[i], pick(m[i], s), pick(m[i], s + 1));
        for (int i = 0; i < states; i++)
            turn(&v[i]);
        for (int i = 0; i < states; i++)
            mix(&v[i], pick(m[i], diagonal), pick(m[i], diagonal + 1));
        for (int i = 0; i < states; i++)
            turn_back(&v[i]);
    }
}

/* F of §3.2 for one or two `states`, a constant where this is inlined. */
ALWAYS_INLINE void compress(uint32_t h[][BLAKE2S_STATE_WORDS], const uint8_t block[][BLAKE2S_BLOCK],
                            int states, uint64_t length, bool last)
{
    uint32_t m[2][BLOCK_WORDS];
    struct rows before[2], v[2];

    for (int i = 0; i < states; i++) {
        memcpy(m[i], block[i], BLAKE2S_BLOCK);
        memcpy(&before[i].a, h[i], sizeof(row));
        memcpy(&before[i].b, h[i] + 4, sizeof(row));
        v[i] = before[i];
        memcpy(&v[i].c, initial, sizeof(row));
        memcpy(&v[i].d, initial + 4, sizeof(row));
        v[i].d ^= (row){(uint32_t)length, (uint32_t)(length >> 32), last ? UINT32_MAX : 0, 0};
    }
    rounds(v, m, states);
    for (int i = 0; i < states; i++) {
        before[i].a ^= v[i].a ^ v[i].c;
        before[i].b ^= v[i].b ^ v[i].d;
        memcpy(h[i], &before[i].a, sizeof(row));
        memcpy(h[i] + 4, &before[i].b, sizeof(row));
    }
}

void blake2s_initialise(uint32_t h[BLAKE2S_STATE_WORDS], uint32_t out_length, uint32_t key_length)
{
    memcpy(h, initial, sizeof(initial));
    h[0] ^= 0x01010000 ^ key_length << 8 ^ out_length; /* §2.5: the first word of parameters */
}

void blake2s_compress(uint32_t h[BLAKE2S_STATE_WORDS], const uint8_t block[BLAKE2S_BLOCK],
                      uint64_t length, bool last)
{
    compress((uint32_t(*)[BLAKE2S_STATE_WORDS])h, (const uint8_t(*)[BLAKE2S_BLOCK])block, 1, length,
             last);
}

void blake2s_compress_two(uint32_t h[][BLAKE2S_STATE_WORDS], const uint8_t blocks[][BLAKE2S_BLOCK],
                          uint64_t length)
{
    compress(h, blocks, 2, length, false);
}
