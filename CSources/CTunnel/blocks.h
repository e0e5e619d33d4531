/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small blocks for tables of tens of thousands and more, out of chunks of 2 MiB that ask for a huge
 * page: the processor finds them all with a few entries of its TLB, and no word per block goes to
 * the allocator. One pool for the process; a chunk is given back when its last block is.
 */
#ifndef CTUNNEL_BLOCKS_H
#define CTUNNEL_BLOCKS_H

#include <stddef.h>

#define HUGE_PAGE     ((size_t)2 << 20) /* x86, and arm64 with pages of 4 KiB */
#define LARGEST_BLOCK 64

/* Not cleared; a multiple of 8 bytes, at most LARGEST_BLOCK. NULL: no memory. Any thread. */
void *blocks_take(size_t size);
void blocks_give(void *block);
/* What the chunks of the process, and its arrays with pages of their own, take now. */
size_t blocks_bytes(void);

/* A large array, aligned to ARRAY_ALIGNMENT, not cleared. From 64 KiB on it has pages of its own,
 * which leave no hole in the heap; from two huge pages on it asks for such. NULL: no memory. */
#define ARRAY_ALIGNMENT 64
void *array_take(size_t size);
void array_give(void *array, size_t size); /* the size it was taken with */

#endif
