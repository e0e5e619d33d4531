/* SPDX-License-Identifier: Apache-2.0 */
#include "codel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above
#include <cmocka.h>

#define LONG_WAIT  (3 * CODEL_TARGET)
#define SHORT_WAIT (CODEL_TARGET / 2)
#define START      (5 * NSEC_PER_SEC)
#define STEP       (NSEC_PER_MSEC / 10)

/* Packets every STEP from *now for `duration`, all of which waited for `wait_ns`. Returns the
 * signals; the instants of the first `room` of them in `at`. */
static unsigned run(struct codel *c, uint64_t *now, uint64_t duration, uint64_t wait_ns,
                    uint64_t *at, unsigned room)
{
    unsigned signals = 0;
    for (uint64_t end = *now + duration; *now < end; *now += STEP) {
        if (!codel_signal(c, wait_ns, false, *now))
            continue;
        if (signals < room)
            at[signals] = *now;
        signals++;
    }
    return signals;
}

static void a_queue_that_empties_within_an_interval_gets_none(void **state)
{
    struct codel c = {0};
    uint64_t now = START;
    (void)state;
    for (int burst = 0; burst < 20; burst++) {
        assert_int_equal(run(&c, &now, CODEL_INTERVAL - STEP, LONG_WAIT, NULL, 0), 0);
        assert_int_equal(run(&c, &now, STEP, SHORT_WAIT, NULL, 0), 0);
    }
}

static void a_queue_that_stands_gets_one_after_an_interval(void **state)
{
    struct codel c = {0};
    uint64_t now = START, at[1];
    (void)state;
    assert_int_equal(run(&c, &now, CODEL_INTERVAL + 10 * STEP, LONG_WAIT, at, 1), 1);
    assert_int_equal(at[0], START + CODEL_INTERVAL);
}

/* RFC 8289 §5.3: interval ÷ √count. */
static void they_come_closer_while_it_stands(void **state)
{
    static const double root[] = {1, 1.41421, 1.73205, 2, 2.23607};
    struct codel c = {0};
    uint64_t now = START, at[6];
    (void)state;
    assert_in_range(run(&c, &now, 6 * CODEL_INTERVAL, LONG_WAIT, at, 6), 6, 20);
    for (int i = 0; i < 5; i++) {
        uint64_t wanted = (uint64_t)(CODEL_INTERVAL / root[i]);
        assert_in_range(at[i + 1] - at[i], wanted - 2 * STEP, wanted + 2 * STEP);
    }
}

static void one_short_wait_ends_them(void **state)
{
    struct codel c = {0};
    uint64_t now = START;
    (void)state;
    assert_true(run(&c, &now, 4 * CODEL_INTERVAL, LONG_WAIT, NULL, 0) > 3);
    assert_int_equal(run(&c, &now, STEP, SHORT_WAIT, NULL, 0), 0);
    assert_int_equal(run(&c, &now, CODEL_INTERVAL - STEP, LONG_WAIT, NULL, 0), 0);
}

static void soon_after_they_go_on_nearly_as_often(void **state)
{
    struct codel c = {0}, fresh = {0};
    uint64_t now = START, at[2], first[2];
    (void)state;
    run(&c, &now, 12 * CODEL_INTERVAL, LONG_WAIT, NULL, 0);
    run(&c, &now, STEP, SHORT_WAIT, NULL, 0);
    assert_true(run(&c, &now, 3 * CODEL_INTERVAL, LONG_WAIT, at, 2) >= 2);
    now = START;
    assert_true(run(&fresh, &now, 3 * CODEL_INTERVAL, LONG_WAIT, first, 2) >= 2);
    assert_true(at[1] - at[0] < (first[1] - first[0]) / 2);
}

static void long_after_they_begin_anew(void **state)
{
    struct codel c = {0};
    uint64_t now = START, at[2];
    (void)state;
    run(&c, &now, 12 * CODEL_INTERVAL, LONG_WAIT, NULL, 0);
    run(&c, &now, 20 * CODEL_INTERVAL, SHORT_WAIT, NULL, 0);
    assert_true(run(&c, &now, 3 * CODEL_INTERVAL, LONG_WAIT, at, 2) >= 2);
    assert_in_range(at[1] - at[0], CODEL_INTERVAL - 2 * STEP, CODEL_INTERVAL + 2 * STEP);
}

static void the_last_packet_gets_none(void **state)
{
    struct codel c = {0};
    (void)state;
    for (uint64_t now = START; now < START + 10 * CODEL_INTERVAL; now += STEP)
        assert_false(codel_signal(&c, LONG_WAIT, true, now));
}

/* Whoever serves the queue gets no time of a CPU for most of the interval: of what happened
 * meanwhile it has seen the end only. */
static void an_absence_is_not_a_queue_that_stands(void **state)
{
    struct codel c = {0};
    uint64_t now = START;
    (void)state;
    for (int round = 0; round < 10; round++) {
        for (int look = 0; look < 3; look++, now += 3 * CODEL_INTERVAL)
            assert_int_equal(run(&c, &now, 8 * STEP, LONG_WAIT, NULL, 0), 0);
        assert_int_equal(run(&c, &now, STEP, SHORT_WAIT, NULL, 0), 0);
    }
}

/* Slow is not absent: a queue that is found standing look after look gets its signals. */
static void who_looks_seldom_gives_them_later(void **state)
{
    struct codel c = {0};
    uint64_t now = START;
    unsigned looks = 0;
    (void)state;
    for (bool told = false; !told; looks++, now += 2 * CODEL_INTERVAL)
        told = codel_signal(&c, LONG_WAIT, false, now);
    assert_in_range(looks, 4, 6);
}

static void a_queue_that_was_emptied_stood_no_longer(void **state)
{
    struct codel c = {0};
    uint64_t now = START;
    (void)state;
    for (int burst = 0; burst < 20; burst++) {
        assert_int_equal(run(&c, &now, CODEL_INTERVAL - STEP, LONG_WAIT, NULL, 0), 0);
        codel_emptied(&c);
        assert_int_equal(run(&c, &now, CODEL_INTERVAL - STEP, LONG_WAIT, NULL, 0), 0);
        codel_emptied(&c);
    }
    run(&c, &now, 3 * CODEL_INTERVAL, LONG_WAIT, NULL, 0);
    codel_emptied(&c);
    assert_int_equal(run(&c, &now, CODEL_INTERVAL - STEP, LONG_WAIT, NULL, 0), 0);
}

/* Days of overload must not end in a division by zero. */
static void their_count_does_not_wrap(void **state)
{
    struct codel c = {0};
    uint64_t now = START;
    (void)state;
    run(&c, &now, 3 * CODEL_INTERVAL, LONG_WAIT, NULL, 0);
    assert_true(c.signalling);
    c.count = UINT32_MAX;
    assert_true(run(&c, &now, CODEL_INTERVAL, LONG_WAIT, NULL, 0) > 100);
    assert_int_equal(c.count, UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_that_empties_within_an_interval_gets_none),
        cmocka_unit_test(a_queue_that_stands_gets_one_after_an_interval),
        cmocka_unit_test(they_come_closer_while_it_stands),
        cmocka_unit_test(one_short_wait_ends_them),
        cmocka_unit_test(soon_after_they_go_on_nearly_as_often),
        cmocka_unit_test(long_after_they_begin_anew),
        cmocka_unit_test(the_last_packet_gets_none),
        cmocka_unit_test(an_absence_is_not_a_queue_that_stands),
        cmocka_unit_test(who_looks_seldom_gives_them_later),
        cmocka_unit_test(a_queue_that_was_emptied_stood_no_longer),
        cmocka_unit_test(their_count_does_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
