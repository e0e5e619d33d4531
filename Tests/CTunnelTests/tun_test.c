// SPDX-License-Identifier: Apache-2.0
/* Traffic through a real device: merged frames as the kernel's sockets receive them, super-packets
 * as they send them. */
#include "tun_device.h"

#include <linux/virtio_net.h>
#include <netinet/udp.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103 /* Linux 4.18 */
#endif

/* ---- inbound: what the kernel's sockets receive -------------------------------------------- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(merged_udp_arrives_as_the_datagrams_it_was),
        DEVICE_TEST(pitfall_18_the_switch_stops_udp_trains_only),
        DEVICE_TEST(pitfall_16_the_kernel_refuses_a_udp_train_without_needs_csum),
        DEVICE_TEST(merged_tcp_arrives_as_the_stream_it_was),
        DEVICE_TEST(pitfall_10_the_kernel_still_sees_a_wrong_checksum),
        DEVICE_TEST(udp_super_packets_are_read_whole_and_cut_right),
        DEVICE_TEST(tcp_super_packets_are_read_whole_and_cut_right),
    };
    enter_namespace();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
