/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A packet waits for nothing so long as for a busy CPU. A thread that asks for short slices gets
 * the CPU upon waking from one that has longer ones (Linux 6.12 and later: EEVDF's custom slices,
 * sched_setattr(2) with sched_runtime), which costs it nothing of its share: it is preempted sooner
 * as well. Older kernels take the request and do nothing with it.
 */
#ifndef CTUNNEL_SLICE_H
#define CTUNNEL_SLICE_H

#include <stdbool.h>

/* Short slices for the calling thread, or those the kernel gives to everyone; needs no privilege
 * and keeps its niceness. False: the kernel refused, or somebody gave the thread a policy of its
 * own, which is left alone. */
bool slice_set_short(bool wanted);

#endif
