/* SPDX-License-Identifier: Apache-2.0 */
/* BLAKE2s and the KDF, as memcheck.h describes. */
#include "memcheck.h"

#include "crypto/blake2s.c"
#include "crypto/hash.c"

#if HAVE_MEMCHECK

#define LARGEST 200

static void assert_unknown(uint8_t *bytes, size_t length)
{
    uint8_t unknown[96];
    assert_int_equal(VALGRIND_GET_VBITS(bytes, unknown, length), 1);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(unknown[i], 0xff);
}

static void hashing_takes_no_branch_or_address_from_key_or_input(void **state)
{
    uint8_t key[32] = {1}, data[LARGEST] = {2}, out[32];
    (void)state;
    const unsigned before_all = VALGRIND_COUNT_ERRORS;
    hide(key, sizeof(key));
    hide(data, sizeof(data));
    for (size_t length = 1; length <= LARGEST; length++) {
        blake2s_256(out, (const struct hash_part[]){{data, length}}, 1);
        assert_unknown(out, 32);
        blake2s_mac128(out, key, sizeof(key), data, length);
        assert_unknown(out, 16);
    }
    assert_int_equal(VALGRIND_COUNT_ERRORS, before_all);
}

static void the_kdf_takes_none_from_key_or_input(void **state)
{
    uint8_t key[32] = {1}, input[LARGEST] = {2}, out[96];
    (void)state;
    const unsigned before_all = VALGRIND_COUNT_ERRORS;
    hide(key, sizeof(key));
    hide(input, sizeof(input));
    for (size_t length = 0; length <= LARGEST; length++) {
        hash_kdf(out, out + 32, out + 64, key, input, length);
        assert_unknown(out, 96);
    }
    assert_int_equal(VALGRIND_COUNT_ERRORS, before_all);
}

int main(int argc, char **argv)
{
    (void)argc;
    run_under_valgrind(argv[0]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashing_takes_no_branch_or_address_from_key_or_input),
        cmocka_unit_test(the_kdf_takes_none_from_key_or_input),
        cmocka_unit_test(memcheck_counts_a_branch_on_a_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
