/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One engine with several workers between devices that cost nothing, for what workers do to each
 * other. Each worker has a device and a peer of its own, whose session leads back to itself:
 *
 *   device i: TUN → send_batch → socket i, which keeps the train → receive_batch → TUN
 *
 * The caller runs the batches, on one thread or on many. Device i is touched by the threads of
 * worker i only; its two directions share no cache line. Peer i is 10.0.i.0/24.
 */
#ifndef CTUNNEL_WORKERS_H
#define CTUNNEL_WORKERS_H

#include "lines.h"
#include "simulation.h"

#define SUPER_PAYLOAD (DEFAULT_MTU - 40)

/* What a device hands over: TCP super-packets of so many full segments, or, with 0 segments,
 * packets of 84 bytes. */
struct load {
    uint32_t segments;
    uint32_t frames; /* that wait when a batch begins */
};

struct device {
    /* read from the TUN queue, and what the socket keeps of it */
    _Alignas(CACHE_LINE) struct load load;
    uint32_t frames; /* still to be read in this batch */
    uint8_t to;      /* peer */
    bool discard;    /* what is sent; the train stays the former one */
    const uint8_t *filled;
    struct load filled_load;
    uint8_t filled_to;
    uint64_t sent; /* datagrams */

    /* the train sent last, and its way back */
    _Alignas(CACHE_LINE) uint8_t *train;
    uint32_t train_length, train_segment, trains_left;
    uint64_t written; /* frames */
};

static struct device *device[TUNNEL_MAX_WORKERS];

/* ---- devices that cost nothing ------------------------------------------------------------- */

static uint32_t load_length(const struct load *load)
{
    return load->segments ? 40 + load->segments * SUPER_PAYLOAD : 84;
}

static void fill_frame(struct device *d, uint8_t *out)
{
    uint32_t length = load_length(&d->load);
    uint8_t addresses[] = {10, 0, d->to, 2, 10, 0, d->to, 1};
    if (d->filled == out && d->filled_to == d->to &&
        !memcmp(&d->filled_load, &d->load, sizeof d->load))
        return; /* the engine only reads the frame: it stays as it is */
    memset(out, 0x5a, length);
    memset(out, 0, 40);
    out[0] = 0x45;
    out[2] = (uint8_t)(length >> 8);
    out[3] = (uint8_t)length;
    out[8] = 64;
    out[9] = IPPROTO_TCP;
    memcpy(out + 12, addresses, sizeof addresses);
    out[32] = 5 << 4; /* TCP header of 20 bytes */
    out[33] = 0x10;   /* ACK */
    d->filled = out;
    d->filled_load = d->load;
    d->filled_to = d->to;
}

static ssize_t device_readv(void *context, int fd, const struct iovec *iov, int count)
{
    struct device *d = context;
    struct virtio_net_hdr header = {0};
    (void)fd, (void)count;
    if (!d->frames) {
        errno = EAGAIN;
        return -1;
    }
    d->frames--;
    if (d->load.segments)
        header = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
                                         .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
                                         .gso_size = SUPER_PAYLOAD,
                                         .csum_start = 20,
                                         .csum_offset = 16};
    memcpy(iov[0].iov_base, &header, sizeof header);
    fill_frame(d, iov[1].iov_base);
    return (ssize_t)(sizeof header + load_length(&d->load));
}

static ssize_t device_writev(void *context, int fd, const struct iovec *iov, int count)
{
    struct device *d = context;
    ssize_t length = 0;
    (void)fd;
    for (int i = 0; i < count; i++)
        length += (ssize_t)iov[i].iov_len;
    d->written++;
    return length;
}

static ssize_t device_sendmsg(void *context, int fd, const struct msghdr *message, int flags)
{
    struct device *d = context;
    size_t length = message->msg_iov->iov_len;
    uint16_t segment = (uint16_t)length;
    (void)fd, (void)flags;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c;
         c = CMSG_NXTHDR((struct msghdr *)message, c))
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_SEGMENT)
            memcpy(&segment, CMSG_DATA(c), sizeof segment);
    d->sent += (length + segment - 1) / segment;
    if (!d->discard) {
        memcpy(d->train, message->msg_iov->iov_base, length);
        d->train_length = (uint32_t)length;
        d->train_segment = segment;
        d->trains_left = 1;
    }
    return (ssize_t)length;
}

static int device_recvmmsg(void *context, int fd, struct mmsghdr *messages, unsigned count,
                           int flags)
{
    struct device *d = context;
    struct msghdr *h = &messages[0].msg_hdr;
    struct sockaddr_storage from;
    int segment = (int)d->train_segment;
    (void)fd, (void)count, (void)flags;
    if (!d->trains_left) {
        errno = EAGAIN;
        return -1;
    }
    d->trains_left--;
    memcpy(h->msg_iov->iov_base, d->train, d->train_length);
    sim_address(&from, AF_INET, 0, SIM_PORT);
    memcpy(h->msg_name, &from, sizeof(struct sockaddr_in));
    messages[0].msg_len = d->train_length;
    struct cmsghdr *c = CMSG_FIRSTHDR(h);
    *c = (struct cmsghdr){
        .cmsg_level = IPPROTO_UDP, .cmsg_type = UDP_GRO, .cmsg_len = CMSG_LEN(sizeof segment)};
    memcpy(CMSG_DATA(c), &segment, sizeof segment);
    h->msg_controllen = CMSG_SPACE(sizeof segment);
    h->msg_flags = 0;
    return 1;
}

static const struct tun_io device_tun = {device_readv, device_writev};
static const struct udp_io device_udp = {device_sendmsg, sim_sendmmsg, device_recvmmsg};

/* ---- set up and taken down ----------------------------------------------------------------- */

static unsigned workers_wanted;
static const char *workers_aead;

static void workers_adjust(struct tunnel_options *options)
{
    options->workers = workers_wanted;
    options->no_vnet_hdr = false;
    snprintf(options->aead, sizeof options->aead, "%s", workers_aead);
}

static struct tunnel *workers_tunnel(void)
{
    return sim.node[0].tunnel;
}

static struct peer *workers_peer(unsigned worker)
{
    uint8_t public_key[KEY_LENGTH] = {9, (uint8_t)worker};
    return tunnel_find_peer(workers_tunnel(), public_key);
}

static inline struct session *workers_session(unsigned worker)
{
    return atomic_load(&workers_peer(worker)->current_session);
}

static void add_peer(unsigned worker)
{
    struct tunnel *tunnel = workers_tunnel();
    struct noise_session_keys keys = {.initiator = false};
    struct tunnel_prefix prefix = {.family = 4, .length = 24, .address = {10, 0, (uint8_t)worker}};
    struct tunnel_peer_change change = {
        .fields = TUNNEL_PEER_ENDPOINT,
        .public_key = {9, (uint8_t)worker},
        .endpoint = {.family = 4, .port = SIM_PORT, .address = {192, 0, 2, 1}},
        .prefixes = &prefix,
        .prefix_count = 1,
    };
    assert(!tunnel_set_peer(tunnel, &change));
    struct peer *peer = workers_peer(worker);
    assert(peer && peer->worker == worker);
    randombytes_buf(keys.send.bytes, sizeof keys.send.bytes);
    keys.receive = keys.send;
    struct session *s = session_create(peer, &keys, 0, clock_now(), tunnel->thread_count);
    assert(s);
    tunnel->index_worker = worker;
    assert(index_table_insert(tunnel->indices, &s->entry));
    s->remote_index = s->entry.index;
    atomic_store(&peer->current_session, s);
}

static void workers_start(unsigned count, const char *aead)
{
    workers_wanted = count;
    workers_aead = aead;
    sim_start(1, workers_adjust);
    struct tunnel *tunnel = workers_tunnel();
    assert(tunnel->worker_count == count);
    for (unsigned i = 0; i < count; i++) {
        device[i] = aligned_alloc(CACHE_LINE, sizeof *device[i]);
        assert(device[i]);
        memset(device[i], 0, sizeof *device[i]);
        device[i]->to = (uint8_t)i;
        device[i]->train = aligned_alloc(CACHE_LINE, UDP_RECEIVE_CAPACITY);
        assert(device[i]->train);
        tunnel->tun.queue[i]->io = &device_tun;
        tunnel->tun.queue[i]->io_context = device[i];
        tunnel->udp.pair[i].v4.io = &device_udp;
        tunnel->udp.pair[i].v4.io_context = device[i];
        add_peer(i);
    }
}

static void workers_stop(void)
{
    unsigned count = workers_tunnel()->worker_count;
    sim_stop();
    for (unsigned i = 0; i < count; i++) {
        free(device[i]->train);
        free(device[i]);
    }
}

/* ---- batches ------------------------------------------------------------------------------- */

/* Sends one batch of `load` on `thread`, a data thread of `worker`. */
static inline void workers_send(struct thread *thread, unsigned worker, const struct load *load)
{
    device[worker]->load = *load;
    device[worker]->frames = load->frames;
    send_batch(thread);
    assert(!device[worker]->frames && !send_waits(thread));
}

/* Receives what the worker's socket kept. */
static inline void workers_receive(struct thread *thread, unsigned worker)
{
    receive_batch(thread, &thread->sockets->v4);
    assert(!device[worker]->trains_left);
}

#endif
