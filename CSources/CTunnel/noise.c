/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake, step by step as in the WireGuard paper §5.4.2–§5.4.5; each step is headed by its
 * Noise token. A step works on a copy of the handshake, which replaces the original once all of it
 * has succeeded, so that a message that fails halfway leaves no trace.
 */
#include "noise.h"
#include "crypto/curve25519.h"
#include "crypto/hash.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* §5.4: CONSTRUCTION and IDENTIFIER. */
static const char construction[] = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
static const char identifier[] = "WireGuard v1 zx2c4 Jason@zx2c4.com";

/* The least distance of two initiations of one peer. */
#define INITIATION_SPACING (NSEC_PER_SEC / INITIATIONS_PER_SECOND)

static uint8_t initial_chaining_key[HASH_LENGTH];
static uint8_t initial_hash[HASH_LENGTH];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void compute_initial_values(void)
{
    blake2s_256(initial_chaining_key,
                (const struct hash_part[]){{construction, sizeof(construction) - 1}}, 1);
    blake2s_256(initial_hash,
                (const struct hash_part[]){{initial_chaining_key, HASH_LENGTH},
                                           {identifier, sizeof(identifier) - 1}},
                2);
}

/* ---- symmetric state ------------------------------------------------------------------------ */

static void mix_hash(uint8_t hash[HASH_LENGTH], const void *data, size_t length)
{
    blake2s_256(hash, (const struct hash_part[]){{hash, HASH_LENGTH}, {data, length}}, 2);
}

static void mix_key(uint8_t chaining_key[HASH_LENGTH], uint8_t *key, const void *input,
                    size_t length)
{
    hash_kdf(chaining_key, key, NULL, chaining_key, input, length);
}

/* False: `remote_public` is of low order. */
static bool mix_dh(uint8_t chaining_key[HASH_LENGTH], uint8_t *key,
                   const uint8_t private_key[KEY_LENGTH], const uint8_t remote_public[KEY_LENGTH])
{
    uint8_t shared[KEY_LENGTH];
    const bool valid = x25519(shared, private_key, remote_public);
    if (valid)
        mix_key(chaining_key, key, shared, sizeof(shared));
    sodium_memzero(shared, sizeof(shared));
    return valid;
}

static void mix_psk(uint8_t chaining_key[HASH_LENGTH], uint8_t hash[HASH_LENGTH],
                    uint8_t key[KEY_LENGTH], const uint8_t preshared_key[KEY_LENGTH])
{
    uint8_t tau[HASH_LENGTH];
    hash_kdf(chaining_key, tau, key, chaining_key, preshared_key, KEY_LENGTH);
    mix_hash(hash, tau, sizeof(tau));
    sodium_memzero(tau, sizeof(tau));
}

/* Each key of the handshake is used once: the counter is zero. */
static const uint8_t zero_nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];

static void encrypt_and_hash(uint8_t *out, const void *plaintext, size_t length,
                             const uint8_t key[KEY_LENGTH], uint8_t hash[HASH_LENGTH])
{
    crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, plaintext, length, hash, HASH_LENGTH, NULL,
                                              zero_nonce, key);
    mix_hash(hash, out, length + TAG_LENGTH);
}

/* `length` is that of the plaintext. */
static bool decrypt_and_hash(void *plaintext, const uint8_t *sealed, size_t length,
                             const uint8_t key[KEY_LENGTH], uint8_t hash[HASH_LENGTH])
{
    if (crypto_aead_chacha20poly1305_ietf_decrypt(plaintext, NULL, NULL, sealed,
                                                  length + TAG_LENGTH, hash, HASH_LENGTH,
                                                  zero_nonce, key) != 0)
        return false;
    mix_hash(hash, sealed, length + TAG_LENGTH);
    return true;
}

/* The state both sides start from: the responder's static key is known beforehand. */
static void mix_prologue(uint8_t chaining_key[HASH_LENGTH], uint8_t hash[HASH_LENGTH],
                         const uint8_t responder_static[KEY_LENGTH])
{
    pthread_once(&once, compute_initial_values);
    memcpy(chaining_key, initial_chaining_key, HASH_LENGTH);
    memcpy(hash, initial_hash, HASH_LENGTH);
    mix_hash(hash, responder_static, KEY_LENGTH);
}

/* Draws a key pair and mixes its public half in: the token e of the side that sends. */
static void mix_own_ephemeral(struct noise_handshake *handshake, uint8_t public_key[KEY_LENGTH])
{
    x25519_generate(handshake->ephemeral_private);
    x25519_public(public_key, handshake->ephemeral_private);
    mix_key(handshake->chaining_key, NULL, public_key, KEY_LENGTH);
    mix_hash(handshake->hash, public_key, KEY_LENGTH);
}

static bool mix_static_static(struct noise_handshake *handshake,
                              const struct noise_identity *identity,
                              uint8_t chaining_key[HASH_LENGTH], uint8_t key[KEY_LENGTH])
{
    if (!handshake->has_static_static)
        handshake->has_static_static =
            x25519(handshake->static_static, identity->private_key, handshake->remote_static);
    if (handshake->has_static_static)
        mix_key(chaining_key, key, handshake->static_static, KEY_LENGTH);
    return handshake->has_static_static;
}

/* Replaces `handshake` by `next` where `valid`; wipes `next` and `key` either way. */
static bool finish_step(bool valid, struct noise_handshake *handshake, struct noise_handshake *next,
                        uint8_t key[KEY_LENGTH])
{
    if (valid)
        *handshake = *next;
    sodium_memzero(next, sizeof(*next));
    sodium_memzero(key, KEY_LENGTH);
    return valid;
}

/* ---- identity and life of a handshake ------------------------------------------------------- */

void noise_identity_set(struct noise_identity *identity, const uint8_t private_key[KEY_LENGTH])
{
    if (sodium_is_zero(private_key, KEY_LENGTH)) {
        sodium_memzero(identity, sizeof(*identity));
        return;
    }
    memmove(identity->private_key, private_key, KEY_LENGTH);
    /* RFC 7748 §5, decodeScalar25519. */
    identity->private_key[0] &= 248;
    identity->private_key[31] &= 127;
    identity->private_key[31] |= 64;
    x25519_public(identity->public_key, identity->private_key);
    identity->has_key = true;
}

void noise_handshake_init(struct noise_handshake *handshake,
                          const uint8_t remote_static[KEY_LENGTH],
                          const uint8_t preshared_key[KEY_LENGTH])
{
    struct noise_handshake fresh = {.state = NOISE_ZEROED};

    /* By way of a copy: the arguments may be the handshake's own fields. */
    memcpy(fresh.remote_static, remote_static, KEY_LENGTH);
    memcpy(fresh.preshared_key, preshared_key, KEY_LENGTH);
    *handshake = fresh;
    sodium_memzero(&fresh, sizeof(fresh));
}

void noise_handshake_clear(struct noise_handshake *handshake)
{
    sodium_memzero(handshake->remote_ephemeral, KEY_LENGTH);
    sodium_memzero(handshake->ephemeral_private, KEY_LENGTH);
    sodium_memzero(handshake->chaining_key, HASH_LENGTH);
    sodium_memzero(handshake->hash, HASH_LENGTH);
    handshake->state = NOISE_ZEROED;
}

void noise_handshake_identity_changed(struct noise_handshake *handshake)
{
    sodium_memzero(handshake->static_static, KEY_LENGTH);
    handshake->has_static_static = false;
}

/* ---- first message: initiator to responder (§5.4.2) ----------------------------------------- */

bool noise_create_initiation(struct noise_handshake *handshake,
                             const struct noise_identity *identity, uint32_t local_index,
                             const uint8_t timestamp[TAI64N_LENGTH],
                             struct message_initiation *message)
{
    if (!identity->has_key)
        return false;
    struct noise_handshake next = *handshake;
    uint8_t key[KEY_LENGTH];

    memset(message, 0, sizeof(*message));
    message->type = MESSAGE_INITIATION;
    message->sender_index = local_index;
    mix_prologue(next.chaining_key, next.hash, next.remote_static);

    /* e */
    mix_own_ephemeral(&next, message->ephemeral);
    /* es */
    bool valid = mix_dh(next.chaining_key, key, next.ephemeral_private, next.remote_static);
    if (valid) {
        /* s */
        encrypt_and_hash(message->encrypted_static, identity->public_key, KEY_LENGTH, key,
                         next.hash);
        /* ss */
        valid = mix_static_static(&next, identity, next.chaining_key, key);
    }
    if (valid) {
        /* {t} */
        encrypt_and_hash(message->encrypted_timestamp, timestamp, TAI64N_LENGTH, key, next.hash);
        sodium_memzero(next.remote_ephemeral, KEY_LENGTH); /* of an earlier handshake */
        next.local_index = local_index;
        next.remote_index = 0;
        next.state = NOISE_CREATED_INITIATION;
    }
    return finish_step(valid, handshake, &next, key);
}

bool noise_open_initiation(const struct noise_identity *identity,
                           const struct message_initiation *message, struct noise_initiation *out)
{
    if (!identity->has_key)
        return false;
    uint8_t key[KEY_LENGTH];

    mix_prologue(out->chaining_key, out->hash, identity->public_key);
    /* e */
    memcpy(out->remote_ephemeral, message->ephemeral, KEY_LENGTH);
    mix_key(out->chaining_key, NULL, out->remote_ephemeral, KEY_LENGTH);
    mix_hash(out->hash, out->remote_ephemeral, KEY_LENGTH);
    /* es, s */
    const bool valid =
        mix_dh(out->chaining_key, key, identity->private_key, out->remote_ephemeral) &&
        decrypt_and_hash(out->remote_static, message->encrypted_static, KEY_LENGTH, key, out->hash);
    sodium_memzero(key, sizeof(key));
    if (!valid) {
        sodium_memzero(out, sizeof(*out));
        return false;
    }
    memcpy(out->encrypted_timestamp, message->encrypted_timestamp,
           sizeof(out->encrypted_timestamp));
    out->sender_index = message->sender_index;
    return true;
}

/* Whether the authenticated initiation is one to answer now. */
static enum noise_result accept_initiation(const struct noise_handshake *handshake,
                                           const uint8_t timestamp[TAI64N_LENGTH], uint64_t now_ns)
{
    /* Big endian, so memcmp orders them; the timestamp is not secret from here on. */
    if (memcmp(timestamp, handshake->latest_timestamp, TAI64N_LENGTH) <= 0)
        return NOISE_REPLAYED;
    /* Zero means never. A clock read before the last initiation's counts as the same instant. */
    if (handshake->last_initiation_ns != 0 &&
        now_ns < handshake->last_initiation_ns + INITIATION_SPACING)
        return NOISE_FLOODED;
    return NOISE_OK;
}

enum noise_result noise_consume_initiation(struct noise_handshake *handshake,
                                           const struct noise_identity *identity,
                                           const struct noise_initiation *opened, uint64_t now_ns)
{
    if (!identity->has_key ||
        sodium_memcmp(handshake->remote_static, opened->remote_static, KEY_LENGTH) != 0)
        return NOISE_INVALID;
    struct noise_handshake next = *handshake;
    uint8_t key[KEY_LENGTH];
    uint8_t timestamp[TAI64N_LENGTH];
    enum noise_result result = NOISE_INVALID;

    memcpy(next.chaining_key, opened->chaining_key, HASH_LENGTH);
    memcpy(next.hash, opened->hash, HASH_LENGTH);
    /* ss, {t} */
    if (mix_static_static(&next, identity, next.chaining_key, key) &&
        decrypt_and_hash(timestamp, opened->encrypted_timestamp, TAI64N_LENGTH, key, next.hash))
        result = accept_initiation(handshake, timestamp, now_ns);
    if (result == NOISE_OK) {
        memcpy(next.latest_timestamp, timestamp, TAI64N_LENGTH);
        memcpy(next.remote_ephemeral, opened->remote_ephemeral, KEY_LENGTH);
        sodium_memzero(next.ephemeral_private, KEY_LENGTH); /* of an initiation of our own */
        next.remote_index = opened->sender_index;
        next.last_initiation_ns = now_ns ? now_ns : 1;
        next.state = NOISE_CONSUMED_INITIATION;
    }
    finish_step(result == NOISE_OK, handshake, &next, key);
    return result;
}

/* ---- second message: responder to initiator (§5.4.3) ---------------------------------------- */

bool noise_create_response(struct noise_handshake *handshake, uint32_t local_index,
                           struct message_response *message)
{
    if (handshake->state != NOISE_CONSUMED_INITIATION)
        return false;
    struct noise_handshake next = *handshake;
    uint8_t key[KEY_LENGTH];

    memset(message, 0, sizeof(*message));
    message->type = MESSAGE_RESPONSE;
    message->sender_index = local_index;
    message->receiver_index = next.remote_index;

    /* e */
    mix_own_ephemeral(&next, message->ephemeral);
    /* ee, se */
    const bool valid =
        mix_dh(next.chaining_key, NULL, next.ephemeral_private, next.remote_ephemeral) &&
        mix_dh(next.chaining_key, NULL, next.ephemeral_private, next.remote_static);
    if (valid) {
        /* psk */
        mix_psk(next.chaining_key, next.hash, key, next.preshared_key);
        /* {} */
        encrypt_and_hash(message->encrypted_nothing, NULL, 0, key, next.hash);
        next.local_index = local_index;
        next.state = NOISE_CREATED_RESPONSE;
    }
    return finish_step(valid, handshake, &next, key);
}

bool noise_consume_response(struct noise_handshake *handshake,
                            const struct noise_identity *identity,
                            const struct message_response *message)
{
    if (!identity->has_key || handshake->state != NOISE_CREATED_INITIATION ||
        message->receiver_index != handshake->local_index)
        return false;
    struct noise_handshake next = *handshake;
    uint8_t key[KEY_LENGTH];

    /* e */
    memcpy(next.remote_ephemeral, message->ephemeral, KEY_LENGTH);
    mix_key(next.chaining_key, NULL, next.remote_ephemeral, KEY_LENGTH);
    mix_hash(next.hash, next.remote_ephemeral, KEY_LENGTH);
    /* ee, se */
    bool valid = mix_dh(next.chaining_key, NULL, next.ephemeral_private, next.remote_ephemeral) &&
                 mix_dh(next.chaining_key, NULL, identity->private_key, next.remote_ephemeral);
    if (valid) {
        /* psk */
        mix_psk(next.chaining_key, next.hash, key, next.preshared_key);
        /* {} */
        valid = decrypt_and_hash(NULL, message->encrypted_nothing, 0, key, next.hash);
    }
    if (valid) {
        next.remote_index = message->sender_index;
        next.state = NOISE_CONSUMED_RESPONSE;
    }
    return finish_step(valid, handshake, &next, key);
}

/* ---- transport keys (§5.4.5) ---------------------------------------------------------------- */

bool noise_begin_session(struct noise_handshake *handshake, struct noise_session_keys *keys)
{
    if (handshake->state == NOISE_CONSUMED_RESPONSE)
        keys->initiator = true;
    else if (handshake->state == NOISE_CREATED_RESPONSE)
        keys->initiator = false;
    else
        return false;

    /* The first key is the one the initiator sends with. */
    struct aead_key *first = keys->initiator ? &keys->send : &keys->receive;
    struct aead_key *second = keys->initiator ? &keys->receive : &keys->send;
    hash_kdf(first->bytes, second->bytes, NULL, handshake->chaining_key, NULL, 0);
    noise_handshake_clear(handshake);
    return true;
}

void noise_tai64n(uint8_t out[TAI64N_LENGTH], uint64_t unix_seconds, uint32_t nanoseconds)
{
    /* A TAI64 label counts from 2^62 = 1970 TAI (cr.yp.to/libtai/tai64.html); TAI was 10 s ahead of
     * UTC then, and like the other implementations this ignores later leap seconds. */
    uint64_t seconds = __builtin_bswap64((1ull << 62) + 10 + unix_seconds);
    uint32_t whitened = __builtin_bswap32(nanoseconds & 0xff000000u);
    memcpy(out, &seconds, 8);
    memcpy(out + 8, &whitened, 4);
}
