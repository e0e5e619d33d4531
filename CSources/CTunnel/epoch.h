/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Epoch-based reclamation: data threads read shared structures without locks inside a section; what
 * is unlinked is freed once every thread has left the sections it was in.
 */
#ifndef CTUNNEL_EPOCH_H
#define CTUNNEL_EPOCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define EPOCH_MAX_READERS 160

struct epoch_reader {
    _Alignas(64) _Atomic uint64_t entered; /* global epoch at enter, 0 outside a section */
};

/* Embedded in whatever is retired. */
struct epoch_item {
    struct epoch_item *next;
    void (*release)(struct epoch_item *item);
    uint64_t retired_at;
};

struct epoch {
    _Atomic uint64_t global; /* starts at 1 */
    pthread_mutex_t lock;    /* guards the rest */
    struct epoch_item *retired_head, *retired_tail;
    unsigned reader_count;
    struct epoch_reader readers[EPOCH_MAX_READERS];
};

void epoch_init(struct epoch *epoch);
/* Releases everything retired; no reader may be inside. */
void epoch_destroy(struct epoch *epoch);

/* Registers a thread; NULL when all are taken. Valid until epoch_destroy(). */
struct epoch_reader *epoch_register(struct epoch *epoch);

/* Not nested. Wait-free. */
void epoch_enter(struct epoch *epoch, struct epoch_reader *reader);
void epoch_leave(struct epoch_reader *reader);

/* `item` is unreachable for new readers; `release` runs later in epoch_reclaim(). */
void epoch_retire(struct epoch *epoch, struct epoch_item *item,
                  void (*release)(struct epoch_item *item));
/* Runs what is due, outside the lock. Returns whether anything is still waiting. */
bool epoch_reclaim(struct epoch *epoch);

#endif
