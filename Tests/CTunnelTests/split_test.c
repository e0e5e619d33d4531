// SPDX-License-Identifier: Apache-2.0
/* Super-packets cut into packets, each compared with one that was built on its own. */
#include "packets.h"

#include <setjmp.h>
#include <stdarg.h>
// cmocka.h needs the two above
#include <cmocka.h>

static uint8_t frame[70000], segment[70000], expected[70000];

/* A super-packet as the kernel hands it out: one header, the partial checksum in its field. */
static struct virtio_net_hdr build_super_packet(const struct packet_spec *spec, uint16_t gso_size,
                                                uint32_t *length)
{
    *length = packet_build(spec, frame);
    uint8_t tail[4] = {0, spec->protocol};
    uint32_t ip = packet_ip_length(frame);
    put16(tail + 2, *length - ip);
    uint32_t sum = spec->version == 4 ? slow_sum(0, frame + 12, 8) : slow_sum(0, frame + 8, 32);
    put16(packet_checksum(frame), slow_sum(sum, tail, 4));
    bool tcp = spec->protocol == IPPROTO_TCP;
    return (struct virtio_net_hdr){
        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
        .gso_type = !tcp                 ? VIRTIO_NET_HDR_GSO_UDP_L4
                    : spec->version == 4 ? VIRTIO_NET_HDR_GSO_TCPV4
                                         : VIRTIO_NET_HDR_GSO_TCPV6,
        .gso_size = gso_size,
        .hdr_len = (uint16_t)(ip + (tcp ? 20u + spec->tcp_options_length : 8u)),
        .csum_start = (uint16_t)ip,
        .csum_offset = tcp ? 16 : 6,
    };
}

/* What segment `i` of `count` must be, by RFC 791, 9293 and 768. */
static uint32_t build_expected(struct packet_spec spec, uint16_t gso_size, uint32_t i,
                               uint32_t count, bool ecn)
{
    uint32_t before = i * gso_size;
    spec.id = (uint16_t)(spec.id + i);
    spec.sequence += before;
    spec.payload_seed += before;
    spec.payload_length -= before;
    if (spec.payload_length > gso_size)
        spec.payload_length = gso_size;
    if (i + 1 < count)
        spec.flags &= (uint8_t) ~(FIN | PSH);
    if (i > 0 && ecn)
        spec.flags &= (uint8_t)~CWR;
    return packet_build(&spec, expected);
}

static void check_split(const struct packet_spec *spec, uint16_t gso_size, uint8_t type_bits)
{
    uint32_t length;
    struct virtio_net_hdr header = build_super_packet(spec, gso_size, &length);
    header.gso_type |= type_bits;
    struct split split;
    uint32_t count = (spec->payload_length + gso_size - 1u) / gso_size;

    assert_int_equal(split_plan(&header, frame, length, &split), SPLIT_OK);
    assert_int_equal(split.count, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t n = build_expected(*spec, gso_size, i, count, type_bits != 0);
        assert_int_equal(split_segment_length(&split, i), n);
        memset(segment, 0xa5, sizeof(segment));
        split_segment(&split, i, segment);
        assert_memory_equal(segment, expected, n);
        assert_int_equal(segment[n], 0xa5);
    }
}

static void cuts_tcp_and_udp_of_both_families(void **state)
{
    (void)state;
    for (uint8_t version = 4; version <= 6; version += 2) {
        struct packet_spec tcp = packet_tcp(version), udp = packet_udp(version);
        tcp.tcp_options_length = 12;
        memset(tcp.tcp_options, 1, 12);
        tcp.payload_length = udp.payload_length = 60001;
        tcp.flags = ACK | PSH;
        check_split(&tcp, 1368, 0);
        check_split(&udp, 1372, 0);
        tcp.payload_length = udp.payload_length = 2800;
        check_split(&tcp, 1400, 0);
        check_split(&udp, 1400, 0);
        check_split(&udp, 2800, 0); /* one segment: no cut, but a checksum */
        check_split(&tcp, 65535, 0);
    }
}

static void pitfall_05_psh_and_fin_only_on_the_last_segment(void **state)
{
    (void)state;
    struct packet_spec spec = packet_tcp(4);
    spec.payload_length = 3000;
    spec.flags = ACK | PSH | FIN;
    uint32_t length;
    struct virtio_net_hdr header = build_super_packet(&spec, 1000, &length);
    struct split split;
    assert_int_equal(split_plan(&header, frame, length, &split), SPLIT_OK);
    assert_int_equal(split.count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        split_segment(&split, i, segment);
        assert_int_equal(segment[20 + 13], i < 2 ? ACK : ACK | PSH | FIN);
    }
}

/* Other flags are the same in every segment: URG, which merging refuses, included. */
static void pitfall_04_flags_that_merging_refuses_survive_a_split(void **state)
{
    (void)state;
    struct packet_spec spec = packet_tcp(6);
    spec.payload_length = 3000;
    spec.flags = ACK | URG | ECE;
    check_split(&spec, 1000, 0);
}

static void pitfall_11_a_udp_checksum_of_zero_becomes_ffff(void **state)
{
    (void)state;
    struct packet_spec spec = packet_udp(4);
    spec.payload_length = 200;
    uint32_t length = packet_build(&spec, frame);
    /* Choose the first payload word so that the first segment sums to ffff. */
    struct packet_spec first = spec;
    first.payload_length = 100;
    packet_build(&first, expected);
    uint32_t old = get16(expected + 28), checksum = get16(expected + 26);
    uint32_t word = old + checksum;
    word = (word & 0xffff) + (word >> 16);
    put16(frame + 28, word);

    struct virtio_net_hdr header = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
                                    .gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
                                    .gso_size = 100,
                                    .csum_start = 20,
                                    .csum_offset = 6};
    struct split split;
    assert_int_equal(split_plan(&header, frame, length, &split), SPLIT_OK);
    split_segment(&split, 0, segment);
    assert_int_equal(get16(segment + 26), 0xffff);
    assert_true(packet_checksums_right(segment, 128));

    /* The same as a packet of its own whose checksum is left to us. */
    put16(frame + 2, 128);
    put16(frame + 24, 108);
    uint8_t tail[4] = {0, IPPROTO_UDP, 0, 108};
    put16(frame + 26, slow_sum(slow_sum(0, frame + 12, 8), tail, 4));
    header.gso_type = VIRTIO_NET_HDR_GSO_NONE;
    assert_int_equal(split_plan(&header, frame, 128, &split), SPLIT_OK);
    split_segment(&split, 0, segment);
    assert_int_equal(get16(segment + 26), 0xffff);
    assert_int_equal(slow_transport_sum(segment, 128), 0xffff);
}

static void pitfall_12_hdr_len_of_the_device_is_ignored(void **state)
{
    (void)state;
    static const uint16_t lies[] = {0, 1, 20, 54, 100, 1500, 65535};
    struct packet_spec spec = packet_tcp(4);
    spec.payload_length = 5000;
    spec.tcp_options_length = 12;
    for (size_t l = 0; l < sizeof(lies) / sizeof(lies[0]); l++) {
        uint32_t length;
        struct virtio_net_hdr header = build_super_packet(&spec, 1368, &length);
        header.hdr_len = lies[l];
        struct split split;
        assert_int_equal(split_plan(&header, frame, length, &split), SPLIT_OK);
        assert_int_equal(split.header_length, 52);
        for (uint32_t i = 0; i < split.count; i++) {
            uint32_t n = build_expected(spec, 1368, i, split.count, false);
            split_segment(&split, i, segment);
            assert_memory_equal(segment, expected, n);
        }
    }
}

static void pitfall_13_sequence_and_id_advance_and_wrap(void **state)
{
    (void)state;
    struct packet_spec spec = packet_tcp(4);
    spec.payload_length = 9000;
    spec.sequence = 0xfffff000;
    spec.id = 0xfffe;
    check_split(&spec, 1000, 0);
}

static void pitfall_13_cwr_only_on_the_first_with_ecn(void **state)
{
    (void)state;
    struct packet_spec spec = packet_tcp(6);
    spec.payload_length = 4000;
    spec.flags = ACK | CWR;
    check_split(&spec, 1000, VIRTIO_NET_HDR_GSO_ECN);
    check_split(&spec, 1000, 0); /* not announced (accurate ECN): on every one */
}

static void pitfall_14_a_tiny_gso_size_is_bounded(void **state)
{
    (void)state;
    struct packet_spec spec = packet_tcp(4);
    struct split split;
    uint32_t length;
    struct virtio_net_hdr header;

    spec.payload_length = MAX_SPLIT_SEGMENTS;
    check_split(&spec, 1, 0);
    spec.payload_length = MAX_SPLIT_SEGMENTS + 1;
    header = build_super_packet(&spec, 1, &length);
    assert_int_equal(split_plan(&header, frame, length, &split), SPLIT_TOO_MANY_SEGMENTS);
    spec.payload_length = 65000;
    header = build_super_packet(&spec, 1, &length);
    assert_int_equal(split_plan(&header, frame, length, &split), SPLIT_TOO_MANY_SEGMENTS);
    header.gso_size = 0;
    assert_int_equal(split_plan(&header, frame, length, &split), SPLIT_GSO_INVALID);
}

/* 16-bit arithmetic would see 40 + 65500 as 4. */
static void pitfall_47_ipv6_lengths_are_added_in_32_bits(void **state)
{
    (void)state;
    struct packet_spec spec = packet_tcp(6);
    struct split split;
    uint32_t length = packet_build(&spec, frame);

    put16(frame + 4, 65500);
    assert_int_equal(split_plan(NULL, frame, length, &split), SPLIT_MALFORMED);
    assert_int_equal(split_plan(NULL, frame, (uint16_t)(40 + 65500), &split), SPLIT_MALFORMED);
    assert_int_equal(split_plan(NULL, frame, 40 + 65500, &split), SPLIT_MALFORMED);
    put16(frame + 4, 65495);
    assert_int_equal(split_plan(NULL, frame, 65535, &split), SPLIT_OK);
    /* 2^32 more must not be cut off either */
    assert_int_equal(split_plan(NULL, frame, 65535 + (1ull << 32), &split), SPLIT_MALFORMED);
}

static void pitfall_47_disagreeing_lengths_are_malformed(void **state)
{
    (void)state;
    for (uint8_t version = 4; version <= 6; version += 2) {
        struct packet_spec spec = packet_udp(version);
        struct split split;
        uint32_t length = packet_build(&spec, frame);
        assert_int_equal(split_plan(NULL, frame, length, &split), SPLIT_OK);
        assert_int_equal(split_plan(NULL, frame, length - 1, &split), SPLIT_MALFORMED);
        assert_int_equal(split_plan(NULL, frame, length + 1, &split), SPLIT_MALFORMED);
        for (uint32_t n = 0; n < 40; n++) {
            /* a heap copy of just n bytes: the sanitizer sees any read past them */
            uint8_t *cut = malloc(n + !n);
            memcpy(cut, frame, n);
            assert_int_equal(split_plan(NULL, cut, n, &split), SPLIT_MALFORMED);
            free(cut);
        }
        frame[0] = (uint8_t)(frame[0] & 15) | 0x50;
        assert_int_equal(split_plan(NULL, frame, length, &split), SPLIT_MALFORMED);
    }
    struct packet_spec spec = packet_udp(4);
    struct split split;
    uint32_t length = packet_build(&spec, frame);
    frame[0] = 0x44; /* header of 16 bytes */
    assert_int_equal(split_plan(NULL, frame, length, &split), SPLIT_MALFORMED);
}

/* Headers that do not hold: each leaves a named result, none is read past its length. */
static void refuses_super_packets_whose_headers_do_not_parse(void **state)
{
    (void)state;
    struct packet_spec spec = packet_tcp(4);
    struct split split;
    uint32_t length;
    struct virtio_net_hdr good = build_super_packet(&spec, 50, &length), header = good;

    header.gso_type = VIRTIO_NET_HDR_GSO_UDP; /* UFO */
    assert_int_equal(split_plan(&header, frame, length, &split), SPLIT_GSO_INVALID);
    header.gso_type = 2;
    assert_int_equal(split_plan(&header, frame, length, &split), SPLIT_GSO_INVALID);
    header.gso_type = VIRTIO_NET_HDR_GSO_ECN;
    assert_int_equal(split_plan(&header, frame, length, &split), SPLIT_GSO_INVALID);
    header.gso_type = VIRTIO_NET_HDR_GSO_TCPV6;
    assert_int_equal(split_plan(&header, frame, length, &split), SPLIT_GSO_INVALID);
    header.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4;
    assert_int_equal(split_plan(&header, frame, length, &split), SPLIT_GSO_INVALID);

    frame[20 + 12] = 0x40; /* data offset 16 */
    assert_int_equal(split_plan(&good, frame, length, &split), SPLIT_GSO_INVALID);
    frame[20 + 12] = 0xf0; /* 60: still inside */
    assert_int_equal(split_plan(&good, frame, length, &split), SPLIT_OK);
    put16(frame + 2, 79);
    assert_int_equal(split_plan(&good, frame, 79, &split), SPLIT_GSO_INVALID);
    put16(frame + 2, 39);
    assert_int_equal(split_plan(&good, frame, 39, &split), SPLIT_GSO_INVALID);

    good = build_super_packet(&spec, 50, &length);
    put16(frame + 6, 0x2000); /* a fragment */
    assert_int_equal(split_plan(&good, frame, length, &split), SPLIT_GSO_INVALID);

    spec = packet_udp(4);
    good = build_super_packet(&spec, 50, &length);
    good.gso_type |= VIRTIO_NET_HDR_GSO_ECN;
    assert_int_equal(split_plan(&good, frame, length, &split), SPLIT_GSO_INVALID);
}

static void completes_the_checksum_of_a_single_packet(void **state)
{
    (void)state;
    for (uint8_t version = 4; version <= 6; version += 2) {
        for (int tcp = 0; tcp < 2; tcp++) {
            struct packet_spec spec = tcp ? packet_tcp(version) : packet_udp(version);
            spec.payload_length = 1301;
            struct split split;
            uint32_t length;
            struct virtio_net_hdr header = build_super_packet(&spec, 0, &length);
            header.gso_type = VIRTIO_NET_HDR_GSO_NONE;
            packet_build(&spec, expected);
            assert_int_equal(split_plan(&header, frame, length, &split), SPLIT_OK);
            assert_int_equal(split.count, 1);
            split_segment(&split, 0, segment);
            assert_memory_equal(segment, expected, length);

            header.csum_start = (uint16_t)(length - 2);
            header.csum_offset = 1;
            assert_int_equal(split_plan(&header, frame, length, &split), SPLIT_GSO_INVALID);
            header.csum_start = header.csum_offset = 65535;
            assert_int_equal(split_plan(&header, frame, length, &split), SPLIT_GSO_INVALID);
        }
    }
}

/* IPv4 options, a fragment, IPv6 extension headers: single packets pass as they are. */
static void passes_single_packets_byte_for_byte(void **state)
{
    (void)state;
    struct packet_spec spec = packet_udp(4);
    struct virtio_net_hdr none = {0};
    struct split split;
    uint32_t length = packet_build(&spec, frame);

    frame[0] = 0x46;
    frame[6] = 0x20;
    assert_int_equal(split_plan(&none, frame, length, &split), SPLIT_OK);
    split_segment(&split, 0, segment);
    assert_memory_equal(segment, frame, length);

    spec = packet_tcp(6);
    length = packet_build(&spec, frame);
    for (int next_header = 0; next_header < 256; next_header++) {
        frame[6] = (uint8_t)next_header;
        assert_int_equal(split_plan(&none, frame, length, &split), SPLIT_OK);
        assert_int_equal(split.count, 1);
        memset(segment, 0, length);
        split_segment(&split, 0, segment);
        assert_memory_equal(segment, frame, length);
    }
}

/* Options are part of the header that every segment repeats (RFC 8200 §4.2). */
static void cuts_behind_ipv6_destination_options(void **state)
{
    (void)state;
    struct packet_spec spec = packet_tcp(6);
    spec.payload_length = 3000;
    uint32_t length;
    struct virtio_net_hdr header = build_super_packet(&spec, 1400, &length);
    static uint8_t with_options[4000];
    memcpy(with_options, frame, 40);
    memcpy(with_options + 48, frame + 40, length - 40);
    with_options[6] = IPPROTO_DSTOPTS;
    put16(with_options + 4, length - 40 + 8);
    memcpy(with_options + 40, (uint8_t[8]){IPPROTO_TCP, 0, 1, 4}, 8); /* PadN */

    struct split split;
    assert_int_equal(split_plan(&header, with_options, length + 8, &split), SPLIT_OK);
    assert_int_equal(split.count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t n = build_expected(spec, 1400, i, 3, false);
        assert_int_equal(split_segment_length(&split, i), n + 8);
        split_segment(&split, i, segment);
        assert_int_equal(get16(segment + 4), n - 40 + 8);
        assert_memory_equal(segment + 40, with_options + 40, 8);
        assert_memory_equal(segment + 48, expected + 40, n - 40);
    }
    with_options[40] = IPPROTO_ROUTING; /* changes the pseudo-header: not cut */
    assert_int_equal(split_plan(&header, with_options, length + 8, &split), SPLIT_GSO_INVALID);
    with_options[40] = IPPROTO_DSTOPTS; /* a chain that runs off the end */
    with_options[41] = 255;
    assert_int_equal(split_plan(&header, with_options, length + 8, &split), SPLIT_GSO_INVALID);
}

/* RFC 768: a sender without checksum keeps its choice when its forwarded train is cut. */
static void a_udp_train_without_checksum_stays_without(void **state)
{
    (void)state;
    struct packet_spec spec = packet_udp(4);
    spec.payload_length = 300;
    uint32_t length;
    struct virtio_net_hdr header = build_super_packet(&spec, 100, &length);
    struct split split;
    header.flags = 0;
    put16(frame + 26, 0);
    assert_int_equal(split_plan(&header, frame, length, &split), SPLIT_OK);
    for (uint32_t i = 0; i < 3; i++) {
        build_expected(spec, 100, i, 3, false);
        put16(expected + 26, 0);
        split_segment(&split, i, segment);
        assert_memory_equal(segment, expected, 128);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_tcp_and_udp_of_both_families),
        cmocka_unit_test(pitfall_04_flags_that_merging_refuses_survive_a_split),
        cmocka_unit_test(pitfall_05_psh_and_fin_only_on_the_last_segment),
        cmocka_unit_test(pitfall_11_a_udp_checksum_of_zero_becomes_ffff),
        cmocka_unit_test(pitfall_12_hdr_len_of_the_device_is_ignored),
        cmocka_unit_test(pitfall_13_sequence_and_id_advance_and_wrap),
        cmocka_unit_test(pitfall_13_cwr_only_on_the_first_with_ecn),
        cmocka_unit_test(pitfall_14_a_tiny_gso_size_is_bounded),
        cmocka_unit_test(pitfall_47_ipv6_lengths_are_added_in_32_bits),
        cmocka_unit_test(pitfall_47_disagreeing_lengths_are_malformed),
        cmocka_unit_test(refuses_super_packets_whose_headers_do_not_parse),
        cmocka_unit_test(completes_the_checksum_of_a_single_packet),
        cmocka_unit_test(passes_single_packets_byte_for_byte),
        cmocka_unit_test(cuts_behind_ipv6_destination_options),
        cmocka_unit_test(a_udp_train_without_checksum_stays_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
