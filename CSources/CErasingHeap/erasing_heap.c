// SPDX-License-Identifier: Apache-2.0
/*
 * The memory itself is the C library's. Its own names for its functions, __libc_free and the like,
 * have been exported since glibc 2.2.5; replacing single functions of a family that keeps its
 * blocks is all that is done here, so every block is one of the C library, whoever allocates it
 * ("Replacing malloc" of glibc's manual asks for the whole family where blocks are another
 * allocator's).
 */
#include "include/erasing_heap.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)

bool erasing_heap_is_used(void)
{
    return false;
}

#else

#define EXPORTED __attribute__((visibility("default")))

extern void __libc_free(void *block);

EXPORTED void free(void *block)
{
    if (!block)
        return;
    /* All that the block has, not only what was asked for. */
    explicit_bzero(block, malloc_usable_size(block));
    __libc_free(block);
}

/* The C library's would move a block and leave the old one as it was. */
EXPORTED void *realloc(void *block, size_t size)
{
    if (!block)
        return malloc(size);
    if (size == 0) {
        free(block);
        return NULL;
    }
    size_t usable = malloc_usable_size(block);
    /* What is cut off is erased with the rest. */
    if (size <= usable && size >= usable / 2)
        return block;
    void *moved = malloc(size);
    if (!moved)
        return NULL;
    memcpy(moved, block, size < usable ? size : usable);
    free(block);
    return moved;
}

bool erasing_heap_is_used(void)
{
    return true;
}

#endif
