/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTUNNEL_RECEIVE_H
#define CTUNNEL_RECEIVE_H

#include "engine.h"

/* Buffers of one receiving thread. NULL: out of memory. */
struct receiver *receiver_create(void);
void receiver_destroy(struct receiver *receiver);

/* Receives one batch from `socket`, decrypts it and writes it to the thread's TUN queue. True:
 * there may be more. */
bool receive_batch(struct thread *thread, struct udp_socket *socket);

#endif
