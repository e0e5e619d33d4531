/* SPDX-License-Identifier: Apache-2.0 */
#include "codel.h"
#include "flow_queue.h"
#include "tun.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define NOW  (7 * NSEC_PER_SEC)
#define BULK 60000
#define PING 84

static struct flow_queue *queue;

static int set_up(void **state)
{
    (void)state;
    assert_true(sodium_init() >= 0);
    queue = flow_queue_create();
    return queue ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    flow_queue_destroy(queue);
    return 0;
}

/* A TCP packet of flow `flow` (its source port), number `number` of it. False: no room. */
static bool put_as(uint8_t gso_type, uint16_t flow, uint32_t length, uint32_t number, uint64_t now)
{
    struct queued_frame *frame = flow_queue_room(queue);
    if (!frame)
        return false;
    frame->header = (struct virtio_net_hdr){.gso_type = gso_type};
    memset(frame->data, 0, 44);
    frame->data[0] = 0x45;
    frame->data[9] = IPPROTO_TCP;
    memcpy(frame->data + 12, (uint8_t[]){10, 0, 0, 1, 10, 0, 0, 2}, 8);
    memcpy(frame->data + 20, &flow, sizeof flow);
    memcpy(frame->data + 40, &number, sizeof number);
    frame->length = length;
    flow_queue_put(queue, frame, now);
    return true;
}

static bool put(uint16_t flow, uint32_t length, uint32_t number, uint64_t now)
{
    return put_as(VIRTIO_NET_HDR_GSO_NONE, flow, length, number, now);
}

static bool put_super(uint16_t flow, uint32_t length, uint32_t number, uint64_t now)
{
    return put_as(VIRTIO_NET_HDR_GSO_TCPV4, flow, length, number, now);
}

/* The flow that is served next, -1: none; its packet's number and signal. */
static int take(uint64_t now, uint32_t *number, bool *signal)
{
    struct queued_frame *frame = flow_queue_take(queue, now);
    uint16_t flow;
    if (!frame)
        return -1;
    memcpy(&flow, frame->data + 20, sizeof flow);
    memcpy(number, frame->data + 40, sizeof *number);
    *signal = frame->signal;
    flow_queue_give_back(queue, frame);
    return flow;
}

static void one_flow_keeps_its_order(void **state)
{
    uint32_t number, next = 0;
    bool signal;
    (void)state;
    while (put(1, next % 2 ? BULK : PING, next, NOW))
        next++;
    assert_int_equal(next, FLOW_QUEUE_FRAMES);
    for (uint32_t i = 0; i < next; i++) {
        assert_int_equal(take(NOW, &number, &signal), 1);
        assert_int_equal(number, i);
        assert_false(signal);
    }
    assert_int_equal(take(NOW, &number, &signal), -1);
    assert_true(flow_queue_is_empty(queue));
}

static void a_sparse_flow_overtakes_a_bulky_one(void **state)
{
    uint32_t number, bulk = 0, served = 0;
    bool signal;
    (void)state;
    while (bulk < 3)
        put(1, BULK, bulk++, NOW);
    assert_int_equal(take(NOW, &number, &signal), 1);
    for (uint32_t ping = 0; ping < 10; ping++) {
        put(2, PING, ping, NOW);
        assert_int_equal(take(NOW, &number, &signal), 2);
        assert_int_equal(number, ping);
        put(1, BULK, bulk++, NOW);
        assert_int_equal(take(NOW, &number, &signal), 1);
        assert_int_equal(number, ++served);
    }
}

/* Both always have something to send, in frames of different sizes. */
static void flows_share_by_bytes(void **state)
{
    static const uint32_t length[] = {BULK, BULK / 5};
    uint32_t number, waiting[2] = {0}, bytes[2] = {0};
    bool signal;
    (void)state;
    for (uint32_t i = 0; i < 600; i++) {
        for (uint16_t flow = 0; flow < 2; flow++)
            while (waiting[flow] < 2)
                waiting[flow] += put(flow, length[flow], i, NOW);
        int flow = take(NOW, &number, &signal);
        waiting[flow]--;
        bytes[flow] += length[flow];
    }
    assert_in_range(bytes[0], bytes[1] - BULK, bytes[1] + BULK);
}

/* Random traffic against a count per flow: nothing is lost, doubled or turned round. */
static void every_frame_leaves_once_and_in_order(void **state)
{
    enum { COUNT = 40 };
    uint32_t number, sent[COUNT] = {0}, got[COUNT] = {0};
    bool signal;
    (void)state;
    for (int i = 0; i < 200000; i++) {
        uint16_t flow = (uint16_t)randombytes_uniform(COUNT);
        uint32_t length = randombytes_uniform(3) ? PING : BULK;
        if (randombytes_uniform(2)) {
            sent[flow] += put(flow, length, sent[flow], NOW + (uint64_t)i);
            continue;
        }
        int served = take(NOW + (uint64_t)i, &number, &signal);
        if (served >= 0)
            assert_int_equal(number, got[served]++);
    }
    for (int served; (served = take(NOW, &number, &signal)) >= 0;)
        assert_int_equal(number, got[served]++);
    assert_memory_equal(sent, got, sizeof sent);
    uint32_t room = 0;
    while (put(1, PING, room, NOW))
        room++;
    assert_int_equal(room, FLOW_QUEUE_FRAMES);
}

static void only_the_flow_that_stands_is_told(void **state)
{
    uint32_t number, bulk = 0, ping = 0, told = 0;
    bool signal;
    uint64_t now = NOW;
    (void)state;
    while (bulk < 3)
        put(1, BULK, bulk++, now);
    for (; now < NOW + 4 * CODEL_INTERVAL; now += NSEC_PER_MSEC) {
        assert_true(put(2, PING, ping++, now));
        for (int i = 0; i < 2; i++) {
            int flow = take(now, &number, &signal);
            assert_true(flow > 0);
            assert_true(flow == 1 || !signal);
            told += signal;
        }
        put(1, BULK, bulk++, now);
    }
    assert_in_range(told, 3, 15);
}

/* More waits in the device than can be seen: that is a queue too, however quickly these are sent.
 */
static void what_waits_unseen_counts(void **state)
{
    uint32_t number, next = 0, told = 0;
    bool signal;
    (void)state;
    for (uint64_t now = NOW; now < NOW + 4 * CODEL_INTERVAL; now += NSEC_PER_MSEC / 10) {
        while (put_super(1, BULK, next, now))
            next++;
        assert_int_equal(take(now, &number, &signal), 1);
        told += signal;
    }
    assert_in_range(told, 3, 15);
}

/* More flows than frames, each with more in the device than has room here: that some of them have
 * none here for a moment does not mean that they have none. */
static void many_flows_that_stand_are_told(void **state)
{
    enum { COUNT = 3 * FLOW_QUEUE_FRAMES };
    uint32_t number, next = 0, told[COUNT] = {0};
    bool signal;
    (void)state;
    for (uint64_t now = NOW; now < NOW + 100 * CODEL_INTERVAL; now += NSEC_PER_MSEC) {
        while (put_super((uint16_t)(next % COUNT), next % COUNT % 2 ? BULK : BULK / 20, next, now))
            next++;
        int flow = take(now, &number, &signal);
        assert_true(flow >= 0);
        told[flow] += signal;
    }
    for (uint32_t flow = 0; flow < COUNT; flow++)
        assert_in_range(told[flow], 3, 200);
}

/* As many as there are frames for, far apart: each time the queue is full, and then empty. */
static void bursts_that_fill_the_queue_are_not_told(void **state)
{
    uint32_t number;
    bool signal;
    (void)state;
    for (uint32_t burst = 0; burst < 20; burst++) {
        uint64_t now = NOW + burst * 5 * CODEL_INTERVAL;
        for (uint16_t flow = 0; flow < FLOW_QUEUE_FRAMES; flow++)
            assert_true(put_super(flow, BULK, burst, now));
        for (uint16_t i = 0; i < FLOW_QUEUE_FRAMES; i++) {
            assert_true(take(now, &number, &signal) >= 0);
            assert_false(signal);
        }
        assert_int_equal(take(now, &number, &signal), -1);
    }
}

static void fragments_of_a_datagram_stay_together(void **state)
{
    (void)state;
    for (uint16_t i = 0; i < FLOW_QUEUE_FRAMES; i++) {
        struct queued_frame *frame = flow_queue_room(queue);
        memset(frame->data, 0, 44);
        frame->data[0] = 0x45;
        frame->data[6] = i + 1 < FLOW_QUEUE_FRAMES ? 0x20 : 0; /* more fragments */
        frame->data[7] = (uint8_t)i;                           /* offset */
        frame->data[9] = IPPROTO_UDP;
        randombytes_buf(frame->data + 20, 8); /* payload where others have ports */
        frame->data[40] = (uint8_t)i;
        frame->length = i ? BULK : PING;
        flow_queue_put(queue, frame, NOW);
    }
    for (uint8_t i = 0; i < FLOW_QUEUE_FRAMES; i++) {
        struct queued_frame *frame = flow_queue_take(queue, NOW);
        assert_int_equal(frame->data[40], i);
        flow_queue_give_back(queue, frame);
    }
}

static void any_bytes_of_any_length_will_do(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct queued_frame *frame = flow_queue_room(queue);
        randombytes_buf(frame->data, 64);
        if (i % 3)
            frame->data[0] = i % 3 == 1 ? 0x40 | (frame->data[0] & 15) : 0x60;
        if (i % 4 == 0)
            frame->data[i % 3 == 1 ? 9 : 6] = i % 8 ? IPPROTO_TCP : IPPROTO_UDP;
        frame->length = i % 2 ? randombytes_uniform(64) : randombytes_uniform(TUN_FRAME_CAPACITY);
        flow_queue_put(queue, frame, NOW);
        if (i % 2)
            for (int k = 0; k < 2; k++)
                flow_queue_give_back(queue, flow_queue_take(queue, NOW));
    }
    assert_true(flow_queue_is_empty(queue));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_flow_keeps_its_order),
        TEST(a_sparse_flow_overtakes_a_bulky_one),
        TEST(flows_share_by_bytes),
        TEST(every_frame_leaves_once_and_in_order),
        TEST(only_the_flow_that_stands_is_told),
        TEST(what_waits_unseen_counts),
        TEST(many_flows_that_stand_are_told),
        TEST(bursts_that_fill_the_queue_are_not_told),
        TEST(fragments_of_a_datagram_stay_together),
        TEST(any_bytes_of_any_length_will_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
