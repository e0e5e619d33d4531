/* SPDX-License-Identifier: Apache-2.0 */
#include "replay.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define W REPLAY_WINDOW
#define N 100000ull /* any counter well past the first window */
#define R REJECT_AFTER_MESSAGES

/* Each case starts with an empty window, takes `before` in order, then expects of `counter`. */
static const struct {
    int number;
    const char *name;
    uint64_t before[4];
    unsigned count;
    uint64_t counter;
    bool accepted;
} cases[] = {
    {1, "first counter is zero", {0}, 0, 0, true},
    {2, "zero twice", {0}, 1, 0, false},
    {3, "one after zero", {0}, 1, 1, true},
    {4, "zero after one", {1}, 1, 0, true},
    {5, "newest again", {N}, 1, N, false},
    {6, "one behind", {N}, 1, N - 1, true},
    {7, "one behind again", {N, N - 1}, 2, N - 1, false},
    {8, "8,127 behind", {N}, 1, N - (W - 1), true},
    {9, "8,127 behind again", {N, N - (W - 1)}, 2, N - (W - 1), false},
    {10, "exactly 8,128 behind", {N}, 1, N - W, true},
    {11, "exactly 8,128 behind again", {N, N - W}, 2, N - W, false},
    {12, "8,129 behind", {N}, 1, N - W - 1, false},
    {13, "8,128 behind, newest first in its word", {N / 64 * 64}, 1, N / 64 * 64 - W, true},
    {14, "8,129 behind, newest first in its word", {N / 64 * 64}, 1, N / 64 * 64 - W - 1, false},
    {15,
     "8,128 behind, newest last in its word",
     {N / 64 * 64 + 63},
     1,
     N / 64 * 64 + 63 - W,
     true},
    {16,
     "8,129 behind, newest last in its word",
     {N / 64 * 64 + 63},
     1,
     N / 64 * 64 + 63 - W - 1,
     false},
    {17, "zero from 8,128", {W}, 1, 0, true},
    {18, "zero from 8,129", {W + 1}, 1, 0, false},
    {19, "bit of the ring taken a turn ago", {N, N + REPLAY_BITS}, 2, N + REPLAY_BITS - 64, true},
    {20, "newest of a turn ago", {N, N + REPLAY_BITS}, 2, N, false},
    {21, "fresh one turn on", {N}, 1, N + REPLAY_BITS, true},
    {22, "large jump clears all", {N, N - 1, 2 * N}, 3, 2 * N - (2 * N - N) % 64, true},
    {23, "before a large jump", {N, 2 * N}, 2, N, false},
    {24, "jump by 2^63", {N, N + (1ull << 63)}, 2, N + (1ull << 63) - 1, true},
    {25, "last counter allowed", {N}, 1, R - 1, true},
    {26, "last counter again", {R - 1}, 1, R - 1, false},
    {27, "Reject-After-Messages", {N}, 1, R, false},
    {28, "Reject-After-Messages, empty window", {0}, 0, R, false},
    {29, "greatest number", {N}, 1, UINT64_MAX, false},
    {30, "one behind the last", {R - 1}, 1, R - 2, true},
    {31, "8,128 behind the last", {R - 1}, 1, R - 1 - W, true},
    {32, "8,129 behind the last", {R - 1}, 1, R - 2 - W, false},
    {33, "after a rejected one nothing moved", {N, N - W}, 2, N - W + 1, true},
};

static void pitfall_37_window_edges(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct replay_window window = {0};
        for (unsigned j = 0; j < cases[i].count; j++)
            if (!replay_accept(&window, cases[i].before[j]))
                fail_msg("case %d (%s): step %u refused", cases[i].number, cases[i].name, j);
        if (replay_accept(&window, cases[i].counter) != cases[i].accepted)
            fail_msg("case %d: %s", cases[i].number, cases[i].name);
    }
}

static void a_refused_counter_changes_nothing(void **state)
{
    (void)state;
    struct replay_window window = {0};
    assert_true(replay_accept(&window, N));
    struct replay_window before = window;
    assert_false(replay_accept(&window, N));
    assert_false(replay_accept(&window, N - W - 1));
    assert_false(replay_accept(&window, R));
    assert_false(replay_accept(&window, UINT64_MAX));
    assert_memory_equal(&window, &before, sizeof(window));
}

static void pitfall_37_large_jump_clears_all(void **state)
{
    (void)state;
    struct replay_window window = {0};
    for (uint64_t i = 0; i < 2 * REPLAY_BITS; i++)
        assert_true(replay_accept(&window, i));
    uint64_t newest = 1ull << 40;
    assert_true(replay_accept(&window, newest));
    for (uint64_t behind = 1; behind <= W; behind++)
        assert_true(replay_accept(&window, newest - behind));
    for (uint64_t behind = 0; behind <= W; behind++)
        assert_false(replay_accept(&window, newest - behind));
}

/* The model: every counter ever accepted, and the greatest. Counters stay below MODEL. */
#define MODEL 400000
static uint8_t seen[MODEL];

static void agrees_with_a_slow_model(void **state)
{
    (void)state;
    static const uint64_t spread[] = {3, 100, 8100, 8200, 20000};
    for (unsigned round = 0; round < 8; round++) {
        struct replay_window window = {0};
        uint64_t newest = 0;
        bool any = false;
        unsigned accepted = 0, refused = 0;
        memset(seen, 0, sizeof(seen));
        srandom(round + 1);
        for (unsigned i = 0; i < 200000; i++) {
            uint64_t width = spread[random() % 5];
            uint64_t counter = newest + (uint64_t)random() % (width / 50 + 2);
            uint64_t back = (uint64_t)random() % width;
            counter = counter > back ? counter - back : 0;
            if (counter >= MODEL)
                break;
            bool fresh = !seen[counter] && (!any || newest <= counter || newest - counter <= W);
            assert_int_equal(replay_accept(&window, counter), fresh);
            seen[counter] |= fresh;
            if (fresh && (!any || counter > newest))
                newest = counter;
            any |= fresh;
            accepted += fresh;
            refused += !fresh;
        }
        assert_true(accepted > 1000 && refused > 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pitfall_37_window_edges),
        cmocka_unit_test(a_refused_counter_changes_nothing),
        cmocka_unit_test(pitfall_37_large_jump_clears_all),
        cmocka_unit_test(agrees_with_a_slow_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
