/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine of RFC 8289 §5, one packet at a time. */
#include "codel.h"

/* ⌊√n⌋ by Newton's method, from above. */
static uint64_t square_root(uint64_t n)
{
    uint64_t root = n, better = (n + 1) / 2;
    while (better < root) {
        root = better;
        better = (root + n / root) / 2;
    }
    return root;
}

/* §5.3: signals are √count closer together the longer they go on. */
static uint64_t control_law(uint64_t from_ns, uint32_t count)
{
    return from_ns + (CODEL_INTERVAL << 8) / square_root((uint64_t)count << 16);
}

/* An absence counts no further than that. */
static void forgive_absence(struct codel *c, uint64_t now_ns)
{
    uint64_t since = now_ns - c->seen_ns;
    c->seen_ns = now_ns;
    if (c->above_until_ns && since > CODEL_ABSENCE)
        c->above_until_ns += since - CODEL_ABSENCE;
}

/* Whether the wait was above the target for an interval. */
static bool stands(struct codel *c, uint64_t wait_ns, bool last, uint64_t now_ns)
{
    if (wait_ns < CODEL_TARGET || last) {
        c->above_until_ns = 0;
        return false;
    }
    if (!c->above_until_ns) {
        c->above_until_ns = now_ns + CODEL_INTERVAL;
        return false;
    }
    return now_ns >= c->above_until_ns;
}

/* §5.4: where signals ended not long ago, they go on nearly as often as then. */
static void begin(struct codel *c, uint64_t now_ns)
{
    uint32_t given = c->count - c->count_before;
    bool recently = now_ns < c->next_ns + 16 * CODEL_INTERVAL;
    c->signalling = true;
    c->count = given > 1 && recently ? given : 1;
    c->count_before = c->count;
    c->next_ns = control_law(now_ns, c->count);
}

bool codel_signal(struct codel *c, uint64_t wait_ns, bool last, uint64_t now_ns)
{
    forgive_absence(c, now_ns);
    if (!stands(c, wait_ns, last, now_ns)) {
        c->signalling = false;
        return false;
    }
    if (!c->signalling) {
        begin(c, now_ns);
        return true;
    }
    if (now_ns < c->next_ns)
        return false;
    c->count += c->count < UINT32_MAX; /* after 0 there is no square root to divide by */
    c->next_ns = control_law(c->next_ns, c->count);
    return true;
}

void codel_emptied(struct codel *c)
{
    c->above_until_ns = 0;
    c->signalling = false;
}
