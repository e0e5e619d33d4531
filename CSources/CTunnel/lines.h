/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one thread writes shares no cache line with what another touches: a line that two write
 * travels between their caches each time, although they never meet. Tests/CTunnelTests/
 * contention_test.c counts such lines.
 */
#ifndef CTUNNEL_LINES_H
#define CTUNNEL_LINES_H

#include <stdlib.h>
#include <string.h>

#define CACHE_LINE 64

/* Zeroed memory on cache lines of its own. NULL: out of memory. Given back by free(). */
static inline void *lines_alloc(size_t size)
{
    size = (size + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
    void *memory = aligned_alloc(CACHE_LINE, size);
    return memory ? memset(memory, 0, size) : NULL;
}

#endif
