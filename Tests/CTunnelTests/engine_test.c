/* SPDX-License-Identifier: Apache-2.0 */
/* Two and more whole engines under a virtual clock: what the protocol promises. */
#include "simulation.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka.h needs the two above */
#include <cmocka.h>

static int pair(void **state)
{
    (void)state;
    sim_start(2, NULL);
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

static void first_packet_waits_for_the_handshake_and_arrives(void **state)
{
    (void)state;
    sim_send(0, 1, 7);
    sim_settle();
    assert_int_equal(sim.node[1].delivered.count, 1);
    assert_int_equal(sim_sequence(sim.node[1].delivered.head), 7);
    assert_int_equal(sim.node[0].sent_by_type[MESSAGE_INITIATION], 1);
    assert_int_equal(sim.node[1].sent_by_type[MESSAGE_RESPONSE], 1);
}

static void pitfall_40_responder_sends_only_after_it_received(void **state)
{
    (void)state;
    sim_send(0, 1, 1);
    sim_settle();
    struct peer *b = sim_peer(1, 0);
    assert_non_null(atomic_load(&b->current_session)); /* confirmed by the staged packet */
    assert_null(atomic_load(&b->next_session));
}

static void pitfall_42_staging_keeps_the_newest_128(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 200; i++)
        sim_send(0, 1, i);
    /* all are read before the handshake thread runs */
    while (sim.node[0].tun_out.head)
        send_batch(&sim.node[0].tunnel->worker[0].primary);
    assert_int_equal(sim_drops(0, DROP_STAGED_OVERFLOW), 72);
    sim_settle();
    assert_int_equal(sim.node[1].delivered.count, 128);
    for (uint32_t i = 72; i < 200; i++) {
        struct sim_datagram *d = sim_pop(&sim.node[1].delivered);
        assert_int_equal(sim_sequence(d), i);
        free(d);
    }
    assert_int_equal(atomic_load(&sim.node[0].tunnel->staged_bytes), 0);
}

static void pitfall_41_rekey_at_120_seconds_loses_nothing(void **state)
{
    (void)state;
    uint32_t sent = 0;
    for (int i = 0; i < 3000; i++) { /* 300 s, ten packets a second each way */
        sim_send(0, 1, sent);
        sim_send(1, 0, sent++);
        sim_advance(NSEC_PER_SEC / 10);
    }
    /* The responder has no endpoint before the first handshake: its first packet is dropped. */
    assert_int_equal(sim.node[1].delivered.count, 3000);
    assert_in_range(sim.node[0].delivered.count, 2999, 3000);
    assert_int_equal(sim.node[0].sent_by_type[MESSAGE_INITIATION], 3); /* 0, 120, 240 s */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(first_packet_waits_for_the_handshake_and_arrives, pair,
                                        stop),
        cmocka_unit_test_setup_teardown(pitfall_40_responder_sends_only_after_it_received, pair,
                                        stop),
        cmocka_unit_test_setup_teardown(pitfall_42_staging_keeps_the_newest_128, pair, stop),
        cmocka_unit_test_setup_teardown(pitfall_41_rekey_at_120_seconds_loses_nothing, pair, stop),
    };
    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
