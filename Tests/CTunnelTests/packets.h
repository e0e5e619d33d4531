/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inner packets for the tests of offload: a builder, and slow models of the checksum and of what a
 * merge may do. Everything here is written byte by byte, to share no code with what it checks.
 */
#ifndef PACKETS_H
#define PACKETS_H

#include "offload.h"
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

enum {
    FIN = 0x01,
    SYN = 0x02,
    RST = 0x04,
    PSH = 0x08,
    ACK = 0x10,
    URG = 0x20,
    ECE = 0x40,
    CWR = 0x80
};

/* One packet. Zero fields get sensible values from packet_tcp() and packet_udp(). */
struct packet_spec {
    uint8_t version, protocol;
    uint8_t source, destination; /* last byte of the address */
    uint16_t source_port, destination_port;
    uint8_t tos, ttl;
    uint16_t fragment, id;
    uint32_t flow_label;
    uint32_t sequence, acknowledgment;
    uint8_t flags;
    uint16_t window;
    uint8_t tcp_options[40];
    uint8_t tcp_options_length; /* multiple of 4 */
    uint32_t payload_length;
    uint32_t payload_seed; /* payload byte i is a function of seed + i */
};

static inline struct packet_spec packet_tcp(uint8_t version)
{
    return (struct packet_spec){
        .version = version,
        .protocol = IPPROTO_TCP,
        .source = 2,
        .destination = 1,
        .source_port = 40000,
        .destination_port = 5201,
        .ttl = 64,
        .fragment = 0x4000,
        .id = 100,
        .sequence = 1000,
        .acknowledgment = 77,
        .flags = ACK,
        .window = 501,
        .payload_length = 100,
    };
}

static inline struct packet_spec packet_udp(uint8_t version)
{
    struct packet_spec spec = packet_tcp(version);
    spec.protocol = IPPROTO_UDP;
    return spec;
}

/* ---- slow checksum ------------------------------------------------------------------------- */

static inline uint32_t slow_sum(uint32_t sum, const uint8_t *data, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        sum += i % 2 == 0 ? (uint32_t)data[i] << 8 : data[i];
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

static inline void put16(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

static inline uint32_t get16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static inline void put32(uint8_t *p, uint32_t value)
{
    put16(p, value >> 16);
    put16(p + 2, value & 0xffff);
}

static inline uint32_t get32(const uint8_t *p)
{
    return get16(p) << 16 | get16(p + 2);
}

static inline uint32_t packet_ip_length(const uint8_t *p)
{
    return p[0] >> 4 == 4 ? (uint32_t)(p[0] & 15) * 4 : 40;
}

static inline uint8_t packet_protocol(const uint8_t *p)
{
    return p[0] >> 4 == 4 ? p[9] : p[6];
}

/* Folded sum of pseudo-header and transport, checksum field included; 0xffff: right. */
static inline uint32_t slow_transport_sum(const uint8_t *p, uint32_t length)
{
    uint32_t ip = packet_ip_length(p);
    uint32_t sum = p[0] >> 4 == 4 ? slow_sum(0, p + 12, 8) : slow_sum(0, p + 8, 32);
    uint8_t tail[4] = {0, packet_protocol(p)};
    put16(tail + 2, length - ip);
    return slow_sum(slow_sum(sum, tail, 4), p + ip, length - ip);
}

static inline uint8_t *packet_checksum(uint8_t *p)
{
    return p + packet_ip_length(p) + (packet_protocol(p) == IPPROTO_TCP ? 16 : 6);
}

/* Writes both checksums, as RFC 791, 9293 and 768 have them. */
static inline void packet_finish(uint8_t *p, uint32_t length)
{
    if (p[0] >> 4 == 4) {
        put16(p + 10, 0);
        put16(p + 10, ~slow_sum(0, p, packet_ip_length(p)));
    }
    put16(packet_checksum(p), 0);
    uint32_t checksum = ~slow_transport_sum(p, length) & 0xffff;
    put16(packet_checksum(p),
          checksum == 0 && packet_protocol(p) == IPPROTO_UDP ? 0xffff : checksum);
}

static inline bool packet_checksums_right(const uint8_t *p, uint32_t length)
{
    if (p[0] >> 4 == 4 && slow_sum(0, p, packet_ip_length(p)) != 0xffff)
        return false;
    return slow_transport_sum(p, length) == 0xffff;
}

/* ---- builder ------------------------------------------------------------------------------- */

static inline uint32_t packet_build_headers(const struct packet_spec *s, uint8_t *p)
{
    uint32_t ip = s->version == 4 ? 20 : 40;
    uint32_t transport = s->protocol == IPPROTO_TCP ? 20u + s->tcp_options_length : 8;
    uint32_t length = ip + transport + s->payload_length;
    uint8_t *t = p + ip;

    memset(p, 0, ip + transport);
    if (s->version == 4) {
        p[0] = 0x45;
        p[1] = s->tos;
        put16(p + 2, length);
        put16(p + 4, s->id);
        put16(p + 6, s->fragment);
        p[8] = s->ttl;
        p[9] = s->protocol;
        put32(p + 12, 0x0a090000u + s->source);
        put32(p + 16, 0x0a090000u + s->destination);
    } else {
        put32(p, 0x60000000u | (uint32_t)s->tos << 20 | s->flow_label);
        put16(p + 4, length - 40);
        p[6] = s->protocol;
        p[7] = s->ttl;
        p[8] = p[24] = 0xfd;
        p[23] = s->source;
        p[39] = s->destination;
    }
    put16(t, s->source_port);
    put16(t + 2, s->destination_port);
    if (s->protocol == IPPROTO_TCP) {
        put32(t + 4, s->sequence);
        put32(t + 8, s->acknowledgment);
        t[12] = (uint8_t)(transport / 4 << 4);
        t[13] = s->flags;
        put16(t + 14, s->window);
        memcpy(t + 20, s->tcp_options, s->tcp_options_length);
    } else {
        put16(t + 4, length - ip);
    }
    return ip + transport;
}

static inline uint8_t packet_payload_byte(uint32_t position)
{
    return (uint8_t)((position * 2654435761u) >> 24);
}

/* Writes the finished packet; its length. */
static inline uint32_t packet_build(const struct packet_spec *s, uint8_t *p)
{
    uint32_t header = packet_build_headers(s, p);

    for (uint32_t i = 0; i < s->payload_length; i++)
        p[header + i] = packet_payload_byte(s->payload_seed + i);
    packet_finish(p, header + s->payload_length);
    return header + s->payload_length;
}

/* ---- slow model of a merge ----------------------------------------------------------------- */

struct slow_flow {
    enum { FLOW_NONE, FLOW_UNKNOWN, FLOW_KNOWN } kind;
    uint8_t version, protocol, addresses[32], ports[4];
};

static inline struct slow_flow slow_flow(const uint8_t *p, uint32_t length)
{
    struct slow_flow f = {.kind = FLOW_NONE};
    uint32_t ip;

    if (length >= 20 && p[0] >> 4 == 4) {
        f.version = 4;
        ip = 20;
        f.protocol = p[9];
        memcpy(f.addresses, p + 12, 8);
        if (f.protocol != IPPROTO_TCP && f.protocol != IPPROTO_UDP)
            return f;
        f.kind = p[0] != 0x45 || (get16(p + 6) & 0x3fff) ? FLOW_UNKNOWN : FLOW_KNOWN;
    } else if (length >= 40 && p[0] >> 4 == 6) {
        f.version = 6;
        ip = 40;
        f.protocol = p[6];
        memcpy(f.addresses, p + 8, 32);
        if (f.protocol == IPPROTO_ICMPV6)
            return f;
        f.kind = f.protocol == IPPROTO_TCP || f.protocol == IPPROTO_UDP ? FLOW_KNOWN : FLOW_UNKNOWN;
    } else {
        return f;
    }
    if (f.kind == FLOW_KNOWN && length >= ip + 4)
        memcpy(f.ports, p + ip, 4);
    else
        f.kind = FLOW_UNKNOWN;
    return f;
}

/* Whether two packets must keep their order (pitfall 19). */
static inline bool slow_flow_ordered(const struct slow_flow *a, const struct slow_flow *b)
{
    if (a->kind == FLOW_NONE || b->kind == FLOW_NONE || a->version != b->version ||
        memcmp(a->addresses, b->addresses, 32) != 0)
        return false;
    /* behind an IPv6 extension header may stand either transport */
    bool wildcard =
        a->protocol != b->protocol && ((a->protocol != IPPROTO_TCP && a->protocol != IPPROTO_UDP) ||
                                       (b->protocol != IPPROTO_TCP && b->protocol != IPPROTO_UDP));
    if (a->kind == FLOW_UNKNOWN || b->kind == FLOW_UNKNOWN)
        return wildcard || a->protocol == b->protocol;
    return a->protocol == b->protocol && memcmp(a->ports, b->ports, 4) == 0;
}

/* What segmentation may legitimately change: the ID where DF is set (RFC 6864), and the other form
 * of a zero TCP checksum. */
static inline void slow_canonical(uint8_t *p)
{
    if (p[0] >> 4 == 4 && (get16(p + 6) & 0x4000)) {
        put16(p + 4, 0);
        put16(p + 10, 0);
        put16(p + 10, ~slow_sum(0, p, 20));
    }
    if (packet_protocol(p) == IPPROTO_TCP && get16(packet_checksum(p)) == 0xffff)
        put16(packet_checksum(p), 0);
}

static inline bool slow_same(const uint8_t *a, const uint8_t *b, uint32_t length)
{
    uint8_t *copy = malloc(2 * (size_t)length);
    REQUIRE(copy != NULL);
    memcpy(copy, a, length);
    memcpy(copy + length, b, length);
    slow_canonical(copy);
    slow_canonical(copy + length);
    bool same = memcmp(copy, copy + length, length) == 0;
    free(copy);
    return same;
}

/* One frame, cut again, is exactly its packets. */
static inline void slow_check_frame(const struct merge *merge, const struct merged_frame *frame,
                                    const struct packet *originals)
{
    static const struct virtio_net_hdr zero;
    static uint8_t bytes[65536], segment[65536];
    const struct iovec *iov = &merge->iov[frame->first_iov];
    uint32_t length = 0;

    REQUIRE(iov[0].iov_base == &frame->header && iov[0].iov_len == sizeof(frame->header));
    for (int i = 1; i < frame->iov_count; i++) {
        REQUIRE(length + iov[i].iov_len <= 65535);
        memcpy(bytes + length, iov[i].iov_base, iov[i].iov_len);
        length += (uint32_t)iov[i].iov_len;
    }
    if (frame->packets == 1) {
        const struct packet *original = &originals[merge->order[frame->first_packet]];
        REQUIRE(memcmp(&frame->header, &zero, sizeof(zero)) == 0);
        REQUIRE(length == original->length && memcmp(bytes, original->data, length) == 0);
        return;
    }
    struct split split;
    REQUIRE(split_plan(&frame->header, bytes, length, &split) == SPLIT_OK);
    REQUIRE(split.count == frame->packets);
    REQUIRE(frame->header.flags == VIRTIO_NET_HDR_F_NEEDS_CSUM);
    REQUIRE(frame->header.hdr_len == split.header_length);
    /* the partial checksum: pseudo-header only, so the sum without it is the transport's own */
    uint8_t whole[4] = {0, packet_protocol(bytes)};
    put16(whole + 2, length - packet_ip_length(bytes));
    uint32_t sum = bytes[0] >> 4 == 4 ? slow_sum(0, bytes + 12, 8) : slow_sum(0, bytes + 8, 32);
    REQUIRE(get16(packet_checksum(bytes)) == slow_sum(sum, whole, 4));
    REQUIRE(bytes[0] >> 4 == 6 || slow_sum(0, bytes, 20) == 0xffff);
    for (uint32_t i = 0; i < split.count; i++) {
        const struct packet *original = &originals[merge->order[frame->first_packet + i]];
        split_segment(&split, i, segment);
        REQUIRE(split_segment_length(&split, i) == original->length);
        REQUIRE(packet_checksums_right(original->data, original->length)); /* pitfall 10 */
        REQUIRE(slow_same(segment, original->data, original->length));
    }
}

/* Plans `packets` and requires: a permutation, flows in order, frames that are their packets,
 * restorable. */
static inline void slow_check_merge(struct merge *merge, struct packet *packets, uint32_t count)
{
    static struct packet originals[MERGE_MAX_PACKETS];
    static struct slow_flow flows[MERGE_MAX_PACKETS];
    static bool seen[MERGE_MAX_PACKETS];
    uint32_t position = 0;

    memset(seen, 0, sizeof(seen));
    for (uint32_t i = 0; i < count; i++) {
        originals[i].length = packets[i].length;
        originals[i].data = malloc(packets[i].length + 1);
        REQUIRE(originals[i].data != NULL);
        memcpy(originals[i].data, packets[i].data, packets[i].length);
        flows[i] = slow_flow(packets[i].data, packets[i].length);
    }
    merge_plan(merge, packets, count);

    for (uint32_t f = 0; f < merge->frame_count; f++) {
        REQUIRE(merge->frame[f].first_packet == position && merge->frame[f].packets > 0);
        slow_check_frame(merge, &merge->frame[f], originals);
        position += merge->frame[f].packets;
    }
    REQUIRE(position == count);
    for (uint32_t i = 0; i < count; i++) {
        REQUIRE(merge->order[i] < count && !seen[merge->order[i]]);
        seen[merge->order[i]] = true;
        for (uint32_t j = 0; j < i; j++)
            REQUIRE(merge->order[j] < merge->order[i] ||
                    !slow_flow_ordered(&flows[merge->order[j]], &flows[merge->order[i]]));
    }
    for (uint32_t f = 0; f < merge->frame_count; f++)
        merge_restore(merge, packets, &merge->frame[f]);
    for (uint32_t i = 0; i < count; i++) {
        REQUIRE(memcmp(packets[i].data, originals[i].data, packets[i].length) == 0);
        free(originals[i].data);
    }
}

#endif
