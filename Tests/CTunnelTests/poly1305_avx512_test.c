/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Poly1305 of the AVX-512 back-end, emulated, against libsodium: with keys and blocks that no
 * ChaCha20 would give in a lifetime, where carries run through all limbs and h comes close to p on
 * either side (as RFC 8439 A.3 #7 to #11).
 */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on
#define AVX512_EMULATED
#include "crypto/poly1305_avx512.h"

#include "poly1305_wycheproof.h"

#include <sodium.h>
#include <stdlib.h>

#define LONGEST 700
#define ROUNDS  20000

/* The key block of up to 17 packets, as ChaCha20 gives it. */
struct keys {
    uint8_t blocks[17][64];
    struct poly1305_key keys[17];
};

static void compute(const struct poly1305_key *key, const uint8_t *data, uint32_t length,
                    uint64_t tag[2])
{
    struct poly1305 poly = {0};
    const uint32_t steps = length / POLY1305_STEP;
    if (steps)
        poly1305_steps(&poly, key, data, steps);
    poly1305_end(&poly, key, data + steps * POLY1305_STEP, length % POLY1305_STEP, length, tag);
}

/* What is authenticated of a packet: its bytes, filled up to a block, and the lengths (§2.8). */
static void expect(const uint8_t block[64], const uint8_t *data, uint32_t length, uint8_t tag[16])
{
    uint8_t message[LONGEST + 32] = {0};
    const uint32_t padded = (length + 15) / 16 * 16;
    const uint64_t length_64 = length;
    memcpy(message, data, length);
    memcpy(message + padded + 8, &length_64, sizeof(length_64));
    crypto_onetimeauth_poly1305(tag, message, padded + 16, block);
}

static void check(const struct keys *keys, size_t i, const uint8_t *data, uint32_t length)
{
    uint64_t tag[2];
    uint8_t expected[16];
    compute(&keys->keys[i], data, length, tag);
    expect(keys->blocks[i], data, length, expected);
    assert_memory_equal(tag, expected, sizeof(expected));
}

static void load(struct keys *keys, size_t count)
{
    poly1305_load_keys(keys->keys, (const uint8_t(*)[64])keys->blocks, count);
}

/* Extremes of r: nothing, one, two, all bits it may have (clamped), its highest only. */
static const uint8_t extreme_r[][16] = {
    {0},
    {1},
    {2},
    {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff},
    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0f},
    {0, 0, 0, 0, 4},
};
#define EXTREMES (sizeof(extreme_r) / sizeof(extreme_r[0]))

static void extreme_keys_and_blocks_give_what_libsodium_gives(void **state)
{
    static const uint8_t fills[] = {0x00, 0xff, 0xfb, 0xfe, 0x01, 0x05};
    struct keys *keys = calloc(1, sizeof(*keys));
    uint8_t data[LONGEST];
    (void)state;
    assert_non_null(keys);
    for (size_t i = 0; i < EXTREMES; i++) {
        memcpy(keys->blocks[i], extreme_r[i], 16);
        memset(keys->blocks[i] + 16, i & 1 ? 0xff : 0, 16); /* s */
    }
    load(keys, EXTREMES);
    for (size_t i = 0; i < EXTREMES; i++)
        for (size_t fill = 0; fill < sizeof(fills); fill++)
            for (uint32_t length = 0; length <= LONGEST; length++) {
                memset(data, fills[fill], length);
                check(keys, i, data, length);
                if (length >= 16) { /* the first byte of the last block: about p */
                    data[(length - 1) / 16 * 16] = (uint8_t)length;
                    check(keys, i, data, length);
                }
            }
    free(keys);
}

/* With r = 1, h is the sum of the blocks and of 2^128 for each. Two blocks and the lengths are
 * 3 · 2^128 + x + 32 · 2^64 where x is in one of the blocks, and p is 4 · 2^128 - 5. */
static void a_sum_about_p_is_reduced_fully(void **state)
{
    struct keys *keys = calloc(1, sizeof(*keys));
    (void)state;
    assert_non_null(keys);
    keys->blocks[0][0] = 1;
    load(keys, 1);
    for (int offset = -8; offset <= 8; offset++) {
        const unsigned __int128 x =
            -((unsigned __int128)32 << 64) - 5 + (unsigned __int128)(__int128)offset;
        for (int block = 0; block < 2; block++) {
            uint8_t data[32] = {0};
            uint64_t tag[2];
            memcpy(data + 16 * block, &x, sizeof(x));
            check(keys, 0, data, sizeof(data));
            compute(&keys->keys[0], data, sizeof(data), tag);
            /* p + offset modulo p, of which the tag has 128 bits */
            assert_int_equal(tag[0], (uint64_t)(offset < 0 ? offset - 5 : offset));
        }
    }
    free(keys);
}

/* With r = 1 again: h is 2^130 + 2^88 - j, so what the top brings down as 5 runs through the two
 * lower limbs where j is 5 at most. */
static void a_carry_from_the_top_runs_through_all_limbs(void **state)
{
    struct keys *keys = calloc(1, sizeof(*keys));
    (void)state;
    assert_non_null(keys);
    keys->blocks[0][0] = 1;
    load(keys, 1);
    for (int j = -2; j <= 8; j++) {
        const unsigned __int128 half = (unsigned __int128)1 << 127;
        const unsigned __int128 x[2] = {half, half + ((unsigned __int128)1 << 88) -
                                                  (unsigned __int128)(__int128)j -
                                                  ((unsigned __int128)32 << 64)};
        uint8_t data[32];
        uint64_t tag[2];
        memcpy(data, x, sizeof(data));
        check(keys, 0, data, sizeof(data));
        compute(&keys->keys[0], data, sizeof(data), tag);
        assert_int_equal(tag[0], (uint64_t)(5 - j));
        assert_int_equal(tag[1], ((uint64_t)1 << 24) - (j > 5));
    }
    free(keys);
}

static void any_number_of_keys_is_made_side_by_side(void **state)
{
    struct keys *keys = malloc(sizeof(*keys));
    uint8_t data[LONGEST];
    (void)state;
    assert_non_null(keys);
    randombytes_buf(data, sizeof(data));
    for (size_t count = 1; count <= 17; count++) {
        randombytes_buf(keys->blocks, sizeof(keys->blocks));
        memset(keys->keys, 0xee, sizeof(keys->keys));
        load(keys, count);
        for (size_t i = 0; i < count; i++)
            check(keys, i, data, 300);
        for (const uint8_t *after = (const uint8_t *)&keys->keys[count];
             after < (const uint8_t *)(keys + 1); after++)
            assert_int_equal(*after, 0xee);
    }
    free(keys);
}

/* Random bytes with runs of ones and zeroes among them. */
static void sparse_and_dense_blocks_give_what_libsodium_gives(void **state)
{
    struct keys *keys = malloc(sizeof(*keys));
    uint8_t data[LONGEST];
    (void)state;
    assert_non_null(keys);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 17 == 0) {
            randombytes_buf(keys->blocks, sizeof(keys->blocks));
            for (size_t i = 0; i < 17; i += 2)
                memset(keys->blocks[i], i & 2 ? 0xff : 0, 1 + randombytes_uniform(16));
            load(keys, 17);
        }
        randombytes_buf(data, sizeof(data));
        for (int runs = 0; runs < 6; runs++) {
            const uint32_t at = randombytes_uniform(LONGEST - 64);
            memset(data + at, runs & 1 ? 0xff : 0, 1 + randombytes_uniform(64));
        }
        check(keys, (size_t)round % 17, data, randombytes_uniform(LONGEST + 1));
    }
    free(keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extreme_keys_and_blocks_give_what_libsodium_gives),
        cmocka_unit_test(a_sum_about_p_is_reduced_fully),
        cmocka_unit_test(a_carry_from_the_top_runs_through_all_limbs),
        cmocka_unit_test(any_number_of_keys_is_made_side_by_side),
        cmocka_unit_test(wycheproof_tags_are_as_published),
        cmocka_unit_test(wycheproof_sums_are_those_of_libsodium),
        cmocka_unit_test(sparse_and_dense_blocks_give_what_libsodium_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
