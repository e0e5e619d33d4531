/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may come out of the TUN device: any bytes behind any virtio-net header, with a peer for
 * every destination. The input is a sequence of records:
 *
 *     byte 0      bit 0: no session yet (frames are staged first); bits 1–4: repeat count;
 *                 bits 5–7: how many damaged copies follow, in units of 64
 *     byte 1, 2   length of the packet, little endian
 *     10 bytes    struct virtio_net_hdr
 *     …           the packet
 *
 * Whatever is sent must fit the wire, and the engine must carry a good packet afterwards.
 */
#include "../CTunnelTests/simulation.h"
#include "variants.h"

#define COPIES_UNIT   64
#define MOST_FRAMES   8192 /* per input, so that one takes less than a second */
#define MOST_BYTES    (8u << 20)
#define RECORD_HEADER (3 + sizeof(struct virtio_net_hdr))

static void with_vnet_header(struct tunnel_options *options)
{
    options->no_vnet_hdr = false;
}

/* Everything goes to node 1. */
static void allow_all(void)
{
    struct tunnel_prefix all[2] = {{.family = 4}, {.family = 6}};
    struct tunnel_peer_change change = {.prefixes = all, .prefix_count = 2};
    memcpy(change.public_key, sim.node[1].public_key, KEY_LENGTH);
    assert(!tunnel_set_peer(sim.node[0].tunnel, &change));
    memcpy(change.public_key, sim.node[0].public_key, KEY_LENGTH);
    assert(!tunnel_set_peer(sim.node[1].tunnel, &change));
}

static bool carries(void)
{
    struct virtio_net_hdr none = {0};
    uint8_t packet[64];
    sim_packet(packet, 0, 1, sizeof packet, 0xabcdef);
    sim_inject_frame(0, &none, packet, sizeof packet);
    sim_settle();
    struct sim_datagram *d, *last = NULL;
    while ((d = sim_pop(&sim.node[1].delivered))) {
        free(last);
        last = d;
    }
    bool same = last && last->length == sizeof none + sizeof packet &&
                !memcmp(last->data + sizeof none, packet, sizeof packet);
    free(last);
    return same;
}

static void check_trains(void)
{
    for (size_t i = 0; i < sim.train_count; i++) {
        const struct sim_train *t = &sim.train[i];
        if (t->length > MAX_DATAGRAM || !t->segment ||
            (t->length + t->segment - 1) / t->segment > MAX_TRAIN_SEGMENTS)
            abort();
    }
    sim.train_count = 0;
}

/* Damaged copies of header and packet, of which the device gives some together. */
static size_t copies(const uint8_t *record, size_t length, size_t most)
{
    static uint8_t room[UINT16_MAX + VARIANT_GROWTH];
    uint64_t state = variant_seed(record, RECORD_HEADER + length);
    unsigned count = (record[0] >> 5) * COPIES_UNIT;
    if (count > most)
        count = (unsigned)most;
    if (length && count > MOST_BYTES / length)
        count = MOST_BYTES / (unsigned)length;
    for (unsigned i = 0; i < count; i++) {
        struct virtio_net_hdr header;
        uint64_t r = variant_random(&state);
        memcpy(&header, record + 3, sizeof header);
        memcpy(room, record + RECORD_HEADER, length);
        if (r & 1)
            variant_edit(&state, (uint8_t *)&header, sizeof header);
        sim_inject_frame(0, &header, room, variant_make(&state, room, length));
        if ((r >> 8 & 31) == 0) {
            sim_settle();
            check_trains();
        }
    }
    return count;
}

/* Returns the bytes used; `read` grows by the frames that the device gave. */
static size_t record(const uint8_t *data, size_t size, size_t *read)
{
    struct virtio_net_hdr header;
    size_t length = (size_t)data[1] | (size_t)data[2] << 8;
    if (length > size - RECORD_HEADER)
        length = size - RECORD_HEADER;
    memcpy(&header, data + 3, sizeof header);
    unsigned repeats = 1 + (data[0] >> 1 & 15);
    for (unsigned i = 0; i < repeats; i++)
        sim_inject_frame(0, &header, data + RECORD_HEADER, length);
    *read += repeats;
    *read += copies(data, length, *read < MOST_FRAMES ? MOST_FRAMES - *read : 0);
    return RECORD_HEADER + length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t read = 0;
    if (!sim.count) { /* one pair of engines lives through all inputs */
        sim_start(2, with_vnet_header);
        sim_add_peer(0, 1, true, 0);
        sim_add_peer(1, 0, true, 0);
        allow_all();
    }
    if (size && data[0] & 1)
        sim_advance(SECONDS(600)); /* no session is left */
    else if (!carries())
        abort();
    while (size >= RECORD_HEADER && read < MOST_FRAMES) {
        size_t used = record(data, size, &read);
        data += used;
        size -= used;
        if (used & 1) { /* some records meet in one batch */
            sim_settle();
            check_trains();
        }
    }
    sim_settle();
    check_trains();
    if (!carries() || atomic_load(&sim.node[0].tunnel->staged_bytes))
        abort();
    sim_discard(&sim.node[0].delivered);
    count_input("frames", read);
    return 0;
}
