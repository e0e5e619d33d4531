/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration of whole engines: what a change touches, what it leaves alone, what it costs. */
#include "simulation.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
/* cmocka.h needs the two above */
#include <cmocka.h>

#define MANY 10000

static int connected(void **state)
{
    (void)state;
    sim_start(3, NULL);
    sim_add_peer(0, 1, true, 0);
    sim_add_peer(1, 0, false, 0);
    sim_connect(0, 1);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    sim_stop();
    return 0;
}

static struct tunnel *tunnel0(void)
{
    return sim.node[0].tunnel;
}

/* ---- peers in bulk ------------------------------------------------------------------------- */

static void stranger_key(uint32_t number, uint8_t key[KEY_LENGTH])
{
    memset(key, 0, KEY_LENGTH);
    memcpy(key, &number, sizeof number);
    key[31] = 0x42; /* not a key of a node; no secret of it is ever needed */
}

/* Peer `number` with three prefixes of its own. */
static void set_stranger(uint32_t number, uint32_t fields)
{
    uint8_t high = (uint8_t)(number >> 8), low = (uint8_t)number;
    struct tunnel_prefix prefixes[3] = {
        {.family = 4, .length = 32, .address = {100, 64, high, low}},
        {.family = 4, .length = 24, .address = {(uint8_t)(11 + number / 65536), high, low, 0}},
        {.family = 6, .length = 64, .address = {0xfd, 1, high, low}},
    };
    struct tunnel_peer_change change = {
        .fields = fields | TUNNEL_PEER_ENDPOINT,
        .endpoint = {.family = 4, .port = 1, .address = {198, 51, 100, 9}},
        .prefixes = prefixes,
        .prefix_count = 3,
    };
    stranger_key(number, change.public_key);
    assert_int_equal(tunnel_set_peer(tunnel0(), &change), 0);
}

struct sum {
    size_t peers, prefixes;
    uint64_t rx_bytes, tx_bytes;
};

static bool add_up(void *context, const struct tunnel_peer_state *peer,
                   const struct tunnel_prefix *prefixes, size_t count)
{
    struct sum *sum = context;
    (void)prefixes;
    sum->peers++;
    sum->prefixes += count;
    sum->rx_bytes += peer->rx_bytes;
    sum->tx_bytes += peer->tx_bytes;
    return true;
}

static struct sum sum_of(int node)
{
    struct sum sum = {0};
    tunnel_for_each_peer(sim.node[node].tunnel, add_up, &sum);
    return sum;
}

static void pitfall_63_ten_thousand_peers_replaced_by_themselves_touch_nothing(void **state)
{
    (void)state;
    struct session *session = atomic_load(&sim_peer(0, 1)->current_session);
    struct peer *first = NULL;
    uint64_t tx_bytes = atomic_load(&sim_peer(0, 1)->tx_bytes);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(tunnel_replace_peers_begin(tunnel0()), 0);
        sim_add_peer(0, 1, false, 0);
        for (uint32_t i = 0; i < MANY; i++)
            set_stranger(i, TUNNEL_PEER_REPLACE_ALLOWED_IPS);
        tunnel_replace_peers_commit(tunnel0());
        struct sum sum = sum_of(0);
        assert_int_equal(sum.peers, MANY + 1);
        assert_int_equal(sum.prefixes, 3 * MANY + 2);
        assert_int_equal(allowedips_count(tunnel0()->allowed_ips), 3 * MANY + 2);
        if (!round)
            first = tunnel0()->last_peer;
        assert_ptr_equal(tunnel0()->last_peer, first); /* the same objects */
        assert_ptr_equal(atomic_load(&sim_peer(0, 1)->current_session), session);
        assert_int_equal(atomic_load(&sim_peer(0, 1)->tx_bytes), tx_bytes);
    }
    assert_true(sim_carries(0, 1));
    assert_int_equal(sim.node[0].sent_by_type[MESSAGE_INITIATION], 0);

    assert_int_equal(tunnel_replace_peers_begin(tunnel0()), 0); /* and now without them */
    sim_add_peer(0, 1, false, 0);
    tunnel_replace_peers_commit(tunnel0());
    assert_int_equal(sum_of(0).peers, 1);
    assert_int_equal(allowedips_count(tunnel0()->allowed_ips), 2);
    assert_true(sim_carries(0, 1));
}

static size_t heap_in_use(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* A sanitizer's allocator does not fill mallinfo2. */
static bool heap_is_measurable(void)
{
    size_t before = heap_in_use();
    void *volatile block = malloc(100000);
    size_t after = heap_in_use();
    free(block);
    return after - before >= 100000;
}

static void pitfall_65_an_idle_peer_costs_2_kib_at_most(void **state)
{
    (void)state;
    assert_true(sizeof(struct peer) <= 1024);
    if (!heap_is_measurable())
        skip();
    size_t before = heap_in_use();
    for (uint32_t i = 0; i < MANY; i++)
        set_stranger(i, 0);
    sim_settle();
    size_t each = (heap_in_use() - before) / MANY;
    print_message("an idle peer with three prefixes: %zu bytes\n", each);
    assert_in_range(each, sizeof(struct peer), 2048);
}

/* Sessions as handshakes install them, on many peers: previous, current and next. */
static void pitfall_65_a_peer_with_live_sessions_costs_6_kib_at_most(void **state)
{
    (void)state;
    enum { COUNT = 2000 };
    struct tunnel *t = tunnel0();
    if (!heap_is_measurable())
        skip();
    size_t before = heap_in_use();
    for (uint32_t i = 0; i < COUNT; i++)
        set_stranger(i, 0);
    for (struct peer *p = t->first_peer->next; p; p = p->next) {
        pthread_mutex_lock(&p->lock);
        for (int i = 0; i < 3; i++) {
            struct noise_session_keys keys = {.initiator = i < 2};
            p->handshake_entry = handshake_entry_create(p, t->indices);
            assert_non_null(p->handshake_entry);
            assert_true(peer_install_session(p, &keys, sim.now));
            if (i == 2) /* unconfirmed: it cleared the previous one */
                assert_non_null(atomic_load(&p->next_session));
        }
        pthread_mutex_unlock(&p->lock);
    }
    sim_settle();
    struct tunnel_stats stats;
    tunnel_get_stats(t, &stats);
    assert_int_equal(stats.sessions, 2 * COUNT + 1);
    size_t each = (heap_in_use() - before) / COUNT;
    size_t third = sizeof(struct session) + t->thread_count * sizeof(uint64_t);
    print_message("a peer with two sessions: %zu bytes, a session: %zu\n", each, third);
    assert_in_range(each, sizeof(struct peer), 6144);
    assert_true(each + third <= 6144); /* while a handshake replaces them there are three */
}

static void pitfall_65_staged_packets_are_capped_at_16_mb_over_all_peers(void **state)
{
    (void)state;
    static uint8_t packet[1400];
    enum { PEERS = 200 };
    sim.lost = 1 << MESSAGE_INITIATION;
    for (uint32_t i = 0; i < PEERS; i++)
        set_stranger(i, 0);
    for (uint32_t i = 0; i < PEERS; i++)
        for (int j = 0; j < MAX_STAGED_PACKETS; j++) {
            sim_packet(packet, 0, 1, sizeof packet, (uint32_t)j);
            memcpy(packet + 16, (uint8_t[]){100, 64, (uint8_t)(i >> 8), (uint8_t)i}, 4);
            sim_inject(0, packet, sizeof packet);
        }
    while (sim.node[0].tun_out.head)
        send_batch(&tunnel0()->worker[0].primary);
    uint64_t staged = atomic_load(&tunnel0()->staged_bytes);
    uint64_t fits = MAX_STAGED_BYTES / sizeof packet;
    assert_int_equal(MAX_STAGED_BYTES, 16 * 1024 * 1024);
    assert_int_equal(staged, fits * sizeof packet);
    assert_int_equal(sim_drops(0, DROP_STAGED_MEMORY), PEERS * MAX_STAGED_PACKETS - fits);
    for (uint32_t i = 0; i < PEERS; i++) { /* removal gives all of it back */
        struct tunnel_peer_change remove = {.fields = TUNNEL_PEER_REMOVE};
        stranger_key(i, remove.public_key);
        assert_int_equal(tunnel_set_peer(tunnel0(), &remove), 0);
    }
    assert_int_equal(atomic_load(&tunnel0()->staged_bytes), 0);
}

/* ---- what stays ---------------------------------------------------------------------------- */

static void pitfall_56_the_same_endpoint_again_keeps_the_source(void **state)
{
    (void)state;
    assert_true(sim_carries(1, 0)); /* node 0 learns which of its addresses node 1 uses */
    struct endpoint before = peer_endpoint(sim_peer(0, 1));
    assert_true(before.source.v4.s_addr != 0);
    sim_add_peer(0, 1, true, 0);
    struct endpoint after = peer_endpoint(sim_peer(0, 1));
    assert_true(endpoint_equal(&before, &after));

    struct tunnel_peer_change move = {
        .fields = TUNNEL_PEER_ENDPOINT,
        .endpoint = {.family = 4, .port = 99, .address = {192, 0, 2, 2}},
    };
    memcpy(move.public_key, sim.node[1].public_key, KEY_LENGTH);
    assert_int_equal(tunnel_set_peer(tunnel0(), &move), 0);
    after = peer_endpoint(sim_peer(0, 1));
    assert_int_equal(after.source.v4.s_addr, 0); /* another one: the route decides again */
    assert_int_equal(ntohs(after.remote.v4.sin_port), 99);
}

static void pitfall_63_a_replacement_keeps_the_learned_endpoint_and_resets_the_rest(void **state)
{
    (void)state;
    struct tunnel_peer_change change = {.fields = TUNNEL_PEER_PRESHARED_KEY | TUNNEL_PEER_KEEPALIVE,
                                        .keepalive = 25,
                                        .preshared_key = {7}};
    memcpy(change.public_key, sim.node[0].public_key, KEY_LENGTH);
    assert_int_equal(tunnel_set_peer(sim.node[1].tunnel, &change), 0);
    struct peer *p = sim_peer(1, 0);
    struct endpoint before = peer_endpoint(p);
    assert_true(endpoint_is_set(&before)); /* learned, never configured */

    assert_int_equal(tunnel_replace_peers_begin(sim.node[1].tunnel), 0);
    assert_int_equal(tunnel_replace_peers_begin(sim.node[1].tunnel), -EBUSY);
    change.fields = 0;
    assert_int_equal(tunnel_set_peer(sim.node[1].tunnel, &change), 0);
    tunnel_replace_peers_commit(sim.node[1].tunnel);
    struct endpoint after = peer_endpoint(p);
    assert_ptr_equal(sim_peer(1, 0), p);
    assert_true(endpoint_equal(&before, &after));
    assert_true(sodium_is_zero(p->handshake.preshared_key, KEY_LENGTH));
    assert_int_equal(atomic_load(&p->timers.persistent_seconds), 0);
    assert_int_equal(p->allowed_ips.count, 0); /* no prefix was named */
}

static void an_aborted_replacement_removes_nobody(void **state)
{
    (void)state;
    set_stranger(1, 0);
    assert_int_equal(tunnel_replace_peers_begin(tunnel0()), 0);
    set_stranger(2, 0);
    tunnel_replace_peers_abort(tunnel0());
    assert_int_equal(sum_of(0).peers, 3);
    assert_true(sim_carries(0, 1));
    assert_int_equal(tunnel_replace_peers_begin(tunnel0()), 0);
    tunnel_replace_peers_commit(tunnel0());
    assert_int_equal(sum_of(0).peers, 0);
}

static void pitfall_63_replaced_allowed_ips_never_leave_a_gap(void **state)
{
    (void)state;
    static struct epoch_reader *reader;
    struct tunnel_prefix mine[2] = {{.family = 4, .length = 32, .address = {10, 0, 0, 2}},
                                    {.family = 4, .length = 24, .address = {10, 9, 9, 0}}};
    struct tunnel_peer_change change = {.fields = TUNNEL_PEER_REPLACE_ALLOWED_IPS,
                                        .prefixes = mine};
    const struct allowedips_owner *owner = &sim_peer(0, 1)->allowed_ips;
    memcpy(change.public_key, sim.node[1].public_key, KEY_LENGTH);
    reader = epoch_register(&tunnel0()->epoch);
    for (size_t i = 0; i < 50; i++) { /* gaps within a call: allowedips_test and the thread test */
        change.prefix_count = 1 + i % 2;
        assert_int_equal(tunnel_set_peer(tunnel0(), &change), 0);
        epoch_enter(&tunnel0()->epoch, reader);
        assert_ptr_equal(allowedips_lookup4(tunnel0()->allowed_ips, mine[0].address), owner);
        assert_ptr_equal(allowedips_lookup4(tunnel0()->allowed_ips, mine[1].address),
                         change.prefix_count == 2 ? owner : NULL);
        epoch_leave(reader);
        assert_int_equal(owner->count, change.prefix_count);
    }
    assert_true(sim_carries(0, 1));
}

static void prefixes_move_between_peers_and_update_only_creates_nobody(void **state)
{
    (void)state;
    struct tunnel_prefix all = {.family = 4, .length = 32, .address = {10, 0, 0, 2}};
    struct tunnel_peer_change change = {.prefixes = &all, .prefix_count = 1};
    stranger_key(1, change.public_key);
    change.fields = TUNNEL_PEER_UPDATE_ONLY;
    assert_int_equal(tunnel_set_peer(tunnel0(), &change), 0);
    assert_int_equal(sum_of(0).peers, 1);
    change.fields = TUNNEL_PEER_REMOVE;
    assert_int_equal(tunnel_set_peer(tunnel0(), &change), 0);
    assert_int_equal(sum_of(0).peers, 1);
    change.fields = 0;
    assert_int_equal(tunnel_set_peer(tunnel0(), &change), 0);
    assert_int_equal(sim_peer(0, 1)->allowed_ips.count, 1); /* IPv6 is left */
    assert_false(sim_carries(0, 1));
    all.remove = true; /* not held by node 1: no effect */
    memcpy(change.public_key, sim.node[1].public_key, KEY_LENGTH);
    assert_int_equal(tunnel_set_peer(tunnel0(), &change), 0);
    assert_int_equal(sum_of(0).prefixes, 2);
    all.remove = false;
    assert_int_equal(tunnel_set_peer(tunnel0(), &change), 0);
    assert_true(sim_carries(0, 1));
}

static void what_is_malformed_is_refused(void **state)
{
    (void)state;
    static const struct tunnel_prefix bad[] = {
        {.family = 4, .length = 33}, {.family = 6, .length = 129}, {.family = 5, .length = 1}};
    struct tunnel_peer_change change = {.prefix_count = 1};
    memcpy(change.public_key, sim.node[1].public_key, KEY_LENGTH);
    for (size_t i = 0; i < 3; i++) {
        change.prefixes = &bad[i];
        assert_int_equal(tunnel_set_peer(tunnel0(), &change), -EINVAL);
    }
    change.prefix_count = 0;
    change.fields = TUNNEL_PEER_ENDPOINT; /* of no family */
    assert_int_equal(tunnel_set_peer(tunnel0(), &change), -EINVAL);
    assert_true(sim_carries(0, 1));
}

/* ---- the link ------------------------------------------------------------------------------ */

static void pitfall_61_a_link_that_is_down_neither_sends_nor_receives(void **state)
{
    (void)state;
    struct tunnel_stats stats;
    sim_add_peer(0, 1, true, 10);
    sim_settle();
    sim.node[0].link_down = true;
    tunnel_follow_link(tunnel0());
    sim_settle();
    tunnel_get_stats(tunnel0(), &stats);
    assert_int_equal(stats.sessions, 0);
    assert_int_equal(index_table_count(tunnel0()->indices), 0);
    sim.node[0].sent_datagrams = 0;
    assert_false(sim_carries(1, 0));
    assert_false(sim_carries(0, 1));
    sim_advance(SECONDS(300));
    assert_int_equal(sim.node[0].sent_datagrams, 0);
    assert_int_equal(atomic_load(&tunnel0()->staged_bytes), 0);
    assert_true(sim_drops(0, DROP_LINK_DOWN) > 0);

    sim.node[0].link_down = false;
    tunnel_follow_link(tunnel0()); /* the persistent keepalive goes out by itself */
    sim_settle();
    assert_int_equal(sim.node[0].sent_by_type[MESSAGE_INITIATION], 1);
    assert_non_null(atomic_load(&sim_peer(0, 1)->current_session));
    assert_true(sim_carries(0, 1));
    assert_true(sim_carries(1, 0));
}

static void pitfall_64_the_port_changes_while_running(void **state)
{
    (void)state;
    struct tunnel_device_change change = {.fields = TUNNEL_DEVICE_LISTEN_PORT, .listen_port = 53};
    struct tunnel_device_state device;
    assert_int_equal(tunnel_set_device(tunnel0(), &change), 0);
    tunnel_get_device(tunnel0(), &device);
    assert_int_equal(device.listen_port, 53);
    assert_true(sim_carries(0, 1));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, connected, stop)
    const struct CMUnitTest tests[] = {
        CASE(pitfall_63_ten_thousand_peers_replaced_by_themselves_touch_nothing),
        CASE(pitfall_65_an_idle_peer_costs_2_kib_at_most),
        CASE(pitfall_65_a_peer_with_live_sessions_costs_6_kib_at_most),
        CASE(pitfall_65_staged_packets_are_capped_at_16_mb_over_all_peers),
        CASE(pitfall_56_the_same_endpoint_again_keeps_the_source),
        CASE(pitfall_63_a_replacement_keeps_the_learned_endpoint_and_resets_the_rest),
        CASE(an_aborted_replacement_removes_nobody),
        CASE(pitfall_63_replaced_allowed_ips_never_leave_a_gap),
        CASE(prefixes_move_between_peers_and_update_only_creates_nobody),
        CASE(what_is_malformed_is_refused),
        CASE(pitfall_61_a_link_that_is_down_neither_sends_nor_receives),
        CASE(pitfall_64_the_port_changes_while_running),
    };
    return cmocka_run_group_tests_name("configuration", tests, NULL, NULL);
}
