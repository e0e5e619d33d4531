/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole engines in one process without threads, sockets, devices or real time:
 *
 *     sim_inject → [node 0: TUN → send → UDP] → network (filter) → [node 1: UDP → receive → TUN] →
 * delivered
 *
 * The devices and the clock of CTunnel are replaced at link time (simulation_devices.h).
 * Everything else is the product's own code, stepped by one thread: minutes of protocol time pass
 * in milliseconds, deterministically.
 *
 * Node i is 192.0.2.(i+1) outside (and 2001:db8::(i+1)), 10.0.0.(i+1) inside. Received datagrams
 * carry the address they were sent to as pktinfo, on interface 7, as from a kernel.
 */
#ifndef CTUNNEL_SIMULATION_H
#define CTUNNEL_SIMULATION_H

#include "simulation_devices.h"

/* ---- nodes --------------------------------------------------------------------------------- */

/* An engine with the node's private key and no peers. */
static inline void sim_create(struct sim_node *node, void (*adjust)(struct tunnel_options *))
{
    char error[TUNNEL_ERROR_TEXT_CAPACITY];
    struct tunnel_options options;
    struct tunnel_device_state state;
    tunnel_options_init(&options);
    snprintf(options.name, sizeof options.name, "sim%d", node->id);
    strcpy(options.aead, "libsodium");
    options.workers = 1;
    options.no_vnet_hdr = true;
    if (adjust)
        adjust(&options);
    sim.creating = node;
    if (tunnel_create(&options, &node->tunnel, error)) {
        fprintf(stderr, "simulation: %s\n", error);
        abort();
    }
    struct tunnel_device_change change = {
        .fields = TUNNEL_DEVICE_PRIVATE_KEY | TUNNEL_DEVICE_LISTEN_PORT, .listen_port = SIM_PORT};
    memcpy(change.private_key, node->private_key, KEY_LENGTH);
    assert(!tunnel_set_device(node->tunnel, &change));
    tunnel_get_device(node->tunnel, &state); /* it hears that its link is up */
    memcpy(node->public_key, state.public_key, KEY_LENGTH);
}

/* `adjust` may change the options; NULL: libsodium, no virtio-net header, one worker. */
static inline void sim_start(unsigned count, void (*adjust)(struct tunnel_options *))
{
    memset(&sim, 0, sizeof sim);
    sim.now = SECONDS(1000);
    sim.wall = SECONDS(1700000000);
    sim.count = count;
    assert(sodium_init() >= 0);
    for (unsigned i = 0; i < count; i++) {
        sim.node[i].id = (int)i;
        randombytes_buf(sim.node[i].private_key, KEY_LENGTH);
        sim_create(&sim.node[i], adjust);
    }
}

/* The process of this node ends and a new one starts; it knows its private key only. */
static inline void sim_restart(int node)
{
    tunnel_destroy(sim.node[node].tunnel);
    sim_create(&sim.node[node], NULL);
}

static inline void sim_stop(void)
{
    for (unsigned i = 0; i < sim.count; i++) {
        struct sim_node *node = &sim.node[i];
        tunnel_destroy(node->tunnel);
        sim_discard(&node->tun_out);
        sim_discard(&node->delivered);
        sim_discard(&node->udp4);
        sim_discard(&node->udp6);
    }
    sim_discard(&sim.copies);
}

/* Node `a` learns node `b`: allowed IPs 10.0.0.(b+1)/32 and fd00::(b+1)/128, endpoint if asked. */
static inline void sim_add_peer(int a, int b, bool with_endpoint, uint16_t keepalive)
{
    struct tunnel_prefix prefixes[2] = {
        {.family = 4, .length = 32, .address = {10, 0, 0, (uint8_t)(b + 1)}},
        {.family = 6, .length = 128, .address = {0xfd}},
    };
    prefixes[1].address[15] = (uint8_t)(b + 1);
    struct tunnel_peer_change change = {
        .fields = TUNNEL_PEER_KEEPALIVE | (with_endpoint ? TUNNEL_PEER_ENDPOINT : 0),
        .endpoint = {.family = 4, .port = SIM_PORT, .address = {192, 0, 2, (uint8_t)(b + 1)}},
        .keepalive = keepalive,
        .prefixes = prefixes,
        .prefix_count = 2,
    };
    memcpy(change.public_key, sim.node[b].public_key, KEY_LENGTH);
    assert(!tunnel_set_peer(sim.node[a].tunnel, &change));
}

static inline struct peer *sim_peer(int a, int b)
{
    return tunnel_find_peer(sim.node[a].tunnel, sim.node[b].public_key);
}

/* ---- time ---------------------------------------------------------------------------------- */

static inline bool sim_has_work(const struct sim_node *node)
{
    const struct handshake_queue *q = &node->tunnel->handshakes;
    return node->tun_out.head || send_waits(&node->tunnel->worker[0].primary) || node->udp4.head ||
           node->udp6.head || q->count || q->initiations_head;
}

/* One pass over every node. Returns the next deadline. */
static inline uint64_t sim_pass(void)
{
    uint64_t next = UINT64_MAX;
    for (unsigned i = 0; i < sim.count; i++) {
        struct sim_node *node = &sim.node[i];
        struct thread *t = &node->tunnel->worker[0].primary;
        while (node->tun_out.head || send_waits(t))
            send_batch(t);
        while (node->udp4.head)
            receive_batch(t, &t->sockets->v4);
        while (node->udp6.head)
            receive_batch(t, &t->sockets->v6);
        while (handshake_step(&node->tunnel->handshake, false))
            ;
        uint64_t due = control_step(&node->tunnel->control);
        if (due < next)
            next = due;
    }
    return next;
}

/* Until nothing is left to do at this instant. Returns the next deadline. */
static inline uint64_t sim_settle(void)
{
    uint64_t next;
    bool busy;
    do {
        next = sim_pass();
        busy = next <= sim.now;
        for (unsigned i = 0; i < sim.count; i++)
            busy = busy || sim_has_work(&sim.node[i]);
    } while (busy);
    return next;
}

/* Lets `duration` pass, stopping at every deadline on the way. */
static inline void sim_advance(uint64_t duration)
{
    uint64_t end = sim.now + duration;
    for (;;) {
        uint64_t next = sim_settle();
        if (next > end)
            break;
        sim.wall += next - sim.now;
        sim.now = next;
    }
    sim.wall += end - sim.now;
    sim.now = end;
    sim_settle();
}

/* ---- packets ------------------------------------------------------------------------------- */

static inline uint16_t sim_checksum(const uint8_t *data, size_t length)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < length; i++)
        sum += (uint32_t)data[i] << (i & 1 ? 0 : 8);
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

/* An IPv4 packet of `length` bytes (≥ 24) from node a to node b with a sequence number behind the
 * header, protocol 253 (RFC 3692: experiments). */
static inline size_t sim_packet(uint8_t *out, int a, int b, size_t length, uint32_t sequence)
{
    memset(out, 0, length);
    out[0] = 0x45;
    out[2] = (uint8_t)(length >> 8);
    out[3] = (uint8_t)length;
    out[8] = 64;
    out[9] = 253;
    memcpy(out + 12, (uint8_t[]){10, 0, 0, (uint8_t)(a + 1), 10, 0, 0, (uint8_t)(b + 1)}, 8);
    uint16_t sum = sim_checksum(out, 20);
    out[10] = (uint8_t)(sum >> 8);
    out[11] = (uint8_t)sum;
    memcpy(out + 20, &sequence, 4);
    return length;
}

static inline uint32_t sim_sequence(const struct sim_datagram *delivered)
{
    uint32_t sequence;
    memcpy(&sequence, delivered->data + 20, 4);
    return sequence;
}

/* Hands a raw frame (without virtio-net header) to the node's TUN device. */
static inline void sim_inject(int node, const uint8_t *packet, size_t length)
{
    sim_append(&sim.node[node].tun_out, sim_datagram(packet, length));
}

/* The same with a virtio-net header, for nodes whose device has one. */
static inline void sim_inject_frame(int node, const struct virtio_net_hdr *header,
                                    const uint8_t *packet, size_t length)
{
    struct sim_datagram *d = calloc(1, sizeof *d + sizeof *header + length);
    assert(d);
    d->length = sizeof *header + length;
    memcpy(d->data, header, sizeof *header);
    memcpy(d->data + sizeof *header, packet, length);
    sim_append(&sim.node[node].tun_out, d);
}

static inline void sim_send(int a, int b, uint32_t sequence)
{
    uint8_t packet[64];
    sim_inject(a, packet, sim_packet(packet, a, b, sizeof packet, sequence));
}

/* An established session between a and b, begun by a, and nothing left over on the way there:
 * afterwards both count from here. */
static inline void sim_connect(int a, int b)
{
    sim_send(a, b, 0);
    sim_settle();
    assert(sim.node[b].delivered.count == 1);
    for (unsigned i = 0; i < sim.count; i++) {
        sim_discard(&sim.node[i].delivered);
        sim.node[i].sent_datagrams = 0;
        memset(sim.node[i].sent_by_type, 0, sizeof sim.node[i].sent_by_type);
    }
    sim.train_count = 0;
}

/* Sequence number of the oldest packet delivered to `node`, which is taken; -1: none. */
static inline int64_t sim_take(int node)
{
    struct sim_datagram *d = sim_pop(&sim.node[node].delivered);
    int64_t sequence = -1;
    if (d && d->length >= 24)
        sequence = sim_sequence(d);
    free(d);
    return sequence;
}

/* A data message as a would send it to b under its current session, with any plaintext and outer
 * TOS: for what an honest sender never sends. Not on the wire yet. */
static inline struct sim_datagram *sim_seal(int a, int b, const uint8_t *plaintext, size_t length,
                                            uint8_t tos)
{
    struct thread *t = &sim.node[a].tunnel->control;
    struct session *s = atomic_load(&sim_peer(a, b)->current_session);
    struct message_data header = {.type = MESSAGE_DATA};
    struct sim_datagram *d = calloc(1, sizeof *d + length + MESSAGE_DATA_MINIMUM);
    assert(s && d && session_reserve(s, t->slot, 1, &header.counter));
    session_sent(s, t->slot);
    header.receiver_index = s->remote_index;
    struct aead_packet packet = {.destination = d->data + sizeof header,
                                 .source = plaintext,
                                 .counter = header.counter,
                                 .length = (uint32_t)length};
    memcpy(d->data, &header, sizeof header);
    aead_seal_n(t->aead, &s->send_key, &packet, 1);
    aead_forget(t->aead);
    d->length = length + MESSAGE_DATA_MINIMUM;
    d->tos = tos;
    sim_address(&d->from, AF_INET, a, SIM_PORT);
    sim_address(&d->to, AF_INET, b, SIM_PORT);
    return d;
}

static inline struct sim_datagram *sim_sealed(int a, int b, uint32_t sequence)
{
    uint8_t packet[64];
    return sim_seal(a, b, packet, sim_packet(packet, a, b, sizeof packet, sequence), 0);
}

/* As if it came from another UDP port of the sender's. */
static inline void sim_from_port(struct sim_datagram *d, uint16_t port)
{
    ((struct sockaddr_in *)&d->from)->sin_port = htons(port);
}

/* Does a new packet from a reach b, possibly after a handshake? Leaves nothing behind. */
static inline bool sim_carries(int a, int b)
{
    static uint32_t sequence = 1u << 24;
    bool arrived = false;
    int64_t got;
    sim_send(a, b, ++sequence);
    sim_settle();
    while ((got = sim_take(b)) >= 0)
        arrived = arrived || got == sequence;
    return arrived;
}

static inline uint64_t sim_drops(int node, enum drop_reason reason)
{
    struct tunnel_stats stats;
    tunnel_get_stats(sim.node[node].tunnel, &stats);
    return stats.drops[reason];
}

#endif
