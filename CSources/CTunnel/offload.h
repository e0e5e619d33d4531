/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inner segmentation offload: super-packets from the TUN device split into packets, decrypted
 * packets merged into super-packets, and the Internet checksum. Pure functions over bytes: no
 * descriptor, no state between calls, no allocation. Pitfalls 1–19 of docs/datapath.md are decided
 * here.
 */
#ifndef CTUNNEL_OFFLOAD_H
#define CTUNNEL_OFFLOAD_H

#include "messages.h"
#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5 /* Linux 6.2 */
#endif

/* ---- checksum (RFC 1071) ------------------------------------------------------------------- */

/* Ones' complement sum of `length` bytes added to `sum`, not folded, not inverted. Vectorised. Of
 * several pieces summed in turn only the last may have an odd length. */
uint64_t checksum_add(uint64_t sum, const void *data, size_t length);
/* The same while copying: one pass over the data. */
uint64_t checksum_copy(uint64_t sum, void *destination, const void *source, size_t length);
/* Folded to 16 bits, in memory order, not inverted. */
uint16_t checksum_fold(uint64_t sum);

/* Every variant built in, best first; the last is portable. For tests and benchmarks. */
struct checksum_variant {
    const char *name;
    bool (*supported)(void);
    uint64_t (*add)(uint64_t sum, const void *data, size_t length);
    uint64_t (*copy)(uint64_t sum, void *destination, const void *source, size_t length);
};
extern const struct checksum_variant checksum_variants[];
extern const size_t checksum_variant_count;

/* ---- splitting: outbound ------------------------------------------------------------------- */

enum split_result {
    SPLIT_OK,
    SPLIT_MALFORMED,         /* not IPv4/IPv6 or lengths disagree */
    SPLIT_GSO_INVALID,       /* unknown type, headers that do not parse, gso_size 0 */
    SPLIT_TOO_MANY_SEGMENTS, /* pitfall 14 */
};

#define MAX_SPLIT_SEGMENTS 2048

/* How to cut one frame read from the TUN device. Borrowed pointer into the frame. */
struct split {
    const uint8_t *packet;
    uint32_t length;        /* bytes of packet, IP header included */
    uint32_t count;         /* segments, ≥ 1 */
    uint32_t header_length; /* repeated in front of each segment; 0 when count is 1 and unchanged */
    uint32_t segment_size;  /* payload of each but the last */
    uint8_t transport;      /* IPPROTO_TCP, IPPROTO_UDP, 0: copy as it is */
    uint8_t ip_version;
    bool ecn_tso;        /* VIRTIO_NET_HDR_GSO_ECN: CWR on the first only */
    bool needs_checksum; /* the transport checksum is to be computed, at the offsets below */
    uint16_t checksum_start, checksum_offset;
    /* for split.c's own use */
    uint16_t ip_header_length, transport_header_length;
    uint64_t partial_sum;
};

/* `header` as read from the device; NULL for devices without one. hdr_len is ignored (pitfall 12).
 * On SPLIT_OK every segment is at most 65,535 bytes and `packet[0..length)` is never overrun. */
enum split_result split_plan(const struct virtio_net_hdr *header, const uint8_t *packet,
                             size_t length, struct split *out);

/* Length of segment `i` without padding. */
static inline uint32_t split_segment_length(const struct split *s, uint32_t i)
{
    if (s->count == 1)
        return s->length;
    uint32_t payload = s->length - s->header_length;
    uint32_t before = i * s->segment_size;
    uint32_t rest = payload - before;
    return s->header_length + (rest < s->segment_size ? rest : s->segment_size);
}

/* Writes segment `i`, finished, to `destination` (split_segment_length bytes): headers advanced,
 * checksums computed during the one copy. */
void split_segment(const struct split *s, uint32_t i, uint8_t *destination);

/* ---- merging: inbound ---------------------------------------------------------------------- */

/* A decrypted inner packet, trimmed to its IP length, in a buffer the merge may write to: headers
 * are rewritten in place. */
struct packet {
    uint8_t *data;
    uint32_t length;
};

/* Frames in the order in which they must be written to the device. */
struct merged_frame {
    struct virtio_net_hdr header;
    uint32_t first_iov; /* into merge.iov; the first iovec is the header struct itself */
    uint16_t iov_count;
    uint16_t packets;      /* how many packets it carries */
    uint16_t first_packet; /* index of the first in `order` (for the rewrite after EINVAL) */
};

#define MERGE_MAX_PACKETS     512
#define MERGE_MAX_UDP_PACKETS 64  /* UDP_MAX_SEGMENTS before Linux 6.9 (pitfall 8) */
#define MERGE_MAX_HEADER      100 /* IPv6, and TCP with 40 bytes of options */
#define MERGE_SLOTS           (2 * MERGE_MAX_PACKETS)
#define MERGE_BARRIERS        64

/* A frame while it grows; parallel to merge.frame. For merge.c's own use. */
struct merge_train {
    uint32_t hash;           /* of the flow */
    uint16_t first, last;    /* packets */
    uint32_t payload_length; /* of all packets together */
    uint16_t segment_size;
    uint8_t ip_header_length, header_length;
    bool open;     /* takes more packets */
    bool verified; /* the first packet's checksums were found right */
};

struct merge {
    bool tcp, udp; /* which kinds may be merged */
    uint32_t frame_count, iov_count;
    struct merged_frame frame[MERGE_MAX_PACKETS];
    struct iovec iov[2 * MERGE_MAX_PACKETS];
    /* packets in frame order; originals of the header bytes that a merge rewrote, so that
     * merge_restore() can undo it */
    uint16_t order[MERGE_MAX_PACKETS];
    uint8_t saved_header[MERGE_MAX_PACKETS][MERGE_MAX_HEADER]; /* by frame */
    uint8_t saved_length[MERGE_MAX_PACKETS];
    /* scratch of merge_plan() */
    struct merge_train train[MERGE_MAX_PACKETS];
    uint16_t next[MERGE_MAX_PACKETS]; /* packet after this one in its train */
    uint16_t slot[MERGE_SLOTS];       /* flow → its newest train plus one; 0: free */
    uint16_t barrier[MERGE_BARRIERS]; /* addresses → newest packet of an unknown flow, plus one */
};

/*
 * Plans the frames for up to MERGE_MAX_PACKETS packets. Packets of one flow keep their order
 * (pitfall 19); flows may be regrouped among each other. A merged frame carries a partial checksum
 * (VIRTIO_NET_HDR_F_NEEDS_CSUM) only where every packet's checksum was verified (pitfall 10);
 * unmerged packets are delivered byte for byte.
 */
void merge_plan(struct merge *merge, struct packet *packets, size_t count);
/* Undoes the header rewrite of one frame, so that its packets can be written one by one
 * (pitfall 15). */
void merge_restore(struct merge *merge, struct packet *packets, const struct merged_frame *frame);

#endif
