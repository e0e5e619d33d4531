/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

struct chunk {
    struct chunk *previous, *next; /* with room, of the same size of block */
    void *free;                    /* a list through the first word of each */
    uint32_t size, used, fresh;    /* `fresh`: blocks up to here were taken before */
};

#define FIRST_BLOCK 64 /* behind the chunk's head */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything here */
static struct chunk *with_room[LARGEST_BLOCK / 8 + 1];
static size_t chunk_count;
static _Atomic size_t array_bytes;

static_assert(sizeof(struct chunk) <= FIRST_BLOCK, "the head fits");

static uint32_t capacity(const struct chunk *chunk)
{
    return (uint32_t)((HUGE_PAGE - FIRST_BLOCK) / chunk->size);
}

static void list_chunk(struct chunk *chunk)
{
    struct chunk **head = &with_room[chunk->size / 8];
    chunk->previous = NULL;
    chunk->next = *head;
    if (*head)
        (*head)->previous = chunk;
    *head = chunk;
}

static void unlist_chunk(struct chunk *chunk)
{
    if (chunk->previous)
        chunk->previous->next = chunk->next;
    else
        with_room[chunk->size / 8] = chunk->next;
    if (chunk->next)
        chunk->next->previous = chunk->previous;
}

/* A mapping of twice the size holds an aligned one; the rest goes back. */
static struct chunk *map_chunk(size_t size)
{
    uint8_t *all = mmap(NULL, 2 * HUGE_PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)all & (HUGE_PAGE - 1);
    if (before)
        munmap(all, before);
    munmap(all + before + HUGE_PAGE, HUGE_PAGE - before);
    madvise(all + before, HUGE_PAGE, MADV_HUGEPAGE); /* where the system has them */
    struct chunk *chunk = (struct chunk *)(all + before);
    chunk->size = (uint32_t)size; /* the rest is zero */
    chunk_count++;
    list_chunk(chunk);
    return chunk;
}

static void *take_from(struct chunk *chunk)
{
    void *block = chunk->free;
    if (block)
        chunk->free = *(void **)block;
    else
        block = (uint8_t *)chunk + FIRST_BLOCK + (size_t)chunk->fresh++ * chunk->size;
    if (++chunk->used == capacity(chunk))
        unlist_chunk(chunk);
    return block;
}

void *blocks_take(size_t size)
{
    pthread_mutex_lock(&lock);
    struct chunk *chunk = with_room[size / 8];
    if (!chunk)
        chunk = map_chunk(size);
    void *block = chunk ? take_from(chunk) : NULL;
    pthread_mutex_unlock(&lock);
    return block;
}

void blocks_give(void *block)
{
    struct chunk *chunk = (struct chunk *)((uintptr_t)block & ~(HUGE_PAGE - 1));
    pthread_mutex_lock(&lock);
    if (chunk->used-- == capacity(chunk))
        list_chunk(chunk);
    *(void **)block = chunk->free;
    chunk->free = block;
    if (!chunk->used) {
        unlist_chunk(chunk);
        munmap(chunk, HUGE_PAGE);
        chunk_count--;
    }
    pthread_mutex_unlock(&lock);
}

size_t blocks_bytes(void)
{
    pthread_mutex_lock(&lock);
    size_t bytes = chunk_count * HUGE_PAGE + atomic_load(&array_bytes);
    pthread_mutex_unlock(&lock);
    return bytes;
}

/* ---- arrays -------------------------------------------------------------------------------- */

#define PAGES_AT (64u << 10)

void *array_take(size_t size)
{
    void *array = NULL;
    if (size < PAGES_AT)
        return posix_memalign(&array, ARRAY_ALIGNMENT, size) == 0 ? array : NULL;
    array = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (array == MAP_FAILED)
        return NULL;
    atomic_fetch_add(&array_bytes, size);
    if (size >= 2 * HUGE_PAGE)
        madvise(array, size, MADV_HUGEPAGE);
    return array;
}

void array_give(void *array, size_t size)
{
    if (size < PAGES_AT) {
        free(array);
        return;
    }
    munmap(array, size);
    atomic_fetch_sub(&array_bytes, size);
}
