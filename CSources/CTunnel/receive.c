/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inbound, in packet order:
 *
 *   1. udp_receive      GRO trains by one recvmmsg                          (own sockets)
 *   2. receive_segment  each segment by type; handshake messages are queued and forgotten
 *   3. index lookup     per segment: a train carries several sessions (pitfall 28)  (epoch)
 *   4. run_open         a run of one session is opened in place
 *   5. accept_counters  replay window and endpoint under the peer's short lock
 *   6. inner_accept     lengths, source address, ECN; then tun_write merges what fits
 *
 * Nothing of a peer changes before step 4 authenticated the packet (pitfall 38).
 */
#include "receive.h"
#include "codel.h"
#include "ecn.h"
#include "lines.h"
#include "send.h"
#include <stdlib.h>

#define RUN_PACKETS 128
#define BULK_LENGTH 512 /* bytes */

struct run {
    struct session *session;
    uint32_t count;
    struct aead_packet packets[RUN_PACKETS];
    struct udp_received *received[RUN_PACKETS];
};

struct receiver {
    struct udp_receiver *udp;
    struct run run;
    uint32_t deliver_count;
    struct packet deliver[MERGE_MAX_PACKETS];
    uint64_t packets, bytes; /* of this batch */
    struct codel codel[2];   /* of the queues in the sockets: IPv4, IPv6 */
};

struct receiver *receiver_create(void)
{
    struct receiver *r = lines_alloc(sizeof *r);
    if (r && !(r->udp = udp_receiver_create())) {
        free(r);
        return NULL;
    }
    return r;
}

void receiver_destroy(struct receiver *r)
{
    if (!r)
        return;
    udp_receiver_destroy(r->udp);
    free(r);
}

/* ---- 6. the inner packet ------------------------------------------------------------------- */

static void deliver_flush(struct thread *t)
{
    struct receiver *r = t->receiver;
    uint64_t calls = 0;
    if (!r->deliver_count)
        return;
    if (!tun_write(t->queue, r->deliver, r->deliver_count, &t->counters, &calls))
        tunnel_end(t->tunnel);
    counter_add(&t->counters.rx.system_calls, calls);
    r->deliver_count = 0;
}

/* The last source that passed, so that a flow costs one lookup per run. */
struct source_cache {
    uint8_t version;
    uint8_t address[16];
};

static bool source_allowed(struct tunnel *tunnel, const struct peer *peer, const uint8_t *packet,
                           struct source_cache *cache)
{
    uint8_t version = packet[0] >> 4;
    const uint8_t *source = packet + (version == 4 ? 12 : 8);
    size_t size = version == 4 ? 4 : 16;
    if (cache->version == version && !memcmp(cache->address, source, size))
        return true;
    const struct allowedips_owner *owner = version == 4
                                               ? allowedips_lookup4(tunnel->allowed_ips, source)
                                               : allowedips_lookup6(tunnel->allowed_ips, source);
    if (owner != &peer->allowed_ips) /* pitfall 46 */
        return false;
    cache->version = version;
    memcpy(cache->address, source, size);
    return true;
}

/* Length by the IP header; 0: malformed. In 32 bits (pitfall 47). */
static uint32_t inner_length(const uint8_t *packet, uint32_t plaintext_length)
{
    uint32_t length;
    if (plaintext_length >= 20 && packet[0] >> 4 == 4) {
        length = (uint32_t)packet[2] << 8 | packet[3];
        if (length < 20)
            return 0;
    } else if (plaintext_length >= 40 && packet[0] >> 4 == 6) {
        length = 40 + ((uint32_t)packet[4] << 8 | packet[5]);
    } else {
        return 0;
    }
    return length <= plaintext_length ? length : 0;
}

/* Congestion seen on the way is passed on to an ECN-capable inner packet, and ECT(1) outside turns
 * an inner ECT(0) into ECT(1) (RFC 6040 §4.2). A not-ECT packet under CE is delivered as it is: the
 * kernel does the same, and a path that sets CE on everything must not cut the tunnel. */
static void inner_ecn(uint8_t *packet, uint8_t outer_tos)
{
    uint8_t outer = outer_tos & 3, inner = ecn_of(packet);
    if (outer == ECN_CE && inner != ECN_NOT_ECT && inner != ECN_CE)
        ecn_set(packet, ECN_CE);
    else if (outer == ECN_ECT_1 && inner == ECN_ECT_0)
        ecn_set(packet, ECN_ECT_1);
}

/* The packet's flow is to slow down, once per train. False: it is dropped for that. */
static bool slow_down(struct thread *t, struct udp_received *received, uint8_t *packet)
{
    received->signal = false;
    if (ecn_mark_congestion(packet))
        return true;
    count_drop(&t->counters, DROP_UDP_QUEUE_CONGESTED, 1);
    return false;
}

static void inner_accept(struct thread *t, struct peer *peer, uint8_t *packet,
                         uint32_t plaintext_length, struct udp_received *received,
                         struct source_cache *cache)
{
    struct receiver *r = t->receiver;
    uint32_t length = inner_length(packet, plaintext_length);
    if (!length) {
        count_drop(&t->counters, DROP_INNER_MALFORMED, 1);
        return;
    }
    if (!source_allowed(t->tunnel, peer, packet, cache)) {
        count_drop(&t->counters, DROP_INNER_SOURCE_NOT_ALLOWED, 1);
        return;
    }
    inner_ecn(packet, received->tos);
    if (received->signal && !slow_down(t, received, packet))
        return;
    r->deliver[r->deliver_count++] = (struct packet){.data = packet, .length = length};
}

/* ---- 5. authenticated: counters, endpoint, timers ------------------------------------------ */

/* Clears `ok` of replayed packets; the endpoint follows the latest valid one (pitfall 45). Returns
 * how many remain. */
static uint32_t accept_counters(struct thread *t, struct peer *peer, struct run *run)
{
    const struct udp_received *latest = NULL;
    uint32_t accepted = 0, replayed = 0;

    pthread_mutex_lock(&peer->data_lock);
    for (uint32_t i = 0; i < run->count; i++) {
        struct aead_packet *p = &run->packets[i];
        if (!p->ok)
            continue;
        if (!replay_accept(&run->session->replay, p->counter)) {
            p->ok = false;
            replayed++;
            continue;
        }
        accepted++;
        latest = run->received[i];
    }
    if (latest && !endpoint_equal(&peer->endpoint, &latest->from)) {
        if (!endpoint_remote_equal(&peer->endpoint, &latest->from))
            atomic_store_explicit(&peer->no_gso, false, memory_order_relaxed);
        peer->endpoint = latest->from;
    }
    pthread_mutex_unlock(&peer->data_lock);
    if (replayed)
        count_drop(&t->counters, DROP_COUNTER_REPLAYED, replayed);
    return accepted;
}

/* The first data under a session we answered for confirms it. */
static void session_confirmed(struct thread *t, struct session *session, uint64_t now)
{
    struct peer *peer = session->peer;
    if (atomic_load_explicit(&peer->next_session, memory_order_acquire) != session ||
        !peer_promote_session(peer, session))
        return;
    handshake_completed(t, peer);
    send_staged(t, peer, now);
}

/* The initiator of a session about to expire rekeys when it only receives (§6.2). */
static void keep_session_fresh(const struct session *s, uint64_t now)
{
    struct peer *peer = s->peer;
    if (s->initiator && session_age(s, now) >= REKEY_ON_RECEIVE_TIME &&
        atomic_load_explicit(&peer->current_session, memory_order_relaxed) == s &&
        !atomic_exchange(&peer->timers.rekeyed_on_receive, true))
        handshake_request(peer, false, now);
}

/* ---- 4. the run is opened ------------------------------------------------------------------ */

static void run_deliver(struct thread *t, struct peer *peer, const struct run *run, uint64_t now)
{
    struct source_cache cache = {0};
    uint64_t bytes = 0;
    bool data = false;
    for (uint32_t i = 0; i < run->count; i++) {
        const struct aead_packet *p = &run->packets[i];
        if (!p->ok)
            continue;
        bytes += p->length + MESSAGE_DATA_MINIMUM;
        if (!p->length) /* keepalive: never answered (pitfall 44) */
            continue;
        data = true;
        inner_accept(t, peer, p->destination, p->length, run->received[i], &cache);
    }
    atomic_fetch_add_explicit(&peer->rx_bytes, bytes, memory_order_relaxed);
    timers_authenticated_received(&peer->timers);
    timers_authenticated_traversal(&peer->timers, now);
    if (data)
        timers_data_received(&peer->timers, now);
}

static void run_open(struct thread *t, uint64_t now)
{
    struct receiver *r = t->receiver;
    struct run *run = &r->run;
    struct session *session = run->session;
    struct peer *peer;
    if (!run->count)
        return;

    peer = session->peer;
    size_t opened = aead_open_n(t->aead, &session->receive_key, run->packets, run->count);
    if (opened < run->count)
        count_drop(&t->counters, DROP_TAG_INVALID, run->count - opened);
    if (opened && accept_counters(t, peer, run)) {
        session_confirmed(t, session, now);
        keep_session_fresh(session, now);
        run_deliver(t, peer, run, now);
    }
    run->count = 0;
    run->session = NULL;
    if (r->deliver_count + RUN_PACKETS > MERGE_MAX_PACKETS)
        deliver_flush(t);
}

/* ---- 2, 3. a segment ----------------------------------------------------------------------- */

static void receive_data(struct thread *t, uint8_t *data, uint32_t length,
                         struct udp_received *received, uint64_t now)
{
    struct run *run = &t->receiver->run;
    struct message_data header;
    if (length < MESSAGE_DATA_MINIMUM) {
        count_drop(&t->counters, DROP_MESSAGE_TOO_SHORT, 1);
        return;
    }
    memcpy(&header, data, sizeof header); /* a segment of a train need not be aligned */
    struct session *session = run->session;
    if (!session || session->entry.index != header.receiver_index) {
        struct index_entry *entry = index_table_lookup(t->tunnel->indices, header.receiver_index);
        if (!entry || entry->kind != INDEX_SESSION) {
            count_drop(&t->counters, DROP_UNKNOWN_INDEX, 1);
            return;
        }
        session = container_of(entry, struct session, entry);
    }
    if (!session_can_receive(session, now)) {
        count_drop(&t->counters, DROP_SESSION_EXPIRED, 1);
        return;
    }
    if (run->count && (run->session != session || run->count == RUN_PACKETS))
        run_open(t, now);
    run->session = session;
    run->received[run->count] = received;
    run->packets[run->count++] = (struct aead_packet){
        .destination = data + sizeof header,
        .source = data + sizeof header,
        .counter = header.counter,
        .length = length - (uint32_t)MESSAGE_DATA_MINIMUM,
    };
}

static void receive_handshake(struct thread *t, uint32_t type, const uint8_t *data, uint32_t length,
                              const struct udp_received *received, uint64_t now)
{
    static const uint32_t exact[] = {
        [MESSAGE_INITIATION] = sizeof(struct message_initiation),
        [MESSAGE_RESPONSE] = sizeof(struct message_response),
        [MESSAGE_COOKIE_REPLY] = sizeof(struct message_cookie_reply),
    };
    if (length != exact[type]) {
        count_drop(&t->counters, DROP_HANDSHAKE_WRONG_LENGTH, 1);
        return;
    }
    counter_add(&t->counters.handshake_messages_received, 1);
    if (!handshake_receive(t->tunnel, data, length, &received->from, now))
        count_drop(&t->counters, DROP_HANDSHAKE_QUEUE_FULL, 1);
}

static void receive_segment(struct thread *t, uint8_t *data, uint32_t length,
                            struct udp_received *received, uint64_t now)
{
    uint32_t type;
    if (length < sizeof type) {
        count_drop(&t->counters, DROP_MESSAGE_TOO_SHORT, 1);
        return;
    }
    memcpy(&type, data, sizeof type); /* the reserved bytes must be zero, so all four count */
    switch (type) {
    case MESSAGE_DATA:
        receive_data(t, data, length, received, now);
        break;
    case MESSAGE_INITIATION:
    case MESSAGE_RESPONSE:
    case MESSAGE_COOKIE_REPLY:
        receive_handshake(t, type, data, length, received, now);
        break;
    default:
        count_drop(&t->counters, DROP_MESSAGE_UNKNOWN_TYPE, 1);
    }
}

/* ---- 1. one batch -------------------------------------------------------------------------- */

static void receive_train(struct thread *t, struct udp_received *train, uint64_t now)
{
    struct receiver *r = t->receiver;
    uint32_t offset = 0;
    do { /* a datagram of no bytes is one segment too */
        uint32_t rest = train->length - offset;
        uint32_t length = rest < train->segment_size ? rest : train->segment_size;
        receive_segment(t, train->data + offset, length, train, now);
        offset += length;
        r->packets++;
    } while (offset < train->length);
    r->bytes += train->length;
}

/* A train, or a datagram as bulk data makes them; no handshake, ping, ACK or name lookup. */
static bool is_bulk(const struct udp_received *received)
{
    return received->length > received->segment_size || received->length > BULK_LENGTH;
}

/* Chooses who is told that the socket's queue stands: one who sends much, and only if the queue is
 * mostly of those. A flood of handshakes is nobody's flow. */
static void watch_queue(struct receiver *r, const struct udp_socket *socket,
                        struct udp_received *received, int count, uint64_t now)
{
    struct codel *codel = &r->codel[socket->family == AF_INET6];
    int bulk = 0;
    for (int i = 0; i < count; i++)
        bulk += is_bulk(&received[i]);
    for (int i = 0; i < count && bulk; i++) {
        bool last = (i + 1 == count && count < UDP_RECEIVE_MESSAGES) || 2 * bulk < count;
        received[i].signal =
            is_bulk(&received[i]) && codel_signal(codel, received[i].waited_ns, last, now);
    }
    /* Also where the last one was not bulk: a short last fragment, a handshake. */
    if (count < UDP_RECEIVE_MESSAGES)
        codel_emptied(codel);
}

bool receive_batch(struct thread *t, struct udp_socket *socket)
{
    struct receiver *r = t->receiver;
    struct udp_received *trains;
    struct tunnel *tunnel = t->tunnel;
    uint64_t now;

    int count = udp_receive(socket, r->udp, &trains, &t->counters);
    counter_add(&t->counters.rx.system_calls, 1);
    if (count <= 0)
        return false;

    now = clock_now();
    r->packets = r->bytes = 0;
    epoch_enter(&tunnel->epoch, t->reader);
    if (atomic_load_explicit(&tunnel->up, memory_order_relaxed)) {
        watch_queue(r, socket, trains, count, now);
        for (int i = 0; i < count; i++)
            receive_train(t, &trains[i], now);
        run_open(t, now);
        deliver_flush(t);
    } else {
        count_drop(&t->counters, DROP_LINK_DOWN, (uint64_t)count);
    }
    epoch_leave(t->reader);
    count_batch(&t->counters.rx, r->packets, r->bytes);
    return count == UDP_RECEIVE_MESSAGES;
}
