/* SPDX-License-Identifier: Apache-2.0 */
/* ChaCha20 (RFC 8439 §2.3), sixteen blocks side by side, as chacha20_lanes.h describes: the state
 * takes half of the 32 registers. */
#ifndef CTUNNEL_CHACHA20_AVX512_H
#define CTUNNEL_CHACHA20_AVX512_H

#include "avx512.h"

#define CHACHA20_LANES  16
#define CHACHA20_INLINE AVX512_INLINE
#include "chacha20_lanes.h"

/* State words 0–3, 4–7, 8–11 and 12–15, each in sixteen lanes. Every index below is a constant as
 * it stands: an array whose loops are yet to be unrolled is kept in memory. */
struct chacha20 {
    chacha20_vector a[4], b[4], c[4], d[4];
};

AVX512_INLINE struct chacha20 chacha20_initial(const uint8_t key[32],
                                               const struct chacha20_lanes *lanes)
{
    static const uint32_t constants[4] = {CHACHA20_CONSTANTS};
    return (struct chacha20){
        {chacha20_same(constants[0]), chacha20_same(constants[1]), chacha20_same(constants[2]),
         chacha20_same(constants[3])},
        {chacha20_key_word(key, 0), chacha20_key_word(key, 1), chacha20_key_word(key, 2),
         chacha20_key_word(key, 3)},
        {chacha20_key_word(key, 4), chacha20_key_word(key, 5), chacha20_key_word(key, 6),
         chacha20_key_word(key, 7)},
        {chacha20_lane_words(lanes->block),
         {0},
         chacha20_lane_words(lanes->counter_low),
         chacha20_lane_words(lanes->counter_high)},
    };
}

/* One instruction, vprold. */
#define CHACHA20_ROTATE(x, n) ((x) << (n) | (x) >> (32 - (n)))

/* A quarter of each of four quarter rounds (RFC 8439 §2.1): x += y, z = (z ^ x) rotated, where
 * x[i] meets y[(i + j) mod 4] and z[(i + k) mod 4]. */
#define CHACHA20_QUARTERS(x, y, j, z, k, n)                                                        \
    do {                                                                                           \
        (x)[0] += (y)[(0 + (j)) & 3];                                                              \
        (x)[1] += (y)[(1 + (j)) & 3];                                                              \
        (x)[2] += (y)[(2 + (j)) & 3];                                                              \
        (x)[3] += (y)[(3 + (j)) & 3];                                                              \
        (z)[(0 + (k)) & 3] ^= (x)[0];                                                              \
        (z)[(1 + (k)) & 3] ^= (x)[1];                                                              \
        (z)[(2 + (k)) & 3] ^= (x)[2];                                                              \
        (z)[(3 + (k)) & 3] ^= (x)[3];                                                              \
        (z)[0] = CHACHA20_ROTATE((z)[0], n);                                                       \
        (z)[1] = CHACHA20_ROTATE((z)[1], n);                                                       \
        (z)[2] = CHACHA20_ROTATE((z)[2], n);                                                       \
        (z)[3] = CHACHA20_ROTATE((z)[3], n);                                                       \
    } while (0)

/* Four quarter rounds side by side on the columns (k = 0) or the diagonals (k = 1): a[i], b[i + k],
 * c[i + 2 k] and d[i + 3 k]. */
AVX512_INLINE void chacha20_round(struct chacha20 *x, const int k)
{
    CHACHA20_QUARTERS(x->a, x->b, k, x->d, 3 * k, 16);
    CHACHA20_QUARTERS(x->c, x->d, k, x->b, 3 * k, 12);
    CHACHA20_QUARTERS(x->a, x->b, k, x->d, 3 * k, 8);
    CHACHA20_QUARTERS(x->c, x->d, k, x->b, 3 * k, 7);
}

AVX512_INLINE void chacha20_double_round(struct chacha20 *x)
{
    chacha20_round(x, 0);
    chacha20_round(x, 1);
}

AVX512_INLINE vector_u64 chacha20_unpack_low(chacha20_vector a, chacha20_vector b)
{
    return (vector_u64)__builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12,
                                               28, 13, 29);
}

AVX512_INLINE vector_u64 chacha20_unpack_high(chacha20_vector a, chacha20_vector b)
{
    return (vector_u64)__builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14,
                                               30, 15, 31);
}

/* Four words of each lane: those of lanes j, 4 + j, 8 + j and 12 + j together in to[j]. */
AVX512_INLINE void chacha20_gather(chacha20_vector w0, chacha20_vector w1, chacha20_vector w2,
                                   chacha20_vector w3, vector_u64 to[4])
{
    const vector_u64 low_0 = chacha20_unpack_low(w0, w1), high_0 = chacha20_unpack_high(w0, w1);
    const vector_u64 low_1 = chacha20_unpack_low(w2, w3), high_1 = chacha20_unpack_high(w2, w3);
    to[0] = vector_even(low_0, low_1);
    to[1] = vector_odd(low_0, low_1);
    to[2] = vector_even(high_0, high_1);
    to[3] = vector_odd(high_0, high_1);
}

/* Adds the initial state, which is cheaper made again than kept, and stores the blocks. */
AVX512_INLINE void chacha20_finish(const struct chacha20 *x, const uint8_t key[32],
                                   const struct chacha20_lanes *lanes,
                                   uint8_t (*blocks)[CHACHA20_BLOCK])
{
    const struct chacha20 y = chacha20_initial(key, lanes);
    vector_u64 quarters[4][4]; /* [i][j]: words 4 i to 4 i + 3 of lanes j, 4 + j, 8 + j, 12 + j */
    chacha20_gather(x->a[0] + y.a[0], x->a[1] + y.a[1], x->a[2] + y.a[2], x->a[3] + y.a[3],
                    quarters[0]);
    chacha20_gather(x->b[0] + y.b[0], x->b[1] + y.b[1], x->b[2] + y.b[2], x->b[3] + y.b[3],
                    quarters[1]);
    chacha20_gather(x->c[0] + y.c[0], x->c[1] + y.c[1], x->c[2] + y.c[2], x->c[3] + y.c[3],
                    quarters[2]);
    chacha20_gather(x->d[0] + y.d[0], x->d[1], x->d[2] + y.d[2], x->d[3] + y.d[3], quarters[3]);
    for (int j = 0; j < 4; j++) {
        vector_u64 rows[4];
        vector_transpose_quarters(quarters[0][j], quarters[1][j], quarters[2][j], quarters[3][j],
                                  rows);
        for (int i = 0; i < 4; i++)
            vector_store(blocks[4 * i + j], rows[i]);
    }
}

#endif
