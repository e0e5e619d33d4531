/* SPDX-License-Identifier: Apache-2.0 */
#include "timers.h"
#include <stdlib.h>
#include <unistd.h>

#define NEVER   UINT64_MAX
#define NOWHERE UINT32_MAX

/* ---- the queue: a binary heap by scheduled instant ----------------------------------------- */

static uint64_t at(const struct timer_queue *q, size_t i)
{
    return atomic_load_explicit(&q->heap[i]->scheduled, memory_order_relaxed);
}

static void place(struct timer_queue *q, size_t i, struct peer_timers *t)
{
    q->heap[i] = t;
    t->position = (uint32_t)i;
}

static void sift_up(struct timer_queue *q, size_t i)
{
    struct peer_timers *t = q->heap[i];
    uint64_t when = at(q, i);
    while (i > 0 && at(q, (i - 1) / 2) > when) {
        place(q, i, q->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    place(q, i, t);
}

static void sift_down(struct timer_queue *q, size_t i)
{
    struct peer_timers *t = q->heap[i];
    uint64_t when = at(q, i);
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= q->count)
            break;
        if (child + 1 < q->count && at(q, child + 1) < at(q, child))
            child++;
        if (at(q, child) >= when)
            break;
        place(q, i, q->heap[child]);
        i = child;
    }
    place(q, i, t);
}

static void leave(struct timer_queue *q, struct peer_timers *t)
{
    if (t->position == NOWHERE)
        return;
    size_t i = t->position;
    struct peer_timers *last = q->heap[--q->count];
    t->position = NOWHERE;
    if (last == t)
        return;
    place(q, i, last);
    sift_up(q, i);
    sift_down(q, last->position);
}

void timer_queue_init(struct timer_queue *q, int wake_fd)
{
    *q = (struct timer_queue){.wake_fd = wake_fd};
    pthread_mutex_init(&q->lock, NULL);
}

void timer_queue_destroy(struct timer_queue *q)
{
    pthread_mutex_destroy(&q->lock);
    free(q->heap);
    q->heap = NULL;
}

struct peer_timers *timer_queue_take(struct timer_queue *q, uint64_t now, uint64_t *next,
                                     void (*hold)(struct peer_timers *timers))
{
    struct peer_timers *t = NULL;
    pthread_mutex_lock(&q->lock);
    *next = q->count ? at(q, 0) : NEVER;
    q->serving = *next <= now;
    if (q->serving) {
        t = q->heap[0];
        leave(q, t);
        /* From here on a data thread that sets a deadline schedules us itself; one that did so
         * before is seen by timers_due(), whose reads come later in the total order. */
        atomic_store(&t->scheduled, NEVER);
        hold(t);
    }
    pthread_mutex_unlock(&q->lock);
    return t;
}

/* Makes the queue look at `t` at `when`, or earlier if it would anyway. */
static void schedule(struct peer_timers *t, uint64_t when)
{
    struct timer_queue *q = t->queue;
    bool earliest = false;

    pthread_mutex_lock(&q->lock);
    if (!atomic_load(&t->stopped) && when < atomic_load(&t->scheduled)) {
        if (t->position == NOWHERE && q->count == q->capacity) {
            size_t capacity = q->capacity ? 2 * q->capacity : 16;
            struct peer_timers **heap = reallocarray(q->heap, capacity, sizeof *heap);
            if (!heap) /* the peer's next event tries again */
                goto out;
            q->heap = heap;
            q->capacity = capacity;
        }
        atomic_store(&t->scheduled, when);
        if (t->position == NOWHERE)
            place(q, q->count++, t);
        sift_up(q, t->position);
        earliest = t->position == 0 && !q->serving;
    }
out:
    pthread_mutex_unlock(&q->lock);
    if (earliest) {
        uint64_t one = 1;
        ssize_t written = write(q->wake_fd, &one, sizeof one);
        (void)written; /* a full eventfd is awake already */
    }
}

static void arm(struct peer_timers *t, enum timer timer, uint64_t when)
{
    atomic_store(&t->deadline[timer], when);
    if (when < atomic_load(&t->scheduled))
        schedule(t, when);
}

/* The common case reads only: no shared cache line is dirtied per batch. */
static void disarm(struct peer_timers *t, enum timer timer)
{
    if (atomic_load_explicit(&t->deadline[timer], memory_order_relaxed))
        atomic_store(&t->deadline[timer], 0);
}

static bool pending(const struct peer_timers *t, enum timer timer)
{
    return atomic_load_explicit(&t->deadline[timer], memory_order_relaxed) != 0;
}

static bool stopped(const struct peer_timers *t)
{
    return atomic_load_explicit(&t->stopped, memory_order_relaxed);
}

void timers_init(struct peer_timers *t, struct timer_queue *queue)
{
    *t = (struct peer_timers){.queue = queue, .position = NOWHERE};
    atomic_init(&t->scheduled, NEVER);
}

static void clear_deadlines(struct peer_timers *t)
{
    for (int i = 0; i < TIMER_COUNT; i++)
        atomic_store(&t->deadline[i], 0);
}

void timers_stop(struct peer_timers *t)
{
    pthread_mutex_lock(&t->queue->lock);
    atomic_store(&t->stopped, true);
    leave(t->queue, t);
    atomic_store(&t->scheduled, NEVER);
    clear_deadlines(t);
    atomic_store(&t->attempts, 0);
    atomic_store(&t->keepalive_again, false);
    atomic_store(&t->rekeyed_on_receive, false);
    pthread_mutex_unlock(&t->queue->lock);
}

void timers_resume(struct peer_timers *t, uint64_t now)
{
    /* A data thread that was past its check of `stopped` may have stored a deadline which nobody
     * scheduled; it would count as pending for ever. */
    if (stopped(t))
        clear_deadlines(t);
    atomic_store(&t->stopped, false);
    if (atomic_load(&t->persistent_seconds))
        arm(t, TIMER_PERSISTENT_KEEPALIVE, now);
}

/* ---- events -------------------------------------------------------------------------------- */

void timers_data_sent(struct peer_timers *t, uint64_t now)
{
    if (!pending(t, TIMER_NEW_HANDSHAKE) && !stopped(t))
        arm(t, TIMER_NEW_HANDSHAKE, now + NEW_HANDSHAKE_TIME + timers_jitter(t, now));
}

void timers_data_received(struct peer_timers *t, uint64_t now)
{
    if (stopped(t))
        return;
    if (!pending(t, TIMER_KEEPALIVE))
        arm(t, TIMER_KEEPALIVE, now + KEEPALIVE_TIMEOUT);
    else if (!atomic_load_explicit(&t->keepalive_again, memory_order_relaxed))
        atomic_store(&t->keepalive_again, true);
}

void timers_authenticated_sent(struct peer_timers *t)
{
    disarm(t, TIMER_KEEPALIVE);
}

void timers_authenticated_received(struct peer_timers *t)
{
    disarm(t, TIMER_NEW_HANDSHAKE);
}

void timers_authenticated_traversal(struct peer_timers *t, uint64_t now)
{
    uint64_t seconds = atomic_load_explicit(&t->persistent_seconds, memory_order_relaxed);
    if (seconds && !stopped(t))
        arm(t, TIMER_PERSISTENT_KEEPALIVE, now + seconds * NSEC_PER_SEC);
}

void timers_handshake_initiated(struct peer_timers *t, uint64_t now)
{
    if (!stopped(t))
        arm(t, TIMER_RETRANSMIT_HANDSHAKE, now + REKEY_TIMEOUT + timers_jitter(t, now));
}

void timers_handshake_complete(struct peer_timers *t)
{
    disarm(t, TIMER_RETRANSMIT_HANDSHAKE);
    atomic_store(&t->attempts, 0);
    atomic_store(&t->rekeyed_on_receive, false);
}

void timers_session_derived(struct peer_timers *t, uint64_t now)
{
    if (!stopped(t))
        arm(t, TIMER_ERASE_KEYS, now + ERASE_AFTER_TIME);
}

void timers_set_persistent(struct peer_timers *t, uint16_t seconds, uint64_t now)
{
    uint16_t before = atomic_exchange(&t->persistent_seconds, seconds);
    if (!seconds)
        disarm(t, TIMER_PERSISTENT_KEEPALIVE);
    else if (seconds != before && !stopped(t))
        arm(t, TIMER_PERSISTENT_KEEPALIVE, before ? now + seconds * NSEC_PER_SEC : now);
}

/* ---- decision ------------------------------------------------------------------------------ */

/* True once when the deadline passed; a data thread that moved it meanwhile wins. */
static bool expired(struct peer_timers *t, enum timer timer, uint64_t now)
{
    uint64_t when = atomic_load(&t->deadline[timer]);
    return when && when <= now && atomic_compare_exchange_strong(&t->deadline[timer], &when, 0);
}

static uint32_t retransmit_due(struct peer_timers *t, uint64_t now)
{
    if (atomic_load(&t->attempts) <= MAX_HANDSHAKE_ATTEMPTS) {
        atomic_fetch_add(&t->attempts, 1);
        return TIMER_ACT_RETRY_HANDSHAKE;
    }
    /* Given up: nothing more is tried until there is data to send, and keys that still exist are
     * erased in time. */
    disarm(t, TIMER_KEEPALIVE);
    if (!pending(t, TIMER_ERASE_KEYS))
        arm(t, TIMER_ERASE_KEYS, now + ERASE_AFTER_TIME);
    return TIMER_ACT_GIVE_UP;
}

static uint32_t keepalive_due(struct peer_timers *t, uint64_t now)
{
    if (atomic_exchange(&t->keepalive_again, false))
        arm(t, TIMER_KEEPALIVE, now + KEEPALIVE_TIMEOUT);
    return TIMER_ACT_KEEPALIVE;
}

static void reschedule(struct peer_timers *t)
{
    uint64_t next = NEVER;
    for (int i = 0; i < TIMER_COUNT; i++) {
        uint64_t when = atomic_load(&t->deadline[i]);
        if (when && when < next)
            next = when;
    }
    if (next != NEVER)
        schedule(t, next);
}

uint32_t timers_due(struct peer_timers *t, uint64_t now)
{
    uint32_t actions = 0;
    if (stopped(t))
        return 0;
    if (expired(t, TIMER_RETRANSMIT_HANDSHAKE, now))
        actions |= retransmit_due(t, now);
    if (expired(t, TIMER_KEEPALIVE, now))
        actions |= keepalive_due(t, now);
    if (expired(t, TIMER_NEW_HANDSHAKE, now))
        actions |= TIMER_ACT_NEW_HANDSHAKE;
    if (expired(t, TIMER_ERASE_KEYS, now))
        actions |= TIMER_ACT_ERASE_KEYS;
    if (expired(t, TIMER_PERSISTENT_KEEPALIVE, now))
        actions |= TIMER_ACT_KEEPALIVE;
    reschedule(t);
    return actions;
}
