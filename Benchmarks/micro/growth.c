/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a packet become dearer as an engine gets more peers? CPU time per packet of the engine's own
 * work, with 1 peer of 1 prefix, with 64 and with 10,000 peers of 10 prefixes each.
 *
 *   growth [--json] [AEAD]
 *
 *   1 peer          all there is
 *   one of 10,000   the same traffic, to and from one peer, beside 9,999 that are silent
 *   any of 64       each frame belongs to a peer chosen at random: batches fall apart into runs
 *   any of 10,000   the same, and what belongs to a peer is rarely in the cache
 *
 * Growth is the second ÷ the first, and the fourth ÷ the third. A frame is a super-packet of 45
 * full segments or a packet of 84 bytes. The devices cost nothing but a copy, which is measured by
 * itself and taken off. Each peer's session leads back to itself, so that what was sent is received
 * by the same engine. Rounds of all cases are interleaved; the figures are medians.
 */
#include "../../Tests/CTunnelTests/simulation.h"
#include "bench.h"

#define ROUNDS      25
#define PREFIXES    10
#define MOST_PEERS  10000
#define MOST_TRAINS 4096
#define SEGMENT     (DEFAULT_MTU - 40)
#define ROOM        ((size_t)MOST_TRAINS * 1024)

enum { ONE, SOME, MANY, NODES };
static const unsigned peers_of[NODES] = {1, 64, MOST_PEERS};

static const struct traffic {
    const char *name;
    int node;
    bool any;
} traffics[] = {
    {"1 peer", ONE, false},
    {"one of 10,000", MANY, false},
    {"any of 64", SOME, true},
    {"any of 10,000", MANY, true},
};
#define TRAFFICS (sizeof traffics / sizeof *traffics)

static const struct shape {
    const char *name;
    uint32_t packets, length, frames; /* of a frame; frames in a round */
} shapes[] = {
    {"full", 45, 40 + 45 * SEGMENT, 64},
    {"small", 1, 84, MOST_TRAINS},
};
#define SHAPES (sizeof shapes / sizeof *shapes)

static struct {
    const struct traffic *traffic;
    const struct shape *shape;
    uint32_t frames; /* still to be read */
    bool keep;       /* what is sent waits to be received */
    uint8_t *room;
    size_t used;
    struct {
        uint8_t *data;
        uint32_t length, segment;
    } train[MOST_TRAINS];
    uint32_t count, next;
    uint64_t sent;
} world;

static uint32_t random_below(uint32_t bound)
{
    static uint64_t state = 88172645463325252ull; /* xorshift64, Marsaglia 2003 */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 32) * bound >> 32);
}

/* ---- devices ------------------------------------------------------------------------------- */

static const uint8_t frame_end[8] = "growth";

/* The engine only reads the frame: in a buffer that has one already, just the addresses change. */
static void fill_frame(uint8_t *out)
{
    const struct shape *s = world.shape;
    uint32_t peer = world.traffic->any ? random_below(peers_of[world.traffic->node]) : 0;
    uint8_t subnet = (uint8_t)(16 * random_below(peers_of[world.traffic->node] > 1 ? PREFIXES : 1));
    uint8_t high = (uint8_t)(peer >> 8), low = (uint8_t)peer;
    uint8_t addresses[] = {10, high, low, subnet | 1, 10, high, low, subnet | 2};

    if (memcmp(out + s->length - sizeof frame_end, frame_end, sizeof frame_end) ||
        out[2] != s->length >> 8 || out[3] != (uint8_t)s->length) {
        memset(out, 0x5a, s->length);
        memset(out, 0, 40);
        memcpy(out + s->length - sizeof frame_end, frame_end, sizeof frame_end);
        out[0] = 0x45;
        out[2] = (uint8_t)(s->length >> 8);
        out[3] = (uint8_t)s->length;
        out[8] = 64;
        out[9] = IPPROTO_TCP;
        out[32] = 5 << 4; /* TCP header of 20 bytes */
        out[33] = 0x10;   /* ACK */
    }
    memcpy(out + 12, addresses, sizeof addresses);
}

static ssize_t world_readv(void *context, int fd, const struct iovec *iov, int count)
{
    struct virtio_net_hdr header = {0};
    (void)context, (void)fd, (void)count;
    if (!world.frames) {
        errno = EAGAIN;
        return -1;
    }
    world.frames--;
    if (world.shape->packets > 1)
        header = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
                                         .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
                                         .gso_size = SEGMENT,
                                         .csum_start = 20,
                                         .csum_offset = 16};
    memcpy(iov[0].iov_base, &header, sizeof header);
    fill_frame(iov[1].iov_base);
    return (ssize_t)(sizeof header + world.shape->length);
}

static ssize_t world_writev(void *context, int fd, const struct iovec *iov, int count)
{
    ssize_t length = 0;
    (void)context, (void)fd;
    for (int i = 0; i < count; i++)
        length += (ssize_t)iov[i].iov_len;
    return length;
}

static ssize_t world_sendmsg(void *context, int fd, const struct msghdr *message, int flags)
{
    size_t length = message->msg_iov->iov_len;
    uint16_t segment = (uint16_t)length;
    (void)context, (void)fd, (void)flags;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c;
         c = CMSG_NXTHDR((struct msghdr *)message, c))
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_SEGMENT)
            memcpy(&segment, CMSG_DATA(c), sizeof segment);
    world.sent += (length + segment - 1) / segment;
    if (world.keep) {
        assert(world.count < MOST_TRAINS && world.used + length <= ROOM);
        world.train[world.count].data = world.room + world.used;
        world.train[world.count].length = (uint32_t)length;
        world.train[world.count++].segment = segment;
        memcpy(world.room + world.used, message->msg_iov->iov_base, length);
        world.used += length;
    }
    return (ssize_t)length;
}

static int world_recvmmsg(void *context, int fd, struct mmsghdr *messages, unsigned count,
                          int flags)
{
    unsigned n = 0;
    (void)context, (void)fd, (void)flags;
    for (; n < count && world.next < world.count; n++, world.next++) {
        struct msghdr *h = &messages[n].msg_hdr;
        int segment = (int)world.train[world.next].segment;
        struct sockaddr_storage from;
        sim_address(&from, AF_INET, 0, SIM_PORT);
        memcpy(h->msg_name, &from, sizeof(struct sockaddr_in));
        messages[n].msg_len = world.train[world.next].length;
        memcpy(h->msg_iov->iov_base, world.train[world.next].data, messages[n].msg_len);
        h->msg_controllen = 0;
        sim_add_control(h, IPPROTO_UDP, UDP_GRO, &segment, sizeof segment);
        h->msg_flags = 0;
    }
    if (!n)
        errno = EAGAIN;
    return n ? (int)n : -1;
}

static const struct tun_io world_tun = {world_readv, world_writev};
static const struct udp_io world_udp = {world_sendmsg, sim_sendmmsg, world_recvmmsg};

/* ---- engines ------------------------------------------------------------------------------- */

static const char *aead_name = "";

static void adjust(struct tunnel_options *options)
{
    options->no_vnet_hdr = false;
    snprintf(options->aead, sizeof options->aead, "%s", aead_name);
}

/* A session that leads back to itself; past and future of the peer do not matter here. */
static void give_session(struct tunnel *tunnel, struct peer *peer)
{
    struct noise_session_keys keys = {.initiator = false};
    randombytes_buf(keys.send.bytes, sizeof keys.send.bytes);
    keys.receive = keys.send;
    struct session *s = session_create(peer, &keys, 0, clock_now(), tunnel->thread_count);
    assert(s && index_table_insert(tunnel->indices, &s->entry));
    s->remote_index = s->entry.index;
    atomic_store(&peer->current_session, s);
}

static void add_peer(struct tunnel *tunnel, uint32_t i, size_t prefixes)
{
    struct tunnel_prefix prefix[PREFIXES];
    for (size_t k = 0; k < prefixes; k++)
        prefix[k] = (struct tunnel_prefix){
            .family = 4,
            .length = 28,
            .address = {10, (uint8_t)(i >> 8), (uint8_t)i, (uint8_t)(16 * k)}};
    struct tunnel_peer_change change = {
        .fields = TUNNEL_PEER_ENDPOINT,
        .public_key = {9, (uint8_t)(i >> 8), (uint8_t)i},
        .endpoint = {.family = 4, .port = SIM_PORT, .address = {192, 0, 2, 1}},
        .prefixes = prefix,
        .prefix_count = prefixes,
    };
    assert(!tunnel_set_peer(tunnel, &change));
    give_session(tunnel, tunnel_find_peer(tunnel, change.public_key));
}

static void start(void)
{
    world.room = malloc(ROOM);
    assert(world.room);
    sim_start(NODES, adjust);
    for (int node = 0; node < NODES; node++) {
        struct tunnel *tunnel = sim.node[node].tunnel;
        tunnel->tun.queue[0]->io = &world_tun;
        tunnel->udp.pair[0].v4.io = &world_udp;
        for (uint32_t i = 0; i < peers_of[node]; i++)
            add_peer(tunnel, i, node == ONE ? 1 : PREFIXES);
        assert(tunnel->peer_count == peers_of[node]);
    }
}

/* ---- rounds -------------------------------------------------------------------------------- */

static double send_round(bool keep)
{
    struct thread *t = &sim.node[world.traffic->node].tunnel->worker[0].primary;
    uint64_t packets = (uint64_t)world.shape->frames * world.shape->packets;
    world.keep = keep;
    world.frames = world.shape->frames;
    world.sent = world.count = world.next = 0;
    world.used = 0;
    double begin = cpu_ns();
    while (world.frames || send_waits(t))
        send_batch(t);
    double spent = cpu_ns() - begin;
    assert(world.sent == packets);
    return spent / (double)packets;
}

static double receive_round(void)
{
    struct thread *t = &sim.node[world.traffic->node].tunnel->worker[0].primary;
    uint64_t before = counter_get(&t->counters.rx.packets), packets = world.sent;
    double begin = cpu_ns();
    while (world.next < world.count)
        receive_batch(t, &t->sockets->v4);
    double spent = cpu_ns() - begin;
    assert(counter_get(&t->counters.rx.packets) - before == packets);
    return spent / (double)packets;
}

static double copy_round(void)
{
    static uint8_t buffers[UDP_RECEIVE_MESSAGES][UDP_RECEIVE_CAPACITY];
    double begin = cpu_ns();
    for (uint32_t i = 0; i < world.count; i++)
        memcpy(buffers[i % UDP_RECEIVE_MESSAGES], world.train[i].data, world.train[i].length);
    __asm__ volatile("" ::"r"(buffers) : "memory"); /* the copies are not for nothing */
    return (cpu_ns() - begin) / (double)world.sent;
}

static void check_nothing_was_dropped(void)
{
    for (int node = 0; node < NODES; node++) {
        struct tunnel_stats stats;
        tunnel_get_stats(sim.node[node].tunnel, &stats);
        for (size_t i = 0; i < DROP_COUNT; i++)
            assert(!stats.drops[i]);
    }
}

int main(int argc, char **argv)
{
    static double out[SHAPES][TRAFFICS][ROUNDS], in[SHAPES][TRAFFICS][ROUNDS];
    bool json = argc > 1 && !strcmp(argv[1], "--json");
    const char *separator = "";
    aead_name = argc > 1 + json ? argv[1 + json] : "";
    start();
    for (unsigned round = 0; round < ROUNDS; round++)
        for (size_t shape = 0; shape < SHAPES; shape++)
            for (size_t i = 0; i < TRAFFICS; i++) {
                world.traffic = &traffics[i];
                world.shape = &shapes[shape];
                out[shape][i][round] = send_round(false);
                send_round(true);
                in[shape][i][round] = receive_round() - copy_round();
            }
    check_nothing_was_dropped();

    if (json)
        printf("{\"schemaVersion\":1,\"growth\":[");
    else
        printf("ns of CPU time per packet\n%-6s %-14s %8s %8s %8s %8s\n", "", "", "out", "growth",
               "in", "growth");
    for (size_t shape = 0; shape < SHAPES; shape++) {
        double base_out = 0, base_in = 0;
        for (size_t i = 0; i < TRAFFICS; i++) {
            double o = median(out[shape][i], ROUNDS), n = median(in[shape][i], ROUNDS);
            if (i % 2 == 0)
                base_out = o, base_in = n;
            if (json)
                printf("%s{\"shape\":\"%s\",\"traffic\":\"%s\",\"outNs\":%.1f,\"inNs\":%.1f,"
                       "\"outGrowth\":%.3f,\"inGrowth\":%.3f}",
                       separator, shapes[shape].name, traffics[i].name, o, n, o / base_out,
                       n / base_in);
            else
                printf("%-6s %-14s %8.0f %8.2f %8.0f %8.2f\n", shapes[shape].name, traffics[i].name,
                       o, o / base_out, n, n / base_in);
            separator = ",";
        }
    }
    if (json)
        printf("]}\n");
    sim_stop();
    free(world.room);
    return 0;
}
