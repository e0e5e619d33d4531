/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of one thread: written by it alone, read by anyone. Every reject has a name here and a
 * counter, never a log line per packet.
 */
#ifndef CTUNNEL_COUNTERS_H
#define CTUNNEL_COUNTERS_H

#include "include/tunnel.h"
#include <stdatomic.h>

#define DROP_REASONS(X)                                                                            \
    /* outbound, from the TUN device */                                                            \
    X(TUN_MALFORMED, "tun_malformed")                                                              \
    X(TUN_GSO_INVALID, "tun_gso_invalid")                                                          \
    X(TUN_GSO_TOO_MANY_SEGMENTS, "tun_gso_too_many_segments")                                      \
    X(TUN_QUEUE_CONGESTED, "tun_queue_congested")                                                  \
    X(NO_PEER_FOR_DESTINATION, "no_peer_for_destination")                                          \
    X(NO_ENDPOINT, "no_endpoint")                                                                  \
    X(STAGED_OVERFLOW, "staged_overflow")                                                          \
    X(STAGED_MEMORY, "staged_memory")                                                              \
    X(STAGED_GIVEN_UP, "staged_given_up")                                                          \
    X(COUNTER_EXHAUSTED, "counter_exhausted")                                                      \
    X(UDP_SEND_FAILED, "udp_send_failed")                                                          \
    X(UDP_BUFFER_FULL, "udp_buffer_full")                                                          \
    X(LINK_DOWN, "link_down")                                                                      \
    /* inbound, from UDP */                                                                        \
    X(UDP_TRUNCATED, "udp_truncated")                                                              \
    X(UDP_QUEUE_CONGESTED, "udp_queue_congested")                                                  \
    X(MESSAGE_TOO_SHORT, "message_too_short")                                                      \
    X(MESSAGE_UNKNOWN_TYPE, "message_unknown_type")                                                \
    X(HANDSHAKE_WRONG_LENGTH, "handshake_wrong_length")                                            \
    X(HANDSHAKE_QUEUE_FULL, "handshake_queue_full")                                                \
    X(HANDSHAKE_STALE, "handshake_stale")                                                          \
    X(MAC1_INVALID, "mac1_invalid")                                                                \
    X(MAC2_MISSING, "mac2_missing")                                                                \
    X(RATE_LIMITED, "rate_limited")                                                                \
    X(HANDSHAKE_INVALID, "handshake_invalid")                                                      \
    X(HANDSHAKE_UNKNOWN_PEER, "handshake_unknown_peer")                                            \
    X(HANDSHAKE_REPLAYED, "handshake_replayed")                                                    \
    X(HANDSHAKE_FLOODED, "handshake_flooded")                                                      \
    X(COOKIE_INVALID, "cookie_invalid")                                                            \
    X(UNKNOWN_INDEX, "unknown_index")                                                              \
    X(SESSION_EXPIRED, "session_expired")                                                          \
    X(TAG_INVALID, "tag_invalid")                                                                  \
    X(COUNTER_REPLAYED, "counter_replayed")                                                        \
    X(INNER_MALFORMED, "inner_malformed")                                                          \
    X(INNER_SOURCE_NOT_ALLOWED, "inner_source_not_allowed")                                        \
    X(TUN_WRITE_FAILED, "tun_write_failed")

#define FALLBACK_REASONS(X)                                                                        \
    X(TUN_WITHOUT_VNET_HDR, "tun_without_vnet_hdr")                                                \
    X(TUN_WITHOUT_TSO, "tun_without_tso")                                                          \
    X(TUN_WITHOUT_USO, "tun_without_uso")                                                          \
    X(TUN_TCP_MERGE_REFUSED, "tun_tcp_merge_refused")                                              \
    X(TUN_UDP_MERGE_REFUSED, "tun_udp_merge_refused")                                              \
    X(UDP_GSO_EIO, "udp_gso_eio")                                                                  \
    X(UDP_GSO_EINVAL, "udp_gso_einval")                                                            \
    X(UDP_GSO_EMSGSIZE, "udp_gso_emsgsize")                                                        \
    X(UDP_WITHOUT_GSO, "udp_without_gso")                                                          \
    X(UDP_WITHOUT_GRO, "udp_without_gro")                                                          \
    X(UDP_WITHOUT_SENDMMSG, "udp_without_sendmmsg")                                                \
    X(UDP_SOURCE_CLEARED, "udp_source_cleared")                                                    \
    X(UDP_IPV6_UNAVAILABLE, "udp_ipv6_unavailable")                                                \
    X(STEERING_UNAVAILABLE, "steering_unavailable")

enum drop_reason {
#define X(name, text) DROP_##name,
    DROP_REASONS(X)
#undef X
        DROP_COUNT
};

enum fallback_reason {
#define X(name, text) FALLBACK_##name,
    FALLBACK_REASONS(X)
#undef X
        FALLBACK_COUNT
};

_Static_assert(DROP_COUNT <= TUNNEL_MAX_DROPS, "the public array holds every reason");
_Static_assert(FALLBACK_COUNT <= TUNNEL_MAX_FALLBACKS, "the public array holds every reason");

typedef _Atomic uint64_t counter;

struct direction_counters {
    counter packets, bytes, batches, system_calls;
    counter histogram[TUNNEL_BATCH_BUCKETS];
};

struct counters {
    _Alignas(64) counter drops[DROP_COUNT];
    counter fallbacks[FALLBACK_COUNT];
    struct direction_counters tx, rx;
    counter handshakes_initiated, handshakes_completed, handshake_messages_received,
        cookie_replies_sent, wakeups, spun_ns, spin_hits;
};

/* Single writer: a plain add that readers see whole. */
static inline void counter_add(counter *c, uint64_t n)
{
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static inline uint64_t counter_get(const counter *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}

static inline void count_drop(struct counters *counters, enum drop_reason reason, uint64_t n)
{
    counter_add(&counters->drops[reason], n);
}

static inline void count_fallback(struct counters *counters, enum fallback_reason reason)
{
    counter_add(&counters->fallbacks[reason], 1);
}

static inline void count_batch(struct direction_counters *c, uint64_t packets, uint64_t bytes)
{
    unsigned bucket = packets ? 63 - (unsigned)__builtin_clzll(packets) : 0;
    counter_add(&c->packets, packets);
    counter_add(&c->bytes, bytes);
    counter_add(&c->batches, 1);
    counter_add(&c->histogram[bucket < TUNNEL_BATCH_BUCKETS ? bucket : TUNNEL_BATCH_BUCKETS - 1],
                1);
}

#endif
