/* SPDX-License-Identifier: Apache-2.0 */
/* Data between whole engines under a virtual clock: what is sent, what is accepted, what it moves.
 */
#include "simulation.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka.h needs the two above */
#include <cmocka.h>

static int connected(void **state)
{
    (void)state;
    sim_start(2, NULL);
    sim_add_peer(0, 1, true, 0);
    sim_add_peer(1, 0, false, 0);
    sim_connect(0, 1);
    return 0;
}

/* Nodes 0 and 2 both talk to node 1. */
static int star(void **state)
{
    (void)state;
    sim_start(3, NULL);
    sim_add_peer(0, 1, true, 0);
    sim_add_peer(1, 0, false, 0);
    sim_add_peer(2, 1, true, 0);
    sim_add_peer(1, 2, false, 0);
    sim_connect(0, 1);
    sim_connect(2, 1);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    sim_stop();
    return 0;
}

/* Several datagrams of one length as one GRO train; takes them over. */
static struct sim_datagram *join(struct sim_datagram **parts, size_t count)
{
    size_t segment = parts[0]->length;
    struct sim_datagram *train = calloc(1, sizeof *train + count * segment);
    assert_non_null(train);
    *train = *parts[0];
    train->segment = segment;
    train->length = count * segment;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(parts[i]->length, segment);
        memcpy(train->data + i * segment, parts[i]->data, segment);
        free(parts[i]);
    }
    return train;
}

/* ---- trains in ----------------------------------------------------------------------------- */

static void pitfall_28_a_train_of_two_peers_is_opened_by_each_segments_index(void **state)
{
    (void)state;
    enum { COUNT = 20 };
    struct sim_datagram *parts[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        parts[i] = sim_sealed(i % 3 ? 0 : 2, 1, i);
    sim_arrive(join(parts, COUNT));
    sim_settle();
    assert_int_equal(sim.node[1].delivered.count, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(sim_take(1), i);
}

static void pitfall_28_one_bad_segment_costs_only_itself(void **state)
{
    (void)state;
    struct sim_datagram *parts[8];
    for (uint32_t i = 0; i < 8; i++)
        parts[i] = sim_sealed(i & 1 ? 2 : 0, 1, i);
    parts[2]->data[20] ^= 1;             /* ciphertext */
    memset(parts[5]->data + 4, 0xee, 4); /* receiver index */
    parts[6]->data[0] = 9;               /* type */
    sim_arrive(join(parts, 8));
    sim_settle();
    static const uint32_t expected[] = {0, 1, 3, 4, 7};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(sim_take(1), expected[i]);
    assert_int_equal(sim_take(1), -1);
    assert_int_equal(sim_drops(1, DROP_TAG_INVALID), 1);
    assert_int_equal(sim_drops(1, DROP_UNKNOWN_INDEX), 1);
    assert_int_equal(sim_drops(1, DROP_MESSAGE_UNKNOWN_TYPE), 1);
}

static void two_peers_behind_one_address_share_a_gro_train(void **state)
{
    (void)state;
    sim.gro = true;
    for (uint32_t i = 0; i < 40; i++) {
        struct sim_datagram *d = sim_sealed(i & 1 ? 2 : 0, 1, i);
        sim_address(&d->from, AF_INET, 0, SIM_PORT); /* a NAT in front of both */
        sim_arrive(d);
    }
    sim_settle();
    struct tunnel_stats stats;
    tunnel_get_stats(sim.node[1].tunnel, &stats);
    assert_int_equal(sim.node[1].delivered.count, 40);
    assert_int_equal(stats.worker[0].rx.histogram[5], 1); /* one batch of 32–63 packets */
    for (uint32_t i = 0; i < 40; i++)
        assert_int_equal(sim_take(1), i);
}

static void pitfall_30_any_datagram_of_any_length_is_survived(void **state)
{
    (void)state;
    static uint8_t junk[MAX_DATAGRAM];
    struct session *session = atomic_load(&sim_peer(1, 0)->current_session);
    randombytes_buf_deterministic(junk, sizeof junk, (const unsigned char[32]){30});
    size_t sent = 0;
    for (size_t length = 0; length <= MAX_DATAGRAM; length += length < 300 ? 1 : 1861)
        for (uint8_t type = 0; type <= 5; type++) {
            struct sim_datagram *d = sim_datagram(junk, length);
            sim_address(&d->from, AF_INET, 0, SIM_PORT);
            sim_address(&d->to, AF_INET, 1, SIM_PORT);
            memcpy(d->data, (uint8_t[4]){type}, length < 4 ? length : 4);
            if (type == MESSAGE_DATA && length >= 8) /* an index that exists */
                memcpy(d->data + 4, &session->entry.index, 4);
            sim_arrive(d);
            sent++;
        }
    sim_settle();
    uint64_t dropped = 0;
    struct tunnel_stats stats;
    tunnel_get_stats(sim.node[1].tunnel, &stats);
    for (size_t i = 0; i < DROP_COUNT; i++)
        dropped += stats.drops[i];
    assert_int_equal(dropped, sent); /* each has one reason */
    assert_int_equal(sim.node[1].delivered.count, 0);
    assert_true(sim_carries(0, 1));
    assert_true(sim_carries(1, 0));
}

/* ---- authentication before effect ---------------------------------------------------------- */

struct peer_view {
    struct endpoint endpoint;
    uint64_t deadlines[TIMER_COUNT], rx_bytes;
    struct replay_window replay;
};

static struct peer_view view(int a, int b)
{
    struct peer *p = sim_peer(a, b);
    struct peer_view v;
    memset(&v, 0, sizeof v);
    v.endpoint = peer_endpoint(p);
    v.rx_bytes = atomic_load(&p->rx_bytes);
    v.replay = atomic_load(&p->current_session)->replay;
    for (int i = 0; i < TIMER_COUNT; i++)
        v.deadlines[i] = atomic_load(&p->timers.deadline[i]);
    return v;
}

static void pitfall_38_a_bad_tag_changes_nothing_of_the_peer(void **state)
{
    (void)state;
    struct sim_datagram *good = sim_sealed(0, 1, 7);
    for (size_t byte = 8; byte < good->length; byte++) { /* the counter too is authenticated */
        struct sim_datagram *bad = sim_copy(good);
        struct peer_view before = view(1, 0);
        bad->data[byte] ^= 0x80;
        sim_from_port(bad, 4444);
        sim.now += NSEC_PER_MSEC;
        sim_arrive(bad);
        receive_batch(&sim.node[1].tunnel->worker[0].primary, &sim.node[1].tunnel->udp.pair[0].v4);
        struct peer_view after = view(1, 0);
        assert_memory_equal(&before, &after, sizeof before);
    }
    assert_int_equal(sim_drops(1, DROP_TAG_INVALID), good->length - 8);
    assert_int_equal(sim.node[1].delivered.count, 0);
    sim_arrive(good); /* its counter was not burnt */
    sim_settle();
    assert_int_equal(sim_take(1), 7);
}

static void pitfall_37_window_edges_hold_through_the_whole_engine(void **state)
{
    (void)state;
    enum { NEWEST = 8400 };
    static struct sim_datagram *by_counter[NEWEST + 1];
    struct session *s = atomic_load(&sim_peer(0, 1)->current_session);
    uint32_t first = (uint32_t)atomic_load(&s->next_counter);
    for (uint32_t i = first; i <= NEWEST; i++)
        by_counter[i] = sim_sealed(0, 1, i);
    static const struct {
        uint32_t counter;
        bool accepted;
    } steps[] = {
        {NEWEST - 20, true},         {NEWEST - 20 - 8127, true},
        {NEWEST - 20 - 8127, false}, {NEWEST - 20 - 8128, true},
        {NEWEST - 20 - 8129, false}, {NEWEST - 20, false},
        {NEWEST - 21, true},         {NEWEST, true},
        {NEWEST - 8129, false},      {NEWEST - 8128 + 64, true},
        {NEWEST - 8128 + 64, false},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        assert_true(steps[i].counter >= first);
        sim_arrive(sim_copy(by_counter[steps[i].counter]));
        sim_settle();
        assert_int_equal(sim_take(1), steps[i].accepted ? (int64_t)steps[i].counter : -1);
    }
    assert_int_equal(sim_drops(1, DROP_COUNTER_REPLAYED), 5);

    atomic_store(&s->next_counter, 1ull << 40); /* a large jump clears all that was remembered */
    sim_arrive(sim_sealed(0, 1, 1));
    sim_settle();
    assert_int_equal(sim_take(1), 1);
    sim_arrive(sim_copy(by_counter[NEWEST - 1])); /* never seen, now far behind */
    sim_settle();
    assert_int_equal(sim_take(1), -1);
    atomic_store(&s->next_counter, (1ull << 40) - 8000); /* never seen, within the window */
    sim_arrive(sim_sealed(0, 1, 2));
    sim_settle();
    assert_int_equal(sim_take(1), 2);
    for (uint32_t i = first; i <= NEWEST; i++)
        free(by_counter[i]);
}

/* ---- counters run out ---------------------------------------------------------------------- */

static void pitfall_39_past_the_last_counter_packets_wait_for_a_handshake(void **state)
{
    (void)state;
    struct session *old = atomic_load(&sim_peer(0, 1)->current_session);
    sim_advance(SECONDS(6)); /* an initiation is allowed again, but gets no answer */
    sim.lost = 1 << MESSAGE_INITIATION;
    sim.copied = 1 << MESSAGE_DATA;
    atomic_store(&old->next_counter, REJECT_AFTER_MESSAGES - 3);
    for (uint32_t i = 1; i <= 20; i++) {
        sim_send(0, 1, i);
        sim_settle();
    }
    for (int64_t i = 1; i <= 3; i++)
        assert_int_equal(sim_take(1), i);
    assert_int_equal(sim_take(1), -1);
    assert_int_equal(sim.copies.count, 3);
    assert_int_equal(sim.node[0].sent_by_type[MESSAGE_INITIATION], 1);
    for (struct sim_datagram *d = sim.copies.head; d; d = d->next) {
        struct message_data header;
        memcpy(&header, d->data, sizeof header);
        assert_true(header.counter < REJECT_AFTER_MESSAGES);
    }
    sim.lost = 0;
    sim_advance(SECONDS(6)); /* the retry is answered: nothing was lost */
    for (int64_t i = 4; i <= 20; i++)
        assert_int_equal(sim_take(1), i);
    assert_ptr_not_equal(atomic_load(&sim_peer(0, 1)->current_session), old);
}

static void pitfall_39_rekeys_after_2_to_the_60_messages(void **state)
{
    (void)state;
    struct session *s = atomic_load(&sim_peer(0, 1)->current_session);
    sim_advance(SECONDS(6));
    atomic_store(&s->next_counter, REKEY_AFTER_MESSAGES - 1);
    assert_true(sim_carries(0, 1));
    assert_int_equal(sim.node[0].sent_by_type[MESSAGE_INITIATION], 0);
    assert_true(sim_carries(0, 1));
    assert_int_equal(sim.node[0].sent_by_type[MESSAGE_INITIATION], 1);
}

/* ---- padding ------------------------------------------------------------------------------- */

static void pitfall_44_padding_is_to_16_but_never_past_the_mtu(void **state)
{
    (void)state;
    static const struct {
        uint32_t mtu, length, padded;
    } cases[] = {
        {1420, 24, 32},
        {1420, 32, 32},
        {1420, 33, 48},
        {1420, 1407, 1408},
        {1420, 1408, 1408},
        {1420, 1409, 1420},
        {1420, 1419, 1420},
        {1420, 1420, 1420},
        {1280, 1279, 1280},
        {1280, 1265, 1280},
        {576, 575, 576},
        {1421, 1421, 1421},
        {1421, 1417, 1421},
        {9000, 8993, 9000},
        {65535, 30000, 30000},
        /* longer than the MTU, which shrank after the packet was read: the rest is padded */
        {1280, 1281, 1296},
        {1280, 2560, 2560},
        {1280, 2559, 2560},
    };
    static uint8_t packet[32000];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        atomic_store(&sim.node[0].tunnel->mtu, cases[i].mtu);
        sim.train_count = 0;
        sim_inject(0, packet, sim_packet(packet, 0, 1, cases[i].length, 1));
        sim_settle();
        assert_int_equal(sim.train_count, 1);
        assert_int_equal(sim.train[0].length, cases[i].padded + 32);
        struct sim_datagram *d = sim_pop(&sim.node[1].delivered);
        assert_int_equal(d->length, cases[i].length); /* trimmed again */
        assert_memory_equal(d->data, packet, d->length);
        free(d);
    }
}

static void pitfall_44_keepalives_are_32_bytes_and_never_answered(void **state)
{
    (void)state;
    sim_advance(SECONDS(20)); /* the data that connected them has been acknowledged */
    sim.node[0].sent_by_type[MESSAGE_DATA] = sim.node[1].sent_datagrams = sim.train_count = 0;
    sim_add_peer(0, 1, true, 5); /* persistent, every 5 s */
    sim_advance(SECONDS(95));
    assert_int_equal(sim.node[0].sent_by_type[MESSAGE_DATA], 20);
    for (size_t i = 0; i < sim.train_count; i++)
        assert_int_equal(sim.train[i].length, 32);
    assert_int_equal(sim.node[1].sent_datagrams, 0);
    assert_int_equal(sim.node[1].delivered.count, 0);
}

/* ---- inner packets ------------------------------------------------------------------------- */

static void pitfall_46_an_inner_source_of_another_peer_is_dropped(void **state)
{
    (void)state;
    uint8_t packet[64];
    sim_packet(packet, 2, 1, sizeof packet, 1); /* 10.0.0.3 belongs to node 2 */
    sim_arrive(sim_seal(0, 1, packet, sizeof packet, 0));
    sim_packet(packet, 9, 1, sizeof packet, 1); /* 10.0.0.10 belongs to nobody */
    sim_arrive(sim_seal(0, 1, packet, sizeof packet, 0));
    sim_settle();
    assert_int_equal(sim.node[1].delivered.count, 0);
    assert_int_equal(sim_drops(1, DROP_INNER_SOURCE_NOT_ALLOWED), 2);

    /* a longer prefix of another peer takes the address out of a shorter one of ours */
    struct tunnel_prefix all = {.family = 4, .length = 0};
    struct tunnel_peer_change change = {.prefixes = &all, .prefix_count = 1};
    memcpy(change.public_key, sim.node[0].public_key, KEY_LENGTH);
    assert_int_equal(tunnel_set_peer(sim.node[1].tunnel, &change), 0);
    sim_arrive(sim_seal(0, 1, packet, sizeof packet, 0));
    sim_packet(packet, 2, 1, sizeof packet, 1);
    sim_arrive(sim_seal(0, 1, packet, sizeof packet, 0));
    sim_settle();
    assert_int_equal(sim.node[1].delivered.count, 1);
    assert_int_equal(sim_drops(1, DROP_INNER_SOURCE_NOT_ALLOWED), 3);
}

static size_t packet6(uint8_t *out, int a, int b, size_t length, uint16_t payload)
{
    memset(out, 0, length);
    out[0] = 0x60;
    out[4] = (uint8_t)(payload >> 8);
    out[5] = (uint8_t)payload;
    out[6] = 59; /* no next header */
    out[7] = 64;
    out[8] = out[24] = 0xfd;
    out[23] = (uint8_t)(a + 1);
    out[39] = (uint8_t)(b + 1);
    return length;
}

static void pitfall_47_inner_lengths_are_checked_in_32_bits(void **state)
{
    (void)state;
    static const struct {
        uint8_t version;
        uint32_t plaintext, claimed; /* IPv4: total length, IPv6: payload length */
        uint32_t delivered;          /* 0: dropped */
    } cases[] = {
        {6, 112, 72, 112},
        {6, 112, 60, 100},
        {6, 112, 73, 0},
        {6, 112, 0xffff, 0},
        {6, 112, 0xffd8, 0} /* 65,536 with the header: 0 in 16 bits */,
        {6, 112, 0xfff0, 0},
        {6, 48, 0, 40},
        {6, 39, 0, 0},
        {4, 64, 64, 64},
        {4, 64, 50, 50},
        {4, 64, 65, 0},
        {4, 64, 0xffff, 0},
        {4, 64, 19, 0},
        {4, 64, 0, 0},
        {4, 32, 20, 20},
        {4, 19, 19, 0},
        {0, 64, 64, 0},
        {5, 64, 64, 0},
        {4, 1, 1, 0},
        {15, 2000, 2000, 0},
    };
    uint8_t packet[2048];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t before = sim_drops(1, DROP_INNER_MALFORMED);
        if (cases[i].version == 6) {
            packet6(packet, 0, 1, 112, (uint16_t)cases[i].claimed);
        } else {
            sim_packet(packet, 0, 1, sizeof packet, 1);
            packet[0] = (uint8_t)(cases[i].version << 4 | 5);
            packet[2] = (uint8_t)(cases[i].claimed >> 8);
            packet[3] = (uint8_t)cases[i].claimed;
        }
        sim_arrive(sim_seal(0, 1, packet, cases[i].plaintext, 0));
        sim_settle();
        struct sim_datagram *d = sim_pop(&sim.node[1].delivered);
        assert_int_equal(d ? d->length : 0, cases[i].delivered);
        assert_int_equal(sim_drops(1, DROP_INNER_MALFORMED) - before, cases[i].delivered == 0);
        if (d)
            assert_memory_equal(d->data, packet, d->length);
        free(d);
    }
}

/* ---- TOS ----------------------------------------------------------------------------------- */

static void send_with_tos(int a, int b, uint8_t tos, uint32_t sequence)
{
    uint8_t packet[64];
    sim_packet(packet, a, b, sizeof packet, sequence);
    packet[1] = tos;
    packet[10] = packet[11] = 0;
    uint16_t sum = sim_checksum(packet, 20);
    packet[10] = (uint8_t)(sum >> 8);
    packet[11] = (uint8_t)sum;
    sim_inject(a, packet, sizeof packet);
}

static void pitfall_59_a_train_never_mixes_ecn(void **state)
{
    (void)state;
    static const uint8_t ecn[] = {2, 2, 2, 3, 3, 0, 0, 0, 2, 1, 1};
    static const struct {
        uint8_t tos;
        size_t packets;
    } trains[] = {{2, 3}, {3, 2}, {0, 3}, {2, 1}, {1, 2}};
    /* After a lone packet the next is taken for one too and goes out by itself. */
    sim_send(0, 1, 1000);
    sim_send(0, 1, 1001);
    sim_settle();
    sim_discard(&sim.node[1].delivered);
    sim.train_count = 0;
    for (uint32_t i = 0; i < sizeof ecn; i++)
        send_with_tos(0, 1, ecn[i], i);
    sim_settle();
    assert_int_equal(sim.train_count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(sim.train[i].tos, trains[i].tos);
        assert_int_equal(sim.train[i].length, trains[i].packets * 96);
    }
    for (uint32_t i = 0; i < sizeof ecn; i++)
        assert_int_equal(sim_take(1), i);
}

static void dscp_is_not_copied_out_and_ecn_is(void **state)
{
    (void)state;
    uint8_t packet[80];
    for (unsigned tos = 0; tos < 256; tos++) {
        sim.train_count = 0;
        send_with_tos(0, 1, (uint8_t)tos, tos);
        sim_settle();
        assert_int_equal(sim.train[0].tos, tos & 3);
        packet6(packet, 0, 1, sizeof packet, 40);
        packet[0] |= (uint8_t)(tos >> 4);
        packet[1] = (uint8_t)(tos << 4);
        sim_inject(0, packet, sizeof packet);
        sim_settle();
        assert_int_equal(sim.train[1].tos, tos & 3);
    }
    assert_int_equal(sim.node[1].delivered.count, 512);
}

static void received_ecn_follows_rfc_6040(void **state)
{
    (void)state;
    /* RFC 6040 §4.2, figure 4, by outer and inner; CE over not-ECT is delivered as it is */
    static const uint8_t expected[4][4] = {
        /* inner:    not 1  0  CE */
        [0] = {0, 1, 2, 3},
        [1] = {0, 1, 1, 3},
        [2] = {0, 1, 2, 3},
        [3] = {0, 3, 3, 3},
    };
    uint8_t packet[80];
    for (unsigned tos = 0; tos < 16; tos++) {
        uint8_t outer = tos >> 2, inner = tos & 3, dscp = 0x28;
        sim_packet(packet, 0, 1, 64, tos);
        packet[1] = dscp | inner;
        packet[10] = packet[11] = 0;
        uint16_t sum = sim_checksum(packet, 20);
        packet[10] = (uint8_t)(sum >> 8);
        packet[11] = (uint8_t)sum;
        sim_arrive(sim_seal(0, 1, packet, 64, 0x88 | outer));
        packet6(packet, 0, 1, sizeof packet, 40);
        packet[0] |= dscp >> 4;
        packet[1] = (uint8_t)((dscp | inner) << 4);
        sim_arrive(sim_seal(0, 1, packet, sizeof packet, 0x88 | outer));
        sim_settle();
        struct sim_datagram *v4 = sim_pop(&sim.node[1].delivered);
        struct sim_datagram *v6 = sim_pop(&sim.node[1].delivered);
        assert_int_equal(v4->data[1], dscp | expected[outer][inner]);
        assert_int_equal(sim_checksum(v4->data, 20), 0);
        assert_int_equal((v6->data[0] << 4 | v6->data[1] >> 4) & 0xff,
                         dscp | expected[outer][inner]);
        free(v4);
        free(v6);
    }
}

/* ---- batches ------------------------------------------------------------------------------- */

static void a_lone_packet_does_not_wait_for_company(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++)
        sim_send(0, 1, i);
    sim_settle();
    assert_int_equal(sim.train_count, 2);
    assert_int_equal(sim.train[0].length, 96);
    assert_int_equal(sim.train[1].length, 3 * 96);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(sim_take(1), i);
}

static void a_batch_of_equal_packets_is_one_train(void **state)
{
    (void)state;
    /* After a lone packet the next is taken for one too and goes out by itself. */
    sim_send(0, 1, 1000);
    sim_send(0, 1, 1001);
    sim_settle();
    sim_discard(&sim.node[1].delivered);
    sim.train_count = 0;
    for (uint32_t i = 0; i < 64; i++)
        sim_send(0, 1, i);
    sim_settle();
    assert_int_equal(sim.train_count, 1);
    assert_int_equal(sim.train[0].segment, 96);
    assert_int_equal(sim.train[0].length, 64 * 96);
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(sim_take(1), i);
}

static void packets_of_any_sizes_and_peers_keep_their_order(void **state)
{
    (void)state;
    static uint8_t packet[1420];
    uint32_t draw = 1, next[2] = {0};
    for (uint32_t i = 0; i < 3000; i++) {
        draw = draw * 1664525 + 1013904223;
        int to = draw >> 31 ? 0 : 2;
        sim_inject(1, packet, sim_packet(packet, 1, to, 24 + (draw >> 8) % 1396, next[to / 2]++));
    }
    sim_settle();
    for (int n = 0; n < 2; n++) {
        assert_int_equal(sim.node[2 * n].delivered.count, next[n]);
        for (uint32_t i = 0; i < next[n]; i++)
            assert_int_equal(sim_take(2 * n), i);
    }
    for (size_t i = 0; i < sim.train_count; i++) {
        assert_true(sim.train[i].length <= MAX_DATAGRAM);
        assert_true((sim.train[i].length + sim.train[i].segment - 1) / sim.train[i].segment <= 64);
    }
}

int main(void)
{
#define PAIR(name) cmocka_unit_test_setup_teardown(name, connected, stop)
#define STAR(name) cmocka_unit_test_setup_teardown(name, star, stop)
    const struct CMUnitTest tests[] = {
        STAR(pitfall_28_a_train_of_two_peers_is_opened_by_each_segments_index),
        STAR(pitfall_28_one_bad_segment_costs_only_itself),
        STAR(two_peers_behind_one_address_share_a_gro_train),
        PAIR(pitfall_30_any_datagram_of_any_length_is_survived),
        PAIR(pitfall_37_window_edges_hold_through_the_whole_engine),
        PAIR(pitfall_38_a_bad_tag_changes_nothing_of_the_peer),
        PAIR(pitfall_39_past_the_last_counter_packets_wait_for_a_handshake),
        PAIR(pitfall_39_rekeys_after_2_to_the_60_messages),
        PAIR(pitfall_44_padding_is_to_16_but_never_past_the_mtu),
        PAIR(pitfall_44_keepalives_are_32_bytes_and_never_answered),
        STAR(pitfall_46_an_inner_source_of_another_peer_is_dropped),
        PAIR(pitfall_47_inner_lengths_are_checked_in_32_bits),
        PAIR(pitfall_59_a_train_never_mixes_ecn),
        PAIR(dscp_is_not_copied_out_and_ecn_is),
        PAIR(received_ecn_follows_rfc_6040),
        PAIR(a_lone_packet_does_not_wait_for_company),
        PAIR(a_batch_of_equal_packets_is_one_train),
        STAR(packets_of_any_sizes_and_peers_keep_their_order),
    };
    return cmocka_run_group_tests_name("engine: data", tests, NULL, NULL);
}
