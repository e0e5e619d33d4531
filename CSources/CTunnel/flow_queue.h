/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames that were read from a TUN queue and wait to be sent, by flow: FQ-CoDel (RFC 8290). Flows
 * take turns by bytes, one that sends little overtakes those that send much, and one whose frames
 * stand is told to slow down. Frames of one flow keep their order. One thread's own; no lock.
 */
#ifndef CTUNNEL_FLOW_QUEUE_H
#define CTUNNEL_FLOW_QUEUE_H

#include "offload.h"

/* 256 KB of super-packets: what stays in the second-level cache. The device keeps the rest. */
#define FLOW_QUEUE_FRAMES 4

struct queued_frame {
    struct queued_frame *next;
    uint64_t read_ns;
    struct virtio_net_hdr header;
    uint32_t length; /* of the packet */
    bool signal;     /* set by flow_queue_take(): its sender is to slow down */
    uint8_t *data;   /* TUN_FRAME_CAPACITY bytes */
};

struct flow_queue;

/* NULL: out of memory. Memory is used as frames come, not before. */
struct flow_queue *flow_queue_create(void);
void flow_queue_destroy(struct flow_queue *queue);

/* A frame to read into, the caller's until it is put or given back. NULL: all are in use. */
struct queued_frame *flow_queue_room(struct flow_queue *queue);
void flow_queue_give_back(struct flow_queue *queue, struct queued_frame *frame);

/* `header`, `length` and `data` are filled in; any bytes will do. */
void flow_queue_put(struct flow_queue *queue, struct queued_frame *frame, uint64_t now_ns);
/* The next one to send, the caller's to give back. NULL: empty; it is asked for it only where the
 * device is too. */
struct queued_frame *flow_queue_take(struct flow_queue *queue, uint64_t now_ns);
bool flow_queue_is_empty(const struct flow_queue *queue);

#endif
