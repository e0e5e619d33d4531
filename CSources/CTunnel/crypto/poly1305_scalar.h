/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Poly1305 (RFC 8439 §2.5) in 64-bit limbs: h = h0 + 2^64 h1 + 2^128 h2, with h2 a few bits. It
 * uses integer units only, so it costs next to nothing beside code that keeps the vector units
 * busy. In this construction every block is a full one (RFC 8439 §2.8 pads to 16).
 */
#ifndef CTUNNEL_POLY1305_SCALAR_H
#define CTUNNEL_POLY1305_SCALAR_H

#include "poly1305.h"

#define POLY1305_STEP POLY1305_BLOCK

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
    uint64_t s[2];
};

struct poly1305 {
    uint64_t h0, h1, h2;
};

/* Each block begins with r | s (RFC 8439 §2.6). */
POLY1305_INLINE void poly1305_load_keys(struct poly1305_key *keys, const uint8_t (*blocks)[64],
                                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        keys[i] = (struct poly1305_key){
            .r0 = poly1305_load(blocks[i]) & POLY1305_CLAMP_0,
            .r1 = poly1305_load(blocks[i] + 8) & POLY1305_CLAMP_1,
            .s = {poly1305_load(blocks[i] + 16), poly1305_load(blocks[i] + 24)},
        };
        keys[i].r1_5 = keys[i].r1 + (keys[i].r1 >> 2);
    }
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
POLY1305_INLINE void poly1305_steps(struct poly1305 *p, const struct poly1305_key *key,
                                    const uint8_t *blocks, size_t count)
{
    poly1305_add(p, blocks);
    for (; count > 1; count--) {
        blocks += POLY1305_BLOCK;
        poly1305_multiply(p, key, blocks, 1);
    }
    poly1305_multiply(p, key, poly1305_zero, 0);
}

/* The last `left` bytes of `length`, fewer than a block, the lengths (RFC 8439 §2.8; no associated
 * data) and the tag. */
POLY1305_INLINE void poly1305_end(struct poly1305 *p, const struct poly1305_key *key,
                                  const uint8_t *data, uint32_t left, uint32_t length,
                                  uint64_t tag[2])
{
    uint8_t last[2][POLY1305_BLOCK] = {0};
    if (left)
        memcpy(last[0], data, left);
    memcpy(last[1] + 8, &length, sizeof(length));
    if (left)
        poly1305_steps(p, key, last[0], 2);
    else
        poly1305_steps(p, key, last[1], 1);
    poly1305_tag((const uint64_t[3]){p->h0, p->h1, p->h2}, key->s, tag);
}

#endif
