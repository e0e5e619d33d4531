/* SPDX-License-Identifier: Apache-2.0 */
/* Poly1305 of the portable back-end, and the published tags of all cases by it. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on
#define POLY1305_PORTABLE
#include "crypto/poly1305_scalar.h"

#include "poly1305_wycheproof.h"

/* Every block of the message as it is, so that additional data is no obstacle. */
static void all_published_tags_are_found(void **state)
{
    size_t valid = 0;
    (void)state;
    for (size_t i = 0; i < WYCHEPROOF_CASES; i++) {
        struct wycheproof_input *in = wycheproof_read(&wycheproof[i]);
        struct poly1305_key key;
        struct poly1305 poly = {0};
        uint64_t tag[2];
        poly1305_load_keys(&key, (const uint8_t(*)[64])in->key_block, 1);
        poly1305_steps(&poly, &key, in->message, in->message_length / POLY1305_BLOCK);
        poly1305_tag((const uint64_t[3]){poly.h0, poly.h1, poly.h2}, key.s, tag);
        if (!memcmp(tag, in->tag, sizeof(tag)) != wycheproof[i].valid)
            fail_msg("case %d", wycheproof[i].number);
        valid += wycheproof[i].valid;
        free(in);
    }
    assert_int_equal(valid, 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wycheproof_tags_are_as_published),
        cmocka_unit_test(wycheproof_sums_are_those_of_libsodium),
        cmocka_unit_test(all_published_tags_are_found),
    };
    return cmocka_run_group_tests_name("poly1305: portable", tests, NULL, NULL);
}
