/* SPDX-License-Identifier: Apache-2.0 */
/* Token buckets for handshakes under load: 20 per second, burst 5, per IPv4 address or IPv6 /64. */
#ifndef CTUNNEL_RATELIMIT_H
#define CTUNNEL_RATELIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define RATELIMIT_PER_SECOND 20
#define RATELIMIT_BURST      5
#define RATELIMIT_ENTRIES    65536 /* 8,192 buckets of 8; when full, new sources are refused */

struct ratelimit;

/* Allocates on the first use under load only. NULL: out of memory. */
struct ratelimit *ratelimit_create(void);
void ratelimit_destroy(struct ratelimit *limit);
/* Not thread-safe: used by one handshake worker, or under its lock. `address`: 4 or 16 bytes. */
bool ratelimit_allow(struct ratelimit *limit, uint8_t family, const uint8_t *address,
                     uint64_t now_ns);

#endif
