/* SPDX-License-Identifier: Apache-2.0 */
/* Workers do not wait for each other's cache lines: which lines travel between them, counted by
 * recording every access (accesses.h). Each batch runs on one thread, on behalf of an actor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the above */
#include <cmocka.h>

#ifdef ACCESSES_RECORDED
#include "accesses.h"
#include "workers.h"

#define WORKERS 3
#define BATCHES 20

static const struct load one_small = {0, 1}, many_small = {0, 64}, one_super = {45, 1};

static void start(void)
{
    workers_start(WORKERS, "portable");
    accesses_start();
}

static void stop(void)
{
    accesses_end();
    workers_stop();
}

static struct thread *primary(unsigned worker)
{
    return &workers_tunnel()->worker[worker].primary;
}

static struct thread *secondary(unsigned worker)
{
    return &workers_tunnel()->worker[worker].secondary;
}

static void pass_time(void)
{
    sim.now += NSEC_PER_MSEC;
}

/* The first batches arm timers, warm caches of addresses and the like. */
static void settle(void (*batch)(const struct load *), const struct load *load)
{
    for (int i = 0; i < 3; i++, pass_time())
        batch(load);
}

static void record(int actor)
{
    accesses.actor = actor;
}

struct travel {
    size_t lines;
    uint64_t accesses;
};

/* `inside`: lines that are allowed to travel, all others fail the test. */
static struct travel travelled(const void *const inside[], const size_t size[], size_t count)
{
    struct travel found = {0};
    size_t unknown = 0;
    for (size_t i = 0; i < ACCESS_LINES; i++) {
        const struct access_line *l = &accesses.lines[i];
        bool known = false;
        if (!l->line || !access_travels(l))
            continue;
        uintptr_t address = l->line * CACHE_LINE;
        for (size_t k = 0; k < count; k++)
            known |= address >= (uintptr_t)inside[k] && address < (uintptr_t)inside[k] + size[k];
        if (!known)
            print_error("line %#lx: readers %x, writers %x, %lu accesses\n", (unsigned long)address,
                        l->readers, l->writers, (unsigned long)l->count);
        unknown += !known;
        found.lines++;
        found.accesses += l->count;
    }
    assert_int_equal(unknown, 0);
    return found;
}

static void delivered_all(unsigned worker, const struct load *load, uint64_t batches)
{
    uint64_t packets = (uint64_t)(load->segments ? load->segments : 1) * load->frames * batches;
    struct tunnel_stats stats;
    tunnel_get_stats(workers_tunnel(), &stats);
    for (unsigned reason = 0; reason < DROP_COUNT; reason++)
        assert_int_equal(stats.drops[reason], 0);
    assert_int_equal(device[worker]->sent, packets);
}

/* ---- own peers ----------------------------------------------------------------------------- */

static void every_worker_own_peer(const struct load *load)
{
    int actor = accesses.actor;
    for (unsigned i = 0; i < WORKERS; i++) {
        record(actor < 0 ? -1 : (int)i);
        workers_send(primary(i), i, load);
        workers_receive(primary(i), i);
    }
    record(actor);
}

static void no_line_that_one_worker_writes_is_touched_by_another(void **state)
{
    const struct load *loads[] = {&one_small, &many_small, &one_super};
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        start();
        settle(every_worker_own_peer, loads[k]);
        record(0);
        for (int i = 0; i < BATCHES; i++, pass_time())
            every_worker_own_peer(loads[k]);
        record(-1);
        assert_int_equal(travelled(NULL, NULL, 0).lines, 0);
        delivered_all(WORKERS - 1, loads[k], BATCHES + 3);
        stop();
    }
}

/* ---- a pair -------------------------------------------------------------------------------- */

static void one_sends_one_receives(const struct load *load)
{
    int actor = accesses.actor;
    workers_send(primary(0), 0, load);
    record(actor < 0 ? -1 : 1);
    workers_receive(secondary(0), 0);
    record(actor);
}

static struct travel travel_in_a_pair(const struct load *load)
{
    start();
    accesses_ignore(device[0]->train, UDP_RECEIVE_CAPACITY);
    settle(one_sends_one_receives, load);
    record(0);
    for (int i = 0; i < BATCHES; i++, pass_time())
        one_sends_one_receives(load);
    record(-1);
    const void *peer = workers_peer(0);
    const size_t size = sizeof(struct peer);
    struct travel found = travelled(&peer, &size, 1);
    delivered_all(0, load, BATCHES + 3);
    stop();
    return found;
}

/* Both directions of one peer on two threads: the peer's endpoint, timers and byte counts, as often
 * for 64 packets as for one. */
static void a_pair_shares_only_its_peer_and_that_once_per_batch(void **state)
{
    (void)state;
    struct travel one = travel_in_a_pair(&one_small), many = travel_in_a_pair(&many_small);
    print_message("a pair: %zu lines travel, %.1f accesses per batch\n", one.lines,
                  (double)one.accesses / BATCHES);
    assert_true(one.lines > 0 && one.lines <= 4);
    assert_int_equal(many.lines, one.lines);
    assert_int_equal(many.accesses, one.accesses);
}

/* ---- one peer that several workers send to -------------------------------------------------- */

static void every_worker_same_peer(const struct load *load)
{
    int actor = accesses.actor;
    for (unsigned i = 0; i < WORKERS; i++) {
        record(actor < 0 ? -1 : (int)i);
        device[i]->to = 0;
        workers_send(primary(i), i, load);
    }
    record(actor);
}

static struct travel travel_to_one_peer(const struct load *load)
{
    start();
    settle(every_worker_same_peer, load);
    record(0);
    for (int i = 0; i < BATCHES; i++, pass_time())
        every_worker_same_peer(load);
    record(-1);
    const void *shared[] = {workers_peer(0), workers_session(0)};
    const size_t sizes[] = {sizeof(struct peer), sizeof(struct session) + 64 * 8};
    struct travel found = travelled(shared, sizes, 2);
    delivered_all(WORKERS - 1, load, BATCHES + 3);
    stop();
    return found;
}

static void senders_to_one_peer_share_it_and_its_counter_once_per_batch(void **state)
{
    (void)state;
    struct travel one = travel_to_one_peer(&one_small), many = travel_to_one_peer(&many_small);
    print_message("senders to one peer: %zu lines travel, %.1f accesses per batch\n", one.lines,
                  (double)one.accesses / BATCHES / WORKERS);
    assert_true(one.lines > 0 && one.lines <= 6);
    assert_int_equal(many.lines, one.lines);
    assert_int_equal(many.accesses, one.accesses);
}

/* ---- the recorder -------------------------------------------------------------------------- */

/* What would be found if it were there: two actors on one thread's counters and buffers. */
static void a_line_that_travels_is_seen(void **state)
{
    (void)state;
    start();
    record(0);
    workers_send(primary(0), 0, &one_small);
    record(1);
    workers_send(primary(0), 0, &one_small);
    record(-1);
    size_t lines = 0;
    for (size_t i = 0; i < ACCESS_LINES; i++)
        lines += accesses.lines[i].line && access_travels(&accesses.lines[i]);
    assert_true(lines > 10);
    struct access_line *batches =
        access_find((uintptr_t)&primary(0)->counters.tx.batches / CACHE_LINE);
    assert_true(access_travels(batches) && batches->writers == 3);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_line_that_one_worker_writes_is_touched_by_another),
        cmocka_unit_test(a_pair_shares_only_its_peer_and_that_once_per_batch),
        cmocka_unit_test(senders_to_one_peer_share_it_and_its_counter_once_per_batch),
        cmocka_unit_test(a_line_that_travels_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

#include <stdio.h>

int main(void)
{
    printf("skipped: a sanitizer has the place of the recorder\n");
    return 0;
}

#endif
