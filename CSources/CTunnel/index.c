/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear probing over an array of pointers. Writers hold `lock` and publish single slots; a full
 * array is replaced by a new one and retired. A slot goes from empty to entry to tombstone, and
 * back to empty only when the slot after it is empty, so that no reader stops short of its entry.
 */
#include "index.h"
#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define MINIMUM_SLOTS  16
#define DRAWS_BUFFERED 64
#define DRAWS_FILTERED 64

struct slots {
    struct epoch_item retired;
    unsigned shift; /* 32 - log2 of the number of slots */
    uint32_t mask;
    _Atomic(struct index_entry *) slot[];
};

struct index_table {
    struct epoch *epoch;
    _Atomic(struct slots *) slots;
    pthread_mutex_t lock; /* guards the rest, and every change of a slot */
    size_t count;         /* entries */
    size_t used;          /* entries and tombstones */
    bool (*accept)(void *context, uint32_t index);
    void *context;
    unsigned draws_left;
    uint32_t draws[DRAWS_BUFFERED]; /* one getrandom(2) for many indices */
};

static struct index_entry tombstone;

/* Fibonacci hashing (Knuth, TAOCP vol. 3, §6.4): a filter may leave the low bits unevenly used. */
static uint32_t home(const struct slots *slots, uint32_t index)
{
    return (index * 0x9e3779b1u) >> slots->shift;
}

/* Owners may insert an entry again while a reader of its former index still looks at it. */
static uint32_t index_of(const struct index_entry *entry)
{
    return __atomic_load_n(&entry->index, __ATOMIC_RELAXED);
}

static void set_index(struct index_entry *entry, uint32_t index)
{
    __atomic_store_n(&entry->index, index, __ATOMIC_RELAXED);
}

static struct slots *slots_create(size_t count)
{
    struct slots *slots = calloc(1, sizeof(*slots) + count * sizeof(slots->slot[0]));
    if (!slots)
        return NULL;
    slots->mask = (uint32_t)(count - 1);
    slots->shift = 32 - (unsigned)__builtin_ctzll(count);
    return slots;
}

static void slots_release(struct epoch_item *item)
{
    static_assert(offsetof(struct slots, retired) == 0, "the item is at the start");
    free(item);
}

struct index_table *index_table_create(struct epoch *epoch)
{
    struct index_table *table = calloc(1, sizeof(*table));
    if (!table)
        return NULL;
    struct slots *slots = slots_create(MINIMUM_SLOTS);
    if (!slots) {
        free(table);
        return NULL;
    }
    table->epoch = epoch;
    atomic_init(&table->slots, slots);
    pthread_mutex_init(&table->lock, NULL);
    return table;
}

void index_table_destroy(struct index_table *table)
{
    if (!table)
        return;
    pthread_mutex_destroy(&table->lock);
    free(atomic_load(&table->slots));
    sodium_memzero(table->draws, sizeof(table->draws));
    free(table);
}

void index_table_set_filter(struct index_table *table, bool (*accept)(void *, uint32_t),
                            void *context)
{
    pthread_mutex_lock(&table->lock);
    table->accept = accept;
    table->context = context;
    pthread_mutex_unlock(&table->lock);
}

static struct index_entry *find(const struct slots *slots, uint32_t index)
{
    for (uint32_t i = home(slots, index);; i = (i + 1) & slots->mask) {
        struct index_entry *entry = atomic_load_explicit(&slots->slot[i], memory_order_acquire);
        if (!entry)
            return NULL;
        if (entry != &tombstone && index_of(entry) == index)
            return entry;
    }
}

/* The slot that holds `entry`, or NULL. */
static _Atomic(struct index_entry *) *slot_of(struct slots *slots, const struct index_entry *entry)
{
    for (uint32_t i = home(slots, index_of(entry));; i = (i + 1) & slots->mask) {
        struct index_entry *there = atomic_load_explicit(&slots->slot[i], memory_order_relaxed);
        if (there == entry)
            return &slots->slot[i];
        if (!there)
            return NULL;
    }
}

/* Returns whether an empty slot was taken, not a tombstone. */
static bool place(struct slots *slots, struct index_entry *entry)
{
    for (uint32_t i = home(slots, index_of(entry));; i = (i + 1) & slots->mask) {
        struct index_entry *there = atomic_load_explicit(&slots->slot[i], memory_order_relaxed);
        if (there && there != &tombstone)
            continue;
        atomic_store_explicit(&slots->slot[i], entry, memory_order_release);
        return !there;
    }
}

/* Keeps entries and tombstones within half of the slots, one more entry included. */
static bool make_room(struct index_table *table)
{
    struct slots *old = atomic_load_explicit(&table->slots, memory_order_relaxed);
    if (2 * (table->used + 1) <= (size_t)old->mask + 1)
        return true;

    size_t size = MINIMUM_SLOTS;
    while (size < 4 * (table->count + 1))
        size *= 2;
    struct slots *fresh = slots_create(size);
    if (!fresh)
        return false;
    for (uint32_t i = 0; i <= old->mask; i++) {
        struct index_entry *entry = atomic_load_explicit(&old->slot[i], memory_order_relaxed);
        if (entry && entry != &tombstone)
            place(fresh, entry);
    }
    table->used = table->count;
    atomic_store_explicit(&table->slots, fresh, memory_order_release);
    epoch_retire(table->epoch, &old->retired, slots_release);
    return true;
}

static uint32_t next_random(struct index_table *table)
{
    if (!table->draws_left) {
        randombytes_buf(table->draws, sizeof(table->draws));
        table->draws_left = DRAWS_BUFFERED;
    }
    uint32_t *draw = &table->draws[--table->draws_left];
    uint32_t index = *draw;
    *draw = 0;
    return index;
}

static uint32_t draw_index(struct index_table *table)
{
    const struct slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    uint32_t index;
    for (unsigned attempt = 1;; attempt++) {
        do
            index = next_random(table);
        while (!index || find(slots, index));
        if (!table->accept || attempt >= DRAWS_FILTERED || table->accept(table->context, index))
            return index;
    }
}

bool index_table_insert(struct index_table *table, struct index_entry *entry)
{
    pthread_mutex_lock(&table->lock);
    bool room = make_room(table);
    if (room) {
        set_index(entry, draw_index(table));
        table->used += place(atomic_load_explicit(&table->slots, memory_order_relaxed), entry);
        table->count++;
    }
    pthread_mutex_unlock(&table->lock);
    return room;
}

bool index_table_replace(struct index_table *table, struct index_entry *old_entry,
                         struct index_entry *new_entry)
{
    pthread_mutex_lock(&table->lock);
    struct slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    _Atomic(struct index_entry *) *slot = slot_of(slots, old_entry);
    if (slot) {
        set_index(new_entry, index_of(old_entry));
        atomic_store_explicit(slot, new_entry, memory_order_release);
    }
    pthread_mutex_unlock(&table->lock);
    return slot != NULL;
}

/* Turns slot `i` and the tombstones before it into empty slots, if the one after it is empty. */
static void clear_slot(struct index_table *table, struct slots *slots, uint32_t i)
{
    atomic_store_explicit(&slots->slot[i], &tombstone, memory_order_relaxed);
    if (atomic_load_explicit(&slots->slot[(i + 1) & slots->mask], memory_order_relaxed))
        return;
    while (atomic_load_explicit(&slots->slot[i], memory_order_relaxed) == &tombstone) {
        atomic_store_explicit(&slots->slot[i], NULL, memory_order_relaxed);
        table->used--;
        i = (i - 1) & slots->mask;
    }
}

void index_table_remove(struct index_table *table, struct index_entry *entry)
{
    pthread_mutex_lock(&table->lock);
    struct slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    _Atomic(struct index_entry *) *slot = slot_of(slots, entry);
    if (slot) {
        clear_slot(table, slots, (uint32_t)(slot - slots->slot));
        table->count--;
    }
    pthread_mutex_unlock(&table->lock);
}

struct index_entry *index_table_lookup(struct index_table *table, uint32_t index)
{
    return find(atomic_load_explicit(&table->slots, memory_order_acquire), index);
}

size_t index_table_count(struct index_table *table)
{
    pthread_mutex_lock(&table->lock);
    size_t count = table->count;
    pthread_mutex_unlock(&table->lock);
    return count;
}
