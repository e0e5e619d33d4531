/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole engines in one process without threads, sockets, devices or real time:
 *
 *     sim_inject → [node 0: TUN → send → UDP] → network (filter) → [node 1: UDP → receive → TUN] →
 * delivered
 *
 * The devices and the clock of CTunnel are replaced at link time: this file defines every symbol of
 * clock.c, udp.c, tun_open.c and link.c, so the linker takes none of those files from the library.
 * Everything else is the product's own code, stepped by one thread: minutes of protocol time pass
 * in milliseconds, deterministically.
 *
 * Node i is 192.0.2.(i+1) outside (and 2001:db8::(i+1)), 10.0.0.(i+1) inside. Received datagrams
 * carry the address they were sent to as pktinfo, on interface 7, as from a kernel.
 */
#ifndef CTUNNEL_SIMULATION_H
#define CTUNNEL_SIMULATION_H

#include "engine.h"
#include "receive.h"
#include "send.h"

#include <assert.h>
#include <errno.h>
#include <netinet/udp.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SIM_NODES     4
#define SIM_PORT      51820
#define SIM_INTERFACE 7
#define SIM_TRAINS    1024
#define SECONDS(n)    ((uint64_t)(n)*NSEC_PER_SEC)

struct sim_datagram {
    struct sim_datagram *next;
    struct sockaddr_storage from, to;
    uint8_t tos;
    size_t segment; /* a GRO train of such segments; 0: one datagram */
    size_t length;
    uint8_t data[];
};

/* One sendmsg, as the engine asked for it. */
struct sim_train {
    int node;
    struct sockaddr_storage to;
    uint8_t tos, type; /* type of the first message */
    size_t length, segment;
    bool has_source; /* pktinfo was given */
    struct in_addr source4;
    struct in6_addr source6;
    unsigned source_interface;
};

struct sim_queue {
    struct sim_datagram *head, **tail;
    size_t count;
};

struct sim_node {
    int id;
    struct tunnel *tunnel;
    uint8_t private_key[KEY_LENGTH], public_key[KEY_LENGTH];
    struct sim_queue tun_out;   /* waits to be read by the engine */
    struct sim_queue delivered; /* what the engine wrote to the device */
    struct sim_queue udp4, udp6;
    uint64_t sent_datagrams, sent_by_type[5];
};

/* Sees every datagram before it arrives; may change it, keep a copy, or drop it (false). */
typedef bool (*sim_filter)(struct sim_datagram *datagram, void *context);
/* The errno with which a sendmsg fails; 0: it does not. */
typedef int (*sim_fault)(const struct sim_train *train);

static struct {
    uint64_t now, wall;
    unsigned count;
    struct sim_node node[SIM_NODES];
    sim_filter filter;
    void *filter_context;
    sim_fault fault;
    unsigned lost;   /* types (1 << type) the network loses */
    unsigned copied; /* types of which the network keeps copies in `copies` */
    struct sim_queue copies;
    bool gro; /* datagrams of one flow that wait together arrive as one train */
    struct sim_train train[SIM_TRAINS]; /* the first ones since the counter was last cleared */
    size_t train_count;
    struct sim_node *creating;
} sim;

/* ---- clock.c ------------------------------------------------------------------------------- */

uint64_t clock_now(void)
{
    return sim.now;
}

void clock_wall(struct timespec *now)
{
    now->tv_sec = (time_t)(sim.wall / NSEC_PER_SEC);
    now->tv_nsec = (long)(sim.wall % NSEC_PER_SEC);
}

/* ---- queues -------------------------------------------------------------------------------- */

static inline void sim_append(struct sim_queue *q, struct sim_datagram *d)
{
    if (!q->head)
        q->tail = &q->head;
    d->next = NULL;
    *q->tail = d;
    q->tail = &d->next;
    q->count++;
}

static inline struct sim_datagram *sim_pop(struct sim_queue *q)
{
    struct sim_datagram *d = q->head;
    if (d) {
        q->head = d->next;
        q->count--;
    }
    return d;
}

static inline void sim_discard(struct sim_queue *q)
{
    struct sim_datagram *d;
    while ((d = sim_pop(q)))
        free(d);
}

static inline struct sim_datagram *sim_datagram(const void *data, size_t length)
{
    struct sim_datagram *d = calloc(1, sizeof *d + length);
    assert(d);
    d->length = length;
    if (length)
        memcpy(d->data, data, length);
    return d;
}

static inline struct sim_datagram *sim_copy(const struct sim_datagram *from)
{
    struct sim_datagram *d = malloc(sizeof *d + from->length);
    assert(d);
    memcpy(d, from, sizeof *d + from->length);
    return d;
}

static inline unsigned sim_type(const struct sim_datagram *d)
{
    return d->length && d->data[0] <= MESSAGE_DATA ? d->data[0] : MESSAGE_INVALID;
}

/* ---- the network --------------------------------------------------------------------------- */

static inline struct sim_node *sim_owner(const struct sockaddr_storage *to)
{
    unsigned last = to->ss_family == AF_INET6
                        ? ((const struct sockaddr_in6 *)to)->sin6_addr.s6_addr[15]
                        : (unsigned)ntohl(((const struct sockaddr_in *)to)->sin_addr.s_addr) & 0xff;
    return last >= 1 && last <= sim.count ? &sim.node[last - 1] : NULL;
}

/* Puts it into the receiver's socket buffer, past filters and loss. Takes it over. */
static inline void sim_arrive(struct sim_datagram *d)
{
    struct sim_node *to = sim_owner(&d->to);
    assert(to);
    sim_append(d->to.ss_family == AF_INET6 ? &to->udp6 : &to->udp4, d);
}

/* Puts a datagram on the wire as if it came from `from`. Takes it over. */
static inline void sim_transmit(struct sim_datagram *d)
{
    if (sim.copied & 1u << sim_type(d))
        sim_append(&sim.copies, sim_copy(d));
    if (sim.lost & 1u << sim_type(d) || (sim.filter && !sim.filter(d, sim.filter_context)) ||
        !sim_owner(&d->to))
        free(d);
    else
        sim_arrive(d);
}

static inline void sim_address(struct sockaddr_storage *out, int family, int id, uint16_t port)
{
    memset(out, 0, sizeof *out);
    if (family == AF_INET6) {
        struct sockaddr_in6 *a = (struct sockaddr_in6 *)out;
        a->sin6_family = AF_INET6;
        a->sin6_port = htons(port);
        memcpy(&a->sin6_addr, (uint8_t[]){0x20, 0x01, 0x0d, 0xb8}, 4);
        a->sin6_addr.s6_addr[15] = (uint8_t)(id + 1);
    } else {
        struct sockaddr_in *a = (struct sockaddr_in *)out;
        a->sin_family = AF_INET;
        a->sin_port = htons(port);
        a->sin_addr.s_addr = htonl(0xc0000200 + (uint32_t)id + 1);
    }
}

static void sim_read_control(struct sim_train *train, const struct cmsghdr *c)
{
    int value = 0;
    if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_SEGMENT)
        train->segment = *(const uint16_t *)CMSG_DATA(c);
    if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
        (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS)) {
        memcpy(&value, CMSG_DATA(c), sizeof value);
        train->tos = (uint8_t)value;
    }
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
        const struct in_pktinfo *info = (const struct in_pktinfo *)CMSG_DATA(c);
        train->has_source = true;
        train->source4 = info->ipi_spec_dst;
        train->source_interface = (unsigned)info->ipi_ifindex;
    }
    if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
        const struct in6_pktinfo *info = (const struct in6_pktinfo *)CMSG_DATA(c);
        train->has_source = true;
        train->source6 = info->ipi6_addr;
        train->source_interface = info->ipi6_ifindex;
    }
}

static ssize_t sim_sendmsg(void *context, int fd, const struct msghdr *message, int flags)
{
    struct sim_node *node = context;
    uint8_t bytes[65536];
    struct sim_train train = {.node = node->id};
    (void)fd;
    (void)flags;

    for (size_t i = 0; i < message->msg_iovlen; i++) {
        memcpy(bytes + train.length, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
        train.length += message->msg_iov[i].iov_len;
    }
    train.segment = train.length;
    train.type = bytes[0];
    memcpy(&train.to, message->msg_name, message->msg_namelen);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c;
         c = CMSG_NXTHDR((struct msghdr *)message, c))
        sim_read_control(&train, c);
    if (sim.fault && (errno = sim.fault(&train)))
        return -1;
    if (sim.train_count < SIM_TRAINS)
        sim.train[sim.train_count++] = train;
    for (size_t offset = 0; offset < train.length; offset += train.segment) {
        size_t rest = train.length - offset;
        struct sim_datagram *d =
            sim_datagram(bytes + offset, rest < train.segment ? rest : train.segment);
        d->to = train.to;
        sim_address(&d->from, d->to.ss_family, node->id, SIM_PORT);
        d->tos = train.tos;
        node->sent_datagrams++;
        node->sent_by_type[sim_type(d)]++;
        sim_transmit(d);
    }
    return (ssize_t)train.length;
}

static int sim_sendmmsg(void *context, int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    for (unsigned i = 0; i < count; i++)
        messages[i].msg_len = (unsigned)sim_sendmsg(context, fd, &messages[i].msg_hdr, flags);
    return (int)count;
}

static void sim_add_control(struct msghdr *h, int level, int type, const void *data, size_t size)
{
    struct cmsghdr *c = (struct cmsghdr *)((uint8_t *)h->msg_control + h->msg_controllen);
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(c), data, size);
    h->msg_controllen += CMSG_SPACE(size);
}

/* What a kernel tells of a datagram: where it was sent to, its TOS, the size of its segments. */
static void sim_write_control(struct msghdr *h, const struct sim_datagram *d)
{
    int tclass = d->tos, segment = (int)d->segment;
    memset(h->msg_control, 0, h->msg_controllen);
    h->msg_controllen = 0;
    if (d->to.ss_family == AF_INET6) {
        struct in6_pktinfo info = {.ipi6_addr = ((const struct sockaddr_in6 *)&d->to)->sin6_addr,
                                   .ipi6_ifindex = SIM_INTERFACE};
        sim_add_control(h, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
        sim_add_control(h, IPPROTO_IPV6, IPV6_TCLASS, &tclass, sizeof tclass);
    } else {
        struct in_addr to = ((const struct sockaddr_in *)&d->to)->sin_addr;
        struct in_pktinfo info = {.ipi_addr = to, .ipi_spec_dst = to, .ipi_ifindex = SIM_INTERFACE};
        sim_add_control(h, IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
        sim_add_control(h, IPPROTO_IP, IP_TOS, &d->tos, 1); /* one byte, unlike IPv6 */
    }
    if (segment)
        sim_add_control(h, IPPROTO_UDP, UDP_GRO, &segment, sizeof segment);
}

/* Joins to `d` what follows it in the queue and belongs to its train, as UDP GRO does. */
static struct sim_datagram *sim_coalesce(struct sim_datagram *d, struct sim_queue *q)
{
    size_t segment = d->length, last = d->length;
    while (q->head && q->head->length <= segment && last == segment &&
           d->length + q->head->length <= MAX_DATAGRAM && q->head->tos == d->tos &&
           !memcmp(&q->head->from, &d->from, sizeof d->from) &&
           !memcmp(&q->head->to, &d->to, sizeof d->to)) {
        struct sim_datagram *next = sim_pop(q);
        d = realloc(d, sizeof *d + d->length + next->length);
        assert(d);
        memcpy(d->data + d->length, next->data, next->length);
        d->length += next->length;
        d->segment = segment;
        last = next->length;
        free(next);
    }
    return d;
}

static int sim_recvmmsg(void *context, int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    struct sim_node *node = context;
    struct sim_queue *q = fd == node->tunnel->udp.pair[0].v6.fd ? &node->udp6 : &node->udp4;
    unsigned n = 0;
    (void)flags;
    for (; n < count && q->head; n++) {
        struct sim_datagram *d = sim_pop(q);
        struct msghdr *h = &messages[n].msg_hdr;
        if (sim.gro && !d->segment)
            d = sim_coalesce(d, q);
        assert(d->length <= h->msg_iov->iov_len);
        memcpy(h->msg_iov->iov_base, d->data, d->length);
        memcpy(h->msg_name, &d->from, h->msg_namelen);
        messages[n].msg_len = (unsigned)d->length;
        h->msg_flags = 0;
        sim_write_control(h, d);
        free(d);
    }
    if (!n) {
        errno = EAGAIN;
        return -1;
    }
    return (int)n;
}

static const struct udp_io sim_udp_io = {sim_sendmsg, sim_sendmmsg, sim_recvmmsg};

/* ---- udp.c --------------------------------------------------------------------------------- */

const struct udp_io udp_io_system = {sim_sendmsg, sim_sendmmsg, sim_recvmmsg};

int udp_init(struct udp *udp, const struct udp_options *options, unsigned workers,
             struct counters *counters)
{
    (void)counters;
    memset(udp, 0, sizeof *udp);
    udp->options = *options;
    udp->worker_count = workers;
    for (unsigned i = 0; i < workers; i++) {
        udp->pair[i].v4 = (struct udp_socket){.fd = 1000,
                                              .family = AF_INET,
                                              .gso = true,
                                              .gro = true,
                                              .sendmmsg = true,
                                              .io = &sim_udp_io,
                                              .io_context = sim.creating};
        udp->pair[i].v6 = (struct udp_socket){.fd = 1001,
                                              .family = AF_INET6,
                                              .gso = true,
                                              .gro = true,
                                              .sendmmsg = true,
                                              .io = &sim_udp_io,
                                              .io_context = sim.creating};
    }
    return 0;
}

void udp_close(struct udp *udp)
{
    (void)udp;
}

int udp_bind(struct udp *udp, uint16_t port, struct counters *counters)
{
    (void)counters;
    udp->port = port ? port : SIM_PORT;
    atomic_store(&udp->bound, true);
    return 0;
}

int udp_set_fwmark(struct udp *udp, uint32_t fwmark)
{
    udp->fwmark = fwmark;
    return 0;
}

unsigned udp_steer(const struct udp *udp, uint32_t receiver_index)
{
    (void)udp;
    (void)receiver_index;
    return 0;
}

/* ---- tun_open.c, link.c -------------------------------------------------------------------- */

static ssize_t sim_readv(void *context, int fd, const struct iovec *iov, int count)
{
    struct sim_node *node = context;
    struct sim_datagram *d = sim_pop(&node->tun_out);
    (void)fd;
    if (!d) {
        errno = EAGAIN;
        return -1;
    }
    size_t offset = 0, length = d->length;
    for (int i = 0; i < count && offset < length; i++) {
        size_t part = length - offset < iov[i].iov_len ? length - offset : iov[i].iov_len;
        memcpy(iov[i].iov_base, d->data + offset, part);
        offset += part;
    }
    free(d);
    return (ssize_t)length;
}

static ssize_t sim_writev(void *context, int fd, const struct iovec *iov, int count)
{
    struct sim_node *node = context;
    uint8_t bytes[70000];
    size_t length = 0;
    (void)fd;
    for (int i = 0; i < count; i++) {
        memcpy(bytes + length, iov[i].iov_base, iov[i].iov_len);
        length += iov[i].iov_len;
    }
    sim_append(&node->delivered, sim_datagram(bytes, length));
    return (ssize_t)length;
}

static const struct tun_io sim_tun_io = {sim_readv, sim_writev};

/* Frames carry a virtio-net header unless the node was made with no_vnet_hdr. */
int tun_open(struct tun *tun, const struct tunnel_options *options, unsigned queues,
             struct counters *counters, char *error_text)
{
    (void)counters;
    (void)error_text;
    memset(tun, 0, sizeof *tun);
    memcpy(tun->name, options->name, sizeof tun->name);
    tun->vnet_hdr = !options->no_vnet_hdr;
    tun->tso = tun->uso = tun->vnet_hdr;
    atomic_init(&tun->merge_tcp, !options->no_tun_merge && tun->vnet_hdr);
    atomic_init(&tun->merge_udp, !options->no_tun_merge && tun->vnet_hdr);
    tun->queue_count = queues;
    for (unsigned i = 0; i < queues; i++) {
        struct tun_queue *q = calloc(1, sizeof *q);
        assert(q);
        q->fd = -1;
        q->io = &sim_tun_io;
        q->io_context = sim.creating;
        q->tun = tun;
        tun->queue[i] = q;
    }
    return 0;
}

void tun_close(struct tun *tun)
{
    for (unsigned i = 0; i < tun->queue_count; i++)
        free(tun->queue[i]);
}

int tun_monitor_open(void)
{
    return dup(0);
}

bool tun_link_query(const char *name, struct tun_link_state *state)
{
    (void)name;
    *state = (struct tun_link_state){.up = true, .mtu = DEFAULT_MTU, .ifindex = 1};
    return true;
}

void tun_monitor_read(int monitor_fd, struct tun_link_state *state)
{
    (void)monitor_fd;
    (void)state;
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* `adjust` may change the options; NULL: libsodium, no virtio-net header, one worker. */
static inline void sim_start(unsigned count, void (*adjust)(struct tunnel_options *))
{
    char error[TUNNEL_ERROR_TEXT_CAPACITY];
    memset(&sim, 0, sizeof sim);
    sim.now = SECONDS(1000);
    sim.wall = SECONDS(1700000000);
    sim.count = count;
    assert(sodium_init() >= 0);
    for (unsigned i = 0; i < count; i++) {
        struct sim_node *node = &sim.node[i];
        struct tunnel_options options;
        tunnel_options_init(&options);
        snprintf(options.name, sizeof options.name, "sim%u", i);
        strcpy(options.aead, "libsodium");
        options.workers = 1;
        options.no_vnet_hdr = true;
        if (adjust)
            adjust(&options);
        node->id = (int)i;
        sim.creating = node;
        if (tunnel_create(&options, &node->tunnel, error)) {
            fprintf(stderr, "simulation: %s\n", error);
            abort();
        }
        randombytes_buf(node->private_key, KEY_LENGTH);
        struct tunnel_device_change change = {.fields = TUNNEL_DEVICE_PRIVATE_KEY |
                                                        TUNNEL_DEVICE_LISTEN_PORT,
                                              .listen_port = SIM_PORT};
        memcpy(change.private_key, node->private_key, KEY_LENGTH);
        assert(!tunnel_set_device(node->tunnel, &change));
        struct tunnel_device_state state;
        tunnel_get_device(node->tunnel, &state);
        memcpy(node->public_key, state.public_key, KEY_LENGTH);
        tunnel_link_up(node->tunnel);
    }
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

/* One pass over every node; true: something happened. */
static inline bool sim_pass(uint64_t *next)
{
    bool busy = false;
    *next = UINT64_MAX;
    for (unsigned i = 0; i < sim.count; i++) {
        struct sim_node *node = &sim.node[i];
        struct thread *t = &node->tunnel->worker[0].primary;
        while (node->tun_out.head) {
            send_batch(t);
            busy = true;
        }
        while (node->udp4.head) {
            receive_batch(t, &t->sockets->v4);
            busy = true;
        }
        while (node->udp6.head) {
            receive_batch(t, &t->sockets->v6);
            busy = true;
        }
        while (handshake_step(&node->tunnel->handshake, false))
            busy = true;
        uint64_t due = control_step(&node->tunnel->control);
        if (due < *next)
            *next = due;
    }
    return busy;
}

/* Until nothing is left to do at this instant. Returns the next deadline. */
static inline uint64_t sim_settle(void)
{
    uint64_t next;
    while (sim_pass(&next) || next <= sim.now)
        ;
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
