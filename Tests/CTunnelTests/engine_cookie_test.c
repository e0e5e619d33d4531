/* SPDX-License-Identifier: Apache-2.0 */
/* Handshakes of strangers, floods and changed identities, between whole engines. */
#include "simulation.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka.h needs the two above */
#include <cmocka.h>

#define TYPE(name) (1u << MESSAGE_##name)

static int strangers(void **state)
{
    (void)state;
    sim_start(3, NULL);
    sim_add_peer(0, 1, true, 0);
    sim_add_peer(1, 0, false, 0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    sim_stop();
    return 0;
}

static uint16_t endpoint_port(int a, int b)
{
    return ntohs(peer_endpoint(sim_peer(a, b)).remote.v4.sin_port);
}

/* The initiation that node 0 has just sent to node 1, which did not get it. */
static struct sim_datagram *lost_initiation(void)
{
    sim.copied = sim.lost = TYPE(INITIATION);
    sim_send(0, 1, 1);
    sim_settle();
    sim.copied = sim.lost = 0;
    struct sim_datagram *d = sim_pop(&sim.copies);
    assert_non_null(d);
    return d;
}

/* Who gets no answer for so long begins anew: the work would be for nothing. */
static void a_message_that_waited_too_long_is_left_alone(void **state)
{
    (void)state;
    struct thread *t = &sim.node[1].tunnel->worker[0].primary;
    struct sim_datagram *d = lost_initiation();
    sim_arrive(sim_copy(d));
    receive_batch(t, &t->sockets->v4);
    sim.now += STALE_HANDSHAKE;
    sim_settle();
    assert_int_equal(sim_drops(1, DROP_HANDSHAKE_STALE), 1);
    assert_int_equal(sim.node[1].sent_datagrams, 0);
    sim_arrive(d);
    receive_batch(t, &t->sockets->v4);
    sim.now += STALE_HANDSHAKE - 1;
    while (handshake_step(&sim.node[1].tunnel->handshake, false))
        ;
    assert_int_equal(sim_drops(1, DROP_HANDSHAKE_STALE), 1);
    assert_int_equal(sim.node[1].sent_by_type[MESSAGE_RESPONSE], 1);
}

/* ---- pitfall 51 ---------------------------------------------------------------------------- */

/* As many copies as make node 1 feel under load, from node 2's address. */
static void flood(const struct sim_datagram *message)
{
    for (unsigned i = 0; i < UNDER_LOAD_QUEUE; i++) {
        struct sim_datagram *d = sim_copy(message);
        sim_address(&d->from, AF_INET, 2, (uint16_t)(10000 + i));
        sim_arrive(d);
    }
}

static void pitfall_51_a_bad_mac1_meets_silence(void **state)
{
    (void)state;
    struct sim_datagram *d = lost_initiation();
    for (size_t byte = 4; byte < offsetof(struct message_initiation, macs.mac2); byte++) {
        struct sim_datagram *bad = sim_copy(d);
        bad->data[byte] ^= 1;
        sim_arrive(bad);
    }
    sim_settle();
    assert_int_equal(sim.node[1].sent_datagrams, 0);
    assert_int_equal(sim_drops(1, DROP_MAC1_INVALID), 148 - 16 - 4);
    for (size_t i = 0; i < UNDER_LOAD_QUEUE + 10; i++) { /* neither under load */
        struct sim_datagram *bad = sim_copy(d);
        bad->data[140] ^= 1; /* mac2: not looked at yet */
        bad->data[120] ^= 1; /* mac1 */
        sim_arrive(bad);
    }
    sim_settle();
    assert_int_equal(sim.node[1].sent_datagrams, 0);
    free(d);
}

static void pitfall_51_under_load_only_cookie_replies_of_64_bytes_are_sent(void **state)
{
    (void)state;
    struct sim_datagram *d = lost_initiation();
    sim.train_count = 0;
    flood(d);
    sim_settle();
    assert_int_equal(sim.train_count, UNDER_LOAD_QUEUE);
    for (size_t i = 0; i < sim.train_count; i++) {
        assert_int_equal(sim.train[i].node, 1);
        assert_int_equal(sim.train[i].type, MESSAGE_COOKIE_REPLY);
        assert_int_equal(sim.train[i].length, 64);
        assert_int_equal(ntohs(((struct sockaddr_in *)&sim.train[i].to)->sin_port), 10000 + i);
    }
    assert_int_equal(sim_drops(1, DROP_MAC2_MISSING), UNDER_LOAD_QUEUE);
    struct tunnel_stats stats;
    tunnel_get_stats(sim.node[1].tunnel, &stats);
    assert_int_equal(stats.cookie_replies_sent, UNDER_LOAD_QUEUE);
    assert_int_equal(stats.sessions, 0);
    /* The handshake thread asks the kernel once per batch. */
    assert_int_equal(counter_get(&sim.node[1].tunnel->handshake.counters.tx.system_calls),
                     UNDER_LOAD_QUEUE / HANDSHAKE_BATCH);

    sim_advance(UNDER_LOAD_HOLD); /* it is over: handshakes go on as before */
    sim_arrive(d);
    sim_settle();
    assert_int_equal(sim.node[1].sent_by_type[MESSAGE_RESPONSE], 1);
}

/* Node 0 meets node 1 under load twice: gets a cookie, then uses it. Returns the second initiation,
 * which did not arrive. */
static struct sim_datagram *initiation_with_cookie(void)
{
    struct sim_datagram *first = lost_initiation();
    flood(first);
    sim_arrive(first); /* from its true address, behind the flood */
    sim_settle();
    assert_int_equal(sim.node[1].sent_by_type[MESSAGE_RESPONSE], 0);
    sim.copied = sim.lost = TYPE(INITIATION);
    sim_advance(SECONDS(6)); /* the retry carries mac2 */
    sim.copied = sim.lost = 0;
    struct sim_datagram *second = sim_pop(&sim.copies);
    const struct message_initiation *m = (struct message_initiation *)second->data;
    assert_false(sodium_is_zero(m->macs.mac2, MAC_LENGTH));
    return second;
}

static void pitfall_51_a_cookie_opens_the_door_under_load(void **state)
{
    (void)state;
    struct sim_datagram *d = initiation_with_cookie();
    flood(d);
    sim_arrive(d);
    sim_settle();
    assert_int_equal(sim.node[1].sent_by_type[MESSAGE_RESPONSE], 1);
    assert_int_equal(sim_take(1), 1); /* the packet that waited */
}

static void pitfall_51_a_cookie_is_bound_to_address_and_port(void **state)
{
    (void)state;
    struct sim_datagram *d = initiation_with_cookie();
    struct sim_datagram *other_port = sim_copy(d), *other_address = sim_copy(d);
    sim_from_port(other_port, SIM_PORT + 1);
    sim_address(&other_address->from, AF_INET, 2, SIM_PORT);
    flood(d);
    uint64_t before = sim_drops(1, DROP_MAC2_MISSING);
    sim_arrive(other_port);
    sim_arrive(other_address);
    sim_settle();
    assert_int_equal(sim_drops(1, DROP_MAC2_MISSING) - before, UNDER_LOAD_QUEUE + 2);
    assert_int_equal(sim.node[1].sent_by_type[MESSAGE_RESPONSE], 0);
    free(d);
}

static void under_load_one_source_is_served_20_times_a_second_at_most(void **state)
{
    (void)state;
    struct sim_datagram *d = initiation_with_cookie();
    flood(d);
    for (int i = 0; i < 50; i++)
        sim_arrive(sim_copy(d));
    free(d);
    sim_settle();
    assert_int_equal(sim_drops(1, DROP_RATE_LIMITED), 45); /* a burst of 5 */
    assert_int_equal(sim_drops(1, DROP_HANDSHAKE_REPLAYED), 4);
}

static bool move_cookie_replies(struct sim_datagram *d, void *context)
{
    (void)context;
    if (sim_type(d) == MESSAGE_COOKIE_REPLY)
        sim_from_port(d, 6666);
    return true;
}

static void pitfall_45_a_valid_cookie_reply_never_moves_the_endpoint(void **state)
{
    (void)state;
    sim.filter = move_cookie_replies;
    struct sim_datagram *d = initiation_with_cookie(); /* it was valid: mac2 is there */
    assert_int_equal(endpoint_port(0, 1), SIM_PORT);
    free(d);
}

static void pitfall_45_only_a_valid_initiation_moves_the_endpoint(void **state)
{
    (void)state;
    assert_true(sim_carries(0, 1));
    sim_advance(SECONDS(200));
    struct sim_datagram *d = lost_initiation();
    struct sim_datagram *forged = sim_copy(d);
    struct message_initiation *f = (struct message_initiation *)forged->data;
    struct cookie_sender sender;
    f->encrypted_timestamp[3] ^= 1; /* with a mac1 that is right */
    cookie_sender_init(&sender, sim.node[1].public_key);
    cookie_add_macs(&sender, f, sizeof *f, sim.now);
    sim_from_port(forged, 5001);
    sim_arrive(forged);
    sim_settle();
    assert_int_equal(sim_drops(1, DROP_HANDSHAKE_INVALID), 1);
    assert_int_equal(endpoint_port(1, 0), SIM_PORT);
    sim_from_port(d, 5002);
    sim.lost = TYPE(RESPONSE); /* or data from the true port would move it back */
    sim_arrive(d);
    sim_settle();
    assert_int_equal(endpoint_port(1, 0), 5002);
}

static void an_unknown_peer_gets_no_answer(void **state)
{
    (void)state;
    sim_add_peer(2, 1, true, 0); /* node 1 does not know node 2 */
    assert_false(sim_carries(2, 1));
    assert_int_equal(sim.node[1].sent_datagrams, 0);
    assert_int_equal(sim_drops(1, DROP_HANDSHAKE_UNKNOWN_PEER), 1);
}

/* ---- keys that do not fit ------------------------------------------------------------------ */

static void set_preshared_key(int a, int b, uint8_t byte)
{
    struct tunnel_peer_change change = {.fields = TUNNEL_PEER_PRESHARED_KEY};
    memset(change.preshared_key, byte, sizeof change.preshared_key);
    memcpy(change.public_key, sim.node[b].public_key, KEY_LENGTH);
    assert_int_equal(tunnel_set_peer(sim.node[a].tunnel, &change), 0);
}

static void different_preshared_keys_never_establish(void **state)
{
    (void)state;
    static const uint8_t keys[][2] = {{1, 0}, {0, 1}, {1, 2}};
    for (size_t i = 0; i < 3; i++) {
        set_preshared_key(0, 1, keys[i][0]);
        set_preshared_key(1, 0, keys[i][1]);
        sim_send(0, 1, 1);
        sim_send(1, 0, 2);
        sim_advance(SECONDS(130));
        assert_null(atomic_load(&sim_peer(0, 1)->current_session));
        assert_null(atomic_load(&sim_peer(1, 0)->current_session));
    }
    assert_int_equal(sim.node[0].delivered.count + sim.node[1].delivered.count, 0);
    assert_int_equal(sim.node[0].sent_by_type[MESSAGE_DATA], 0);
    assert_int_equal(sim.node[1].sent_by_type[MESSAGE_DATA], 0);
    set_preshared_key(0, 1, 2);
    assert_true(sim_carries(0, 1));
}

static void a_peer_removed_during_its_handshake_is_gone(void **state)
{
    (void)state;
    struct tunnel_peer_change remove = {.fields = TUNNEL_PEER_REMOVE};
    memcpy(remove.public_key, sim.node[1].public_key, KEY_LENGTH);
    sim.copied = sim.lost = TYPE(RESPONSE);
    for (uint32_t i = 0; i < 10; i++)
        sim_send(0, 1, i);
    sim_settle();
    assert_true(atomic_load(&sim.node[0].tunnel->staged_bytes) > 0);
    assert_int_equal(tunnel_set_peer(sim.node[0].tunnel, &remove), 0);
    assert_int_equal(atomic_load(&sim.node[0].tunnel->staged_bytes), 0);
    sim.lost = 0;
    sim_arrive(sim_pop(&sim.copies)); /* the answer, too late */
    sim_settle();
    assert_int_equal(sim_drops(0, DROP_UNKNOWN_INDEX), 1);
    assert_int_equal(index_table_count(sim.node[0].tunnel->indices), 0);

    sim_add_peer(0, 1, true, 0); /* and once more, with the initiation still in the queue */
    sim_send(0, 1, 1);
    send_batch(&sim.node[0].tunnel->worker[0].primary);
    uint64_t before = sim.node[0].sent_datagrams;
    assert_int_equal(tunnel_set_peer(sim.node[0].tunnel, &remove), 0);
    sim_advance(SECONDS(200));
    assert_int_equal(sim.node[0].sent_datagrams, before);
}

static void our_own_public_key_is_ignored_as_a_peer(void **state)
{
    (void)state;
    struct tunnel_device_state device;
    struct tunnel_peer_change change = {.fields = TUNNEL_PEER_KEEPALIVE, .keepalive = 1};
    memcpy(change.public_key, sim.node[0].public_key, KEY_LENGTH);
    assert_int_equal(tunnel_set_peer(sim.node[0].tunnel, &change), 0);
    tunnel_get_device(sim.node[0].tunnel, &device);
    assert_int_equal(device.peer_count, 1);

    /* a private key that makes a peer ourselves removes that peer */
    struct tunnel_device_change key = {.fields = TUNNEL_DEVICE_PRIVATE_KEY};
    memcpy(key.private_key, sim.node[1].private_key, KEY_LENGTH);
    assert_int_equal(tunnel_set_device(sim.node[0].tunnel, &key), 0);
    tunnel_get_device(sim.node[0].tunnel, &device);
    assert_int_equal(device.peer_count, 0);
}

/* ---- the private key changes --------------------------------------------------------------- */

static void set_private_key(int node, const uint8_t *private_key)
{
    struct tunnel_device_change change = {.fields = TUNNEL_DEVICE_PRIVATE_KEY};
    struct tunnel_device_state device;
    memcpy(change.private_key, private_key, KEY_LENGTH);
    assert_int_equal(tunnel_set_device(sim.node[node].tunnel, &change), 0);
    tunnel_get_device(sim.node[node].tunnel, &device);
    memcpy(sim.node[node].public_key, device.public_key, KEY_LENGTH);
}

static void a_new_private_key_ends_sending_under_the_old_one_at_once(void **state)
{
    (void)state;
    uint8_t key[KEY_LENGTH];
    sim_connect(0, 1);
    struct session *old = atomic_load(&sim_peer(0, 1)->current_session);
    struct sim_datagram *from_before = sim_sealed(1, 0, 9);
    randombytes_buf(key, sizeof key);
    sim_send(0, 1, 1);
    sim_settle();
    set_private_key(0, key);
    assert_false(session_can_send(old, sim.now));
    uint64_t data = sim.node[0].sent_by_type[MESSAGE_DATA];
    sim_send(0, 1, 2);
    sim_settle();
    assert_int_equal(sim.node[0].sent_by_type[MESSAGE_DATA], data); /* staged */
    assert_int_equal(sim_drops(1, DROP_HANDSHAKE_UNKNOWN_PEER), 1);
    sim_arrive(from_before); /* what was on its way is still taken */
    sim_settle();
    assert_int_equal(sim_take(0), 9);

    sim_add_peer(1, 0, false, 0); /* node 1 learns the new key; the prefixes move to it */
    sim_advance(SECONDS(6));
    assert_int_equal(sim_take(1), 1);
    assert_int_equal(sim_take(1), 2);
    assert_true(sim_carries(0, 1));
    assert_true(sim_carries(1, 0));
}

static void the_same_private_key_again_changes_nothing(void **state)
{
    (void)state;
    sim_connect(0, 1);
    struct session *s = atomic_load(&sim_peer(0, 1)->current_session);
    set_private_key(0, sim.node[0].private_key);
    assert_true(sim_carries(0, 1));
    assert_ptr_equal(atomic_load(&sim_peer(0, 1)->current_session), s);
    assert_int_equal(sim.node[0].sent_by_type[MESSAGE_INITIATION], 0);
}

static void without_a_private_key_nothing_is_said(void **state)
{
    (void)state;
    static const uint8_t none[KEY_LENGTH];
    sim_add_peer(1, 0, true, 0);
    set_private_key(0, none);
    assert_false(sim_carries(0, 1));
    assert_false(sim_carries(1, 0));
    sim_advance(SECONDS(20));
    assert_int_equal(sim.node[0].sent_datagrams, 0);
    assert_true(sim.node[1].sent_by_type[MESSAGE_INITIATION] > 1);
    set_private_key(0, sim.node[0].private_key);
    sim_advance(SECONDS(1));
    assert_true(sim_carries(0, 1));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, strangers, stop)
    const struct CMUnitTest tests[] = {
        CASE(a_message_that_waited_too_long_is_left_alone),
        CASE(pitfall_51_a_bad_mac1_meets_silence),
        CASE(pitfall_51_under_load_only_cookie_replies_of_64_bytes_are_sent),
        CASE(pitfall_51_a_cookie_opens_the_door_under_load),
        CASE(pitfall_51_a_cookie_is_bound_to_address_and_port),
        CASE(under_load_one_source_is_served_20_times_a_second_at_most),
        CASE(pitfall_45_a_valid_cookie_reply_never_moves_the_endpoint),
        CASE(pitfall_45_only_a_valid_initiation_moves_the_endpoint),
        CASE(an_unknown_peer_gets_no_answer),
        CASE(different_preshared_keys_never_establish),
        CASE(a_peer_removed_during_its_handshake_is_gone),
        CASE(our_own_public_key_is_ignored_as_a_peer),
        CASE(a_new_private_key_ends_sending_under_the_old_one_at_once),
        CASE(the_same_private_key_again_changes_nothing),
        CASE(without_a_private_key_nothing_is_said),
    };
    return cmocka_run_group_tests_name("engine: cookies and identities", tests, NULL, NULL);
}
