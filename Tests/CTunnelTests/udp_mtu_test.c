/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outer path MTU, on a path whose second half is narrower than its first:
 *
 *        here                     router                        there
 *   10.77.0.1  fd77::1 ── 1500 ── .2 ::2 | .1 ::1 ── 1300 ── 10.78.0.2  fd78::2
 *     ngudp0                ngudp1   ngudp2            ngudp3
 *
 * In IPv4 the router fragments, for DF is clear. In IPv6 it answers Packet Too Big, and what comes
 * after is fragmented here.
 */
#include "udp_support.h"

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>

#define PATH_MTU 1300

static uint8_t bytes[MAX_DATAGRAM];
static struct udp udp;
static struct counters counters;
static struct two_hosts hosts; /* here and router */
static int there;

static int setup(void **state)
{
    (void)state;
    there = enter_new_namespace();
    hosts = make_two_hosts();
    run("ip route add 10.78.0.0/24 via 10.77.0.2; ip route add fd78::/64 via fd77::2");
    enter(hosts.there);
    add_link("ngudp2", "ngudp3", there);
    run("sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1;"
        "ip link set ngudp2 mtu 1300; ip addr add 10.78.0.1/24 dev ngudp2;"
        "ip addr add fd78::1/64 dev ngudp2 nodad");
    enter(there);
    run("ip link set ngudp3 up mtu 1300; ip addr add 10.78.0.2/24 dev ngudp3;"
        "ip addr add fd78::2/64 dev ngudp3 nodad;"
        "ip route add 10.77.0.0/24 via 10.78.0.1; ip route add fd77::/64 via fd78::1");
    enter(hosts.here);
    open_udp(&udp, NULL, 1, &counters);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    udp_close(&udp);
    close(there);
    leave_two_hosts(hosts);
    return 0;
}

static int open_sink(struct endpoint *to, const char *address)
{
    enter(there);
    int sink = open_plain(to, address, 0);
    enter(hosts.here);
    return sink;
}

/* What leaves `here`, as the router sees it. */
static int open_capture(uint16_t protocol)
{
    enter(hosts.there);
    int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_return_code(fd, errno);
    struct sockaddr_ll at = {.sll_family = AF_PACKET,
                             .sll_protocol = htons(protocol),
                             .sll_ifindex = (int)if_nametoindex("ngudp1")};
    assert_return_code(bind(fd, (struct sockaddr *)&at, sizeof at), errno);
    enter(hosts.here);
    return fd;
}

static void pitfall_24_ipv4_leaves_df_clear_and_routers_fragment(void **state)
{
    (void)state;
    struct endpoint to;
    int sink = open_sink(&to, "10.78.0.2"), capture = open_capture(ETH_P_IP);
    uint64_t calls = 0;
    struct udp_train train = make_train(bytes, 10 * 1452, 1452);
    for (unsigned no_gso = 0; no_gso < 2; no_gso++) {
        train.no_gso = no_gso;
        assert_int_equal(udp_send(&udp.pair[0], &to, &train, &counters, &calls), 0);
        expect_train(sink, &train);
    }
    train.length = 1452;
    assert_int_equal(udp_send(&udp.pair[0], &to, &train, &counters, &calls), 0);
    expect_train(sink, &train);
    assert_int_equal(calls, 3);
    assert_int_equal(all_drops(&counters), 0);

    union {
        struct iphdr ip;
        uint8_t bytes[65536];
    } seen;
    unsigned of_ours = 0;
    while (recv(capture, &seen, sizeof seen, 0) > 0) {
        if (seen.ip.protocol != IPPROTO_UDP)
            continue;
        of_ours++;
        assert_int_equal(ntohs(seen.ip.frag_off), 0); /* neither DF nor a fragment */
    }
    assert_in_range(of_ours, 3, 21); /* trains may be captured whole */
    close(capture);
    close(sink);
}

static void pitfall_24_ipv4_ignores_a_smaller_route_mtu(void **state)
{
    (void)state;
    struct endpoint to;
    int sink = open_sink(&to, "10.78.0.2");
    run("ip route replace 10.78.0.0/24 via 10.77.0.2 mtu 1300");
    uint64_t calls = 0;
    struct udp_train train = make_train(bytes, 10 * 1452, 1452);
    assert_int_equal(udp_send(&udp.pair[0], &to, &train, &counters, &calls), 0);
    expect_train(sink, &train);
    assert_int_equal(calls, 1); /* GSO goes on working */
    close(sink);
}

/* Sends datagrams until one arrives: Packet Too Big takes an unknown time to be heeded. Then a
 * short one, behind which none of them is left on the way. */
static void learn_path_mtu(int sink, const struct endpoint *to, uint64_t *calls)
{
    static struct datagram d;
    struct udp_train probe = make_train(bytes, 1452, 1452);
    struct pollfd arrival = {.fd = sink, .events = POLLIN};
    unsigned probes = 0, arrived = 0;
    do {
        assert_in_range(probes, 0, 99);
        assert_int_equal(udp_send(&udp.pair[0], to, &probe, &counters, calls), 0);
        probes++;
    } while (poll(&arrival, 1, 100) == 0);
    probe.length = 1;
    assert_int_equal(udp_send(&udp.pair[0], to, &probe, &counters, calls), 0);
    for (receive_plain(sink, &d); d.length != 1; receive_plain(sink, &d))
        arrived++;
    assert_in_range(arrived, 1, probes - 1); /* the first was lost, or the path was never narrow */
}

static void pitfall_24_ipv6_fragments_to_the_learned_path_mtu(void **state)
{
    (void)state;
    struct endpoint to;
    uint64_t calls = 0;
    int sink = open_sink(&to, "fd78::2");
    learn_path_mtu(sink, &to, &calls);

    int capture = open_capture(ETH_P_IPV6);
    struct udp_train train = make_train(bytes, 10 * 1452, 1452);
    assert_int_equal(udp_send(&udp.pair[0], &to, &train, &counters, &calls), UDP_GSO_REFUSED);
    expect_train(sink, &train);
    train.no_gso = true;
    assert_int_equal(udp_send(&udp.pair[0], &to, &train, &counters, &calls), 0);
    expect_train(sink, &train);
    assert_int_equal(all_drops(&counters), 0);

    union {
        struct ip6_hdr ip;
        uint8_t bytes[65536];
    } seen;
    unsigned fragments = 0;
    ssize_t size;
    while ((size = recv(capture, &seen, sizeof seen, 0)) > 0) {
        assert_in_range(size, sizeof seen.ip, PATH_MTU);
        fragments += seen.ip.ip6_nxt == IPPROTO_FRAGMENT;
    }
    assert_int_equal(fragments, 2 * 20);

    /* Segments that fit are grouped as before. */
    uint64_t before = calls;
    train = make_train(bytes, 10 * 1200, 1200);
    assert_int_equal(udp_send(&udp.pair[0], &to, &train, &counters, &calls), 0);
    expect_train(sink, &train);
    assert_int_equal(calls, before + 1);
    close(capture);
    close(sink);
}

int main(void)
{
    alarm(100);
    stay_on_one_cpu();
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(pitfall_24_ipv4_leaves_df_clear_and_routers_fragment),
        TEST(pitfall_24_ipv4_ignores_a_smaller_route_mtu),
        TEST(pitfall_24_ipv6_fragments_to_the_learned_path_mtu),
    };
    return cmocka_run_group_tests_name("udp_mtu", tests, NULL, NULL);
}
