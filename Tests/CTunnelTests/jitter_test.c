/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka.h needs the above */
#include <cmocka.h>

#include "timers.h"

static void jitter_stays_below_334_ms_and_spreads(void **state)
{
    (void)state;
    enum { PEERS = 1000, TENTHS = 10 };
    struct peer_timers *peers = calloc(PEERS, sizeof *peers);
    unsigned seen[TENTHS] = {0};
    for (int i = 0; i < PEERS; i++) { /* all at one instant */
        uint64_t jitter = timers_jitter(&peers[i], 1000 * NSEC_PER_SEC);
        assert_true(jitter < 334 * NSEC_PER_MSEC);
        seen[jitter * TENTHS / (334 * NSEC_PER_MSEC)]++;
    }
    for (int i = 0; i < TENTHS; i++) /* a hundred each on average */
        assert_in_range(seen[i], 50, 150);
    free(peers);
}

static void jitter_of_one_peer_changes_with_time(void **state)
{
    (void)state;
    static const struct peer_timers peer;
    assert_int_not_equal(timers_jitter(&peer, NSEC_PER_SEC),
                         timers_jitter(&peer, NSEC_PER_SEC + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jitter_stays_below_334_ms_and_spreads),
        cmocka_unit_test(jitter_of_one_peer_changes_with_time),
    };
    return cmocka_run_group_tests_name("jitter", tests, NULL, NULL);
}
