/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of 512 bits in the compiler's own notation, and as functions the few AVX-512 instructions
 * that have none there. With AVX512_EMULATED those are loops written after the instructions'
 * description (Intel SDM volume 2, VPMADD52LUQ, VPMADD52HUQ, VPERMQ and VMOVDQU8 with a mask), and
 * what is built on them runs on any machine: for tests.
 */
#ifndef CTUNNEL_AVX512_H
#define CTUNNEL_AVX512_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Compiled for these whatever the flags; callers ask the processor first. Inlined always: a call
 * would pass the vectors through memory. */
#ifdef AVX512_EMULATED
#define AVX512
#pragma GCC diagnostic ignored "-Wpsabi" /* nothing that is inlined has an ABI */
#else
#include <immintrin.h>
#ifdef __clang__ /* or it may split vectors for processors whose clock suffered from wide ones */
#define AVX512_WIDE __attribute__((min_vector_width(512)))
#else
#define AVX512_WIDE
#endif
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512ifma,avx2,bmi2"))) AVX512_WIDE
#endif
#define AVX512_INLINE AVX512 __attribute__((always_inline)) static inline

typedef uint32_t vector_u32 __attribute__((vector_size(64)));
typedef uint64_t vector_u64 __attribute__((vector_size(64)));

#define VECTOR_SIZE 64
#define VECTOR_U64  8 /* lanes of a vector_u64 */

/* For addresses of any alignment. */
AVX512_INLINE vector_u64 vector_load(const void *from)
{
    vector_u64 vector;
    memcpy(&vector, from, sizeof(vector));
    return vector;
}

AVX512_INLINE void vector_store(void *to, vector_u64 vector)
{
    memcpy(to, &vector, sizeof(vector));
}

AVX512_INLINE vector_u64 vector_same(uint64_t word)
{
    return (vector_u64){0} + word;
}

/* ---- what has no notation ----------------------------------------------------------------------
 */

#ifdef AVX512_EMULATED

#define WORD_52 (((uint64_t)1 << 52) - 1)

AVX512_INLINE vector_u64 vector_add_low_52(vector_u64 sum, vector_u64 a, vector_u64 b)
{
    for (int i = 0; i < VECTOR_U64; i++) {
        const unsigned __int128 product = (unsigned __int128)(a[i] & WORD_52) * (b[i] & WORD_52);
        sum[i] += (uint64_t)product & WORD_52;
    }
    return sum;
}

AVX512_INLINE vector_u64 vector_add_high_52(vector_u64 sum, vector_u64 a, vector_u64 b)
{
    for (int i = 0; i < VECTOR_U64; i++) {
        const unsigned __int128 product = (unsigned __int128)(a[i] & WORD_52) * (b[i] & WORD_52);
        sum[i] += (uint64_t)(product >> 52);
    }
    return sum;
}

AVX512_INLINE vector_u64 vector_permute(vector_u64 vector, vector_u64 index)
{
    vector_u64 result;
    for (int i = 0; i < VECTOR_U64; i++)
        result[i] = vector[index[i] & (VECTOR_U64 - 1)];
    return result;
}

AVX512_INLINE vector_u64 vector_load_bytes(const uint8_t *from, size_t count)
{
    vector_u64 vector = {0};
    memcpy(&vector, from, count < VECTOR_SIZE ? count : VECTOR_SIZE);
    return vector;
}

AVX512_INLINE void vector_store_bytes(uint8_t *to, size_t count, vector_u64 vector)
{
    memcpy(to, &vector, count < VECTOR_SIZE ? count : VECTOR_SIZE);
}

#else

/* sum + the lowest 52 bits of a b, of whose lanes the lowest 52 count. */
AVX512_INLINE vector_u64 vector_add_low_52(vector_u64 sum, vector_u64 a, vector_u64 b)
{
    return (vector_u64)_mm512_madd52lo_epu64((__m512i)sum, (__m512i)a, (__m512i)b);
}

/* sum + the 52 bits above those. */
AVX512_INLINE vector_u64 vector_add_high_52(vector_u64 sum, vector_u64 a, vector_u64 b)
{
    return (vector_u64)_mm512_madd52hi_epu64((__m512i)sum, (__m512i)a, (__m512i)b);
}

/* Lane i of the result is lane index[i]. */
AVX512_INLINE vector_u64 vector_permute(vector_u64 vector, vector_u64 index)
{
    return (vector_u64)_mm512_permutexvar_epi64((__m512i)index, (__m512i)vector);
}

/* The first `count` bytes, all where there are more; the rest is zero and not read. */
AVX512_INLINE vector_u64 vector_load_bytes(const uint8_t *from, size_t count)
{
    const __mmask64 mask = _bzhi_u64(~(uint64_t)0, count < 64 ? (unsigned)count : 64);
    return (vector_u64)_mm512_maskz_loadu_epi8(mask, from);
}

/* The same bytes; the rest is not written. */
AVX512_INLINE void vector_store_bytes(uint8_t *to, size_t count, vector_u64 vector)
{
    const __mmask64 mask = _bzhi_u64(~(uint64_t)0, count < 64 ? (unsigned)count : 64);
    _mm512_mask_storeu_epi8(to, mask, (__m512i)vector);
}

#endif

/* ---- transposing -------------------------------------------------------------------------------
 */

/* Quarter i of q0, q1, q2 and q3 becomes row i. */
AVX512_INLINE void vector_transpose_quarters(vector_u64 q0, vector_u64 q1, vector_u64 q2,
                                             vector_u64 q3, vector_u64 rows[4])
{
    const vector_u64 low_0 = __builtin_shufflevector(q0, q1, 0, 1, 2, 3, 8, 9, 10, 11);
    const vector_u64 low_1 = __builtin_shufflevector(q2, q3, 0, 1, 2, 3, 8, 9, 10, 11);
    const vector_u64 high_0 = __builtin_shufflevector(q0, q1, 4, 5, 6, 7, 12, 13, 14, 15);
    const vector_u64 high_1 = __builtin_shufflevector(q2, q3, 4, 5, 6, 7, 12, 13, 14, 15);
    rows[0] = __builtin_shufflevector(low_0, low_1, 0, 1, 4, 5, 8, 9, 12, 13);
    rows[1] = __builtin_shufflevector(low_0, low_1, 2, 3, 6, 7, 10, 11, 14, 15);
    rows[2] = __builtin_shufflevector(high_0, high_1, 0, 1, 4, 5, 8, 9, 12, 13);
    rows[3] = __builtin_shufflevector(high_0, high_1, 2, 3, 6, 7, 10, 11, 14, 15);
}

/* The even lanes of a and b in turn. */
AVX512_INLINE vector_u64 vector_even(vector_u64 a, vector_u64 b)
{
    return __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
}

/* The odd ones. */
AVX512_INLINE vector_u64 vector_odd(vector_u64 a, vector_u64 b)
{
    return __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
}

#endif
