/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FQ-CoDel: RFC 8290 §4, with CoDel of RFC 8289 per flow. Differences: there is no limit besides
 * the number of frames (the device keeps the rest), and a signal is carried out by who takes the
 * frame, since a super-packet of many segments is to lose one, not all.
 */
#include "flow_queue.h"
#include "codel.h"
#include "lines.h"
#include "offload_wire.h"
#include "tun.h"

#include <netinet/in.h>
#include <sodium.h>
#include <sys/mman.h>

#define FLOWS   256  /* a power of two; flows that meet in one share a turn */
#define QUANTUM 1514 /* bytes a flow may send in a turn (§5.2.3) */

enum flow_list { IN_NONE, IN_NEW, IN_OLD };

struct flow {
    struct flow *next;
    struct queued_frame *head, **tail;
    uint64_t bytes;
    int64_t deficit;
    enum flow_list list;
    uint32_t emptied; /* the queue's, when `codel` was last asked */
    struct codel codel;
};

struct flow_list_ends {
    struct flow *head, **tail;
};

struct flow_queue {
    struct flow_list_ends fresh, old; /* of flows: those that just became active go first (§4.1) */
    uint32_t count;
    uint32_t emptied;            /* how often */
    struct queued_frame *unused; /* the one used last on top: its memory is in the cache */
    uint8_t *memory;
    uint8_t key[crypto_shorthash_KEYBYTES];
    struct queued_frame frame[FLOW_QUEUE_FRAMES];
    struct flow flow[FLOWS];
};

#define MEMORY_BYTES ((size_t)FLOW_QUEUE_FRAMES * TUN_FRAME_CAPACITY)

struct flow_queue *flow_queue_create(void)
{
    struct flow_queue *q = lines_alloc(sizeof *q);
    if (!q)
        return NULL;
    q->memory =
        mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (q->memory == MAP_FAILED) {
        free(q);
        return NULL;
    }
    madvise(q->memory, MEMORY_BYTES, MADV_NOHUGEPAGE);
    randombytes_buf(q->key, sizeof q->key);
    q->fresh.tail = &q->fresh.head;
    q->old.tail = &q->old.head;
    for (unsigned i = FLOW_QUEUE_FRAMES; i--;) {
        q->frame[i].data = q->memory + (size_t)i * TUN_FRAME_CAPACITY;
        flow_queue_give_back(q, &q->frame[i]);
    }
    return q;
}

void flow_queue_destroy(struct flow_queue *q)
{
    if (!q)
        return;
    munmap(q->memory, MEMORY_BYTES);
    free(q);
}

struct queued_frame *flow_queue_room(struct flow_queue *q)
{
    struct queued_frame *frame = q->unused;
    if (frame)
        q->unused = frame->next;
    return frame;
}

void flow_queue_give_back(struct flow_queue *q, struct queued_frame *frame)
{
    frame->next = q->unused;
    q->unused = frame;
}

bool flow_queue_is_empty(const struct flow_queue *q)
{
    return !q->count;
}

/* ---- which flow? --------------------------------------------------------------------------- */

struct flow_tuple {
    uint8_t addresses[32];
    uint8_t ports[4];
    uint8_t version, protocol;
};

/* Addresses, protocol and, where they are found, ports. A fragment has none but the first: all go
 * without. What is no IP packet is one flow. */
static void read_tuple(const struct queued_frame *frame, struct flow_tuple *out)
{
    const uint8_t *ip = frame->data;
    uint32_t transport = 0;
    *out = (struct flow_tuple){0};
    if (frame->length >= IPV4_HEADER_LENGTH && ip[0] >> 4 == 4) {
        out->protocol = ip[IPV4_PROTOCOL];
        memcpy(out->addresses, ip + IPV4_ADDRESSES, 8);
        if (!(load_be16(ip + IPV4_FRAGMENT) & IPV4_FRAGMENT_OFFSET_MASK))
            transport = (uint32_t)(ip[0] & 15) * 4;
        out->version = 4;
    } else if (frame->length >= IPV6_HEADER_LENGTH && ip[0] >> 4 == 6) {
        out->protocol = ip[IPV6_NEXT_HEADER];
        memcpy(out->addresses, ip + IPV6_ADDRESSES, 32);
        transport = IPV6_HEADER_LENGTH;
        out->version = 6;
    }
    if (transport && (out->protocol == IPPROTO_TCP || out->protocol == IPPROTO_UDP) &&
        transport + sizeof out->ports <= frame->length)
        memcpy(out->ports, ip + transport, sizeof out->ports);
}

/* Keyed: nobody outside can aim at another's flow. */
static struct flow *find_flow(struct flow_queue *q, const struct queued_frame *frame)
{
    struct flow_tuple tuple;
    uint64_t hash;
    static_assert(crypto_shorthash_BYTES == sizeof hash, "one number per hash");
    read_tuple(frame, &tuple);
    crypto_shorthash((uint8_t *)&hash, (const uint8_t *)&tuple, sizeof tuple, q->key);
    return &q->flow[hash & (FLOWS - 1)];
}

/* ---- turns (RFC 8290 §4.1.2, §4.2) --------------------------------------------------------- */

static void append_flow(struct flow_list_ends *list, struct flow *flow)
{
    flow->next = NULL;
    *list->tail = flow;
    list->tail = &flow->next;
}

static void remove_first(struct flow_list_ends *list)
{
    list->head = list->head->next;
    if (!list->head)
        list->tail = &list->head;
}

void flow_queue_put(struct flow_queue *q, struct queued_frame *frame, uint64_t now_ns)
{
    struct flow *flow = find_flow(q, frame);
    frame->next = NULL;
    frame->read_ns = now_ns;
    if (!flow->head)
        flow->tail = &flow->head;
    *flow->tail = frame;
    flow->tail = &frame->next;
    flow->bytes += frame->length;
    q->count++;
    if (flow->list == IN_NONE) {
        flow->deficit = QUANTUM;
        flow->list = IN_NEW;
        append_flow(&q->fresh, flow);
    }
}

/* How long the frame waited. Where all frames are in use the device holds more, unseen: then one
 * that carries many packets has waited long enough to count as above the target. */
static uint64_t wait_of(const struct flow_queue *q, const struct queued_frame *frame,
                        uint64_t now_ns)
{
    uint64_t wait = now_ns - frame->read_ns;
    bool full = !q->unused && frame->header.gso_type != VIRTIO_NET_HDR_GSO_NONE;
    return full && wait < CODEL_TARGET ? CODEL_TARGET : wait;
}

static struct queued_frame *take_from(struct flow_queue *q, struct flow *flow, uint64_t now_ns)
{
    struct queued_frame *frame = flow->head;
    uint64_t wait = wait_of(q, frame, now_ns);
    /* That a flow has no frame here for a moment says little: the device may hold more of it. */
    if (flow->emptied != q->emptied)
        codel_emptied(&flow->codel);
    flow->emptied = q->emptied;
    flow->head = frame->next;
    flow->bytes -= frame->length;
    flow->deficit -= frame->length;
    q->count--;
    frame->signal = codel_signal(&flow->codel, wait, q->unused && !flow->head, now_ns);
    return frame;
}

struct queued_frame *flow_queue_take(struct flow_queue *q, uint64_t now_ns)
{
    for (;;) {
        struct flow_list_ends *list = q->fresh.head ? &q->fresh : &q->old;
        struct flow *flow = list->head;
        if (!flow) {
            q->emptied++;
            return NULL;
        }
        if (flow->deficit > 0 && flow->head)
            return take_from(q, flow, now_ns);
        remove_first(list);
        if (flow->deficit <= 0 || (list == &q->fresh && q->old.head)) {
            /* Its turn is over; or it is new and empty, and a pass of the others comes before it
             * may be new again. */
            flow->deficit += flow->deficit <= 0 ? QUANTUM : 0;
            flow->list = IN_OLD;
            append_flow(&q->old, flow);
        } else {
            flow->list = IN_NONE;
        }
    }
}
