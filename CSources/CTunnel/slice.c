/* SPDX-License-Identifier: Apache-2.0 */
#include "slice.h"

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Nanoseconds: the least that the kernel grants (kernel/sched/syscalls.c clamps to 0.1 to 100 ms).
 */
#define SLICE 100000

/* struct sched_attr of sched_setattr(2) in its first version; Debian 12's libc has neither the
 * structure nor the call. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

bool slice_set_short(bool wanted)
{
    struct attributes own = {.size = sizeof own};
    if (syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) || own.policy != SCHED_OTHER)
        return false;
    own.runtime = wanted ? SLICE : 0; /* 0: as everyone */
    return syscall(SYS_sched_setattr, 0, &own, 0) == 0;
}
