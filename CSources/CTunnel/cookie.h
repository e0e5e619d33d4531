/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mac1, mac2 and cookies (§5.4.4, §5.4.7). `source` is what a cookie is bound to: address and port
 * (pitfall 51), 4 + 2 or 16 + 2 bytes.
 */
#ifndef CTUNNEL_COOKIE_H
#define CTUNNEL_COOKIE_H

#include "messages.h"
#include <stdbool.h>
#include <stddef.h>

/* The device's side: checks macs and hands out cookies. The owner guards it with a lock. */
struct cookie_checker {
    uint8_t mac1_key[KEY_LENGTH];
    uint8_t cookie_key[KEY_LENGTH];
    uint8_t secret[HASH_LENGTH];
    uint64_t secret_ns; /* when `secret` was drawn; 0: never */
};

/* A peer's side: adds macs to what we send to it. Guarded by the peer's lock. */
struct cookie_sender {
    uint8_t mac1_key[KEY_LENGTH];
    uint8_t cookie_key[KEY_LENGTH];
    uint8_t cookie[COOKIE_LENGTH];
    uint8_t last_mac1[MAC_LENGTH];
    uint64_t cookie_ns; /* when the cookie came */
    bool has_cookie, has_last_mac1;
};

void cookie_checker_init(struct cookie_checker *checker, const uint8_t public_key[KEY_LENGTH]);
/* `message` of `length` bytes ends with struct message_macs. Constant-time comparison. */
bool cookie_mac1_valid(const struct cookie_checker *checker, const void *message, size_t length);
bool cookie_mac2_valid(struct cookie_checker *checker, const void *message, size_t length,
                       const uint8_t *source, size_t source_length, uint64_t now_ns);
void cookie_create_reply(struct cookie_checker *checker, const void *message, size_t length,
                         uint32_t sender_index, const uint8_t *source, size_t source_length,
                         uint64_t now_ns, struct message_cookie_reply *reply);

void cookie_sender_init(struct cookie_sender *sender, const uint8_t remote_public_key[KEY_LENGTH]);
/* Fills mac1, and mac2 while a cookie is fresh (115 s), else zero. */
void cookie_add_macs(struct cookie_sender *sender, void *message, size_t length, uint64_t now_ns);
/* False: does not authenticate, or answers nothing we sent. */
bool cookie_consume_reply(struct cookie_sender *sender, const struct message_cookie_reply *reply,
                          uint64_t now_ns);

#endif
