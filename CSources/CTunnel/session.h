/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session: the two transport keys a handshake yields, with their counters. Born by
 * session_install(), read by data threads inside epoch sections, erased when the epoch passed.
 */
#ifndef CTUNNEL_SESSION_H
#define CTUNNEL_SESSION_H

#include "crypto/aead.h"
#include "epoch.h"
#include "index.h"
#include "noise.h"
#include "replay.h"
#include <stdatomic.h>

/* What embeds an index entry. */
enum index_kind { INDEX_HANDSHAKE = 1, INDEX_SESSION = 2 };

/* A handshake of ours that waits for its answer, as the index table knows it. */
struct handshake_entry {
    struct index_entry entry;
    struct epoch_item retired;
    struct peer *peer;
};

struct session {
    struct index_entry entry; /* our receiver index */
    struct epoch_item retired;
    struct peer *peer;
    struct aead_key send_key, receive_key;
    uint64_t born_ns;
    uint32_t remote_index; /* theirs, as on the wire */
    bool initiator;        /* we began the handshake: we rekey */
    _Atomic bool send_valid;

    /* Lines of their own: what a receiving thread writes per packet, what a sending one per batch.
     */
    _Alignas(64) struct replay_window replay; /* guarded by peer->data_lock */
    _Alignas(64) _Atomic uint64_t next_counter;
    /* Lowest counter a thread has reserved and not yet sent, by thread slot; IDLE_SLOT: none. */
    unsigned slot_count;
    _Atomic uint64_t in_flight[];
};

#define IDLE_SLOT UINT64_MAX

/* NULL: out of memory. Takes the keys over and wipes `keys`. */
struct session *session_create(struct peer *peer, struct noise_session_keys *keys,
                               uint32_t remote_index, uint64_t now_ns, unsigned slots);
/* Unlinks the index and erases the keys once no thread can see them. NULL is allowed. */
void session_retire(struct session *session, struct index_table *table, struct epoch *epoch);

/* A data thread reads the clock once per batch: a session made after that is of age 0, not of the
 * age that the subtraction would wrap to. */
static inline uint64_t session_age(const struct session *s, uint64_t now_ns)
{
    return now_ns > s->born_ns ? now_ns - s->born_ns : 0;
}

/* May this session encrypt, or decrypt, at this moment? (pitfalls 39, 43) */
static inline bool session_can_send(const struct session *s, uint64_t now_ns)
{
    return s && atomic_load_explicit(&s->send_valid, memory_order_acquire) &&
           session_age(s, now_ns) < REJECT_AFTER_TIME;
}

static inline bool session_can_receive(const struct session *s, uint64_t now_ns)
{
    return s && session_age(s, now_ns) < REJECT_AFTER_TIME;
}

/*
 * Reserves `count` (≤ MAX_BATCH_PACKETS) consecutive send counters for the thread of `slot`; the
 * caller encrypts and sends at once, then calls session_sent(). Never lets the newest reservation
 * run a replay window ahead of one still in flight (pitfall 36): it yields until that is sent.
 * False: the session's counters are used up (pitfall 39); it will not send again.
 */
bool session_reserve(struct session *session, unsigned slot, uint64_t count, uint64_t *first);
void session_sent(struct session *session, unsigned slot);

struct handshake_entry *handshake_entry_create(struct peer *peer, struct index_table *table);
void handshake_entry_retire(struct handshake_entry *entry, struct index_table *table,
                            struct epoch *epoch);

#endif
