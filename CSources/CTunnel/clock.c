/* SPDX-License-Identifier: Apache-2.0 */
/* Alone in its file: the simulation puts a virtual clock in its place at link time. */
#include "engine.h"
#include <time.h>

uint64_t clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

void clock_wall(struct timespec *now)
{
    clock_gettime(CLOCK_REALTIME, now);
}
