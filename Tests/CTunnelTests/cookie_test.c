/* SPDX-License-Identifier: Apache-2.0 */
/* mac1, mac2 and cookies: against the handshake vector, and what must not pass. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on
#include "cookie.h"
#include "crypto/curve25519.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "../vectors/handshake_vector.h"

#define SECONDS(n) ((n)*NSEC_PER_SEC)
#define NOW        SECONDS(5000ull)

static const uint8_t source_v4[6] = {192, 0, 2, 1, 0xca, 0x6c};

/* A sender and the checker it sends to, and a message between them. */
struct link {
    struct cookie_checker checker;
    struct cookie_sender sender;
    struct message_initiation message;
    struct message_cookie_reply reply;
};

static void link_init(struct link *link)
{
    uint8_t public_key[KEY_LENGTH];
    randombytes_buf(public_key, sizeof(public_key));
    memset(link, 0, sizeof(*link));
    cookie_checker_init(&link->checker, public_key);
    cookie_sender_init(&link->sender, public_key);
    randombytes_buf(&link->message, sizeof(link->message));
}

static void send_at(struct link *link, uint64_t now)
{
    cookie_add_macs(&link->sender, &link->message, sizeof(link->message), now);
}

static bool mac1_valid(const struct link *link)
{
    return cookie_mac1_valid(&link->checker, &link->message, sizeof(link->message));
}

static bool mac2_valid(struct link *link, const uint8_t *source, size_t length, uint64_t now)
{
    return cookie_mac2_valid(&link->checker, &link->message, sizeof(link->message), source, length,
                             now);
}

static void reply_at(struct link *link, const uint8_t *source, size_t length, uint64_t now)
{
    cookie_create_reply(&link->checker, &link->message, sizeof(link->message), 42, source, length,
                        now, &link->reply);
}

/* The sender has got a cookie for `source`, and its next message carries it. */
static void exchange_at(struct link *link, const uint8_t *source, size_t length, uint64_t now)
{
    send_at(link, now);
    reply_at(link, source, length, now);
    assert_true(cookie_consume_reply(&link->sender, &link->reply, now));
    send_at(link, now);
}

/* ---- the vector ------------------------------------------------------------------------------ */

static void macs_and_cookie_reply_equal_the_vector(void **state)
{
    uint8_t responder[KEY_LENGTH];
    struct cookie_sender sender;
    struct cookie_checker checker;
    struct message_cookie_reply reply;
    uint8_t message[sizeof(vector_initiation)];
    (void)state;

    x25519_public(responder, vector_responder_static);
    cookie_sender_init(&sender, responder);
    memcpy(message, vector_initiation, sizeof(message));
    memset(message + sizeof(message) - sizeof(struct message_macs), 0xaa,
           sizeof(struct message_macs));
    cookie_add_macs(&sender, message, sizeof(message), NOW);
    assert_memory_equal(message, vector_initiation, sizeof(message));
    cookie_checker_init(&checker, responder);
    assert_true(cookie_mac1_valid(&checker, message, sizeof(message)));

    memcpy(&reply, vector_cookie_reply, sizeof(reply));
    assert_true(cookie_consume_reply(&sender, &reply, NOW));
    assert_memory_equal(sender.cookie, vector_cookie, COOKIE_LENGTH);
    cookie_add_macs(&sender, message, sizeof(message), NOW);
    assert_memory_equal(message, vector_initiation_with_cookie, sizeof(message));
}

static void a_response_takes_its_macs_too(void **state)
{
    uint8_t initiator[KEY_LENGTH];
    struct cookie_sender sender;
    uint8_t message[sizeof(vector_response)];
    (void)state;
    x25519_public(initiator, vector_initiator_static);
    cookie_sender_init(&sender, initiator);
    memcpy(message, vector_response, sizeof(message));
    memset(message + sizeof(message) - sizeof(struct message_macs), 0xaa,
           sizeof(struct message_macs));
    cookie_add_macs(&sender, message, sizeof(message), NOW);
    assert_memory_equal(message, vector_response, sizeof(message));
}

/* ---- mac1 ------------------------------------------------------------------------------------ */

static void pitfall_51_any_changed_byte_makes_mac1_wrong(void **state)
{
    struct link link;
    (void)state;
    link_init(&link);
    send_at(&link, NOW);
    assert_true(mac1_valid(&link));
    uint8_t *bytes = (uint8_t *)&link.message;
    for (size_t i = 0; i < sizeof(link.message) - MAC_LENGTH; i++) {
        bytes[i] ^= 0x10;
        assert_false(mac1_valid(&link));
        bytes[i] ^= 0x10;
    }
    assert_true(mac1_valid(&link));
}

static void mac1_for_another_device_is_wrong(void **state)
{
    struct link link, other;
    (void)state;
    link_init(&link);
    link_init(&other);
    send_at(&link, NOW);
    assert_false(cookie_mac1_valid(&other.checker, &link.message, sizeof(link.message)));
}

static void pitfall_30_messages_of_any_length_are_safe(void **state)
{
    struct link link;
    (void)state;
    link_init(&link);
    exchange_at(&link, source_v4, sizeof(source_v4), NOW);
    for (size_t length = 0; length <= 200; length++) {
        /* Exactly as long as the message, so that a sanitizer sees a step outside. */
        uint8_t *message = malloc(length ? length : 1);
        struct cookie_sender sender = link.sender;
        assert_non_null(message);
        memset(message, 0x5a, length);
        assert_false(cookie_mac1_valid(&link.checker, message, length));
        assert_false(
            cookie_mac2_valid(&link.checker, message, length, source_v4, sizeof(source_v4), NOW));
        cookie_create_reply(&link.checker, message, length, 1, source_v4, sizeof(source_v4), NOW,
                            &link.reply);
        cookie_add_macs(&sender, message, length, NOW);
        const bool carries_macs = length >= sizeof(struct message_macs);
        assert_int_equal(cookie_mac1_valid(&link.checker, message, length), carries_macs);
        assert_int_equal(
            cookie_mac2_valid(&link.checker, message, length, source_v4, sizeof(source_v4), NOW),
            carries_macs);
        free(message);
    }
}

/* ---- mac2 ------------------------------------------------------------------------------------ */

static void without_a_cookie_mac2_is_zero_and_invalid(void **state)
{
    struct link link;
    (void)state;
    link_init(&link);
    send_at(&link, NOW);
    assert_true(sodium_is_zero(link.message.macs.mac2, MAC_LENGTH));
    assert_false(mac2_valid(&link, source_v4, sizeof(source_v4), NOW)); /* no secret yet */
    reply_at(&link, source_v4, sizeof(source_v4), NOW);
    assert_false(mac2_valid(&link, source_v4, sizeof(source_v4), NOW));
}

static void with_a_cookie_mac2_is_valid_and_covers_the_message(void **state)
{
    struct link link;
    (void)state;
    link_init(&link);
    exchange_at(&link, source_v4, sizeof(source_v4), NOW);
    assert_int_equal(link.reply.type, MESSAGE_COOKIE_REPLY);
    assert_int_equal(link.reply.receiver_index, 42);
    assert_true(mac1_valid(&link));
    uint8_t *bytes = (uint8_t *)&link.message;
    for (size_t i = 0; i < sizeof(link.message); i++) {
        bytes[i] ^= 0x10;
        assert_false(mac2_valid(&link, source_v4, sizeof(source_v4), NOW));
        bytes[i] ^= 0x10;
    }
    assert_true(mac2_valid(&link, source_v4, sizeof(source_v4), NOW));
}

static void pitfall_51_a_cookie_is_bound_to_address_and_port(void **state)
{
    struct link link;
    uint8_t v4[6], v6[18] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1, [16] = 0xca, [17] = 0x6c};
    (void)state;
    link_init(&link);
    memcpy(v4, source_v4, sizeof(v4));

    exchange_at(&link, v4, sizeof(v4), NOW);
    assert_true(mac2_valid(&link, v4, sizeof(v4), NOW));
    for (size_t i = 0; i < sizeof(v4); i++) { /* bytes 4 and 5 are the port */
        v4[i] ^= 1;
        assert_false(mac2_valid(&link, v4, sizeof(v4), NOW));
        v4[i] ^= 1;
    }
    assert_false(mac2_valid(&link, v4, 4, NOW));
    assert_false(mac2_valid(&link, v6, sizeof(v6), NOW));

    exchange_at(&link, v6, sizeof(v6), NOW);
    assert_true(mac2_valid(&link, v6, sizeof(v6), NOW));
    for (size_t i = 0; i < sizeof(v6); i++) {
        v6[i] ^= 1;
        assert_false(mac2_valid(&link, v6, sizeof(v6), NOW));
        v6[i] ^= 1;
    }
}

static void the_secret_rotates_after_120_s(void **state)
{
    struct link link;
    uint8_t secret[HASH_LENGTH];
    (void)state;
    link_init(&link);
    exchange_at(&link, source_v4, sizeof(source_v4), NOW);
    memcpy(secret, link.checker.secret, sizeof(secret));

    reply_at(&link, source_v4, sizeof(source_v4), NOW + SECONDS(120) - 1);
    assert_memory_equal(link.checker.secret, secret, sizeof(secret));
    assert_true(mac2_valid(&link, source_v4, sizeof(source_v4), NOW + SECONDS(120) - 1));
    assert_false(mac2_valid(&link, source_v4, sizeof(source_v4), NOW + SECONDS(120)));
    assert_true(sodium_is_zero(link.checker.secret, sizeof(secret)));
    reply_at(&link, source_v4, sizeof(source_v4), NOW + SECONDS(120));
    assert_memory_not_equal(link.checker.secret, secret, sizeof(secret));
    assert_false(mac2_valid(&link, source_v4, sizeof(source_v4), NOW + SECONDS(120)));
}

static void a_secret_drawn_at_instant_zero_counts(void **state)
{
    struct link link;
    (void)state;
    link_init(&link);
    exchange_at(&link, source_v4, sizeof(source_v4), 0);
    assert_true(mac2_valid(&link, source_v4, sizeof(source_v4), 0));
}

static void a_sender_uses_a_cookie_for_115_s(void **state)
{
    struct link link;
    (void)state;
    link_init(&link);
    exchange_at(&link, source_v4, sizeof(source_v4), NOW);
    send_at(&link, NOW + SECONDS(115) - 1);
    assert_true(mac2_valid(&link, source_v4, sizeof(source_v4), NOW + SECONDS(115)));
    send_at(&link, NOW + SECONDS(115));
    assert_true(sodium_is_zero(link.message.macs.mac2, MAC_LENGTH));
    assert_true(sodium_is_zero(link.sender.cookie, COOKIE_LENGTH));
    assert_true(mac1_valid(&link));
}

/* ---- replies --------------------------------------------------------------------------------- */

static void pitfall_51_any_changed_byte_of_a_reply_is_rejected(void **state)
{
    struct link link;
    (void)state;
    link_init(&link);
    send_at(&link, NOW);
    reply_at(&link, source_v4, sizeof(source_v4), NOW);
    const struct cookie_sender before = link.sender;
    uint8_t *bytes = (uint8_t *)&link.reply;
    for (size_t i = offsetof(struct message_cookie_reply, nonce); i < sizeof(link.reply); i++) {
        bytes[i] ^= 0x10;
        assert_false(cookie_consume_reply(&link.sender, &link.reply, NOW));
        assert_memory_equal(&link.sender, &before, sizeof(before));
        bytes[i] ^= 0x10;
    }
    assert_true(cookie_consume_reply(&link.sender, &link.reply, NOW));
}

static void a_reply_must_answer_the_last_message(void **state)
{
    struct link link;
    (void)state;
    link_init(&link);
    /* Nothing was sent: a reply to somebody else's message. */
    reply_at(&link, source_v4, sizeof(source_v4), NOW);
    assert_false(cookie_consume_reply(&link.sender, &link.reply, NOW));
    /* Another message was sent since. */
    send_at(&link, NOW);
    reply_at(&link, source_v4, sizeof(source_v4), NOW);
    randombytes_buf(&link.message, sizeof(link.message));
    send_at(&link, NOW);
    assert_false(cookie_consume_reply(&link.sender, &link.reply, NOW));
    assert_false(link.sender.has_cookie);
    /* It answers, once. */
    reply_at(&link, source_v4, sizeof(source_v4), NOW);
    assert_true(cookie_consume_reply(&link.sender, &link.reply, NOW));
    assert_false(cookie_consume_reply(&link.sender, &link.reply, NOW + SECONDS(100)));
    assert_int_equal(link.sender.cookie_ns, NOW);
}

static void replies_never_repeat_a_nonce(void **state)
{
    struct link link;
    (void)state;
    link_init(&link);
    send_at(&link, NOW);
    reply_at(&link, source_v4, sizeof(source_v4), NOW);
    const struct message_cookie_reply first = link.reply;
    reply_at(&link, source_v4, sizeof(source_v4), NOW);
    assert_memory_not_equal(first.nonce, link.reply.nonce, COOKIE_NONCE_LENGTH);
    assert_memory_not_equal(first.encrypted_cookie, link.reply.encrypted_cookie, COOKIE_LENGTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(macs_and_cookie_reply_equal_the_vector),
        cmocka_unit_test(a_response_takes_its_macs_too),
        cmocka_unit_test(pitfall_51_any_changed_byte_makes_mac1_wrong),
        cmocka_unit_test(mac1_for_another_device_is_wrong),
        cmocka_unit_test(pitfall_30_messages_of_any_length_are_safe),
        cmocka_unit_test(without_a_cookie_mac2_is_zero_and_invalid),
        cmocka_unit_test(with_a_cookie_mac2_is_valid_and_covers_the_message),
        cmocka_unit_test(pitfall_51_a_cookie_is_bound_to_address_and_port),
        cmocka_unit_test(the_secret_rotates_after_120_s),
        cmocka_unit_test(a_secret_drawn_at_instant_zero_counts),
        cmocka_unit_test(a_sender_uses_a_cookie_for_115_s),
        cmocka_unit_test(pitfall_51_any_changed_byte_of_a_reply_is_rejected),
        cmocka_unit_test(a_reply_must_answer_the_last_message),
        cmocka_unit_test(replies_never_repeat_a_nonce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
