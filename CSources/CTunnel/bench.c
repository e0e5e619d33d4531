/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine measures itself: send_batch() and receive_batch() between devices that cost nothing,
 * beside the AEAD alone and every back-end. One thread, one peer whose session leads back to
 * itself, so that what was sealed can be opened.
 *
 *   fake TUN → send_batch → fake socket, which keeps the trains → receive_batch → fake TUN
 *
 * A round measures everything once, every back-end included; rounds follow each other until time is
 * up, and the figures are medians. So what else the machine does meets all parts alike.
 */
#include "engine.h"
#include "receive.h"
#include "send.h"
#include <errno.h>
#include <netinet/udp.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define MINIMUM_ROUNDS 5
#define MAXIMUM_ROUNDS 1000
#define AEAD_BATCH     32
#define SUPER_SEGMENTS 45 /* what a train of full packets takes */
#define SUPER_PAYLOAD  (DEFAULT_MTU - 40)
#define TRAINS         48 /* 3 MB of full packets: more than a second-level cache */
#define BATCH_SAMPLES  16384

static const uint32_t aead_lengths[TUNNEL_BENCH_LENGTHS] = {64, 1424};

struct shape {
    uint32_t packet_length;
    uint32_t segments; /* of a frame */
    uint32_t frames;   /* in a round */
};

static const struct shape shapes[TUNNEL_BENCH_SHAPES] = {
    {DEFAULT_MTU, SUPER_SEGMENTS, TRAINS},
    {84, 1, TRAINS *MAX_BATCH_PACKETS}, /* a ping: 64 bytes of ICMP, 20 of IP */
};

struct train {
    uint8_t *data;
    uint32_t length, segment;
};

struct samples {
    uint64_t count, packets;
    double values[BATCH_SAMPLES]; /* a ring */
};

/* One kind of traffic: its sealed trains, and how long its batches took. */
struct scene {
    const struct shape *shape;
    struct train train[TRAINS];
    uint32_t train_count, train_next;
    struct samples out, in;
};

/* The engine and the world around it. */
struct bench {
    struct tunnel *tunnel;
    struct thread *thread;
    struct peer *peer;
    struct session *session;
    struct tun_queue queue;
    uint8_t *frame;
    uint32_t frame_length;
    uint32_t frames; /* still to be read */
    bool keep;       /* the socket keeps what is sent */
    struct scene scenes[TUNNEL_BENCH_SHAPES], *scene;
    uint8_t *scratch; /* where the AEAD alone works, and where the copy alone goes */
    uint64_t aead_counter;
};

/* ---- time ---------------------------------------------------------------------------------- */

static double time_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* CPU time of this thread: other load on the machine does not count. */
static double cpu_ns(void)
{
    return time_ns(CLOCK_THREAD_CPUTIME_ID);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Nearest rank. Sorts `values`. */
static double percentile(double *values, size_t count, unsigned percent)
{
    qsort(values, count, sizeof *values, compare);
    return count ? values[(count * percent + 99) / 100 - 1] : 0;
}

static void add_sample(struct samples *s, double value)
{
    s->values[s->count++ % BATCH_SAMPLES] = value;
}

/* ---- devices that cost nothing ------------------------------------------------------------- */

/* As the device describes the shape's frames. */
static struct virtio_net_hdr frame_header(const struct shape *shape)
{
    if (shape->segments == 1)
        return (struct virtio_net_hdr){0};
    return (struct virtio_net_hdr){
        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
        .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
        .gso_size = SUPER_PAYLOAD,
        .csum_start = 20,
        .csum_offset = 16,
    };
}

static ssize_t bench_readv(void *context, int fd, const struct iovec *iov, int count)
{
    struct bench *b = context;
    struct virtio_net_hdr header = frame_header(b->scene->shape);
    (void)fd, (void)count;
    if (!b->frames) {
        errno = EAGAIN;
        return -1;
    }
    b->frames--;
    memcpy(iov[0].iov_base, &header, sizeof header);
    b->frame = iov[1].iov_base;
    uint32_t length = b->scene->shape->segments > 1 ? 40 + SUPER_SEGMENTS * SUPER_PAYLOAD
                                                    : b->scene->shape->packet_length;
    uint8_t *p = b->frame;
    if ((uint32_t)(p[2] << 8 | p[3]) != length) { /* the engine only reads it: it stays filled */
        memset(p, 0, 40);
        memset(p + 40, 0x5a, length - 40);
        p[0] = 0x45;
        p[1] = 3; /* CE: a device that is always full gets its marks, and loses nothing for it */
        p[2] = (uint8_t)(length >> 8);
        p[3] = (uint8_t)length;
        p[8] = 64;
        p[9] = b->scene->shape->segments > 1 ? IPPROTO_TCP : IPPROTO_ICMP;
        memcpy(p + 12, (uint8_t[]){10, 0, 0, 1, 10, 0, 0, 2}, 8);
        p[32] = 5 << 4; /* TCP header of 20 bytes */
        p[33] = 0x10;   /* ACK */
    }
    b->frame_length = length;
    return (ssize_t)(sizeof header + length);
}

static ssize_t bench_writev(void *context, int fd, const struct iovec *iov, int count)
{
    ssize_t length = 0;
    (void)context, (void)fd;
    for (int i = 0; i < count; i++)
        length += (ssize_t)iov[i].iov_len;
    return length;
}

static ssize_t bench_sendmsg(void *context, int fd, const struct msghdr *message, int flags)
{
    struct bench *b = context;
    size_t length = message->msg_iov->iov_len;
    uint16_t segment = (uint16_t)length;
    (void)fd, (void)flags;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c;
         c = CMSG_NXTHDR((struct msghdr *)message, c))
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_SEGMENT)
            memcpy(&segment, CMSG_DATA(c), sizeof segment);
    if (b->keep && b->scene->train_count < TRAINS) {
        struct train *t = &b->scene->train[b->scene->train_count++];
        t->length = (uint32_t)length;
        t->segment = segment;
        memcpy(t->data, message->msg_iov->iov_base, length);
    }
    return (ssize_t)length;
}

static int bench_sendmmsg(void *context, int fd, struct mmsghdr *messages, unsigned count,
                          int flags)
{
    (void)context, (void)fd, (void)messages, (void)flags;
    return (int)count;
}

static int bench_recvmmsg(void *context, int fd, struct mmsghdr *messages, unsigned count,
                          int flags)
{
    struct bench *b = context;
    unsigned n = 0;
    (void)fd, (void)flags;
    for (; n < count && b->scene->train_next < b->scene->train_count; n++) {
        const struct train *t = &b->scene->train[b->scene->train_next++];
        struct msghdr *h = &messages[n].msg_hdr;
        int segment = (int)t->segment;
        memcpy(h->msg_iov->iov_base, t->data, t->length);
        memcpy(h->msg_name, &b->peer->endpoint.remote.v4, sizeof(struct sockaddr_in));
        messages[n].msg_len = t->length;
        struct cmsghdr *c = CMSG_FIRSTHDR(h);
        *c = (struct cmsghdr){
            .cmsg_level = IPPROTO_UDP, .cmsg_type = UDP_GRO, .cmsg_len = CMSG_LEN(sizeof segment)};
        memcpy(CMSG_DATA(c), &segment, sizeof segment);
        h->msg_controllen = CMSG_SPACE(sizeof segment);
    }
    if (!n)
        errno = EAGAIN;
    return n ? (int)n : -1;
}

static const struct tun_io bench_tun_io = {bench_readv, bench_writev};
static const struct udp_io bench_udp_io = {bench_sendmsg, bench_sendmmsg, bench_recvmmsg};

/* ---- set up and taken down ----------------------------------------------------------------- */

static void init_devices(struct bench *b)
{
    struct tunnel *tunnel = b->tunnel;
    struct udp_socket *socket = &tunnel->udp.pair[0].v4;
    tunnel->tun.vnet_hdr = tunnel->tun.tso = tunnel->tun.uso = true;
    atomic_init(&tunnel->tun.merge_tcp, true);
    atomic_init(&tunnel->tun.merge_udp, true);
    b->queue =
        (struct tun_queue){.fd = -1, .io = &bench_tun_io, .io_context = b, .tun = &tunnel->tun};
    tunnel->udp.worker_count = tunnel->worker_count = tunnel->thread_count = 1;
    atomic_init(&tunnel->udp.bound, true);
    *socket = (struct udp_socket){
        .fd = tunnel->control_wake, /* any number: no system call gets it */
        .family = AF_INET,
        .gso = true,
        .gro = true,
        .sendmmsg = true,
        .io = &bench_udp_io,
        .io_context = b,
    };
    tunnel->udp.pair[0].v6.fd = -1;
    atomic_init(&tunnel->up, true);
    atomic_init(&tunnel->mtu, DEFAULT_MTU);
}

static int init_thread(struct bench *b)
{
    struct tunnel *tunnel = b->tunnel;
    struct thread *t = b->thread;
    t->tunnel = tunnel;
    t->reader = epoch_register(&tunnel->epoch);
    t->aead = aead_worker_create(tunnel->aead);
    t->sockets = &tunnel->udp.pair[0];
    t->queue = &b->queue;
    t->sender = sender_create();
    t->receiver = receiver_create();
    return t->reader && t->aead && t->sender && t->receiver ? 0 : -ENOMEM;
}

/* The peer is 10.0.0.0/24 at 192.0.2.1 (RFC 5737); what we send it is what we receive from it. */
static int init_session(struct bench *b)
{
    struct tunnel *tunnel = b->tunnel;
    struct noise_session_keys keys = {.initiator = false};
    const struct allowedips_prefix inside = {.address = {10}, .family = 4, .length = 24};
    uint8_t public_key[KEY_LENGTH];
    randombytes_buf(public_key, sizeof public_key);
    randombytes_buf(keys.send.bytes, sizeof keys.send.bytes);
    keys.receive = keys.send;

    b->peer = peer_create(tunnel, public_key);
    if (!b->peer)
        return -ENOMEM;
    b->peer->endpoint.remote.v4 = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(51820), .sin_addr.s_addr = htonl(0xc0000201)};
    b->session = session_create(b->peer, &keys, 0, clock_now(), tunnel->thread_count);
    if (!b->session)
        return -ENOMEM;
    atomic_store(&b->peer->current_session, b->session);
    if (!index_table_insert(tunnel->indices, &b->session->entry))
        return -ENOMEM;
    b->session->remote_index = b->session->entry.index;
    return allowedips_insert(tunnel->allowed_ips, &inside, &b->peer->allowed_ips);
}

static int init(struct bench *b, const struct aead_backend *aead)
{
    struct tunnel *tunnel = b->tunnel;
    tunnel->aead = aead;
    tunnel->control_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (tunnel->control_wake < 0)
        return -errno;
    timer_queue_init(&tunnel->timers, tunnel->control_wake);
    tunnel->indices = index_table_create(&tunnel->epoch);
    tunnel->allowed_ips = allowedips_create(&tunnel->epoch);
    b->scratch = aligned_alloc(64, UDP_RECEIVE_MESSAGES * (size_t)UDP_RECEIVE_CAPACITY);
    if (!tunnel->indices || !tunnel->allowed_ips || !b->scratch)
        return -ENOMEM;
    memset(b->scratch, 0x5a, UDP_RECEIVE_MESSAGES * (size_t)UDP_RECEIVE_CAPACITY);
    for (unsigned i = 0; i < TUNNEL_BENCH_SHAPES; i++) {
        b->scenes[i].shape = &shapes[i];
        for (unsigned k = 0; k < TRAINS; k++)
            if (!(b->scenes[i].train[k].data = malloc(UDP_RECEIVE_CAPACITY)))
                return -ENOMEM;
    }
    b->scene = &b->scenes[0];
    init_devices(b);
    int error = init_thread(b);
    return error ? error : init_session(b);
}

static struct bench *bench_create(void)
{
    struct bench *b = calloc(1, sizeof *b);
    size_t tunnel_size = (sizeof *b->tunnel + 63) & ~(size_t)63;
    size_t thread_size = (sizeof *b->thread + 63) & ~(size_t)63;
    if (!b)
        return NULL;
    b->tunnel = aligned_alloc(64, tunnel_size);
    b->thread = aligned_alloc(64, thread_size);
    if (!b->tunnel || !b->thread) {
        free(b->tunnel);
        free(b->thread);
        free(b);
        return NULL;
    }
    memset(b->tunnel, 0, tunnel_size);
    memset(b->thread, 0, thread_size);
    b->tunnel->control_wake = -1;
    pthread_mutex_init(&b->tunnel->label_lock, NULL);
    epoch_init(&b->tunnel->epoch);
    return b;
}

static void bench_destroy(struct bench *b)
{
    struct tunnel *tunnel = b->tunnel;
    if (b->peer) {
        allowedips_remove_all(tunnel->allowed_ips, &b->peer->allowed_ips);
        peer_kill(b->peer);
    }
    aead_worker_destroy(b->thread->aead);
    sender_destroy(b->thread->sender);
    receiver_destroy(b->thread->receiver);
    epoch_destroy(&tunnel->epoch);
    if (tunnel->indices)
        index_table_destroy(tunnel->indices);
    if (tunnel->allowed_ips)
        allowedips_destroy(tunnel->allowed_ips);
    if (tunnel->control_wake >= 0) {
        timer_queue_destroy(&tunnel->timers);
        close(tunnel->control_wake);
    }
    for (unsigned i = 0; i < TUNNEL_BENCH_SHAPES; i++)
        for (unsigned k = 0; k < TRAINS; k++)
            free(b->scenes[i].train[k].data);
    free(b->scratch);
    free(b->thread);
    free(tunnel);
    free(b);
}

/* ---- the path ------------------------------------------------------------------------------ */

/* One round outbound, in ns of CPU time per packet. */
static double measure_out(struct bench *b)
{
    struct thread *t = b->thread;
    uint64_t before = counter_get(&t->counters.tx.packets);
    b->frames = b->scene->shape->frames;
    double start = cpu_ns();
    while (b->frames || send_waits(t)) {
        double batch = time_ns(CLOCK_MONOTONIC);
        send_batch(t);
        add_sample(&b->scene->out, time_ns(CLOCK_MONOTONIC) - batch);
    }
    double spent = cpu_ns() - start;
    uint64_t packets = counter_get(&t->counters.tx.packets) - before;
    b->scene->out.packets += packets;
    return spent / (double)(packets ? packets : 1);
}

/* What stands for the kernel's copy into the receive buffers. */
static double copy_trains(struct bench *b)
{
    double start = cpu_ns();
    for (uint32_t i = 0; i < b->scene->train_count; i++)
        memcpy(b->scratch + (size_t)(i % UDP_RECEIVE_MESSAGES) * UDP_RECEIVE_CAPACITY,
               b->scene->train[i].data, b->scene->train[i].length);
    __asm__ volatile("" ::"r"(b->scratch) : "memory"); /* the copies are not for nothing */
    return cpu_ns() - start;
}

/* One round inbound without that copy. The trains are the same ones each time, so the window
 * forgets them. */
static double measure_in(struct bench *b)
{
    struct thread *t = b->thread;
    uint64_t before = counter_get(&t->counters.rx.packets);
    memset(&b->session->replay, 0, sizeof b->session->replay);
    b->scene->train_next = 0;
    double start = cpu_ns();
    while (b->scene->train_next < b->scene->train_count) {
        double batch = time_ns(CLOCK_MONOTONIC);
        receive_batch(t, &t->sockets->v4);
        add_sample(&b->scene->in, time_ns(CLOCK_MONOTONIC) - batch);
    }
    double spent = cpu_ns() - start - copy_trains(b);
    uint64_t packets = counter_get(&t->counters.rx.packets) - before;
    b->scene->in.packets += packets;
    return spent > 0 ? spent / (double)(packets ? packets : 1) : 0;
}

/* ---- the AEAD alone ------------------------------------------------------------------------ */

/* One call for `count` packets of `length` bytes, laid out as in a train; ns per packet. */
static double time_aead(struct bench *b, struct aead_worker *worker, uint32_t length, size_t count,
                        bool open)
{
    struct aead_packet packets[MAX_BATCH_PACKETS];
    uint32_t stride = length + (uint32_t)MESSAGE_DATA_MINIMUM;
    for (size_t i = 0; i < count; i++) {
        uint8_t *at = b->scratch + i * stride + sizeof(struct message_data);
        packets[i] = (struct aead_packet){at, at, b->aead_counter++, length, false};
    }
    if (open)
        aead_seal_n(worker, &b->session->send_key, packets, count);
    double start = cpu_ns();
    if (open)
        aead_open_n(worker, &b->session->send_key, packets, count);
    else
        aead_seal_n(worker, &b->session->send_key, packets, count);
    return (cpu_ns() - start) / (double)count;
}

/* Several calls, because the clock costs about as much as a small batch. */
static double measure_aead(struct bench *b, struct aead_worker *worker, uint32_t length,
                           size_t count, bool open)
{
    double values[5];
    for (size_t i = 0; i < 5; i++)
        values[i] = time_aead(b, worker, length, count, open);
    return percentile(values, 5, 50);
}

/* ---- splitting and merging alone ----------------------------------------------------------- */

struct stages {
    double split, merge; /* ns per packet */
};

/* Splits `frames` frames, the one that the path outbound was last measured with, to places that
 * repeat after `places` packets. Returns how many packets that was. */
static size_t split_frames(struct bench *b, const struct shape *shape, uint32_t frames,
                           size_t places, struct packet *packets)
{
    const struct virtio_net_hdr header = frame_header(shape);
    const size_t stride = (shape->packet_length + 15) & ~15u;
    size_t count = 0;
    while (frames--) {
        struct split split;
        if (split_plan(&header, b->frame, b->frame_length, &split) != SPLIT_OK)
            return 0;
        for (uint32_t i = 0; i < split.count; i++, count++) {
            uint8_t *place = b->scratch + count % places * stride;
            split_segment(&split, i, place);
            packets[count] =
                (struct packet){.data = place, .length = split_segment_length(&split, i)};
        }
    }
    return count;
}

/* As many packets as one batch inbound has: split to where one batch outbound has them, then split
 * once more to where they come from the socket, and merged. */
static struct stages measure_stages(struct bench *b, const struct shape *shape)
{
    struct packet packets[MERGE_MAX_PACKETS];
    const bool super = shape->segments > 1;
    const uint32_t frames = super ? UDP_RECEIVE_MESSAGES : MERGE_MAX_PACKETS;
    const size_t slab = super ? shape->segments : MAX_BATCH_PACKETS;

    double start = cpu_ns();
    size_t count = split_frames(b, shape, frames, slab, packets);
    double split = cpu_ns() - start;
    split_frames(b, shape, frames, MERGE_MAX_PACKETS, packets);
    b->queue.merge.tcp = b->queue.merge.udp = true;
    start = cpu_ns();
    merge_plan(&b->queue.merge, packets, count);
    double merge = cpu_ns() - start;
    if (!count)
        return (struct stages){0}; /* the tests notice */
    return (struct stages){split / (double)count, merge / (double)count};
}

/* ---- rounds -------------------------------------------------------------------------------- */

/* Those of a direction follow each other: fill_direction() relies on it. */
enum part { OUT, SEAL, SPLIT, IN, OPEN, MERGE, PARTS };

/* Values of every round, by shape and part; the AEADs' by back-end, length and operation. */
struct rounds {
    unsigned count;
    double path[TUNNEL_BENCH_SHAPES][PARTS][MAXIMUM_ROUNDS];
    double aead[TUNNEL_BENCH_BACKENDS][TUNNEL_BENCH_LENGTHS][2][MAXIMUM_ROUNDS];
    unsigned worker_count;
    struct aead_worker *worker[TUNNEL_BENCH_BACKENDS];
};

/* Seals trains of this shape and keeps them. False: packets were lost, the figures would lie. */
static bool keep_trains(struct bench *b, struct scene *scene)
{
    struct counters *c = &b->thread->counters;
    b->scene = scene;
    measure_out(b); /* the sender knows now what batches to expect */
    b->keep = true;
    measure_out(b);
    b->keep = false;
    measure_in(b);
    bool arrived = scene->in.packets > 0;
    scene->out.count = scene->out.packets = scene->in.count = scene->in.packets = 0;
    for (unsigned reason = 0; reason < DROP_COUNT; reason++)
        if (counter_get(&c->drops[reason]))
            return false;
    return arrived;
}

static void path_round(struct bench *b, unsigned i, struct rounds *r)
{
    const struct shape *shape = &shapes[i];
    uint32_t padded = (shape->packet_length + 15) & ~15u;
    uint32_t length = padded < DEFAULT_MTU ? padded : DEFAULT_MTU;
    size_t batch = shape->segments > 1 ? shape->segments : MAX_BATCH_PACKETS;
    b->scene = &b->scenes[i];
    b->session->born_ns = clock_now(); /* a session lives for 180 s only */
    r->path[i][OUT][r->count] = measure_out(b);
    struct stages stages = measure_stages(b, shape);
    r->path[i][SPLIT][r->count] = stages.split;
    r->path[i][MERGE][r->count] = stages.merge;
    r->path[i][SEAL][r->count] = measure_aead(b, b->thread->aead, length, batch, false);
    r->path[i][IN][r->count] = measure_in(b);
    r->path[i][OPEN][r->count] = measure_aead(b, b->thread->aead, length, batch, true);
}

static void aead_round(struct bench *b, struct rounds *r)
{
    for (unsigned i = 0; i < r->worker_count; i++)
        for (unsigned l = 0; l < TUNNEL_BENCH_LENGTHS; l++)
            for (unsigned open = 0; open < 2; open++)
                r->aead[i][l][open][r->count] =
                    measure_aead(b, r->worker[i], aead_lengths[l], AEAD_BATCH, open);
}

/* `parts`: of the path, the AEAD, splitting or merging. */
static void fill_direction(struct tunnel_bench_direction *out, double (*parts)[MAXIMUM_ROUNDS],
                           unsigned rounds, struct samples *batches)
{
    size_t kept = batches->count < BATCH_SAMPLES ? batches->count : BATCH_SAMPLES;
    *out = (struct tunnel_bench_direction){
        .path_ns = percentile(parts[0], rounds, 50),
        .aead_ns = percentile(parts[1], rounds, 50),
        .offload_ns = percentile(parts[2], rounds, 50),
        .batch_p50_ns = percentile(batches->values, kept, 50),
        .batch_p99_ns = percentile(batches->values, kept, 99),
        .batches = batches->count,
        .batch_packets = (uint32_t)((batches->packets + batches->count / 2) / batches->count),
    };
}

static void fill(struct bench *b, struct rounds *r, struct tunnel_bench *out)
{
    for (unsigned i = 0; i < TUNNEL_BENCH_SHAPES; i++) {
        struct tunnel_bench_shape *shape = &out->shapes[i];
        double(*path)[MAXIMUM_ROUNDS] = r->path[i];
        shape->packet_length = shapes[i].packet_length;
        shape->super_packets = shapes[i].segments > 1;
        fill_direction(&shape->out, path + OUT, r->count, &b->scenes[i].out);
        fill_direction(&shape->in, path + IN, r->count, &b->scenes[i].in);
    }
    out->aead_count = r->worker_count;
    for (unsigned i = 0; i < r->worker_count; i++) {
        struct tunnel_bench_aead *a = &out->aeads[i];
        snprintf(a->name, sizeof a->name, "%s", r->worker[i]->backend->name);
        for (unsigned l = 0; l < TUNNEL_BENCH_LENGTHS; l++) {
            a->seal_ns[l] = percentile(r->aead[i][l][0], r->count, 50);
            a->open_ns[l] = percentile(r->aead[i][l][1], r->count, 50);
        }
    }
}

/* Every back-end that runs here and passes its self-test. */
static void create_workers(struct rounds *r)
{
    for (size_t i = 0; aead_backends[i] && r->worker_count < TUNNEL_BENCH_BACKENDS; i++) {
        struct aead_worker *worker =
            aead_self_test(aead_backends[i]) ? aead_worker_create(aead_backends[i]) : NULL;
        if (worker)
            r->worker[r->worker_count++] = worker;
    }
}

static int measure(struct bench *b, uint32_t milliseconds, struct tunnel_bench *out)
{
    double until = time_ns(CLOCK_MONOTONIC) + (double)milliseconds * 1e6;
    struct rounds *r = calloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    for (unsigned i = 0; i < TUNNEL_BENCH_SHAPES; i++)
        if (!keep_trains(b, &b->scenes[i])) {
            free(r);
            return -EIO;
        }
    create_workers(r);
    for (; r->count < MAXIMUM_ROUNDS; r->count++) {
        if (r->count >= MINIMUM_ROUNDS && time_ns(CLOCK_MONOTONIC) > until)
            break;
        for (unsigned i = 0; i < TUNNEL_BENCH_SHAPES; i++)
            path_round(b, i, r);
        aead_round(b, r);
    }
    fill(b, r, out);
    for (unsigned i = 0; i < r->worker_count; i++)
        aead_worker_destroy(r->worker[i]);
    free(r);
    return 0;
}

int tunnel_bench(uint32_t milliseconds, const char *aead, struct tunnel_bench *out,
                 char *error_text)
{
    const struct aead_backend *backend = sodium_init() < 0 ? NULL : aead_choose(aead);
    *out = (struct tunnel_bench){0};
    error_text[0] = 0;
    if (!backend) {
        snprintf(error_text, TUNNEL_ERROR_TEXT_CAPACITY,
                 "AEAD back-end '%s' is unknown or does not run on this machine; "
                 "leave the choice out to take the fastest that does",
                 aead ? aead : "");
        return -ENOTSUP;
    }
    struct bench *b = bench_create();
    int error = b ? init(b, backend) : -ENOMEM;
    snprintf(out->aead, sizeof out->aead, "%s", backend->name);
    memcpy(out->aead_lengths, aead_lengths, sizeof out->aead_lengths);
    if (!error)
        error = measure(b, milliseconds, out);
    if (error == -EIO)
        snprintf(error_text, TUNNEL_ERROR_TEXT_CAPACITY,
                 "cannot measure: the engine dropped packets of its own; this is a defect");
    else if (error)
        snprintf(error_text, TUNNEL_ERROR_TEXT_CAPACITY, "cannot set up the measurement: %s",
                 strerror(-error));
    if (b)
        bench_destroy(b);
    return error;
}
