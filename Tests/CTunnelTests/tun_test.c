// SPDX-License-Identifier: Apache-2.0
/*
 * The TUN device against the kernel it runs on. The program moves itself into a network namespace
 * of its own: the kernel's stack is 10.9.0.1 / fd00::1 there, the test is 10.9.0.2 / fd00::2 on the
 * far side of the device.
 *
 *     socket ── kernel stack ── wgt0 ── tun_read()/tun_write() ── test
 *
 * Errors that a healthy kernel does not produce are injected through tun_io. Needs root.
 */
#include "packets.h"
#include "tun.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/ipv6.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
// cmocka.h needs setjmp.h and stdarg.h
#include <cmocka.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define NAME "wgt0"

static struct tun tun;
static struct counters counters;
static char error_text[TUNNEL_ERROR_TEXT_CAPACITY];
static uint8_t bytes[MERGE_MAX_PACKETS][2048];
static struct packet packets[MERGE_MAX_PACKETS];
static uint8_t frame[TUN_FRAME_CAPACITY], segment[TUN_FRAME_CAPACITY];

/* ---- set-up -------------------------------------------------------------------------------- */

static struct tunnel_options default_options(void)
{
    struct tunnel_options options = {.name = NAME, .tun_fd = -1};
    return options;
}

static int open_with(const struct tunnel_options *options, unsigned queues)
{
    memset(&counters, 0, sizeof(counters));
    return tun_open(&tun, options, queues, &counters, error_text);
}

static void open_default(void)
{
    struct tunnel_options options = default_options();
    if (open_with(&options, 1) != 0)
        fail_msg("%s", error_text);
}

static void set_flags(const char *name, short set, short clear)
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
static bool ipv6_address_is_local(const struct in6_addr *address)
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

static void set_addresses(void)
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
static void open_up(const struct tunnel_options *options)
{
    if (open_with(options, 1) != 0)
        fail_msg("%s", error_text);
    set_flags(NAME, IFF_UP, 0);
    set_addresses();
}

static int close_after(void **state)
{
    (void)state;
    tun_close(&tun);
    return 0;
}

static uint64_t drops(enum drop_reason reason)
{
    return counter_get(&counters.drops[reason]);
}

static uint64_t fallbacks(enum fallback_reason reason)
{
    return counter_get(&counters.fallbacks[reason]);
}

/* Waits for a frame whose transport protocol and destination port are these; others (router
 * solicitations) are passed over. */
static struct virtio_net_hdr read_frame(uint8_t protocol, uint16_t port, size_t *length)
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

static int udp_socket(int family, uint16_t port)
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

static struct packet_spec follow(struct packet_spec spec)
{
    spec.sequence += spec.payload_length;
    spec.payload_seed += spec.payload_length;
    spec.id++;
    return spec;
}

static struct packet_spec build_train(struct packet_spec spec, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, spec = follow(spec))
        packets[i] = (struct packet){bytes[i], packet_build(&spec, bytes[i])};
    return spec;
}

/* ---- creation ------------------------------------------------------------------------------ */

static void creates_a_device_with_every_offload(void **state)
{
    (void)state;
    open_default();
    assert_true(tun.made_here && tun.vnet_hdr && tun.tso && tun.uso);
    assert_true(tun.merge_tcp && tun.merge_udp);
    assert_int_equal(tun.queue_count, 1);
    for (int i = 0; i < FALLBACK_COUNT; i++)
        assert_int_equal(fallbacks((enum fallback_reason)i), 0);

    int size = 0, fd = tun.queue[0]->fd;
    struct ifreq request = {0};
    assert_int_equal(ioctl(fd, TUNGETVNETHDRSZ, &size), 0);
    assert_int_equal(size, 10);
    assert_int_equal(ioctl(fd, TUNGETIFF, &request), 0);
    assert_int_equal(request.ifr_flags & (IFF_TUN | IFF_NO_PI | IFF_VNET_HDR | IFF_MULTI_QUEUE),
                     IFF_TUN | IFF_NO_PI | IFF_VNET_HDR);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);

    struct tun_link_state link;
    assert_true(tun_link_query(NAME, &link));
    assert_int_equal(link.mtu, DEFAULT_MTU);
    assert_false(link.up);
    int control = socket(AF_INET, SOCK_DGRAM, 0);
    strcpy(request.ifr_name, NAME);
    assert_int_equal(ioctl(control, SIOCGIFTXQLEN, &request), 0);
    assert_int_equal(request.ifr_qlen, 1000);
    close(control);
    tun_close(&tun);
    assert_int_equal(if_nametoindex(NAME), 0);
}

static void options_switch_rungs_off_without_counting_fallbacks(void **state)
{
    (void)state;
    struct {
        struct tunnel_options options;
        bool vnet_hdr, tso, uso, tcp, udp;
    } cases[] = {
        {{.no_tun_uso = true}, true, true, false, true, true},
        {{.no_tun_gso = true}, true, false, false, true, true},
        {{.no_tun_merge = true}, true, true, true, false, false},
        {{.no_tun_udp_merge = true}, true, true, true, true, false},
        {{.no_vnet_hdr = true}, false, false, false, false, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tunnel_options options = cases[i].options;
        strcpy(options.name, NAME);
        options.tun_fd = -1;
        options.mtu = 1380;
        assert_int_equal(open_with(&options, 1), 0);
        assert_int_equal(tun.vnet_hdr, cases[i].vnet_hdr);
        assert_int_equal(tun.tso, cases[i].tso);
        assert_int_equal(tun.uso, cases[i].uso);
        assert_int_equal(tun.merge_tcp, cases[i].tcp);
        assert_int_equal(tun.merge_udp, cases[i].udp);
        for (int f = 0; f < FALLBACK_COUNT; f++)
            assert_int_equal(fallbacks((enum fallback_reason)f), 0);
        struct tun_link_state link;
        assert_true(tun_link_query(NAME, &link));
        assert_int_equal(link.mtu, 1380);
        tun_close(&tun);
    }
}

/* The kernel takes the sets together and no other way. */
static void pitfall_17_offloads_are_requested_together(void **state)
{
    (void)state;
    open_default();
    int fd = tun.queue[0]->fd;
    assert_true(tun.uso);
    errno = 0;
    assert_int_equal(ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | 0x20), -1); /* USO4 alone */
    assert_int_equal(errno, EINVAL);
    assert_int_equal(ioctl(fd, TUNSETOFFLOAD, 0x20 | 0x40), -1); /* USO without CSUM */
    assert_int_equal(errno, EINVAL);
}

static void several_queues_are_queues_of_one_device(void **state)
{
    (void)state;
    struct tunnel_options options = default_options();
    assert_int_equal(open_with(&options, 3), 0);
    assert_int_equal(tun.queue_count, 3);
    for (unsigned i = 0; i < 3; i++) {
        struct ifreq request = {0};
        assert_int_equal(ioctl(tun.queue[i]->fd, TUNGETIFF, &request), 0);
        assert_string_equal(request.ifr_name, NAME);
        assert_true(request.ifr_flags & IFF_MULTI_QUEUE);
        assert_true(request.ifr_flags & IFF_VNET_HDR);
        assert_true(fcntl(tun.queue[i]->fd, F_GETFL) & O_NONBLOCK);
    }
    tun_close(&tun);
    assert_int_equal(if_nametoindex(NAME), 0);
}

/* A second engine on one name must not become another queue of the first one's device. */
static void a_name_in_use_is_refused_with_what_to_do(void **state)
{
    (void)state;
    struct tunnel_options options = default_options();
    for (unsigned queues = 1; queues <= 2; queues++) {
        assert_int_equal(open_with(&options, queues), 0);
        struct tun second;
        assert_int_equal(tun_open(&second, &options, queues, &counters, error_text), -EBUSY);
        assert_string_equal(error_text, "cannot create interface '" NAME
                                        "': name already in use by another interface; choose "
                                        "another name or delete it");
        assert_int_equal(tun.queue_count, queues);
        tun_close(&tun);
    }
    strcpy(options.name, "lo"); /* exists and is no TUN device */
    assert_int_equal(open_with(&options, 1), -EBUSY);
    assert_non_null(strstr(error_text, "'lo'"));
    assert_int_equal(open_with(&options, 2), -EBUSY);
}

static void invalid_names_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"", ".", "..", "a/b", "a b", "wg%d", "a:1", "tab\t"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct tunnel_options options = default_options();
        strcpy(options.name, names[i]);
        assert_int_equal(open_with(&options, 1), -EINVAL);
        assert_non_null(strstr(error_text, "interface name"));
    }
    struct tunnel_options options = default_options();
    memset(options.name, 'x', sizeof(options.name)); /* no terminator */
    assert_int_equal(open_with(&options, 1), -EINVAL);
}

static void an_impossible_mtu_leaves_no_device_behind(void **state)
{
    (void)state;
    struct tunnel_options options = default_options();
    options.mtu = 70000;
    assert_int_equal(open_with(&options, 1), -EINVAL);
    assert_non_null(strstr(error_text, "cannot set MTU 70000 on interface '" NAME "'"));
    assert_int_equal(if_nametoindex(NAME), 0);
}

/* In a child that gave up root: cmocka's state stays in the parent. */
static void without_cap_net_admin_the_error_names_it(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct tunnel_options options = default_options();
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(2);
        int result = tun_open(&tun, &options, 1, &counters, error_text);
        _exit(result == -EPERM && strstr(error_text, NAME) != NULL ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- descriptors handed in ----------------------------------------------------------------- */

static int make_device(unsigned flags)
{
    struct ifreq request = {.ifr_name = NAME, .ifr_flags = (short)flags};
    int fd = open("/dev/net/tun", O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(ioctl(fd, TUNSETIFF, &request), 0);
    return fd;
}

static void takes_over_a_descriptor_and_sets_its_header_size(void **state)
{
    (void)state;
    struct tunnel_options options = {.tun_fd = make_device(IFF_TUN | IFF_NO_PI | IFF_VNET_HDR)};
    int size = 12;
    assert_int_equal(ioctl(options.tun_fd, TUNSETVNETHDRSZ, &size), 0);
    assert_int_equal(open_with(&options, 4), 0);
    assert_string_equal(tun.name, NAME);
    assert_false(tun.made_here);
    assert_true(tun.vnet_hdr && tun.tso && tun.uso && tun.merge_tcp);
    assert_int_equal(tun.queue_count, 1);
    assert_int_equal(ioctl(options.tun_fd, TUNGETVNETHDRSZ, &size), 0);
    assert_int_equal(size, 10);
    assert_true(fcntl(options.tun_fd, F_GETFL) & O_NONBLOCK);
    struct tun_link_state link;
    assert_true(tun_link_query(NAME, &link));
    assert_int_equal(link.mtu, 1500); /* unchanged */
}

static void a_descriptor_without_vnet_header_runs_without_offloads(void **state)
{
    (void)state;
    struct tunnel_options options = {.tun_fd = make_device(IFF_TUN | IFF_NO_PI), .mtu = 1300};
    assert_int_equal(open_with(&options, 1), 0);
    assert_false(tun.vnet_hdr || tun.tso || tun.uso || tun.merge_tcp || tun.merge_udp);
    assert_int_equal(fallbacks(FALLBACK_TUN_WITHOUT_VNET_HDR), 1);
    set_flags(NAME, IFF_UP, 0);
    set_addresses();
    int fd = udp_socket(AF_INET, 7000);
    struct packet_spec spec = packet_udp(4);
    spec.destination_port = 7000;
    build_train(spec, 3);
    uint64_t calls = 0;
    assert_true(tun_write(tun.queue[0], packets, 3, &counters, &calls));
    assert_int_equal(calls, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(recv(fd, segment, sizeof(segment), 0), 100);
    close(fd);
}

static void a_descriptor_that_is_no_tun_device_is_refused_and_stays_open(void **state)
{
    (void)state;
    struct tunnel_options options = {.tun_fd = open("/dev/null", O_RDWR)};
    assert_int_equal(open_with(&options, 1), -EINVAL);
    assert_true(fcntl(options.tun_fd, F_GETFD) >= 0);
    close(options.tun_fd);
    options.tun_fd = make_device(IFF_TAP | IFF_NO_PI);
    assert_int_equal(open_with(&options, 1), -EINVAL);
    assert_non_null(strstr(error_text, NAME));
    close(options.tun_fd);
    options.tun_fd = make_device(IFF_TUN); /* with packet information in front */
    assert_int_equal(open_with(&options, 1), -EINVAL);
    close(options.tun_fd);
}

/* `ip tuntap add mode tun`: a device without owner process is there to be used. */
static void adopts_a_persistent_device_that_nobody_uses(void **state)
{
    (void)state;
    int fd = make_device(IFF_TUN | IFF_NO_PI);
    assert_int_equal(ioctl(fd, TUNSETPERSIST, 1), 0);
    close(fd);
    open_default();
    assert_false(tun.made_here);
    assert_true(tun.vnet_hdr && tun.uso);
    struct tun second;
    struct tunnel_options options = default_options();
    assert_int_equal(tun_open(&second, &options, 1, &counters, error_text), -EBUSY);
    assert_int_equal(ioctl(tun.queue[0]->fd, TUNSETPERSIST, 0), 0);
}

/* ---- inbound: what the kernel's sockets receive -------------------------------------------- */

static void check_udp_delivery(uint8_t version, uint32_t payload, uint32_t count, uint64_t calls)
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

static void merged_udp_arrives_as_the_datagrams_it_was(void **state)
{
    (void)state;
    struct tunnel_options options = default_options();
    open_up(&options);
    for (uint8_t version = 4; version <= 6; version += 2) {
        check_udp_delivery(version, 1000, 64, 1);
        check_udp_delivery(version, 1000, 65, 2);
        check_udp_delivery(version, 1372, 40, 1);
        check_udp_delivery(version, 1, 64, 1); /* the smallest segments there are */
        check_udp_delivery(version, 1372, 1, 1);
    }
    assert_int_equal(fallbacks(FALLBACK_TUN_UDP_MERGE_REFUSED), 0);
    assert_int_equal(drops(DROP_TUN_WRITE_FAILED), 0);
}

/* The options of pitfall 18: a socket that cannot take trains gets none. */
static void pitfall_18_the_switch_stops_udp_trains_only(void **state)
{
    (void)state;
    struct tunnel_options options = default_options();
    options.no_tun_udp_merge = true;
    open_up(&options);
    check_udp_delivery(4, 1000, 20, 20);
    assert_true(tun.merge_tcp);
}

/* What drivers/net/tun.c says to a UDP train without NEEDS_CSUM: the reason for pitfall 16. */
static void pitfall_16_the_kernel_refuses_a_udp_train_without_needs_csum(void **state)
{
    (void)state;
    struct tunnel_options options = default_options();
    open_up(&options);
    struct merge *merge = &tun.queue[0]->merge;
    build_train(packet_udp(4), 4);
    merge->tcp = merge->udp = true;
    merge_plan(merge, packets, 4);
    assert_int_equal(merge->frame_count, 1);
    assert_true(writev(tun.queue[0]->fd, merge->iov, merge->frame[0].iov_count) > 0);
    merge->frame[0].header.flags = 0;
    assert_int_equal(writev(tun.queue[0]->fd, merge->iov, merge->frame[0].iov_count), -1);
    assert_int_equal(errno, EINVAL);
}

/* The far end of a TCP connection, as much of one as the test needs. */
struct far_end {
    int socket;              /* the kernel's end */
    struct packet_spec spec; /* what we send next */
    uint32_t received;       /* next sequence expected from the kernel */
};

static void send_one(const struct packet_spec *spec)
{
    uint64_t calls = 0;
    packets[0] = (struct packet){bytes[0], packet_build(spec, bytes[0])};
    assert_true(tun_write(tun.queue[0], packets, 1, &counters, &calls));
    assert_int_equal(calls, 1);
}

static struct far_end connect_to_kernel(uint8_t version, uint16_t port)
{
    int family = version == 4 ? AF_INET : AF_INET6, one = 1;
    int listener = socket(family, SOCK_STREAM, 0);
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    const void *address = version == 4 ? (const void *)&four : (const void *)&six;
    struct timeval patience = {.tv_sec = 10};
    struct linger reset = {.l_onoff = 1}; /* nothing of it lasts into the next test */
    assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
    assert_int_equal(bind(listener, address, version == 4 ? sizeof(four) : sizeof(six)), 0);
    assert_int_equal(listen(listener, 1), 0);

    struct far_end end = {.spec = packet_tcp(version)};
    end.spec.source_port = (uint16_t)(port + 30000); /* one connection, one pair of ports */
    end.spec.destination_port = port;
    end.spec.payload_length = 0;
    end.spec.flags = SYN;
    end.spec.acknowledgment = 0;
    end.spec.window = 65535;
    end.spec.tcp_options_length = 8; /* MSS 1300, window scale 4 */
    memcpy(end.spec.tcp_options, (uint8_t[8]){2, 4, 1300 >> 8, 1300 & 255, 3, 3, 4, 1}, 8);
    send_one(&end.spec);
    size_t length;
    read_frame(IPPROTO_TCP, end.spec.source_port, &length);
    const uint8_t *tcp = frame + packet_ip_length(frame);
    assert_int_equal(tcp[13], SYN | ACK);
    end.received = get32(tcp + 4) + 1;
    end.spec.sequence++;
    end.spec.acknowledgment = end.received;
    end.spec.flags = ACK;
    end.spec.tcp_options_length = 0;
    send_one(&end.spec);
    end.socket = accept(listener, NULL, NULL);
    assert_true(end.socket >= 0);
    close(listener);
    assert_int_equal(setsockopt(end.socket, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
    assert_int_equal(setsockopt(end.socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)),
                     0);
    return end;
}

static void check_tcp_delivery(uint8_t version, uint16_t port, uint32_t payload)
{
    struct far_end end = connect_to_kernel(version, port);
    uint64_t calls = 0;
    end.spec.payload_length = payload;
    build_train(end.spec, 40);
    assert_true(tun_write(tun.queue[0], packets, 40, &counters, &calls));
    assert_int_equal(calls, 1);
    for (uint32_t position = 0; position < 40 * payload;) {
        ssize_t n = recv(end.socket, segment, sizeof(segment), 0);
        assert_true(n > 0);
        for (ssize_t i = 0; i < n; i++)
            assert_int_equal(segment[i], packet_payload_byte(position++));
    }
    close(end.socket);
}

static void merged_tcp_arrives_as_the_stream_it_was(void **state)
{
    (void)state;
    struct tunnel_options options = default_options();
    open_up(&options);
    check_tcp_delivery(4, 7001, 1300);
    check_tcp_delivery(6, 7002, 1300);
    check_tcp_delivery(4, 7003, 1); /* the smallest segments there are */
    check_tcp_delivery(6, 7004, 1);
    assert_int_equal(fallbacks(FALLBACK_TUN_TCP_MERGE_REFUSED), 0);
    assert_int_equal(drops(DROP_TUN_WRITE_FAILED), 0);
}

/* A wrong checksum does not become right on its way: the kernel drops exactly that datagram. */
static void pitfall_10_the_kernel_still_sees_a_wrong_checksum(void **state)
{
    (void)state;
    struct tunnel_options options = default_options();
    open_up(&options);
    int fd = udp_socket(AF_INET, 7000);
    struct packet_spec spec = packet_udp(4);
    spec.destination_port = 7000;
    build_train(spec, 10);
    bytes[4][60] ^= 1;
    uint64_t calls = 0;
    assert_true(tun_write(tun.queue[0], packets, 10, &counters, &calls));
    assert_int_equal(calls, 3);
    for (uint32_t i = 0; i < 10; i++) {
        if (i == 4)
            continue;
        assert_int_equal(recv(fd, segment, sizeof(segment), 0), 100);
        assert_int_equal(segment[0], packet_payload_byte(i * 100));
    }
    /* a last one behind them: nothing else came in between */
    spec.payload_length = 7;
    send_one(&spec);
    assert_int_equal(recv(fd, segment, sizeof(segment), 0), 7);
    close(fd);
}

/* ---- outbound: super-packets from the kernel's sockets ------------------------------------- */

/* Splits the frame and requires finished packets; their number. */
static uint32_t split_frame(const struct virtio_net_hdr *header, size_t length, uint32_t payload,
                            uint32_t *position)
{
    struct split split;
    assert_int_equal(split_plan(header, frame, length, &split), SPLIT_OK);
    for (uint32_t i = 0; i < split.count; i++) {
        uint32_t n = split_segment_length(&split, i);
        split_segment(&split, i, segment);
        assert_true(packet_checksums_right(segment, n));
        uint32_t transport = packet_ip_length(segment);
        uint32_t start = transport + (packet_protocol(segment) == IPPROTO_TCP
                                          ? (uint32_t)(segment[transport + 12] >> 4) * 4
                                          : 8);
        assert_true(n - start <= payload);
        for (uint32_t j = start; j < n; j++)
            assert_int_equal(segment[j], packet_payload_byte((*position)++));
    }
    return split.count;
}

static void fill_pattern(uint8_t *out, size_t length)
{
    for (size_t i = 0; i < length; i++)
        out[i] = packet_payload_byte((uint32_t)i);
}

static void check_udp_super_packet(uint8_t version, uint32_t segments)
{
    static uint8_t data[64 * 1000];
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(9000)};
    struct sockaddr_in four = {
        .sin_family = AF_INET, .sin_port = htons(9000), .sin_addr = {htonl(0x0a090002)}};
    int fd = udp_socket(version == 4 ? AF_INET : AF_INET6, 7000), size = 1000;
    size_t length;
    uint32_t position = 0;

    fill_pattern(data, sizeof(data));
    six.sin6_addr.s6_addr[0] = 0xfd;
    six.sin6_addr.s6_addr[15] = 2;
    const void *address = version == 4 ? (const void *)&four : (const void *)&six;
    assert_int_equal(setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size)), 0);
    ssize_t sent = sendto(fd, data, segments * 1000 - 1, 0, address,
                          version == 4 ? sizeof(four) : sizeof(six));
    if (sent != segments * 1000 - 1)
        fail_msg("sendto over IPv%d: %s", version, strerror(errno));
    struct virtio_net_hdr header = read_frame(IPPROTO_UDP, 9000, &length);
    if (tun.uso && segments > 1)
        assert_int_equal(header.gso_type, VIRTIO_NET_HDR_GSO_UDP_L4);
    uint32_t count = split_frame(&header, length, 1000, &position);
    while (count < segments) { /* without USO the kernel cut it already */
        assert_false(tun.uso);
        header = read_frame(IPPROTO_UDP, 9000, &length);
        count += split_frame(&header, length, 1000, &position);
    }
    assert_int_equal(count, segments);
    assert_int_equal(position, segments * 1000 - 1);
    close(fd);
}

static void udp_super_packets_are_read_whole_and_cut_right(void **state)
{
    (void)state;
    struct tunnel_options options = default_options();
    open_up(&options);
    for (uint8_t version = 4; version <= 6; version += 2) {
        check_udp_super_packet(version, 1); /* a single packet with a checksum to complete */
        check_udp_super_packet(version, 2);
        check_udp_super_packet(version, 40);
    }
    tun_close(&tun);
    options.no_tun_uso = true;
    open_up(&options);
    check_udp_super_packet(4, 40);
    tun_close(&tun);
    options.no_vnet_hdr = true;
    open_up(&options);
    check_udp_super_packet(6, 40);
}

static void check_tcp_super_packets(uint8_t version, uint16_t port)
{
    static uint8_t data[60000];
    struct far_end end = connect_to_kernel(version, port);
    uint32_t position = 0, largest = 0;

    fill_pattern(data, sizeof(data));
    assert_int_equal(send(end.socket, data, sizeof(data), 0), sizeof(data));
    while (position < sizeof(data)) {
        size_t length;
        struct virtio_net_hdr header = read_frame(IPPROTO_TCP, end.spec.source_port, &length);
        const uint8_t *tcp = frame + packet_ip_length(frame);
        if (get32(tcp + 4) != end.received + position)
            continue; /* a retransmission of what has been read */
        uint32_t count = split_frame(&header, length, 1300, &position);
        largest = count > largest ? count : largest;
        end.spec.acknowledgment = end.received + position;
        send_one(&end.spec);
    }
    assert_int_equal(position, sizeof(data));
    assert_true(largest > 1); /* there were super-packets among them */
    close(end.socket);
}

static void tcp_super_packets_are_read_whole_and_cut_right(void **state)
{
    (void)state;
    struct tunnel_options options = default_options();
    open_up(&options);
    check_tcp_super_packets(4, 7005);
    check_tcp_super_packets(6, 7006);
}

/* ---- injected errors ----------------------------------------------------------------------- */

/* A device that refuses what it is told to, and records the packets it took. */
struct fake_device {
    int refuse_type; /* EINVAL to frames of this gso_type; -1: none */
    int errors[16];  /* first, one errno per call; 0: as usual */
    unsigned calls;
    unsigned taken; /* frames */
    uint8_t taken_bytes[64][2048];
    size_t taken_length[64];
};

static ssize_t fake_writev(void *context, int fd, const struct iovec *iov, int count)
{
    struct fake_device *fake = context;
    const struct virtio_net_hdr *header = iov[0].iov_base;
    size_t length = 0;
    (void)fd;

    unsigned call = fake->calls++;
    if (call < 16 && fake->errors[call] != 0) {
        errno = fake->errors[call];
        return -1;
    }
    if (header->gso_type == fake->refuse_type) {
        errno = EINVAL;
        return -1;
    }
    if (fake->taken < 64) {
        for (int i = 1; i < count; i++) {
            if (length + iov[i].iov_len <= sizeof(fake->taken_bytes[0]))
                memcpy(fake->taken_bytes[fake->taken] + length, iov[i].iov_base, iov[i].iov_len);
            length += iov[i].iov_len;
        }
        fake->taken_length[fake->taken] = length;
    }
    fake->taken++;
    return (ssize_t)(length + iov[0].iov_len);
}

static ssize_t fake_readv(void *context, int fd, const struct iovec *iov, int count)
{
    struct fake_device *fake = context;
    (void)fd;
    unsigned call = fake->calls++;
    if (call < 16 && fake->errors[call] != 0) {
        errno = fake->errors[call];
        return -1;
    }
    return (ssize_t)(iov[0].iov_len + (count > 1 ? iov[1].iov_len : 0) + 5); /* too long a frame */
}

static const struct tun_io fake_io = {.readv = fake_readv, .writev = fake_writev};
static struct fake_device fake;
static struct tun fake_tun;
static struct tun_queue fake_queue;

static void fake_begin(void)
{
    memset(&fake, 0, sizeof(fake));
    memset(&counters, 0, sizeof(counters));
    fake.refuse_type = -1;
    fake_tun = (struct tun){.vnet_hdr = true, .merge_tcp = true, .merge_udp = true};
    fake_queue.fd = -1;
    fake_queue.io = &fake_io;
    fake_queue.io_context = &fake;
    fake_queue.tun = &fake_tun;
}

static void expect_originals(const struct packet_spec *first, uint32_t from, uint32_t count)
{
    struct packet_spec spec = *first;
    for (uint32_t i = 0; i < count; i++, spec = follow(spec)) {
        static uint8_t original[2048];
        uint32_t length = packet_build(&spec, original);
        assert_int_equal(fake.taken_length[from + i], length);
        assert_memory_equal(fake.taken_bytes[from + i], original, length);
    }
}

static void pitfall_15_a_refused_train_is_written_as_single_packets(void **state)
{
    (void)state;
    struct {
        struct packet_spec spec;
        int type;
        enum fallback_reason reason, other;
    } cases[] = {
        {packet_tcp(4), VIRTIO_NET_HDR_GSO_TCPV4, FALLBACK_TUN_TCP_MERGE_REFUSED,
         FALLBACK_TUN_UDP_MERGE_REFUSED},
        {packet_tcp(6), VIRTIO_NET_HDR_GSO_TCPV6, FALLBACK_TUN_TCP_MERGE_REFUSED,
         FALLBACK_TUN_UDP_MERGE_REFUSED},
        {packet_udp(4), VIRTIO_NET_HDR_GSO_UDP_L4, FALLBACK_TUN_UDP_MERGE_REFUSED,
         FALLBACK_TUN_TCP_MERGE_REFUSED},
        {packet_udp(6), VIRTIO_NET_HDR_GSO_UDP_L4, FALLBACK_TUN_UDP_MERGE_REFUSED,
         FALLBACK_TUN_TCP_MERGE_REFUSED},
    };
    for (size_t c = 0; c < 4; c++) {
        fake_begin();
        fake.refuse_type = cases[c].type;
        uint64_t calls = 0;
        build_train(cases[c].spec, 20);
        assert_true(tun_write(&fake_queue, packets, 20, &counters, &calls));
        assert_int_equal(calls, 21);
        assert_int_equal(fake.taken, 20);
        expect_originals(&cases[c].spec, 0, 20); /* byte for byte */
        assert_int_equal(fallbacks(cases[c].reason), 1);
        assert_int_equal(fallbacks(cases[c].other), 0);
        assert_int_equal(drops(DROP_TUN_WRITE_FAILED), 0);
        bool udp = cases[c].type == VIRTIO_NET_HDR_GSO_UDP_L4;
        assert_int_equal(fake_tun.merge_udp, !udp);
        assert_int_equal(fake_tun.merge_tcp, udp);

        /* from now on it is not even tried */
        build_train(cases[c].spec, 20);
        assert_true(tun_write(&fake_queue, packets, 20, &counters, &calls));
        assert_int_equal(calls, 41);
        assert_int_equal(fallbacks(cases[c].reason), 1);
    }
}

/* Frames of that kind later in the same batch are not tried again, the other kind still is. */
static void pitfall_15_one_refusal_settles_the_rest_of_the_batch(void **state)
{
    (void)state;
    struct packet_spec a = packet_udp(4), b = packet_udp(4), c = packet_tcp(4);
    fake_begin();
    fake.refuse_type = VIRTIO_NET_HDR_GSO_UDP_L4;
    b.source_port++;
    uint32_t n = 0;
    for (int i = 0; i < 5; i++, a = follow(a), b = follow(b), c = follow(c)) {
        packets[n] = (struct packet){bytes[n], packet_build(&a, bytes[n])}, n++;
        packets[n] = (struct packet){bytes[n], packet_build(&b, bytes[n])}, n++;
        packets[n] = (struct packet){bytes[n], packet_build(&c, bytes[n])}, n++;
    }
    uint64_t calls = 0;
    assert_true(tun_write(&fake_queue, packets, n, &counters, &calls));
    assert_int_equal(calls, 1 + 5 + 5 + 1);
    assert_int_equal(fake.taken, 11);
    assert_int_equal(fallbacks(FALLBACK_TUN_UDP_MERGE_REFUSED), 1);
    struct packet_spec first = packet_udp(4);
    expect_originals(&first, 0, 5);
    first.source_port++;
    expect_originals(&first, 5, 5);
}

static void a_refused_single_packet_is_counted_and_disables_nothing(void **state)
{
    (void)state;
    fake_begin();
    fake.errors[0] = EINVAL;
    fake.errors[1] = ENOBUFS;
    uint64_t calls = 0;
    struct packet_spec a = packet_udp(4), b = packet_udp(6);
    for (int i = 0; i < 2; i++) {
        packets[0] = (struct packet){bytes[0], packet_build(&a, bytes[0])};
        packets[1] = (struct packet){bytes[1], packet_build(&b, bytes[1])};
        assert_true(tun_write(&fake_queue, packets, 2, &counters, &calls));
    }
    assert_int_equal(drops(DROP_TUN_WRITE_FAILED), 2);
    assert_int_equal(fake.taken, 2);
    assert_true(fake_tun.merge_tcp && fake_tun.merge_udp);
}

static void a_write_that_would_block_is_retried_a_bounded_number_of_times(void **state)
{
    (void)state;
    uint64_t calls = 0;
    fake_begin();
    fake.errors[0] = fake.errors[1] = EAGAIN;
    fake.errors[2] = EINTR;
    build_train(packet_tcp(4), 10);
    assert_true(tun_write(&fake_queue, packets, 10, &counters, &calls));
    assert_int_equal(fake.taken, 1);
    assert_int_equal(calls, 4);
    assert_int_equal(drops(DROP_TUN_WRITE_FAILED), 0);

    fake_begin();
    for (int i = 0; i < 16; i++)
        fake.errors[i] = EAGAIN;
    calls = 0;
    build_train(packet_tcp(4), 10);
    assert_true(tun_write(&fake_queue, packets, 10, &counters, &calls));
    assert_int_equal(fake.taken, 0);
    assert_int_equal(calls, 6);
    assert_int_equal(drops(DROP_TUN_WRITE_FAILED), 10);
}

static void short_of_memory_a_train_is_tried_in_pieces(void **state)
{
    (void)state;
    uint64_t calls = 0;
    struct packet_spec spec = packet_tcp(6);
    fake_begin();
    fake.errors[0] = ENOMEM;
    build_train(spec, 5);
    assert_true(tun_write(&fake_queue, packets, 5, &counters, &calls));
    assert_int_equal(fake.taken, 5);
    expect_originals(&spec, 0, 5);
    assert_true(fake_tun.merge_tcp);
    assert_int_equal(fallbacks(FALLBACK_TUN_TCP_MERGE_REFUSED), 0);
}

static void pitfall_20_eio_is_survived_and_ebadfd_ends(void **state)
{
    (void)state;
    struct virtio_net_hdr header;
    size_t length = 0;
    uint64_t calls = 0;

    fake_begin();
    fake.errors[0] = EIO;
    fake.errors[1] = EAGAIN;
    fake.errors[2] = EINTR;
    fake.errors[3] = ENOBUFS;
    fake.errors[4] = EBADFD;
    assert_int_equal(tun_read(&fake_queue, &header, frame, &length), TUN_READ_DOWN);
    assert_int_equal(tun_read(&fake_queue, &header, frame, &length), TUN_READ_EMPTY);
    assert_int_equal(tun_read(&fake_queue, &header, frame, &length), TUN_READ_EMPTY);
    assert_int_equal(tun_read(&fake_queue, &header, frame, &length), TUN_READ_ENDED);
    /* a frame longer than the buffer: never a length beyond it */
    assert_int_equal(tun_read(&fake_queue, &header, frame, &length), TUN_READ_FRAME);
    assert_int_equal(length, TUN_FRAME_CAPACITY);

    fake_begin();
    fake.errors[0] = EIO;
    build_train(packet_tcp(4), 10);
    assert_true(tun_write(&fake_queue, packets, 10, &counters, &calls));
    assert_int_equal(drops(DROP_LINK_DOWN), 10);
    fake_begin();
    fake.errors[0] = EBADFD;
    build_train(packet_tcp(4), 10);
    assert_false(tun_write(&fake_queue, packets, 10, &counters, &calls));
    fake_begin();
    fake.errors[0] = EINVAL;
    fake.errors[3] = EBADFD;
    build_train(packet_tcp(4), 10);
    assert_false(tun_write(&fake_queue, packets, 10, &counters, &calls));
    assert_int_equal(fake.taken, 2);
}

/* ---- the real device going down, away and gone --------------------------------------------- */

/* RTM_NEWLINK or RTM_DELLINK for our link, with one attribute; waits for the acknowledgement. */
static void link_request(uint16_t type, uint16_t attribute, const void *value, uint16_t size)
{
    struct {
        struct nlmsghdr header;
        struct ifinfomsg link;
        char attributes[64];
    } request = {
        .header = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
                   .nlmsg_type = type,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
        .link = {.ifi_family = AF_UNSPEC, .ifi_index = (int)if_nametoindex(NAME)},
    };
    if (size > 0) {
        struct rtattr *a = (struct rtattr *)request.attributes;
        a->rta_type = attribute;
        a->rta_len = (unsigned short)RTA_LENGTH(size);
        memcpy(RTA_DATA(a), value, size);
        request.header.nlmsg_len += RTA_SPACE(size);
    }
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        char rest[512];
    } reply;
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    assert_int_equal(send(fd, &request, request.header.nlmsg_len, 0), request.header.nlmsg_len);
    assert_true(recv(fd, &reply, sizeof(reply), 0) >= (ssize_t)NLMSG_LENGTH(sizeof(reply.error)));
    assert_int_equal(reply.header.nlmsg_type, NLMSG_ERROR);
    assert_int_equal(reply.error.error, 0);
    close(fd);
}

static enum tun_read_result read_once(void)
{
    struct virtio_net_hdr header;
    size_t length;
    enum tun_read_result result;
    do { /* what the kernel says by itself when links change */
        result = tun_read(tun.queue[0], &header, frame, &length);
    } while (result == TUN_READ_FRAME);
    return result;
}

static void pitfall_20_a_device_survives_down_and_ends_with_its_link(void **state)
{
    (void)state;
    struct tunnel_options options = default_options();
    open_up(&options);
    set_flags(NAME, 0, IFF_UP);
    build_train(packet_tcp(4), 10);
    uint64_t calls = 0;
    assert_true(tun_write(tun.queue[0], packets, 10, &counters, &calls));
    assert_int_equal(drops(DROP_LINK_DOWN), 10);
    assert_true(tun.merge_tcp);
    assert_int_not_equal(read_once(), TUN_READ_ENDED);
    set_flags(NAME, IFF_UP, 0);
    check_udp_delivery(4, 500, 10, 1);

    link_request(RTM_DELLINK, 0, NULL, 0);
    assert_int_equal(read_once(), TUN_READ_ENDED);
    build_train(packet_tcp(4), 10);
    assert_false(tun_write(tun.queue[0], packets, 10, &counters, &calls));
}

/* Runs in a thread of its own, which may leave the test's namespace behind. */
static void *make_namespace(void *fd)
{
    if (unshare(CLONE_NEWNET) == 0)
        *(int *)fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    return NULL;
}

static void pitfall_60_a_link_moved_away_is_gone_here_but_not_ended(void **state)
{
    (void)state;
    struct tunnel_options options = default_options();
    struct tun_link_state link;
    pthread_t thread;
    int other = -1;

    open_up(&options);
    int monitor = tun_monitor_open();
    assert_true(monitor >= 0);
    assert_true(tun_link_query(NAME, &link));
    assert_true(link.up && !link.gone);
    assert_int_equal(pthread_create(&thread, NULL, make_namespace, &other), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(other >= 0);

    link_request(RTM_NEWLINK, IFLA_NET_NS_FD, &other, sizeof(other));
    tun_monitor_read(monitor, &link);
    assert_true(link.gone);
    assert_false(tun_link_query(NAME, &(struct tun_link_state){0}));
    assert_int_not_equal(read_once(), TUN_READ_ENDED);
    close(monitor);
    close(other);
}

static void pitfall_61_the_monitor_follows_down_up_mtu_and_name(void **state)
{
    (void)state;
    struct tun_link_state link, other;
    uint32_t mtu = 1280;

    open_default();
    int monitor = tun_monitor_open();
    assert_true(fcntl(monitor, F_GETFD) & FD_CLOEXEC);
    assert_true(tun_link_query(NAME, &link));
    tun_monitor_read(monitor, &link); /* nothing there: returns */
    set_flags(NAME, IFF_UP, 0);
    tun_monitor_read(monitor, &link);
    assert_true(link.up);
    set_flags(NAME, 0, IFF_UP);
    tun_monitor_read(monitor, &link);
    assert_false(link.up);
    link_request(RTM_NEWLINK, IFLA_MTU, &mtu, sizeof(mtu));
    tun_monitor_read(monitor, &link);
    assert_int_equal(link.mtu, 1280);

    /* what happens to other links is none of ours */
    other = link;
    set_flags("lo", 0, IFF_UP);
    set_flags("lo", IFF_UP, 0);
    tun_monitor_read(monitor, &link);
    assert_memory_equal(&link, &other, sizeof(link));

    link_request(RTM_NEWLINK, IFLA_IFNAME, "wgt0new", 8);
    tun_monitor_read(monitor, &link);
    assert_string_equal(link.name, "wgt0new");
    assert_false(link.gone);
    tun_close(&tun);
    tun_monitor_read(monitor, &link);
    assert_true(link.gone);
    close(monitor);
}

/* More events than the socket holds: the state is asked for instead. */
static void pitfall_61_an_overflow_of_the_monitor_loses_no_state(void **state)
{
    (void)state;
    struct tun_link_state link;
    int monitor = tun_monitor_open(), small = 1;

    open_default();
    assert_int_equal(setsockopt(monitor, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
    assert_true(tun_link_query(NAME, &link));
    for (int i = 0; i < 50; i++) {
        set_flags(NAME, IFF_UP, 0);
        set_flags(NAME, 0, IFF_UP);
    }
    set_flags(NAME, IFF_UP, 0);
    char byte;
    int error = 0;
    socklen_t size = sizeof(error);
    assert_int_equal(getsockopt(monitor, SOL_SOCKET, SO_ERROR, &error, &size), 0);
    assert_int_equal(error, ENOBUFS); /* it did overflow; reading that cleared it, so once more */
    while (recv(monitor, &byte, 1, MSG_DONTWAIT) >= 0)
        ;
    for (int i = 0; i < 50; i++) {
        set_flags(NAME, 0, IFF_UP);
        set_flags(NAME, IFF_UP, 0);
    }
    link.up = false;
    tun_monitor_read(monitor, &link);
    assert_true(link.up && !link.gone);
    assert_int_equal(link.mtu, DEFAULT_MTU);
    close(monitor);
}

int main(void)
{
    if (unshare(CLONE_NEWNET) != 0) {
        perror("tun_test needs root: unshare");
        return 1;
    }
#define TEST(name) cmocka_unit_test_teardown(name, close_after)
    const struct CMUnitTest tests[] = {
        TEST(creates_a_device_with_every_offload),
        TEST(options_switch_rungs_off_without_counting_fallbacks),
        TEST(pitfall_17_offloads_are_requested_together),
        TEST(several_queues_are_queues_of_one_device),
        TEST(a_name_in_use_is_refused_with_what_to_do),
        TEST(invalid_names_are_refused),
        TEST(an_impossible_mtu_leaves_no_device_behind),
        TEST(without_cap_net_admin_the_error_names_it),
        TEST(takes_over_a_descriptor_and_sets_its_header_size),
        TEST(a_descriptor_without_vnet_header_runs_without_offloads),
        TEST(a_descriptor_that_is_no_tun_device_is_refused_and_stays_open),
        TEST(adopts_a_persistent_device_that_nobody_uses),
        TEST(merged_udp_arrives_as_the_datagrams_it_was),
        TEST(pitfall_18_the_switch_stops_udp_trains_only),
        TEST(pitfall_16_the_kernel_refuses_a_udp_train_without_needs_csum),
        TEST(merged_tcp_arrives_as_the_stream_it_was),
        TEST(pitfall_10_the_kernel_still_sees_a_wrong_checksum),
        TEST(udp_super_packets_are_read_whole_and_cut_right),
        TEST(tcp_super_packets_are_read_whole_and_cut_right),
        TEST(pitfall_15_a_refused_train_is_written_as_single_packets),
        TEST(pitfall_15_one_refusal_settles_the_rest_of_the_batch),
        TEST(a_refused_single_packet_is_counted_and_disables_nothing),
        TEST(a_write_that_would_block_is_retried_a_bounded_number_of_times),
        TEST(short_of_memory_a_train_is_tried_in_pieces),
        TEST(pitfall_20_eio_is_survived_and_ebadfd_ends),
        TEST(pitfall_20_a_device_survives_down_and_ends_with_its_link),
        TEST(pitfall_60_a_link_moved_away_is_gone_here_but_not_ended),
        TEST(pitfall_61_the_monitor_follows_down_up_mtu_and_name),
        TEST(pitfall_61_an_overflow_of_the_monitor_loses_no_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
