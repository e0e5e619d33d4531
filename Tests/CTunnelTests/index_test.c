/* SPDX-License-Identifier: Apache-2.0 */
#include "index.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct epoch epoch;
static struct index_table *table;
static struct epoch_reader *self;

static int setup(void **state)
{
    (void)state;
    epoch_init(&epoch);
    self = epoch_register(&epoch);
    table = index_table_create(&epoch);
    return table ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    index_table_destroy(table);
    epoch_destroy(&epoch);
    return 0;
}

static struct index_entry *find(uint32_t index)
{
    epoch_enter(&epoch, self);
    struct index_entry *entry = index_table_lookup(table, index);
    epoch_leave(self);
    return entry;
}

static void an_empty_table_knows_nothing(void **state)
{
    (void)state;
    assert_null(find(0));
    assert_null(find(1));
    assert_null(find(UINT32_MAX));
    assert_int_equal(index_table_count(table), 0);
}

static void removing_what_is_not_there_does_nothing(void **state)
{
    (void)state;
    struct index_entry in = {0}, out = {0};
    index_table_remove(table, &out);
    assert_true(index_table_insert(table, &in));
    out.index = in.index;
    index_table_remove(table, &out); /* same index, another entry */
    assert_ptr_equal(find(in.index), &in);
    index_table_remove(table, &in);
    index_table_remove(table, &in);
    assert_null(find(in.index));
    assert_int_equal(index_table_count(table), 0);
}

static void replace_takes_over_the_index(void **state)
{
    (void)state;
    struct index_entry handshake = {.kind = 1}, session = {.kind = 2}, other = {.kind = 3};
    assert_true(index_table_insert(table, &handshake));
    uint32_t index = handshake.index;
    assert_true(index_table_replace(table, &handshake, &session));
    assert_int_equal(session.index, index);
    assert_ptr_equal(find(index), &session);
    assert_int_equal(index_table_count(table), 1);
    /* The former holder is gone: nothing changes, by it or for it. */
    assert_false(index_table_replace(table, &handshake, &other));
    assert_int_equal(other.index, 0);
    index_table_remove(table, &handshake);
    assert_ptr_equal(find(index), &session);
}

static bool reject_all(void *context, uint32_t index)
{
    (void)index;
    ++*(unsigned *)context;
    return false;
}

static bool accept_residue(void *context, uint32_t index)
{
    return index % 4 == *(unsigned *)context;
}

#define MANY 50000

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void pitfall_55_indices_are_unpredictable(void **state)
{
    (void)state;
    struct index_entry *entries = calloc(MANY, sizeof(*entries));
    uint32_t *sorted = calloc(MANY, sizeof(*sorted));
    assert_true(entries && sorted);
    unsigned ones[32] = {0}, ascending = 0, near = 0;
    for (unsigned i = 0; i < MANY; i++) {
        assert_true(index_table_insert(table, &entries[i]));
        uint32_t index = sorted[i] = entries[i].index;
        assert_true(index != 0);
        for (unsigned bit = 0; bit < 32; bit++)
            ones[bit] += index >> bit & 1;
        if (i) {
            uint32_t before = entries[i - 1].index;
            ascending += index > before;
            near += index - before + 65536 < 2 * 65536;
        }
    }
    /* Both halves of the range, by every bit; the standard deviation is 112: 10 of them. */
    for (unsigned bit = 0; bit < 32; bit++)
        assert_in_range(ones[bit], MANY / 2 - 1120, MANY / 2 + 1120);
    /* No counter, no small step: about half ascend, and 2^17 / 2^32 of 50,000 are 1.5. */
    assert_in_range(ascending, MANY / 2 - 1120, MANY / 2 + 1120);
    assert_true(near < 30);
    /* No repeats. */
    qsort(sorted, MANY, sizeof(*sorted), compare);
    for (unsigned i = 1; i < MANY; i++)
        assert_true(sorted[i] != sorted[i - 1]);
    /* An index is not handed out again after removal. */
    for (unsigned i = 0; i < 1000; i++) {
        uint32_t former = entries[i].index;
        index_table_remove(table, &entries[i]);
        assert_true(index_table_insert(table, &entries[i]));
        assert_true(entries[i].index != former);
    }
    free(entries);
    free(sorted);
}

static void pitfall_55_two_tables_draw_differently(void **state)
{
    (void)state;
    struct index_table *second = index_table_create(&epoch);
    assert_non_null(second);
    struct index_entry a[16] = {0}, b[16] = {0};
    unsigned equal = 0;
    for (unsigned i = 0; i < 16; i++) {
        assert_true(index_table_insert(table, &a[i]) && index_table_insert(second, &b[i]));
        equal += a[i].index == b[i].index;
    }
    assert_true(equal < 2);
    index_table_destroy(second);
}

static void the_filter_is_respected(void **state)
{
    (void)state;
    struct index_entry entries[256] = {0};
    unsigned residue = 3, others = 0, calls = 0;
    index_table_set_filter(table, accept_residue, &residue);
    for (unsigned i = 0; i < 128; i++) {
        assert_true(index_table_insert(table, &entries[i]));
        assert_int_equal(entries[i].index % 4, 3);
    }
    /* One that never agrees is asked 63 or 64 times and then overruled. */
    index_table_set_filter(table, reject_all, &calls);
    assert_true(index_table_insert(table, &entries[128]));
    assert_in_range(calls, 63, 64);
    index_table_set_filter(table, NULL, NULL);
    for (unsigned i = 129; i < 256; i++) {
        assert_true(index_table_insert(table, &entries[i]));
        others += entries[i].index % 4 != 3;
    }
    assert_true(others > 50);
}

static void many_operations_agree_with_a_list(void **state)
{
    (void)state;
    enum { SLOTS = 3000 };
    struct index_entry *entries = calloc(2 * SLOTS, sizeof(*entries));
    bool present[SLOTS] = {0};
    size_t count = 0;
    assert_non_null(entries);
    srandom(1);
    for (unsigned step = 0; step < 200000; step++) {
        /* Grows for a while, then shrinks, several times: resizing both by load and tombstones. */
        bool growing = step / 20000 % 2 == 0;
        unsigned i = (unsigned)random() % SLOTS;
        struct index_entry *entry = &entries[i], *spare = &entries[SLOTS + i];
        if (!present[i] && random() % 8 < (growing ? 7 : 1)) {
            assert_true(index_table_insert(table, entry));
            present[i] = true;
            count++;
        } else if (present[i] && random() % 3 == 0) {
            assert_true(index_table_replace(table, entry, spare));
            assert_ptr_equal(find(entry->index), spare);
            assert_true(index_table_replace(table, spare, entry));
        } else if (present[i] && random() % 8 < (growing ? 1 : 7)) {
            index_table_remove(table, entry);
            present[i] = false;
            count--;
        }
        assert_ptr_equal(find(entry->index), present[i] ? entry : NULL);
        if (step % 5000 == 0) {
            assert_int_equal(index_table_count(table), count);
            for (unsigned j = 0; j < SLOTS; j++)
                if (entries[j].index)
                    assert_ptr_equal(find(entries[j].index), present[j] ? &entries[j] : NULL);
            epoch_reclaim(&epoch);
        }
    }
    free(entries);
}

/* ---- threads ------------------------------------------------------------------------------- */

#define READERS 2
#define WRITERS 2
#define ROUNDS  20000
#define HELD    64

struct owner {
    struct epoch_item item;
    struct index_entry entry;
    uint32_t magic;
};

static atomic_bool done;
static atomic_uint bad, found, ready;
static _Atomic uint32_t published[WRITERS][HELD]; /* indices that may be known */
static struct index_entry fixed[HELD];            /* in the table all the time */

static struct owner *owner_of(struct index_entry *entry)
{
    return (struct owner *)((char *)entry - offsetof(struct owner, entry));
}

static void release_owner(struct epoch_item *item)
{
    struct owner *owner = (struct owner *)item;
    owner->magic = 0;
    free(owner);
}

static void *read_table(void *argument)
{
    struct epoch_reader *reader = argument;
    atomic_fetch_add(&ready, 1);
    for (unsigned i = 0; !atomic_load(&done); i++) {
        uint32_t index = atomic_load(&published[i % WRITERS][i / WRITERS % HELD]);
        epoch_enter(&epoch, reader);
        struct index_entry *entry = index_table_lookup(table, index);
        if (entry) {
            atomic_fetch_add_explicit(&found, 1, memory_order_relaxed);
            if (owner_of(entry)->magic != 0x5e55)
                atomic_fetch_add(&bad, 1);
        }
        if (index_table_lookup(table, fixed[i % HELD].index) != &fixed[i % HELD])
            atomic_fetch_add(&bad, 1);
        epoch_leave(reader);
    }
    return NULL;
}

static struct owner *owner_create(void)
{
    struct owner *owner = calloc(1, sizeof(*owner));
    if (!owner)
        abort();
    owner->magic = 0x5e55;
    return owner;
}

static void *change_table(void *argument)
{
    _Atomic uint32_t *mine = argument;
    struct owner *held[HELD] = {0};
    /* At least until a reader met an entry that changes: on a busy machine that takes longer. */
    for (unsigned i = 0; i < ROUNDS || !atomic_load(&found); i++) {
        struct owner **slot = &held[i * 7 % HELD];
        if (!*slot) {
            *slot = owner_create();
            if (!index_table_insert(table, &(*slot)->entry))
                abort();
            atomic_store(&mine[i * 7 % HELD], (*slot)->entry.index);
        } else if (i % 3 == 0) {
            struct owner *fresh = owner_create();
            if (!index_table_replace(table, &(*slot)->entry, &fresh->entry))
                abort();
            epoch_retire(&epoch, &(*slot)->item, release_owner);
            *slot = fresh;
        } else {
            index_table_remove(table, &(*slot)->entry);
            epoch_retire(&epoch, &(*slot)->item, release_owner);
            *slot = NULL;
        }
        epoch_reclaim(&epoch);
    }
    for (unsigned i = 0; i < HELD; i++) {
        if (held[i]) {
            index_table_remove(table, &held[i]->entry);
            epoch_retire(&epoch, &held[i]->item, release_owner);
        }
    }
    return NULL;
}

static void lookups_never_see_freed_memory_nor_miss_what_stays(void **state)
{
    (void)state;
    pthread_t readers[READERS], writers[WRITERS];
    for (unsigned i = 0; i < HELD; i++)
        assert_true(index_table_insert(table, &fixed[i]));
    for (unsigned i = 0; i < READERS; i++)
        pthread_create(&readers[i], NULL, read_table, epoch_register(&epoch));
    while (atomic_load(&ready) < READERS)
        sched_yield();
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_create(&writers[i], NULL, change_table, published[i]);
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(writers[i], NULL);
    atomic_store(&done, true);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    assert_int_equal(atomic_load(&bad), 0);
    assert_true(atomic_load(&found) > 0);
    assert_int_equal(index_table_count(table), HELD);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_empty_table_knows_nothing),
        TEST(removing_what_is_not_there_does_nothing),
        TEST(replace_takes_over_the_index),
        TEST(pitfall_55_indices_are_unpredictable),
        TEST(pitfall_55_two_tables_draw_differently),
        TEST(the_filter_is_respected),
        TEST(many_operations_agree_with_a_list),
        TEST(lookups_never_see_freed_memory_nor_miss_what_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
