/* SPDX-License-Identifier: Apache-2.0 */
/* Where the engine believes a peer to be, and from which of its own addresses it answers. */
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

static int stop(void **state)
{
    (void)state;
    sim_stop();
    return 0;
}

static uint16_t endpoint_port(int a, int b)
{
    struct endpoint e = peer_endpoint(sim_peer(a, b));
    return ntohs(e.remote.v4.sin_port);
}

/* ---- where the peer is --------------------------------------------------------------------- */

static void pitfall_45_endpoint_follows_the_latest_valid_packet_of_a_batch(void **state)
{
    (void)state;
    struct sim_datagram *d[5];
    for (uint16_t i = 0; i < 5; i++) {
        d[i] = sim_sealed(0, 1, i);
        sim_from_port(d[i], (uint16_t)(2000 + i));
    }
    d[3]->data[30] ^= 1;                          /* not authentic */
    memcpy(d[4]->data, d[0]->data, d[0]->length); /* a replay from elsewhere */
    for (int i = 0; i < 5; i++)
        sim_arrive(d[i]);
    sim_settle();
    assert_int_equal(endpoint_port(1, 0), 2002);
    assert_int_equal(sim.node[1].delivered.count, 3);
}

static void pitfall_45_endpoint_follows_keepalives_too(void **state)
{
    (void)state;
    struct sim_datagram *d = sim_seal(0, 1, NULL, 0, 0);
    sim_from_port(d, 2600);
    sim_arrive(d);
    sim_settle();
    assert_int_equal(endpoint_port(1, 0), 2600);
}

static void pitfall_45_roaming_between_address_families_is_followed(void **state)
{
    (void)state;
    struct sim_datagram *d = sim_sealed(0, 1, 1);
    sim_address(&d->from, AF_INET6, 0, 999);
    sim_address(&d->to, AF_INET6, 1, SIM_PORT);
    sim_arrive(d);
    sim_settle();
    assert_int_equal(peer_endpoint(sim_peer(1, 0)).remote.family, AF_INET6);
    sim.train_count = 0;
    assert_true(sim_carries(1, 0));
    assert_int_equal(sim.train[0].to.ss_family, AF_INET6);
    assert_int_equal(ntohs(((struct sockaddr_in6 *)&sim.train[0].to)->sin6_port), 999);
}

static void pitfall_48_scope_ids_are_kept_from_configuration_and_packets(void **state)
{
    (void)state;
    struct tunnel_peer_change change = {
        .fields = TUNNEL_PEER_ENDPOINT,
        .endpoint = {.family = 6, .port = SIM_PORT, .scope_id = 5, .address = {0xfe, 0x80}},
    };
    change.endpoint.address[15] = 2; /* node 1 */
    memcpy(change.public_key, sim.node[1].public_key, KEY_LENGTH);
    assert_int_equal(tunnel_set_peer(sim.node[0].tunnel, &change), 0);
    sim.train_count = 0;
    assert_true(sim_carries(0, 1));
    assert_int_equal(((struct sockaddr_in6 *)&sim.train[0].to)->sin6_scope_id, 5);

    struct sim_datagram *d = sim_sealed(0, 1, 1);
    struct sockaddr_in6 from = {.sin6_family = AF_INET6,
                                .sin6_port = htons(77),
                                .sin6_scope_id = 9,
                                .sin6_flowinfo = htonl(0xabcde),
                                .sin6_addr = {.s6_addr = {0xfe, 0x80, [15] = 1}}};
    memset(&d->from, 0, sizeof d->from);
    memcpy(&d->from, &from, sizeof from);
    sim_address(&d->to, AF_INET6, 1, SIM_PORT);
    ((struct sockaddr_in6 *)&d->to)->sin6_addr =
        (struct in6_addr){.s6_addr = {0xfe, 0x80, [15] = 2}};
    sim_arrive(d);
    sim_settle();
    sim.train_count = 0;
    assert_true(sim_carries(1, 0));
    const struct sockaddr_in6 *to = (struct sockaddr_in6 *)&sim.train[0].to;
    assert_int_equal(to->sin6_scope_id, 9);
    assert_int_equal(ntohs(to->sin6_port), 77);
    /* a link-local source is of no use without its interface */
    assert_true(sim.train[0].has_source);
    assert_int_equal(sim.train[0].source6.s6_addr[15], 2);
    assert_int_equal(sim.train[0].source_interface, SIM_INTERFACE);
}

/* ---- our own address ----------------------------------------------------------------------- */

/* Node 0 contacted node 1 at 198.51.100.2, its second address. */
static void contact_second_address(void)
{
    struct sim_datagram *d = sim_sealed(0, 1, 1);
    ((struct sockaddr_in *)&d->to)->sin_addr.s_addr = htonl(0xc6336402);
    sim_arrive(d);
    sim_settle();
    sim_discard(&sim.node[1].delivered);
    sim.train_count = 0;
}

static void pitfall_49_replies_come_from_the_address_that_was_contacted(void **state)
{
    (void)state;
    contact_second_address();
    assert_true(sim_carries(1, 0));
    assert_true(sim.train[0].has_source);
    assert_int_equal(ntohl(sim.train[0].source4.s_addr), 0xc6336402);
    assert_int_equal(sim.train[0].source_interface, 0); /* the route decides where it leaves */
}

static int refuse_source(const struct sim_train *train)
{
    return train->has_source ? EINVAL : 0;
}

static void pitfall_49_a_source_that_is_gone_is_cleared_and_the_packet_still_leaves(void **state)
{
    (void)state;
    contact_second_address();
    sim.fault = refuse_source;
    assert_true(sim_carries(1, 0));
    assert_int_equal(sim.train_count, 1);
    assert_false(sim.train[0].has_source);
    struct endpoint e = peer_endpoint(sim_peer(1, 0));
    assert_int_equal(e.source.v4.s_addr, 0);
    assert_int_equal(e.source_interface, 0);
    assert_int_equal(ntohs(e.remote.v4.sin_port), SIM_PORT); /* the remote stays */
}

static void pitfall_49_a_handshake_retry_clears_the_source(void **state)
{
    (void)state;
    contact_second_address();
    sim.lost = 1 << MESSAGE_INITIATION | 1 << MESSAGE_DATA;
    sim_send(1, 0, 1);
    sim_advance(SECONDS(30)); /* 15 s of silence: a new handshake, retried */
    size_t initiations = 0;
    for (size_t i = 0; i < sim.train_count; i++) {
        if (sim.train[i].node != 1)
            continue;
        assert_int_equal(sim.train[i].has_source, sim.train[i].type == MESSAGE_DATA);
        initiations += sim.train[i].type == MESSAGE_INITIATION;
    }
    assert_int_equal(initiations, 3);
}

/* ---- what its path carries ----------------------------------------------------------------- */

static unsigned refused_trains;

static int refuse_trains(const struct sim_train *train)
{
    if (train->segment == train->length)
        return 0;
    refused_trains++;
    return EMSGSIZE;
}

/* Four packets at once, all of which arrive; in how many sends. */
static size_t sends_for_four(uint32_t sequence)
{
    for (uint32_t i = 0; i < 4; i++)
        sim_send(0, 1, sequence + i);
    sim.train_count = 0;
    sim_settle();
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(sim_take(1), sequence + i);
    return sim.train_count;
}

/* The path may have been too narrow for a moment only: an MTU set wrong and corrected, a learned
 * one that expired. */
static void pitfall_23_a_new_session_tries_trains_again(void **state)
{
    (void)state;
    refused_trains = 0;
    sim.fault = refuse_trains;
    assert_int_equal(sends_for_four(10), 4);
    assert_int_equal(sends_for_four(20), 4);
    assert_int_equal(refused_trains, 1); /* not again under this session */

    sim_advance(REKEY_AFTER_TIME + SECONDS(1));
    assert_true(sim_carries(0, 1)); /* and begins the next */
    assert_int_equal(sends_for_four(30), 4);
    assert_int_equal(refused_trains, 2);

    sim.fault = NULL;
    sim_advance(REKEY_AFTER_TIME + SECONDS(1));
    assert_true(sim_carries(0, 1));
    assert_int_equal(sends_for_four(40),
                     2); /* one by itself after a lone packet, three as a train */
}

int main(void)
{
#define PAIR(name) cmocka_unit_test_setup_teardown(name, connected, stop)
    const struct CMUnitTest tests[] = {
        PAIR(pitfall_45_endpoint_follows_the_latest_valid_packet_of_a_batch),
        PAIR(pitfall_45_endpoint_follows_keepalives_too),
        PAIR(pitfall_45_roaming_between_address_families_is_followed),
        PAIR(pitfall_48_scope_ids_are_kept_from_configuration_and_packets),
        PAIR(pitfall_49_replies_come_from_the_address_that_was_contacted),
        PAIR(pitfall_49_a_source_that_is_gone_is_cleared_and_the_packet_still_leaves),
        PAIR(pitfall_49_a_handshake_retry_clears_the_source),
        PAIR(pitfall_23_a_new_session_tries_trains_again),
    };
    return cmocka_run_group_tests_name("engine: endpoints", tests, NULL, NULL);
}
