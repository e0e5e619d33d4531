/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"
#include "engine.h"
#include "lines.h"
#include <sodium.h>
#include <stdlib.h>

struct peer *peer_create(struct tunnel *tunnel, const uint8_t public_key[KEY_LENGTH])
{
    static const uint8_t no_preshared_key[KEY_LENGTH];
    struct peer *p = lines_alloc(sizeof *p);
    if (!p)
        return NULL;
    p->tunnel = tunnel;
    p->worker = tunnel->peers_created++ % tunnel->worker_count;
    memcpy(p->public_key, public_key, KEY_LENGTH);
    atomic_init(&p->references, 1);
    pthread_mutex_init(&p->lock, NULL);
    pthread_mutex_init(&p->data_lock, NULL);
    noise_handshake_init(&p->handshake, public_key, no_preshared_key);
    cookie_sender_init(&p->cookie, public_key);
    timers_init(&p->timers, &tunnel->timers);
    /* It may have been our peer before, and remembers what we told it then (pitfall 53). */
    pthread_mutex_lock(&tunnel->label_lock);
    p->last_label_seconds = tunnel->label_sent_seconds;
    p->last_label_nanoseconds = tunnel->label_sent_nanoseconds;
    pthread_mutex_unlock(&tunnel->label_lock);
    return p;
}

struct peer *peer_hold(struct peer *peer)
{
    atomic_fetch_add_explicit(&peer->references, 1, memory_order_relaxed);
    return peer;
}

void peer_release(struct peer *peer)
{
    if (atomic_fetch_sub_explicit(&peer->references, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_destroy(&peer->lock);
    pthread_mutex_destroy(&peer->data_lock);
    sodium_memzero(peer, sizeof *peer);
    free(peer);
}

static void peer_epoch_passed(struct epoch_item *item)
{
    peer_release(container_of(item, struct peer, retired));
}

void peer_kill(struct peer *peer)
{
    struct tunnel *tunnel = peer->tunnel;

    /* 1. Nothing new begins: handshakes check `dead` under the lock, events arm no timer. */
    pthread_mutex_lock(&peer->lock);
    atomic_store(&peer->dead, true);
    pthread_mutex_unlock(&peer->lock);
    timers_stop(&peer->timers);

    /* 2. What exists ends; the PSK and the static-static secret go with the handshake. */
    peer_clear_sessions(peer, true);
    pthread_mutex_lock(&peer->lock);
    sodium_memzero(peer->handshake.preshared_key, KEY_LENGTH);
    noise_handshake_identity_changed(&peer->handshake);
    pthread_mutex_unlock(&peer->lock);

    /* 3. Data threads may still see the peer until they leave their sections. */
    epoch_retire(&tunnel->epoch, &peer->retired, peer_epoch_passed);
}

static void retire_slot(struct peer *peer, struct session *_Atomic *slot)
{
    struct session *session = atomic_exchange(slot, NULL);
    if (!session)
        return;
    session_retire(session, peer->tunnel->indices, &peer->tunnel->epoch);
    wake(peer->tunnel->control_wake); /* keys are erased soon, not at the next timer */
}

/* Under peer->lock. */
static void retire_sessions(struct peer *peer)
{
    retire_slot(peer, &peer->previous_session);
    retire_slot(peer, &peer->current_session);
    retire_slot(peer, &peer->next_session);
}

/* Under peer->lock. */
static void forget_handshake(struct peer *peer)
{
    handshake_entry_retire(peer->handshake_entry, peer->tunnel->indices, &peer->tunnel->epoch);
    peer->handshake_entry = NULL;
    noise_handshake_clear(&peer->handshake);
    atomic_store(&peer->last_initiation_sent_ns, 0);
}

void peer_clear_sessions(struct peer *peer, bool drop_staged)
{
    pthread_mutex_lock(&peer->lock);
    retire_sessions(peer);
    forget_handshake(peer);
    if (drop_staged)
        peer_purge_staged(peer);
    pthread_mutex_unlock(&peer->lock);
}

void peer_erase_keys(struct peer *peer, uint64_t now_ns)
{
    pthread_mutex_lock(&peer->lock);
    /* A session made while the control thread was on its way here starts the time anew. */
    if (!session_can_receive(atomic_load(&peer->current_session), now_ns) &&
        !session_can_receive(atomic_load(&peer->next_session), now_ns))
        retire_sessions(peer);
    /* After sleep the first packet may have begun a handshake before this timer ran; whether it
     * succeeds or is given up, its secrets go then. */
    uint64_t last = atomic_load(&peer->last_initiation_sent_ns);
    if (!last || (now_ns > last && now_ns - last >= REKEY_TIMEOUT))
        forget_handshake(peer);
    pthread_mutex_unlock(&peer->lock);
}

struct endpoint peer_endpoint(struct peer *peer)
{
    pthread_mutex_lock(&peer->data_lock);
    struct endpoint endpoint = peer->endpoint;
    pthread_mutex_unlock(&peer->data_lock);
    return endpoint;
}

void peer_set_endpoint(struct peer *peer, const struct endpoint *endpoint)
{
    pthread_mutex_lock(&peer->data_lock);
    if (!endpoint_remote_equal(&peer->endpoint, endpoint))
        atomic_store_explicit(&peer->no_gso, false, memory_order_relaxed);
    peer->endpoint = *endpoint;
    pthread_mutex_unlock(&peer->data_lock);
}

void peer_clear_source(struct peer *peer)
{
    pthread_mutex_lock(&peer->data_lock);
    endpoint_clear_source(&peer->endpoint);
    pthread_mutex_unlock(&peer->data_lock);
}

/* ---- sessions (§6.1: previous, current, next) ---------------------------------------------- */

bool peer_install_session(struct peer *peer, struct noise_session_keys *keys, uint64_t now_ns)
{
    struct tunnel *tunnel = peer->tunnel;
    bool initiator = keys->initiator;
    struct session *s = NULL;
    if (!atomic_load(&peer->dead) && peer->handshake_entry)
        s = session_create(peer, keys, peer->handshake.remote_index, now_ns, tunnel->thread_count);
    if (!s || !index_table_replace(tunnel->indices, &peer->handshake_entry->entry, &s->entry)) {
        sodium_memzero(keys, sizeof *keys);
        session_retire(s, tunnel->indices, &tunnel->epoch);
        return false;
    }
    handshake_entry_retire(peer->handshake_entry, tunnel->indices, &tunnel->epoch);
    peer->handshake_entry = NULL;
    /* The path may be wider by now; a train that it refuses again costs one call. */
    atomic_store_explicit(&peer->no_gso, false, memory_order_relaxed);

    if (!initiator) {
        /* We may send under it only after the other side proved that it has it (pitfall 40). */
        retire_slot(peer, &peer->next_session);
        retire_slot(peer, &peer->previous_session);
        atomic_store(&peer->next_session, s);
        return true;
    }
    struct session *next = atomic_exchange(&peer->next_session, NULL);
    struct session *current = atomic_load(&peer->current_session);
    retire_slot(peer, &peer->previous_session);
    atomic_store(&peer->previous_session, next ? next : current);
    atomic_store(&peer->current_session, s);
    if (next)
        session_retire(current, tunnel->indices, &tunnel->epoch);
    return true;
}

bool peer_promote_session(struct peer *peer, struct session *session)
{
    pthread_mutex_lock(&peer->lock);
    bool was_next = atomic_load(&peer->next_session) == session;
    if (was_next) {
        retire_slot(peer, &peer->previous_session);
        atomic_store(&peer->previous_session, atomic_load(&peer->current_session));
        atomic_store(&peer->current_session, session);
        atomic_store(&peer->next_session, NULL);
    }
    pthread_mutex_unlock(&peer->lock);
    return was_next;
}

/* ---- staging ------------------------------------------------------------------------------- */

static struct staged_packet *unstage_oldest(struct peer *peer)
{
    struct staged_packet *packet = peer->staged_head;
    peer->staged_head = packet->next;
    if (!peer->staged_head)
        peer->staged_tail = NULL;
    peer->staged_count--;
    atomic_fetch_sub(&peer->tunnel->staged_bytes, packet->length);
    return packet;
}

void peer_stage(struct peer *peer, const uint8_t *data, uint32_t length, struct counters *counters)
{
    struct tunnel *tunnel = peer->tunnel;
    struct staged_packet *packet = NULL;
    if (atomic_fetch_add(&tunnel->staged_bytes, length) + length <= MAX_STAGED_BYTES)
        packet = malloc(sizeof *packet + length);
    if (!packet) {
        atomic_fetch_sub(&tunnel->staged_bytes, length);
        count_drop(counters, DROP_STAGED_MEMORY, 1);
        return;
    }
    packet->next = NULL;
    packet->length = length;
    memcpy(packet->data, data, length);

    pthread_mutex_lock(&peer->lock);
    if (atomic_load(&peer->dead) || !atomic_load(&tunnel->up)) {
        pthread_mutex_unlock(&peer->lock);
        atomic_fetch_sub(&tunnel->staged_bytes, length);
        free(packet);
        count_drop(counters, DROP_LINK_DOWN, 1);
        return;
    }
    if (peer->staged_tail)
        peer->staged_tail->next = packet;
    else
        peer->staged_head = packet;
    peer->staged_tail = packet;
    if (++peer->staged_count > MAX_STAGED_PACKETS) {
        free(unstage_oldest(peer));
        count_drop(counters, DROP_STAGED_OVERFLOW, 1);
    }
    atomic_store(&peer->staging, true);
    pthread_mutex_unlock(&peer->lock);
}

uint32_t peer_purge_staged(struct peer *peer)
{
    uint32_t dropped = 0;
    while (peer->staged_head) {
        free(unstage_oldest(peer));
        dropped++;
    }
    if (!peer->flushing)
        atomic_store(&peer->staging, false);
    return dropped;
}

struct staged_packet *peer_unstage(struct peer *peer, uint32_t most, uint32_t *bytes)
{
    struct staged_packet *first = NULL, **link = &first;
    for (*bytes = 0; peer->staged_head && most; most--) {
        *link = unstage_oldest(peer);
        (*link)->next = NULL;
        *bytes += (*link)->length;
        link = &(*link)->next;
    }
    return first;
}
