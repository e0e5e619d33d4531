/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outbound, in packet order:
 *
 *   1. next_frame    from the device; beside super-packets by turns of flows  (own queue)
 *   2. split_plan    how to cut it                                            (own memory)
 *   3. lookup        allowed IPs → peer → current session, once per frame     (epoch)
 *   4. run_place     each segment to its final place in the slab, checksum on the way
 *   5. run_flush     reserve counters, seal in place, one sendmsg, timers told once
 *
 * A run is what one sendmsg can carry: one peer, one session, one TOS, equal sizes but the last
 * (pitfall 59). Without a usable session packets are staged instead of step 4.
 */
#include "send.h"
#include "ecn.h"
#include "flow_queue.h"
#include "lines.h"
#include <sodium.h>
#include <stdlib.h>
#include <sys/mman.h>

#define SLAB_CAPACITY (128 * 1024)
/* Packets further apart than this are not expected to have company. */
#define LONE_GAP (NSEC_PER_MSEC / 20)

struct run {
    struct peer *peer;
    struct session *session;
    uint32_t count, bytes, stride, last;
    uint64_t data_packets; /* keepalives do not count */
    uint8_t tos;
};

struct sender {
    struct flow_queue *queue; /* frames read from the TUN device */
    uint8_t *slab;            /* the run: header, ciphertext, tag, header, … */
    struct run run;
    uint32_t last_batch; /* packets of the batch before */
    uint64_t last_ns;    /* when it began */
    struct aead_packet packets[MAX_BATCH_PACKETS];
};

static_assert(MAX_BATCH_PACKETS <= MAX_TRAIN_SEGMENTS, "a run is one GSO train");
static_assert(SLAB_CAPACITY >= MAX_DATAGRAM, "a run is one datagram at most");

static uint8_t *map(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

struct sender *sender_create(void)
{
    struct sender *s = lines_alloc(sizeof *s);
    if (!s)
        return NULL;
    s->queue = flow_queue_create();
    s->slab = map(SLAB_CAPACITY);
    if (!s->queue || !s->slab) {
        sender_destroy(s);
        return NULL;
    }
    return s;
}

void sender_destroy(struct sender *s)
{
    if (!s)
        return;
    flow_queue_destroy(s->queue);
    if (s->slab)
        munmap(s->slab, SLAB_CAPACITY);
    free(s);
}

/* ---- 5. the run leaves --------------------------------------------------------------------- */

/* Before the first bind a send would bind the placeholder to a port of the kernel's choice. */
static bool may_send(const struct thread *t)
{
    return atomic_load_explicit(&t->tunnel->udp.bound, memory_order_acquire) &&
           atomic_load_explicit(&t->tunnel->up, memory_order_relaxed);
}

/* A session near its limits asks for the next one (§6.2). */
static void keep_session_fresh(struct peer *peer, const struct session *s, uint64_t now)
{
    if (atomic_load_explicit(&s->next_counter, memory_order_relaxed) > REKEY_AFTER_MESSAGES ||
        (s->initiator && session_age(s, now) >= REKEY_AFTER_TIME))
        handshake_request(peer, false, now);
}

static void run_seal(struct thread *t, uint64_t first_counter)
{
    struct sender *s = t->sender;
    struct run *run = &s->run;
    for (uint32_t i = 0; i < run->count; i++) {
        struct message_data header = {
            .type = MESSAGE_DATA,
            .receiver_index = run->session->remote_index,
            .counter = first_counter + i,
        };
        s->packets[i].counter = header.counter;
        /* not aligned: an MTU need not be a multiple of anything */
        memcpy(s->packets[i].destination - sizeof header, &header, sizeof header);
    }
    aead_seal_n(t->aead, &run->session->send_key, s->packets, run->count);
}

static void run_transmit(struct thread *t, const struct endpoint *endpoint)
{
    struct run *run = &t->sender->run;
    struct peer *peer = run->peer;
    struct udp_train train = {
        .data = t->sender->slab,
        .length = run->bytes,
        .segment_size = run->stride,
        .tos = run->tos,
        .no_gso = atomic_load_explicit(&peer->no_gso, memory_order_relaxed),
    };
    uint64_t calls = 0;
    unsigned flags = udp_send(t->sockets, endpoint, &train, &t->counters, &calls);
    if (flags & UDP_SOURCE_REFUSED)
        peer_clear_source(peer);
    if (flags & UDP_GSO_REFUSED)
        atomic_store_explicit(&peer->no_gso, true, memory_order_relaxed);
    counter_add(&t->counters.tx.system_calls, calls);
    count_batch(&t->counters.tx, run->count, run->bytes);
    atomic_fetch_add_explicit(&peer->tx_bytes, run->bytes, memory_order_relaxed);
}

/* Nothing was encrypted yet: the packets wait for the next session (pitfall 39). */
static void run_stage(struct thread *t)
{
    const struct sender *s = t->sender;
    for (uint32_t i = 0; i < s->run.count; i++) {
        if (s->packets[i].length)
            peer_stage(s->run.peer, s->packets[i].source, s->packets[i].length, &t->counters);
        else
            count_drop(&t->counters, DROP_COUNTER_EXHAUSTED, 1); /* a keepalive */
    }
}

static void run_flush(struct thread *t, uint64_t now)
{
    struct run *run = &t->sender->run;
    struct peer *peer = run->peer;
    uint64_t first;
    if (!run->count)
        return;

    struct endpoint endpoint = peer_endpoint(peer);
    if (!endpoint_is_set(&endpoint)) {
        count_drop(&t->counters, DROP_NO_ENDPOINT, run->count);
    } else if (!may_send(t)) {
        count_drop(&t->counters, DROP_LINK_DOWN, run->count);
    } else if (!session_reserve(run->session, t->slot, run->count, &first)) {
        run_stage(t);
        handshake_request(peer, false, now);
    } else {
        run_seal(t, first);
        run_transmit(t, &endpoint);
        session_sent(run->session, t->slot);
        timers_authenticated_traversal(&peer->timers, now);
        timers_authenticated_sent(&peer->timers);
        if (run->data_packets)
            timers_data_sent(&peer->timers, now);
        keep_session_fresh(peer, run->session, now);
    }
    *run = (struct run){0};
}

/* ---- 4. a packet finds its place ----------------------------------------------------------- */

/* To a multiple of 16, but never past the MTU (§5.4.6, pitfall 44). */
static uint32_t padded_length(uint32_t length, uint32_t mtu)
{
    uint32_t last_unit = length;
    if (!mtu)
        return (length + MESSAGE_PADDING - 1) & ~(uint32_t)(MESSAGE_PADDING - 1);
    if (last_unit > mtu)
        last_unit %= mtu;
    uint32_t padded = (last_unit + MESSAGE_PADDING - 1) & ~(uint32_t)(MESSAGE_PADDING - 1);
    if (padded > mtu)
        padded = mtu;
    return length + (padded - last_unit);
}

static bool run_accepts(const struct run *run, const struct peer *peer,
                        const struct session *session, uint8_t tos, uint32_t message_length)
{
    return !run->count ||
           (run->peer == peer && run->session == session && run->tos == tos &&
            run->count < MAX_BATCH_PACKETS && run->last == run->stride &&
            message_length <= run->stride && run->bytes + message_length <= MAX_TRAIN_BYTES);
}

/* Where to write an inner packet of `length` bytes; the padding behind it is zeroed. NULL: it does
 * not fit a datagram. */
static uint8_t *run_place(struct thread *t, struct peer *peer, struct session *session, uint8_t tos,
                          uint32_t length, uint64_t now)
{
    struct sender *s = t->sender;
    struct run *run = &s->run;
    uint32_t mtu = atomic_load_explicit(&t->tunnel->mtu, memory_order_relaxed);
    uint32_t padded = padded_length(length, mtu);
    uint32_t message_length = padded + MESSAGE_DATA_MINIMUM;
    if (message_length > MAX_DATAGRAM) {
        count_drop(&t->counters, DROP_TUN_MALFORMED, 1);
        return NULL;
    }
    if (!run_accepts(run, peer, session, tos, message_length))
        run_flush(t, now);
    if (!run->count)
        *run = (struct run){.peer = peer, .session = session, .tos = tos, .stride = message_length};

    uint8_t *place = s->slab + run->bytes + sizeof(struct message_data);
    memset(place + length, 0, padded - length);
    s->packets[run->count] =
        (struct aead_packet){.destination = place, .source = place, .length = padded};
    run->count++;
    run->bytes += message_length;
    run->last = message_length;
    run->data_packets += length != 0;
    return place;
}

/* ---- 3. whose packet is it? ---------------------------------------------------------------- */

/* ECN is copied out, DSCP is not (RFC 6040 §4.1; the kernel's choice). */
static uint8_t outer_tos(const uint8_t *packet)
{
    uint8_t tos = packet[0] >> 4 == 4 ? packet[1] : (uint8_t)(packet[0] << 4 | packet[1] >> 4);
    return tos & 3;
}

static struct peer *peer_for_destination(struct tunnel *tunnel, const struct split *split)
{
    struct allowedips_owner *owner =
        split->ip_version == 4 ? allowedips_lookup4(tunnel->allowed_ips, split->packet + 16)
                               : allowedips_lookup6(tunnel->allowed_ips, split->packet + 24);
    return owner ? container_of(owner, struct peer, allowed_ips) : NULL;
}

static void stage_frame(struct thread *t, struct peer *peer, const struct split *split,
                        uint64_t now)
{
    struct endpoint endpoint = peer_endpoint(peer);
    run_flush(t, now); /* the slab is free for one segment at a time */
    if (!endpoint_is_set(&endpoint)) {
        count_drop(&t->counters, DROP_NO_ENDPOINT, split->count);
        return;
    }
    for (uint32_t i = 0; i < split->count; i++) {
        split_segment(split, i, t->sender->slab);
        peer_stage(peer, t->sender->slab, split_segment_length(split, i), &t->counters);
    }
    if (session_can_send(atomic_load(&peer->current_session), now))
        send_staged(t, peer, now);
    else
        handshake_request(peer, false, now);
}

/* The flow is to slow down: a mark where it understands one, else the loss of its first packet.
 * Returns how many were dropped. */
static uint32_t slow_down(struct thread *t, uint8_t *packet)
{
    if (ecn_mark_congestion(packet))
        return 0;
    count_drop(&t->counters, DROP_TUN_QUEUE_CONGESTED, 1);
    return 1;
}

/* Returns how many packets the frame was worth. */
static uint32_t send_frame(struct thread *t, struct queued_frame *frame, uint64_t now)
{
    static const enum drop_reason reject[] = {
        [SPLIT_MALFORMED] = DROP_TUN_MALFORMED,
        [SPLIT_GSO_INVALID] = DROP_TUN_GSO_INVALID,
        [SPLIT_TOO_MANY_SEGMENTS] = DROP_TUN_GSO_TOO_MANY_SEGMENTS,
    };
    struct split split;
    const struct virtio_net_hdr *vnet = t->tunnel->tun.vnet_hdr ? &frame->header : NULL;
    enum split_result result = split_plan(vnet, frame->data, frame->length, &split);
    if (result != SPLIT_OK) {
        count_drop(&t->counters, reject[result], 1);
        return 1;
    }
    struct peer *peer = peer_for_destination(t->tunnel, &split);
    if (!peer) {
        count_drop(&t->counters, DROP_NO_PEER_FOR_DESTINATION, split.count);
        return split.count;
    }
    struct session *session = atomic_load_explicit(&peer->current_session, memory_order_acquire);
    if (atomic_load_explicit(&peer->staging, memory_order_acquire) ||
        !session_can_send(session, now)) {
        stage_frame(t, peer, &split, now);
        return split.count;
    }
    uint32_t first = frame->signal ? slow_down(t, frame->data) : 0;
    uint8_t tos = outer_tos(split.packet);
    for (uint32_t i = first; i < split.count; i++) {
        uint8_t *place = run_place(t, peer, session, tos, split_segment_length(&split, i), now);
        if (place)
            split_segment(&split, i, place);
    }
    return split.count;
}

/* ---- 1. one batch -------------------------------------------------------------------------- */

/* False: nothing to read, or no more for now. */
static bool read_frame(struct thread *t, struct queued_frame *frame)
{
    size_t length;
    counter_add(&t->counters.tx.system_calls, 1);
    switch (tun_read(t->queue, &frame->header, frame->data, &length)) {
    case TUN_READ_FRAME:
        frame->length = (uint32_t)length;
        frame->signal = false;
        return true;
    case TUN_READ_ENDED:
        tunnel_end(t->tunnel);
        return false;
    case TUN_READ_EMPTY:
    case TUN_READ_DOWN:
        break;
    }
    return false;
}

/*
 * Single packets go as they come: a queue of them is soon done with. Beside super-packets, whatever
 * else waits in the device is read before the batch is sent, so that it may overtake. `*more`: the
 * device may have another.
 */
static struct queued_frame *next_frame(struct thread *t, uint64_t now, bool *more)
{
    struct flow_queue *q = t->sender->queue;
    struct queued_frame *frame;
    if (flow_queue_is_empty(q)) {
        if (!*more)
            return flow_queue_take(q, now);
        frame = flow_queue_room(q);
        *more = read_frame(t, frame);
        if (*more && frame->header.gso_type == VIRTIO_NET_HDR_GSO_NONE)
            return frame;
        if (*more)
            flow_queue_put(q, frame, now);
        else
            flow_queue_give_back(q, frame);
    }
    while (*more && (frame = flow_queue_room(q))) {
        *more = read_frame(t, frame);
        if (*more)
            flow_queue_put(q, frame, now);
        else
            flow_queue_give_back(q, frame);
    }
    return flow_queue_take(q, now);
}

bool send_batch(struct thread *t)
{
    struct tunnel *tunnel = t->tunnel;
    struct sender *s = t->sender;
    struct queued_frame *frame;
    uint32_t packets = 0;
    bool more = true;
    uint64_t now = clock_now();

    epoch_enter(&tunnel->epoch, t->reader);
    while (packets < MAX_BATCH_PACKETS && (frame = next_frame(t, now, &more))) {
        packets += send_frame(t, frame, now);
        flow_queue_give_back(s->queue, frame);
        /* Where packets come one by one this one does not wait for a look at the next; where they
         * come far apart that look is left to poll(), which is due in any case. */
        if (packets == 1 && s->last_batch <= 1) {
            run_flush(t, now);
            more = more && (!s->last_ns || now - s->last_ns < LONE_GAP);
            if (!more)
                break;
        }
    }
    run_flush(t, now);
    s->last_batch = packets;
    s->last_ns = now;
    epoch_leave(t->reader);
    return more || send_waits(t);
}

bool send_waits(const struct thread *t)
{
    return !flow_queue_is_empty(t->sender->queue);
}

/* ---- outside the batch --------------------------------------------------------------------- */

static void send_list(struct thread *t, struct peer *peer, struct session *session,
                      struct staged_packet *packet, uint64_t now)
{
    while (packet) {
        struct staged_packet *next = packet->next;
        uint8_t *place = run_place(t, peer, session, outer_tos(packet->data), packet->length, now);
        if (place)
            memcpy(place, packet->data, packet->length);
        free(packet);
        packet = next;
    }
    run_flush(t, now);
}

void send_staged(struct thread *t, struct peer *peer, uint64_t now)
{
    uint32_t bytes;
    pthread_mutex_lock(&peer->lock);
    if (peer->flushing) { /* that thread goes on until nothing is left */
        pthread_mutex_unlock(&peer->lock);
        return;
    }
    peer->flushing = true;
    while (peer->staged_head) {
        struct session *session = atomic_load(&peer->current_session);
        if (!session_can_send(session, now))
            break;
        struct staged_packet *list = peer_unstage(peer, MAX_BATCH_PACKETS, &bytes);
        pthread_mutex_unlock(&peer->lock);
        send_list(t, peer, session, list, now);
        pthread_mutex_lock(&peer->lock);
    }
    peer->flushing = false;
    if (!peer->staged_head)
        atomic_store(&peer->staging, false);
    pthread_mutex_unlock(&peer->lock);
}

void send_keepalive(struct thread *t, struct peer *peer, uint64_t now)
{
    struct session *session = atomic_load(&peer->current_session);
    if (!session_can_send(session, now)) {
        handshake_request(peer, false, now);
        return;
    }
    if (atomic_load(&peer->staging)) {
        send_staged(t, peer, now);
        return;
    }
    run_place(t, peer, session, 0, 0, now);
    run_flush(t, now);
}

static unsigned send_message(struct thread *t, const struct endpoint *to, void *message,
                             size_t length)
{
    struct udp_train train = {
        .data = message, .length = length, .segment_size = length, .tos = HANDSHAKE_TOS};
    uint64_t calls = 0;
    if (!may_send(t)) {
        count_drop(&t->counters, DROP_LINK_DOWN, 1);
        return 0;
    }
    unsigned flags = udp_send(t->sockets, to, &train, &t->counters, &calls);
    counter_add(&t->counters.tx.system_calls, calls);
    return flags;
}

void send_handshake(struct thread *t, struct peer *peer, void *message, size_t length)
{
    struct endpoint endpoint = peer_endpoint(peer);
    if (!endpoint_is_set(&endpoint)) {
        count_drop(&t->counters, DROP_NO_ENDPOINT, 1);
        return;
    }
    if (send_message(t, &endpoint, message, length) & UDP_SOURCE_REFUSED)
        peer_clear_source(peer);
    atomic_fetch_add_explicit(&peer->tx_bytes, length, memory_order_relaxed);
}

void send_cookie_replies(struct thread *t, const struct udp_single *replies, unsigned count)
{
    uint64_t calls = 0;
    if (!may_send(t)) {
        count_drop(&t->counters, DROP_LINK_DOWN, count);
        return;
    }
    udp_send_singles(t->sockets, replies, count, HANDSHAKE_TOS, &t->counters, &calls);
    counter_add(&t->counters.tx.system_calls, calls);
    counter_add(&t->counters.cookie_replies_sent, count);
}
