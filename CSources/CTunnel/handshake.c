/* SPDX-License-Identifier: Apache-2.0 */
#include "handshake.h"
#include "engine.h"
#include "send.h"
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

/* ---- the queue ----------------------------------------------------------------------------- */

int handshake_queue_init(struct handshake_queue *q)
{
    *q = (struct handshake_queue){0};
    pthread_mutex_init(&q->lock, NULL);
    pthread_mutex_init(&q->checker_lock, NULL);
    pthread_cond_init(&q->filled, NULL);
    q->ring = malloc(MAX_QUEUED_HANDSHAKES * sizeof *q->ring); /* touched only as it fills */
    q->limit = ratelimit_create();
    return q->ring && q->limit ? 0 : -ENOMEM;
}

void handshake_queue_destroy(struct handshake_queue *q)
{
    while (q->initiations_head) {
        struct peer *peer = q->initiations_head;
        q->initiations_head = peer->initiation_next;
        peer_release(peer);
    }
    sodium_memzero(&q->checker, sizeof q->checker);
    ratelimit_destroy(q->limit);
    free(q->ring);
    pthread_cond_destroy(&q->filled);
    pthread_mutex_destroy(&q->checker_lock);
    pthread_mutex_destroy(&q->lock);
}

void handshake_queue_stop(struct handshake_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->stopping = true;
    pthread_cond_broadcast(&q->filled);
    pthread_mutex_unlock(&q->lock);
}

bool handshake_receive(struct tunnel *tunnel, const uint8_t *message, uint32_t length,
                       const struct endpoint *from, uint64_t now)
{
    struct handshake_queue *q = &tunnel->handshakes;
    pthread_mutex_lock(&q->lock);
    bool fits = q->count < MAX_QUEUED_HANDSHAKES;
    if (fits) {
        struct handshake_message *m = &q->ring[(q->head + q->count++) % MAX_QUEUED_HANDSHAKES];
        m->from = *from;
        m->arrived_ns = now;
        m->length = (uint16_t)length;
        memcpy(m->bytes, message, length);
        pthread_cond_signal(&q->filled);
    }
    pthread_mutex_unlock(&q->lock);
    return fits;
}

static bool initiated_recently(struct peer *peer, uint64_t now)
{
    uint64_t last = atomic_load_explicit(&peer->last_initiation_sent_ns, memory_order_relaxed);
    return last && now - last < REKEY_TIMEOUT;
}

void handshake_request(struct peer *peer, bool retry, uint64_t now)
{
    struct handshake_queue *q = &peer->tunnel->handshakes;
    if (!retry && atomic_load_explicit(&peer->timers.attempts, memory_order_relaxed))
        atomic_store(&peer->timers.attempts, 0);
    if (initiated_recently(peer, now) || atomic_load_explicit(&peer->dead, memory_order_relaxed))
        return;
    pthread_mutex_lock(&q->lock);
    if (!peer->initiation_queued && !q->stopping) {
        peer->initiation_queued = true;
        peer->initiation_next = NULL;
        peer_hold(peer);
        if (q->initiations_head)
            q->initiations_tail->initiation_next = peer;
        else
            q->initiations_head = peer;
        q->initiations_tail = peer;
        pthread_cond_signal(&q->filled);
    }
    pthread_mutex_unlock(&q->lock);
}

/* What one step handles. A flood costs the lock, the clock and a system call for answers once per
 * batch instead of once per message. */
struct work {
    struct peer *initiate[HANDSHAKE_BATCH]; /* each held */
    struct handshake_message message[HANDSHAKE_BATCH];
    unsigned initiations, messages;
    uint32_t backlog; /* messages that waited */

    struct message_cookie_reply reply[HANDSHAKE_BATCH];
    struct udp_single to_send[HANDSHAKE_BATCH];
    unsigned replies;
};
static_assert(HANDSHAKE_BATCH <= UDP_MOST_SINGLES, "the replies go in one call");

/* Sleeps for it if `wait`. False: stopping, or nothing there. */
static bool take_work(struct handshake_queue *q, bool wait, struct work *work)
{
    work->initiations = work->messages = work->replies = 0;
    pthread_mutex_lock(&q->lock);
    while (wait && !q->stopping && !q->count && !q->initiations_head)
        pthread_cond_wait(&q->filled, &q->lock);
    bool go_on = !q->stopping && (q->count || q->initiations_head);
    work->backlog = q->count;
    while (go_on && q->initiations_head && work->initiations < HANDSHAKE_BATCH) {
        struct peer *peer = q->initiations_head;
        q->initiations_head = peer->initiation_next;
        peer->initiation_queued = false;
        work->initiate[work->initiations++] = peer;
    }
    while (go_on && q->count && work->messages < HANDSHAKE_BATCH) {
        work->message[work->messages++] = q->ring[q->head];
        q->head = (q->head + 1) % MAX_QUEUED_HANDSHAKES;
        q->count--;
    }
    pthread_mutex_unlock(&q->lock);
    return go_on;
}

/* ---- TAI64N labels (§5.1) ------------------------------------------------------------------ */

static bool later(uint64_t s1, uint32_t n1, uint64_t s2, uint32_t n2)
{
    return s1 > s2 || (s1 == s2 && n1 > n2);
}

/* One step of a label's resolution: its low 24 bits of nanoseconds are always zero. */
static void next_label(uint64_t *seconds, uint32_t *nanoseconds)
{
    *nanoseconds = (*nanoseconds | 0xffffff) + 1;
    if (*nanoseconds >= NSEC_PER_SEC) {
        *seconds += 1;
        *nanoseconds = 0;
    }
}

/* Now, but above what this peer has seen from us and above the persisted floor, whatever the wall
 * clock does (pitfall 54, case C78). Under peer->lock. */
static void draw_label(struct peer *peer, uint8_t label[TAI64N_LENGTH])
{
    struct tunnel *tunnel = peer->tunnel;
    struct timespec wall;
    clock_wall(&wall);
    uint64_t s = (uint64_t)wall.tv_sec;
    uint32_t n = (uint32_t)wall.tv_nsec & ~0xffffffu;

    if (!later(s, n, peer->last_label_seconds, peer->last_label_nanoseconds)) {
        s = peer->last_label_seconds;
        n = peer->last_label_nanoseconds;
        next_label(&s, &n);
    }
    pthread_mutex_lock(&tunnel->label_lock);
    if (!later(s, n, tunnel->label_floor_seconds, tunnel->label_floor_nanoseconds)) {
        s = tunnel->label_floor_seconds;
        n = tunnel->label_floor_nanoseconds;
        next_label(&s, &n);
    }
    if (later(s, n, tunnel->label_sent_seconds, tunnel->label_sent_nanoseconds)) {
        tunnel->label_sent_seconds = s;
        tunnel->label_sent_nanoseconds = n;
    }
    pthread_mutex_unlock(&tunnel->label_lock);
    peer->last_label_seconds = s;
    peer->last_label_nanoseconds = n;
    noise_tai64n(label, s, n);
}

/* ---- what we send -------------------------------------------------------------------------- */

/* A fresh receiver index for the handshake that begins; the former one is forgotten. Under
 * peer->lock. 0: dead, or out of memory. */
static uint32_t renew_index(struct peer *peer)
{
    struct tunnel *tunnel = peer->tunnel;
    handshake_entry_retire(peer->handshake_entry, tunnel->indices, &tunnel->epoch);
    tunnel->index_worker = peer->worker;
    peer->handshake_entry =
        atomic_load(&peer->dead) ? NULL : handshake_entry_create(peer, tunnel->indices);
    return peer->handshake_entry ? peer->handshake_entry->entry.index : 0;
}

static void initiate(struct thread *t, struct peer *peer, uint64_t now)
{
    struct tunnel *tunnel = t->tunnel;
    struct message_initiation message;
    uint8_t label[TAI64N_LENGTH];
    bool created = false;

    struct endpoint endpoint = peer_endpoint(peer);
    if (!atomic_load(&tunnel->up) || !endpoint_is_set(&endpoint))
        return;
    pthread_rwlock_rdlock(&tunnel->identity_lock);
    pthread_mutex_lock(&peer->lock);
    if (!initiated_recently(peer, now)) {
        /* Also when nothing comes of it (no private key, a peer's key of low order): every packet
         * asks, and only one in five seconds may cost curve arithmetic. */
        atomic_store(&peer->last_initiation_sent_ns, now);
        uint32_t index = renew_index(peer);
        if (index) {
            draw_label(peer, label);
            created = noise_create_initiation(&peer->handshake, &tunnel->identity, index, label,
                                              &message);
        }
        if (created)
            cookie_add_macs(&peer->cookie, &message, sizeof message, now);
    }
    pthread_mutex_unlock(&peer->lock);
    pthread_rwlock_unlock(&tunnel->identity_lock);
    if (!created)
        return;
    timers_authenticated_traversal(&peer->timers, now);
    timers_authenticated_sent(&peer->timers);
    send_handshake(t, peer, &message, sizeof message);
    timers_handshake_initiated(&peer->timers, now);
    counter_add(&t->counters.handshakes_initiated, 1);
}

void handshake_completed(struct thread *t, struct peer *peer)
{
    struct timespec wall;
    clock_wall(&wall);
    pthread_mutex_lock(&peer->lock);
    peer->last_handshake_seconds = wall.tv_sec;
    peer->last_handshake_nanoseconds = (uint32_t)wall.tv_nsec;
    pthread_mutex_unlock(&peer->lock);
    timers_handshake_complete(&peer->timers);
    counter_add(&t->counters.handshakes_completed, 1);
}

/* ---- what we receive ----------------------------------------------------------------------- */

static void message_accepted(struct peer *peer, const struct handshake_message *m, uint64_t now)
{
    peer_set_endpoint(peer, &m->from);
    atomic_fetch_add_explicit(&peer->rx_bytes, m->length, memory_order_relaxed);
    timers_authenticated_received(&peer->timers);
    timers_authenticated_traversal(&peer->timers, now);
}

/* Answers under the two locks of a handshake; true: `response` is ready. */
static bool respond(struct peer *peer, uint64_t now, struct message_response *response)
{
    struct noise_session_keys keys;
    uint32_t index = renew_index(peer);
    if (!index || !noise_create_response(&peer->handshake, index, response))
        return false;
    cookie_add_macs(&peer->cookie, response, sizeof *response, now);
    return noise_begin_session(&peer->handshake, &keys) && peer_install_session(peer, &keys, now);
}

static enum noise_result consume_initiation(struct tunnel *tunnel, struct peer *peer,
                                            const struct noise_initiation *opened, uint64_t now,
                                            struct message_response *response)
{
    enum noise_result result = NOISE_INVALID;
    pthread_mutex_lock(&peer->lock);
    if (!atomic_load(&peer->dead)) {
        result = noise_consume_initiation(&peer->handshake, &tunnel->identity, opened, now);
        if (result == NOISE_OK && !respond(peer, now, response))
            result = NOISE_INVALID;
    }
    pthread_mutex_unlock(&peer->lock);
    return result;
}

static struct peer *hold_peer_by_key(struct tunnel *tunnel, const uint8_t *public_key)
{
    pthread_rwlock_rdlock(&tunnel->peers_lock);
    struct peer *peer = tunnel_find_peer(tunnel, public_key);
    if (peer)
        peer_hold(peer);
    pthread_rwlock_unlock(&tunnel->peers_lock);
    return peer;
}

static void receive_initiation(struct thread *t, const struct handshake_message *m, uint64_t now)
{
    static const enum drop_reason reject[] = {
        [NOISE_INVALID] = DROP_HANDSHAKE_INVALID,
        [NOISE_REPLAYED] = DROP_HANDSHAKE_REPLAYED,
        [NOISE_FLOODED] = DROP_HANDSHAKE_FLOODED,
    };
    struct tunnel *tunnel = t->tunnel;
    struct noise_initiation opened;
    struct message_response response;
    enum noise_result result = NOISE_INVALID;
    struct peer *peer = NULL;

    pthread_rwlock_rdlock(&tunnel->identity_lock);
    bool valid = noise_open_initiation(&tunnel->identity,
                                       (const struct message_initiation *)m->bytes, &opened);
    if (valid)
        peer = hold_peer_by_key(tunnel, opened.remote_static);
    if (peer)
        result = consume_initiation(tunnel, peer, &opened, now, &response);
    pthread_rwlock_unlock(&tunnel->identity_lock);
    sodium_memzero(&opened, sizeof opened);

    if (!peer) {
        count_drop(&t->counters, valid ? DROP_HANDSHAKE_UNKNOWN_PEER : DROP_HANDSHAKE_INVALID, 1);
        return;
    }
    if (result == NOISE_OK) {
        message_accepted(peer, m, now);
        timers_session_derived(&peer->timers, now);
        timers_authenticated_sent(&peer->timers);
        send_handshake(t, peer, &response, sizeof response);
    } else {
        count_drop(&t->counters, reject[result], 1);
    }
    peer_release(peer);
}

/* The peer that waits for an answer under this index, held. */
static struct peer *hold_peer_by_index(struct tunnel *tunnel, uint32_t index)
{
    struct index_entry *entry = index_table_lookup(tunnel->indices, index);
    if (!entry)
        return NULL;
    return peer_hold(entry->kind == INDEX_HANDSHAKE
                         ? container_of(entry, struct handshake_entry, entry)->peer
                         : container_of(entry, struct session, entry)->peer);
}

static bool consume_response(struct tunnel *tunnel, struct peer *peer,
                             const struct message_response *response, uint64_t now)
{
    struct noise_session_keys keys;
    pthread_rwlock_rdlock(&tunnel->identity_lock);
    pthread_mutex_lock(&peer->lock);
    bool ok =
        peer->handshake_entry && peer->handshake_entry->entry.index == response->receiver_index &&
        noise_consume_response(&peer->handshake, &tunnel->identity, response) &&
        noise_begin_session(&peer->handshake, &keys) && peer_install_session(peer, &keys, now);
    pthread_mutex_unlock(&peer->lock);
    pthread_rwlock_unlock(&tunnel->identity_lock);
    return ok;
}

static void receive_response(struct thread *t, const struct handshake_message *m, uint64_t now)
{
    const struct message_response *response = (const struct message_response *)m->bytes;
    struct peer *peer = hold_peer_by_index(t->tunnel, response->receiver_index);
    if (!peer) {
        count_drop(&t->counters, DROP_UNKNOWN_INDEX, 1);
        return;
    }
    if (consume_response(t->tunnel, peer, response, now)) {
        message_accepted(peer, m, now);
        timers_session_derived(&peer->timers, now);
        handshake_completed(t, peer);
        /* Data, or an empty packet, tells the responder that we have the keys. */
        send_keepalive(t, peer, now);
    } else {
        count_drop(&t->counters, DROP_HANDSHAKE_INVALID, 1);
    }
    peer_release(peer);
}

static void receive_cookie_reply(struct thread *t, const struct handshake_message *m, uint64_t now)
{
    const struct message_cookie_reply *reply = (const struct message_cookie_reply *)m->bytes;
    struct peer *peer = hold_peer_by_index(t->tunnel, reply->receiver_index);
    bool consumed = false;
    if (peer) {
        pthread_mutex_lock(&peer->lock);
        consumed = cookie_consume_reply(&peer->cookie, reply, now);
        pthread_mutex_unlock(&peer->lock);
        peer_release(peer);
    }
    if (!consumed)
        count_drop(&t->counters, DROP_COOKIE_INVALID, 1);
}

/* ---- macs and load (§5.3) ------------------------------------------------------------------ */

/* Address and port as cookies are bound to them. */
static size_t source_bytes(const struct endpoint *from, uint8_t out[18])
{
    bool v6 = from->remote.family == AF_INET6;
    size_t size = v6 ? 16 : 4;
    memcpy(out, v6 ? (const void *)&from->remote.v6.sin6_addr : &from->remote.v4.sin_addr, size);
    memcpy(out + size, v6 ? &from->remote.v6.sin6_port : &from->remote.v4.sin_port, 2);
    return size + 2;
}

static bool under_load(struct handshake_queue *q, uint32_t backlog, uint64_t now)
{
    if (backlog >= UNDER_LOAD_QUEUE)
        q->under_load_until = now + UNDER_LOAD_HOLD;
    return now < q->under_load_until;
}

/* The reply leaves at the end of the batch; `work` holds the message until then. */
static void answer_with_cookie(struct handshake_queue *q, const struct handshake_message *m,
                               struct work *work, const uint8_t *source, size_t size, uint64_t now)
{
    uint32_t sender_index = ((const struct message_initiation *)m->bytes)->sender_index;
    struct message_cookie_reply *reply = &work->reply[work->replies];
    cookie_create_reply(&q->checker, m->bytes, m->length, sender_index, source, size, now, reply);
    work->to_send[work->replies++] =
        (struct udp_single){.to = &m->from, .data = reply, .length = sizeof *reply};
}

/* True: go on with the message. Under load a sender without a cookie gets one instead. */
static bool macs_accept(struct thread *t, const struct handshake_message *m, struct work *work,
                        bool loaded, uint64_t now)
{
    struct handshake_queue *q = &t->tunnel->handshakes;
    uint8_t source[18];
    size_t size = source_bytes(&m->from, source);
    bool accepted = false;

    pthread_mutex_lock(&q->checker_lock);
    if (!cookie_mac1_valid(&q->checker, m->bytes, m->length)) {
        count_drop(&t->counters, DROP_MAC1_INVALID, 1); /* and silence (pitfall 51) */
    } else if (!loaded) {
        accepted = true;
    } else if (!cookie_mac2_valid(&q->checker, m->bytes, m->length, source, size, now)) {
        answer_with_cookie(q, m, work, source, size, now);
        count_drop(&t->counters, DROP_MAC2_MISSING, 1);
    } else {
        accepted = ratelimit_allow(q->limit, size == 18 ? 6 : 4, source, now);
        if (!accepted)
            count_drop(&t->counters, DROP_RATE_LIMITED, 1);
    }
    pthread_mutex_unlock(&q->checker_lock);
    return accepted;
}

static void receive_message(struct thread *t, const struct handshake_message *m, struct work *work,
                            bool loaded, uint64_t now)
{
    uint32_t type;
    memcpy(&type, m->bytes, sizeof type);
    /* Its sender begins anew before an answer is there: work for this one would be for nothing, and
     * make the next late too. Thousands of peers at once would never get out of that. */
    if (now > m->arrived_ns && now - m->arrived_ns >= STALE_HANDSHAKE) {
        count_drop(&t->counters, DROP_HANDSHAKE_STALE, 1);
        return;
    }
    if (type == MESSAGE_COOKIE_REPLY)
        receive_cookie_reply(t, m, now);
    else if (!macs_accept(t, m, work, loaded, now))
        return;
    else if (type == MESSAGE_INITIATION)
        receive_initiation(t, m, now);
    else
        receive_response(t, m, now);
}

bool handshake_step(struct thread *t, bool wait)
{
    struct tunnel *tunnel = t->tunnel;
    struct work work;

    if (!take_work(&tunnel->handshakes, wait, &work))
        return false;
    uint64_t now = clock_now();
    bool loaded = under_load(&tunnel->handshakes, work.backlog, now);
    epoch_enter(&tunnel->epoch, t->reader);
    for (unsigned i = 0; i < work.initiations || i < work.messages; i++) {
        if (i < work.initiations) {
            initiate(t, work.initiate[i], now);
            peer_release(work.initiate[i]);
        }
        if (i < work.messages)
            receive_message(t, &work.message[i], &work, loaded, now);
    }
    if (work.replies)
        send_cookie_replies(t, work.to_send, work.replies);
    epoch_leave(t->reader);
    aead_forget(t->aead);
    return true;
}

void *handshake_thread(void *argument)
{
    struct thread *t = argument;
    /* Of this thread alone (setpriority(2)): data goes first. The tenth of a busy core that it gets
     * answers hundreds of handshakes per second, and a flood cannot take more (pitfall 52). */
    setpriority(PRIO_PROCESS, 0, 10);
    while (handshake_step(t, true))
        ;
    return NULL;
}
