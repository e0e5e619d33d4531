// SPDX-License-Identifier: Apache-2.0
/*
 * Reads and writes on TUN queues: one frame per call on the way out, a whole batch, merged, on the
 * way in. Creation stands in tun_open.c, the view of the link in link.c.
 *
 * Errors of the device as drivers/net/tun.c of Linux returns them: EIO while the interface is down,
 * EBADFD once the descriptor has no device any more (pitfall 20).
 */
#include "tun.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

/* A write that would block waits for room this often, one millisecond each, then counts as failed:
 * the receiving thread must not hang on a device that does not drain. */
#define WRITE_RETRIES 5

static ssize_t system_readv(void *context, int fd, const struct iovec *iov, int count)
{
    (void)context;
    return readv(fd, iov, count);
}

static ssize_t system_writev(void *context, int fd, const struct iovec *iov, int count)
{
    (void)context;
    return writev(fd, iov, count);
}

const struct tun_io tun_io_system = {.readv = system_readv, .writev = system_writev};

/* ---- reading ------------------------------------------------------------------------------- */

static enum tun_read_result read_failed(int error)
{
    switch (error) {
    case EIO:
        return TUN_READ_DOWN;
    case EBADFD: /* detached */
    case EBADF:
    case EFAULT: /* shut down between attachment and read */
        return TUN_READ_ENDED;
    default:
        return TUN_READ_EMPTY;
    }
}

enum tun_read_result tun_read(struct tun_queue *queue, struct virtio_net_hdr *header,
                              uint8_t *buffer, size_t *length)
{
    struct iovec iov[2] = {
        {.iov_base = header, .iov_len = sizeof(*header)},
        {.iov_base = buffer, .iov_len = TUN_FRAME_CAPACITY},
    };
    bool vnet_hdr = queue->tun->vnet_hdr;
    ssize_t n;

    memset(header, 0, sizeof(*header));
    do {
        n = queue->io->readv(queue->io_context, queue->fd, vnet_hdr ? iov : iov + 1,
                             vnet_hdr ? 2 : 1);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return read_failed(errno);

    /* The driver returns a truncated frame's full length; cut, the split calls it malformed. */
    size_t overhead = vnet_hdr ? sizeof(*header) : 0;
    size_t packet = (size_t)n > overhead ? (size_t)n - overhead : 0;
    *length = packet < TUN_FRAME_CAPACITY ? packet : TUN_FRAME_CAPACITY;
    return TUN_READ_FRAME;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* What one call of tun_write() carries around. */
struct write_batch {
    struct tun_queue *queue;
    struct packet *packets;
    struct counters *counters;
    uint64_t *system_calls;
};

/* 0 or the errno of the write. `iov[0]` is the vnet header, left out where the device has none. */
static int write_frame(struct write_batch *batch, const struct iovec *iov, int count)
{
    struct tun_queue *queue = batch->queue;
    bool vnet_hdr = queue->tun->vnet_hdr;

    for (int attempt = 0;; attempt++) {
        ssize_t n = queue->io->writev(queue->io_context, queue->fd, vnet_hdr ? iov : iov + 1,
                                      vnet_hdr ? count : count - 1);
        ++*batch->system_calls;
        if (n >= 0)
            return 0;
        if (errno == EINTR && attempt < WRITE_RETRIES)
            continue;
        if (errno != EAGAIN || attempt == WRITE_RETRIES)
            return errno;
        struct pollfd room = {.fd = queue->fd, .events = POLLOUT};
        poll(&room, 1, 1);
    }
}

static bool device_ended(int error)
{
    return error == EBADFD || error == EBADF;
}

static void count_refused(struct write_batch *batch, int error, uint64_t packets)
{
    count_drop(batch->counters, error == EIO ? DROP_LINK_DOWN : DROP_TUN_WRITE_FAILED, packets);
}

/* Writes one packet as it is. False: the device is gone. */
static bool write_single(struct write_batch *batch, const struct packet *packet)
{
    struct virtio_net_hdr header = {0};
    struct iovec iov[2] = {
        {.iov_base = &header, .iov_len = sizeof(header)},
        {.iov_base = packet->data, .iov_len = packet->length},
    };
    int error = write_frame(batch, iov, 2);

    if (error != 0)
        count_refused(batch, error, 1);
    return !device_ended(error);
}

/* The flag that allows the frame's kind of merging. */
static _Atomic bool *merge_switch(struct tun *tun, const struct merged_frame *frame)
{
    return frame->header.gso_type == VIRTIO_NET_HDR_GSO_UDP_L4 ? &tun->merge_udp : &tun->merge_tcp;
}

/* Another queue may have switched it off first; each refusal is one count all the same. */
static void disable_merging(struct write_batch *batch, const struct merged_frame *frame)
{
    bool udp = frame->header.gso_type == VIRTIO_NET_HDR_GSO_UDP_L4;

    atomic_store_explicit(merge_switch(batch->queue->tun, frame), false, memory_order_relaxed);
    count_fallback(batch->counters,
                   udp ? FALLBACK_TUN_UDP_MERGE_REFUSED : FALLBACK_TUN_TCP_MERGE_REFUSED);
}

/* The packets of a merged frame one by one, as they came (pitfall 15). */
static bool write_unmerged(struct write_batch *batch, const struct merged_frame *frame)
{
    struct merge *merge = &batch->queue->merge;

    merge_restore(merge, batch->packets, frame);
    for (uint32_t i = 0; i < frame->packets; i++) {
        const struct packet *packet = &batch->packets[merge->order[frame->first_packet + i]];
        if (!write_single(batch, packet))
            return false;
    }
    return true;
}

static bool write_merged(struct write_batch *batch, const struct merged_frame *frame)
{
    struct merge *merge = &batch->queue->merge;
    _Atomic bool *allowed = merge_switch(batch->queue->tun, frame);

    if (frame->packets > 1 && !atomic_load_explicit(allowed, memory_order_relaxed))
        return write_unmerged(batch, frame); /* refused earlier in this batch */

    int error = write_frame(batch, &merge->iov[frame->first_iov], frame->iov_count);
    if (error == 0)
        return true;
    if (frame->packets > 1 && error == EINVAL) {
        disable_merging(batch, frame);
        return write_unmerged(batch, frame);
    }
    if (frame->packets > 1 && error == ENOMEM) /* small frames may still find memory */
        return write_unmerged(batch, frame);
    count_refused(batch, error, frame->packets);
    return !device_ended(error);
}

bool tun_write(struct tun_queue *queue, struct packet *packets, size_t count,
               struct counters *counters, uint64_t *system_calls)
{
    struct write_batch batch = {queue, packets, counters, system_calls};
    struct merge *merge = &queue->merge;

    merge->tcp = atomic_load_explicit(&queue->tun->merge_tcp, memory_order_relaxed);
    merge->udp = atomic_load_explicit(&queue->tun->merge_udp, memory_order_relaxed);
    if (count == 1 || (!merge->tcp && !merge->udp)) {
        for (size_t i = 0; i < count; i++) {
            if (!write_single(&batch, &packets[i]))
                return false;
        }
        return true;
    }
    merge_plan(merge, packets, count);
    for (uint32_t f = 0; f < merge->frame_count; f++) {
        if (!write_merged(&batch, &merge->frame[f]))
            return false;
    }
    return true;
}
