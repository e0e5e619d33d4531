/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CoDel (RFC 8289): tells when a queue has stood too long. A queue that empties within an interval
 * is a burst and welcome; one whose packets all waited longer than the target for a whole interval
 * stands, and its senders are to slow down: one signal, and more of them, closer together, while
 * that goes on. Pure; the owner of the queue guards it.
 */
#ifndef CTUNNEL_CODEL_H
#define CTUNNEL_CODEL_H

#include "messages.h"
#include <stdbool.h>

/*
 * RFC 8289 §4.2 to §4.4: the target is 5 to 10 % of the interval, the interval a round trip. What
 * queues here is what the CPU cannot encrypt at once: on a network fast enough for that, round
 * trips are short. A longer one sees a few signals in one round trip, which its sender counts as
 * one.
 */
#define CODEL_TARGET   (1 * NSEC_PER_MSEC)
#define CODEL_INTERVAL (20 * NSEC_PER_MSEC)

/*
 * Time between two packets that counts as one during which the queue stood. What is longer, the
 * thread was not scheduled or was at something else: the packets before and after it tell nothing
 * of the time between, so that the interval is made of four looks at least. The RFC takes for
 * granted that who empties the queue is always at it.
 */
#define CODEL_ABSENCE (CODEL_INTERVAL / 4)

/* Zeroed at first. */
struct codel {
    uint64_t above_until_ns; /* signals begin when the wait is above the target until then; 0: it is
                                below */
    uint64_t seen_ns;        /* of the last packet */
    uint64_t next_ns;        /* of the next signal */
    uint32_t count;          /* signals since they began */
    uint32_t count_before;   /* the same when they began */
    bool signalling;
};

/*
 * A packet that waited for `wait_ns` leaves the queue at `now_ns`; `last`: hardly anything is left
 * behind it. True: give its sender the signal (ECN, or the loss of it).
 */
bool codel_signal(struct codel *codel, uint64_t wait_ns, bool last, uint64_t now_ns);

/* Nothing is left in the queue, whoever was last: it does not stand (RFC 8289 §5.6). */
void codel_emptied(struct codel *codel);

#endif
