// SPDX-License-Identifier: Apache-2.0
/*
 * Batches of packets, from a little language of the input: each packet continues one of eight
 * flows, is changed in up to three bytes, and has its checksums repaired or not; some are raw
 * bytes. What is required of the plan stands in slow_check_merge(): frames cut again are their
 * packets, flows keep their order, wrong checksums stay alone and wrong, restoring gives back every
 * byte.
 *
 *   tools/fuzz merge [SECONDS]
 */
#include "../CTunnelTests/packets.h"
#include "variants.h"

#define MOST_PACKETS 96

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *data;
    size_t size;
};

static uint8_t take(struct input *input)
{
    if (input->size == 0)
        return 0;
    input->size--;
    return *input->data++;
}

/* A heap block of just the packet's size, so that the sanitizer sees any step past it. */
static struct packet own(const uint8_t *bytes, uint32_t length)
{
    struct packet packet = {malloc(length + !length), length};
    REQUIRE(packet.data != NULL);
    memcpy(packet.data, bytes, length);
    return packet;
}

static struct packet raw_packet(struct input *input)
{
    uint8_t bytes[64];
    uint32_t length = take(input) % sizeof(bytes);
    for (uint32_t i = 0; i < length; i++)
        bytes[i] = take(input);
    return own(bytes, length);
}

/* Whether the packet's headers are inside it, as repairing its checksums needs. */
static bool repairable(const uint8_t *p, uint32_t length)
{
    if (p[0] >> 4 == 4 && (p[0] & 15) < 5)
        return false;
    return (p[0] >> 4 == 4 || p[0] >> 4 == 6) && packet_ip_length(p) + 18 <= length;
}

static struct packet flow_packet(struct input *input, struct packet_spec *flow, uint8_t what)
{
    static uint8_t bytes[2048];

    if (what & 0x08)
        flow->payload_length = take(input);
    if (what & 0x10)
        flow->flags = take(input);
    uint32_t length = packet_build(flow, bytes);
    flow->sequence += flow->payload_length;
    flow->payload_seed += flow->payload_length;
    flow->id++;
    for (uint32_t changes = what >> 6; changes > 0; changes--) {
        uint32_t at = take(input);
        bytes[at % length] ^= take(input);
    }
    if ((what & 0x20) && repairable(bytes, length))
        packet_finish(bytes, length);
    return own(bytes, length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct merge merge;
    static struct packet packets[MOST_PACKETS];
    struct packet_spec flow[8] = {packet_tcp(4), packet_tcp(6), packet_udp(4), packet_udp(6),
                                  packet_tcp(4), packet_tcp(6), packet_udp(4), packet_udp(6)};
    struct input input = {data, size};
    uint32_t count = 0;

    for (int i = 4; i < 8; i++) {
        flow[i].source_port++;
        flow[i].fragment = 0;
    }
    uint8_t switches = take(&input);
    merge.tcp = !(switches & 1);
    merge.udp = !(switches & 2);
    while (input.size > 0 && count < MOST_PACKETS) {
        uint8_t what = take(&input);
        packets[count++] =
            what == 0xff ? raw_packet(&input) : flow_packet(&input, &flow[what & 7], what);
    }
    slow_check_merge(&merge, packets, count);
    for (uint32_t i = 0; i < count; i++)
        free(packets[i].data);
    count_input("packets", count);
    return 0;
}
