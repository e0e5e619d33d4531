/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"
#include "lines.h"
#include <sched.h>
#include <sodium.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

struct session *session_create(struct peer *peer, struct noise_session_keys *keys,
                               uint32_t remote_index, uint64_t now_ns, unsigned slots)
{
    struct session *s = lines_alloc(sizeof *s + slots * sizeof s->in_flight[0]);
    if (!s) {
        sodium_memzero(keys, sizeof *keys);
        return NULL;
    }
    s->entry.kind = INDEX_SESSION;
    s->peer = peer;
    s->send_key = keys->send;
    s->receive_key = keys->receive;
    s->initiator = keys->initiator;
    s->remote_index = remote_index;
    s->born_ns = now_ns;
    atomic_init(&s->send_valid, true);
    atomic_init(&s->next_counter, 0);
    s->slot_count = slots;
    for (unsigned i = 0; i < slots; i++)
        atomic_init(&s->in_flight[i], IDLE_SLOT);
    sodium_memzero(keys, sizeof *keys);
    return s;
}

static void session_release(struct epoch_item *item)
{
    struct session *s = container_of(item, struct session, retired);
    sodium_memzero(s, sizeof *s);
    free(s);
}

void session_retire(struct session *session, struct index_table *table, struct epoch *epoch)
{
    if (!session)
        return;
    index_table_remove(table, &session->entry);
    epoch_retire(epoch, &session->retired, session_release);
}

/* How far `next` may be ahead: every counter of the batch must stay within the window of whatever
 * is still unsent. */
static bool window_allows(const struct session *s, uint64_t last)
{
    for (unsigned i = 0; i < s->slot_count; i++) {
        uint64_t oldest = atomic_load(&s->in_flight[i]);
        if (oldest != IDLE_SLOT && oldest < last && last - oldest >= REPLAY_WINDOW)
            return false;
    }
    return true;
}

bool session_reserve(struct session *s, unsigned slot, uint64_t count, uint64_t *first)
{
    uint64_t next = atomic_load(&s->next_counter);
    do {
        if (next >= REJECT_AFTER_MESSAGES || count > REJECT_AFTER_MESSAGES - next) {
            atomic_store(&s->in_flight[slot], IDLE_SLOT);
            atomic_store(&s->send_valid, false);
            return false;
        }
        /* Announced before it is taken, so that no other thread can miss it. */
        atomic_store(&s->in_flight[slot], next);
        while (!window_allows(s, next + count - 1))
            sched_yield();
    } while (!atomic_compare_exchange_strong(&s->next_counter, &next, next + count));
    *first = next;
    return true;
}

void session_sent(struct session *s, unsigned slot)
{
    atomic_store_explicit(&s->in_flight[slot], IDLE_SLOT, memory_order_release);
}

struct handshake_entry *handshake_entry_create(struct peer *peer, struct index_table *table)
{
    struct handshake_entry *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->peer = peer;
    e->entry.kind = INDEX_HANDSHAKE;
    if (!index_table_insert(table, &e->entry)) {
        free(e);
        return NULL;
    }
    return e;
}

static void handshake_entry_release(struct epoch_item *item)
{
    free(container_of(item, struct handshake_entry, retired));
}

void handshake_entry_retire(struct handshake_entry *e, struct index_table *table,
                            struct epoch *epoch)
{
    if (!e)
        return;
    index_table_remove(table, &e->entry);
    epoch_retire(epoch, &e->retired, handshake_entry_release);
}
