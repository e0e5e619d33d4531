/* SPDX-License-Identifier: Apache-2.0 */
/* mac1 and mac2 of handshake messages, and the cookies behind mac2 (WireGuard paper §5.3, §5.4.4,
 * §5.4.7). */
#include "cookie.h"
#include "crypto/hash.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

/* §5.4: LABEL-MAC1 and LABEL-COOKIE. */
#define LABEL_LENGTH 8
static const char label_mac1[LABEL_LENGTH + 1] = "mac1----";
static const char label_cookie[LABEL_LENGTH + 1] = "cookie--";

/* A sender gives a cookie up earlier than its maker forgets the secret, by the way it travels. */
#define COOKIE_USE_TIME (COOKIE_SECRET_TIME - COOKIE_LATENCY)

static_assert(MAC_LENGTH == COOKIE_LENGTH, "a cookie is a mac");

static void derive_keys(uint8_t mac1_key[KEY_LENGTH], uint8_t cookie_key[KEY_LENGTH],
                        const uint8_t public_key[KEY_LENGTH])
{
    blake2s_256(mac1_key,
                (const struct hash_part[]){{label_mac1, LABEL_LENGTH}, {public_key, KEY_LENGTH}},
                2);
    blake2s_256(cookie_key,
                (const struct hash_part[]){{label_cookie, LABEL_LENGTH}, {public_key, KEY_LENGTH}},
                2);
}

/* The macs end a message and are not aligned: it came in a datagram. NULL: too short for them. */
static const uint8_t *find_macs(const void *message, size_t length)
{
    if (length < sizeof(struct message_macs))
        return NULL;
    return (const uint8_t *)message + length - sizeof(struct message_macs);
}

static void compute_mac1(uint8_t out[MAC_LENGTH], const uint8_t mac1_key[KEY_LENGTH],
                         const void *message, size_t length)
{
    blake2s_mac128(out, mac1_key, KEY_LENGTH, message, length - sizeof(struct message_macs));
}

/* mac2 covers mac1. */
static void compute_mac2(uint8_t out[MAC_LENGTH], const uint8_t cookie[COOKIE_LENGTH],
                         const void *message, size_t length)
{
    blake2s_mac128(out, cookie, COOKIE_LENGTH, message, length - MAC_LENGTH);
}

/* Clocks of different threads may be read out of order: an instant before `then` is no age. */
static bool younger_than(uint64_t now_ns, uint64_t then_ns, uint64_t age_ns)
{
    return now_ns < then_ns || now_ns - then_ns < age_ns;
}

/* ---- checking, and handing out cookies ------------------------------------------------------ */

void cookie_checker_init(struct cookie_checker *checker, const uint8_t public_key[KEY_LENGTH])
{
    sodium_memzero(checker, sizeof(*checker));
    derive_keys(checker->mac1_key, checker->cookie_key, public_key);
}

bool cookie_mac1_valid(const struct cookie_checker *checker, const void *message, size_t length)
{
    const uint8_t *macs = find_macs(message, length);
    uint8_t mac1[MAC_LENGTH];

    if (!macs)
        return false;
    compute_mac1(mac1, checker->mac1_key, message, length);
    return crypto_verify_16(mac1, macs) == 0;
}

/* A secret that is too old is wiped. */
static bool has_secret(struct cookie_checker *checker, uint64_t now_ns)
{
    if (checker->secret_ns == 0)
        return false;
    if (younger_than(now_ns, checker->secret_ns, COOKIE_SECRET_TIME))
        return true;
    sodium_memzero(checker->secret, sizeof(checker->secret));
    checker->secret_ns = 0;
    return false;
}

static void make_cookie(const struct cookie_checker *checker, uint8_t cookie[COOKIE_LENGTH],
                        const uint8_t *source, size_t source_length)
{
    blake2s_mac128(cookie, checker->secret, sizeof(checker->secret), source, source_length);
}

bool cookie_mac2_valid(struct cookie_checker *checker, const void *message, size_t length,
                       const uint8_t *source, size_t source_length, uint64_t now_ns)
{
    const uint8_t *macs = find_macs(message, length);
    uint8_t cookie[COOKIE_LENGTH];
    uint8_t mac2[MAC_LENGTH];

    if (!macs || !has_secret(checker, now_ns))
        return false;
    /* Most of a flood carries none: that is known without hashing. */
    if (sodium_is_zero(macs + MAC_LENGTH, MAC_LENGTH))
        return false;
    make_cookie(checker, cookie, source, source_length);
    compute_mac2(mac2, cookie, message, length);
    const bool valid = crypto_verify_16(mac2, macs + MAC_LENGTH) == 0;
    sodium_memzero(cookie, sizeof(cookie));
    sodium_memzero(mac2, sizeof(mac2));
    return valid;
}

void cookie_create_reply(struct cookie_checker *checker, const void *message, size_t length,
                         uint32_t sender_index, const uint8_t *source, size_t source_length,
                         uint64_t now_ns, struct message_cookie_reply *reply)
{
    static const uint8_t no_mac1[MAC_LENGTH];
    const uint8_t *macs = find_macs(message, length);
    uint8_t cookie[COOKIE_LENGTH];

    if (!has_secret(checker, now_ns)) {
        randombytes_buf(checker->secret, sizeof(checker->secret));
        checker->secret_ns = now_ns ? now_ns : 1;
    }
    make_cookie(checker, cookie, source, source_length);

    reply->type = MESSAGE_COOKIE_REPLY;
    reply->receiver_index = sender_index;
    randombytes_buf(reply->nonce, sizeof(reply->nonce));
    /* Bound to the message it answers by its mac1. */
    crypto_aead_xchacha20poly1305_ietf_encrypt(reply->encrypted_cookie, NULL, cookie,
                                               sizeof(cookie), macs ? macs : no_mac1, MAC_LENGTH,
                                               NULL, reply->nonce, checker->cookie_key);
    sodium_memzero(cookie, sizeof(cookie));
}

/* ---- sending, and using cookies ------------------------------------------------------------- */

void cookie_sender_init(struct cookie_sender *sender, const uint8_t remote_public_key[KEY_LENGTH])
{
    sodium_memzero(sender, sizeof(*sender));
    derive_keys(sender->mac1_key, sender->cookie_key, remote_public_key);
}

void cookie_add_macs(struct cookie_sender *sender, void *message, size_t length, uint64_t now_ns)
{
    if (length < sizeof(struct message_macs))
        return;
    uint8_t *macs = (uint8_t *)message + length - sizeof(struct message_macs);

    compute_mac1(macs, sender->mac1_key, message, length);
    memcpy(sender->last_mac1, macs, MAC_LENGTH);
    sender->has_last_mac1 = true;

    if (sender->has_cookie && !younger_than(now_ns, sender->cookie_ns, COOKIE_USE_TIME)) {
        sodium_memzero(sender->cookie, sizeof(sender->cookie));
        sender->has_cookie = false;
    }
    if (sender->has_cookie)
        compute_mac2(macs + MAC_LENGTH, sender->cookie, message, length);
    else
        memset(macs + MAC_LENGTH, 0, MAC_LENGTH);
}

bool cookie_consume_reply(struct cookie_sender *sender, const struct message_cookie_reply *reply,
                          uint64_t now_ns)
{
    uint8_t cookie[COOKIE_LENGTH];

    if (!sender->has_last_mac1 ||
        crypto_aead_xchacha20poly1305_ietf_decrypt(
            cookie, NULL, NULL, reply->encrypted_cookie, sizeof(reply->encrypted_cookie),
            sender->last_mac1, MAC_LENGTH, reply->nonce, sender->cookie_key) != 0)
        return false;
    memcpy(sender->cookie, cookie, COOKIE_LENGTH);
    sodium_memzero(cookie, sizeof(cookie));
    sender->cookie_ns = now_ns;
    sender->has_cookie = true;
    /* One reply per message: a replay of it would only make the cookie look younger. */
    sender->has_last_mac1 = false;
    return true;
}
