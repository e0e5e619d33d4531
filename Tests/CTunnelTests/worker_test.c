/* SPDX-License-Identifier: Apache-2.0 */
/* How the primary of a worker pair waits: spinning, sleeping, and what is counted. poll() and the
 * clock are the test's, so time passes only where the loop lets it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the above */
#include <cmocka.h>

#define poll        fake_poll
#define sched_yield fake_yield
#include "../../CSources/CTunnel/worker.c"

#include "simulation.h"

#define MICROSECOND (NSEC_PER_MSEC / 1000)

/* When packets come to the TUN device, and when the thread is woken for nothing. */
struct event {
    uint64_t at;
    bool packet;
};

static struct {
    const struct event *events;
    size_t count, next;
    unsigned instant, blocking; /* calls that do not wait, and those that do */
} world;

int fake_yield(void)
{
    return 0;
}

int fake_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    struct tunnel *tunnel = sim.node[0].tunnel;
    for (nfds_t i = 0; i < count; i++)
        fds[i].revents = 0;
    sim.now += MICROSECOND;
    if (timeout == 0)
        world.instant++;
    else
        world.blocking++;
    if (world.next == world.count) {
        if (timeout == 0)
            return 0;
        atomic_store(&tunnel->stopping, true);
        return 0;
    }
    const struct event *e = &world.events[world.next];
    if (timeout == 0 && sim.now < e->at)
        return 0;
    if (sim.now < e->at)
        sim.now = e->at;
    world.next++;
    if (e->packet)
        sim_send(0, 1, 0); /* no peer has that address: read, counted, dropped */
    fds[e->packet ? 1 : 0].revents = POLLIN;
    return 1;
}

static void adjust(struct tunnel_options *options)
{
    options->spin_us = 50;
}

/* Runs the loop over `events`, whose times count from now, until it sleeps with none left. */
static struct tunnel_worker_stats run(void (*options)(struct tunnel_options *), bool split,
                                      struct event *events, size_t count)
{
    struct tunnel_stats stats;
    sim_start(1, options);
    struct worker *w = &sim.node[0].tunnel->worker[0];
    uint64_t packets = 0;
    for (size_t i = 0; i < count; i++) {
        events[i].at += sim.now;
        packets += events[i].packet;
    }
    memset(&world, 0, sizeof world);
    world.events = events;
    world.count = count;
    atomic_store(&w->split, split);
    worker_primary(&w->primary);
    assert_int_equal(world.next, count);
    tunnel_get_stats(sim.node[0].tunnel, &stats);
    assert_int_equal(stats.drops[DROP_NO_PEER_FOR_DESTINATION], packets);
    sim_stop();
    return stats.worker[0];
}

static void nobody_spins_who_was_not_asked_to(void **state)
{
    struct event events[] = {{100 * MICROSECOND, true}, {110 * MICROSECOND, true}};
    (void)state;
    struct tunnel_worker_stats stats = run(NULL, false, events, 2);
    assert_int_equal(world.instant, 0);
    assert_int_equal(world.blocking, 3);
    assert_int_equal(stats.spun_ns, 0);
    assert_int_equal(stats.spin_hits, 0);
}

static void a_packet_within_the_wait_finds_the_thread_awake(void **state)
{
    struct event events[] = {
        {100 * MICROSECOND, true}, {130 * MICROSECOND, true}, {175 * MICROSECOND, true}};
    (void)state;
    struct tunnel_worker_stats stats = run(adjust, false, events, 3);
    assert_int_equal(world.blocking, 2); /* for the first, and at the end */
    assert_int_equal(stats.spin_hits, 2);
    /* up to the last packet 75 µs, then 50 more; each poll takes one */
    assert_in_range(stats.spun_ns, 120 * MICROSECOND, 128 * MICROSECOND);
}

static void a_packet_after_the_wait_wakes_it(void **state)
{
    struct event events[] = {{100 * MICROSECOND, true}, {160 * MICROSECOND, true}};
    (void)state;
    struct tunnel_worker_stats stats = run(adjust, false, events, 2);
    assert_int_equal(world.blocking, 3);
    assert_int_equal(stats.spin_hits, 0);
    assert_in_range(stats.spun_ns, 99 * MICROSECOND, 102 * MICROSECOND);
}

/* Else a keepalive timer or a configuration call would burn a CPU. */
static void a_link_without_packets_sleeps_however_often_it_is_woken(void **state)
{
    struct event events[] = {{SECONDS(1), false}, {SECONDS(2), false}, {SECONDS(3), false}};
    (void)state;
    struct tunnel_worker_stats stats = run(adjust, false, events, 3);
    assert_int_equal(world.instant, 0);
    assert_int_equal(stats.spun_ns, 0);
}

static void a_pair_that_split_does_not_spin(void **state)
{
    struct event events[] = {{100 * MICROSECOND, true}, {110 * MICROSECOND, true}};
    (void)state;
    struct tunnel_worker_stats stats = run(adjust, true, events, 2);
    assert_int_equal(world.instant, 0);
    assert_int_equal(stats.spun_ns, 0);
}

static void adjust_far_too_long(struct tunnel_options *options)
{
    options->spin_us = UINT32_MAX;
}

static void the_wait_has_a_limit(void **state)
{
    struct event events[] = {{100 * MICROSECOND, true}};
    (void)state;
    struct tunnel_worker_stats stats = run(adjust_far_too_long, false, events, 1);
    assert_in_range(stats.spun_ns, (uint64_t)TUNNEL_MAX_SPIN_US * MICROSECOND,
                    (uint64_t)TUNNEL_MAX_SPIN_US * MICROSECOND + 2 * MICROSECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_spins_who_was_not_asked_to),
        cmocka_unit_test(a_packet_within_the_wait_finds_the_thread_awake),
        cmocka_unit_test(a_packet_after_the_wait_wakes_it),
        cmocka_unit_test(a_link_without_packets_sleeps_however_often_it_is_woken),
        cmocka_unit_test(a_pair_that_split_does_not_spin),
        cmocka_unit_test(the_wait_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
