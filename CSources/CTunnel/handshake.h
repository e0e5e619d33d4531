/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that is not data: initiations, responses, cookies. Data threads hand messages over and
 * go on; one handshake thread of lower priority does the curve arithmetic.
 */
#ifndef CTUNNEL_HANDSHAKE_H
#define CTUNNEL_HANDSHAKE_H

#include "cookie.h"
#include "endpoint.h"
#include "messages.h"
#include "ratelimit.h"
#include <pthread.h>

struct thread;
struct tunnel;
struct peer;

struct handshake_message {
    struct endpoint from;
    uint64_t arrived_ns;
    uint16_t length;
    _Alignas(8) uint8_t bytes[sizeof(struct message_initiation)]; /* read as wire structs */
};

struct handshake_queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct handshake_message *ring; /* MAX_QUEUED_HANDSHAKES, multi producer, single consumer */
    uint32_t head, count;
    struct peer *initiations_head, *initiations_tail; /* peers that want one, each held */
    bool stopping;

    /* the handshake thread's own */
    struct cookie_checker checker; /* checker_lock: the identity may change */
    pthread_mutex_t checker_lock;
    struct ratelimit *limit;
    uint64_t under_load_until;
};

int handshake_queue_init(struct handshake_queue *queue);
void handshake_queue_destroy(struct handshake_queue *queue);
void handshake_queue_stop(struct handshake_queue *queue);

/* Copies a received handshake message of valid length; full queue: false. Any thread. */
bool handshake_receive(struct tunnel *tunnel, const uint8_t *message, uint32_t length,
                       const struct endpoint *from, uint64_t now);

/* Asks for an initiation to `peer` unless one was sent less than REKEY_TIMEOUT ago. `retry`: the
 * timer repeats; otherwise the attempts start over. Any thread, inside an epoch section or holding
 * the peer. */
void handshake_request(struct peer *peer, bool retry, uint64_t now_ns);

/* Handles what is queued, up to HANDSHAKE_BATCH items of each kind; `wait`: sleeps until there is
 * some. False: stopping, or nothing was there. The handshake thread only. */
#define HANDSHAKE_BATCH 32
bool handshake_step(struct thread *thread, bool wait);

/* A handshake with `peer` is complete: timers, wall clock, counter. */
void handshake_completed(struct thread *thread, struct peer *peer);

#endif
