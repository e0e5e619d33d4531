/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTUNNEL_SEND_H
#define CTUNNEL_SEND_H

#include "engine.h"

/* The outbound slab of one thread; pages it never uses cost nothing. NULL: out of memory. */
struct sender *sender_create(void);
void sender_destroy(struct sender *sender);

/* Reads from the thread's TUN queue and sends one batch (one or two super-packets, or up to
 * MAX_BATCH_PACKETS single packets). True: there may be more. */
bool send_batch(struct thread *thread);
/* Whether frames that were read wait for the next batch: no event of the device tells of those. */
bool send_waits(const struct thread *thread);

/* Sends what waited for a session, in order, ahead of newer packets. Any engine thread, inside an
 * epoch section. */
void send_staged(struct thread *thread, struct peer *peer, uint64_t now);
/* Sends what is staged, or else an empty packet. Asks for a handshake when there is no session. */
void send_keepalive(struct thread *thread, struct peer *peer, uint64_t now);
/* Sends one handshake message to the peer's endpoint. */
void send_handshake(struct thread *thread, struct peer *peer, void *message, size_t length);
/* Sends cookie replies to where the messages came from, at most UDP_MOST_SINGLES. */
void send_cookie_replies(struct thread *thread, const struct udp_single *replies, unsigned count);

#endif
