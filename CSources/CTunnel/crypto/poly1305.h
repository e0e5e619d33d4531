/* SPDX-License-Identifier: Apache-2.0 */
/* What the implementations of Poly1305 (RFC 8439 §2.5) share: its constants and its last sum. */
#ifndef CTUNNEL_POLY1305_H
#define CTUNNEL_POLY1305_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define POLY1305_BLOCK 16

/* The bits that r may have (§2.5.1), lower word and upper. */
#define POLY1305_CLAMP_0 0x0ffffffc0fffffff
#define POLY1305_CLAMP_1 0x0ffffffc0ffffffc

static inline __attribute__((always_inline)) uint64_t poly1305_load(const uint8_t *bytes)
{
    uint64_t word; /* the machine is little-endian */
    memcpy(&word, bytes, 8);
    return word;
}

/* (h mod p) + s mod 2^128; h in words of 64 bits, less than 2 p. */
static inline __attribute__((always_inline)) void poly1305_tag(const uint64_t h[3],
                                                               const uint64_t s[2], uint64_t tag[2])
{
    typedef unsigned __int128 u128;
    /* h + 5 reaches 2^130 exactly where h >= p; then its low bits are h - p. */
    const u128 g0 = (u128)h[0] + 5;
    const u128 g1 = (u128)h[1] + (uint64_t)(g0 >> 64);
    const uint64_t g2 = h[2] + (uint64_t)(g1 >> 64);
    const uint64_t take = (uint64_t)0 - (g2 >> 2); /* g2 >> 2 is 0 or 1 */
    const uint64_t h0 = (h[0] & ~take) | ((uint64_t)g0 & take);
    const uint64_t h1 = (h[1] & ~take) | ((uint64_t)g1 & take);

    const u128 t0 = (u128)h0 + s[0];
    tag[0] = (uint64_t)t0;
    tag[1] = h1 + s[1] + (uint64_t)(t0 >> 64);
}

#endif
