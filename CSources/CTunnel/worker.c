/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of a worker pair. At low load the primary serves both directions, so that a packet in
 * and its answer out cost one wake-up; when it no longer sleeps, it hands the receiving direction
 * to the secondary, and takes it back when that one idles. The hand-over is a flag set between two
 * batches, so packets of a flow are never handled by both at once and keep their order.
 *
 * Where it was asked for (spin_us), the primary does not sleep at once when there is nothing to do:
 * while it serves both directions it asks again and again, until so much time passed since the last
 * packet. Then the next packet finds it awake. An idle link sleeps: only packets begin a spin.
 *
 * A loop that mostly sleeps has short slices (slice.h), so that a packet that comes alone gets the
 * CPU at once. One that does not sleep moves bulk: there it would only interrupt those who make the
 * load, and find smaller batches (one TCP stream 0.95 of its rate).
 */
#include "engine.h"
#include "receive.h"
#include "send.h"
#include "slice.h"
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define BATCHES_PER_POLL 4
#define METER_WINDOW     (10 * NSEC_PER_MSEC)
#define SPLIT_BUSY       85 /* percent of a window not slept, with work in both directions */
#define JOIN_BUSY        25 /* percent: the secondary hands back */
#define JOIN_IDLE_MS     50 /* and when nothing came for this long */

/* How busy a loop was: share of a window it did not sleep. */
struct meter {
    uint64_t window_start, slept, sent, received;
};

static int sleep_in_poll(struct thread *t, struct pollfd *fds, nfds_t count, int timeout_ms,
                         struct meter *meter)
{
    if (timeout_ms) /* no key material outlives its session in a sleeping thread */
        aead_forget(t->aead);
    uint64_t before = clock_now();
    int ready = poll(fds, count, timeout_ms);
    meter->slept += clock_now() - before;
    counter_add(&t->counters.wakeups, 1);
    return ready;
}

/* Until `until`. Returns as poll() does, 0: nothing came. The wait is the meter's sleep: a thread
 * that spins has time for the other direction. */
static int spin_in_poll(struct thread *t, struct pollfd *fds, nfds_t count, uint64_t until,
                        struct meter *meter)
{
    uint64_t before = clock_now(), now = before;
    int ready = 0;
    while (now < until && !(ready = poll(fds, count, 0))) {
        sched_yield(); /* on few CPUs the packet's sender wants this one */
        now = clock_now();
    }
    now = clock_now();
    meter->slept += now - before;
    counter_add(&t->counters.spun_ns, now - before);
    return ready;
}

/* Percent of the window that ended, or -1 while it has not. */
static int meter_read(struct meter *m)
{
    uint64_t now = clock_now();
    uint64_t window = now - m->window_start;
    if (window < METER_WINDOW)
        return -1;
    int busy = (int)(100 - (m->slept < window ? m->slept : window) * 100 / window);
    return busy;
}

static void meter_restart(struct meter *m)
{
    *m = (struct meter){.window_start = clock_now()};
}

/* Whether a loop that was so `busy` moves bulk, and the slices for it. */
static bool take_slices(bool bulk, int busy)
{
    bool now = busy >= (bulk ? JOIN_BUSY : SPLIT_BUSY);
    if (now != bulk)
        slice_set_short(!now);
    return now;
}

static void drain(const struct pollfd *fd)
{
    uint64_t count;
    if (fd->revents & POLLIN) {
        ssize_t n = read(fd->fd, &count, sizeof count);
        (void)n; /* empty already: another wake-up raced with us */
    }
}

static uint64_t send_batches(struct thread *t)
{
    uint64_t batches = 0;
    while (batches < BATCHES_PER_POLL && send_batch(t))
        batches++;
    return batches + 1;
}

static uint64_t receive_batches(struct thread *t, struct pollfd *fd, struct udp_socket *socket)
{
    uint64_t batches = 0;
    if (!fd->revents)
        return 0;
    while (batches < BATCHES_PER_POLL && receive_batch(t, socket))
        batches++;
    return batches + 1;
}

void *worker_primary(void *argument)
{
    struct thread *t = argument;
    struct worker *w = container_of(t, struct worker, primary);
    const uint64_t spin = t->tunnel->options.spin_us * (NSEC_PER_MSEC / 1000);
    uint64_t spin_until = 0;
    struct meter meter;
    bool bulk = false;
    enum { WAKE, TUN, V4, V6, COUNT };
    struct pollfd fds[COUNT] = {
        [WAKE] = {.fd = w->primary_wake, .events = POLLIN},
        [TUN] = {.fd = t->queue->fd, .events = POLLIN},
        [V4] = {.events = POLLIN},
        [V6] = {.events = POLLIN},
    };

    slice_set_short(true);
    meter_restart(&meter);
    while (!atomic_load_explicit(&t->tunnel->stopping, memory_order_acquire)) {
        bool split = atomic_load_explicit(&w->split, memory_order_acquire);
        fds[V4].fd = split ? -1 : t->sockets->v4.fd;
        fds[V6].fd = split ? -1 : t->sockets->v6.fd;
        int ready = 0;
        bool waits = send_waits(t);
        if (spin && !split && !waits)
            ready = spin_in_poll(t, fds, COUNT, spin_until, &meter);
        bool spun = ready > 0;
        if (!ready)
            ready = sleep_in_poll(t, fds, COUNT, waits ? 0 : -1, &meter);
        if (ready < 0)
            continue;
        if (spin && (fds[TUN].revents || fds[V4].revents || fds[V6].revents)) {
            spin_until = clock_now() + spin;
            counter_add(&t->counters.spin_hits, spun);
        }
        drain(&fds[WAKE]);
        uint64_t received = 0;
        if (!split) {
            received += receive_batches(t, &fds[V4], &t->sockets->v4);
            received += receive_batches(t, &fds[V6], &t->sockets->v6);
        }
        /* The stack answers within the write to the device (an echo, an ACK): what it answered is
         * there already, without asking poll() for it. */
        bool readable = fds[TUN].revents != 0 || waits;
        if (readable || received)
            meter.sent += send_batches(t) - !readable;
        meter.received += received;
        int busy = meter_read(&meter);
        if (busy < 0)
            continue;
        bulk = take_slices(bulk, busy);
        if (!split && busy >= SPLIT_BUSY && meter.sent && meter.received) {
            atomic_store_explicit(&w->split, true, memory_order_release);
            wake(w->secondary_wake);
        }
        meter_restart(&meter);
    }
    return NULL;
}

static void hand_back(struct worker *w)
{
    atomic_store_explicit(&w->split, false, memory_order_release);
    wake(w->primary_wake);
}

void *worker_secondary(void *argument)
{
    struct thread *t = argument;
    struct worker *w = container_of(t, struct worker, secondary);
    struct meter meter;
    bool bulk = false;
    enum { WAKE, V4, V6, COUNT };
    struct pollfd fds[COUNT] = {
        [WAKE] = {.fd = w->secondary_wake, .events = POLLIN},
        [V4] = {.events = POLLIN},
        [V6] = {.events = POLLIN},
    };

    slice_set_short(true);
    meter_restart(&meter);
    while (!atomic_load_explicit(&t->tunnel->stopping, memory_order_acquire)) {
        bool split = atomic_load_explicit(&w->split, memory_order_acquire);
        fds[V4].fd = split ? t->sockets->v4.fd : -1;
        fds[V6].fd = split ? t->sockets->v6.fd : -1;
        int ready = sleep_in_poll(t, fds, COUNT, split ? JOIN_IDLE_MS : -1, &meter);
        drain(&fds[WAKE]);
        if (!split) {
            meter_restart(&meter);
            continue;
        }
        if (ready > 0) {
            receive_batches(t, &fds[V4], &t->sockets->v4);
            receive_batches(t, &fds[V6], &t->sockets->v6);
        }
        int busy = meter_read(&meter);
        if (ready == 0 || (busy >= 0 && busy < JOIN_BUSY))
            hand_back(w);
        if (busy >= 0) {
            bulk = take_slices(bulk, busy);
            meter_restart(&meter);
        }
    }
    return NULL;
}
