/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration in: device and peer changes. Every function here runs under config_lock. */
#include "engine.h"
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>

/* ---- peers by public key ------------------------------------------------------------------- */

static struct peer **bucket(struct tunnel *tunnel, const uint8_t *public_key)
{
    uint64_t hash;
    crypto_shorthash((uint8_t *)&hash, public_key, KEY_LENGTH, tunnel->peer_hash_key);
    return &tunnel->peer_hash[hash & (tunnel->peer_hash_size - 1)];
}

struct peer *tunnel_find_peer(struct tunnel *tunnel, const uint8_t public_key[KEY_LENGTH])
{
    if (!tunnel->peer_hash_size)
        return NULL;
    struct peer *p = *bucket(tunnel, public_key);
    while (p && memcmp(p->public_key, public_key, KEY_LENGTH))
        p = p->hash_next;
    return p;
}

/* Under peers_lock for writing. */
static bool grow_hash(struct tunnel *tunnel)
{
    size_t size = tunnel->peer_hash_size ? 2 * tunnel->peer_hash_size : 16;
    struct peer **table = calloc(size, sizeof *table);
    if (!table)
        return false;
    free(tunnel->peer_hash);
    tunnel->peer_hash = table;
    tunnel->peer_hash_size = size;
    for (struct peer *p = tunnel->first_peer; p; p = p->next) {
        struct peer **b = bucket(tunnel, p->public_key);
        p->hash_next = *b;
        *b = p;
    }
    return true;
}

static bool link_peer(struct tunnel *tunnel, struct peer *peer)
{
    pthread_rwlock_wrlock(&tunnel->peers_lock);
    bool fits = tunnel->peer_count < tunnel->peer_hash_size || grow_hash(tunnel);
    if (fits) {
        struct peer **b = bucket(tunnel, peer->public_key);
        peer->hash_next = *b;
        *b = peer;
        peer->previous = tunnel->last_peer;
        if (tunnel->last_peer)
            tunnel->last_peer->next = peer;
        else
            tunnel->first_peer = peer;
        tunnel->last_peer = peer;
        tunnel->peer_count++;
    }
    pthread_rwlock_unlock(&tunnel->peers_lock);
    return fits;
}

static void unlink_peer(struct tunnel *tunnel, struct peer *peer)
{
    pthread_rwlock_wrlock(&tunnel->peers_lock);
    struct peer **b = bucket(tunnel, peer->public_key);
    while (*b != peer)
        b = &(*b)->hash_next;
    *b = peer->hash_next;
    if (peer->previous)
        peer->previous->next = peer->next;
    else
        tunnel->first_peer = peer->next;
    if (peer->next)
        peer->next->previous = peer->previous;
    else
        tunnel->last_peer = peer->previous;
    tunnel->peer_count--;
    pthread_rwlock_unlock(&tunnel->peers_lock);
}

void tunnel_remove_peer(struct tunnel *tunnel, struct peer *peer)
{
    unlink_peer(tunnel, peer);
    allowedips_remove_all(tunnel->allowed_ips, &peer->allowed_ips);
    peer_kill(peer);
}

static struct peer *add_peer(struct tunnel *tunnel, const uint8_t *public_key)
{
    if (tunnel->peer_count >= MAX_PEERS)
        return NULL;
    struct peer *peer = peer_create(tunnel, public_key);
    if (!peer)
        return NULL;
    if (!atomic_load(&tunnel->up))
        timers_stop(&peer->timers);
    if (!link_peer(tunnel, peer)) {
        peer_release(peer);
        return NULL;
    }
    return peer;
}

/* ---- the device ---------------------------------------------------------------------------- */

/* Sessions of the former key may still receive until they expire, but send no more. */
static void expire_sessions(struct peer *peer)
{
    struct tunnel *tunnel = peer->tunnel;
    pthread_mutex_lock(&peer->lock);
    struct session *current = atomic_load(&peer->current_session);
    struct session *next = atomic_load(&peer->next_session);
    if (current)
        atomic_store(&current->send_valid, false);
    if (next)
        atomic_store(&next->send_valid, false);
    handshake_entry_retire(peer->handshake_entry, tunnel->indices, &tunnel->epoch);
    peer->handshake_entry = NULL;
    noise_handshake_clear(&peer->handshake);
    noise_handshake_identity_changed(&peer->handshake);
    atomic_store(&peer->last_initiation_sent_ns, 0);
    pthread_mutex_unlock(&peer->lock);
}

static void set_private_key(struct tunnel *tunnel, const uint8_t *private_key)
{
    struct noise_identity identity = {0};
    noise_identity_set(&identity, private_key);

    pthread_rwlock_wrlock(&tunnel->identity_lock);
    bool same = identity.has_key == tunnel->identity.has_key &&
                !sodium_memcmp(identity.private_key, tunnel->identity.private_key, KEY_LENGTH);
    if (!same) {
        tunnel->identity = identity;
        for (struct peer *p = tunnel->first_peer; p; p = p->next)
            expire_sessions(p);
    }
    pthread_rwlock_unlock(&tunnel->identity_lock);
    sodium_memzero(identity.private_key, KEY_LENGTH);
    if (same)
        return;

    pthread_mutex_lock(&tunnel->handshakes.checker_lock);
    cookie_checker_init(&tunnel->handshakes.checker, identity.public_key);
    pthread_mutex_unlock(&tunnel->handshakes.checker_lock);
    struct peer *ourselves = tunnel_find_peer(tunnel, identity.public_key);
    if (identity.has_key && ourselves)
        tunnel_remove_peer(tunnel, ourselves);
}

/* Until every data thread has come back from poll(), or about a second has passed on a machine that
 * does not let them. */
static void await_workers(struct tunnel *tunnel)
{
    const struct timespec moment = {.tv_nsec = NSEC_PER_MSEC / 10};
    uint64_t before[TUNNEL_MAX_WORKERS][2];

    for (unsigned i = 0; i < tunnel->worker_count; i++) {
        before[i][0] = counter_get(&tunnel->worker[i].primary.counters.wakeups);
        before[i][1] = counter_get(&tunnel->worker[i].secondary.counters.wakeups);
    }
    for (unsigned i = 0, waits = 0;
         i < tunnel->worker_count && waits < 10000 && !atomic_load(&tunnel->stopping);) {
        const struct worker *w = &tunnel->worker[i];
        if (counter_get(&w->primary.counters.wakeups) != before[i][0] &&
            counter_get(&w->secondary.counters.wakeups) != before[i][1]) {
            i++;
        } else {
            wake_workers(tunnel); /* again: one that spins takes it without a wake-up */
            nanosleep(&moment, NULL);
            waits++;
        }
    }
}

/* A thread inside a system call holds the socket it is there with until it returns (fs/select.c for
 * poll()), though another has its number by now. So a port that was ours a moment ago can still be
 * taken, by ourselves. */
int tunnel_bind(struct tunnel *tunnel, uint16_t port)
{
    int error = udp_bind(&tunnel->udp, port, &tunnel->control.counters);
    for (int attempts = 0; error == -EADDRINUSE && tunnel->started && attempts < 3; attempts++) {
        await_workers(tunnel);
        error = udp_bind(&tunnel->udp, port, &tunnel->control.counters);
    }
    if (!error)
        wake_workers(tunnel);
    return error;
}

int tunnel_set_device(struct tunnel *tunnel, const struct tunnel_device_change *change)
{
    int error = 0;
    pthread_mutex_lock(&tunnel->config_lock);
    if (change->fields & TUNNEL_DEVICE_PRIVATE_KEY)
        set_private_key(tunnel, change->private_key);
    if (change->fields & TUNNEL_DEVICE_LISTEN_PORT &&
        (change->listen_port != tunnel->udp.port || !change->listen_port ||
         !atomic_load(&tunnel->udp.bound)))
        error = tunnel_bind(tunnel, change->listen_port);
    if (!error && change->fields & TUNNEL_DEVICE_FWMARK)
        error = udp_set_fwmark(&tunnel->udp, change->fwmark);
    pthread_mutex_unlock(&tunnel->config_lock);
    wake(tunnel->control_wake);
    return error;
}

/* ---- one peer ------------------------------------------------------------------------------ */

static void set_preshared_key(struct peer *peer, const uint8_t key[KEY_LENGTH])
{
    pthread_mutex_lock(&peer->lock);
    memcpy(peer->handshake.preshared_key, key, KEY_LENGTH);
    pthread_mutex_unlock(&peer->lock);
}

static int set_endpoint(struct peer *peer, const struct tunnel_endpoint *from)
{
    struct endpoint e = {0};
    if (from->family == 4) {
        e.remote.v4.sin_family = AF_INET;
        e.remote.v4.sin_port = htons(from->port);
        memcpy(&e.remote.v4.sin_addr, from->address, 4);
    } else if (from->family == 6) {
        e.remote.v6.sin6_family = AF_INET6;
        e.remote.v6.sin6_port = htons(from->port);
        e.remote.v6.sin6_scope_id = from->scope_id;
        memcpy(&e.remote.v6.sin6_addr, from->address, 16);
    } else {
        return -EINVAL;
    }
    struct endpoint before = peer_endpoint(peer);
    if (!endpoint_remote_equal(&before, &e)) /* the same again keeps the sticky source */
        peer_set_endpoint(peer, &e);
    return 0;
}

static int set_prefixes(struct tunnel *tunnel, struct peer *peer,
                        const struct tunnel_peer_change *change)
{
    int error = 0;
    for (size_t i = 0; i < change->prefix_count && !error; i++) {
        const struct tunnel_prefix *from = &change->prefixes[i];
        struct allowedips_prefix prefix = {.family = from->family, .length = from->length};
        memcpy(prefix.address, from->address, sizeof prefix.address);
        if (from->remove)
            allowedips_remove(tunnel->allowed_ips, &prefix, &peer->allowed_ips);
        else
            error = allowedips_insert(tunnel->allowed_ips, &prefix, &peer->allowed_ips);
    }
    return error;
}

/* First mention within a replacement: what is not said goes back to its default, without touching
 * what stays the same. */
static void replace_begin(struct peer *peer, const struct tunnel_peer_change *change)
{
    static const uint8_t none[KEY_LENGTH];
    peer->keep = true;
    allowedips_mark(&peer->allowed_ips);
    if (!(change->fields & TUNNEL_PEER_PRESHARED_KEY))
        set_preshared_key(peer, none);
    if (!(change->fields & TUNNEL_PEER_KEEPALIVE))
        timers_set_persistent(&peer->timers, 0, clock_now());
}

static int change_peer(struct tunnel *tunnel, struct peer *peer,
                       const struct tunnel_peer_change *change)
{
    int error = 0;
    if (tunnel->replacing && !peer->keep)
        replace_begin(peer, change);
    if (change->fields & TUNNEL_PEER_PRESHARED_KEY)
        set_preshared_key(peer, change->preshared_key);
    if (change->fields & TUNNEL_PEER_ENDPOINT)
        error = set_endpoint(peer, &change->endpoint);
    if (!error && change->fields & TUNNEL_PEER_REPLACE_ALLOWED_IPS)
        allowedips_mark(&peer->allowed_ips);
    if (!error)
        error = set_prefixes(tunnel, peer, change);
    if (!error && change->fields & TUNNEL_PEER_REPLACE_ALLOWED_IPS)
        allowedips_sweep(tunnel->allowed_ips, &peer->allowed_ips);
    if (!error && change->fields & TUNNEL_PEER_KEEPALIVE)
        timers_set_persistent(&peer->timers, change->keepalive, clock_now());
    return error;
}

static bool is_ourselves(struct tunnel *tunnel, const uint8_t *public_key)
{
    pthread_rwlock_rdlock(&tunnel->identity_lock);
    bool same =
        tunnel->identity.has_key && !memcmp(tunnel->identity.public_key, public_key, KEY_LENGTH);
    pthread_rwlock_unlock(&tunnel->identity_lock);
    return same;
}

int tunnel_set_peer(struct tunnel *tunnel, const struct tunnel_peer_change *change)
{
    int error = 0;
    if (is_ourselves(tunnel, change->public_key))
        return 0;
    pthread_mutex_lock(&tunnel->config_lock);
    struct peer *peer = tunnel_find_peer(tunnel, change->public_key);
    if (change->fields & TUNNEL_PEER_REMOVE) {
        if (peer)
            tunnel_remove_peer(tunnel, peer);
    } else if (peer || !(change->fields & TUNNEL_PEER_UPDATE_ONLY)) {
        if (!peer)
            peer = add_peer(tunnel, change->public_key);
        error = peer ? change_peer(tunnel, peer, change) : -ENOMEM;
    }
    pthread_mutex_unlock(&tunnel->config_lock);
    return error;
}

/* ---- replacement of all peers -------------------------------------------------------------- */

int tunnel_replace_peers_begin(struct tunnel *tunnel)
{
    pthread_mutex_lock(&tunnel->config_lock);
    int error = tunnel->replacing ? -EBUSY : 0;
    if (!error) {
        tunnel->replacing = true;
        for (struct peer *p = tunnel->first_peer; p; p = p->next)
            p->keep = false;
    }
    pthread_mutex_unlock(&tunnel->config_lock);
    return error;
}

static void replace_end(struct tunnel *tunnel, bool commit)
{
    pthread_mutex_lock(&tunnel->config_lock);
    struct peer *next;
    for (struct peer *p = tunnel->first_peer; tunnel->replacing && commit && p; p = next) {
        next = p->next;
        if (p->keep)
            allowedips_sweep(tunnel->allowed_ips, &p->allowed_ips);
        else
            tunnel_remove_peer(tunnel, p);
    }
    tunnel->replacing = false;
    pthread_mutex_unlock(&tunnel->config_lock);
    wake(tunnel->control_wake);
}

void tunnel_replace_peers_commit(struct tunnel *tunnel)
{
    replace_end(tunnel, true);
}

void tunnel_replace_peers_abort(struct tunnel *tunnel)
{
    replace_end(tunnel, false);
}

/* ---- TAI64N floor -------------------------------------------------------------------------- */

void tunnel_get_timestamp_floor(struct tunnel *tunnel, uint64_t *seconds, uint32_t *nanoseconds)
{
    pthread_mutex_lock(&tunnel->label_lock);
    *seconds = tunnel->label_sent_seconds;
    *nanoseconds = tunnel->label_sent_nanoseconds;
    pthread_mutex_unlock(&tunnel->label_lock);
}

void tunnel_set_timestamp_floor(struct tunnel *tunnel, uint64_t seconds, uint32_t nanoseconds)
{
    pthread_mutex_lock(&tunnel->label_lock);
    if (seconds > tunnel->label_floor_seconds ||
        (seconds == tunnel->label_floor_seconds && nanoseconds > tunnel->label_floor_nanoseconds)) {
        tunnel->label_floor_seconds = seconds;
        tunnel->label_floor_nanoseconds = nanoseconds;
    }
    pthread_mutex_unlock(&tunnel->label_lock);
}
