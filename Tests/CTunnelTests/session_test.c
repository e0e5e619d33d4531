/* SPDX-License-Identifier: Apache-2.0 */
/* Send counters of a session under several threads, its age, and its end. */
#include "session.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs the above */
#include <cmocka.h>

#define SLOTS 4
#define BATCH 64

static struct session *create(unsigned slots)
{
    struct noise_session_keys keys;
    memset(&keys, 0xa5, sizeof keys);
    keys.initiator = true;
    struct session *s = session_create(NULL, &keys, 1, 1000 * NSEC_PER_SEC, slots);
    assert_non_null(s);
    assert_true(sodium_is_zero((const uint8_t *)&keys, sizeof keys)); /* taken over and wiped */
    return s;
}

static void counters_are_consecutive_from_zero(void **state)
{
    (void)state;
    struct session *s = create(1);
    uint64_t first;
    for (uint64_t expected = 0; expected < 20 * BATCH; expected += BATCH) {
        assert_true(session_reserve(s, 0, BATCH, &first));
        assert_int_equal(first, expected);
        session_sent(s, 0);
    }
    free(s);
}

/* ---- pitfall 36 ---------------------------------------------------------------------------- */

struct reserver {
    struct session *session;
    unsigned slot;
    uint64_t want;
    _Atomic uint64_t done;
};

static void *reserve_batches(void *argument)
{
    struct reserver *r = argument;
    uint64_t first;
    while (atomic_load(&r->done) < r->want) {
        if (!session_reserve(r->session, r->slot, BATCH, &first))
            return NULL;
        session_sent(r->session, r->slot);
        atomic_fetch_add(&r->done, BATCH);
    }
    return r;
}

static void pitfall_36_a_stalled_slot_holds_others_within_the_window(void **state)
{
    (void)state;
    struct session *s = create(SLOTS);
    struct reserver r = {.session = s, .slot = 1, .want = 3 * REPLAY_WINDOW / BATCH * BATCH};
    uint64_t stalled;
    pthread_t thread;
    void *result;

    assert_true(session_reserve(s, 0, 1, &stalled)); /* counter 0, and then it is preempted */
    assert_int_equal(stalled, 0);
    pthread_create(&thread, NULL, reserve_batches, &r);
    /* It comes as far as the receiver's window lets it, and no further however long it runs:
     * counters 1 … 8064, for the batch after those ends at 8128. */
    uint64_t reachable = (REPLAY_WINDOW - 1) / BATCH * BATCH;
    while (atomic_load(&r.done) < reachable)
        sched_yield();
    for (int i = 0; i < 2000; i++) {
        sched_yield();
        assert_true(atomic_load(&s->next_counter) - 1 - stalled < REPLAY_WINDOW);
    }
    assert_int_equal(atomic_load(&r.done), reachable);
    session_sent(s, 0);
    pthread_join(thread, &result);
    assert_non_null(result);
    assert_int_equal(atomic_load(&s->next_counter), 1 + r.want);
    free(s);
}

/* Threads reserve, note the counters, send late; a checker sees every reservation. */
struct racer {
    struct session *session;
    unsigned slot;
    uint8_t *taken; /* one byte per counter */
    uint64_t limit;
    bool ok;
};

static void *race(void *argument)
{
    struct racer *r = argument;
    uint64_t first, newest;
    uint32_t turn = r->slot;
    r->ok = true;
    for (;;) {
        uint64_t count = 1 + (turn = turn * 1664525 + 1013904223) % BATCH;
        if (!session_reserve(r->session, r->slot, count, &first))
            return NULL;
        if (turn % 64 == 0) /* preempted in the middle of a batch */
            sched_yield();
        newest = atomic_load(&r->session->next_counter) - 1;
        r->ok = r->ok && newest - first < REPLAY_WINDOW;
        for (uint64_t i = first; i < first + count && i < r->limit; i++)
            r->ok = r->ok && !r->taken[i]++;
        session_sent(r->session, r->slot);
        if (first >= r->limit)
            return NULL;
    }
}

static void pitfall_36_four_threads_share_counters_without_overlap_or_gap(void **state)
{
    (void)state;
    enum { LIMIT = 200000 };
    struct session *s = create(SLOTS);
    struct racer racers[SLOTS];
    pthread_t threads[SLOTS];
    uint8_t *taken = calloc(LIMIT, 1);
    assert_non_null(taken);
    for (unsigned i = 0; i < SLOTS; i++) {
        racers[i] = (struct racer){.session = s, .slot = i, .taken = taken, .limit = LIMIT};
        pthread_create(&threads[i], NULL, race, &racers[i]);
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(racers[i].ok);
    }
    for (size_t i = 0; i < LIMIT; i++)
        assert_int_equal(taken[i], 1);
    free(taken);
    free(s);
}

/* ---- pitfall 39 ---------------------------------------------------------------------------- */

static void pitfall_39_no_counter_at_or_past_the_limit_is_given(void **state)
{
    (void)state;
    static const struct {
        uint64_t before_limit, count;
        bool given;
    } cases[] = {
        {BATCH, BATCH, true}, /* ends at the last usable counter */
        {BATCH - 1, BATCH, false}, {1, 1, true}, {1, 2, false}, {0, 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct session *s = create(1);
        uint64_t first = 0;
        atomic_store(&s->next_counter, REJECT_AFTER_MESSAGES - cases[i].before_limit);
        assert_int_equal(session_reserve(s, 0, cases[i].count, &first), cases[i].given);
        assert_int_equal(session_can_send(s, s->born_ns), cases[i].given);
        if (cases[i].given)
            assert_true(first + cases[i].count <= REJECT_AFTER_MESSAGES);
        else
            assert_true(atomic_load(&s->in_flight[0]) == IDLE_SLOT);
        free(s);
    }
}

static void pitfall_39_past_the_limit_nothing_wraps(void **state)
{
    (void)state;
    struct session *s = create(1);
    uint64_t first;
    atomic_store(&s->next_counter, UINT64_MAX - 5);
    assert_false(session_reserve(s, 0, BATCH, &first));
    assert_true(atomic_load(&s->next_counter) == UINT64_MAX - 5);
    assert_false(session_reserve(s, 0, 1, &first));
    free(s);
}

/* ---- age ----------------------------------------------------------------------------------- */

static void pitfall_43_a_session_lives_180_seconds_exactly(void **state)
{
    (void)state;
    struct session *s = create(1);
    uint64_t born = s->born_ns;
    assert_true(session_can_send(s, born));
    assert_true(session_can_send(s, born + REJECT_AFTER_TIME - 1));
    assert_true(session_can_receive(s, born + REJECT_AFTER_TIME - 1));
    assert_false(session_can_send(s, born + REJECT_AFTER_TIME));
    assert_false(session_can_receive(s, born + REJECT_AFTER_TIME));
    assert_false(session_can_send(s, born + 1000 * REJECT_AFTER_TIME));
    assert_false(session_can_send(NULL, born));
    free(s);
}

/* A data thread reads the clock once per batch; the handshake thread may finish a session after
 * that and before the batch looks for one. */
static void a_session_younger_than_the_batch_is_usable(void **state)
{
    (void)state;
    struct session *s = create(1);
    assert_true(session_can_send(s, s->born_ns - 1));
    assert_true(session_can_receive(s, s->born_ns - NSEC_PER_MSEC));
    free(s);
}

/* ---- the end ------------------------------------------------------------------------------- */

/* session.c is included with its free() replaced, to see what memory holds when it is given back.
 */
static size_t freed_count, freed_nonzero;

static void inspecting_free(void *pointer)
{
    if (pointer) {
        struct session *s = pointer;
        freed_count++;
        freed_nonzero += !sodium_is_zero((const uint8_t *)s, sizeof *s);
    }
    free(pointer);
}

#define free inspecting_free
#include "session.c"
#undef free

static void pitfall_43_a_retired_session_is_zeroed_after_its_last_reader(void **state)
{
    (void)state;
    static struct epoch epoch;
    epoch_init(&epoch);
    struct index_table *table = index_table_create(&epoch);
    struct epoch_reader *reader = epoch_register(&epoch);
    struct session *s = create(1);
    assert_true(index_table_insert(table, &s->entry));
    uint32_t index = s->entry.index;

    epoch_enter(&epoch, reader);
    assert_ptr_equal(index_table_lookup(table, index), &s->entry);
    session_retire(s, table, &epoch);
    assert_true(epoch_reclaim(&epoch)); /* somebody may still use it */
    assert_int_equal(freed_count, 0);
    assert_int_equal(s->send_key.bytes[0], 0xa5);
    epoch_leave(reader);
    assert_false(epoch_reclaim(&epoch));
    assert_int_equal(freed_count, 1);
    assert_int_equal(freed_nonzero, 0);
    assert_int_equal(index_table_count(table), 0);
    index_table_destroy(table);
    epoch_destroy(&epoch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_are_consecutive_from_zero),
        cmocka_unit_test(pitfall_36_a_stalled_slot_holds_others_within_the_window),
        cmocka_unit_test(pitfall_36_four_threads_share_counters_without_overlap_or_gap),
        cmocka_unit_test(pitfall_39_no_counter_at_or_past_the_limit_is_given),
        cmocka_unit_test(pitfall_39_past_the_limit_nothing_wraps),
        cmocka_unit_test(pitfall_43_a_session_lives_180_seconds_exactly),
        cmocka_unit_test(a_session_younger_than_the_batch_is_usable),
        cmocka_unit_test(pitfall_43_a_retired_session_is_zeroed_after_its_last_reader),
    };
    return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
