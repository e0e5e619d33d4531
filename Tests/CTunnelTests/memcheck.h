/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests that code takes no branch and no address from a secret: memcheck is told that the
 * secret is undefined, follows it through every instruction, and counts each jump and each address
 * that depends on it. Such a test runs itself again under valgrind; it is skipped where that is
 * missing and in sanitized builds, which valgrind cannot run.
 */
#ifndef MEMCHECK_H
#define MEMCHECK_H

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define HAVE_MEMCHECK               1
#define DECLASSIFY(pointer, length) (void)VALGRIND_MAKE_MEM_DEFINED(pointer, length)
#else
#define HAVE_MEMCHECK 0
#endif

#include "sanitized.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if HAVE_MEMCHECK

static void hide(void *bytes, size_t length)
{
    (void)VALGRIND_MAKE_MEM_UNDEFINED(bytes, length);
}

/* What would be found if it were there; memcheck reports this one on purpose. */
static void memcheck_counts_a_branch_on_a_secret(void **state)
{
    volatile uint8_t secret = 1, taken = 0;
    (void)state;
    const unsigned before_all = VALGRIND_COUNT_ERRORS;
    hide((void *)&secret, 1);
    if (secret & 1)
        taken = 1;
    assert_int_equal(VALGRIND_COUNT_ERRORS, before_all + 1);
    assert_int_equal(taken, 1);
}

/* Returns under valgrind; else becomes that, or ends the program. */
static void run_under_valgrind(const char *program)
{
    if (SANITIZED) {
        printf("skipped: valgrind cannot run a sanitized program\n");
        exit(0);
    }
    if (!RUNNING_ON_VALGRIND) {
        execlp("valgrind", "valgrind", "-q", "--tool=memcheck", program, (char *)NULL);
        printf("skipped: valgrind is not installed\n");
        exit(0);
    }
}

#else

int main(void)
{
    printf("skipped: no valgrind headers\n");
    return 0;
}

#endif

#endif
