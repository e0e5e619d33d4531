/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of programs that hold secrets: what is given back is erased, and nothing else changes.
 */
#include "../../CSources/CErasingHeap/erasing_heap.c"

#include "cmocka_includes.h"
#include <stdint.h>

/* In a free block the C library keeps two words of its own. */
#define OWN (2 * sizeof(void *))

static unsigned char *filled(size_t size)
{
    unsigned char *block = malloc(size);
    assert_non_null(block);
    memset(block, 0xA5, size);
    return block;
}

/* How many bytes of what was a block still have what was in it. The block is free: read it as no
   compiler would expect. */
static size_t remains(uintptr_t address, size_t size)
{
    const volatile unsigned char *bytes = (const volatile unsigned char *)address;
    size_t count = 0;
    for (size_t i = OWN; i < size; i++)
        count += bytes[i] == 0xA5;
    return count;
}

static void skip_without_it(void)
{
    if (!erasing_heap_is_used())
        skip();
}

static void test_what_is_freed_is_erased(void **state)
{
    (void)state;
    skip_without_it();
    /* Below the size at which the C library gives memory back to the kernel. */
    for (size_t size = 24; size < 100000; size = size * 3 / 2) {
        unsigned char *block = filled(size);
        volatile uintptr_t address = (uintptr_t)block;
        free(block);
        assert_int_equal(remains(address, size), 0);
    }
    free(NULL);
}

static void test_what_is_left_behind_by_growing_is_erased(void **state)
{
    (void)state;
    skip_without_it();
    for (size_t size = 24; size < 50000; size = size * 3 / 2) {
        unsigned char *block = filled(size);
        volatile uintptr_t address = (uintptr_t)block;
        unsigned char *larger = realloc(block, 2 * malloc_usable_size(block) + 1);
        assert_non_null(larger);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(larger[i], 0xA5);
        assert_int_not_equal((uintptr_t)larger, address);
        assert_int_equal(remains(address, size), 0);
        free(larger);
    }
}

static void test_shrinking_keeps_what_is_kept(void **state)
{
    (void)state;
    skip_without_it();
    unsigned char *block = filled(4096);
    volatile uintptr_t address = (uintptr_t)block;
    unsigned char *same = realloc(block, 4000);
    assert_int_equal((uintptr_t)same, address);
    unsigned char *smaller = realloc(same, 100);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(smaller[i], 0xA5);
    assert_int_equal(remains(address, 4096), 0);
    free(smaller);
}

static void test_the_edges_are_those_of_the_manual(void **state)
{
    (void)state;
    skip_without_it();
    unsigned char *block = realloc(NULL, 10);
    assert_non_null(block);
    assert_null(realloc(block, 0));
    /* A compiler does not know that it is still there. */
    void *volatile impossible = filled(10);
    assert_null(realloc(impossible, SIZE_MAX / 2));
    assert_int_equal(((unsigned char *)impossible)[9], 0xA5);
    free(impossible);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_freed_is_erased),
        cmocka_unit_test(test_what_is_left_behind_by_growing_is_erased),
        cmocka_unit_test(test_shrinking_keeps_what_is_kept),
        cmocka_unit_test(test_the_edges_are_those_of_the_manual),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
