/* SPDX-License-Identifier: Apache-2.0 */
/* State out: snapshots of the configuration and sums of every thread's counters. */
#include "engine.h"
#include <sodium.h>
#include <stdlib.h>
#include <time.h>

void tunnel_get_device(struct tunnel *tunnel, struct tunnel_device_state *out)
{
    *out = (struct tunnel_device_state){0};
    tunnel_follow_link(tunnel);
    pthread_mutex_lock(&tunnel->config_lock);
    pthread_rwlock_rdlock(&tunnel->identity_lock);
    out->has_private_key = tunnel->identity.has_key;
    memcpy(out->private_key, tunnel->identity.private_key, KEY_LENGTH);
    memcpy(out->public_key, tunnel->identity.public_key, KEY_LENGTH);
    pthread_rwlock_unlock(&tunnel->identity_lock);
    out->listen_port = tunnel->udp.port;
    out->fwmark = tunnel->udp.fwmark;
    out->mtu = atomic_load(&tunnel->mtu);
    out->up = atomic_load(&tunnel->up);
    out->peer_count = tunnel->peer_count;
    pthread_mutex_unlock(&tunnel->config_lock);
}

static struct tunnel_endpoint public_endpoint(const struct endpoint *e)
{
    struct tunnel_endpoint out = {0};
    if (e->remote.family == AF_INET) {
        out.family = 4;
        out.port = ntohs(e->remote.v4.sin_port);
        memcpy(out.address, &e->remote.v4.sin_addr, 4);
    } else if (e->remote.family == AF_INET6) {
        out.family = 6;
        out.port = ntohs(e->remote.v6.sin6_port);
        out.scope_id = e->remote.v6.sin6_scope_id;
        memcpy(out.address, &e->remote.v6.sin6_addr, 16);
    }
    return out;
}

static void peer_state(struct peer *peer, struct tunnel_peer_state *out)
{
    struct endpoint endpoint = peer_endpoint(peer);
    memcpy(out->public_key, peer->public_key, KEY_LENGTH);
    out->endpoint = public_endpoint(&endpoint);
    pthread_mutex_lock(&peer->lock);
    memcpy(out->preshared_key, peer->handshake.preshared_key, KEY_LENGTH);
    out->last_handshake_seconds = peer->last_handshake_seconds;
    out->last_handshake_nanoseconds = peer->last_handshake_nanoseconds;
    pthread_mutex_unlock(&peer->lock);
    out->rx_bytes = atomic_load_explicit(&peer->rx_bytes, memory_order_relaxed);
    out->tx_bytes = atomic_load_explicit(&peer->tx_bytes, memory_order_relaxed);
    out->keepalive = atomic_load_explicit(&peer->timers.persistent_seconds, memory_order_relaxed);
}

/* Both arrays grow to what the peer with most prefixes needs. */
struct prefix_buffer {
    struct allowedips_prefix *own;
    struct tunnel_prefix *given;
    size_t capacity;
};

static size_t list_prefixes(const struct peer *peer, struct prefix_buffer *b)
{
    size_t count = peer->allowed_ips.count;
    if (count > b->capacity) {
        struct allowedips_prefix *own = reallocarray(b->own, count, sizeof *own);
        if (own)
            b->own = own;
        struct tunnel_prefix *given = reallocarray(b->given, count, sizeof *given);
        if (given)
            b->given = given;
        if (!own || !given)
            return 0;
        b->capacity = count;
    }
    count = allowedips_list(&peer->allowed_ips, b->own, b->capacity);
    for (size_t i = 0; i < count; i++) {
        b->given[i] =
            (struct tunnel_prefix){.family = b->own[i].family, .length = b->own[i].length};
        memcpy(b->given[i].address, b->own[i].address, sizeof b->given[i].address);
    }
    return count;
}

void tunnel_for_each_peer(struct tunnel *tunnel, tunnel_peer_visitor visit, void *context)
{
    struct prefix_buffer buffer = {0};
    struct tunnel_peer_state state;
    bool go_on = true;

    pthread_mutex_lock(&tunnel->config_lock);
    for (struct peer *p = tunnel->first_peer; p && go_on; p = p->next) {
        size_t count = list_prefixes(p, &buffer);
        peer_state(p, &state);
        go_on = visit(context, &state, buffer.given, count);
    }
    pthread_mutex_unlock(&tunnel->config_lock);
    sodium_memzero(&state, sizeof state);
    free(buffer.own);
    free(buffer.given);
}

/* ---- statistics ---------------------------------------------------------------------------- */

static void add_direction(struct tunnel_direction_stats *to, const struct direction_counters *from)
{
    to->packets += counter_get(&from->packets);
    to->bytes += counter_get(&from->bytes);
    to->batches += counter_get(&from->batches);
    to->system_calls += counter_get(&from->system_calls);
    for (int i = 0; i < TUNNEL_BATCH_BUCKETS; i++)
        to->histogram[i] += counter_get(&from->histogram[i]);
}

static void add_thread(struct tunnel_stats *out, const struct counters *c)
{
    for (int i = 0; i < DROP_COUNT; i++)
        out->drops[i] += counter_get(&c->drops[i]);
    for (int i = 0; i < FALLBACK_COUNT; i++)
        out->fallbacks[i] += counter_get(&c->fallbacks[i]);
    out->handshakes_initiated += counter_get(&c->handshakes_initiated);
    out->handshakes_completed += counter_get(&c->handshakes_completed);
    out->handshake_messages_received += counter_get(&c->handshake_messages_received);
    out->cookie_replies_sent += counter_get(&c->cookie_replies_sent);
}

static uint64_t thread_cpu_ns(const struct thread *t)
{
    clockid_t clock;
    struct timespec used;
    if (!t->started || pthread_getcpuclockid(t->id, &clock) || clock_gettime(clock, &used))
        return 0;
    return (uint64_t)used.tv_sec * NSEC_PER_SEC + (uint64_t)used.tv_nsec;
}

static void ladder(struct tunnel *tunnel, struct tunnel_stats *out)
{
    struct udp_socket *socket = &tunnel->udp.pair[0].v4;
    if (socket->fd < 0)
        socket = &tunnel->udp.pair[0].v6;
    out->vnet_hdr = tunnel->tun.vnet_hdr;
    out->tun_tso = tunnel->tun.tso;
    out->tun_uso = tunnel->tun.uso;
    out->tun_tcp_merge = atomic_load(&tunnel->tun.merge_tcp);
    out->tun_udp_merge = atomic_load(&tunnel->tun.merge_udp);
    out->udp_gso = atomic_load(&socket->gso);
    out->udp_gro = atomic_load(&socket->gro);
    out->sendmmsg = atomic_load(&socket->sendmmsg);
    out->steering = tunnel->udp.steering;
}

static uint32_t count_sessions(struct tunnel *tunnel)
{
    uint32_t sessions = 0;
    for (struct peer *p = tunnel->first_peer; p; p = p->next)
        sessions += (atomic_load(&p->previous_session) != NULL) +
                    (atomic_load(&p->current_session) != NULL) +
                    (atomic_load(&p->next_session) != NULL);
    return sessions;
}

void tunnel_get_stats(struct tunnel *tunnel, struct tunnel_stats *out)
{
    *out = (struct tunnel_stats){.workers = tunnel->worker_count};
    strncpy(out->aead, tunnel->aead->name, sizeof out->aead - 1);
    tunnel_follow_link(tunnel);
    pthread_mutex_lock(&tunnel->config_lock);
    ladder(tunnel, out);
    out->sessions = count_sessions(tunnel);
    add_thread(out, &tunnel->control.counters);
    add_thread(out, &tunnel->handshake.counters);
    out->control_wakeups = counter_get(&tunnel->control.counters.wakeups);
    out->staged_bytes = atomic_load(&tunnel->staged_bytes);
    for (unsigned i = 0; i < tunnel->worker_count; i++) {
        struct worker *w = &tunnel->worker[i];
        struct tunnel_worker_stats *s = &out->worker[i];
        add_thread(out, &w->primary.counters);
        add_thread(out, &w->secondary.counters);
        add_direction(&s->tx, &w->primary.counters.tx);
        add_direction(&s->tx, &w->secondary.counters.tx);
        add_direction(&s->rx, &w->primary.counters.rx);
        add_direction(&s->rx, &w->secondary.counters.rx);
        s->tx_cpu_ns = thread_cpu_ns(&w->primary);
        s->rx_cpu_ns = thread_cpu_ns(&w->secondary);
        s->spun_ns = counter_get(&w->primary.counters.spun_ns);
        s->spin_hits = counter_get(&w->primary.counters.spin_hits);
        s->split = atomic_load(&w->split);
    }
    pthread_mutex_unlock(&tunnel->config_lock);
}

const char *tunnel_drop_name(size_t reason)
{
    static const char *const names[] = {
#define X(name, text) text,
        DROP_REASONS(X)
#undef X
    };
    return reason < DROP_COUNT ? names[reason] : NULL;
}

const char *tunnel_fallback_name(size_t reason)
{
    static const char *const names[] = {
#define X(name, text) text,
        FALLBACK_REASONS(X)
#undef X
    };
    return reason < FALLBACK_COUNT ? names[reason] : NULL;
}
