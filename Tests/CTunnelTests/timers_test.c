/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timers of a peer against a slow model: five independent timers that events start and stop, as
 * in J. A. Donenfeld, "WireGuard: Next Generation Kernel Network Tunnel", 2020-06-01, §6. Clock and
 * jitter are the test's; nothing sleeps.
 */
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
/* cmocka.h needs the above */
#include <cmocka.h>

#include "timers.c"

static uint32_t jitter_ms; /* what timers_jitter() gives: it takes the place of jitter.c */

uint64_t timers_jitter(const struct peer_timers *timers, uint64_t now)
{
    (void)timers, (void)now;
    return jitter_ms * NSEC_PER_MSEC;
}

#define SECONDS(n) ((uint64_t)(n)*NSEC_PER_SEC)
#define PEERS      6

/* ---- the model ----------------------------------------------------------------------------- */

struct model_timer {
    bool pending;
    uint64_t at;
};

struct model {
    struct model_timer retransmit, keepalive, new_handshake, erase, persistent;
    unsigned attempts, interval;
    bool need_another, down;
};

static void start(struct model_timer *t, uint64_t at)
{
    *t = (struct model_timer){true, at};
}

static bool fires(struct model_timer *t, uint64_t now)
{
    bool fired = t->pending && t->at <= now;
    if (fired)
        t->pending = false;
    return fired;
}

static uint64_t model_jitter(void)
{
    return jitter_ms * NSEC_PER_MSEC;
}

static uint32_t model_due(struct model *m, uint64_t now)
{
    uint32_t actions = 0;
    if (fires(&m->retransmit, now)) {
        if (m->attempts > 18) { /* 90 s / 5 s */
            actions |= TIMER_ACT_GIVE_UP;
            m->keepalive.pending = false;
            if (!m->erase.pending)
                start(&m->erase, now + SECONDS(540));
        } else {
            m->attempts++;
            actions |= TIMER_ACT_RETRY_HANDSHAKE;
        }
    }
    if (fires(&m->keepalive, now)) {
        actions |= TIMER_ACT_KEEPALIVE;
        if (m->need_another) {
            m->need_another = false;
            start(&m->keepalive, now + SECONDS(10));
        }
    }
    if (fires(&m->new_handshake, now))
        actions |= TIMER_ACT_NEW_HANDSHAKE;
    if (fires(&m->erase, now))
        actions |= TIMER_ACT_ERASE_KEYS;
    if (fires(&m->persistent, now))
        actions |= TIMER_ACT_KEEPALIVE;
    return actions;
}

static uint64_t model_next(const struct model *m)
{
    const struct model_timer *all[] = {&m->retransmit, &m->keepalive, &m->new_handshake, &m->erase,
                                       &m->persistent};
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < 5; i++)
        if (all[i]->pending && all[i]->at < next)
            next = all[i]->at;
    return next;
}

/* ---- both side by side --------------------------------------------------------------------- */

static struct timer_queue queue;
static struct peer_timers timers[PEERS];
static struct model models[PEERS];
static uint64_t now;
static unsigned held, expiries;

enum event {
    DATA_SENT,
    DATA_RECEIVED,
    AUTHENTICATED_SENT,
    AUTHENTICATED_RECEIVED,
    TRAVERSAL,
    INITIATED,
    COMPLETE,
    DERIVED,
    PERSISTENT,
    STOP,
    RESUME,
    EVENTS
};

static void happen_engine(struct peer_timers *t, enum event event, uint16_t seconds)
{
    switch (event) {
    case DATA_SENT:
        return timers_data_sent(t, now);
    case DATA_RECEIVED:
        return timers_data_received(t, now);
    case AUTHENTICATED_SENT:
        return timers_authenticated_sent(t);
    case AUTHENTICATED_RECEIVED:
        return timers_authenticated_received(t);
    case TRAVERSAL:
        return timers_authenticated_traversal(t, now);
    case INITIATED:
        return timers_handshake_initiated(t, now);
    case COMPLETE:
        return timers_handshake_complete(t);
    case DERIVED:
        return timers_session_derived(t, now);
    case PERSISTENT:
        return timers_set_persistent(t, seconds, now);
    case STOP:
        return timers_stop(t);
    default:
        return timers_resume(t, now);
    }
}

static void model_configure(struct model *m, enum event event, uint16_t seconds)
{
    unsigned before = m->interval;
    if (event == PERSISTENT) {
        m->interval = seconds;
        if (!seconds)
            m->persistent.pending = false;
        else if (seconds != before && !m->down)
            start(&m->persistent, before ? now + SECONDS(seconds) : now);
    } else if (event == STOP) {
        *m = (struct model){.interval = before, .down = true};
    } else if (event == RESUME) {
        m->down = false;
        if (m->interval)
            start(&m->persistent, now);
    }
}

static void happen_model(struct model *m, enum event event)
{
    if (event == AUTHENTICATED_SENT) {
        m->keepalive.pending = false;
    } else if (event == AUTHENTICATED_RECEIVED) {
        m->new_handshake.pending = false;
    } else if (event == COMPLETE) {
        m->retransmit.pending = false;
        m->attempts = 0;
    } else if (m->down) {
        return;
    } else if (event == DATA_SENT && !m->new_handshake.pending) {
        start(&m->new_handshake, now + SECONDS(15) + model_jitter());
    } else if (event == DATA_RECEIVED && !m->keepalive.pending) {
        start(&m->keepalive, now + SECONDS(10));
    } else if (event == DATA_RECEIVED) {
        m->need_another = true;
    } else if (event == TRAVERSAL && m->interval) {
        start(&m->persistent, now + SECONDS(m->interval));
    } else if (event == INITIATED) {
        start(&m->retransmit, now + SECONDS(5) + model_jitter());
    } else if (event == DERIVED) {
        start(&m->erase, now + SECONDS(540));
    }
}

static void happen(unsigned peer, enum event event, uint16_t seconds)
{
    happen_engine(&timers[peer], event, seconds);
    if (event >= PERSISTENT)
        model_configure(&models[peer], event, seconds);
    else
        happen_model(&models[peer], event);
}

static void hold(struct peer_timers *t)
{
    (void)t;
    held++;
}

/* To `end`, through every instant the queue wants to look at. Neither side may act without the
 * other, nor may the queue oversleep a deadline of the model. */
static uint32_t advance_to(uint64_t end)
{
    uint32_t seen = 0;
    for (;;) {
        uint64_t next;
        struct peer_timers *t = timer_queue_take(&queue, now, &next, hold);
        if (t) {
            uint32_t actions = timers_due(t, now);
            assert_int_equal(actions, model_due(&models[t - timers], now));
            expiries += actions != 0;
            seen |= actions;
            continue;
        }
        for (unsigned i = 0; i < PEERS; i++)
            assert_true(model_next(&models[i]) >= next);
        if (next > end)
            break;
        now = next;
    }
    now = end;
    return seen;
}

static int begin(void **state)
{
    (void)state;
    now = SECONDS(1000);
    jitter_ms = held = expiries = 0;
    timer_queue_init(&queue, eventfd(0, EFD_NONBLOCK));
    memset(models, 0, sizeof models);
    for (unsigned i = 0; i < PEERS; i++)
        timers_init(&timers[i], &queue);
    return 0;
}

static int end(void **state)
{
    (void)state;
    close(queue.wake_fd);
    timer_queue_destroy(&queue);
    return 0;
}

/* ---- random sequences ---------------------------------------------------------------------- */

static uint32_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 1664525 + 1013904223; /* Numerical Recipes, §7.1 */
    return (uint32_t)((uint64_t)random_state * below >> 32);
}

static enum event draw_event(void)
{
    uint32_t n = draw(1000);
    if (n < 10)
        return n < 5 ? STOP : RESUME;
    return n < 60 ? PERSISTENT : (enum event)draw(PERSISTENT);
}

/* Between microseconds and minutes, so that deadlines are met, moved and missed alike. */
static uint64_t draw_pause(void)
{
    static const uint64_t scale[] = {NSEC_PER_MSEC, 100 * NSEC_PER_MSEC, SECONDS(1), SECONDS(8)};
    return scale[draw(4)] * draw(20);
}

static void random_events_do_what_five_independent_timers_would(void **state)
{
    for (uint32_t seed = 1; seed <= 40; seed++) {
        begin(state);
        random_state = seed;
        for (int i = 0; i < 4000; i++) {
            jitter_ms = draw(334);
            happen(draw(PEERS), draw_event(), (uint16_t)(draw(3) * draw(40)));
            if (draw(3) == 0)
                advance_to(now + draw_pause());
        }
        for (unsigned i = 0; i < PEERS; i++) /* whatever is left comes due */
            happen(i, PERSISTENT, 0);
        advance_to(now + SECONDS(2000));
        for (unsigned i = 0; i < PEERS; i++)
            assert_true(model_next(&models[i]) == UINT64_MAX);
        assert_int_equal(queue.count, 0);
        assert_true(expiries > 100);
        end(state);
    }
}

/* Few events, long silences: retransmission runs to its end. */
static void random_handshakes_are_repeated_and_given_up_as_the_model_says(void **state)
{
    unsigned given_up = 0;
    for (uint32_t seed = 1; seed <= 30; seed++) {
        begin(state);
        random_state = seed;
        for (int i = 0; i < 3000; i++) {
            uint32_t actions;
            jitter_ms = draw(334);
            actions = advance_to(now + draw(SECONDS(1)) + SECONDS(5));
            given_up += (actions & TIMER_ACT_GIVE_UP) != 0;
            for (unsigned p = 0; p < PEERS; p++)
                if (models[p].attempts ? draw(400) : draw(2)) /* a retry goes out */
                    models[p].retransmit.pending ? (void)0 : happen(p, INITIATED, 0);
                else
                    happen(p, (enum event)draw(PERSISTENT), 0);
        }
        end(state);
    }
    assert_true(given_up > 20);
}

/* ---- single statements --------------------------------------------------------------------- */

static void an_unanswered_initiation_is_repeated_19_times_then_given_up(void **state)
{
    (void)state;
    unsigned retries = 0;
    uint64_t first = now;
    happen(0, INITIATED, 0);
    for (;;) {
        uint32_t actions = advance_to(now + SECONDS(5));
        if (actions == TIMER_ACT_GIVE_UP)
            break;
        assert_int_equal(actions, TIMER_ACT_RETRY_HANDSHAKE);
        retries++;
        happen(0, INITIATED, 0);
    }
    assert_int_equal(retries, 19);
    assert_true(now - first == SECONDS(100));
    /* keys that might exist are erased 540 s later, and then there is silence */
    assert_int_equal(advance_to(now + SECONDS(540) - 1), 0);
    assert_int_equal(advance_to(now + 1), TIMER_ACT_ERASE_KEYS);
    assert_int_equal(advance_to(now + SECONDS(100000)), 0);
}

static void retransmission_jitter_is_below_334_ms(void **state)
{
    (void)state;
    jitter_ms = 333;
    happen(0, INITIATED, 0);
    assert_int_equal(advance_to(now + SECONDS(5) + 332 * NSEC_PER_MSEC), 0);
    assert_int_equal(advance_to(now + NSEC_PER_MSEC), TIMER_ACT_RETRY_HANDSHAKE);
}

static void pitfall_44_keepalives_follow_data_once_per_10_seconds_of_silence(void **state)
{
    (void)state;
    happen(0, DATA_RECEIVED, 0);
    assert_int_equal(advance_to(now + SECONDS(10) - 1), 0);
    assert_int_equal(advance_to(now + 1), TIMER_ACT_KEEPALIVE);
    assert_int_equal(advance_to(now + SECONDS(100)), 0); /* no more data: no more keepalive */

    happen(0, DATA_RECEIVED, 0);
    advance_to(now + SECONDS(3));
    happen(0, DATA_RECEIVED, 0); /* while one is pending: one more after it */
    happen(0, DATA_RECEIVED, 0);
    assert_int_equal(advance_to(now + SECONDS(7)), TIMER_ACT_KEEPALIVE);
    assert_int_equal(advance_to(now + SECONDS(10)), TIMER_ACT_KEEPALIVE);
    assert_int_equal(advance_to(now + SECONDS(100)), 0);

    happen(0, DATA_RECEIVED, 0);
    happen(0, AUTHENTICATED_SENT, 0); /* an answer went out: none is needed */
    assert_int_equal(advance_to(now + SECONDS(100)), 0);
}

static void new_handshake_after_15_seconds_without_any_answer(void **state)
{
    (void)state;
    happen(0, DATA_SENT, 0);
    advance_to(now + SECONDS(9));
    happen(0, DATA_SENT, 0); /* does not move it */
    assert_int_equal(advance_to(now + SECONDS(6)), TIMER_ACT_NEW_HANDSHAKE);
    happen(0, DATA_SENT, 0);
    advance_to(now + SECONDS(14));
    happen(0, AUTHENTICATED_RECEIVED, 0);
    assert_int_equal(advance_to(now + SECONDS(100)), 0);
}

static void persistent_keepalives_are_due_exactly_an_interval_after_any_traffic(void **state)
{
    (void)state;
    happen(0, PERSISTENT, 25);
    assert_int_equal(advance_to(now), TIMER_ACT_KEEPALIVE); /* switched on: at once */
    for (int i = 0; i < 5; i++) {
        happen(0, TRAVERSAL, 0);
        advance_to(now + SECONDS(20));
        happen(0, TRAVERSAL, 0);
        assert_int_equal(advance_to(now + SECONDS(25) - 1), 0);
        assert_int_equal(advance_to(now + 1), TIMER_ACT_KEEPALIVE);
    }
    happen(0, TRAVERSAL, 0);
    happen(0, PERSISTENT, 0);
    assert_int_equal(advance_to(now + SECONDS(1000)), 0);
}

static void pitfall_61_stopped_timers_arm_nothing_and_resume_sends_persistent(void **state)
{
    (void)state;
    happen(0, PERSISTENT, 30);
    advance_to(now);
    for (enum event e = DATA_SENT; e < PERSISTENT; e++)
        happen(0, e, 0);
    happen(0, STOP, 0);
    assert_int_equal(queue.count, 0);
    for (enum event e = DATA_SENT; e < PERSISTENT; e++)
        happen(0, e, 0);
    assert_int_equal(advance_to(now + SECONDS(1000)), 0);
    happen(0, RESUME, 0);
    assert_int_equal(advance_to(now), TIMER_ACT_KEEPALIVE);
}

/* A data thread may have passed its check of `stopped` when the timers stop: what it stores then is
 * scheduled by nobody and must not keep the timer from starting after the link is up again. */
static void a_deadline_stored_while_stopping_does_not_block_its_timer_later(void **state)
{
    (void)state;
    happen(0, STOP, 0);
    arm(&timers[0], TIMER_NEW_HANDSHAKE, now + SECONDS(15));
    arm(&timers[0], TIMER_KEEPALIVE, now + SECONDS(10));
    happen(0, RESUME, 0);
    happen(0, DATA_SENT, 0);
    happen(0, DATA_RECEIVED, 0);
    assert_int_equal(advance_to(now + SECONDS(10)), TIMER_ACT_KEEPALIVE);
    assert_int_equal(advance_to(now + SECONDS(5)), TIMER_ACT_NEW_HANDSHAKE);
}

/* ---- the queue ----------------------------------------------------------------------------- */

static void busy_traffic_does_not_wake_the_control_thread(void **state)
{
    (void)state;
    uint64_t wakeups;
    happen(0, PERSISTENT, 25);
    advance_to(now);
    happen(0, TRAVERSAL, 0);
    happen(0, DATA_SENT, 0);
    happen(0, DATA_RECEIVED, 0);
    assert_int_equal(read(queue.wake_fd, &wakeups, sizeof wakeups), sizeof wakeups);
    for (int i = 0; i < 9000; i++) { /* 9 s, a batch each way per millisecond */
        now += NSEC_PER_MSEC;
        for (enum event e = DATA_SENT; e <= TRAVERSAL; e++)
            happen(0, e, 0);
    }
    /* Whoever disarms and arms again keeps the earlier look of the queue: no wake-up at all. */
    assert_int_equal(read(queue.wake_fd, &wakeups, sizeof wakeups), -1);
    advance_to(now + SECONDS(1));
}

/* What it sends when a timer is due sets the next deadline, which it finds when it asks again. */
static void the_control_thread_does_not_wake_itself(void **state)
{
    (void)state;
    uint64_t wakeups, next;
    timers_set_persistent(&timers[0], 25, now);
    assert_int_equal(read(queue.wake_fd, &wakeups, sizeof wakeups), sizeof wakeups);
    for (int i = 0; i < 4; i++) {
        assert_ptr_equal(timer_queue_take(&queue, now, &next, hold), &timers[0]);
        held--;
        assert_int_equal(timers_due(&timers[0], now), TIMER_ACT_KEEPALIVE);
        timers_authenticated_traversal(&timers[0], now);
        assert_null(timer_queue_take(&queue, now, &next, hold));
        assert_int_equal(next, now + SECONDS(25));
        assert_int_equal(read(queue.wake_fd, &wakeups, sizeof wakeups), -1);
        now = next;
    }
    /* But it is woken for what another thread sets once it went to sleep. */
    timers_handshake_initiated(&timers[1], now - SECONDS(20));
    assert_int_equal(read(queue.wake_fd, &wakeups, sizeof wakeups), sizeof wakeups);
}

static void the_queue_hands_out_peers_earliest_first(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    struct peer_timers *many = calloc(COUNT, sizeof *many);
    assert_non_null(many);
    for (int i = 0; i < COUNT; i++) {
        timers_init(&many[i], &queue);
        random_state = (uint32_t)i;
        timers_session_derived(&many[i], now + draw(1u << 31));
    }
    for (int i = 0; i < COUNT; i += 3)
        timers_stop(&many[i]);
    uint64_t last = 0, next = 0;
    int taken = 0;
    for (;;) {
        struct peer_timers *t = timer_queue_take(&queue, next, &next, hold);
        if (!t && next == UINT64_MAX)
            break;
        if (!t)
            continue;
        uint64_t when = atomic_load(&t->deadline[TIMER_ERASE_KEYS]);
        assert_true(when >= last);
        last = when;
        taken++;
        assert_int_equal(timers_due(t, when), TIMER_ACT_ERASE_KEYS);
    }
    assert_int_equal(taken, COUNT - (COUNT + 2) / 3);
    assert_int_equal(held, taken);
    free(many);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_events_do_what_five_independent_timers_would),
        cmocka_unit_test(random_handshakes_are_repeated_and_given_up_as_the_model_says),
        CASE(an_unanswered_initiation_is_repeated_19_times_then_given_up),
        CASE(retransmission_jitter_is_below_334_ms),
        CASE(pitfall_44_keepalives_follow_data_once_per_10_seconds_of_silence),
        CASE(new_handshake_after_15_seconds_without_any_answer),
        CASE(persistent_keepalives_are_due_exactly_an_interval_after_any_traffic),
        CASE(pitfall_61_stopped_timers_arm_nothing_and_resume_sends_persistent),
        CASE(a_deadline_stored_while_stopping_does_not_block_its_timer_later),
        CASE(busy_traffic_does_not_wake_the_control_thread),
        CASE(the_control_thread_does_not_wake_itself),
        CASE(the_queue_hands_out_peers_earliest_first),
    };
    return cmocka_run_group_tests_name("timers", tests, NULL, NULL);
}
