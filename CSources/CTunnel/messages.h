/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WireGuard on the wire: message layouts, lengths and protocol constants. The only file a change of
 * the specification touches.
 *
 * Source: J. A. Donenfeld, "WireGuard: Next Generation Kernel Network Tunnel", 2020-06-01, §5.4
 * (messages), §6 (timers and limits).
 */
#ifndef CTUNNEL_MESSAGES_H
#define CTUNNEL_MESSAGES_H

#include <assert.h>
#include <stdint.h>

#define NSEC_PER_SEC  1000000000ull
#define NSEC_PER_MSEC 1000000ull

/* ---- specification: both ends must agree --------------------------------------------------- */

#define KEY_LENGTH          32
#define HASH_LENGTH         32
#define TAG_LENGTH          16
#define TAI64N_LENGTH       12
#define MAC_LENGTH          16
#define COOKIE_LENGTH       16
#define COOKIE_NONCE_LENGTH 24
#define MESSAGE_PADDING     16

#define REKEY_AFTER_MESSAGES   (1ull << 60)
#define REJECT_AFTER_MESSAGES  (UINT64_MAX - REPLAY_WINDOW)
#define REKEY_AFTER_TIME       (120 * NSEC_PER_SEC)
#define REJECT_AFTER_TIME      (180 * NSEC_PER_SEC)
#define REKEY_TIMEOUT          (5 * NSEC_PER_SEC)
#define REKEY_TIMEOUT_JITTER   (334 * NSEC_PER_MSEC)
#define KEEPALIVE_TIMEOUT      (10 * NSEC_PER_SEC)
#define NEW_HANDSHAKE_TIME     (KEEPALIVE_TIMEOUT + REKEY_TIMEOUT)
#define REKEY_ON_RECEIVE_TIME  (REJECT_AFTER_TIME - KEEPALIVE_TIMEOUT - REKEY_TIMEOUT)
#define ERASE_AFTER_TIME       (3 * REJECT_AFTER_TIME)
#define MAX_HANDSHAKE_ATTEMPTS 18 /* 90 s / REKEY_TIMEOUT */
#define COOKIE_SECRET_TIME     (120 * NSEC_PER_SEC)
#define COOKIE_LATENCY         (5 * NSEC_PER_SEC)
#define INITIATIONS_PER_SECOND 50 /* accepted from one peer */

/* RFC 6479 window: bits kept, and how far behind the newest counter is still accepted. */
#define REPLAY_BITS   8192
#define REPLAY_WINDOW (REPLAY_BITS - 64)

/* ---- implementation: may be tuned ---------------------------------------------------------- */

#define MAX_STAGED_PACKETS    128                 /* per peer, oldest dropped first */
#define MAX_STAGED_BYTES      (16u * 1024 * 1024) /* all peers together (pitfall 65) */
#define MAX_QUEUED_HANDSHAKES 8192
#define STALE_HANDSHAKE       (REKEY_TIMEOUT - NSEC_PER_SEC) /* its answer would come late */
#define UNDER_LOAD_QUEUE      512
#define UNDER_LOAD_HOLD       (1 * NSEC_PER_SEC)
#define MAX_PEERS             (1u << 20)
#define HANDSHAKE_TOS         0x88 /* AF41, ECN not capable */
#define DEFAULT_MTU           1420
#define MAX_DATAGRAM          65507 /* largest UDP payload over IPv4 */
/* With its headers a train stays within the default gso_max_size of 65,536: a larger one is cut in
 * software on its way. */
#define MAX_TRAIN_BYTES    (65536 - 64)
#define MAX_TRAIN_SEGMENTS 64 /* UDP_MAX_SEGMENTS before Linux 6.9 */
#define MAX_BATCH_PACKETS  64

/* ---- messages, little endian --------------------------------------------------------------- */

enum message_type {
    MESSAGE_INVALID = 0,
    MESSAGE_INITIATION = 1,
    MESSAGE_RESPONSE = 2,
    MESSAGE_COOKIE_REPLY = 3,
    MESSAGE_DATA = 4,
};

struct message_macs {
    uint8_t mac1[MAC_LENGTH];
    uint8_t mac2[MAC_LENGTH];
};

struct message_initiation {
    uint32_t type; /* one byte of type, three reserved zero bytes */
    uint32_t sender_index;
    uint8_t ephemeral[KEY_LENGTH];
    uint8_t encrypted_static[KEY_LENGTH + TAG_LENGTH];
    uint8_t encrypted_timestamp[TAI64N_LENGTH + TAG_LENGTH];
    struct message_macs macs;
};

struct message_response {
    uint32_t type;
    uint32_t sender_index;
    uint32_t receiver_index;
    uint8_t ephemeral[KEY_LENGTH];
    uint8_t encrypted_nothing[TAG_LENGTH];
    struct message_macs macs;
};

struct message_cookie_reply {
    uint32_t type;
    uint32_t receiver_index;
    uint8_t nonce[COOKIE_NONCE_LENGTH];
    uint8_t encrypted_cookie[COOKIE_LENGTH + TAG_LENGTH];
};

struct message_data {
    uint32_t type;
    uint32_t receiver_index;
    uint64_t counter;
    /* encrypted packet and tag follow */
};

#define MESSAGE_DATA_MINIMUM (sizeof(struct message_data) + TAG_LENGTH) /* a keepalive */

static_assert(sizeof(struct message_initiation) == 148, "initiation is 148 bytes");
static_assert(sizeof(struct message_response) == 92, "response is 92 bytes");
static_assert(sizeof(struct message_cookie_reply) == 64, "cookie reply is 64 bytes");
static_assert(sizeof(struct message_data) == 16, "data header is 16 bytes");

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire structs are read in place: little endian only"
#endif

#endif
