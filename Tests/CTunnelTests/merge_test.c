// SPDX-License-Identifier: Apache-2.0
/*
 * What may share a frame and what may not. Every case also runs through the slow model: frames cut
 * again are their packets, flows keep their order, restoring undoes every rewrite.
 */
#include "packets.h"

#include <setjmp.h>
#include <stdarg.h>
// cmocka.h needs the two above
#include <cmocka.h>

#define CAPACITY 2048

static struct merge merge;
static uint8_t bytes[MERGE_MAX_PACKETS][CAPACITY];
static struct packet packets[MERGE_MAX_PACKETS];
static uint32_t count;

static void begin(void)
{
    count = 0;
    merge.tcp = merge.udp = true;
}

static uint8_t *add(const struct packet_spec *spec)
{
    assert_true(count < MERGE_MAX_PACKETS && spec->payload_length + 100 <= CAPACITY);
    packets[count] = (struct packet){bytes[count], packet_build(spec, bytes[count])};
    return bytes[count++];
}

/* The packet that follows `spec` in its stream. */
static struct packet_spec follow(struct packet_spec spec)
{
    spec.sequence += spec.payload_length;
    spec.payload_seed += spec.payload_length;
    spec.id++;
    return spec;
}

/* Plans, and requires these frames, each given by its number of packets; ends with 0. */
static void expect_frames(const uint16_t *sizes)
{
    uint32_t frames = 0;
    slow_check_merge(&merge, packets, count);
    while (sizes[frames] != 0)
        frames++;
    assert_int_equal(merge.frame_count, frames);
    for (uint32_t f = 0; f < frames; f++)
        assert_int_equal(merge.frame[f].packets, sizes[f]);
}

#define EXPECT_FRAMES(...) expect_frames((const uint16_t[]){__VA_ARGS__, 0})

/* Two packets that would merge, but for what `change` did to the second. */
#define EXPECT_APART(base, change)                                                                 \
    do {                                                                                           \
        struct packet_spec spec = (base);                                                          \
        begin();                                                                                   \
        add(&spec);                                                                                \
        spec = follow(spec);                                                                       \
        add(&spec);                                                                                \
        EXPECT_FRAMES(2);                                                                          \
        begin();                                                                                   \
        spec = (base);                                                                             \
        add(&spec);                                                                                \
        spec = follow(spec);                                                                       \
        change;                                                                                    \
        add(&spec);                                                                                \
        EXPECT_FRAMES(1, 1);                                                                       \
    } while (0)

static void each_family(void (*check)(struct packet_spec))
{
    check(packet_tcp(4));
    check(packet_tcp(6));
    check(packet_udp(4));
    check(packet_udp(6));
}

/* ---- what merges --------------------------------------------------------------------------- */

static void check_train(struct packet_spec spec)
{
    begin();
    spec.payload_length = 1301;
    for (int i = 0; i < 40; i++, spec = follow(spec))
        add(&spec);
    EXPECT_FRAMES(40);

    merge_plan(&merge, packets, count);
    const struct virtio_net_hdr *header = &merge.frame[0].header;
    bool tcp = spec.protocol == IPPROTO_TCP;
    uint16_t ip = spec.version == 4 ? 20 : 40;
    assert_int_equal(header->flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
    assert_int_equal(header->gso_type, !tcp                ? VIRTIO_NET_HDR_GSO_UDP_L4
                                       : spec.version == 4 ? VIRTIO_NET_HDR_GSO_TCPV4
                                                           : VIRTIO_NET_HDR_GSO_TCPV6);
    assert_int_equal(header->gso_size, 1301);
    assert_int_equal(header->hdr_len, ip + (tcp ? 20 : 8));
    assert_int_equal(header->csum_start, ip);
    assert_int_equal(header->csum_offset, tcp ? 16 : 6);
    /* no payload was copied: the iovecs point into the packets */
    assert_int_equal(merge.frame[0].iov_count, 41);
    for (uint32_t i = 1; i < 40; i++)
        assert_ptr_equal(merge.iov[1 + i].iov_base, packets[i].data + header->hdr_len);
    merge_restore(&merge, packets, &merge.frame[0]);
}

static void a_contiguous_train_becomes_one_frame(void **state)
{
    (void)state;
    each_family(check_train);
}

static void flows_are_merged_side_by_side(void **state)
{
    (void)state;
    struct packet_spec spec[4] = {packet_tcp(4), packet_tcp(6), packet_udp(4), packet_udp(6)};
    begin();
    for (int round = 0; round < 10; round++) {
        for (int f = 0; f < 4; f++) {
            add(&spec[f]);
            spec[f] = follow(spec[f]);
        }
    }
    EXPECT_FRAMES(10, 10, 10, 10);
}

static void addresses_and_ports_tell_flows_apart(void **state)
{
    (void)state;
    for (uint8_t version = 4; version <= 6; version += 2) {
        EXPECT_APART(packet_tcp(version), spec.source++);
        EXPECT_APART(packet_tcp(version), spec.destination++);
        EXPECT_APART(packet_udp(version), spec.source_port++);
        EXPECT_APART(packet_udp(version), spec.destination_port++);
    }
}

/* 512 flows of one packet each, then one more of every flow: the table holds them all. */
static void a_full_batch_of_different_flows_is_kept_apart(void **state)
{
    (void)state;
    begin();
    for (int round = 0; round < 2; round++) {
        for (uint16_t f = 0; f < MERGE_MAX_PACKETS / 2; f++) {
            struct packet_spec spec = packet_udp(4);
            spec.source_port = (uint16_t)(1000 + f);
            spec.id = (uint16_t)round;
            add(&spec);
        }
    }
    slow_check_merge(&merge, packets, count);
    assert_int_equal(merge.frame_count, MERGE_MAX_PACKETS / 2);
}

static void a_kind_that_is_switched_off_is_delivered_singly(void **state)
{
    (void)state;
    struct packet_spec tcp = packet_tcp(4), udp = packet_udp(4);
    begin();
    for (int i = 0; i < 3; i++, tcp = follow(tcp), udp = follow(udp)) {
        add(&tcp);
        add(&udp);
    }
    merge.tcp = false;
    EXPECT_FRAMES(1, 3, 1, 1);
    merge.tcp = true;
    merge.udp = false;
    EXPECT_FRAMES(3, 1, 1, 1);
    merge.tcp = false;
    EXPECT_FRAMES(1, 1, 1, 1, 1, 1);
}

/* pitfall 18 in the plan: with UDP off, no frame is ever of type UDP_L4. */
static void pitfall_18_udp_merging_can_be_switched_off_alone(void **state)
{
    (void)state;
    struct packet_spec vxlan = packet_udp(4);
    vxlan.destination_port = 4789;
    begin();
    merge.udp = false;
    for (int i = 0; i < 20; i++, vxlan = follow(vxlan))
        add(&vxlan);
    slow_check_merge(&merge, packets, count);
    assert_int_equal(merge.frame_count, 20);
}

/* ---- pitfalls ------------------------------------------------------------------------------ */

static void check_pitfall_01(struct packet_spec base)
{
    EXPECT_APART(base, spec.tos ^= 0xb8); /* DSCP */
    EXPECT_APART(base, spec.tos ^= 0x03); /* ECN */
    EXPECT_APART(base, spec.ttl--);
    if (base.version == 4) {
        EXPECT_APART(base, spec.fragment ^= 0x4000); /* DF */
        EXPECT_APART(base, spec.fragment ^= 0x8000); /* reserved */
    }
}

static void pitfall_01_different_ip_fields_do_not_merge(void **state)
{
    (void)state;
    each_family(check_pitfall_01);
}

static void pitfall_02_different_flow_labels_do_not_merge(void **state)
{
    (void)state;
    EXPECT_APART(packet_tcp(6), spec.flow_label = 1);
    EXPECT_APART(packet_udp(6), spec.flow_label = 0xfffff);
}

static void pitfall_03_options_fragments_and_extension_headers_pass_through(void **state)
{
    (void)state;
    static const uint16_t fragments[] = {0x2000, 0x2001, 0x0001, 0x1fff, 0x6000};
    for (size_t i = 0; i < sizeof(fragments) / sizeof(fragments[0]); i++) {
        struct packet_spec spec = packet_udp(4);
        spec.fragment = fragments[i];
        begin();
        for (int j = 0; j < 3; j++, spec = follow(spec))
            add(&spec);
        EXPECT_FRAMES(1, 1, 1);
    }
    struct packet_spec spec = packet_tcp(4);
    begin();
    for (int j = 0; j < 3; j++, spec = follow(spec)) {
        uint8_t *p = add(&spec);
        p[0] = 0x46; /* options */
        put16(p + 10, 0);
        put16(p + 10, ~slow_sum(0, p, 24));
    }
    EXPECT_FRAMES(1, 1, 1);

    static const uint8_t extensions[] = {0, 43, 44, 51, 60, 135};
    for (size_t i = 0; i < sizeof(extensions); i++) {
        spec = packet_tcp(6);
        begin();
        for (int j = 0; j < 3; j++, spec = follow(spec))
            add(&spec)[6] = extensions[i];
        EXPECT_FRAMES(1, 1, 1);
    }
}

static void pitfall_04_tcp_flags_beyond_ack_and_psh_do_not_merge(void **state)
{
    (void)state;
    static const uint8_t flags[] = {URG, CWR, ECE, SYN, FIN, RST};
    for (uint8_t version = 4; version <= 6; version += 2) {
        for (size_t i = 0; i < sizeof(flags); i++) {
            EXPECT_APART(packet_tcp(version), spec.flags |= flags[i]);
            struct packet_spec spec = packet_tcp(version);
            spec.flags |= flags[i]; /* on all of them alike */
            begin();
            add(&spec);
            spec = follow(spec);
            add(&spec);
            EXPECT_FRAMES(1, 1);
        }
        EXPECT_APART(packet_tcp(version), spec.flags = 0);
        for (uint8_t bit = 1; bit < 16; bit <<= 1) { /* AE (RFC 9768) and the reserved bits */
            struct packet_spec spec = packet_tcp(version);
            begin();
            for (int i = 0; i < 2; i++, spec = follow(spec)) {
                uint8_t *p = add(&spec);
                p[packet_ip_length(p) + 12] |= bit;
                packet_finish(p, packets[i].length);
            }
            EXPECT_FRAMES(1, 1);
        }
    }
}

static void pitfall_05_psh_ends_a_train(void **state)
{
    (void)state;
    struct packet_spec spec = packet_tcp(4);
    begin();
    for (int i = 0; i < 6; i++, spec = follow(spec)) {
        spec.flags = i == 2 || i == 3 ? ACK | PSH : ACK;
        add(&spec);
    }
    EXPECT_FRAMES(3, 1, 2);
    merge_plan(&merge, packets, count);
    assert_int_equal(packets[0].data[33], ACK | PSH);
    assert_int_equal(packets[4].data[33], ACK);
}

static void pitfall_06_tcp_headers_that_differ_do_not_merge(void **state)
{
    (void)state;
    for (uint8_t version = 4; version <= 6; version += 2) {
        struct packet_spec base = packet_tcp(version);
        base.tcp_options_length = 12;
        memcpy(base.tcp_options, (uint8_t[12]){1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8}, 12);
        EXPECT_APART(base, spec.acknowledgment++);
        EXPECT_APART(base, spec.window++);
        EXPECT_APART(base, spec.sequence++);
        EXPECT_APART(base, spec.sequence--);
        EXPECT_APART(base, spec.sequence -= spec.payload_length); /* the same again */
        EXPECT_APART(base, spec.tcp_options[11]++);
        EXPECT_APART(base, spec.tcp_options_length = 8);
        EXPECT_APART(base, spec.tcp_options_length = 40);
    }
    struct packet_spec wrapping = packet_tcp(4);
    wrapping.sequence = UINT32_MAX - 150;
    begin();
    for (int i = 0; i < 4; i++, wrapping = follow(wrapping))
        add(&wrapping);
    EXPECT_FRAMES(4);
}

static void check_pitfall_07(struct packet_spec spec)
{
    static const uint32_t lengths[] = {100, 100, 60, 100, 100, 101, 101, 1, 1};
    begin();
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        spec.payload_length = lengths[i];
        add(&spec);
        spec = follow(spec);
    }
    EXPECT_FRAMES(3, 2, 3, 1);
}

static void pitfall_07_short_segment_ends_a_train(void **state)
{
    (void)state;
    each_family(check_pitfall_07);
}

static void pitfall_08_a_train_stays_within_65535_bytes(void **state)
{
    (void)state;
    for (uint8_t version = 4; version <= 6; version += 2) {
        struct packet_spec spec = packet_tcp(version);
        spec.payload_length = 1400;
        begin();
        for (int i = 0; i < 50; i++, spec = follow(spec))
            add(&spec);
        EXPECT_FRAMES(46, 4); /* 46 × 1400 + 60 = 64460 */

        /* the last byte that fits, and one more */
        uint32_t rest = 65535 - (version == 4 ? 40 : 60) - 46 * 1400;
        for (uint32_t more = 0; more < 2; more++) {
            begin();
            spec = packet_tcp(version);
            spec.payload_length = 1400;
            for (int i = 0; i < 46; i++, spec = follow(spec))
                add(&spec);
            spec.payload_length = rest + more;
            add(&spec);
            if (more == 0)
                EXPECT_FRAMES(47);
            else
                EXPECT_FRAMES(46, 1);
        }
    }
}

static void pitfall_08_a_udp_train_has_at_most_64_segments(void **state)
{
    (void)state;
    struct packet_spec spec = packet_udp(4);
    spec.payload_length = 64;
    begin();
    for (int i = 0; i < 130; i++, spec = follow(spec))
        add(&spec);
    EXPECT_FRAMES(64, 64, 2);
}

static void pitfall_09_ids_must_count_up_where_df_is_clear(void **state)
{
    (void)state;
    struct packet_spec tcp = packet_tcp(4), udp = packet_udp(4);
    tcp.fragment = udp.fragment = 0;
    EXPECT_APART(tcp, spec.id--);
    EXPECT_APART(tcp, spec.id++);
    EXPECT_APART(udp, spec.id += 7);
    tcp.id = 0xfffe;
    begin();
    for (int i = 0; i < 4; i++, tcp = follow(tcp))
        add(&tcp);
    EXPECT_FRAMES(4);
    /* RFC 6864: with DF set the ID means nothing */
    struct packet_spec spec = packet_udp(4);
    begin();
    for (int i = 0; i < 4; i++, spec = follow(spec)) {
        spec.id = 0;
        add(&spec);
    }
    EXPECT_FRAMES(4);
}

static void check_pitfall_10(struct packet_spec base)
{
    /* damage packet `bad` of five, in turn in payload, transport checksum and IP checksum */
    for (uint32_t bad = 0; bad < 5; bad++) {
        for (int where = 0; where < 3; where++) {
            if (where == 2 && base.version == 6)
                continue;
            struct packet_spec spec = base;
            begin();
            for (uint32_t i = 0; i < 5; i++, spec = follow(spec)) {
                uint8_t *p = add(&spec);
                if (i != bad)
                    continue;
                if (where == 0)
                    p[packets[i].length - 1] ^= 0x10;
                else
                    (where == 1 ? packet_checksum(p) : p + 10)[1] ^= 0x10;
            }
            /* alone, unchanged (the model sees to it), with the others left and right of it */
            static const uint16_t sizes[5][4] = {
                {1, 4, 0}, {1, 1, 3, 0}, {2, 1, 2, 0}, {3, 1, 1, 0}, {4, 1, 0}};
            expect_frames(sizes[bad]);
        }
    }
}

static void pitfall_10_a_wrong_checksum_is_delivered_unchanged(void **state)
{
    (void)state;
    each_family(check_pitfall_10);
}

static void pitfall_10_a_udp_checksum_of_zero_is_delivered_unchanged(void **state)
{
    (void)state;
    for (uint8_t version = 4; version <= 6; version += 2) {
        struct packet_spec spec = packet_udp(version);
        begin();
        for (int i = 0; i < 3; i++, spec = follow(spec))
            put16(packet_checksum(add(&spec)), 0);
        EXPECT_FRAMES(1, 1, 1);
    }
}

/* A datagram whose sum is ffff carries ffff (pitfall 11): it merges and comes out the same. */
static void pitfall_11_a_udp_checksum_of_ffff_survives_a_merge(void **state)
{
    (void)state;
    struct packet_spec spec = packet_udp(6);
    begin();
    for (int i = 0; i < 3; i++, spec = follow(spec)) {
        uint8_t *p = add(&spec);
        uint32_t word = get16(p + 48) + get16(p + 46);
        put16(p + 48, (word & 0xffff) + (word >> 16));
        put16(p + 46, 0xffff);
        assert_true(packet_checksums_right(p, packets[i].length));
    }
    EXPECT_FRAMES(3);
}

static void check_pitfall_16(struct packet_spec spec)
{
    begin();
    add(&spec);
    spec = follow(spec);
    add(&spec);
    merge_plan(&merge, packets, count);
    assert_int_equal(merge.frame[0].packets, 2);
    assert_int_equal(merge.frame[0].header.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
}

static void pitfall_16_every_merged_frame_asks_for_its_checksum(void **state)
{
    (void)state;
    each_family(check_pitfall_16);
}

/* What lies between packets of a flow keeps its place, whatever it is. */
static void check_pitfall_19(struct packet_spec base)
{
    struct packet_spec spec = base, other;
    begin();
    add(&spec);
    spec = follow(spec);
    other = spec;
    other.payload_length = base.protocol == IPPROTO_TCP ? 0 : 2; /* a pure ACK; a small one */
    uint8_t *p = add(&other);
    if (base.protocol == IPPROTO_UDP)
        put16(packet_checksum(p), 0); /* unmergeable */
    add(&spec);
    spec = follow(spec);
    add(&spec);
    EXPECT_FRAMES(1, 1, 2);

    /* of unknown ports between the same addresses: an options or extension header */
    begin();
    spec = base;
    add(&spec);
    spec = follow(spec);
    p = add(&other);
    if (base.version == 4)
        p[6] |= 0x20; /* a first fragment */
    else
        p[6] = IPPROTO_FRAGMENT;
    add(&spec);
    EXPECT_FRAMES(1, 1, 1);

    /* of another flow: no barrier */
    begin();
    spec = base;
    add(&spec);
    spec = follow(spec);
    other.source_port++;
    p = add(&other);
    put16(packet_checksum(p), 0);
    add(&spec);
    EXPECT_FRAMES(2, 1);
}

static void pitfall_19_an_unmergeable_packet_keeps_its_place(void **state)
{
    (void)state;
    each_family(check_pitfall_19);
}

static void pitfall_19_icmp_between_two_segments_parts_nothing(void **state)
{
    (void)state;
    for (uint8_t version = 4; version <= 6; version += 2) {
        struct packet_spec spec = packet_tcp(version);
        begin();
        add(&spec);
        add(&spec)[version == 4 ? 9 : 6] = version == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
        spec = follow(spec);
        add(&spec);
        EXPECT_FRAMES(2, 1);
    }
}

static void pitfall_47_a_length_field_that_lies_is_not_believed(void **state)
{
    (void)state;
    for (uint8_t version = 4; version <= 6; version += 2) {
        struct packet_spec spec = packet_udp(version);
        begin();
        add(&spec);
        spec = follow(spec);
        put16(add(&spec) + (version == 4 ? 2 : 4), 65500);
        spec = follow(spec);
        put16(add(&spec) + (version == 4 ? 24 : 44), 9); /* the UDP length */
        spec = follow(spec);
        put16(add(&spec) + (version == 4 ? 24 : 44), 0);
        EXPECT_FRAMES(1, 1, 1, 1);
    }
}

/* Every prefix of a packet, in a heap block of just its size: nothing is read past its end. */
static void check_truncated(struct packet_spec spec)
{
    uint8_t whole[CAPACITY];
    uint32_t length = packet_build(&spec, whole);
    for (int lie = 0; lie < 2; lie++) {
        for (uint32_t n = 0; n < length; n++) {
            uint8_t *a = malloc(n + !n), *b = malloc(n + !n);
            memcpy(a, whole, n);
            if (lie && n >= 40) /* the length field agrees with the cut */
                put16(a + (spec.version == 4 ? 2 : 4), spec.version == 4 ? n : n - 40);
            memcpy(b, a, n);
            struct packet two[2] = {{a, n}, {b, n}};
            slow_check_merge(&merge, two, 2);
            free(a);
            free(b);
        }
    }
}

static void truncated_packets_are_delivered_as_they_are(void **state)
{
    (void)state;
    begin();
    each_family(check_truncated);
}

/* ---- property ------------------------------------------------------------------------------ */

/* Streams of a few flows, shuffled together, with every kind of disturbance now and then. */
static void random_batch(unsigned *seed)
{
    struct packet_spec flow[6] = {packet_tcp(4), packet_tcp(6), packet_udp(4),
                                  packet_udp(6), packet_tcp(4), packet_udp(6)};
    flow[4].source_port++;
    flow[5].destination++;
    flow[0].fragment = rand_r(seed) % 2 ? 0x4000 : 0;
    uint32_t total = (uint32_t)rand_r(seed) % 200 + 1;

    begin();
    for (uint32_t i = 0; i < total; i++) {
        struct packet_spec *spec = &flow[(uint32_t)rand_r(seed) % 6];
        if (rand_r(seed) % 20 == 0)
            spec->payload_length = (uint32_t)rand_r(seed) % 1400;
        if (rand_r(seed) % 30 == 0)
            spec->tos = (uint8_t)rand_r(seed);
        struct packet_spec sent = *spec;
        if (rand_r(seed) % 15 == 0)
            sent.flags |= (uint8_t)rand_r(seed);
        uint8_t *p = add(&sent);
        if (rand_r(seed) % 40 == 0)
            p[(uint32_t)rand_r(seed) % packets[i].length] ^= (uint8_t)rand_r(seed);
        if (rand_r(seed) % 40 != 0)
            *spec = follow(*spec);
    }
}

static void random_batches_come_out_of_merge_and_split_in_order(void **state)
{
    (void)state;
    uint64_t in = 0, frames = 0;
    for (unsigned seed = 1; seed <= 1500; seed++) {
        unsigned s = seed;
        random_batch(&s);
        slow_check_merge(&merge, packets, count);
        in += count;
        frames += merge.frame_count;
    }
    assert_true(frames * 2 < in); /* it did merge */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_contiguous_train_becomes_one_frame),
        cmocka_unit_test(flows_are_merged_side_by_side),
        cmocka_unit_test(addresses_and_ports_tell_flows_apart),
        cmocka_unit_test(a_full_batch_of_different_flows_is_kept_apart),
        cmocka_unit_test(a_kind_that_is_switched_off_is_delivered_singly),
        cmocka_unit_test(pitfall_01_different_ip_fields_do_not_merge),
        cmocka_unit_test(pitfall_02_different_flow_labels_do_not_merge),
        cmocka_unit_test(pitfall_03_options_fragments_and_extension_headers_pass_through),
        cmocka_unit_test(pitfall_04_tcp_flags_beyond_ack_and_psh_do_not_merge),
        cmocka_unit_test(pitfall_05_psh_ends_a_train),
        cmocka_unit_test(pitfall_06_tcp_headers_that_differ_do_not_merge),
        cmocka_unit_test(pitfall_07_short_segment_ends_a_train),
        cmocka_unit_test(pitfall_08_a_train_stays_within_65535_bytes),
        cmocka_unit_test(pitfall_08_a_udp_train_has_at_most_64_segments),
        cmocka_unit_test(pitfall_09_ids_must_count_up_where_df_is_clear),
        cmocka_unit_test(pitfall_10_a_wrong_checksum_is_delivered_unchanged),
        cmocka_unit_test(pitfall_10_a_udp_checksum_of_zero_is_delivered_unchanged),
        cmocka_unit_test(pitfall_11_a_udp_checksum_of_ffff_survives_a_merge),
        cmocka_unit_test(pitfall_16_every_merged_frame_asks_for_its_checksum),
        cmocka_unit_test(pitfall_18_udp_merging_can_be_switched_off_alone),
        cmocka_unit_test(pitfall_19_an_unmergeable_packet_keeps_its_place),
        cmocka_unit_test(pitfall_19_icmp_between_two_segments_parts_nothing),
        cmocka_unit_test(pitfall_47_a_length_field_that_lies_is_not_believed),
        cmocka_unit_test(truncated_packets_are_delivered_as_they_are),
        cmocka_unit_test(random_batches_come_out_of_merge_and_split_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
