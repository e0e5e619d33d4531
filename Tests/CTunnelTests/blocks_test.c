/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MANY 120000u /* of 40 bytes: more than two chunks */

static void *block[MANY];

/* Each block holds its own number in every byte it was given: none overlaps another. */
static void mark(unsigned i, size_t size)
{
    memset(block[i], (int)(i % 251), size);
}

static void assert_marked(unsigned i, size_t size)
{
    const uint8_t *bytes = block[i];
    for (size_t at = 0; at < size; at++)
        assert_int_equal(bytes[at], i % 251);
}

static void blocks_do_not_overlap(void **state)
{
    (void)state;
    static const size_t sizes[] = {8, 40, 56, 64};
    for (unsigned i = 0; i < MANY; i++) {
        block[i] = blocks_take(sizes[i % 4]);
        assert_non_null(block[i]);
        assert_int_equal((uintptr_t)block[i] % 8, 0);
        mark(i, sizes[i % 4]);
    }
    for (unsigned i = 0; i < MANY; i++)
        assert_marked(i, sizes[i % 4]);
    for (unsigned i = 0; i < MANY; i++)
        blocks_give(block[i]);
    assert_int_equal(blocks_bytes(), 0);
}

static void a_block_that_was_given_back_is_used_again(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MANY; i++)
        block[i] = blocks_take(40);
    size_t full = blocks_bytes();
    assert_int_equal(full % HUGE_PAGE, 0);
    assert_true(full <= MANY * 40 + 2 * HUGE_PAGE);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = round; i < MANY; i += 3)
            blocks_give(block[i]);
        for (unsigned i = round; i < MANY; i += 3)
            block[i] = blocks_take(40);
        assert_int_equal(blocks_bytes(), full);
    }
    for (unsigned i = 0; i < MANY; i++)
        mark(i, 40);
    for (unsigned i = 0; i < MANY; i++)
        assert_marked(i, 40);
    for (unsigned i = MANY; i-- > 0;)
        blocks_give(block[i]);
    assert_int_equal(blocks_bytes(), 0);
}

static void an_array_is_aligned_and_gives_its_pages_back(void **state)
{
    (void)state;
    static const size_t sizes[] = {64, 65535, 65536, 100000, 3 * HUGE_PAGE + 64};
    uint8_t *array[5];
    for (unsigned i = 0; i < 5; i++) {
        array[i] = array_take(sizes[i]);
        assert_non_null(array[i]);
        assert_int_equal((uintptr_t)array[i] % ARRAY_ALIGNMENT, 0);
        memset(array[i], (int)i, sizes[i]);
    }
    assert_int_equal(blocks_bytes(), sizes[2] + sizes[3] + sizes[4]);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(array[i][0], i);
        assert_int_equal(array[i][sizes[i] - 1], i);
        array_give(array[i], sizes[i]);
    }
    assert_int_equal(blocks_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_do_not_overlap),
        cmocka_unit_test(a_block_that_was_given_back_is_used_again),
        cmocka_unit_test(an_array_is_aligned_and_gives_its_pages_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
