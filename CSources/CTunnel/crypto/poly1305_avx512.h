/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Poly1305 (RFC 8439 §2.5) with AVX-512 IFMA: eight blocks of one packet side by side, limbs of 44,
 * 44 and 42 bits. Lane j has blocks j, j + 8, j + 16 … and goes on with r^8; at the end each lane
 * takes the power of r that its last block is away from the end, and the sum of all is h (Goll and
 * Gueron, "Vectorization of Poly1305 Message Authentication Code", 2015, for the method).
 *
 * Why so, in instructions on vectors: a step is 19 multiplications, 15 that add their halves where
 * they belong and carry, and 8 that bring eight blocks into limbs, 42 for 128 bytes. The powers r
 * to r^8 of eight packets are made side by side, a packet to a lane, and transposed: 7 products and
 * 72 shuffles, some 45 for a packet. The end takes two products more and joins the lanes, some 130.
 * So 1,424 bytes take 640, in 13 steps that wait for each other.
 *
 * The other way, a packet to a lane, needs no powers, and its end costs an eighth. But each step
 * collects its blocks from eight places, which makes 48 of 42, and 90 steps of eight packets are
 * still 540 for each, if there are eight of one length. A batch may be one packet, whose 90 steps
 * would wait for each other. That way wins where many packets are small, 40 against 170 at 64
 * bytes, of some 630 instructions in all.
 *
 * Integer units (poly1305_scalar.h) take a block in some 12 cycles and each waits for the last: 64
 * of them last longer than the 960 instructions of sixteen ChaCha20 blocks with the 340 of these
 * steps among them, at two to a cycle.
 */
#ifndef CTUNNEL_POLY1305_AVX512_H
#define CTUNNEL_POLY1305_AVX512_H

#include "avx512.h"
#include "poly1305.h"
#include <stdbool.h>

#define POLY1305_LANES 8
#define POLY1305_STEP  (POLY1305_LANES * POLY1305_BLOCK)

#define POLY1305_44  (((uint64_t)1 << 44) - 1)
#define POLY1305_42  (((uint64_t)1 << 42) - 1)
#define POLY1305_PAD ((uint64_t)1 << 40) /* 2^128, in the third limb */

/* Three limbs of eight numbers. */
struct poly1305_limbs {
    vector_u64 limb[3];
};

/* A one-time key (RFC 8439 §2.5.1). */
struct poly1305_key {
    _Alignas(64) uint64_t powers[3][POLY1305_LANES]; /* limbs of r^1 to r^8 */
    uint64_t r8_20[2];                               /* 20 times the upper limbs of r^8 */
    uint64_t s[2];
};

/* Each lane's sum, with its last block in it: it is multiplied before the next is added. */
struct poly1305 {
    struct poly1305_limbs h;
};

AVX512_INLINE vector_u64 poly1305_times_20(vector_u64 limb)
{
    return vector_add_low_52((vector_u64){0}, limb, vector_same(20));
}

/*
 * h r + m in each lane. r20 is 20 times the two upper limbs of r: 2^132 = 20 modulo 2^130 - 5.
 *
 * A product of limbs i and j has its low 52 bits at 2^(44 (i + j)) and its high bits 2^8 above the
 * next limb. With h0 < 2^45 and the others within their bits (which holds for what this returns), r
 * the same, and m < 2^45, a sum of low parts is below 2^54 and one of high parts below 2^41; the
 * highest is below 2^37, so 20 · 2^8 times it has no more than 52 bits. What the top carries is
 * below 2^12.
 */
AVX512_INLINE struct poly1305_limbs poly1305_multiply(const struct poly1305_limbs *h,
                                                      const struct poly1305_limbs *r,
                                                      const vector_u64 r20[2],
                                                      const struct poly1305_limbs *m)
{
    const vector_u64 h0 = h->limb[0], h1 = h->limb[1], h2 = h->limb[2];
    const vector_u64 r0 = r->limb[0], r1 = r->limb[1], r2 = r->limb[2];
    vector_u64 low0 = m->limb[0], low1 = m->limb[1], low2 = m->limb[2];
    vector_u64 high0 = {0}, high1 = {0}, high2 = {0};

    low0 = vector_add_low_52(low0, h0, r0);
    high0 = vector_add_high_52(high0, h0, r0);
    low1 = vector_add_low_52(low1, h0, r1);
    high1 = vector_add_high_52(high1, h0, r1);
    low2 = vector_add_low_52(low2, h0, r2);
    high2 = vector_add_high_52(high2, h0, r2);
    low0 = vector_add_low_52(low0, h1, r20[1]);
    high0 = vector_add_high_52(high0, h1, r20[1]);
    low1 = vector_add_low_52(low1, h1, r0);
    high1 = vector_add_high_52(high1, h1, r0);
    low2 = vector_add_low_52(low2, h1, r1);
    high2 = vector_add_high_52(high2, h1, r1);
    low0 = vector_add_low_52(low0, h2, r20[0]);
    high0 = vector_add_high_52(high0, h2, r20[0]);
    low1 = vector_add_low_52(low1, h2, r20[1]);
    high1 = vector_add_high_52(high1, h2, r20[1]);
    low2 = vector_add_low_52(low2, h2, r0);
    high2 = vector_add_high_52(high2, h2, r0);

    low0 = vector_add_low_52(low0, high2, vector_same(20 << 8));
    low1 += (high0 << 8) + (low0 >> 44);
    low2 += (high1 << 8) + (low1 >> 44);
    const vector_u64 top = low2 >> 42; /* at 2^130 = 5 */
    return (struct poly1305_limbs){
        {(low0 & POLY1305_44) + (top << 2) + top, low1 & POLY1305_44, low2 & POLY1305_42}};
}

AVX512_INLINE struct poly1305_limbs poly1305_split(vector_u64 low, vector_u64 high)
{
    return (struct poly1305_limbs){
        {low & POLY1305_44, (low >> 44 | high << 20) & POLY1305_44, high >> 24}};
}

/* ---- a key -------------------------------------------------------------------------------------
 */

/* Row i of the result has lane i of each row. */
AVX512_INLINE void poly1305_transpose(const vector_u64 rows[8], vector_u64 columns[8])
{
    vector_u64 even[4], odd[4];
    for (int i = 0; i < 4; i++) {
        even[i] = vector_even(rows[2 * i], rows[2 * i + 1]);
        odd[i] = vector_odd(rows[2 * i], rows[2 * i + 1]);
    }
    vector_u64 quarters[2][4];
    vector_transpose_quarters(even[0], even[1], even[2], even[3], quarters[0]);
    vector_transpose_quarters(odd[0], odd[1], odd[2], odd[3], quarters[1]);
    for (int i = 0; i < 8; i++)
        columns[i] = quarters[i & 1][i >> 1];
}

AVX512_INLINE void poly1305_power(struct poly1305_limbs powers[POLY1305_LANES + 1], int a, int b)
{
    static const struct poly1305_limbs nothing = {0};
    const vector_u64 r20[2] = {poly1305_times_20(powers[b].limb[1]),
                               poly1305_times_20(powers[b].limb[2])};
    powers[a + b] = poly1305_multiply(&powers[a], &powers[b], r20, &nothing);
}

/* Up to eight keys side by side, r in the lanes of `low` and `high`. */
AVX512 static void poly1305_set_powers(struct poly1305_key *keys, size_t count, vector_u64 low,
                                       vector_u64 high)
{
    struct poly1305_limbs powers[POLY1305_LANES + 1]; /* powers[i]: r^i of all the keys */
    powers[1] = poly1305_split(low & POLY1305_CLAMP_0, high & POLY1305_CLAMP_1);
    poly1305_power(powers, 1, 1);
    poly1305_power(powers, 2, 1);
    poly1305_power(powers, 2, 2);
    poly1305_power(powers, 1, 4);
    poly1305_power(powers, 2, 4);
    poly1305_power(powers, 3, 4);
    poly1305_power(powers, 4, 4);
    for (int limb = 0; limb < 3; limb++) {
        vector_u64 rows[8], columns[8];
        for (int i = 0; i < 8; i++)
            rows[i] = powers[1 + i].limb[limb];
        poly1305_transpose(rows, columns);
        for (size_t i = 0; i < 8; i++)
            if (i < count)
                vector_store(keys[i].powers[limb], columns[i]);
    }
    for (size_t i = 0; i < count; i++) {
        keys[i].r8_20[0] = 20 * keys[i].powers[1][POLY1305_LANES - 1];
        keys[i].r8_20[1] = 20 * keys[i].powers[2][POLY1305_LANES - 1];
    }
}

/* Each block begins with r | s (RFC 8439 §2.6). */
AVX512 static void poly1305_load_keys(struct poly1305_key *keys, const uint8_t (*blocks)[64],
                                      size_t count)
{
    while (count) {
        const size_t now = count < POLY1305_LANES ? count : POLY1305_LANES;
        vector_u64 low = {0}, high = {0};
        for (size_t i = 0; i < POLY1305_LANES; i++)
            if (i < now) {
                low[i] = poly1305_load(blocks[i]);
                high[i] = poly1305_load(blocks[i] + 8);
                memcpy(keys[i].s, blocks[i] + 16, sizeof(keys[i].s));
            }
        poly1305_set_powers(keys, now, low, high);
        keys += now;
        blocks += now;
        count -= now;
    }
}

/* ---- a message ---------------------------------------------------------------------------------
 */

/* r^8 in each lane, in the form that poly1305_multiply() takes. */
struct poly1305_factor {
    struct poly1305_limbs r;
    vector_u64 r20[2];
};

AVX512_INLINE struct poly1305_factor poly1305_factor(const struct poly1305_key *key)
{
    return (struct poly1305_factor){{{vector_same(key->powers[0][POLY1305_LANES - 1]),
                                      vector_same(key->powers[1][POLY1305_LANES - 1]),
                                      vector_same(key->powers[2][POLY1305_LANES - 1])}},
                                    {vector_same(key->r8_20[0]), vector_same(key->r8_20[1])}};
}

/* The first halves of eight blocks, and the second ones, to limbs. */
AVX512_INLINE struct poly1305_limbs poly1305_blocks(vector_u64 first, vector_u64 second)
{
    return poly1305_split(__builtin_shufflevector(first, second, 0, 2, 4, 6, 8, 10, 12, 14),
                          __builtin_shufflevector(first, second, 1, 3, 5, 7, 9, 11, 13, 15));
}

/* The next eight blocks. */
AVX512_INLINE void poly1305_step(struct poly1305 *p, const struct poly1305_factor *factor,
                                 const uint8_t *data)
{
    struct poly1305_limbs m = poly1305_blocks(vector_load(data), vector_load(data + VECTOR_SIZE));
    m.limb[2] |= POLY1305_PAD;
    p->h = poly1305_multiply(&p->h, &factor->r, factor->r20, &m);
}

/* `count` times that, once at least. */
AVX512_INLINE void poly1305_steps(struct poly1305 *p, const struct poly1305_key *key,
                                  const uint8_t *data, size_t count)
{
    const struct poly1305_factor factor = poly1305_factor(key);
    for (; count; count--) {
        poly1305_step(p, &factor, data);
        data += POLY1305_STEP;
    }
}

/* In lanes to `last` the block in `m`, before which there may be none; the others stay what they
 * are. */
AVX512_INLINE void poly1305_part_step(struct poly1305 *p, const struct poly1305_factor *factor,
                                      struct poly1305_limbs m, uint64_t last, bool first)
{
    const vector_u64 lanes = {0, 1, 2, 3, 4, 5, 6, 7};
    const vector_u64 taken = (vector_u64)(lanes <= last);
    m.limb[2] |= POLY1305_PAD;
    if (!first)
        m = poly1305_multiply(&p->h, &factor->r, factor->r20, &m);
    for (int i = 0; i < 3; i++)
        p->h.limb[i] = (m.limb[i] & taken) | (p->h.limb[i] & ~taken);
}

AVX512_INLINE uint64_t poly1305_sum(vector_u64 v)
{
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
    v += __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6);
    return v[0];
}

/* Sums of eight limbs to words of 64 bits, less than 2 p. */
AVX512_INLINE void poly1305_words(uint64_t h0, uint64_t h1, uint64_t h2, uint64_t words[3])
{
    h1 += h0 >> 44;
    h2 += h1 >> 44;
    h0 = (h0 & POLY1305_44) + 5 * (h2 >> 42);
    h1 = (h1 & POLY1305_44) + (h0 >> 44);
    h2 = (h2 & POLY1305_42) + (h1 >> 44);
    h0 &= POLY1305_44;
    h1 &= POLY1305_44;
    words[0] = h0 | h1 << 44;
    words[1] = h1 >> 20 | h2 << 24;
    words[2] = h2 >> 40;
}

/* Every lane to the end of the message, of which lane `last` has the last block; their sum. */
AVX512_INLINE void poly1305_join(const struct poly1305 *p, const struct poly1305_key *key,
                                 uint64_t last, uint64_t words[3])
{
    static const struct poly1305_limbs nothing = {0};
    const vector_u64 lanes = {0, 1, 2, 3, 4, 5, 6, 7};
    const vector_u64 index = (last - lanes) & (POLY1305_LANES - 1); /* of r^1 for the last */
    struct poly1305_limbs r;
    for (int i = 0; i < 3; i++)
        r.limb[i] = vector_permute(vector_load(key->powers[i]), index);
    const vector_u64 r20[2] = {poly1305_times_20(r.limb[1]), poly1305_times_20(r.limb[2])};
    const struct poly1305_limbs h = poly1305_multiply(&p->h, &r, r20, &nothing);
    poly1305_words(poly1305_sum(h.limb[0]), poly1305_sum(h.limb[1]), poly1305_sum(h.limb[2]),
                   words);
}

/* The last `left` bytes of `length`, fewer than a step, the lengths (RFC 8439 §2.8; no associated
 * data) and the tag. */
AVX512_INLINE void poly1305_end(struct poly1305 *p, const struct poly1305_key *key,
                                const uint8_t *data, uint32_t left, uint32_t length,
                                uint64_t tag[2])
{
    const struct poly1305_factor factor = poly1305_factor(key);
    const vector_u64 lanes = {0, 1, 2, 3, 4, 5, 6, 7};
    struct poly1305_limbs m = {0};
    uint64_t last = (left + POLY1305_BLOCK - 1) / POLY1305_BLOCK; /* the lengths' lane */
    bool first = left == length;
    uint64_t words[3];

    if (left)
        m = poly1305_blocks(
            vector_load_bytes(data, left),
            vector_load_bytes(data + VECTOR_SIZE, left > VECTOR_SIZE ? left - VECTOR_SIZE : 0));
    if (last == POLY1305_LANES) {
        poly1305_part_step(p, &factor, m, POLY1305_LANES - 1, first);
        m = (struct poly1305_limbs){0};
        last = 0;
        first = false;
    }
    const struct poly1305_limbs lengths = poly1305_split((vector_u64){0}, vector_same(length));
    const vector_u64 there = (vector_u64)(lanes == last);
    for (int i = 0; i < 3; i++)
        m.limb[i] |= lengths.limb[i] & there;
    poly1305_part_step(p, &factor, m, last, first);
    poly1305_join(p, key, last, words);
    poly1305_tag(words, key->s, tag);
}

#endif
