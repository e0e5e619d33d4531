/* SPDX-License-Identifier: Apache-2.0 */
/* X25519 against RFC 7748, points of low order, and the keys it makes. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on
#include "crypto/curve25519.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static void from_hex(uint8_t out[32], const char *hex)
{
    size_t length;
    assert_int_equal(sodium_hex2bin(out, 32, hex, strlen(hex), NULL, &length, NULL), 0);
    assert_int_equal(length, 32);
}

/* RFC 7748 §5.2. */
static void rfc7748_scalar_multiplications(void **state)
{
    static const struct {
        const char *scalar, *point, *result;
    } cases[] = {
        {"a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
         "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
         "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"},
        {"4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
         "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
         "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t scalar[32], point[32], expected[32], result[32];
        from_hex(scalar, cases[i].scalar);
        from_hex(point, cases[i].point);
        from_hex(expected, cases[i].result);
        assert_true(x25519(result, scalar, point));
        assert_memory_equal(result, expected, 32);
    }
}

/* RFC 7748 §5.2: the iterated test, after 1 and 1,000 rounds. */
static void rfc7748_iterations(void **state)
{
    uint8_t k[32] = {9}, u[32] = {9}, result[32], expected[32];
    (void)state;
    for (int round = 1; round <= 1000; round++) {
        assert_true(x25519(result, k, u));
        memcpy(u, k, 32);
        memcpy(k, result, 32);
        if (round == 1) {
            from_hex(expected, "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079");
            assert_memory_equal(k, expected, 32);
        }
    }
    from_hex(expected, "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51");
    assert_memory_equal(k, expected, 32);
}

/* RFC 7748 §6.1. */
static void rfc7748_key_agreement(void **state)
{
    uint8_t a[32], b[32], expected_a[32], expected_b[32], expected[32];
    uint8_t public_a[32], public_b[32], shared[32];
    (void)state;
    from_hex(a, "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
    from_hex(expected_a, "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
    from_hex(b, "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
    from_hex(expected_b, "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
    from_hex(expected, "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");

    x25519_public(public_a, a);
    assert_memory_equal(public_a, expected_a, 32);
    x25519_public(public_b, b);
    assert_memory_equal(public_b, expected_b, 32);
    assert_true(x25519(shared, a, public_b));
    assert_memory_equal(shared, expected, 32);
    assert_true(x25519(shared, b, public_a));
    assert_memory_equal(shared, expected, 32);
}

/* All encodings that fit 255 bits (cr.yp.to/ecdh.html#validate), each also with the ignored top bit
 * set (RFC 7748 §5). */
static void points_of_low_order_are_rejected_and_zeroed(void **state)
{
    static const char *const points[] = {
        "0000000000000000000000000000000000000000000000000000000000000000", /* 0 */
        "0100000000000000000000000000000000000000000000000000000000000000", /* 1 */
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800", /* order 8 */
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157", /* order 8 */
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", /* p - 1 */
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", /* p */
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", /* p + 1 */
    };
    static const uint8_t zero[32];
    (void)state;
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
        for (int top_bit = 0; top_bit < 2; top_bit++) {
            uint8_t secret[32], point[32], result[32];
            from_hex(point, points[i]);
            point[31] |= (uint8_t)(top_bit << 7);
            x25519_generate(secret);
            memset(result, 0xaa, sizeof(result));
            assert_false(x25519(result, secret, point));
            assert_memory_equal(result, zero, 32);
        }
}

static void generated_keys_are_clamped_and_differ(void **state)
{
    uint8_t previous[32] = {0};
    (void)state;
    for (int i = 0; i < 100; i++) {
        uint8_t secret[32];
        x25519_generate(secret);
        assert_int_equal(secret[0] & 7, 0);
        assert_int_equal(secret[31] & 0xc0, 0x40);
        assert_memory_not_equal(secret, previous, 32);
        memcpy(previous, secret, 32);
    }
}

static void both_ends_agree(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        uint8_t a[32], b[32], public_a[32], public_b[32], shared_a[32], shared_b[32];
        x25519_generate(a);
        x25519_generate(b);
        x25519_public(public_a, a);
        x25519_public(public_b, b);
        assert_true(x25519(shared_a, a, public_b));
        assert_true(x25519(shared_b, b, public_a));
        assert_memory_equal(shared_a, shared_b, 32);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rfc7748_scalar_multiplications),
        cmocka_unit_test(rfc7748_iterations),
        cmocka_unit_test(rfc7748_key_agreement),
        cmocka_unit_test(points_of_low_order_are_rejected_and_zeroed),
        cmocka_unit_test(generated_keys_are_clamped_and_differ),
        cmocka_unit_test(both_ends_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
