// SPDX-License-Identifier: Apache-2.0
/*
 * The Internet checksum (RFC 1071), alone or fused with a copy.
 *
 * Sums are kept in memory order: 16-bit words are added as this machine loads them, which RFC 1071
 * §2(B) allows, and wider loads are equivalent because 2^16, 2^32 and 2^64 are all 1 modulo
 * 2^16 − 1 (§2(C)). Halves of 32 bits are accumulated in 64-bit lanes, so no carry is lost before
 * 2^32 additions; the sum of a packet stays far below 2^56 and callers may add small terms plainly.
 */
#include "offload.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Ones' complement addition: the carry out of the top comes back in at the bottom. */
static inline uint64_t add_with_carry(uint64_t a, uint64_t b)
{
    uint64_t sum = a + b;
    return sum + (sum < b);
}

/* The last 0–7 bytes; an odd byte is padded with zero on its right (RFC 1071 §1). */
static inline uint64_t add_tail(uint64_t sum, uint8_t *destination, const uint8_t *source,
                                size_t length)
{
    uint64_t word = 0;
    for (size_t i = 0; i < length; i++) {
        word |= (uint64_t)source[i] << (8 * i);
        if (destination != NULL)
            destination[i] = source[i];
    }
    return add_with_carry(sum, (word & UINT32_MAX) + (word >> 32));
}

/* ---- portable ------------------------------------------------------------------------------ */

/* `destination` is NULL or a constant argument, so each caller keeps only its own half. */
__attribute__((always_inline)) static inline uint64_t
sum_portable(uint64_t sum, uint8_t *destination, const uint8_t *source, size_t length)
{
    uint64_t low = 0, high = 0;
    size_t i = 0;

    for (; i + 8 <= length; i += 8) {
        uint64_t word;
        memcpy(&word, source + i, 8);
        if (destination != NULL)
            memcpy(destination + i, &word, 8);
        low += word & UINT32_MAX;
        high += word >> 32;
    }
    sum = add_with_carry(sum, add_with_carry(low, high));
    return add_tail(sum, destination != NULL ? destination + i : NULL, source + i, length - i);
}

static uint64_t add_portable(uint64_t sum, const void *data, size_t length)
{
    return sum_portable(sum, NULL, data, length);
}

static uint64_t copy_portable(uint64_t sum, void *destination, const void *source, size_t length)
{
    return sum_portable(sum, destination, source, length);
}

static bool always(void)
{
    return true;
}

/* ---- AVX2 ---------------------------------------------------------------------------------- */

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))

AVX2 __attribute__((always_inline)) static inline uint64_t
sum_avx2(uint64_t sum, uint8_t *destination, const uint8_t *source, size_t length)
{
    const __m256i low_half = _mm256_set1_epi64x(UINT32_MAX);
    __m256i low = _mm256_setzero_si256(), high = _mm256_setzero_si256();
    size_t i = 0;

    for (; i + 64 <= length; i += 64) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(source + i));
        __m256i b = _mm256_loadu_si256((const __m256i *)(source + i + 32));
        if (destination != NULL) {
            _mm256_storeu_si256((__m256i *)(destination + i), a);
            _mm256_storeu_si256((__m256i *)(destination + i + 32), b);
        }
        low = _mm256_add_epi64(
            low, _mm256_add_epi64(_mm256_and_si256(a, low_half), _mm256_and_si256(b, low_half)));
        high = _mm256_add_epi64(
            high, _mm256_add_epi64(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32)));
    }

    uint64_t lane[4];
    _mm256_storeu_si256((__m256i *)lane, _mm256_add_epi64(low, high));
    for (int j = 0; j < 4; j++)
        sum = add_with_carry(sum, lane[j]);
    return sum_portable(sum, destination != NULL ? destination + i : NULL, source + i, length - i);
}

AVX2 static uint64_t add_avx2(uint64_t sum, const void *data, size_t length)
{
    return sum_avx2(sum, NULL, data, length);
}

AVX2 static uint64_t copy_avx2(uint64_t sum, void *destination, const void *source, size_t length)
{
    return sum_avx2(sum, destination, source, length);
}

static bool has_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2");
}

#endif

/* ---- dispatch ------------------------------------------------------------------------------ */

const struct checksum_variant checksum_variants[] = {
#if defined(__x86_64__)
    {"avx2", has_avx2, add_avx2, copy_avx2},
#endif
    {"portable", always, add_portable, copy_portable},
};
const size_t checksum_variant_count = sizeof(checksum_variants) / sizeof(checksum_variants[0]);

static uint64_t (*chosen_add)(uint64_t, const void *, size_t) = add_portable;
static uint64_t (*chosen_copy)(uint64_t, void *, const void *, size_t) = copy_portable;

/* Before main, so no thread can see the pointers change. */
__attribute__((constructor)) static void choose_variant(void)
{
    const struct checksum_variant *variant = checksum_variants;
    while (!variant->supported())
        variant++;
    chosen_add = variant->add;
    chosen_copy = variant->copy;
}

uint64_t checksum_add(uint64_t sum, const void *data, size_t length)
{
    return length < 64 ? add_portable(sum, data, length) : chosen_add(sum, data, length);
}

uint64_t checksum_copy(uint64_t sum, void *destination, const void *source, size_t length)
{
    return length < 64 ? copy_portable(sum, destination, source, length)
                       : chosen_copy(sum, destination, source, length);
}

uint16_t checksum_fold(uint64_t sum)
{
    sum = (sum & UINT32_MAX) + (sum >> 32);
    sum = (sum & UINT32_MAX) + (sum >> 32);
    sum = (sum & UINT16_MAX) + (sum >> 16);
    sum = (sum & UINT16_MAX) + (sum >> 16);
    return (uint16_t)((sum & UINT16_MAX) + (sum >> 16));
}
