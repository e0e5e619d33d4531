// SPDX-License-Identifier: Apache-2.0
/*
 * Super-packets from the TUN device cut into packets, each finished in one copy. Of the virtio-net
 * header (virtio 1.2, §5.1.6) only type, gso_size and, for packets that are not cut, the checksum
 * offsets are believed: where headers end is parsed here.
 */
#include "offload_wire.h"

#include <netinet/in.h>

/* The length field, added up in 32 bits, is what the device delivered (pitfall 47). */
static bool ip_length_agrees(struct split *s)
{
    const uint8_t *ip = s->packet;

    if (s->length < IPV4_HEADER_LENGTH || s->length > UINT16_MAX)
        return false;
    s->ip_version = ip[0] >> 4;
    if (s->ip_version == 4) {
        uint32_t header = (uint32_t)(ip[0] & 15) * 4;
        return header >= IPV4_HEADER_LENGTH && header <= s->length &&
               load_be16(ip + IPV4_TOTAL_LENGTH) == s->length;
    }
    return s->ip_version == 6 && s->length >= IPV6_HEADER_LENGTH &&
           IPV6_HEADER_LENGTH + (uint32_t)load_be16(ip + IPV6_PAYLOAD_LENGTH) == s->length;
}

/*
 * Steps over IPv6 options headers (RFC 8200 §4.2): the only extension headers that are the same in
 * every segment and leave the pseudo-header alone. Returns where the transport header would start
 * and its protocol in `*protocol`.
 */
static uint32_t skip_ipv6_options(const struct split *s, uint8_t *protocol)
{
    uint32_t offset = IPV6_HEADER_LENGTH;

    *protocol = s->packet[IPV6_NEXT_HEADER];
    while ((*protocol == IPPROTO_HOPOPTS || *protocol == IPPROTO_DSTOPTS) &&
           offset + 8 <= s->length) {
        *protocol = s->packet[offset];
        offset += 8 + (uint32_t)s->packet[offset + 1] * 8;
    }
    return offset;
}

/* Finds the transport header of a super-packet; false: not one that can be cut. */
static bool parse_transport(struct split *s)
{
    const uint8_t *ip = s->packet;
    uint8_t protocol;
    uint32_t start;

    if (s->ip_version == 4) {
        if (load_be16(ip + IPV4_FRAGMENT) & IPV4_FRAGMENT_OFFSET_MASK)
            return false;
        protocol = ip[IPV4_PROTOCOL];
        start = (uint32_t)(ip[0] & 15) * 4;
    } else {
        start = skip_ipv6_options(s, &protocol);
    }

    if (protocol == IPPROTO_TCP) {
        if (start + TCP_HEADER_LENGTH > s->length)
            return false;
        s->transport_header_length = (uint16_t)((ip[start + TCP_DATA_OFFSET] >> 4) * 4);
        s->checksum_offset = TCP_CHECKSUM;
        if (s->transport_header_length < TCP_HEADER_LENGTH)
            return false;
    } else if (protocol == IPPROTO_UDP) {
        s->transport_header_length = UDP_HEADER_LENGTH;
        s->checksum_offset = UDP_CHECKSUM;
    } else {
        return false;
    }
    s->transport = protocol;
    s->ip_header_length = (uint16_t)start;
    s->checksum_start = (uint16_t)start;
    s->header_length = start + s->transport_header_length;
    return s->header_length <= s->length;
}

static bool type_matches(uint8_t type, const struct split *s)
{
    switch (type) {
    case VIRTIO_NET_HDR_GSO_TCPV4:
        return s->transport == IPPROTO_TCP && s->ip_version == 4;
    case VIRTIO_NET_HDR_GSO_TCPV6:
        return s->transport == IPPROTO_TCP && s->ip_version == 6;
    case VIRTIO_NET_HDR_GSO_UDP_L4:
        return s->transport == IPPROTO_UDP && !s->ecn_tso;
    default: /* UFO and what is not known: never requested */
        return false;
    }
}

static enum split_result plan_super_packet(const struct virtio_net_hdr *header, struct split *s)
{
    s->ecn_tso = (header->gso_type & VIRTIO_NET_HDR_GSO_ECN) != 0;
    if (header->gso_size == 0 || !parse_transport(s) ||
        !type_matches(header->gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN, s))
        return SPLIT_GSO_INVALID;

    uint32_t payload = s->length - s->header_length;
    s->segment_size = header->gso_size;
    s->count = payload > 0 ? (payload + s->segment_size - 1) / s->segment_size : 1;
    if (s->count > MAX_SPLIT_SEGMENTS)
        return SPLIT_TOO_MANY_SEGMENTS;

    /* A forwarded UDP datagram without checksum (RFC 768) stays without one. */
    const uint8_t *check = s->packet + s->checksum_start + s->checksum_offset;
    s->needs_checksum = s->transport == IPPROTO_TCP ||
                        (header->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) || load_be16(check) != 0;
    s->partial_sum = pseudo_header_sum(s->packet, s->ip_version, s->transport);
    return SPLIT_OK;
}

static enum split_result plan_checksum(const struct virtio_net_hdr *header, struct split *s)
{
    if ((uint32_t)header->csum_start + header->csum_offset + 2 > s->length)
        return SPLIT_GSO_INVALID;
    s->needs_checksum = true;
    s->checksum_start = header->csum_start;
    s->checksum_offset = header->csum_offset;
    return SPLIT_OK;
}

enum split_result split_plan(const struct virtio_net_hdr *header, const uint8_t *packet,
                             size_t length, struct split *out)
{
    *out = (struct split){
        .packet = packet,
        .length = length <= UINT16_MAX ? (uint32_t)length : UINT32_MAX,
        .count = 1,
    };
    if (!ip_length_agrees(out))
        return SPLIT_MALFORMED;
    if (header == NULL)
        return SPLIT_OK;
    if (header->gso_type != VIRTIO_NET_HDR_GSO_NONE)
        return plan_super_packet(header, out);
    if (header->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
        return plan_checksum(header, out);
    return SPLIT_OK;
}

/* 0 means "no checksum" in UDP, so 0xFFFF, its equal, is sent (RFC 768, pitfall 11). */
static uint16_t finish_checksum(uint64_t sum, bool zero_is_special)
{
    uint16_t checksum = (uint16_t)~checksum_fold(sum);
    return checksum == 0 && zero_is_special ? UINT16_MAX : checksum;
}

/* A packet that is not cut: the checksum field already holds the pseudo-header's sum. */
static void copy_whole(const struct split *s, uint8_t *destination)
{
    if (!s->needs_checksum) {
        memcpy(destination, s->packet, s->length);
        return;
    }
    uint32_t start = s->checksum_start;
    memcpy(destination, s->packet, start);
    uint64_t sum = checksum_copy(0, destination + start, s->packet + start, s->length - start);
    /* Which protocol it is does not matter: everywhere else 0xFFFF verifies like 0. */
    store_checksum(destination + start + s->checksum_offset, finish_checksum(sum, true));
}

static void advance_ip(const struct split *s, uint32_t i, uint32_t length, uint8_t *ip)
{
    if (s->ip_version == 6) {
        store_be16(ip + IPV6_PAYLOAD_LENGTH, (uint16_t)(length - IPV6_HEADER_LENGTH));
        return;
    }
    store_be16(ip + IPV4_TOTAL_LENGTH, (uint16_t)length);
    store_be16(ip + IPV4_ID, (uint16_t)(load_be16(ip + IPV4_ID) + i));
    ipv4_set_checksum(ip, s->ip_header_length);
}

static void advance_transport(const struct split *s, uint32_t i, uint32_t length, uint8_t *header)
{
    store_checksum(header + s->checksum_offset, 0);
    if (s->transport == IPPROTO_UDP) {
        store_be16(header + UDP_LENGTH, (uint16_t)(length - s->ip_header_length));
        return;
    }
    store_be32(header + TCP_SEQUENCE, load_be32(header + TCP_SEQUENCE) + i * s->segment_size);
    if (i + 1 < s->count) /* pitfall 5 */
        header[TCP_FLAGS] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
    if (i > 0 && s->ecn_tso) /* RFC 3168 §6.1.2: CWR answers once (pitfall 13) */
        header[TCP_FLAGS] &= (uint8_t)~TCP_CWR;
}

void split_segment(const struct split *s, uint32_t i, uint8_t *destination)
{
    if (s->transport == 0) {
        copy_whole(s, destination);
        return;
    }

    uint32_t length = split_segment_length(s, i);
    uint8_t *transport = destination + s->ip_header_length;
    const uint8_t *payload = s->packet + s->header_length + i * s->segment_size;
    uint32_t payload_length = length - s->header_length;

    memcpy(destination, s->packet, s->header_length);
    advance_ip(s, i, length, destination);
    advance_transport(s, i, length, transport);
    if (!s->needs_checksum) {
        memcpy(destination + s->header_length, payload, payload_length);
        return;
    }
    uint64_t sum = s->partial_sum + pseudo_header_length(length - s->ip_header_length);
    sum = checksum_add(sum, transport, s->transport_header_length);
    sum = checksum_copy(sum, destination + s->header_length, payload, payload_length);
    store_checksum(transport + s->checksum_offset,
                   finish_checksum(sum, s->transport == IPPROTO_UDP));
}
