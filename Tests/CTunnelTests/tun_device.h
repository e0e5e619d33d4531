/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TUN device of the test's own, for the tests that put it before the kernel they run on. Each
 * program moves itself into a new network namespace: the kernel's stack is 10.9.0.1 / fd00::1
 * there, the test is 10.9.0.2 / fd00::2 on the far side of the device.
 *
 *     socket ── kernel stack ── wgt0 ── tun_read()/tun_write() ── test
 *
 * Needs root.
 */
#ifndef TUN_DEVICE_H
#define TUN_DEVICE_H

#include "packets.h"
#include "tun.h"

#include <errno.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
// cmocka.h needs setjmp.h and stdarg.h
#include <cmocka.h>

#define NAME "wgt0"

static struct tun tun;
static struct counters counters;
static char error_text[TUNNEL_ERROR_TEXT_CAPACITY];
static uint8_t bytes[MERGE_MAX_PACKETS][2048];
static struct packet packets[MERGE_MAX_PACKETS];
static uint8_t frame[TUN_FRAME_CAPACITY], segment[TUN_FRAME_CAPACITY];

static inline void enter_namespace(void)
{
    if (unshare(CLONE_NEWNET) != 0) {
        perror("needs root: unshare");
        exit(1);
    }
}

#define DEVICE_TEST(name) cmocka_unit_test_teardown(name, close_after)

static inline struct tunnel_options default_options(void)
{
    struct tunnel_options options = {.name = NAME, .tun_fd = -1};
    return options;
}

static inline int open_with(const struct tunnel_options *options, unsigned queues)
{
    memset(&counters, 0, sizeof(counters));
    return tun_open(&tun, options, queues, &counters, error_text);
}

static inline void open_default(void)
{
    struct tunnel_options options = default_options();
    if (open_with(&options, 1) != 0)
        fail_msg("%s", error_text);
}

static inline void set_flags(const char *name, short set, short clear)
{
    struct ifreq request = {0};
    int control = socket(AF_INET, SOCK_DGRAM, 0);
    strcpy(request.ifr_name, name);
    assert_int_equal(ioctl(control, SIOCGIFFLAGS, &request), 0);
    request.ifr_flags = (short)((request.ifr_flags | set) & ~clear);
    assert_int_equal(ioctl(control, SIOCSIFFLAGS, &request), 0);
    close(control);
}

/* The kernel makes an IPv6 address usable from a work queue: true once packets to it are ours. */
static inline bool ipv6_address_is_local(const struct in6_addr *address)
{
    struct sockaddr_in6 target = {
        .sin6_family = AF_INET6, .sin6_port = htons(9), .sin6_addr = *address};
    struct sockaddr_in6 source = {0};
    socklen_t size = sizeof(source);
    int fd = socket(AF_INET6, SOCK_DGRAM, 0);
    bool local = connect(fd, (struct sockaddr *)&target, sizeof(target)) == 0 &&
                 getsockname(fd, (struct sockaddr *)&source, &size) == 0 &&
                 memcmp(&source.sin6_addr, address, sizeof(*address)) == 0;
    close(fd);
    return local;
}

static inline void set_addresses(void)
{
    struct ifreq request = {.ifr_name = NAME};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(0x0a090001)}};
    int control = socket(AF_INET, SOCK_DGRAM, 0);
    memcpy(&request.ifr_addr, &address, sizeof(address));
    assert_int_equal(ioctl(control, SIOCSIFADDR, &request), 0);
    address.sin_addr.s_addr = htonl(0xffffff00);
    memcpy(&request.ifr_netmask, &address, sizeof(address));
    assert_int_equal(ioctl(control, SIOCSIFNETMASK, &request), 0);
    close(control);

    struct in6_ifreq six = {.ifr6_prefixlen = 64, .ifr6_ifindex = (int)if_nametoindex(NAME)};
    six.ifr6_addr.s6_addr[0] = 0xfd;
    six.ifr6_addr.s6_addr[15] = 1;
    control = socket(AF_INET6, SOCK_DGRAM, 0);
    assert_int_equal(ioctl(control, SIOCSIFADDR, &six), 0);
    close(control);
    time_t deadline = time(NULL) + 10;
    while (!ipv6_address_is_local(&six.ifr6_addr)) {
        assert_true(time(NULL) < deadline);
        sched_yield();
    }
}

/* The device, up and with addresses. */
static inline void open_up(const struct tunnel_options *options)
{
    if (open_with(options, 1) != 0)
        fail_msg("%s", error_text);
    set_flags(NAME, IFF_UP, 0);
    set_addresses();
}

static inline int close_after(void **state)
{
    (void)state;
    tun_close(&tun);
    return 0;
}

static inline uint64_t drops(enum drop_reason reason)
{
    return counter_get(&counters.drops[reason]);
}

static inline uint64_t fallbacks(enum fallback_reason reason)
{
    return counter_get(&counters.fallbacks[reason]);
}

/* Waits for a frame whose transport protocol and destination port are these; others (router
 * solicitations) are passed over. */
static inline struct virtio_net_hdr read_frame(uint8_t protocol, uint16_t port, size_t *length)
{
    struct virtio_net_hdr header;
    for (int i = 0; i < 1000; i++) {
        struct pollfd readable = {.fd = tun.queue[0]->fd, .events = POLLIN};
        enum tun_read_result result = tun_read(tun.queue[0], &header, frame, length);
        if (result == TUN_READ_EMPTY) {
            assert_int_equal(poll(&readable, 1, 10000), 1);
            continue;
        }
        assert_int_equal(result, TUN_READ_FRAME);
        if (*length >= 44 && packet_protocol(frame) == protocol &&
            get16(frame + packet_ip_length(frame) + 2) == port)
            return header;
    }
    fail_msg("no frame for port %u", port);
    return header;
}

static inline int udp_socket(int family, uint16_t port)
{
    int fd = socket(family, SOCK_DGRAM, 0), size = 4 << 20;
    struct timeval patience = {.tv_sec = 10};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)), 0);
    if (family == AF_INET)
        assert_int_equal(bind(fd, (struct sockaddr *)&four, sizeof(four)), 0);
    else
        assert_int_equal(bind(fd, (struct sockaddr *)&six, sizeof(six)), 0);
    return fd;
}

static inline struct packet_spec follow(struct packet_spec spec)
{
    spec.sequence += spec.payload_length;
    spec.payload_seed += spec.payload_length;
    spec.id++;
    return spec;
}

static inline struct packet_spec build_train(struct packet_spec spec, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, spec = follow(spec))
        packets[i] = (struct packet){bytes[i], packet_build(&spec, bytes[i])};
    return spec;
}

static inline void check_udp_delivery(uint8_t version, uint32_t payload, uint32_t count,
                                      uint64_t calls)
{
    int fd = udp_socket(version == 4 ? AF_INET : AF_INET6, 7000);
    struct packet_spec spec = packet_udp(version);
    spec.destination_port = 7000;
    spec.payload_length = payload;
    build_train(spec, count);
    uint64_t made = 0;
    assert_true(tun_write(tun.queue[0], packets, count, &counters, &made));
    assert_int_equal(made, calls);
    for (uint32_t i = 0, position = 0; i < count; i++) {
        assert_int_equal(recv(fd, segment, sizeof(segment), 0), payload);
        for (uint32_t j = 0; j < payload; j++)
            assert_int_equal(segment[j], packet_payload_byte(position++));
    }
    close(fd);
}

#endif
