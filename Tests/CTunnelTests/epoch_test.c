/* SPDX-License-Identifier: Apache-2.0 */
#include "epoch.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

struct thing {
    struct epoch_item item;
    unsigned *released;
    uint64_t value;
};

static void release_thing(struct epoch_item *item)
{
    struct thing *thing = (struct thing *)item;
    ++*thing->released;
    free(thing);
}

static struct thing *thing_create(unsigned *released)
{
    struct thing *thing = malloc(sizeof(*thing));
    assert_non_null(thing);
    *thing = (struct thing){.released = released, .value = 42};
    return thing;
}

static struct epoch epoch;
static unsigned released;

static int setup(void **state)
{
    (void)state;
    epoch_init(&epoch);
    released = 0;
    return 0;
}

static void retire(void)
{
    epoch_retire(&epoch, &thing_create(&released)->item, release_thing);
}

static void nothing_retired_is_nothing_waiting(void **state)
{
    (void)state;
    assert_false(epoch_reclaim(&epoch));
    epoch_destroy(&epoch);
}

static void without_readers_inside_all_is_released(void **state)
{
    (void)state;
    assert_non_null(epoch_register(&epoch));
    for (unsigned i = 0; i < 10; i++)
        retire();
    assert_int_equal(released, 0); /* only reclaim releases */
    assert_false(epoch_reclaim(&epoch));
    assert_int_equal(released, 10);
    epoch_destroy(&epoch);
    assert_int_equal(released, 10);
}

static void a_reader_holds_what_was_retired_after_it_entered(void **state)
{
    (void)state;
    struct epoch_reader *reader = epoch_register(&epoch);
    retire();
    epoch_enter(&epoch, reader);
    retire();
    assert_true(epoch_reclaim(&epoch));
    assert_int_equal(released, 1); /* retired before it entered */
    epoch_leave(reader);
    assert_false(epoch_reclaim(&epoch));
    assert_int_equal(released, 2);
    epoch_destroy(&epoch);
}

static void a_later_reader_holds_nothing_earlier(void **state)
{
    (void)state;
    struct epoch_reader *early = epoch_register(&epoch), *late = epoch_register(&epoch);
    epoch_enter(&epoch, early);
    retire();
    epoch_enter(&epoch, late);
    assert_true(epoch_reclaim(&epoch));
    assert_int_equal(released, 0);
    epoch_leave(early);
    assert_false(epoch_reclaim(&epoch));
    assert_int_equal(released, 1);
    epoch_leave(late);
    epoch_destroy(&epoch);
}

static void entering_again_lets_go(void **state)
{
    (void)state;
    struct epoch_reader *reader = epoch_register(&epoch);
    epoch_enter(&epoch, reader);
    retire();
    epoch_leave(reader);
    epoch_enter(&epoch, reader);
    assert_false(epoch_reclaim(&epoch));
    assert_int_equal(released, 1);
    epoch_leave(reader);
    epoch_destroy(&epoch);
}

static void destroy_releases_the_rest(void **state)
{
    (void)state;
    retire();
    retire();
    epoch_destroy(&epoch);
    assert_int_equal(released, 2);
}

static void readers_are_distinct_and_limited(void **state)
{
    (void)state;
    struct epoch_reader *previous = NULL;
    for (unsigned i = 0; i < EPOCH_MAX_READERS; i++) {
        struct epoch_reader *reader = epoch_register(&epoch);
        assert_true(reader != NULL && reader != previous);
        previous = reader;
    }
    assert_null(epoch_register(&epoch));
    /* The last one counts as well. */
    epoch_enter(&epoch, previous);
    retire();
    assert_true(epoch_reclaim(&epoch));
    epoch_leave(previous);
    epoch_destroy(&epoch);
}

static struct thing *chained;

static void release_and_retire(struct epoch_item *item)
{
    release_thing(item);
    if (chained) {
        struct thing *next = chained;
        chained = NULL;
        epoch_retire(&epoch, &next->item, release_and_retire);
    }
}

static void a_release_may_retire(void **state)
{
    (void)state;
    chained = thing_create(&released);
    epoch_retire(&epoch, &thing_create(&released)->item, release_and_retire);
    epoch_reclaim(&epoch);
    assert_int_equal(released, 1);
    assert_false(epoch_reclaim(&epoch));
    assert_int_equal(released, 2);

    chained = thing_create(&released);
    epoch_retire(&epoch, &thing_create(&released)->item, release_and_retire);
    epoch_destroy(&epoch);
    assert_int_equal(released, 4);
}

/* One pointer, replaced all the time. The sanitizers see a read of freed memory; `value` shows
 * one that was overwritten. */
#define REPLACEMENTS 20000
static _Atomic(struct thing *) shared;
static atomic_bool done;
static atomic_uint bad, ready;

static void *read_shared(void *argument)
{
    struct epoch_reader *reader = argument;
    atomic_fetch_add(&ready, 1);
    do {
        epoch_enter(&epoch, reader);
        for (unsigned i = 0; i < 3; i++)
            if (atomic_load_explicit(&shared, memory_order_acquire)->value != 42)
                atomic_fetch_add(&bad, 1);
        epoch_leave(reader);
    } while (!atomic_load(&done));
    return NULL;
}

static void release_poisoned(struct epoch_item *item)
{
    ((struct thing *)item)->value = 0;
    release_thing(item);
}

static void readers_never_see_released_memory(void **state)
{
    (void)state;
    pthread_t threads[3];
    atomic_store(&shared, thing_create(&released));
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_shared, epoch_register(&epoch)), 0);
    while (atomic_load(&ready) < 3)
        sched_yield();
    for (unsigned i = 0; i < REPLACEMENTS; i++) {
        struct thing *old = atomic_exchange(&shared, thing_create(&released));
        epoch_retire(&epoch, &old->item, release_poisoned);
        epoch_reclaim(&epoch);
    }
    atomic_store(&done, true);
    for (unsigned i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_false(epoch_reclaim(&epoch));
    assert_int_equal(released, REPLACEMENTS);
    assert_int_equal(atomic_load(&bad), 0);
    free(atomic_load(&shared));
    epoch_destroy(&epoch);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        TEST(nothing_retired_is_nothing_waiting),
        TEST(without_readers_inside_all_is_released),
        TEST(a_reader_holds_what_was_retired_after_it_entered),
        TEST(a_later_reader_holds_nothing_earlier),
        TEST(entering_again_lets_go),
        TEST(destroy_releases_the_rest),
        TEST(readers_are_distinct_and_limited),
        TEST(a_release_may_retire),
        TEST(readers_never_see_released_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
