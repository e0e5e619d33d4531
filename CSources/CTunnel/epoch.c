/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why nothing is freed under a reader. All five steps are sequentially consistent:
 *
 *   reader:  a. entered = global      b. load global      then reads of shared pointers
 *   writer:  (unlink)                 c. global += 1
 *   reclaim:                          d. load entered     then release
 *
 * If d reads the value of a, the reader's epoch is compared with the item's. If d misses a, then d
 * precedes a, hence c precedes b: b reads from c and the reader sees the unlink. No fence is used,
 * because ThreadSanitizer does not model them.
 *
 * Background: K. Fraser, "Practical lock-freedom", 2004, §5.2.3 (epoch-based reclamation).
 */
#include "epoch.h"
#include <stddef.h>

void epoch_init(struct epoch *epoch)
{
    atomic_init(&epoch->global, 1);
    pthread_mutex_init(&epoch->lock, NULL);
    epoch->retired_head = NULL;
    epoch->retired_tail = NULL;
    epoch->reader_count = 0;
    for (unsigned i = 0; i < EPOCH_MAX_READERS; i++)
        atomic_init(&epoch->readers[i].entered, 0);
}

static void release_list(struct epoch_item *item)
{
    while (item) {
        struct epoch_item *next = item->next; /* release frees what holds `item` */
        item->release(item);
        item = next;
    }
}

void epoch_destroy(struct epoch *epoch)
{
    /* A release may retire something else. */
    while (epoch->retired_head) {
        struct epoch_item *due = epoch->retired_head;
        epoch->retired_head = NULL;
        epoch->retired_tail = NULL;
        release_list(due);
    }
    pthread_mutex_destroy(&epoch->lock);
}

struct epoch_reader *epoch_register(struct epoch *epoch)
{
    struct epoch_reader *reader = NULL;
    pthread_mutex_lock(&epoch->lock);
    if (epoch->reader_count < EPOCH_MAX_READERS)
        reader = &epoch->readers[epoch->reader_count++];
    pthread_mutex_unlock(&epoch->lock);
    return reader;
}

void epoch_enter(struct epoch *epoch, struct epoch_reader *reader)
{
    atomic_store(&reader->entered, atomic_load(&epoch->global));
    (void)atomic_load(&epoch->global); /* step b above */
}

void epoch_leave(struct epoch_reader *reader)
{
    atomic_store_explicit(&reader->entered, 0, memory_order_release);
}

void epoch_retire(struct epoch *epoch, struct epoch_item *item,
                  void (*release)(struct epoch_item *item))
{
    item->next = NULL;
    item->release = release;
    pthread_mutex_lock(&epoch->lock);
    /* Under the lock, so that the list is ordered by `retired_at`. */
    item->retired_at = atomic_fetch_add(&epoch->global, 1);
    if (epoch->retired_tail)
        epoch->retired_tail->next = item;
    else
        epoch->retired_head = item;
    epoch->retired_tail = item;
    pthread_mutex_unlock(&epoch->lock);
}

/* The epoch of the reader that is inside for longest; UINT64_MAX when all are outside. */
static uint64_t oldest_reader(struct epoch *epoch)
{
    uint64_t oldest = UINT64_MAX;
    for (unsigned i = 0; i < epoch->reader_count; i++) {
        uint64_t entered = atomic_load(&epoch->readers[i].entered);
        if (entered && entered < oldest)
            oldest = entered;
    }
    return oldest;
}

bool epoch_reclaim(struct epoch *epoch)
{
    struct epoch_item *due = NULL, **end = &due;

    pthread_mutex_lock(&epoch->lock);
    uint64_t oldest = epoch->retired_head ? oldest_reader(epoch) : 0;
    while (epoch->retired_head && epoch->retired_head->retired_at < oldest) {
        *end = epoch->retired_head;
        end = &epoch->retired_head->next;
        epoch->retired_head = epoch->retired_head->next;
    }
    *end = NULL;
    if (!epoch->retired_head)
        epoch->retired_tail = NULL;
    bool waiting = epoch->retired_head != NULL;
    pthread_mutex_unlock(&epoch->lock);

    release_list(due);
    return waiting;
}
