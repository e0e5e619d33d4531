/* SPDX-License-Identifier: Apache-2.0 */
/* Poly1305 of the AVX2 back-end. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on
#if defined(__x86_64__)
#include "crypto/poly1305_scalar.h"

#define POLY1305_TARGET __attribute__((target("avx2,bmi2")))
#include "poly1305_wycheproof.h"

static int has_mulx(void **state)
{
    (void)state;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2"))
        skip();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(wycheproof_tags_are_as_published, has_mulx),
        cmocka_unit_test_setup(wycheproof_sums_are_those_of_libsodium, has_mulx),
    };
    return cmocka_run_group_tests_name("poly1305: avx2", tests, NULL, NULL);
}
#else
int main(void)
{
    return 0;
}
#endif
