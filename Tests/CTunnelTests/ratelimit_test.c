/* SPDX-License-Identifier: Apache-2.0 */
#include "messages.h"
#include "ratelimit.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define INTERVAL (NSEC_PER_SEC / RATELIMIT_PER_SECOND)
#define START    (1000 * NSEC_PER_SEC) /* the clock is a number: no test waits */

static int setup(void **state)
{
    *state = ratelimit_create();
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    ratelimit_destroy(*state);
    return 0;
}

static bool allow4(struct ratelimit *limit, uint32_t source, uint64_t now)
{
    uint8_t address[4] = {(uint8_t)(source >> 24), (uint8_t)(source >> 16), (uint8_t)(source >> 8),
                          (uint8_t)source};
    return ratelimit_allow(limit, 4, address, now);
}

static unsigned burst4(struct ratelimit *limit, uint32_t source, uint64_t now)
{
    unsigned allowed = 0;
    for (unsigned i = 0; i < 100; i++)
        allowed += allow4(limit, source, now);
    return allowed;
}

static void a_burst_is_five(void **state)
{
    assert_int_equal(burst4(*state, 1, START), RATELIMIT_BURST);
}

static void a_clock_at_zero_works(void **state)
{
    assert_int_equal(burst4(*state, 1, 0), RATELIMIT_BURST);
}

static void one_returns_per_interval_not_before(void **state)
{
    assert_int_equal(burst4(*state, 1, START), RATELIMIT_BURST);
    assert_int_equal(burst4(*state, 1, START + INTERVAL - 1), 0);
    assert_int_equal(burst4(*state, 1, START + INTERVAL), 1);
    assert_int_equal(burst4(*state, 1, START + 3 * INTERVAL), 2);
}

static void silence_refills_the_burst_but_no_more(void **state)
{
    assert_int_equal(burst4(*state, 1, START), RATELIMIT_BURST);
    assert_int_equal(burst4(*state, 1, START + 5 * INTERVAL), RATELIMIT_BURST);
    assert_int_equal(burst4(*state, 1, START + 3600 * NSEC_PER_SEC), RATELIMIT_BURST);
}

/* Pitfall 52's flood, one source of it: whatever it offers, 20 per second and the burst pass. */
static void pitfall_52_a_flooding_source_gets_twenty_per_second(void **state)
{
    unsigned allowed = 0;
    for (unsigned i = 0; i < 20000 * 10; i++)
        allowed += allow4(*state, 7, START + i * (NSEC_PER_SEC / 20000));
    /* 10 s less one tick: the burst at once and then one at 50 ms, 100 ms, … 9.95 s. */
    assert_int_equal(allowed, RATELIMIT_BURST + 10 * RATELIMIT_PER_SECOND - 1);
}

static void a_steady_twenty_per_second_always_passes(void **state)
{
    for (unsigned i = 0; i < 1000; i++)
        assert_true(allow4(*state, 7, START + i * INTERVAL));
}

static void pitfall_52_sources_do_not_share_a_bucket(void **state)
{
    assert_int_equal(burst4(*state, 1, START), RATELIMIT_BURST);
    for (uint32_t source = 2; source < 10000; source++)
        assert_int_equal(burst4(*state, source, START), RATELIMIT_BURST);
}

static void ipv6_counts_per_64(void **state)
{
    uint8_t a[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 1};
    uint8_t b[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 2};
    unsigned allowed = 0;
    for (unsigned host = 0; host < 200; host++) {
        a[15] = (uint8_t)host;
        a[8] = (uint8_t)(host * 7);
        allowed += ratelimit_allow(*state, 6, a, START);
    }
    assert_int_equal(allowed, RATELIMIT_BURST);
    assert_true(ratelimit_allow(*state, 6, b, START)); /* the next /64 is another source */
}

static void ipv4_and_ipv6_are_different_sources(void **state)
{
    uint8_t v4[4] = {0, 0, 0, 0}, v6[16] = {0};
    unsigned allowed = 0;
    for (unsigned i = 0; i < 10; i++)
        allowed += ratelimit_allow(*state, 4, v4, START);
    for (unsigned i = 0; i < 10; i++)
        allowed += ratelimit_allow(*state, 6, v6, START);
    assert_int_equal(allowed, 2 * RATELIMIT_BURST);
}

static void pitfall_52_a_full_table_refuses_new_sources_and_keeps_old_ones(void **state)
{
    struct ratelimit *limit = *state;
    assert_int_equal(burst4(limit, 1, START), RATELIMIT_BURST);

    unsigned taken = 0;
    for (uint32_t source = 2; source < 10 * RATELIMIT_ENTRIES; source++)
        taken += allow4(limit, source, START);
    assert_true(taken < RATELIMIT_ENTRIES);
    /* Two choices fill nearly all of it before the first is refused for good. */
    assert_true(taken > RATELIMIT_ENTRIES / 10 * 9);

    /* The first source is still known: the flood did not push it out to start afresh. */
    assert_int_equal(burst4(limit, 1, START), 0);
    assert_int_equal(burst4(limit, 1, START + INTERVAL), 1);

    /* A quarter of a second on every bucket is full again: all room is free. */
    unsigned later = 0;
    for (uint32_t source = 1u << 24; source < (1u << 24) + RATELIMIT_ENTRIES / 4; source++)
        later += allow4(limit, source, START + 7 * INTERVAL);
    assert_int_equal(later, RATELIMIT_ENTRIES / 4);
}

static void half_full_refuses_nobody(void **state)
{
    for (uint32_t source = 0; source < RATELIMIT_ENTRIES / 2; source++)
        assert_true(allow4(*state, source * 2654435761u, START));
}

/* Against a plain token bucket in integers: tokens of 1/50,000,000, one per nanosecond. */
static void agrees_with_a_token_bucket(void **state)
{
    uint64_t tokens = RATELIMIT_BURST * INTERVAL, last = START, now = START;
    unsigned allowed = 0;
    srandom(1);
    for (unsigned i = 0; i < 100000; i++) {
        now += (uint64_t)random() % (2 * INTERVAL) * (random() % 4 == 0);
        tokens += now - last;
        if (tokens > RATELIMIT_BURST * INTERVAL)
            tokens = RATELIMIT_BURST * INTERVAL;
        last = now;
        bool expected = tokens >= INTERVAL;
        tokens -= expected ? INTERVAL : 0;
        assert_int_equal(allow4(*state, 9, now), expected);
        allowed += expected;
    }
    assert_true(allowed > 1000 && allowed < 99000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_burst_is_five),
        TEST(a_clock_at_zero_works),
        TEST(one_returns_per_interval_not_before),
        TEST(silence_refills_the_burst_but_no_more),
        TEST(pitfall_52_a_flooding_source_gets_twenty_per_second),
        TEST(a_steady_twenty_per_second_always_passes),
        TEST(pitfall_52_sources_do_not_share_a_bucket),
        TEST(ipv6_counts_per_64),
        TEST(ipv4_and_ipv6_are_different_sources),
        TEST(pitfall_52_a_full_table_refuses_new_sources_and_keeps_old_ones),
        TEST(half_full_refuses_nobody),
        TEST(agrees_with_a_token_bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
