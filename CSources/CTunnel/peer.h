/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer: its handshake, its sessions, where it is, what waits for a session, and its timers.
 *
 * Lifetime: the configuration owns one reference, the handshake queue and a due timer each one
 * while they hold the peer. Data threads hold none: they see peers inside epoch sections only.
 *
 * Lock order: tunnel.config_lock → peer.lock → peer.data_lock → locks of the tables and queues.
 */
#ifndef CTUNNEL_PEER_H
#define CTUNNEL_PEER_H

#include "allowedips.h"
#include "cookie.h"
#include "endpoint.h"
#include "session.h"
#include "timers.h"

struct tunnel;

/* An inner packet that waits for a session. */
struct staged_packet {
    struct staged_packet *next;
    uint32_t length;
    uint8_t data[];
};

struct peer {
    struct tunnel *tunnel;
    _Atomic uint32_t references;
    _Atomic bool dead; /* removed from the configuration; set under `lock` */
    struct epoch_item retired;
    uint32_t worker;                /* that receives from it; never changes */
    uint8_t public_key[KEY_LENGTH]; /* never changes: read without `lock`, unlike the handshake's */

    /* Under tunnel.config_lock and, for writing, tunnel.peers_lock. */
    struct peer *next, *previous; /* in order of creation */
    struct peer *hash_next;
    bool keep; /* named in the replacement that is open */

    struct allowedips_owner allowed_ips; /* config_lock */

    /* Sessions: pointers read inside epoch sections, written under `lock`. */
    struct session *_Atomic previous_session, *_Atomic current_session, *_Atomic next_session;

    pthread_mutex_t lock; /* guards what follows, up to data_lock */
    struct noise_handshake handshake;
    struct handshake_entry *handshake_entry;
    struct cookie_sender cookie;
    uint64_t last_label_seconds; /* TAI64N we sent last to this peer, as CLOCK_REALTIME */
    uint32_t last_label_nanoseconds;
    struct staged_packet *staged_head, *staged_tail;
    uint32_t staged_count;
    int64_t last_handshake_seconds; /* CLOCK_REALTIME, for people */
    uint32_t last_handshake_nanoseconds;
    bool flushing; /* a thread is sending the staged packets */

    /* Data threads append to what is staged rather than overtake it. */
    _Atomic bool staging;
    _Atomic bool no_gso; /* this session: a GSO train was too long for its path (pitfall 23) */
    _Atomic uint64_t last_initiation_sent_ns; /* 0: never */

    pthread_mutex_t data_lock; /* short: guards the endpoint and the sessions' replay windows */
    struct endpoint endpoint;

    struct peer_timers timers;
    _Atomic uint64_t rx_bytes, tx_bytes;

    /* handshake queue, under its lock */
    struct peer *initiation_next;
    bool initiation_queued;
};

/* NULL: out of memory. One reference, owned by the caller. */
struct peer *peer_create(struct tunnel *tunnel, const uint8_t public_key[KEY_LENGTH]);
struct peer *peer_hold(struct peer *peer);
void peer_release(struct peer *peer);

/* Removal, in phases: unreachable for new packets and timers, then sessions retired and secrets
 * dropped, then the reference given back once no data thread can see it. The caller has taken it
 * out of the configuration's tables. */
void peer_kill(struct peer *peer);

/* Forgets sessions and the handshake, drops what is staged (link down, erase timer, new identity).
 */
void peer_clear_sessions(struct peer *peer, bool drop_staged);
/* Forgets sessions that are past their time, and the handshake unless one is under way. */
void peer_erase_keys(struct peer *peer, uint64_t now_ns);

/* Copy of the endpoint. */
struct endpoint peer_endpoint(struct peer *peer);
void peer_set_endpoint(struct peer *peer, const struct endpoint *endpoint);
void peer_clear_source(struct peer *peer);

/* Installs the keys of a finished handshake: the initiator's session becomes current, the
 * responder's waits as next until data arrives under it (pitfall 40). Called under peer->lock;
 * false: peer is dead or out of memory. */
bool peer_install_session(struct peer *peer, struct noise_session_keys *keys, uint64_t now_ns);
/* Data arrived under `session`: if it was next it is current now. True when it was. */
bool peer_promote_session(struct peer *peer, struct session *session);

struct counters;
/* Queues a copy for when a session exists; the oldest is dropped past the limits (pitfalls 42, 65).
 * Afterwards the caller sends what is staged if a session is usable by now, else asks for a
 * handshake. */
void peer_stage(struct peer *peer, const uint8_t *data, uint32_t length, struct counters *counters);
/* Drops all that is staged; returns how many. Under peer->lock. */
uint32_t peer_purge_staged(struct peer *peer);
/* Takes up to `most` staged packets, oldest first, as a list the caller frees. Under peer->lock. */
struct staged_packet *peer_unstage(struct peer *peer, uint32_t most, uint32_t *bytes);

#endif
