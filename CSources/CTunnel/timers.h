/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer's timers (§6): named events say what happened, deadlines follow from them, and the control
 * thread asks what is due. All policy is here; no timer is armed elsewhere.
 *
 * Data threads call the events once per batch. An event mostly finds its deadline already set and
 * only reads; it wakes the control thread only where a deadline moved earlier than the one the
 * thread already sleeps for. Instants are CLOCK_BOOTTIME nanoseconds, so sleep counts (pitfall 54).
 */
#ifndef CTUNNEL_TIMERS_H
#define CTUNNEL_TIMERS_H

#include "messages.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum timer {
    TIMER_RETRANSMIT_HANDSHAKE, /* no answer to our initiation */
    TIMER_KEEPALIVE,            /* data came in, nothing went out */
    TIMER_NEW_HANDSHAKE,        /* data went out, nothing came back */
    TIMER_ERASE_KEYS,           /* no new session for 540 s */
    TIMER_PERSISTENT_KEEPALIVE,
    TIMER_COUNT
};

/* What the control thread must do. */
enum timer_action {
    TIMER_ACT_RETRY_HANDSHAKE = 1 << 0, /* clear the sticky source, initiate again */
    TIMER_ACT_GIVE_UP = 1 << 1,         /* drop what is staged */
    TIMER_ACT_KEEPALIVE = 1 << 2,
    TIMER_ACT_NEW_HANDSHAKE = 1 << 3, /* clear the sticky source, initiate */
    TIMER_ACT_ERASE_KEYS = 1 << 4,
};

struct timer_queue;

struct peer_timers {
    _Atomic uint64_t deadline[TIMER_COUNT]; /* 0: not pending */
    _Atomic uint64_t scheduled;             /* when the queue looks at us; UINT64_MAX: never */
    _Atomic uint32_t attempts;              /* initiations repeated so far */
    _Atomic uint16_t persistent_seconds;    /* 0: off */
    _Atomic bool keepalive_again;           /* data came in while TIMER_KEEPALIVE was pending */
    _Atomic bool rekeyed_on_receive;        /* one late rekey per session from the receiving side */
    _Atomic bool stopped;                   /* link down or peer removed: events arm nothing */
    struct timer_queue *queue;
    uint32_t position; /* in the heap, guarded by the queue's lock; UINT32_MAX: not in it */
};

/* The peers' next deadlines, earliest first. */
struct timer_queue {
    pthread_mutex_t lock;
    struct peer_timers **heap;
    size_t count, capacity;
    bool serving; /* the control thread is between two takes and will ask again */
    int wake_fd;  /* written when the earliest deadline moved earlier, unless it is serving */
};

void timer_queue_init(struct timer_queue *queue, int wake_fd);
void timer_queue_destroy(struct timer_queue *queue);
/* Takes one peer whose scheduled instant passed out of the queue, or returns NULL and sets `*next`
 * to the earliest scheduled instant (UINT64_MAX: none). `hold` is called on it under the lock. */
struct peer_timers *timer_queue_take(struct timer_queue *queue, uint64_t now, uint64_t *next,
                                     void (*hold)(struct peer_timers *timers));

void timers_init(struct peer_timers *timers, struct timer_queue *queue);
/* Clears every deadline and leaves the queue; events arm nothing until timers_resume(). */
void timers_stop(struct peer_timers *timers);
/* Events count again; with a persistent keepalive one is due at once. */
void timers_resume(struct peer_timers *timers, uint64_t now);

/* ---- events: call each once per batch ------------------------------------------------------ */

/* Data (not a keepalive) was sent in an authenticated packet. */
void timers_data_sent(struct peer_timers *timers, uint64_t now);
/* Data (not a keepalive) was received in an authenticated packet. */
void timers_data_received(struct peer_timers *timers, uint64_t now);
/* Anything authenticated was sent: data, keepalive or handshake. */
void timers_authenticated_sent(struct peer_timers *timers);
/* Anything authenticated was received. */
void timers_authenticated_received(struct peer_timers *timers);
/* Anything authenticated was sent or received. */
void timers_authenticated_traversal(struct peer_timers *timers, uint64_t now);
/* A handshake initiation was sent. */
void timers_handshake_initiated(struct peer_timers *timers, uint64_t now);
/* A handshake is complete: the response was accepted, or the first data under a new session. */
void timers_handshake_complete(struct peer_timers *timers);
/* New session keys exist. */
void timers_session_derived(struct peer_timers *timers, uint64_t now);
/* The persistent keepalive interval is `seconds`; switched on, the first one is due at once. */
void timers_set_persistent(struct peer_timers *timers, uint16_t seconds, uint64_t now);

/* Below REKEY_TIMEOUT_JITTER, of the peer and the instant: spreads peers that began together.
 * Nothing secret depends on it, so it costs no system call. */
uint64_t timers_jitter(const struct peer_timers *timers, uint64_t now);

/* ---- decision ------------------------------------------------------------------------------ */

/* What is due now (enum timer_action); updates the deadlines and schedules the peer again. Called
 * by the control thread after timer_queue_take(). */
uint32_t timers_due(struct peer_timers *timers, uint64_t now);

#endif
