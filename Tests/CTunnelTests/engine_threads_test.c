/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two engines with all their threads, real TUN devices and real sockets in a network namespace of
 * this process:
 *
 *     packet socket → tun "a" → engine A → UDP over loopback → engine B → tun "b" → packet socket
 *
 * Packet sockets put packets on a device and see what the engine writes to it, so neither addresses
 * nor routes are needed. Needs CAP_SYS_ADMIN and CAP_NET_ADMIN; skipped without.
 * Waits more than it computes.
 */
#include "include/tunnel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
/* cmocka.h needs some of the above */
#include <cmocka.h>

#define PATIENCE_MS 20000 /* for one packet or one state; only failures wait that long */
#define SETTLED_MS  1000  /* for one that was dropped, it seems */
#define FLOWS       8

struct end {
    const char *name;
    struct tunnel *tunnel;
    uint16_t port;
    uint8_t inner[4], public_key[TUNNEL_KEY_LENGTH];
    int device; /* packet socket bound to the device */
    unsigned interface;
    uint32_t sent[FLOWS], received[FLOWS], missing;
};

static struct end a, b;
static bool namespace_ready;

/* ---- the devices --------------------------------------------------------------------------- */

static int set_link(const char *name, bool up)
{
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    int error = ioctl(fd, SIOCGIFFLAGS, &request);
    request.ifr_flags = (short)(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
    if (!error)
        error = ioctl(fd, SIOCSIFFLAGS, &request);
    close(fd);
    return error;
}

static int enter_namespace(void **state)
{
    (void)state;
    alarm(540); /* a thread that does not end fails the test instead of hanging it */
    namespace_ready = !unshare(CLONE_NEWNET) && !set_link("lo", true);
    return sodium_init() < 0;
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void wait_until_up(struct end *e, bool up)
{
    struct tunnel_device_state state;
    uint64_t start = now_ms();
    do {
        assert_true(now_ms() - start < PATIENCE_MS);
        sched_yield();
        tunnel_get_device(e->tunnel, &state);
    } while (state.up != up);
    sodium_memzero(&state, sizeof state);
}

static int open_device(struct end *e)
{
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP)};
    int bytes = 8 << 20;
    e->interface = if_nametoindex(e->name);
    e->device = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_IP));
    setsockopt(e->device, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
    address.sll_ifindex = (int)e->interface;
    return bind(e->device, (struct sockaddr *)&address, sizeof address);
}

static void start(struct end *e, const char *name, uint16_t port, uint8_t number, unsigned workers)
{
    char error[TUNNEL_ERROR_TEXT_CAPACITY];
    struct tunnel_options options;
    struct tunnel_device_state state;
    struct tunnel_device_change change = {
        .fields = TUNNEL_DEVICE_PRIVATE_KEY | TUNNEL_DEVICE_LISTEN_PORT, .listen_port = port};
    *e = (struct end){.name = name, .port = port, .inner = {10, 0, 0, number}};
    tunnel_options_init(&options);
    strcpy(options.name, name);
    strcpy(options.aead, "libcrypto");
    options.workers = workers;
    if (tunnel_create(&options, &e->tunnel, error))
        fail_msg("%s", error);
    randombytes_buf(change.private_key, sizeof change.private_key);
    assert_int_equal(tunnel_set_device(e->tunnel, &change), 0);
    tunnel_get_device(e->tunnel, &state);
    memcpy(e->public_key, state.public_key, sizeof e->public_key);
    assert_int_equal(tunnel_start(e->tunnel), 0);
    assert_int_equal(set_link(name, true), 0);
    wait_until_up(e, true);
    assert_int_equal(open_device(e), 0);
}

static int add_peer(struct end *to, const struct end *peer)
{
    struct tunnel_prefix prefix = {.family = 4, .length = 32};
    struct tunnel_peer_change change = {
        .fields = TUNNEL_PEER_ENDPOINT,
        .endpoint = {.family = 4, .port = peer->port, .address = {127, 0, 0, 1}},
        .prefixes = &prefix,
        .prefix_count = 1,
    };
    memcpy(prefix.address, peer->inner, 4);
    memcpy(change.public_key, peer->public_key, sizeof change.public_key);
    return tunnel_set_peer(to->tunnel, &change);
}

static void start_both(unsigned workers)
{
    if (!namespace_ready)
        skip();
    start(&a, "ngtha", 51001, 1, workers);
    start(&b, "ngthb", 51002, 2, workers);
    assert_int_equal(add_peer(&a, &b), 0);
    assert_int_equal(add_peer(&b, &a), 0);
}

static void stop_both(void)
{
    for (struct end *e = &a;; e = &b) {
        tunnel_stop(e->tunnel);
        tunnel_stop(e->tunnel); /* idempotent */
        tunnel_destroy(e->tunnel);
        close(e->device);
        if (e == &b)
            break;
    }
}

/* ---- packets ------------------------------------------------------------------------------- */

static uint16_t header_checksum(const uint8_t *header)
{
    uint32_t sum = 0;
    for (int i = 0; i < 20; i += 2)
        sum += (uint32_t)header[i] << 8 | header[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

/* UDP without a checksum: it belongs to a flow, and is never merged with others. */
static bool send_packet(struct end *from, const struct end *to, uint32_t flow, size_t length)
{
    uint8_t packet[1420] = {0x45, [8] = 64, [9] = IPPROTO_UDP};
    struct sockaddr_ll address = {.sll_family = AF_PACKET,
                                  .sll_protocol = htons(ETH_P_IP),
                                  .sll_ifindex = (int)from->interface};
    size_t udp = length - 20;
    packet[2] = (uint8_t)(length >> 8);
    packet[3] = (uint8_t)length;
    memcpy(packet + 12, from->inner, 4);
    memcpy(packet + 16, to->inner, 4);
    uint16_t sum = header_checksum(packet);
    packet[10] = (uint8_t)(sum >> 8);
    packet[11] = (uint8_t)sum;
    packet[21] = (uint8_t)flow; /* source port */
    packet[23] = 9;             /* destination port: discard */
    packet[24] = (uint8_t)(udp >> 8);
    packet[25] = (uint8_t)udp;
    memcpy(packet + 28, &from->sent[flow], 4);
    if (sendto(from->device, packet, length, 0, (struct sockaddr *)&address, sizeof address) < 0)
        return false;
    from->sent[flow]++;
    return true;
}

/* The next packet that the engine delivered; false: none within `patience`. */
static bool receive_packet(struct end *at, int patience, uint32_t *flow, uint32_t *sequence)
{
    struct pollfd fd = {.fd = at->device, .events = POLLIN};
    struct sockaddr_ll from;
    uint8_t packet[2048];
    for (;;) {
        socklen_t size = sizeof from;
        ssize_t n = recvfrom(at->device, packet, sizeof packet, 0, (struct sockaddr *)&from, &size);
        if (n < 0 && errno != EAGAIN && errno != ENETDOWN)
            return false;
        if (n < 0 && poll(&fd, 1, patience) <= 0)
            return false;
        if (n < 32 || from.sll_pkttype == PACKET_OUTGOING || packet[9] != IPPROTO_UDP)
            continue;
        *flow = packet[21];
        memcpy(sequence, packet + 28, 4);
        return true;
    }
}

/* Not of data: the host's own IPv6, and what both ends' initiations at once leave unanswered. */
static bool harmless(const char *reason)
{
    return !strcmp(reason, "no_peer_for_destination") || !strcmp(reason, "unknown_index") ||
           !strncmp(reason, "handshake_", 10);
}

/* A queue that stands too long tells its senders by a loss (docs/datapath.md, "Queues"): with a
 * sanitizer's delays these windows do. */
static bool is_signal(const char *reason)
{
    return strstr(reason, "_queue_congested") != NULL;
}

static uint64_t count_drops(struct end *e, bool signals)
{
    struct tunnel_stats stats;
    uint64_t drops = 0;
    tunnel_get_stats(e->tunnel, &stats);
    for (size_t i = 0; tunnel_drop_name(i); i++)
        if (!harmless(tunnel_drop_name(i)) && is_signal(tunnel_drop_name(i)) == signals)
            drops += stats.drops[i];
    return drops;
}

static uint64_t data_drops(struct end *e)
{
    return count_drops(e, false);
}

/* Packets dropped as a signal that have not been missed yet. */
static uint64_t unmissed(void)
{
    return count_drops(&a, true) + count_drops(&b, true) - a.missing - b.missing;
}

/* What was sent arrives, each flow in order; what is missing was dropped as a signal. */
static void expect(struct end *at, uint32_t count)
{
    const struct end *sender = at == &a ? &b : &a;
    uint32_t flow = 0, sequence = 0, settled = 0;
    while (settled < count) {
        if (!receive_packet(at, SETTLED_MS, &flow, &sequence) &&
            (count - settled <= unmissed() || !receive_packet(at, PATIENCE_MS, &flow, &sequence)))
            break;
        assert_true(flow < FLOWS);
        uint32_t ahead = sequence - at->received[flow];
        if (ahead >= count)
            fail_msg("%s: flow %u: %u instead of %u", at->name, flow, sequence, at->received[flow]);
        at->received[flow] = sequence + 1;
        at->missing += ahead;
        settled += 1 + ahead;
    }
    at->missing += count - settled;
    for (flow = 0; flow < FLOWS; flow++)
        at->received[flow] = sender->sent[flow];
    if ((int64_t)unmissed() < 0)
        fail_msg("%s: %u packets are missing, %llu were dropped as a signal, %llu otherwise",
                 at->name, a.missing + b.missing,
                 (unsigned long long)(count_drops(&a, true) + count_drops(&b, true)),
                 (unsigned long long)(data_drops(&a) + data_drops(&b)));
}

/* `rounds` windows of 16 packets per flow each way. */
static void exchange(unsigned rounds, uint32_t flows)
{
    static const size_t lengths[] = {64, 1420, 1420, 1420, 700, 64, 1300, 33};
    for (unsigned i = 0; i < rounds; i++) {
        for (uint32_t j = 0; j < 16 * flows; j++) {
            assert_true(send_packet(&a, &b, j % flows, lengths[(i + j) % 8]));
            assert_true(send_packet(&b, &a, j % flows, lengths[j % 8]));
        }
        expect(&a, 16 * flows);
        expect(&b, 16 * flows);
    }
}

/* One end begins: initiations of both at once leave each other unanswered for REKEY_TIMEOUT, 5 s.
 */
static void make_session(void)
{
    assert_true(send_packet(&a, &b, 0, 64));
    expect(&b, 1);
    assert_true(send_packet(&b, &a, 0, 64));
    expect(&a, 1);
}

/* ---- tests --------------------------------------------------------------------------------- */

static void carry_both_ways(unsigned workers)
{
    start_both(workers);
    if (workers > 1) /* once it is done the long way */
        make_session();
    exchange(40, FLOWS);
    assert_int_equal(data_drops(&a), 0);
    assert_int_equal(data_drops(&b), 0);
    stop_both();
}

static void one_worker_carries_both_ways(void **state)
{
    (void)state;
    carry_both_ways(1);
}

static void four_workers_carry_both_ways(void **state)
{
    (void)state;
    carry_both_ways(4);
}

static void pitfall_35_one_flow_through_four_workers_is_never_reordered(void **state)
{
    (void)state;
    start_both(4);
    make_session();
    exchange(4, 1);
    for (int window = 0; window < 60; window++) {
        for (int i = 0; i < 128; i++)
            assert_true(send_packet(&a, &b, 0, i % 3 ? 1420 : 100));
        expect(&b, 128);
    }
    stop_both();
}

/* ---- reconfiguration under traffic --------------------------------------------------------- */

static _Atomic bool enough;
/* Each window of traffic lets either thread take one more turn, so that neither side starves. */
static sem_t windows[2];
static _Atomic unsigned turns;
static _Atomic int failed_line; /* cmocka's assertions are for its own thread only */

#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            atomic_store(&failed_line, __LINE__);                                                  \
    } while (0)

static bool count_peer(void *context, const struct tunnel_peer_state *peer,
                       const struct tunnel_prefix *prefixes, size_t prefix_count)
{
    unsigned *count = context;
    *count += peer->public_key[0] != 0 || prefix_count > 0 || prefixes != NULL;
    return true;
}

static void add_stranger(struct end *e, uint8_t number, bool remove)
{
    struct tunnel_prefix prefixes[3] = {
        {.family = 4, .length = 24, .address = {10, 1, number, 0}},
        {.family = 6, .length = 64, .address = {0xfd, number}},
        {.family = 4, .length = 16, .address = {10, 0, 0, 0}}, /* shorter than the real peer's */
    };
    struct tunnel_peer_change change = {
        .fields =
            remove ? TUNNEL_PEER_REMOVE
                   : TUNNEL_PEER_REPLACE_ALLOWED_IPS | TUNNEL_PEER_KEEPALIVE | TUNNEL_PEER_ENDPOINT,
        .endpoint = {.family = 4, .port = 9, .address = {127, 0, 0, 1}},
        .keepalive = 1, /* handshakes that nobody answers */
        .prefixes = prefixes,
        .prefix_count = remove ? 0 : 3,
        .public_key = {number, 9},
    };
    must(!tunnel_set_peer(e->tunnel, &change));
}

static void replace_all_but(struct end *e, const struct end *stays)
{
    if (tunnel_replace_peers_begin(e->tunnel) == 0) {
        must(!add_peer(e, stays));
        tunnel_replace_peers_commit(e->tunnel);
    }
}

static void change_device(struct end *e, unsigned turn)
{
    struct tunnel_device_change change = {
        .fields = TUNNEL_DEVICE_LISTEN_PORT | TUNNEL_DEVICE_FWMARK,
        .listen_port = (uint16_t)(e->port + 10 * (turn / 8 % 3)),
        .fwmark = turn % 5,
    };
    must(!tunnel_set_device(e->tunnel, &change));
}

static void *reconfigure(void *argument)
{
    struct end *e = argument, *other = e == &a ? &b : &a;
    struct tunnel_stats stats;
    for (unsigned turn = 0;; turn++, atomic_fetch_add(&turns, 1)) {
        unsigned count = 0;
        sem_wait(&windows[e == &b]);
        if (atomic_load(&enough))
            return NULL;
        add_stranger(e, (uint8_t)(1 + turn % 7), false);
        tunnel_for_each_peer(e->tunnel, count_peer, &count);
        must(count >= 2);
        tunnel_get_stats(e->tunnel, &stats);
        if (turn % 3 == 0)
            add_stranger(e, (uint8_t)(1 + turn / 3 % 7), true);
        if (turn % 5 == 0)
            replace_all_but(e, other);
        if (turn % 8 == 0)
            change_device(e, turn);
        if (e == &a && turn % 100 == 99) {
            must(!set_link(e->name, false));
            must(!set_link(e->name, true));
        }
    }
}

/* Packets may be lost while the link is down or the port moves. With one worker what comes, comes
 * in order; with several, a rebind replaces their sockets one after the other. */
static uint32_t drain_some(struct end *at, bool ordered)
{
    uint32_t flow = 0, sequence = 0, count = 0;
    while (receive_packet(at, 1, &flow, &sequence)) {
        must(flow < FLOWS && (!ordered || sequence >= at->received[flow]));
        if (flow < FLOWS)
            at->received[flow] = sequence + 1;
        count++;
    }
    return count;
}

static void reconfigure_under_traffic(unsigned workers)
{
    pthread_t threads[2];
    uint32_t at_a = 0, at_b = 0;
    start_both(workers);
    make_session();
    exchange(1, FLOWS);
    atomic_store(&enough, false);
    atomic_store(&turns, 0);
    sem_init(&windows[0], 0, 0);
    sem_init(&windows[1], 0, 0);
    atomic_store(&failed_line, 0);
    pthread_create(&threads[0], NULL, reconfigure, &a);
    pthread_create(&threads[1], NULL, reconfigure, &b);
    uint64_t begun = now_ms();
    while ((at_a < 3000 || at_b < 3000 || atomic_load(&turns) < 800) && now_ms() - begun < 120000) {
        for (uint32_t i = 0; i < 64; i++) {
            send_packet(&a, &b, i % FLOWS, 64 + i * 20);
            send_packet(&b, &a, i % FLOWS, 64 + i * 20);
        }
        at_a += drain_some(&a, workers == 1);
        at_b += drain_some(&b, workers == 1);
        sem_post(&windows[0]);
        sem_post(&windows[1]);
    }
    atomic_store(&enough, true);
    sem_post(&windows[0]);
    sem_post(&windows[1]);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert_true(at_a >= 3000 && at_b >= 3000);
    assert_true(atomic_load(&turns) >= 800);
    assert_int_equal(atomic_load(&failed_line), 0);
    stop_both();
}

static void one_worker_is_reconfigured_under_traffic(void **state)
{
    (void)state;
    reconfigure_under_traffic(1);
}

static void four_workers_are_reconfigured_under_traffic(void **state)
{
    (void)state;
    reconfigure_under_traffic(4);
}

/* Threads that sleep in poll() hold the sockets they sleep on, and so the port. */
static void pitfall_64_a_port_left_a_moment_ago_can_be_had_again(void **state)
{
    (void)state;
    start_both(2);
    for (unsigned turn = 0; turn < 2000; turn++) {
        struct tunnel_device_change change = {.fields = TUNNEL_DEVICE_LISTEN_PORT,
                                              .listen_port = (uint16_t)(a.port + turn % 2)};
        if (change.listen_port == b.port)
            change.listen_port += 10;
        assert_int_equal(tunnel_set_device(a.tunnel, &change), 0);
    }
    struct tunnel_device_change taken = {.fields = TUNNEL_DEVICE_LISTEN_PORT,
                                         .listen_port = b.port};
    assert_int_equal(tunnel_set_device(a.tunnel, &taken), -EADDRINUSE);
    stop_both();
}

/* ---- the end ------------------------------------------------------------------------------- */

static void *pump(void *argument)
{
    (void)argument;
    for (uint32_t i = 0; !atomic_load(&enough); i++) {
        send_packet(&a, &b, i % FLOWS, 1000);
        send_packet(&b, &a, i % FLOWS, 1000);
    }
    return NULL;
}

static void stopping_in_the_middle_of_traffic_ends_every_thread(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        start_both(2);
        make_session();
        exchange(1, FLOWS);
        atomic_store(&enough, false);
        pthread_create(&thread, NULL, pump, NULL);
        while (!drain_some(&b, false) || !drain_some(&a, false))
            ;
        tunnel_stop(a.tunnel);
        tunnel_stop(b.tunnel);
        atomic_store(&enough, true);
        pthread_join(thread, NULL);
        stop_both();
    }
}

static void an_engine_that_never_started_stops_and_goes(void **state)
{
    (void)state;
    char error[TUNNEL_ERROR_TEXT_CAPACITY];
    struct tunnel_options options;
    struct tunnel *tunnel;
    if (!namespace_ready)
        skip();
    tunnel_options_init(&options);
    strcpy(options.name, "ngthc");
    assert_int_equal(tunnel_create(&options, &tunnel, error), 0);
    tunnel_stop(tunnel);
    tunnel_destroy(tunnel);
    assert_int_equal(if_nametoindex("ngthc"), 0); /* the device went with it */
    tunnel_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_engine_that_never_started_stops_and_goes),
        cmocka_unit_test(one_worker_carries_both_ways),
        cmocka_unit_test(four_workers_carry_both_ways),
        cmocka_unit_test(pitfall_35_one_flow_through_four_workers_is_never_reordered),
        cmocka_unit_test(one_worker_is_reconfigured_under_traffic),
        cmocka_unit_test(four_workers_are_reconfigured_under_traffic),
        cmocka_unit_test(pitfall_64_a_port_left_a_moment_ago_can_be_had_again),
        cmocka_unit_test(stopping_in_the_middle_of_traffic_ends_every_thread),
    };
    return cmocka_run_group_tests_name("engine: threads", tests, enter_namespace, NULL);
}
