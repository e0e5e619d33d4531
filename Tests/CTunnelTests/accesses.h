/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which cache lines the data path reads and writes, and on whose behalf. The Makefile compiles a
 * second copy of CTunnel with -fsanitize=thread for tests that include this, and links no runtime:
 * the calls that the compiler puts before every load and store end here. What is compiled elsewhere
 * is told by wrappers (the linker's --wrap): locks and copies of libc. Not seen: stores of more
 * than 16 bytes at a time, which only avx2 and avx512 have, and what other libraries do.
 *
 * The test says on whose behalf the code runs; accesses to the stack are its own in any thread and
 * not recorded.
 */
#ifndef CTUNNEL_ACCESSES_H
#define CTUNNEL_ACCESSES_H

#include "lines.h"
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ACCESS_LINES (1u << 20)

struct access_line {
    uintptr_t line;
    uint32_t readers, writers; /* bits of actors */
    uint64_t count;            /* of accesses */
};

static struct {
    int actor; /* -1: nobody records */
    uintptr_t stack_low, stack_high;
    uintptr_t ignored, ignored_end; /* the world's: what it copies there is nobody's */
    struct access_line *lines;      /* a hash table */
    size_t used;
} accesses = {.actor = -1};

static void accesses_start(void)
{
    pthread_attr_t attributes;
    void *stack;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attributes) ||
        pthread_attr_getstack(&attributes, &stack, &size))
        abort();
    pthread_attr_destroy(&attributes);
    accesses.stack_low = (uintptr_t)stack;
    accesses.stack_high = (uintptr_t)stack + size;
    accesses.used = 0;
    accesses.ignored = accesses.ignored_end = 0;
    free(accesses.lines);
    accesses.lines = calloc(ACCESS_LINES, sizeof *accesses.lines);
    if (!accesses.lines)
        abort();
}

static void accesses_ignore(const void *memory, size_t size)
{
    accesses.ignored = (uintptr_t)memory;
    accesses.ignored_end = accesses.ignored + size;
}

static void accesses_end(void)
{
    accesses.actor = -1;
    free(accesses.lines);
    accesses.lines = NULL;
}

static struct access_line *access_find(uintptr_t line)
{
    size_t i = (size_t)(line * 0x9e3779b97f4a7c15 >> 44);
    while (accesses.lines[i].line && accesses.lines[i].line != line)
        i = (i + 1) % ACCESS_LINES;
    if (!accesses.lines[i].line) {
        accesses.lines[i].line = line;
        if (++accesses.used > ACCESS_LINES / 2)
            abort();
    }
    return &accesses.lines[i];
}

static void access_record(const volatile void *address, size_t size, bool write)
{
    uintptr_t at = (uintptr_t)address;
    if (accesses.actor < 0 || !size || (at >= accesses.stack_low && at < accesses.stack_high) ||
        (at >= accesses.ignored && at < accesses.ignored_end))
        return;
    for (uintptr_t line = at / CACHE_LINE; line <= (at + size - 1) / CACHE_LINE; line++) {
        struct access_line *l = access_find(line);
        *(write ? &l->writers : &l->readers) |= 1u << accesses.actor;
        l->count++;
    }
}

/* Written by one and touched by another: it has to travel between their caches. */
static bool access_travels(const struct access_line *l)
{
    uint32_t all = l->readers | l->writers;
    return l->writers && (all & (all - 1));
}

/* ---- what the compiler calls --------------------------------------------------------------- */

#define ACCESS_PLAIN(size)                                                                         \
    void __tsan_read##size(void *p);                                                               \
    void __tsan_read##size(void *p)                                                                \
    {                                                                                              \
        access_record(p, size, false);                                                             \
    }                                                                                              \
    void __tsan_write##size(void *p);                                                              \
    void __tsan_write##size(void *p)                                                               \
    {                                                                                              \
        access_record(p, size, true);                                                              \
    }                                                                                              \
    void __tsan_unaligned_read##size(void *p);                                                     \
    void __tsan_unaligned_read##size(void *p)                                                      \
    {                                                                                              \
        access_record(p, size, false);                                                             \
    }                                                                                              \
    void __tsan_unaligned_write##size(void *p);                                                    \
    void __tsan_unaligned_write##size(void *p)                                                     \
    {                                                                                              \
        access_record(p, size, true);                                                              \
    }
ACCESS_PLAIN(1)
ACCESS_PLAIN(2)
ACCESS_PLAIN(4)
ACCESS_PLAIN(8)
ACCESS_PLAIN(16)

/* gcc's, for structures */
void __tsan_read_range(void *p, size_t size);
void __tsan_read_range(void *p, size_t size)
{
    access_record(p, size, false);
}
void __tsan_write_range(void *p, size_t size);
void __tsan_write_range(void *p, size_t size)
{
    access_record(p, size, true);
}

/* The stronger order does for all. */
#define ACCESS_ATOMIC(bits, type)                                                                  \
    type __tsan_atomic##bits##_load(const volatile type *p, int order);                            \
    type __tsan_atomic##bits##_load(const volatile type *p, int order)                             \
    {                                                                                              \
        (void)order;                                                                               \
        access_record(p, sizeof *p, false);                                                        \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                               \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile type *p, type v, int order);                         \
    void __tsan_atomic##bits##_store(volatile type *p, type v, int order)                          \
    {                                                                                              \
        (void)order;                                                                               \
        access_record(p, sizeof *p, true);                                                         \
        __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                  \
    }                                                                                              \
    type __tsan_atomic##bits##_exchange(volatile type *p, type v, int order);                      \
    type __tsan_atomic##bits##_exchange(volatile type *p, type v, int order)                       \
    {                                                                                              \
        (void)order;                                                                               \
        access_record(p, sizeof *p, true);                                                         \
        return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                        \
    }                                                                                              \
    type __tsan_atomic##bits##_fetch_add(volatile type *p, type v, int order);                     \
    type __tsan_atomic##bits##_fetch_add(volatile type *p, type v, int order)                      \
    {                                                                                              \
        (void)order;                                                                               \
        access_record(p, sizeof *p, true);                                                         \
        return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);                                         \
    }                                                                                              \
    type __tsan_atomic##bits##_fetch_sub(volatile type *p, type v, int order);                     \
    type __tsan_atomic##bits##_fetch_sub(volatile type *p, type v, int order)                      \
    {                                                                                              \
        (void)order;                                                                               \
        access_record(p, sizeof *p, true);                                                         \
        return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST);                                         \
    }                                                                                              \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *p, type *expected, type v,    \
                                                      int success, int failure);                   \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *p, type *expected, type v,    \
                                                      int success, int failure)                    \
    {                                                                                              \
        (void)success, (void)failure;                                                              \
        access_record(p, sizeof *p, true);                                                         \
        return __atomic_compare_exchange_n(p, expected, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    }                                                                                              \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *p, type expected, type v,       \
                                                    int success, int failure);                     \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *p, type expected, type v,       \
                                                    int success, int failure)                      \
    {                                                                                              \
        __tsan_atomic##bits##_compare_exchange_strong(p, &expected, v, success, failure);          \
        return expected;                                                                           \
    }
ACCESS_ATOMIC(8, uint8_t)
ACCESS_ATOMIC(16, uint16_t)
ACCESS_ATOMIC(32, uint32_t)
ACCESS_ATOMIC(64, uint64_t)

void __tsan_init(void);
void __tsan_init(void) {}
void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller)
{
    (void)caller;
}
void __tsan_func_exit(void);
void __tsan_func_exit(void) {}

/* ---- libc ---------------------------------------------------------------------------------- */

void *__real_memcpy(void *to, const void *from, size_t size);
void *__wrap_memcpy(void *to, const void *from, size_t size);
void *__wrap_memcpy(void *to, const void *from, size_t size)
{
    access_record(from, size, false);
    access_record(to, size, true);
    return __real_memcpy(to, from, size);
}
void *__tsan_memcpy(void *to, const void *from, size_t size);
void *__tsan_memcpy(void *to, const void *from, size_t size)
{
    return __wrap_memcpy(to, from, size);
}

void *__real_memmove(void *to, const void *from, size_t size);
void *__wrap_memmove(void *to, const void *from, size_t size);
void *__wrap_memmove(void *to, const void *from, size_t size)
{
    access_record(from, size, false);
    access_record(to, size, true);
    return __real_memmove(to, from, size);
}
void *__tsan_memmove(void *to, const void *from, size_t size);
void *__tsan_memmove(void *to, const void *from, size_t size)
{
    return __wrap_memmove(to, from, size);
}

void *__real_memset(void *to, int value, size_t size);
void *__wrap_memset(void *to, int value, size_t size);
void *__wrap_memset(void *to, int value, size_t size)
{
    access_record(to, size, true);
    return __real_memset(to, value, size);
}
void *__tsan_memset(void *to, int value, size_t size);
void *__tsan_memset(void *to, int value, size_t size)
{
    return __wrap_memset(to, value, size);
}

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    access_record(mutex, sizeof *mutex, true);
    return __real_pthread_mutex_lock(mutex);
}

int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    access_record(mutex, sizeof *mutex, true);
    return __real_pthread_mutex_unlock(mutex);
}

#endif
