/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulation's world: every symbol of clock.c, udp.c, tun_open.c and link.c, so that the linker
 * takes none of those files from the library. Included by simulation.h only.
 */
#ifndef CTUNNEL_SIMULATION_DEVICES_H
#define CTUNNEL_SIMULATION_DEVICES_H

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
    uint64_t arrived_wall;
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
    bool link_down; /* as tunnel_follow_link() will hear */
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
    d->arrived_wall = sim.wall;
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

/* What a kernel tells of a datagram: where it was sent to, its TOS, the size of its segments, when
 * it came. */
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
    if (d->arrived_wall) {
        struct timespec arrived = {.tv_sec = (time_t)(d->arrived_wall / NSEC_PER_SEC),
                                   .tv_nsec = (long)(d->arrived_wall % NSEC_PER_SEC)};
        sim_add_control(h, SOL_SOCKET, SCM_TIMESTAMPNS, &arrived, sizeof arrived);
    }
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
    return receiver_index % udp->worker_count;
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
    *state =
        (struct tun_link_state){.up = true, .mtu = DEFAULT_MTU, .ifindex = sim.creating->id + 1};
    return true;
}

void tun_limit_super_packets(int ifindex, uint32_t mtu)
{
    (void)ifindex, (void)mtu;
}

bool tun_link_has_packet_information(const char *name)
{
    (void)name;
    return false;
}

void tun_monitor_read(int monitor_fd, struct tun_link_state *state)
{
    (void)monitor_fd;
    state->up = !sim.node[state->ifindex - 1].link_down;
}

#endif
