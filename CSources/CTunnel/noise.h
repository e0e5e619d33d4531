/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s, the handshake of WireGuard (§5.4.2, §5.4.3): pure state,
 * no clock, no socket, no lock. The caller holds the peer's lock around every call that takes a
 * handshake, and the identity's lock (shared) around every call that takes an identity.
 */
#ifndef CTUNNEL_NOISE_H
#define CTUNNEL_NOISE_H

#include "crypto/aead.h"
#include "messages.h"
#include <stdbool.h>

/* The device's static key pair. Guarded by the engine's identity lock. */
struct noise_identity {
    bool has_key;
    uint8_t private_key[KEY_LENGTH];
    uint8_t public_key[KEY_LENGTH];
};

enum noise_state {
    NOISE_ZEROED,
    NOISE_CREATED_INITIATION,
    NOISE_CONSUMED_INITIATION,
    NOISE_CREATED_RESPONSE,
    NOISE_CONSUMED_RESPONSE,
};

struct noise_handshake {
    enum noise_state state;
    bool
        has_static_static; /* static_static is filled (lazy: 10,000 peers load without 10,000 DH) */
    uint32_t local_index;  /* of this handshake, ours */
    uint32_t remote_index;
    uint64_t last_initiation_ns; /* when the last accepted initiation came: flood limit */
    uint8_t latest_timestamp[TAI64N_LENGTH]; /* greatest TAI64N accepted from this peer */
    uint8_t remote_static[KEY_LENGTH];
    uint8_t remote_ephemeral[KEY_LENGTH];
    uint8_t preshared_key[KEY_LENGTH];
    uint8_t static_static[KEY_LENGTH];
    uint8_t ephemeral_private[KEY_LENGTH];
    uint8_t chaining_key[HASH_LENGTH];
    uint8_t hash[HASH_LENGTH];
};

/* What opening an initiation yields before its sender is known. Secret: erase after use. */
struct noise_initiation {
    uint8_t remote_static[KEY_LENGTH];
    uint8_t remote_ephemeral[KEY_LENGTH];
    uint8_t chaining_key[HASH_LENGTH];
    uint8_t hash[HASH_LENGTH];
    uint8_t encrypted_timestamp[TAI64N_LENGTH + TAG_LENGTH];
    uint32_t sender_index;
};

enum noise_result {
    NOISE_OK,
    NOISE_INVALID,  /* does not authenticate, or wrong state */
    NOISE_REPLAYED, /* TAI64N not newer (pitfall 53) */
    NOISE_FLOODED,  /* more than INITIATIONS_PER_SECOND */
};

struct noise_session_keys {
    struct aead_key send, receive;
    bool initiator;
};

/* Sets the key and derives the public one; all zero clears it. The private key is clamped. */
void noise_identity_set(struct noise_identity *identity, const uint8_t private_key[KEY_LENGTH]);

/* A fresh handshake state for a peer; wipes what was there, keeps nothing. */
void noise_handshake_init(struct noise_handshake *handshake,
                          const uint8_t remote_static[KEY_LENGTH],
                          const uint8_t preshared_key[KEY_LENGTH]);
/* Erases ephemeral state (not the static key, the PSK, the timestamp, nor the two indices, which
 * are no secrets and go on to name the session). */
void noise_handshake_clear(struct noise_handshake *handshake);
/* Forgets the static-static secret: call when the identity changed. */
void noise_handshake_identity_changed(struct noise_handshake *handshake);

/* All but the macs of `message`; `local_index` is in host order, as drawn from the index table.
 * False: no identity, or the peer's key is of low order. */
bool noise_create_initiation(struct noise_handshake *handshake,
                             const struct noise_identity *identity, uint32_t local_index,
                             const uint8_t timestamp[TAI64N_LENGTH],
                             struct message_initiation *message);

/* First half: decrypts the sender's static key. Needs no handshake. */
bool noise_open_initiation(const struct noise_identity *identity,
                           const struct message_initiation *message, struct noise_initiation *out);
/* Second half, with the peer found: authenticates the timestamp and takes over the state.
 * `handshake` changes only on NOISE_OK. */
enum noise_result noise_consume_initiation(struct noise_handshake *handshake,
                                           const struct noise_identity *identity,
                                           const struct noise_initiation *opened, uint64_t now_ns);

/* All but the macs. */
bool noise_create_response(struct noise_handshake *handshake, uint32_t local_index,
                           struct message_response *message);
/* `handshake` changes only when it returns true. */
bool noise_consume_response(struct noise_handshake *handshake,
                            const struct noise_identity *identity,
                            const struct message_response *message);

/* After create_response or consume_response: the two transport keys; the handshake's ephemeral
 * state is erased as by noise_handshake_clear. False in any other state. */
bool noise_begin_session(struct noise_handshake *handshake, struct noise_session_keys *keys);

/* TAI64N label of a CLOCK_REALTIME instant; the low 24 bits of nanoseconds are whitened to zero, as
 * the kernel does against timing leaks. Big endian, comparable with memcmp. */
void noise_tai64n(uint8_t out[TAI64N_LENGTH], uint64_t unix_seconds, uint32_t nanoseconds);

#endif
