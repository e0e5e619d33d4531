/* SPDX-License-Identifier: Apache-2.0 */
/* Queues that stand in front of an engine, in either direction: who overtakes, who is told. */
#include "simulation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SEGMENT  1380
#define SEGMENTS 40 /* of a super-packet */
#define SUPERS   60
#define MS(n)    ((uint64_t)(n)*NSEC_PER_MSEC)

/* Node 0 has a device with offloads; node 1 gets packets singly, as they came. */
static void adjust(struct tunnel_options *options)
{
    options->no_vnet_hdr = strcmp(options->name, "sim0") != 0;
}

static void inject(uint32_t length, uint32_t sequence)
{
    struct virtio_net_hdr none = {0};
    uint8_t packet[SEGMENT];
    sim_inject_frame(0, &none, packet, sim_packet(packet, 0, 1, length, sequence));
}

static void inject_small(uint32_t sequence)
{
    inject(64, sequence);
}

static int set_up(void **state)
{
    (void)state;
    sim_start(2, adjust);
    sim_add_peer(0, 1, true, 0);
    sim_add_peer(1, 0, true, 0);
    inject_small(0);
    sim_settle();
    bool connected = sim.node[1].delivered.count == 1;
    sim_discard(&sim.node[1].delivered);
    return connected ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    sim_stop();
    return 0;
}

/* The `number`-th super-packet of one TCP flow. */
static void inject_super(uint32_t number, uint8_t ecn)
{
    static uint8_t packet[40 + SEGMENTS * SEGMENT];
    struct virtio_net_hdr header = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
                                    .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
                                    .gso_size = SEGMENT,
                                    .csum_start = 20,
                                    .csum_offset = 16};
    uint32_t sequence = htonl(number * SEGMENTS * SEGMENT);
    sim_packet(packet, 0, 1, sizeof packet, 0);
    packet[1] = ecn;
    packet[9] = IPPROTO_TCP;
    memcpy(packet + 20, (uint8_t[]){0x9c, 0x40, 0x14, 0x51}, 4);
    memcpy(packet + 24, &sequence, 4);
    packet[32] = 5 << 4;
    packet[33] = 0x10; /* ACK */
    sim_inject_frame(0, &header, packet, sizeof packet);
}

static void pass(uint64_t duration)
{
    sim.now += duration;
    sim.wall += duration;
}

/* What arrived at node 1, in order. */
struct arrived {
    uint32_t segments, marked, small;
    uint32_t segments_before_small; /* ahead of the last small packet */
    bool in_order;
};

static struct arrived take_all(void)
{
    struct arrived a = {.in_order = true};
    struct sim_datagram *d;
    uint32_t before = 0;
    while ((d = sim_pop(&sim.node[1].delivered))) {
        uint32_t sequence;
        if (d->data[9] == IPPROTO_TCP) {
            memcpy(&sequence, d->data + 24, 4);
            sequence = ntohl(sequence);
            a.in_order = a.in_order && (!a.segments || sequence > before);
            before = sequence;
            a.segments++;
            a.marked += (d->data[1] & 3) == 3;
            assert_int_equal(sim_checksum(d->data, 20), 0); /* also of a packet that was marked */
        } else {
            a.small++;
            a.segments_before_small = a.segments;
        }
        free(d);
    }
    return a;
}

/* ---- outbound ------------------------------------------------------------------------------ */

static void a_packet_overtakes_super_packets_of_others(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        inject_super(i, 0);
    inject_small(1);
    sim_settle();
    struct arrived a = take_all();
    assert_int_equal(a.segments, 3 * SEGMENTS);
    assert_true(a.in_order);
    assert_int_equal(a.small, 1);
    assert_in_range(a.segments_before_small, 0, SEGMENTS);
}

/* A device that gives super-packets faster than they are sent: 2 in 2 ms. */
static struct arrived send_slowly(uint8_t ecn)
{
    struct thread *t = &sim.node[0].tunnel->worker[0].primary;
    for (uint32_t i = 0; i < SUPERS; i++)
        inject_super(i, ecn);
    for (uint32_t batches = 0; sim.node[0].tun_out.head || send_waits(t); batches++) {
        if (batches % 4 == 0)
            inject_small(batches);
        send_batch(t);
        pass(MS(2));
    }
    sim_settle();
    return take_all();
}

static void a_standing_queue_costs_its_flow_a_packet_now_and_then(void **state)
{
    (void)state;
    struct arrived a = send_slowly(0);
    uint64_t dropped = sim_drops(0, DROP_TUN_QUEUE_CONGESTED);
    assert_in_range(dropped, 2, 20);
    assert_int_equal(a.segments, SUPERS * SEGMENTS - dropped);
    assert_int_equal(a.marked, 0);
    assert_int_equal(a.small, (SUPERS / 2 + 3) / 4);
    assert_true(a.in_order);
}

static void a_standing_queue_marks_who_understands_marks(void **state)
{
    (void)state;
    struct arrived a = send_slowly(2); /* ECT(0) */
    assert_int_equal(sim_drops(0, DROP_TUN_QUEUE_CONGESTED), 0);
    assert_int_equal(a.segments, SUPERS * SEGMENTS);
    assert_in_range(a.marked, 2 * SEGMENTS, 20 * SEGMENTS);
    assert_int_equal(a.marked % SEGMENTS, 0);
}

static void a_burst_is_neither_marked_nor_dropped(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < SUPERS; i++)
        inject_super(i, i % 2 ? 2 : 0);
    sim_settle();
    pass(SECONDS(1));
    struct arrived a = take_all();
    assert_int_equal(a.segments, SUPERS * SEGMENTS);
    assert_int_equal(a.marked, 0);
}

/* A read that only finds nothing would keep the CPU from whoever is to answer. */
static void a_packet_after_a_pause_costs_one_read_and_one_send(void **state)
{
    struct thread *t = &sim.node[0].tunnel->worker[0].primary;
    (void)state;
    for (uint32_t i = 0; i < 10; i++) {
        pass(MS(2));
        inject_small(i);
        uint64_t before = counter_get(&t->counters.tx.system_calls);
        assert_false(send_batch(t));
        assert_int_equal(counter_get(&t->counters.tx.system_calls) - before, 2);
    }
    /* many at once: the first two go alone, before it is known that they have company */
    pass(MS(2));
    for (uint32_t i = 0; i < 30; i++)
        inject_small(i);
    sim.train_count = 0;
    sim_settle();
    assert_int_equal(take_all().small, 40);
    assert_int_equal(sim.train_count, 3);
}

/* ---- inbound ------------------------------------------------------------------------------- */

/* A socket that stands full of trains and single datagrams, of which eight are received in 40 ms.
 */
static struct arrived receive_slowly(uint8_t ecn)
{
    struct thread *from = &sim.node[0].tunnel->worker[0].primary;
    struct thread *to = &sim.node[1].tunnel->worker[0].primary;
    sim.gro = true;
    for (uint32_t i = 0; i < SUPERS; i++) {
        inject_super(i, ecn);
        inject_small(i);
        while (sim.node[0].tun_out.head || send_waits(from))
            send_batch(from);
    }
    while (sim.node[1].udp4.head) {
        receive_batch(to, &to->sockets->v4);
        pass(MS(40));
    }
    return take_all();
}

static void a_standing_socket_costs_a_packet_now_and_then(void **state)
{
    (void)state;
    struct arrived a = receive_slowly(0);
    uint64_t dropped = sim_drops(1, DROP_UDP_QUEUE_CONGESTED);
    assert_in_range(dropped, 3, 60);
    assert_int_equal(a.segments, SUPERS * SEGMENTS - dropped);
    assert_int_equal(a.small, SUPERS); /* who sends little is not the one to tell */
    assert_int_equal(a.marked, 0);
    assert_true(a.in_order);
}

static void a_standing_socket_marks_who_understands_marks(void **state)
{
    (void)state;
    struct arrived a = receive_slowly(1); /* ECT(1) */
    assert_int_equal(sim_drops(1, DROP_UDP_QUEUE_CONGESTED), 0);
    assert_int_equal(a.segments, SUPERS * SEGMENTS);
    assert_in_range(a.marked, 3, 60);
}

static void a_socket_full_of_small_datagrams_tells_nobody(void **state)
{
    struct thread *to = &sim.node[1].tunnel->worker[0].primary;
    struct thread *from = &sim.node[0].tunnel->worker[0].primary;
    (void)state;
    for (uint32_t i = 0; i < 200; i++)
        inject_small(i);
    inject_super(0, 0);
    while (sim.node[0].tun_out.head || send_waits(from))
        send_batch(from);
    while (sim.node[1].udp4.head) {
        receive_batch(to, &to->sockets->v4);
        pass(MS(40));
    }
    struct arrived a = take_all();
    assert_int_equal(a.small, 200);
    assert_int_equal(a.segments + sim_drops(1, DROP_UDP_QUEUE_CONGESTED), SEGMENTS);
}

/* A host that has no time for the engine: every datagram waits long, and is alone with its last
 * fragment, seconds after the one before. */
static void what_waits_for_a_thread_that_was_not_scheduled_stands_in_no_queue(void **state)
{
    enum { DATAGRAMS = 20 };
    struct thread *from = &sim.node[0].tunnel->worker[0].primary;
    struct thread *to = &sim.node[1].tunnel->worker[0].primary;
    (void)state;
    for (uint32_t i = 0; i < DATAGRAMS; i++) {
        inject(SEGMENT, i);
        inject_small(i);
        while (sim.node[0].tun_out.head)
            send_batch(from);
        pass(MS(100));
        receive_batch(to, &to->sockets->v4);
        pass(SECONDS(2));
    }
    assert_int_equal(sim_drops(1, DROP_UDP_QUEUE_CONGESTED), 0);
    assert_int_equal(take_all().small, 2 * DATAGRAMS);
}

/* The same, and it loses the CPU in the middle of a datagram of many fragments as well. */
static void an_absence_amid_fragments_costs_none(void **state)
{
    enum { DATAGRAMS = 20, FRAGMENTS = 44 };
    struct thread *from = &sim.node[0].tunnel->worker[0].primary;
    struct thread *to = &sim.node[1].tunnel->worker[0].primary;
    (void)state;
    for (uint32_t i = 0; i < DATAGRAMS; i++) {
        for (uint32_t k = 0; k < FRAGMENTS; k++)
            inject(SEGMENT, k);
        while (sim.node[0].tun_out.head)
            send_batch(from);
        for (uint32_t batch = 0; receive_batch(to, &to->sockets->v4); batch++)
            pass(batch == i % 5 ? MS(60) : NSEC_PER_MSEC / 2);
        pass(SECONDS(2));
    }
    assert_int_equal(sim_drops(1, DROP_UDP_QUEUE_CONGESTED), 0);
    assert_int_equal(take_all().small, DATAGRAMS * FRAGMENTS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_packet_overtakes_super_packets_of_others),
        TEST(a_standing_queue_costs_its_flow_a_packet_now_and_then),
        TEST(a_standing_queue_marks_who_understands_marks),
        TEST(a_burst_is_neither_marked_nor_dropped),
        TEST(a_packet_after_a_pause_costs_one_read_and_one_send),
        TEST(a_standing_socket_costs_a_packet_now_and_then),
        TEST(a_standing_socket_marks_who_understands_marks),
        TEST(a_socket_full_of_small_datagrams_tells_nobody),
        TEST(what_waits_for_a_thread_that_was_not_scheduled_stands_in_no_queue),
        TEST(an_absence_amid_fragments_costs_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
