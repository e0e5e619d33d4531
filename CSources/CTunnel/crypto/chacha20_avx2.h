/* SPDX-License-Identifier: Apache-2.0 */
/* ChaCha20 (RFC 8439 §2.3), eight blocks side by side, as chacha20_lanes.h describes. */
#ifndef CTUNNEL_CHACHA20_AVX2_H
#define CTUNNEL_CHACHA20_AVX2_H

#include <immintrin.h>

/* Compiled for these whatever the flags; callers ask the processor first. Inlined always: a call
 * would pass the vectors through memory. */
#define AVX2        __attribute__((target("avx2,bmi2")))
#define AVX2_INLINE AVX2 __attribute__((always_inline)) static inline

#define CHACHA20_LANES  8
#define CHACHA20_INLINE AVX2_INLINE
#include "chacha20_lanes.h"

/*
 * State words 0–3, 4–7, 8–11 and 12–15, each in eight lanes. State and temporaries are more than
 * the sixteen registers, and compilers left alone keep the wrong ones in memory. A word c rests
 * longest between uses, so at any time only the two in use are in registers.
 */
struct chacha20 {
    chacha20_vector a[4], b[4], d[4];
    chacha20_vector c[2];    /* c0 and c1, or c2 and c3 */
    chacha20_vector *c_rest; /* all four; the other two are valid */
};

AVX2_INLINE void chacha20_initialise(struct chacha20 *x, const uint8_t key[32],
                                     const struct chacha20_lanes *lanes)
{
    static const uint32_t constants[4] = {CHACHA20_CONSTANTS};
    for (int i = 0; i < 4; i++) {
        x->a[i] = chacha20_same(constants[i]);
        x->b[i] = chacha20_key_word(key, i);
        x->c_rest[i] = chacha20_key_word(key, 4 + i);
    }
    x->c[0] = x->c_rest[0];
    x->c[1] = x->c_rest[1];
    x->d[0] = chacha20_lane_words(lanes->block);
    x->d[1] = chacha20_same(0);
    x->d[2] = chacha20_lane_words(lanes->counter_low);
    x->d[3] = chacha20_lane_words(lanes->counter_high);
}

/* Rotations by whole bytes: one shuffle instead of two shifts and an or. */
struct chacha20_patterns {
    _Alignas(32) uint8_t rotate_16[32], rotate_8[32];
};

static const struct chacha20_patterns chacha20_patterns = {
    {2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13,
     2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13},
    {3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14,
     3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14},
};

/* Two quarter rounds (RFC 8439 §2.1) side by side. In assembly because clang moves shuffles across
 * additions and splits them in two. */
AVX2_INLINE void chacha20_quarter_rounds(chacha20_vector *a0, chacha20_vector *b0,
                                         chacha20_vector *c0, chacha20_vector *d0,
                                         chacha20_vector *a1, chacha20_vector *b1,
                                         chacha20_vector *c1, chacha20_vector *d1)
{
    chacha20_vector t0, t1;
    __asm__(
        "vpaddd %[b0], %[a0], %[a0]\n\t"
        "vpaddd %[b1], %[a1], %[a1]\n\t"
        "vpxor %[a0], %[d0], %[d0]\n\t"
        "vpxor %[a1], %[d1], %[d1]\n\t"
        "vpshufb %[rotate_16], %[d0], %[d0]\n\t"
        "vpshufb %[rotate_16], %[d1], %[d1]\n\t"
        "vpaddd %[d0], %[c0], %[c0]\n\t"
        "vpaddd %[d1], %[c1], %[c1]\n\t"
        "vpxor %[c0], %[b0], %[b0]\n\t"
        "vpxor %[c1], %[b1], %[b1]\n\t"
        "vpslld $12, %[b0], %[t0]\n\t"
        "vpslld $12, %[b1], %[t1]\n\t"
        "vpsrld $20, %[b0], %[b0]\n\t"
        "vpsrld $20, %[b1], %[b1]\n\t"
        "vpor %[t0], %[b0], %[b0]\n\t"
        "vpor %[t1], %[b1], %[b1]\n\t"
        "vpaddd %[b0], %[a0], %[a0]\n\t"
        "vpaddd %[b1], %[a1], %[a1]\n\t"
        "vpxor %[a0], %[d0], %[d0]\n\t"
        "vpxor %[a1], %[d1], %[d1]\n\t"
        "vpshufb %[rotate_8], %[d0], %[d0]\n\t"
        "vpshufb %[rotate_8], %[d1], %[d1]\n\t"
        "vpaddd %[d0], %[c0], %[c0]\n\t"
        "vpaddd %[d1], %[c1], %[c1]\n\t"
        "vpxor %[c0], %[b0], %[b0]\n\t"
        "vpxor %[c1], %[b1], %[b1]\n\t"
        "vpslld $7, %[b0], %[t0]\n\t"
        "vpslld $7, %[b1], %[t1]\n\t"
        "vpsrld $25, %[b0], %[b0]\n\t"
        "vpsrld $25, %[b1], %[b1]\n\t"
        "vpor %[t0], %[b0], %[b0]\n\t"
        "vpor %[t1], %[b1], %[b1]\n\t"
        : [a0] "+x"(*a0), [a1] "+x"(*a1), [b0] "+x"(*b0), [b1] "+x"(*b1), [c0] "+x"(*c0),
          [c1] "+x"(*c1), [d0] "+x"(*d0), [d1] "+x"(*d1), [t0] "=&x"(t0), [t1] "=&x"(t1)
        : [rotate_16] "m"(chacha20_patterns.rotate_16), [rotate_8] "m"(chacha20_patterns.rotate_8));
}

/* Two c go to rest and the other two come. In assembly, as what rests would be chosen anew. */
AVX2_INLINE void chacha20_swap_c(struct chacha20 *x, int going, int coming)
{
    __asm__("vmovdqa %1, %0" : "=m"(x->c_rest[going]) : "x"(x->c[0]));
    __asm__("vmovdqa %1, %0" : "=m"(x->c_rest[going + 1]) : "x"(x->c[1]));
    __asm__("vmovdqa %1, %0" : "=x"(x->c[0]) : "m"(x->c_rest[coming]));
    __asm__("vmovdqa %1, %0" : "=x"(x->c[1]) : "m"(x->c_rest[coming + 1]));
}

/* A column round is halves 0 and 1, a diagonal one halves 2 and 3, each of two quarter rounds. */
AVX2_INLINE void chacha20_half(struct chacha20 *x, int half)
{
    const int k = half >> 1, i = 2 * (half & 1), j = i + 1;
    if (half == 1)
        chacha20_swap_c(x, 0, 2);
    if (half == 3)
        chacha20_swap_c(x, 2, 0);
    chacha20_quarter_rounds(&x->a[i], &x->b[(i + k) & 3], &x->c[0], &x->d[(i + 3 * k) & 3],
                            &x->a[j], &x->b[(j + k) & 3], &x->c[1], &x->d[(j + 3 * k) & 3]);
}

/* Half of eight blocks: words w0–w3 and x0–x3 of all lanes, to where the blocks have them. */
AVX2_INLINE void chacha20_transpose(const chacha20_vector w[4], const chacha20_vector x[4],
                                    uint8_t (*blocks)[CHACHA20_BLOCK], int offset)
{
    __m256i quads[8]; /* four words of lane i and of lane i + 4 */
    for (int i = 0; i < 2; i++) {
        const chacha20_vector *v = i ? x : w;
        const __m256i low_0 = _mm256_unpacklo_epi32((__m256i)v[0], (__m256i)v[1]);
        const __m256i high_0 = _mm256_unpackhi_epi32((__m256i)v[0], (__m256i)v[1]);
        const __m256i low_1 = _mm256_unpacklo_epi32((__m256i)v[2], (__m256i)v[3]);
        const __m256i high_1 = _mm256_unpackhi_epi32((__m256i)v[2], (__m256i)v[3]);
        quads[4 * i] = _mm256_unpacklo_epi64(low_0, low_1);
        quads[4 * i + 1] = _mm256_unpackhi_epi64(low_0, low_1);
        quads[4 * i + 2] = _mm256_unpacklo_epi64(high_0, high_1);
        quads[4 * i + 3] = _mm256_unpackhi_epi64(high_0, high_1);
    }
    for (int i = 0; i < 4; i++) {
        _mm256_store_si256((__m256i *)(blocks[i] + offset),
                           _mm256_permute2x128_si256(quads[i], quads[4 + i], 0x20));
        _mm256_store_si256((__m256i *)(blocks[4 + i] + offset),
                           _mm256_permute2x128_si256(quads[i], quads[4 + i], 0x31));
    }
}

/* Adds the initial state, which is cheaper read again than kept, and stores the eight blocks. */
AVX2_INLINE void chacha20_finish(struct chacha20 *x, const uint8_t key[32],
                                 const struct chacha20_lanes *lanes,
                                 uint8_t (*blocks)[CHACHA20_BLOCK])
{
    static const uint32_t constants[4] = {CHACHA20_CONSTANTS};
    for (int i = 0; i < 4; i++) {
        x->a[i] += chacha20_same(constants[i]);
        x->b[i] += chacha20_key_word(key, i);
    }
    chacha20_transpose(x->a, x->b, blocks, 0);
    const chacha20_vector c[4] = {
        x->c[0] + chacha20_key_word(key, 4), x->c[1] + chacha20_key_word(key, 5),
        x->c_rest[2] + chacha20_key_word(key, 6), x->c_rest[3] + chacha20_key_word(key, 7)};
    x->d[0] += chacha20_lane_words(lanes->block);
    x->d[2] += chacha20_lane_words(lanes->counter_low);
    x->d[3] += chacha20_lane_words(lanes->counter_high);
    chacha20_transpose(c, x->d, blocks, 32);
}

#endif
