/* SPDX-License-Identifier: Apache-2.0 */
/* Alone in its file: the timers' test puts chosen values in its place at link time. */
#include "timers.h"

/* splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). */
uint64_t timers_jitter(const struct peer_timers *timers, uint64_t now)
{
    uint64_t x = (now ^ (uint64_t)(uintptr_t)timers) + 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return (x ^ x >> 31) % REKEY_TIMEOUT_JITTER;
}
