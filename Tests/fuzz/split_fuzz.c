// SPDX-License-Identifier: Apache-2.0
/*
 * Any virtio-net header in front of any bytes. Input: 10 bytes of header, then the frame. Requires
 * of every accepted frame: segments of the announced lengths, IP lengths and checksums right by the
 * byte-by-byte model, sequence and ID advanced, payload complete and in order, no byte read past
 * the frame (a heap block of its size) or written past a segment (another).
 *
 *   tools/fuzz split [SECONDS]
 */
#include "../CTunnelTests/packets.h"
#include "variants.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A packet that was not to be cut: the same bytes, but for a checksum it asked for. */
static void check_whole(const struct split *s, const uint8_t *frame, const uint8_t *segment)
{
    if (!s->needs_checksum) {
        REQUIRE(memcmp(segment, frame, s->length) == 0);
        return;
    }
    uint32_t at = (uint32_t)s->checksum_start + s->checksum_offset;
    REQUIRE(at + 2 <= s->length);
    REQUIRE(memcmp(segment, frame, at) == 0);
    REQUIRE(memcmp(segment + at + 2, frame + at + 2, s->length - at - 2) == 0);
    uint32_t checksum =
        ~slow_sum(0, frame + s->checksum_start, s->length - s->checksum_start) & 0xffff;
    REQUIRE(get16(segment + at) == (checksum == 0 ? 0xffff : checksum));
}

static void check_ip(const struct split *s, uint32_t i, const uint8_t *frame, const uint8_t *p,
                     uint32_t length)
{
    if (s->ip_version == 4) {
        REQUIRE(get16(p + 2) == length);
        REQUIRE(get16(p + 4) == ((get16(frame + 4) + i) & 0xffff));
        REQUIRE(slow_sum(0, p, packet_ip_length(p)) == 0xffff);
        REQUIRE(memcmp(p + 12, frame + 12, packet_ip_length(p) - 12) == 0);
    } else {
        REQUIRE(get16(p + 4) + 40 == length);
        REQUIRE(memcmp(p + 6, frame + 6, s->ip_header_length - 6) == 0);
    }
}

/* Folded sum of pseudo-header and transport at `start`. */
static uint32_t transport_sum(const struct split *s, const uint8_t *p, uint32_t length)
{
    uint32_t sum = s->ip_version == 4 ? slow_sum(0, p + 12, 8) : slow_sum(0, p + 8, 32);
    uint8_t tail[4] = {0, s->transport};
    put16(tail + 2, length - s->ip_header_length);
    return slow_sum(slow_sum(sum, tail, 4), p + s->ip_header_length, length - s->ip_header_length);
}

static void check_segment(const struct split *s, uint32_t i, const uint8_t *frame, const uint8_t *p,
                          uint32_t length)
{
    const uint8_t *transport = p + s->ip_header_length, *first = frame + s->ip_header_length;
    uint32_t before = i * s->segment_size;

    check_ip(s, i, frame, p, length);
    REQUIRE(memcmp(p + s->header_length, frame + s->header_length + before,
                   length - s->header_length) == 0);
    if (s->transport == IPPROTO_UDP) {
        REQUIRE(get16(transport + 4) == length - s->ip_header_length);
        if (!s->needs_checksum) {
            REQUIRE(get16(transport + 6) == 0);
            return;
        }
        REQUIRE(get16(transport + 6) != 0);
    } else {
        uint8_t flags = first[13];
        if (i + 1 < s->count)
            flags &= (uint8_t) ~(FIN | PSH);
        if (i > 0 && s->ecn_tso)
            flags &= (uint8_t)~CWR;
        REQUIRE(transport[13] == flags);
        REQUIRE(get32(transport + 4) == get32(first + 4) + before);
    }
    REQUIRE(transport_sum(s, p, length) == 0xffff);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct virtio_net_hdr header;
    struct split split;

    if (size < sizeof(header) || size > 70000)
        return 0;
    memcpy(&header, data, sizeof(header));
    size -= sizeof(header);
    uint8_t *frame = malloc(size + !size);
    REQUIRE(frame != NULL);
    memcpy(frame, data + sizeof(header), size);

    if (split_plan(&header, frame, size, &split) == SPLIT_OK) {
        uint32_t total = 0;
        REQUIRE(split.count >= 1 && split.count <= MAX_SPLIT_SEGMENTS);
        for (uint32_t i = 0; i < split.count; i++) {
            uint32_t length = split_segment_length(&split, i);
            REQUIRE(length >= split.header_length && length <= size);
            uint8_t *segment = malloc(length);
            REQUIRE(segment != NULL);
            split_segment(&split, i, segment);
            if (split.transport == 0)
                check_whole(&split, frame, segment);
            else
                check_segment(&split, i, frame, segment, length);
            total += length - split.header_length;
            free(segment);
        }
        REQUIRE(total == size - split.header_length);
    }
    free(frame);
    count_input("frames", 1);
    return 0;
}
