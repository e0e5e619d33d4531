// SPDX-License-Identifier: Apache-2.0
/* The Internet checksum against RFC 1071's own example and a byte-by-byte model. */
#include "packets.h"

#include <setjmp.h>
#include <stdarg.h>
// cmocka.h needs the two above
#include <cmocka.h>

static uint16_t in_memory_order(uint32_t value)
{
    return htons((uint16_t)value);
}

static uint8_t source[70000], copied[70000];

static void fill_random(uint32_t seed)
{
    srand(seed);
    for (size_t i = 0; i < sizeof(source); i++)
        source[i] = (uint8_t)(rand() >> 7);
}

/* RFC 1071 §3: 0001 f203 f4f5 f6f7 sums to ddf2. */
static void sums_the_example_of_rfc_1071(void **state)
{
    (void)state;
    static const uint8_t example[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
    for (size_t v = 0; v < checksum_variant_count; v++) {
        if (checksum_variants[v].supported())
            assert_int_equal(checksum_fold(checksum_variants[v].add(0, example, sizeof(example))),
                             in_memory_order(0xddf2));
    }
}

static void check_variant(const struct checksum_variant *variant, size_t offset, size_t length)
{
    uint16_t expected = in_memory_order(slow_sum(0, source + offset, length));
    memset(copied, 0xa5, sizeof(copied));

    assert_int_equal(checksum_fold(variant->add(0, source + offset, length)), expected);
    assert_int_equal(checksum_fold(variant->copy(0, copied + 3, source + offset, length)),
                     expected);
    assert_memory_equal(copied + 3, source + offset, length);
    assert_int_equal(copied[2], 0xa5);
    assert_int_equal(copied[3 + length], 0xa5);
}

static void every_variant_equals_the_model_at_every_length_and_alignment(void **state)
{
    (void)state;
    for (size_t v = 0; v < checksum_variant_count; v++) {
        if (!checksum_variants[v].supported())
            continue;
        fill_random((uint32_t)v);
        for (size_t length = 0; length < 300; length++) {
            for (size_t offset = 0; offset < 9; offset++)
                check_variant(&checksum_variants[v], offset, length);
        }
        check_variant(&checksum_variants[v], 1, 1420);
        check_variant(&checksum_variants[v], 0, 65535);
    }
}

static void loses_no_carry_on_all_ones(void **state)
{
    (void)state;
    memset(source, 0xff, sizeof(source));
    for (size_t v = 0; v < checksum_variant_count; v++) {
        if (!checksum_variants[v].supported())
            continue;
        check_variant(&checksum_variants[v], 0, 65534);
        check_variant(&checksum_variants[v], 0, 65535);
        assert_int_equal(checksum_fold(checksum_variants[v].add(UINT64_MAX, source, 128)), 0xffff);
    }
}

static void sums_in_pieces_like_at_once(void **state)
{
    (void)state;
    fill_random(7);
    for (size_t cut = 0; cut <= 1420; cut += 2) {
        uint64_t sum =
            checksum_copy(checksum_add(0, source, cut), copied, source + cut, 1421 - cut);
        assert_int_equal(checksum_fold(sum), in_memory_order(slow_sum(0, source, 1421)));
    }
}

static void folds_zero_only_to_zero(void **state)
{
    (void)state;
    assert_int_equal(checksum_fold(0), 0);
    assert_int_equal(checksum_fold(UINT64_MAX), 0xffff);
    assert_int_equal(checksum_fold(0x10000), 1);
    assert_int_equal(checksum_fold(0xffff0001ffff0000), 1);
    for (int bit = 0; bit < 64; bit++)
        assert_int_equal(checksum_fold(1ull << bit), 1 << bit % 16);
}

/* The best variant is first and the last works anywhere: what dispatch relies on. */
static void the_last_variant_is_portable(void **state)
{
    (void)state;
    assert_true(checksum_variant_count >= 1);
    assert_true(checksum_variants[checksum_variant_count - 1].supported());
    assert_string_equal(checksum_variants[checksum_variant_count - 1].name, "portable");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_the_example_of_rfc_1071),
        cmocka_unit_test(every_variant_equals_the_model_at_every_length_and_alignment),
        cmocka_unit_test(loses_no_carry_on_all_ones),
        cmocka_unit_test(sums_in_pieces_like_at_once),
        cmocka_unit_test(folds_zero_only_to_zero),
        cmocka_unit_test(the_last_variant_is_portable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
