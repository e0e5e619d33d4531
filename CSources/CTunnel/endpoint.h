/* SPDX-License-Identifier: Apache-2.0 */
/* Where a peer is, and from which of our addresses we talk to it (sticky source, pitfall 49). */
#ifndef CTUNNEL_ENDPOINT_H
#define CTUNNEL_ENDPOINT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct endpoint {
    union {
        sa_family_t family; /* AF_UNSPEC: none */
        struct sockaddr_in v4;
        struct sockaddr_in6 v6; /* sin6_scope_id kept for link-local addresses (pitfall 48) */
    } remote;
    /* Local address packets were last received on; interface 0 and a zero address: let the route
     * decide. Of the remote's family. */
    union {
        struct in_addr v4;
        struct in6_addr v6;
    } source;
    uint32_t source_interface;
};

static inline bool endpoint_is_set(const struct endpoint *e)
{
    return e->remote.family != AF_UNSPEC;
}

static inline void endpoint_clear_source(struct endpoint *e)
{
    memset(&e->source, 0, sizeof e->source);
    e->source_interface = 0;
}

static inline bool endpoint_remote_equal(const struct endpoint *a, const struct endpoint *b)
{
    if (a->remote.family != b->remote.family)
        return false;
    if (a->remote.family == AF_INET)
        return a->remote.v4.sin_addr.s_addr == b->remote.v4.sin_addr.s_addr &&
               a->remote.v4.sin_port == b->remote.v4.sin_port;
    if (a->remote.family == AF_INET6)
        return !memcmp(&a->remote.v6.sin6_addr, &b->remote.v6.sin6_addr, 16) &&
               a->remote.v6.sin6_port == b->remote.v6.sin6_port &&
               a->remote.v6.sin6_scope_id == b->remote.v6.sin6_scope_id;
    return true;
}

/* Remote and source: equal means a received packet teaches nothing new. */
static inline bool endpoint_equal(const struct endpoint *a, const struct endpoint *b)
{
    if (!endpoint_remote_equal(a, b) || a->source_interface != b->source_interface)
        return false;
    return !memcmp(&a->source, &b->source, a->remote.family == AF_INET6 ? 16 : 4);
}

#endif
