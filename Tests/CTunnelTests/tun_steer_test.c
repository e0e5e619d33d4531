/* SPDX-License-Identifier: Apache-2.0 */
/* Which queue of a real TUN device the packets of a flow come out of. Needs CAP_NET_ADMIN,
 * CAP_SYS_ADMIN and CAP_BPF; skipped without. */
#include "tun.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
/* cmocka.h needs some of the above */
#include <cmocka.h>

#define QUEUES 4
#define FLOWS  64

static struct tun tun;
static struct counters counters;
static int device, interface;

static void open_device(bool no_steering)
{
    struct tunnel_options options = {
        .tun_fd = -1, .name = "ngsteer", .no_steering = no_steering, .no_vnet_hdr = true};
    char error[TUNNEL_ERROR_TEXT_CAPACITY];
    struct ifreq request = {.ifr_name = "ngsteer"};
    memset(&counters, 0, sizeof counters);
    if (unshare(CLONE_NEWNET))
        skip();
    if (tun_open(&tun, &options, QUEUES, &counters, error))
        fail_msg("%s", error);
    assert_int_equal(tun.queue_count, QUEUES);
    device = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(ioctl(device, SIOCGIFFLAGS, &request), 0);
    request.ifr_flags |= IFF_UP;
    assert_int_equal(ioctl(device, SIOCSIFFLAGS, &request), 0);
    interface = (int)if_nametoindex("ngsteer");
}

static void close_device(void)
{
    close(device);
    tun_close(&tun);
}

static size_t udp4(uint8_t *p, unsigned flow, bool back, bool fragment)
{
    memset(p, 0, 64);
    p[0] = 0x45;
    p[3] = 64;
    p[6] = fragment ? 0x20 : 0; /* more follow */
    p[8] = 64;
    p[9] = IPPROTO_UDP;
    memcpy(p + 12, (uint8_t[]){10, 0, 0, back ? 2 : 1, 10, 0, 0, back ? 1 : 2}, 8);
    p[back ? 23 : 21] = (uint8_t)flow; /* ports: flow → 200 */
    p[back ? 21 : 23] = 200;
    p[25] = 44;
    return 64;
}

static size_t udp6(uint8_t *p, unsigned flow, bool back)
{
    memset(p, 0, 64);
    p[0] = 0x60;
    p[5] = 24;
    p[6] = IPPROTO_UDP;
    p[7] = 64;
    p[8] = p[24] = 0xfd;
    p[23] = back ? 2 : 1;
    p[39] = back ? 1 : 2;
    p[back ? 43 : 41] = (uint8_t)flow;
    p[back ? 41 : 43] = 200;
    p[45] = 24;
    return 64;
}

static size_t packet(uint8_t *p, unsigned version, unsigned flow, bool back)
{
    return version == 4 ? udp4(p, flow, back, false) : udp6(p, flow, back);
}

/* The queue that this packet comes out of; what the host itself sends is passed over. */
static unsigned queue_of(const uint8_t *sent, size_t length)
{
    struct sockaddr_ll to = {.sll_family = AF_PACKET,
                             .sll_protocol = htons(sent[0] >> 4 == 4 ? ETH_P_IP : ETH_P_IPV6),
                             .sll_ifindex = interface};
    struct virtio_net_hdr header;
    struct pollfd fds[QUEUES];
    static uint8_t read[TUN_FRAME_CAPACITY];
    size_t size;
    assert_int_equal(sendto(device, sent, length, 0, (struct sockaddr *)&to, sizeof to), length);
    for (;;) {
        for (unsigned i = 0; i < QUEUES; i++)
            fds[i] = (struct pollfd){.fd = tun.queue[i]->fd, .events = POLLIN};
        assert_true(poll(fds, QUEUES, 10000) > 0);
        for (unsigned i = 0; i < QUEUES; i++)
            while (tun_read(tun.queue[i], &header, read, &size) == TUN_READ_FRAME)
                if (size == length && !memcmp(read, sent, length))
                    return i;
    }
}

/* A packet of the other direction, written by the worker of `queue`. */
static void answer(unsigned queue, unsigned version, unsigned flow)
{
    uint8_t bytes[64];
    struct packet p = {.data = bytes, .length = (uint32_t)packet(bytes, version, flow, true)};
    uint64_t calls = 0;
    assert_true(tun_write(tun.queue[queue], &p, 1, &counters, &calls));
}

/* How many flows leave the queue they began on after another one wrote an answer. */
static unsigned moved_flows(unsigned version, unsigned *queues_used)
{
    uint8_t bytes[64];
    unsigned moved = 0, used = 0;
    for (unsigned flow = 0; flow < FLOWS; flow++) {
        size_t length = packet(bytes, version, flow, false);
        unsigned before = queue_of(bytes, length);
        answer((before + 1) % QUEUES, version, flow);
        moved += queue_of(bytes, length) != before;
        used |= 1u << before;
    }
    *queues_used = (unsigned)__builtin_popcount(used);
    return moved;
}

static void pitfall_35_an_answer_does_not_move_a_flow_to_another_queue(void **state)
{
    (void)state;
    unsigned used;
    open_device(false);
    if (counter_get(&counters.fallbacks[FALLBACK_STEERING_UNAVAILABLE]))
        skip();
    for (unsigned version = 4; version <= 6; version += 2) {
        assert_int_equal(moved_flows(version, &used), 0);
        assert_int_equal(used, QUEUES); /* 64 flows spread over all */
    }
    close_device();
}

/* Why the program is there; and that the test above would see a flow move. */
static void by_itself_the_kernel_moves_a_flow_to_the_queue_that_answered(void **state)
{
    (void)state;
    unsigned used;
    open_device(true);
    assert_true(moved_flows(4, &used) > FLOWS / 2);
    close_device();
}

static void fragments_of_one_packet_stay_together(void **state)
{
    (void)state;
    uint8_t bytes[64];
    unsigned queue = 0;
    open_device(false);
    if (counter_get(&counters.fallbacks[FALLBACK_STEERING_UNAVAILABLE]))
        skip();
    for (unsigned i = 0; i < FLOWS; i++) { /* behind the first, what is there is no port */
        size_t length = udp4(bytes, i, false, true);
        bytes[7] = (uint8_t)i;
        unsigned now = queue_of(bytes, length);
        if (i)
            assert_int_equal(now, queue);
        queue = now;
    }
    close_device();
}

/* Ports behind IPv4 options, packets too short for ports: an answer in any case. */
static void odd_packets_have_a_queue_too(void **state)
{
    (void)state;
    uint8_t bytes[64];
    open_device(false);
    if (counter_get(&counters.fallbacks[FALLBACK_STEERING_UNAVAILABLE]))
        skip();
    unsigned used = 0;
    for (unsigned flow = 0; flow < FLOWS; flow++) {
        size_t length = udp4(bytes, 0, false, false);
        bytes[0] = 0x46; /* four bytes of options: zero, then the ports */
        memset(bytes + 20, 0, 8);
        bytes[25] = (uint8_t)flow;
        used |= 1u << queue_of(bytes, length);
    }
    assert_int_equal(__builtin_popcount(used), QUEUES);
    udp4(bytes, 0, false, false);
    for (size_t length = 20; length < 24; length++) { /* the IPv4 length is not looked at */
        unsigned first = queue_of(bytes, length);
        assert_int_equal(queue_of(bytes, length), first);
    }
    close_device();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pitfall_35_an_answer_does_not_move_a_flow_to_another_queue),
        cmocka_unit_test(by_itself_the_kernel_moves_a_flow_to_the_queue_that_answered),
        cmocka_unit_test(fragments_of_one_packet_stay_together),
        cmocka_unit_test(odd_packets_have_a_queue_too),
    };
    return cmocka_run_group_tests_name("tun: steering", tests, NULL, NULL);
}
