/* SPDX-License-Identifier: Apache-2.0 */
/* Handshakes and what times them, between whole engines under a virtual clock. */
#include "simulation.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka.h needs the two above */
#include <cmocka.h>

#define TYPE(name) (1u << MESSAGE_##name)

static int strangers(void **state)
{
    (void)state;
    sim_start(2, NULL);
    sim_add_peer(0, 1, true, 0);
    sim_add_peer(1, 0, false, 0);
    return 0;
}

static int connected(void **state)
{
    strangers(state);
    sim_connect(0, 1);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    sim_stop();
    return 0;
}

static uint64_t initiations(int node)
{
    return sim.node[node].sent_by_type[MESSAGE_INITIATION];
}

static uint32_t sessions(int node)
{
    struct tunnel_stats stats;
    tunnel_get_stats(sim.node[node].tunnel, &stats);
    return stats.sessions;
}

/* ---- initiation, retries, giving up -------------------------------------------------------- */

static uint64_t initiation_times[SIM_TRAINS];
static size_t initiation_count;

static bool note_initiation(struct sim_datagram *d, void *context)
{
    if (sim_type(d) == MESSAGE_INITIATION)
        initiation_times[initiation_count++] = sim.now;
    return !context || sim_type(d) != MESSAGE_INITIATION;
}

static void assert_one_initiation_per_5_seconds(void)
{
    for (size_t i = 1; i < initiation_count; i++) {
        uint64_t gap = initiation_times[i] - initiation_times[i - 1];
        assert_in_range(gap, REKEY_TIMEOUT, REKEY_TIMEOUT + REKEY_TIMEOUT_JITTER);
    }
}

static void pitfall_41_unanswered_one_initiation_per_5_seconds_under_full_load(void **state)
{
    (void)state;
    sim.filter = note_initiation;
    sim.filter_context = &sim; /* and lose it */
    initiation_count = 0;
    for (uint32_t i = 0; i < 3000; i++) {
        sim_send(0, 1, i);
        sim_advance(NSEC_PER_SEC / 100);
    }
    assert_in_range(initiation_count, 5, 6); /* 30 s */
    assert_one_initiation_per_5_seconds();
}

static void pitfall_41_an_unanswered_rekey_loses_nothing_until_180_seconds(void **state)
{
    (void)state;
    uint32_t sent = 0;
    sim_advance(SECONDS(100));
    sim.filter = note_initiation;
    sim.filter_context = &sim;
    initiation_count = 0;
    for (int i = 0; i < 790; i++) { /* to 179 s */
        sim_send(0, 1, sent++);
        sim_send(1, 0, sent);
        sim_advance(NSEC_PER_SEC / 10);
    }
    assert_int_equal(sim.node[1].delivered.count, 790);
    assert_int_equal(sim.node[0].delivered.count, 790);
    assert_in_range(initiation_count, 11, 12); /* 120 … 179 s */
    assert_one_initiation_per_5_seconds();
}

static void pitfall_41_a_receiver_that_sends_nothing_rekeys_at_165_seconds(void **state)
{
    (void)state;
    sim_advance(SECONDS(164)); /* nothing was sent since the keepalive at 10 s */
    sim_send(1, 0, 1);
    sim_settle();
    assert_int_equal(initiations(0), 0);
    sim_advance(SECONDS(1));
    sim_send(1, 0, 2);
    sim_settle();
    assert_int_equal(initiations(0), 1);
    assert_int_equal(initiations(1), 0);
    sim_send(1, 0, 3);
    sim_settle();
    assert_int_equal(sim.node[0].delivered.count, 3);
    assert_int_equal(initiations(0), 1);
}

static void an_unanswered_handshake_is_given_up_after_90_seconds(void **state)
{
    (void)state;
    sim.lost = TYPE(INITIATION);
    for (uint32_t i = 0; i < 3; i++)
        sim_send(0, 1, i);
    sim_advance(SECONDS(90));
    assert_int_equal(sim_drops(0, DROP_STAGED_GIVEN_UP), 0);
    sim_advance(SECONDS(20)); /* 20 rounds of 5 to 5.334 s */
    assert_int_equal(initiations(0), 20);
    assert_int_equal(sim_drops(0, DROP_STAGED_GIVEN_UP), 3);
    assert_int_equal(atomic_load(&sim.node[0].tunnel->staged_bytes), 0);
    sim_advance(SECONDS(3600));
    assert_int_equal(initiations(0), 20);
    sim.lost = 0;
    assert_true(sim_carries(0, 1)); /* new data begins anew */
    assert_int_equal(initiations(0), 21);
}

static void a_lost_response_is_made_good_by_the_retry(void **state)
{
    (void)state;
    sim.lost = TYPE(RESPONSE);
    sim_send(0, 1, 5);
    sim_advance(SECONDS(4));
    sim.lost = 0;
    assert_int_equal(sim.node[1].delivered.count, 0);
    sim_advance(SECONDS(2));
    assert_int_equal(sim_take(1), 5);
    assert_int_equal(initiations(0), 2);
}

static void simultaneous_initiations_recover(void **state)
{
    (void)state;
    sim_add_peer(1, 0, true, 0);
    sim_send(0, 1, 1);
    sim_send(1, 0, 2);
    sim_settle();
    assert_int_equal(initiations(0) + initiations(1), 2); /* both, before either saw the other's */
    sim_advance(SECONDS(60));
    assert_int_equal(sim_take(1), 1);
    assert_int_equal(sim_take(0), 2);
    assert_in_range(initiations(0) + initiations(1), 3, 8);
    assert_true(sim_carries(0, 1));
    assert_true(sim_carries(1, 0));
}

static void handshake_messages_carry_tos_0x88(void **state)
{
    (void)state;
    assert_true(sim_carries(0, 1));
    assert_int_equal(sim.train[0].type, MESSAGE_INITIATION);
    assert_int_equal(sim.train[0].tos, 0x88);
    assert_int_equal(sim.train[0].length, 148);
    assert_int_equal(sim.train[1].type, MESSAGE_RESPONSE);
    assert_int_equal(sim.train[1].tos, 0x88);
    assert_int_equal(sim.train[1].length, 92);
}

/* ---- silence ------------------------------------------------------------------------------- */

static void data_is_acknowledged_by_a_keepalive_after_10_seconds(void **state)
{
    (void)state;
    sim_advance(SECONDS(10) - 1);
    assert_int_equal(sim.node[1].sent_datagrams, 0);
    sim_advance(1);
    assert_int_equal(sim.node[1].sent_by_type[MESSAGE_DATA], 1);
    assert_int_equal(sim.train[0].length, 32);
    sim_advance(SECONDS(1000));
    assert_int_equal(sim.node[0].sent_datagrams + sim.node[1].sent_datagrams, 1);
}

static void no_answer_for_15_seconds_begins_a_handshake(void **state)
{
    (void)state;
    sim_advance(SECONDS(20));
    sim.lost = TYPE(DATA); /* one way: the other end is gone, say */
    sim_send(0, 1, 1);
    sim_advance(SECONDS(15) - 1);
    assert_int_equal(initiations(0), 0);
    sim_advance(REKEY_TIMEOUT_JITTER);
    assert_int_equal(initiations(0), 1);
}

static void persistent_keepalives_come_exactly_every_interval(void **state)
{
    (void)state;
    sim_advance(SECONDS(20));
    sim.train_count = 0;
    sim_add_peer(0, 1, true, 25);
    sim_settle();
    assert_int_equal(sim.train_count, 1); /* at once, then every 25 s */
    for (size_t i = 1; i <= 3; i++) {
        sim_advance(SECONDS(25) - 1);
        assert_int_equal(sim.train_count, i);
        sim_advance(1);
        assert_int_equal(sim.train_count, i + 1);
    }
    assert_int_equal(initiations(0), 0);
}

/* ---- keys: order of use, age --------------------------------------------------------------- */

static void pitfall_40_unconfirmed_keys_are_not_used_and_the_previous_still_decrypt(void **state)
{
    (void)state;
    struct session *old = atomic_load(&sim_peer(1, 0)->current_session);
    sim_advance(SECONDS(130)); /* an idle session has not been renewed */
    struct sim_datagram *late = sim_sealed(0, 1, 77);
    sim.lost = TYPE(DATA);
    sim_send(0, 1, 1); /* rekeys; the data that confirms is lost */
    sim_settle();
    sim_send(0, 1, 2);
    sim_settle();
    assert_non_null(atomic_load(&sim_peer(1, 0)->next_session));
    sim_discard(&sim.copies);
    sim.copied = TYPE(DATA);
    sim.lost = 0;
    sim_send(1, 0, 3); /* the responder: still under the old key */
    sim_settle();
    assert_int_equal(sim.copies.count, 1);
    uint32_t receiver;
    memcpy(&receiver, sim.copies.head->data + 4, 4);
    assert_int_equal(receiver, old->remote_index);
    assert_int_equal(sim_take(0), 3); /* the initiator's previous key decrypts */
    assert_true(sim_carries(0, 1));   /* confirms */
    assert_null(atomic_load(&sim_peer(1, 0)->next_session));
    assert_ptr_equal(atomic_load(&sim_peer(1, 0)->previous_session), old);
    sim_arrive(late);
    sim_settle();
    assert_int_equal(sim_take(1), 77);
}

static void pitfall_43_after_180_seconds_nothing_is_encrypted_or_decrypted(void **state)
{
    (void)state;
    sim_advance(SECONDS(179));
    struct sim_datagram *in_time = sim_sealed(0, 1, 1), *late = sim_sealed(0, 1, 2);
    sim_arrive(in_time);
    sim_settle();
    assert_int_equal(sim_take(1), 1);
    sim_advance(SECONDS(1));
    sim_arrive(late);
    sim_settle();
    assert_int_equal(sim_take(1), -1);
    assert_int_equal(sim_drops(1, DROP_SESSION_EXPIRED), 1);

    sim.lost = TYPE(INITIATION);
    uint64_t before = sim.node[0].sent_by_type[MESSAGE_DATA];
    sim_send(0, 1, 3);
    sim_settle();
    assert_int_equal(sim.node[0].sent_by_type[MESSAGE_DATA], before);
    assert_int_equal(initiations(0), 1);
}

static void pitfall_43_after_540_seconds_no_session_is_left(void **state)
{
    (void)state;
    sim_advance(SECONDS(540) - 1);
    assert_int_equal(sessions(0) + sessions(1), 2);
    sim_advance(1);
    for (int i = 0; i < 2; i++) {
        struct noise_handshake *h = &sim_peer(i, !i)->handshake;
        assert_int_equal(sessions(i), 0);
        assert_int_equal(index_table_count(sim.node[i].tunnel->indices), 0);
        assert_null(sim.node[i].tunnel->epoch.retired_head); /* zeroed and freed already */
        assert_true(sodium_is_zero(h->ephemeral_private, KEY_LENGTH));
        assert_true(sodium_is_zero(h->chaining_key, HASH_LENGTH));
        assert_true(sodium_is_zero(h->hash, HASH_LENGTH));
    }
    assert_true(sim_carries(0, 1));
}

static void only_three_sessions_ever_exist(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) { /* half an hour */
        assert_true(sim_carries(0, 1));
        sim_advance(SECONDS(30));
        assert_in_range(sessions(0), 1, 2);
        assert_in_range(index_table_count(sim.node[1].tunnel->indices), 1, 3);
    }
}

/* ---- clocks -------------------------------------------------------------------------------- */

static void pitfall_54_wall_clock_jumps_change_nothing(void **state)
{
    (void)state;
    static const int64_t jumps[] = {86400, -2 * 86400, 40 * 365 * 86400ll, -50 * 365 * 86400ll};
    struct session *s = atomic_load(&sim_peer(0, 1)->current_session);
    for (size_t i = 0; i < 4; i++) {
        sim.wall += (uint64_t)(jumps[i] * (int64_t)NSEC_PER_SEC);
        sim_advance(SECONDS(20));
        assert_true(sim_carries(0, 1));
        assert_true(sim_carries(1, 0));
        assert_ptr_equal(atomic_load(&sim_peer(0, 1)->current_session), s);
    }
    assert_int_equal(initiations(0) + initiations(1), 0);
    sim_advance(SECONDS(110)); /* the rekey, long before the first one by the wall clock */
    assert_true(sim_carries(0, 1));
    sim_send(0, 1, 1);
    sim_settle();
    assert_ptr_not_equal(atomic_load(&sim_peer(0, 1)->current_session), s);
    assert_int_equal(sim_drops(1, DROP_HANDSHAKE_REPLAYED), 0);
}

static void pitfall_54_sleep_counts_for_the_age_of_keys(void **state)
{
    (void)state;
    sim.now += SECONDS(3600); /* suspended: no timer ran */
    sim.wall += SECONDS(3600);
    sim.copied = TYPE(DATA) | TYPE(INITIATION);
    sim_send(0, 1, 1);
    send_batch(&sim.node[0].tunnel->worker[0].primary); /* before the control thread woke */
    sim_settle();
    assert_int_equal(sim_type(sim.copies.head), MESSAGE_INITIATION);
    assert_int_equal(sim_take(1), 1);
}

/* ---- TAI64N -------------------------------------------------------------------------------- */

static void pitfall_53_a_replayed_initiation_gets_no_answer(void **state)
{
    (void)state;
    sim.copied = TYPE(INITIATION);
    assert_true(sim_carries(0, 1));
    struct sim_datagram *first = sim_pop(&sim.copies);
    sim_advance(SECONDS(125));
    assert_true(sim_carries(0, 1));
    struct sim_datagram *second = sim_pop(&sim.copies);
    uint64_t responses = sim.node[1].sent_by_type[MESSAGE_RESPONSE];
    assert_int_equal(responses, 2);
    sim_advance(SECONDS(1));
    sim_from_port(first, 4000);
    sim_arrive(first);  /* older */
    sim_arrive(second); /* equal */
    sim_settle();
    assert_int_equal(sim_drops(1, DROP_HANDSHAKE_REPLAYED), 2);
    assert_int_equal(sim.node[1].sent_by_type[MESSAGE_RESPONSE], responses);
    assert_int_equal(ntohs(peer_endpoint(sim_peer(1, 0)).remote.v4.sin_port), SIM_PORT);
    assert_true(sim_carries(1, 0));
}

static void pitfall_53_a_restart_with_an_earlier_clock_needs_the_persisted_floor(void **state)
{
    (void)state;
    uint64_t seconds;
    uint32_t nanoseconds;
    tunnel_get_timestamp_floor(sim.node[0].tunnel, &seconds, &nanoseconds);
    assert_true(seconds == 1700000000);
    sim.wall -= SECONDS(86400);
    sim_restart(0);
    sim_add_peer(0, 1, true, 0);
    assert_false(sim_carries(0, 1)); /* what the floor is for */
    assert_int_equal(sim_drops(1, DROP_HANDSHAKE_REPLAYED), 1);

    tunnel_set_timestamp_floor(sim.node[0].tunnel, seconds, nanoseconds);
    tunnel_set_timestamp_floor(sim.node[0].tunnel, 5, 5); /* only ever raises */
    sim_advance(SECONDS(6));
    sim_discard(&sim.node[1].delivered);
    assert_true(sim_carries(0, 1));
    uint64_t later;
    tunnel_get_timestamp_floor(sim.node[0].tunnel, &later, &nanoseconds);
    assert_true(later >= seconds);
}

static void pitfall_53_a_peer_added_again_after_the_clock_went_back_is_not_refused(void **state)
{
    (void)state;
    struct tunnel_peer_change remove = {.fields = TUNNEL_PEER_REMOVE};
    memcpy(remove.public_key, sim.node[1].public_key, KEY_LENGTH);
    assert_int_equal(tunnel_set_peer(sim.node[0].tunnel, &remove), 0);
    sim.wall -= SECONDS(3600);
    sim_advance(SECONDS(6));
    sim_add_peer(0, 1, true, 0);
    assert_true(sim_carries(0, 1));
    assert_int_equal(sim_drops(1, DROP_HANDSHAKE_REPLAYED), 0);
}

static void pitfall_55_indices_share_nothing_with_each_other(void **state)
{
    (void)state;
    enum { COUNT = 256 };
    static uint32_t index[COUNT];
    uint32_t ones[32] = {0};
    for (int i = 0; i < COUNT; i++) {
        assert_true(sim_carries(0, 1));
        index[i] = atomic_load(&sim_peer(0, 1)->current_session)->entry.index;
        sim_advance(SECONDS(200)); /* expired: a new handshake */
        for (int bit = 0; bit < 32; bit++)
            ones[bit] += index[i] >> bit & 1;
        for (int j = 0; j < i; j++) /* 256 of 2^32: any nearness is not chance */
            assert_true(index[i] - index[j] + 16 > 32);
    }
    for (int bit = 0; bit < 32; bit++) /* 8 standard deviations */
        assert_in_range(ones[bit], COUNT / 2 - 64, COUNT / 2 + 64);
}

static void four_workers(struct tunnel_options *options)
{
    options->workers = 4;
}

static void pitfall_35_every_session_of_a_peer_goes_to_the_same_worker(void **state)
{
    (void)state;
    unsigned worker[SIM_NODES];
    sim_start(4, four_workers);
    sim.node[0].tunnel->udp.steering = true;
    for (int i = 1; i < 4; i++) {
        sim_add_peer(0, i, true, 0);
        sim_add_peer(i, 0, false, 0);
    }
    for (int round = 0; round < 20; round++) {
        for (int i = 1; i < 4; i++) {
            assert_true(sim_carries(0, i));
            struct session *s = atomic_load(&sim_peer(0, i)->current_session);
            unsigned to = udp_steer(&sim.node[0].tunnel->udp, s->entry.index);
            if (!round)
                worker[i] = to;
            assert_int_equal(to, worker[i]);
        }
        sim_advance(SECONDS(200));
    }
    for (int i = 2; i < 4; i++) /* and peers spread */
        assert_int_not_equal(worker[i], worker[i - 1]);
    sim_stop();
}

/* Without a private key, say, or to a key of low order. */
static void a_handshake_that_cannot_begin_is_tried_once_in_five_seconds(void **state)
{
    (void)state;
    struct tunnel *tunnel = sim.node[0].tunnel;
    struct tunnel_device_change change = {.fields = TUNNEL_DEVICE_PRIVATE_KEY};
    assert_int_equal(tunnel_set_device(tunnel, &change), 0);
    struct peer *peer = sim_peer(0, 1);

    sim_send(0, 1, 1);
    sim_settle();
    uint64_t first = atomic_load(&peer->last_initiation_sent_ns);
    assert_int_equal(first, sim.now);
    sim_advance(SECONDS(4));
    sim_send(0, 1, 2);
    sim_settle();
    assert_int_equal(atomic_load(&peer->last_initiation_sent_ns), first);
    assert_int_equal(sim.node[0].sent_by_type[MESSAGE_INITIATION], 0);

    memcpy(change.private_key, sim.node[0].private_key, KEY_LENGTH);
    assert_int_equal(tunnel_set_device(tunnel, &change), 0);
    sim_send(0, 1, 3); /* the key is there: at once */
    sim_settle();
    assert_int_equal(sim.node[0].sent_by_type[MESSAGE_INITIATION], 1);
    assert_int_equal(sim.node[1].delivered.count, 3);
}

int main(void)
{
#define NEW(name)  cmocka_unit_test_setup_teardown(name, strangers, stop)
#define PAIR(name) cmocka_unit_test_setup_teardown(name, connected, stop)
    const struct CMUnitTest tests[] = {
        NEW(pitfall_41_unanswered_one_initiation_per_5_seconds_under_full_load),
        PAIR(pitfall_41_an_unanswered_rekey_loses_nothing_until_180_seconds),
        PAIR(pitfall_41_a_receiver_that_sends_nothing_rekeys_at_165_seconds),
        NEW(an_unanswered_handshake_is_given_up_after_90_seconds),
        NEW(a_lost_response_is_made_good_by_the_retry),
        NEW(a_handshake_that_cannot_begin_is_tried_once_in_five_seconds),
        NEW(simultaneous_initiations_recover),
        NEW(handshake_messages_carry_tos_0x88),
        PAIR(data_is_acknowledged_by_a_keepalive_after_10_seconds),
        PAIR(no_answer_for_15_seconds_begins_a_handshake),
        PAIR(persistent_keepalives_come_exactly_every_interval),
        PAIR(pitfall_40_unconfirmed_keys_are_not_used_and_the_previous_still_decrypt),
        PAIR(pitfall_43_after_180_seconds_nothing_is_encrypted_or_decrypted),
        PAIR(pitfall_43_after_540_seconds_no_session_is_left),
        PAIR(only_three_sessions_ever_exist),
        PAIR(pitfall_54_wall_clock_jumps_change_nothing),
        PAIR(pitfall_54_sleep_counts_for_the_age_of_keys),
        NEW(pitfall_53_a_replayed_initiation_gets_no_answer),
        PAIR(pitfall_53_a_restart_with_an_earlier_clock_needs_the_persisted_floor),
        PAIR(pitfall_53_a_peer_added_again_after_the_clock_went_back_is_not_refused),
        PAIR(pitfall_55_indices_share_nothing_with_each_other),
        cmocka_unit_test(pitfall_35_every_session_of_a_peer_goes_to_the_same_worker),
    };
    return cmocka_run_group_tests_name("engine: handshake", tests, NULL, NULL);
}
