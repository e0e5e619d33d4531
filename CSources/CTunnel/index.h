/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiver index → handshake or session. Open addressing, lookups without locks under the epoch,
 * changes under the table's own lock.
 */
#ifndef CTUNNEL_INDEX_H
#define CTUNNEL_INDEX_H

#include "epoch.h"
#include <stddef.h>

/* Embedded in its owner, which stays valid until the epoch passed after removal. */
struct index_entry {
    uint32_t index; /* host order, never 0 while in the table */
    uint8_t kind;   /* the owner's business: tells what embeds it */
};

struct index_table;

/* NULL: out of memory. */
struct index_table *index_table_create(struct epoch *epoch);
void index_table_destroy(struct index_table *table);

/* Restricts draws for load balance: an index is drawn until `accept(context, index)` says yes, at
 * most 64 times. NULL: any. Not concurrent with draws. */
void index_table_set_filter(struct index_table *table, bool (*accept)(void *, uint32_t),
                            void *context);

/* Draws an unpredictable index not in use (pitfall 55), stores it in `entry` and inserts it.
 * False: out of memory. */
bool index_table_insert(struct index_table *table, struct index_entry *entry);
/* Puts `new_entry` (index copied from `old_entry`) in its place atomically. False: `old_entry` was
 * not there, nothing changed. */
bool index_table_replace(struct index_table *table, struct index_entry *old_entry,
                         struct index_entry *new_entry);
/* No effect when it is not there. */
void index_table_remove(struct index_table *table, struct index_entry *entry);

/* Inside an epoch section. NULL: unknown. */
struct index_entry *index_table_lookup(struct index_table *table, uint32_t index);
size_t index_table_count(struct index_table *table);

#endif
