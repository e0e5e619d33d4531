/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many inputs of the engine from one of libFuzzer's: a record stands for itself and for hundreds of
 * damaged copies, each the same in every run. And how many there were, printed at the end of a run
 * for tools/fuzz to add up.
 */
#ifndef FUZZ_VARIANTS_H
#define FUZZ_VARIANTS_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIANT_GROWTH 64 /* a copy may be this much longer */

/* ---- counting ------------------------------------------------------------------------------ */

static const char *counted_noun;
static uint64_t counted;

static void print_counted(void)
{
    printf("fuzz: %" PRIu64 " %s\n", counted, counted_noun);
}

/* libFuzzer leaves through exit(), except after a crash. */
static inline void count_input(const char *noun, uint64_t more)
{
    if (!counted_noun) {
        counted_noun = noun;
        atexit(print_counted);
    }
    counted += more;
}

/* ---- damage -------------------------------------------------------------------------------- */

/* xorshift64*: S. Vigna, ACM TOMS 42(4), 2016. */
static inline uint64_t variant_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717ull;
}

/* From the record's bytes alone (FNV-1a, 64 bits), so that a found input fails again. */
static inline uint64_t variant_seed(const uint8_t *bytes, size_t length)
{
    uint64_t hash = 14695981039346656037ull;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ bytes[i]) * 1099511628211ull;
    return hash | 1;
}

/* Where parsers decide: mostly in the headers. */
static inline size_t variant_place(uint64_t *state, size_t length)
{
    uint64_t r = variant_random(state);
    size_t within = (r & 3) && length > 64 ? 64 : length;
    return (size_t)(r >> 8) % within;
}

static inline void variant_edit(uint64_t *state, uint8_t *bytes, size_t length)
{
    static const uint8_t edges[] = {0, 1, 2, 4, 5, 6, 17, 0x3f, 0x40, 0x45, 0x60, 0x7f, 0x80, 0xff};
    uint64_t r = variant_random(state);
    size_t at = variant_place(state, length);
    switch (r % 5) {
    case 0:
        bytes[at] ^= (uint8_t)(1u << (r >> 8 & 7));
        break;
    case 1:
        bytes[at] = edges[(r >> 8) % sizeof edges];
        break;
    case 2:
        bytes[at] = (uint8_t)(bytes[at] + (r >> 8 & 15) - 8);
        break;
    case 3:
        bytes[at] = (uint8_t)(r >> 8);
        break;
    default:
        for (size_t i = at; i < length && i < at + 4; i++)
            bytes[i] = (uint8_t)(r >> (8 + 8 * (i - at)));
    }
}

/* Damages `bytes`, in which there is room for VARIANT_GROWTH more. Returns the new length. */
static inline size_t variant_make(uint64_t *state, uint8_t *bytes, size_t length)
{
    uint64_t r = variant_random(state);
    if ((r & 7) == 0) {
        length = (size_t)(r >> 8) % (length + 1);
    } else if ((r & 7) == 1) {
        size_t more = (size_t)(r >> 8) % (VARIANT_GROWTH + 1);
        memset(bytes + length, (int)(r >> 24 & 0xff), more);
        length += more;
    }
    for (unsigned edits = (unsigned)(r >> 4 & 3); length && edits; edits--)
        variant_edit(state, bytes, length);
    return length;
}

#endif
