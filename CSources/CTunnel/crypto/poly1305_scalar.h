/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Poly1305 (RFC 8439 §2.5) in 64-bit limbs: h = h0 + 2^64 h1 + 2^128 h2, with h2 a few bits. It
 * uses integer units only, so it costs next to nothing beside code that keeps the vector units
 * busy. In this construction every block is a full one (RFC 8439 §2.8 pads to 16).
 */
#ifndef CTUNNEL_POLY1305_SCALAR_H
#define CTUNNEL_POLY1305_SCALAR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define POLY1305_BLOCK 16

/* Compiled for mulx, which leaves the carry flag alone, unless the file that includes this defines
 * POLY1305_PORTABLE. */
#ifdef POLY1305_PORTABLE
#define POLY1305_INLINE __attribute__((always_inline)) static inline
#else
#define POLY1305_INLINE                                                                            \
    __attribute__((target("avx2,bmi2"))) __attribute__((always_inline)) static inline
#endif

/* A one-time key (RFC 8439 §2.5.1), r clamped. */
struct poly1305_key {
    uint64_t r0, r1;
    uint64_t
        r1_5; /* 5/4 r1: what r1 2^64 · 2^64 is modulo p, as clamping makes r1 a multiple of 4 */
    uint64_t s0, s1;
};

struct poly1305 {
    uint64_t h0, h1, h2;
};

POLY1305_INLINE uint64_t poly1305_load(const uint8_t *bytes)
{
    uint64_t word; /* the machine is little-endian */
    memcpy(&word, bytes, 8);
    return word;
}

/* `bytes` is r | s (RFC 8439 §2.5.1, where the clamp is too). */
POLY1305_INLINE struct poly1305_key poly1305_load_key(const uint8_t bytes[32])
{
    struct poly1305_key key = {
        .r0 = poly1305_load(bytes) & 0x0ffffffc0fffffff,
        .r1 = poly1305_load(bytes + 8) & 0x0ffffffc0ffffffc,
        .s0 = poly1305_load(bytes + 16),
        .s1 = poly1305_load(bytes + 24),
    };
    key.r1_5 = key.r1 + (key.r1 >> 2);
    return key;
}

/* h += 2^128 + m. */
POLY1305_INLINE void poly1305_add(struct poly1305 *p, const uint8_t block[POLY1305_BLOCK])
{
    typedef unsigned __int128 u128;
    const u128 h0 = (u128)p->h0 + poly1305_load(block);
    const u128 h1 = (u128)p->h1 + poly1305_load(block + 8) + (uint64_t)(h0 >> 64);
    p->h0 = (uint64_t)h0;
    p->h1 = (uint64_t)h1;
    p->h2 += 1 + (uint64_t)(h1 >> 64);
}

/*
 * h = h r + m + 2^128 pad, partially reduced: the next block is added while the reduction of this
 * one is under way, which shortens the path from one product to the next. `m` is zero and `pad` 0
 * where there is none; then h2 <= 4 afterwards.
 *
 *   d0 = h0 r0 + h1 r1_5
 *   d1 = h0 r1 + h1 r0 + h2 r1_5 + (d0 >> 64)
 *   d2 = h2 r0 + (d1 >> 64)
 *
 * With r0, r1 < 2^60 and h2 < 8 no sum overflows, and products with h2 fit a word. 2^130 = 5, so
 * what of d2 is above its two lowest bits goes to the bottom times 5/4 2^2: its multiple of four
 * and its quarter.
 */
#ifdef POLY1305_PORTABLE
POLY1305_INLINE void poly1305_multiply(struct poly1305 *p, const struct poly1305_key *key,
                                       const uint8_t m[POLY1305_BLOCK], uint64_t pad)
{
    typedef unsigned __int128 u128;
    const u128 d0 = (u128)p->h0 * key->r0 + (u128)p->h1 * key->r1_5;
    const u128 d1 =
        (u128)p->h0 * key->r1 + (u128)p->h1 * key->r0 + p->h2 * key->r1_5 + (uint64_t)(d0 >> 64);
    const uint64_t d2 = p->h2 * key->r0 + (uint64_t)(d1 >> 64);
    const u128 h0 = (u128)(uint64_t)d0 + poly1305_load(m) + ((d2 & ~(uint64_t)3) + (d2 >> 2));
    const u128 h1 = (u128)(uint64_t)d1 + poly1305_load(m + 8) + (uint64_t)(h0 >> 64);
    p->h0 = (uint64_t)h0;
    p->h1 = (uint64_t)h1;
    p->h2 = (d2 & 3) + pad + (uint64_t)(h1 >> 64);
}
#else
/* In assembly: neither compiler keeps the carries in the flags, and gcc 12 takes twice the time. */
POLY1305_INLINE void poly1305_multiply(struct poly1305 *p, const struct poly1305_key *key,
                                       const uint8_t m[POLY1305_BLOCK], uint64_t pad)
{
    uint64_t d0, d1, e1, t, u, rdx;
    __asm__("mov %[h0], %%rdx\n\t"
            "mulx %[r0], %[h0], %[d0]\n\t"
            "mulx %[r1], %[d1], %[e1]\n\t"
            "mov %[h1], %%rdx\n\t"
            "mulx %[r1_5], %[t], %[u]\n\t"
            "add %[t], %[h0]\n\t"
            "adc %[u], %[d0]\n\t"
            "mulx %[r0], %[h1], %[t]\n\t"
            "add %[d1], %[h1]\n\t"
            "adc %[t], %[e1]\n\t"
            "mov %[h2], %[t]\n\t"
            "imul %[r1_5], %[t]\n\t"
            "imul %[r0], %[h2]\n\t"
            "add %[t], %[d0]\n\t"
            "add %[d0], %[h1]\n\t"
            "adc %[e1], %[h2]\n\t" /* d2 */
            "mov %[h2], %[t]\n\t"
            "mov %[h2], %[u]\n\t"
            "and $-4, %[t]\n\t"
            "shr $2, %[u]\n\t"
            "and $3, %[h2]\n\t"
            "add %[u], %[t]\n\t"
            "add %[m0], %[h0]\n\t"
            "adc %[m1], %[h1]\n\t"
            "adc %[pad], %[h2]\n\t"
            "add %[t], %[h0]\n\t"
            "adc $0, %[h1]\n\t"
            "adc $0, %[h2]\n\t"
            : [h0] "+&r"(p->h0), [h1] "+&r"(p->h1), [h2] "+&r"(p->h2), [d0] "=&r"(d0),
              [d1] "=&r"(d1), [e1] "=&r"(e1), [t] "=&r"(t), [u] "=&r"(u), "=&d"(rdx)
            : [r0] "m"(key->r0), [r1] "m"(key->r1), [r1_5] "m"(key->r1_5),
              [m0] "m"(*(const uint8_t(*)[8])m), [m1] "m"(*(const uint8_t(*)[8])(m + 8)),
              [pad] "rme"(pad)
            : "cc");
}
#endif

static const uint8_t poly1305_zero[POLY1305_BLOCK];

/* `count` blocks, one at least. */
POLY1305_INLINE void poly1305_blocks(struct poly1305 *p, const struct poly1305_key *key,
                                     const uint8_t *blocks, size_t count)
{
    poly1305_add(p, blocks);
    for (; count > 1; count--) {
        blocks += POLY1305_BLOCK;
        poly1305_multiply(p, key, blocks, 1);
    }
    poly1305_multiply(p, key, poly1305_zero, 0);
}

/* The tag: (h mod p) + s mod 2^128. */
POLY1305_INLINE void poly1305_finish(const struct poly1305 *p, const struct poly1305_key *key,
                                     uint64_t tag[2])
{
    typedef unsigned __int128 u128;
    /* h < 2 p. h + 5 reaches 2^130 exactly where h >= p; then its low bits are h - p. */
    const u128 g0 = (u128)p->h0 + 5;
    const u128 g1 = (u128)p->h1 + (uint64_t)(g0 >> 64);
    const uint64_t g2 = p->h2 + (uint64_t)(g1 >> 64);
    const uint64_t take = (uint64_t)0 - (g2 >> 2); /* g2 >> 2 is 0 or 1 */
    const uint64_t h0 = (p->h0 & ~take) | ((uint64_t)g0 & take);
    const uint64_t h1 = (p->h1 & ~take) | ((uint64_t)g1 & take);

    const u128 t0 = (u128)h0 + key->s0;
    tag[0] = (uint64_t)t0;
    tag[1] = h1 + key->s1 + (uint64_t)(t0 >> 64);
}

#endif
