// SPDX-License-Identifier: Apache-2.0
/*
 * Decrypted packets merged into super-packets for the TUN device, so that the kernel's stack is
 * entered once per train.
 *
 * Packets are taken in order. Each flow (addresses, protocol, ports) has at most one open train,
 * found through a hash table; a packet that continues it is appended, any other packet of the flow
 * closes it. A packet whose flow cannot be told (a fragment, options) closes every train between
 * its addresses, by way of a barrier. So packets of a flow never overtake each other (pitfall 19),
 * while trains of different flows grow side by side. Then the frames are laid out: payload stays
 * where it is, only the first header of a train is rewritten.
 *
 * Merging must be undone by the kernel's segmentation without a trace for the receiver, hence the
 * strict comparison of headers (pitfalls 1–9) and of checksums (pitfall 10).
 */
#include "offload_wire.h"

#include <assert.h>
#include <netinet/in.h>

enum packet_kind {
    KIND_SINGLE,  /* no flow that is merged: order against trains does not matter */
    KIND_UNKNOWN, /* may belong to any flow between its addresses */
    KIND_FLOW,    /* of a known flow, but to be delivered alone */
    KIND_MERGEABLE,
};

/* What merging needs to know of a packet. */
struct parsed {
    const uint8_t *ip;
    uint32_t length;
    uint8_t version, protocol;
    uint8_t ip_header_length, header_length;
    uint32_t payload_length;
    uint32_t hash;    /* of the flow */
    uint32_t barrier; /* bucket of the addresses */
};

/* ---- parsing ------------------------------------------------------------------------------- */

static uint64_t load_word(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof(word));
    return word;
}

/* Multiply and fold; the constant is 2^64 divided by the golden ratio (Knuth, TAOCP 3, §6.4). Flows
 * that collide on purpose cost their sender's batch a longer probe, bounded by its 512 packets. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 32;
}

static void hash_addresses(struct parsed *p, uint64_t *hash)
{
    if (p->version == 4) {
        *hash = mix(4, load_word(p->ip + IPV4_ADDRESSES));
    } else {
        *hash = 6;
        for (int i = 0; i < 32; i += 8)
            *hash = mix(*hash, load_word(p->ip + IPV6_ADDRESSES + i));
    }
    p->barrier = (uint32_t)(*hash % MERGE_BARRIERS);
}

/* The IP header: plain ones in front of TCP or UDP lead on to the transport header. */
static enum packet_kind parse_ip(struct parsed *p, const struct merge *merge, uint64_t *hash)
{
    const uint8_t *ip = p->ip;
    bool plain;

    p->version = p->length > 0 ? ip[0] >> 4 : 0;
    if (p->version == 4 && p->length >= IPV4_HEADER_LENGTH) {
        p->protocol = ip[IPV4_PROTOCOL];
        p->ip_header_length = IPV4_HEADER_LENGTH;
        plain = (ip[0] & 15) * 4 == IPV4_HEADER_LENGTH &&
                !(load_be16(ip + IPV4_FRAGMENT) & IPV4_FRAGMENT_OFFSET_MASK) &&
                load_be16(ip + IPV4_TOTAL_LENGTH) == p->length;
    } else if (p->version == 6 && p->length >= IPV6_HEADER_LENGTH) {
        p->protocol = ip[IPV6_NEXT_HEADER];
        p->ip_header_length = IPV6_HEADER_LENGTH;
        plain = IPV6_HEADER_LENGTH + (uint32_t)load_be16(ip + IPV6_PAYLOAD_LENGTH) == p->length;
    } else {
        return KIND_SINGLE;
    }

    bool tcp = p->protocol == IPPROTO_TCP, udp = p->protocol == IPPROTO_UDP;
    if ((tcp && !merge->tcp) || (udp && !merge->udp))
        return KIND_SINGLE;
    if (!tcp && !udp && (p->version == 4 || p->protocol == IPPROTO_ICMPV6))
        return KIND_SINGLE;
    hash_addresses(p, hash);
    /* Behind an IPv6 extension header anything may follow (pitfall 3). */
    return plain && (tcp || udp) ? KIND_MERGEABLE : KIND_UNKNOWN;
}

static enum packet_kind parse_tcp(struct parsed *p)
{
    const uint8_t *tcp = p->ip + p->ip_header_length;
    uint32_t available = p->length - p->ip_header_length;

    if (available < TCP_HEADER_LENGTH)
        return KIND_UNKNOWN;
    uint32_t header_length = (uint32_t)(tcp[TCP_DATA_OFFSET] >> 4) * 4;
    if (header_length < TCP_HEADER_LENGTH || header_length > available)
        return KIND_FLOW;
    p->header_length = (uint8_t)(p->ip_header_length + header_length);
    p->payload_length = available - header_length;
    /* pitfall 4; reserved bits and AE (RFC 9768) sit beside the data offset */
    bool plain_flags =
        (tcp[TCP_FLAGS] | TCP_PSH) == (TCP_ACK | TCP_PSH) && (tcp[TCP_DATA_OFFSET] & 15) == 0;
    return plain_flags && p->payload_length > 0 ? KIND_MERGEABLE : KIND_FLOW;
}

static enum packet_kind parse_udp(struct parsed *p)
{
    const uint8_t *udp = p->ip + p->ip_header_length;
    uint32_t available = p->length - p->ip_header_length;

    if (available < UDP_HEADER_LENGTH)
        return KIND_UNKNOWN;
    p->header_length = (uint8_t)(p->ip_header_length + UDP_HEADER_LENGTH);
    p->payload_length = available - UDP_HEADER_LENGTH;
    /* A checksum of zero cannot be verified (pitfall 10). */
    bool whole = load_be16(udp + UDP_LENGTH) == available && load_be16(udp + UDP_CHECKSUM) != 0;
    return whole && p->payload_length > 0 ? KIND_MERGEABLE : KIND_FLOW;
}

static enum packet_kind parse(struct parsed *p, const struct packet *packet,
                              const struct merge *merge)
{
    uint64_t hash = 0;

    *p = (struct parsed){.ip = packet->data, .length = packet->length};
    enum packet_kind kind = parse_ip(p, merge, &hash);
    if (kind != KIND_MERGEABLE)
        return kind;
    kind = p->protocol == IPPROTO_TCP ? parse_tcp(p) : parse_udp(p);
    if (kind != KIND_UNKNOWN) {
        uint32_t ports;
        memcpy(&ports, p->ip + p->ip_header_length, sizeof(ports));
        p->hash = (uint32_t)mix(hash, (uint64_t)p->protocol << 32 | ports);
    }
    return kind;
}

/* ---- comparing ----------------------------------------------------------------------------- */

static bool same_flow(const uint8_t *a, const uint8_t *b)
{
    if (a[0] >> 4 != b[0] >> 4)
        return false;
    if (a[0] >> 4 == 4) /* addresses, and the ports behind them */
        return a[IPV4_PROTOCOL] == b[IPV4_PROTOCOL] &&
               memcmp(a + IPV4_ADDRESSES, b + IPV4_ADDRESSES, 8 + 4) == 0;
    return a[IPV6_NEXT_HEADER] == b[IPV6_NEXT_HEADER] &&
           memcmp(a + IPV6_ADDRESSES, b + IPV6_ADDRESSES, 32 + 4) == 0;
}

/* `index`: how many packets the train has, so what the next IPv4 ID would be. */
static bool same_ip_fields(const uint8_t *first, const uint8_t *ip, uint32_t index)
{
    if (first[0] >> 4 == 6) /* traffic class and flow label (pitfalls 1, 2) */
        return memcmp(first, ip, 4) == 0 && first[IPV6_HOP_LIMIT] == ip[IPV6_HOP_LIMIT];
    if (first[IPV4_TOS] != ip[IPV4_TOS] || first[IPV4_TTL] != ip[IPV4_TTL] ||
        memcmp(first + IPV4_FRAGMENT, ip + IPV4_FRAGMENT, 2) != 0)
        return false;
    /* The ID of a datagram that may not be fragmented carries no meaning (RFC 6864 §4.1). */
    return (load_be16(ip + IPV4_FRAGMENT) & IPV4_DONT_FRAGMENT) ||
           load_be16(ip + IPV4_ID) == (uint16_t)(load_be16(first + IPV4_ID) + index);
}

/* Everything but sequence, PSH and checksum is equal (pitfall 6). */
static bool same_tcp_fields(const uint8_t *first, const uint8_t *tcp, uint32_t header_length,
                            uint32_t payload_before)
{
    return load_be32(tcp + TCP_SEQUENCE) == load_be32(first + TCP_SEQUENCE) + payload_before &&
           memcmp(first + TCP_ACKNOWLEDGMENT, tcp + TCP_ACKNOWLEDGMENT, 5) == 0 &&
           memcmp(first + TCP_WINDOW, tcp + TCP_WINDOW, 2) == 0 &&
           memcmp(first + TCP_URGENT, tcp + TCP_URGENT, header_length - TCP_URGENT) == 0;
}

/* Whether the packet continues the train, by its headers and lengths. */
static bool continues(const struct merge_train *train, const struct merged_frame *frame,
                      const uint8_t *first, const struct parsed *p)
{
    uint32_t transport = train->ip_header_length;

    if (p->header_length != train->header_length || p->payload_length > train->segment_size)
        return false; /* pitfall 7 */
    if (train->header_length + train->payload_length + p->payload_length > UINT16_MAX)
        return false; /* pitfall 8 */
    if (!same_ip_fields(first, p->ip, frame->packets))
        return false;
    if (p->protocol == IPPROTO_UDP)
        return frame->packets < MERGE_MAX_UDP_PACKETS;
    return same_tcp_fields(first + transport, p->ip + transport,
                           (uint32_t)p->header_length - transport, train->payload_length);
}

/* IPv4 header and transport checksum; a packet that fails is delivered as it came (pitfall 10). */
static bool checksums_right(const uint8_t *ip, uint32_t length, uint32_t ip_header_length)
{
    uint8_t version = ip[0] >> 4;
    uint8_t protocol = version == 4 ? ip[IPV4_PROTOCOL] : ip[IPV6_NEXT_HEADER];
    uint32_t transport_length = length - ip_header_length;

    if (version == 4 && checksum_fold(checksum_add(0, ip, ip_header_length)) != UINT16_MAX)
        return false;
    uint64_t sum =
        pseudo_header_sum(ip, version, protocol) + pseudo_header_length(transport_length);
    return checksum_fold(checksum_add(sum, ip + ip_header_length, transport_length)) == UINT16_MAX;
}

/* ---- trains -------------------------------------------------------------------------------- */

static uint32_t begin_frame(struct merge *merge, uint32_t index, const struct parsed *p, bool open)
{
    uint32_t f = merge->frame_count++;

    merge->frame[f].packets = 1;
    merge->train[f] = (struct merge_train){
        .hash = p->hash,
        .first = (uint16_t)index,
        .last = (uint16_t)index,
        .payload_length = p->payload_length,
        .segment_size = (uint16_t)p->payload_length,
        .ip_header_length = p->ip_header_length,
        .header_length = p->header_length,
        .open = open,
    };
    return f;
}

static bool has_push(const struct parsed *p)
{
    return p->protocol == IPPROTO_TCP && (p->ip[p->ip_header_length + TCP_FLAGS] & TCP_PSH);
}

static void append(struct merge *merge, uint32_t f, uint32_t index, const struct parsed *p)
{
    struct merge_train *train = &merge->train[f];

    merge->next[train->last] = (uint16_t)index;
    train->last = (uint16_t)index;
    train->payload_length += p->payload_length;
    merge->frame[f].packets++;
    if (p->payload_length < train->segment_size || has_push(p)) /* pitfalls 5, 7 */
        train->open = false;
}

/* The slot of the packet's flow, or the free one where it would stand. */
static uint16_t *find_slot(struct merge *merge, const struct packet *packets,
                           const struct parsed *p, uint32_t mask)
{
    uint32_t i = p->hash & mask;

    for (; merge->slot[i] != 0; i = (i + 1) & mask) {
        const struct merge_train *train = &merge->train[merge->slot[i] - 1];
        if (train->hash == p->hash && same_flow(packets[train->first].data, p->ip))
            break;
    }
    return &merge->slot[i];
}

/* Appends the packet to the flow's open train if it may. On return without success the train is
 * closed, and `*wrong` tells that the packet's own checksum is the reason. */
static bool join_train(struct merge *merge, const struct packet *packets, uint32_t f,
                       uint32_t index, const struct parsed *p, bool *wrong)
{
    struct merge_train *train = &merge->train[f];
    const struct packet *first = &packets[train->first];

    if (!train->open)
        return false;
    train->open = false;
    if (merge->barrier[p->barrier] > train->last ||
        !continues(train, &merge->frame[f], first->data, p))
        return false;
    if (!train->verified && !checksums_right(first->data, first->length, train->ip_header_length))
        return false;
    train->verified = true;
    if (!checksums_right(p->ip, p->length, p->ip_header_length)) {
        *wrong = true;
        return false;
    }
    train->open = true;
    append(merge, f, index, p);
    return true;
}

static void take_packet(struct merge *merge, const struct packet *packets, uint32_t index,
                        uint32_t mask)
{
    struct parsed p;
    bool wrong = false;
    enum packet_kind kind = parse(&p, &packets[index], merge);

    if (kind == KIND_SINGLE || kind == KIND_UNKNOWN) {
        if (kind == KIND_UNKNOWN)
            merge->barrier[p.barrier] = (uint16_t)(index + 1);
        begin_frame(merge, index, &p, false);
        return;
    }

    uint16_t *slot = find_slot(merge, packets, &p, mask);
    if (kind == KIND_FLOW) {
        if (*slot != 0)
            merge->train[*slot - 1].open = false;
        begin_frame(merge, index, &p, false);
        return;
    }
    if (*slot != 0 && join_train(merge, packets, *slot - 1u, index, &p, &wrong))
        return;
    *slot = (uint16_t)(begin_frame(merge, index, &p, !wrong && !has_push(&p)) + 1);
}

/* ---- laying out ---------------------------------------------------------------------------- */

/* Turns the first packet's header into that of the whole train. */
static void rewrite_header(struct merge *merge, const struct packet *packets, uint32_t f)
{
    const struct merge_train *train = &merge->train[f];
    uint8_t *ip = packets[train->first].data;
    uint8_t *transport = ip + train->ip_header_length;
    const uint8_t *last = packets[train->last].data + train->ip_header_length;
    uint32_t transport_length =
        train->header_length - train->ip_header_length + train->payload_length;
    uint8_t version = ip[0] >> 4;
    bool tcp = (version == 4 ? ip[IPV4_PROTOCOL] : ip[IPV6_NEXT_HEADER]) == IPPROTO_TCP;

    memcpy(merge->saved_header[f], ip, train->header_length);
    merge->saved_length[f] = train->header_length;

    if (version == 4) {
        store_be16(ip + IPV4_TOTAL_LENGTH, (uint16_t)(IPV4_HEADER_LENGTH + transport_length));
        ipv4_set_checksum(ip, IPV4_HEADER_LENGTH);
    } else {
        store_be16(ip + IPV6_PAYLOAD_LENGTH, (uint16_t)transport_length);
    }
    if (tcp)
        transport[TCP_FLAGS] |= last[TCP_FLAGS] & TCP_PSH;
    else
        store_be16(transport + UDP_LENGTH, (uint16_t)transport_length);

    uint16_t offset = tcp ? TCP_CHECKSUM : UDP_CHECKSUM;
    uint64_t partial = pseudo_header_sum(ip, version, tcp ? IPPROTO_TCP : IPPROTO_UDP) +
                       pseudo_header_length(transport_length);
    store_checksum(transport + offset, checksum_fold(partial));
    merge->frame[f].header = (struct virtio_net_hdr){
        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, /* pitfall 16 */
        .gso_type = !tcp           ? VIRTIO_NET_HDR_GSO_UDP_L4
                    : version == 4 ? VIRTIO_NET_HDR_GSO_TCPV4
                                   : VIRTIO_NET_HDR_GSO_TCPV6,
        .hdr_len = train->header_length,
        .gso_size = train->segment_size,
        .csum_start = train->ip_header_length,
        .csum_offset = offset,
    };
}

static void add_iov(struct merge *merge, void *base, size_t length)
{
    merge->iov[merge->iov_count++] = (struct iovec){.iov_base = base, .iov_len = length};
}

static void lay_out(struct merge *merge, const struct packet *packets)
{
    uint16_t position = 0;

    merge->iov_count = 0;
    for (uint32_t f = 0; f < merge->frame_count; f++) {
        struct merged_frame *frame = &merge->frame[f];
        const struct merge_train *train = &merge->train[f];
        uint16_t index = train->first;

        frame->header = (struct virtio_net_hdr){0};
        if (frame->packets > 1)
            rewrite_header(merge, packets, f);
        frame->first_packet = position;
        frame->first_iov = merge->iov_count;
        frame->iov_count = (uint16_t)(frame->packets + 1);
        add_iov(merge, &frame->header, sizeof(frame->header));
        add_iov(merge, packets[index].data, packets[index].length);
        merge->order[position++] = index;
        for (uint16_t n = 1; n < frame->packets; n++) {
            index = merge->next[index];
            add_iov(merge, packets[index].data + train->header_length,
                    packets[index].length - train->header_length);
            merge->order[position++] = index;
        }
    }
}

/* Slots are cleared on each call, so no more of them than the batch needs. */
static uint32_t slots_for(size_t count)
{
    uint32_t slots = 16;
    while (slots < 2 * count)
        slots *= 2;
    return slots;
}

void merge_plan(struct merge *merge, struct packet *packets, size_t count)
{
    assert(count <= MERGE_MAX_PACKETS);
    uint32_t slots = slots_for(count);

    memset(merge->slot, 0, slots * sizeof(merge->slot[0]));
    memset(merge->barrier, 0, sizeof(merge->barrier));
    merge->frame_count = 0;
    for (uint32_t i = 0; i < count; i++)
        take_packet(merge, packets, i, slots - 1);
    lay_out(merge, packets);
}

void merge_restore(struct merge *merge, struct packet *packets, const struct merged_frame *frame)
{
    size_t f = (size_t)(frame - merge->frame);

    if (frame->packets > 1)
        memcpy(packets[merge->order[frame->first_packet]].data, merge->saved_header[f],
               merge->saved_length[f]);
}
