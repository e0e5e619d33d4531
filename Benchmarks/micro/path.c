/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's own work per packet: the whole path in both directions between fake devices, beside
 * the AEAD alone. What the kernel does (reads, writes, its copies) is not in it.
 *
 *   path [--json] [AEAD]
 *
 * Outbound the device hands over the same super-packet again and again and the socket takes every
 * train at once. Inbound the socket copies sealed trains into the receive buffers, as the kernel
 * would; that copy is measured by itself and taken off. Rounds of every part are interleaved; the
 * figures are medians of thread CPU time.
 */
#include "../../Tests/CTunnelTests/simulation.h"
#include "bench.h"

#define ROUNDS 15
#define TRAINS 64 /* of 45 full packets: 4 MB, larger than L2, within L3 */

struct shape {
    const char *name;
    uint32_t segment; /* TCP payload of a segment; 0: single packets */
    uint32_t length;  /* of the frame, IP header included */
    uint32_t packets; /* in one frame */
};

static struct {
    const struct shape *shape;
    uint32_t frames; /* still to be read */
    bool keep;       /* store what is sent */
    uint8_t *train[TRAINS * 2];
    uint32_t train_length[TRAINS * 2], train_segment[TRAINS * 2], train_count, train_next;
    uint64_t sent_packets, written_packets;
} bench;

static void fill_frame(uint8_t *out, const struct shape *s)
{
    uint16_t checksum;
    memset(out, 0x5a, s->length);
    memset(out, 0, 40);
    out[0] = 0x45;
    out[2] = (uint8_t)(s->length >> 8);
    out[3] = (uint8_t)s->length;
    out[8] = 64;
    out[9] = IPPROTO_TCP;
    memcpy(out + 12, (uint8_t[]){10, 0, 0, 1, 10, 0, 0, 2}, 8);
    out[20] = 0x12, out[22] = 0x34;
    out[32] = 0x50; /* header of 20 bytes */
    out[33] = 0x10; /* ACK */
    checksum = sim_checksum(out, 20);
    out[10] = (uint8_t)(checksum >> 8);
    out[11] = (uint8_t)checksum;
}

static ssize_t bench_readv(void *context, int fd, const struct iovec *iov, int count)
{
    (void)context, (void)fd, (void)count;
    if (!bench.frames) {
        errno = EAGAIN;
        return -1;
    }
    bench.frames--;
    struct virtio_net_hdr header = {0};
    if (bench.shape->segment) {
        header.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
        header.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
        header.gso_size = (uint16_t)bench.shape->segment;
        header.csum_start = 20;
        header.csum_offset = 16;
    }
    memcpy(iov[0].iov_base, &header, sizeof header);
    const uint8_t *held = iov[1].iov_base; /* the engine only reads a frame: it stays as it is */
    if ((uint32_t)(held[2] << 8 | held[3]) != bench.shape->length)
        fill_frame(iov[1].iov_base, bench.shape);
    return (ssize_t)(sizeof header + bench.shape->length);
}

static ssize_t bench_writev(void *context, int fd, const struct iovec *iov, int count)
{
    ssize_t length = 0;
    (void)context, (void)fd;
    for (int i = 0; i < count; i++)
        length += (ssize_t)iov[i].iov_len;
    bench.written_packets++;
    return length;
}

static ssize_t bench_sendmsg(void *context, int fd, const struct msghdr *message, int flags)
{
    size_t length = message->msg_iov->iov_len, segment = length;
    (void)context, (void)fd, (void)flags;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c;
         c = CMSG_NXTHDR((struct msghdr *)message, c))
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_SEGMENT)
            segment = *(uint16_t *)CMSG_DATA(c);
    if (bench.keep && bench.train_count < TRAINS * 2) {
        uint32_t i = bench.train_count++;
        bench.train[i] = malloc(length);
        memcpy(bench.train[i], message->msg_iov->iov_base, length);
        bench.train_length[i] = (uint32_t)length;
        bench.train_segment[i] = (uint32_t)segment;
    }
    bench.sent_packets += (length + segment - 1) / segment;
    return (ssize_t)length;
}

static int bench_recvmmsg(void *context, int fd, struct mmsghdr *messages, unsigned count,
                          int flags)
{
    unsigned n = 0;
    (void)context, (void)fd, (void)flags;
    for (; n < count && bench.train_next < bench.train_count; n++) {
        uint32_t i = bench.train_next++;
        struct msghdr *h = &messages[n].msg_hdr;
        int segment = (int)bench.train_segment[i];
        memcpy(h->msg_iov->iov_base, bench.train[i], bench.train_length[i]);
        struct sockaddr_storage from;
        sim_address(&from, AF_INET, 0, SIM_PORT);
        memcpy(h->msg_name, &from, sizeof(struct sockaddr_in));
        messages[n].msg_len = bench.train_length[i];
        struct cmsghdr *c = CMSG_FIRSTHDR(h);
        c->cmsg_level = IPPROTO_UDP;
        c->cmsg_type = UDP_GRO;
        c->cmsg_len = CMSG_LEN(sizeof segment);
        memcpy(CMSG_DATA(c), &segment, sizeof segment);
        h->msg_controllen = CMSG_SPACE(sizeof segment);
        h->msg_flags = 0;
    }
    if (!n)
        errno = EAGAIN;
    return n ? (int)n : -1;
}

static const struct tun_io bench_tun = {bench_readv, bench_writev};
static const struct udp_io bench_udp = {bench_sendmsg, sim_sendmmsg, bench_recvmmsg};

/* ---- the parts ----------------------------------------------------------------------------- */

static double outbound(uint32_t frames)
{
    struct thread *t = &sim.node[0].tunnel->worker[0].primary;
    bench.frames = frames;
    bench.sent_packets = 0;
    double start = cpu_ns();
    while (bench.frames || send_waits(t))
        send_batch(t);
    double spent = cpu_ns() - start;
    assert(bench.sent_packets == (uint64_t)frames * bench.shape->packets);
    return spent / (double)bench.sent_packets;
}

/* The sealed trains once more: their counters are fresh to a cleared window. */
static double inbound(uint64_t packets)
{
    struct thread *t = &sim.node[1].tunnel->worker[0].primary;
    struct session *session = atomic_load(&sim_peer(1, 0)->current_session);
    memset(&session->replay, 0, sizeof session->replay);
    bench.train_next = 0;
    uint64_t before = counter_get(&t->counters.rx.packets);
    double start = cpu_ns();
    while (bench.train_next < bench.train_count)
        receive_batch(t, &t->sockets->v4);
    double spent = cpu_ns() - start;
    assert(counter_get(&t->counters.rx.packets) - before == packets);
    assert(!sim_drops(1, DROP_TAG_INVALID) && !sim_drops(1, DROP_COUNTER_REPLAYED));
    return spent / (double)packets;
}

static double copy_alone(uint8_t *buffers, uint64_t packets)
{
    double start = cpu_ns();
    for (uint32_t i = 0; i < bench.train_count; i++)
        memcpy(buffers + (size_t)(i % UDP_RECEIVE_MESSAGES) * UDP_RECEIVE_CAPACITY, bench.train[i],
               bench.train_length[i]);
    __asm__ volatile("" ::"r"(buffers) : "memory"); /* the copies are not for nothing */
    return (cpu_ns() - start) / (double)packets;
}

static double aead_alone(struct thread *t, uint8_t *slab, uint32_t length, bool open,
                         uint64_t packets)
{
    static uint64_t counter;
    struct aead_key key = {{1}};
    struct aead_packet batch[45];
    double spent = 0;
    uint64_t done = 0;
    while (done < packets) {
        for (int i = 0; i < 45; i++) {
            uint8_t *at = slab + (size_t)i * (length + 32) + 16;
            batch[i] = (struct aead_packet){at, at, counter++, length, false};
        }
        if (open)
            aead_seal_n(t->aead, &key, batch, 45);
        double start = cpu_ns();
        if (open)
            aead_open_n(t->aead, &key, batch, 45);
        else
            aead_seal_n(t->aead, &key, batch, 45);
        spent += cpu_ns() - start;
        done += 45;
    }
    return spent / (double)done;
}

static void adjust(struct tunnel_options *options)
{
    extern const char *bench_aead;
    options->no_vnet_hdr = false;
    memset(options->aead, 0, sizeof options->aead);
    strncpy(options->aead, bench_aead, sizeof options->aead - 1);
}

const char *bench_aead = "";

static void connect_nodes(void)
{
    sim_start(2, adjust);
    sim_add_peer(0, 1, true, 0);
    sim_add_peer(1, 0, true, 0);
    uint8_t packet[sizeof(struct virtio_net_hdr) + 64] = {0};
    sim_packet(packet + sizeof(struct virtio_net_hdr), 0, 1, 64, 0);
    sim_inject(0, packet, sizeof packet);
    sim_settle();
    assert(sim.node[1].delivered.count == 1);
    for (int i = 0; i < 2; i++) {
        struct tunnel *tunnel = sim.node[i].tunnel;
        tunnel->tun.queue[0]->io = &bench_tun;
        tunnel->udp.pair[0].v4.io = &bench_udp;
    }
}

struct figures {
    double tx, rx, copy, seal, open;
};

static struct figures measure(const struct shape *shape)
{
    static double tx[ROUNDS], rx[ROUNDS], copy[ROUNDS], seal[ROUNDS], open[ROUNDS];
    struct thread *t = &sim.node[0].tunnel->worker[0].primary;
    uint8_t *slab = calloc(1, 128 * 1024);
    uint8_t *buffers = calloc(UDP_RECEIVE_MESSAGES, UDP_RECEIVE_CAPACITY);
    uint32_t frames = TRAINS * 45 / shape->packets;
    uint32_t inner = shape->segment ? shape->segment + 40 : shape->length;
    uint32_t padded = (inner + 15) & ~15u;

    bench.shape = shape;
    bench.keep = true;
    bench.train_count = 0;
    outbound(frames);
    bench.keep = false;
    uint64_t packets = 0;
    for (uint32_t i = 0; i < bench.train_count; i++)
        packets += (bench.train_length[i] + bench.train_segment[i] - 1) / bench.train_segment[i];
    for (int r = 0; r < ROUNDS; r++) {
        tx[r] = outbound(frames);
        rx[r] = inbound(packets);
        copy[r] = copy_alone(buffers, packets);
        seal[r] = aead_alone(t, slab, padded < DEFAULT_MTU ? padded : DEFAULT_MTU, false, packets);
        open[r] = aead_alone(t, slab, padded < DEFAULT_MTU ? padded : DEFAULT_MTU, true, packets);
    }
    for (uint32_t i = 0; i < bench.train_count; i++)
        free(bench.train[i]);
    free(slab);
    free(buffers);
    return (struct figures){median(tx, ROUNDS), median(rx, ROUNDS), median(copy, ROUNDS),
                            median(seal, ROUNDS), median(open, ROUNDS)};
}

int main(int argc, char **argv)
{
    static const struct shape shapes[] = {
        {"super-packets of 45 × 1,420 B", 1380, 40 + 45 * 1380, 45},
        {"single packets of 84 B", 0, 84, 1},
    };
    bool json = argc > 1 && !strcmp(argv[1], "--json");
    bench_aead = argc > 1 + json ? argv[1 + json] : "";
    connect_nodes();
    struct tunnel_stats stats;
    tunnel_get_stats(sim.node[0].tunnel, &stats);
    if (json)
        printf("{\"schemaVersion\":1,\"aead\":\"%s\",\"path\":[", stats.aead);
    else
        printf("The engine's own work per packet, ns of CPU time (AEAD: %s)\n"
               "%-32s %8s %8s %8s %8s %8s %8s\n",
               stats.aead, "", "out", "seal", "share", "in", "open", "share");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct figures f = measure(&shapes[i]);
        double in = f.rx - f.copy;
        if (json)
            printf("%s{\"shape\":\"%s\",\"outNs\":%.1f,\"sealNs\":%.1f,\"inNs\":%.1f,"
                   "\"copyNs\":%.1f,\"openNs\":%.1f}",
                   i ? "," : "", shapes[i].name, f.tx, f.seal, in, f.copy, f.open);
        else
            printf("%-30s %8.0f %8.0f %7.0f%% %8.0f %8.0f %7.0f%%\n", shapes[i].name, f.tx, f.seal,
                   100 * f.seal / f.tx, in, f.open, 100 * f.open / in);
    }
    if (json)
        printf("]}\n");
    sim_stop();
    return 0;
}
