/* SPDX-License-Identifier: Apache-2.0 */
/* Sliding window over counters (RFC 6479). Not thread-safe: the session's lock guards it. */
#ifndef CTUNNEL_REPLAY_H
#define CTUNNEL_REPLAY_H

#include "messages.h"
#include <stdbool.h>

/* Zero-initialised is ready. */
struct replay_window {
    uint64_t newest; /* one past the greatest counter accepted */
    uint64_t bitmap[REPLAY_BITS / 64];
};

/* True and remembered: fresh. False: seen before, more than REPLAY_WINDOW behind, or at or past
 * REJECT_AFTER_MESSAGES. Call only for authenticated packets (pitfall 38). */
bool replay_accept(struct replay_window *window, uint64_t counter);

#endif
