/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake: against a vector computed by an independent implementation, between two ends of
 * ours, and with everything that must not be accepted. Includes noise.c to give it fixed
 * ephemerals.
 */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on
#include "crypto/curve25519.h"
#include <string.h>

/* The ephemeral key to use next, or NULL: draw one. */
static const uint8_t *fixed_ephemeral;

static void draw_ephemeral(uint8_t secret[32])
{
    if (fixed_ephemeral)
        memcpy(secret, fixed_ephemeral, 32);
    else
        x25519_generate(secret);
}

#define x25519_generate draw_ephemeral
#include "noise.c"
#undef x25519_generate

#include "../vectors/handshake_vector.h"

#define SECONDS(n) ((n)*NSEC_PER_SEC)

/* Two ends that know each other: a initiates, b responds. */
struct pair {
    struct noise_identity a, b;
    struct noise_handshake of_a, of_b; /* a's handshake with b, b's with a */
    uint8_t timestamp[TAI64N_LENGTH];
    uint64_t now;
    struct message_initiation initiation;
    struct message_response response;
};

static void pair_init(struct pair *pair, bool with_psk)
{
    uint8_t secret[KEY_LENGTH], psk[KEY_LENGTH] = {0};

    memset(pair, 0, sizeof(*pair));
    x25519_generate(secret);
    noise_identity_set(&pair->a, secret);
    x25519_generate(secret);
    noise_identity_set(&pair->b, secret);
    if (with_psk)
        randombytes_buf(psk, sizeof(psk));
    noise_handshake_init(&pair->of_a, pair->b.public_key, psk);
    noise_handshake_init(&pair->of_b, pair->a.public_key, psk);
    noise_tai64n(pair->timestamp, 1700000000, 0);
    pair->now = SECONDS(1000);
}

static void initiate(struct pair *pair, uint32_t index)
{
    assert_true(
        noise_create_initiation(&pair->of_a, &pair->a, index, pair->timestamp, &pair->initiation));
}

static enum noise_result consume(struct pair *pair)
{
    struct noise_initiation opened;
    if (!noise_open_initiation(&pair->b, &pair->initiation, &opened))
        return NOISE_INVALID;
    return noise_consume_initiation(&pair->of_b, &pair->b, &opened, pair->now);
}

static void later(struct pair *pair, uint64_t nanoseconds)
{
    static uint64_t seconds = 1700000000;
    pair->now += nanoseconds;
    noise_tai64n(pair->timestamp, ++seconds, 0);
}

/* Both ends of a finished handshake hold the same keys the right way round. */
static void assert_sessions_match(struct pair *pair)
{
    struct noise_session_keys a, b;
    static const uint8_t zero[KEY_LENGTH];

    assert_true(noise_begin_session(&pair->of_a, &a));
    assert_true(noise_begin_session(&pair->of_b, &b));
    assert_true(a.initiator);
    assert_false(b.initiator);
    assert_memory_equal(&a.send, &b.receive, KEY_LENGTH);
    assert_memory_equal(&a.receive, &b.send, KEY_LENGTH);
    assert_memory_not_equal(&a.send, &a.receive, KEY_LENGTH);
    assert_memory_not_equal(&a.send, zero, KEY_LENGTH);
}

static void assert_handshake_completes(struct pair *pair)
{
    initiate(pair, 7);
    assert_int_equal(consume(pair), NOISE_OK);
    assert_int_equal(pair->of_b.remote_index, 7);
    assert_true(noise_create_response(&pair->of_b, 9, &pair->response));
    assert_int_equal(pair->response.receiver_index, 7);
    assert_true(noise_consume_response(&pair->of_a, &pair->a, &pair->response));
    assert_int_equal(pair->of_a.remote_index, 9);
    assert_sessions_match(pair);
}

/* ---- the vector ------------------------------------------------------------------------------ */

static void initiator_gives_the_vectors_messages_and_keys(void **state)
{
    struct noise_identity initiator, responder;
    struct noise_handshake handshake;
    struct message_initiation initiation;
    struct message_response response;
    struct noise_session_keys keys;
    (void)state;

    noise_identity_set(&initiator, vector_initiator_static);
    noise_identity_set(&responder, vector_responder_static);
    noise_handshake_init(&handshake, responder.public_key, vector_preshared_key);
    fixed_ephemeral = vector_initiator_ephemeral;
    assert_true(noise_create_initiation(&handshake, &initiator, VECTOR_INITIATOR_INDEX,
                                        vector_timestamp, &initiation));
    fixed_ephemeral = NULL;
    assert_memory_equal(&initiation, vector_initiation, offsetof(struct message_initiation, macs));

    memcpy(&response, vector_response, sizeof(response));
    assert_true(noise_consume_response(&handshake, &initiator, &response));
    assert_int_equal(handshake.remote_index, VECTOR_RESPONDER_INDEX);
    assert_true(noise_begin_session(&handshake, &keys));
    assert_memory_equal(&keys.send, vector_initiator_sends, KEY_LENGTH);
    assert_memory_equal(&keys.receive, vector_responder_sends, KEY_LENGTH);
}

static void responder_gives_the_vectors_message_and_keys(void **state)
{
    struct noise_identity initiator, responder;
    struct noise_handshake handshake;
    struct message_initiation initiation;
    struct message_response response;
    struct noise_initiation opened;
    struct noise_session_keys keys;
    (void)state;

    noise_identity_set(&initiator, vector_initiator_static);
    noise_identity_set(&responder, vector_responder_static);
    noise_handshake_init(&handshake, initiator.public_key, vector_preshared_key);
    memcpy(&initiation, vector_initiation, sizeof(initiation));
    assert_true(noise_open_initiation(&responder, &initiation, &opened));
    assert_memory_equal(opened.remote_static, initiator.public_key, KEY_LENGTH);
    assert_int_equal(opened.sender_index, VECTOR_INITIATOR_INDEX);
    assert_int_equal(noise_consume_initiation(&handshake, &responder, &opened, SECONDS(1)),
                     NOISE_OK);
    assert_memory_equal(handshake.latest_timestamp, vector_timestamp, TAI64N_LENGTH);

    fixed_ephemeral = vector_responder_ephemeral;
    assert_true(noise_create_response(&handshake, VECTOR_RESPONDER_INDEX, &response));
    fixed_ephemeral = NULL;
    assert_memory_equal(&response, vector_response, offsetof(struct message_response, macs));
    assert_true(noise_begin_session(&handshake, &keys));
    assert_memory_equal(&keys.receive, vector_initiator_sends, KEY_LENGTH);
    assert_memory_equal(&keys.send, vector_responder_sends, KEY_LENGTH);
}

/* ---- what works ------------------------------------------------------------------------------ */

static void handshakes_complete_with_and_without_psk_in_both_directions(void **state)
{
    struct pair pair;
    (void)state;
    for (int with_psk = 0; with_psk < 2; with_psk++) {
        pair_init(&pair, with_psk);
        assert_handshake_completes(&pair);
        /* The other way round, over the same state. */
        struct pair back = {.a = pair.b, .b = pair.a, .of_a = pair.of_b, .of_b = pair.of_a};
        back.now = pair.now;
        later(&back, SECONDS(1));
        assert_handshake_completes(&back);
    }
}

static void rekeys_give_new_keys_and_reuse_the_static_secret(void **state)
{
    struct pair pair;
    struct noise_session_keys first, second;
    uint8_t static_static[KEY_LENGTH];
    (void)state;
    pair_init(&pair, true);
    assert_false(pair.of_a.has_static_static);
    initiate(&pair, 1);
    assert_true(pair.of_a.has_static_static);
    memcpy(static_static, pair.of_a.static_static, KEY_LENGTH);
    assert_int_equal(consume(&pair), NOISE_OK);
    assert_memory_equal(pair.of_b.static_static, static_static, KEY_LENGTH);
    assert_true(noise_create_response(&pair.of_b, 2, &pair.response));
    assert_true(noise_begin_session(&pair.of_b, &first));

    later(&pair, SECONDS(120));
    initiate(&pair, 3);
    assert_memory_equal(pair.of_a.static_static, static_static, KEY_LENGTH);
    assert_int_equal(consume(&pair), NOISE_OK);
    assert_true(noise_create_response(&pair.of_b, 4, &pair.response));
    assert_true(noise_begin_session(&pair.of_b, &second));
    assert_memory_not_equal(&first.send, &second.send, KEY_LENGTH);
    assert_memory_not_equal(&first.receive, &second.receive, KEY_LENGTH);
}

/* Both ends initiate at once: each answers the other's, the later state stands. */
static void crossing_initiations_still_give_a_session(void **state)
{
    struct pair pair;
    struct message_initiation from_b;
    (void)state;
    pair_init(&pair, false);
    assert_true(noise_create_initiation(&pair.of_b, &pair.b, 20, pair.timestamp, &from_b));
    initiate(&pair, 10);
    assert_int_equal(consume(&pair), NOISE_OK);
    assert_true(noise_create_response(&pair.of_b, 21, &pair.response));
    assert_true(noise_consume_response(&pair.of_a, &pair.a, &pair.response));
    assert_sessions_match(&pair);
}

static void a_new_identity_drops_the_static_secret(void **state)
{
    struct pair pair;
    uint8_t secret[KEY_LENGTH];
    (void)state;
    pair_init(&pair, false);
    assert_handshake_completes(&pair);

    x25519_generate(secret);
    noise_identity_set(&pair.a, secret);
    noise_handshake_identity_changed(&pair.of_a);
    assert_true(sodium_is_zero(pair.of_a.static_static, KEY_LENGTH));
    memcpy(pair.of_b.remote_static, pair.a.public_key, KEY_LENGTH);
    noise_handshake_identity_changed(&pair.of_b);
    later(&pair, SECONDS(1));
    assert_handshake_completes(&pair);
}

static void identity_is_clamped_and_cleared_by_zero(void **state)
{
    struct noise_identity identity;
    uint8_t key[KEY_LENGTH], public_key[KEY_LENGTH];
    static const uint8_t zero[KEY_LENGTH];
    struct message_initiation message;
    struct noise_initiation opened;
    struct pair pair;
    (void)state;

    memset(key, 0xff, sizeof(key));
    noise_identity_set(&identity, key);
    assert_true(identity.has_key);
    assert_int_equal(identity.private_key[0], 0xf8);
    assert_int_equal(identity.private_key[31], 0x7f);
    x25519_public(public_key, identity.private_key);
    assert_memory_equal(identity.public_key, public_key, KEY_LENGTH);

    noise_identity_set(&identity, zero);
    assert_false(identity.has_key);
    assert_memory_equal(identity.private_key, zero, KEY_LENGTH);
    pair_init(&pair, false);
    assert_false(noise_create_initiation(&pair.of_a, &identity, 1, pair.timestamp, &message));
    initiate(&pair, 1);
    assert_false(noise_open_initiation(&identity, &pair.initiation, &opened));
    assert_false(noise_consume_response(&pair.of_a, &identity, &pair.response));
}

/* ---- what is rejected, without a trace --------------------------------------------------------
 */

static void every_changed_byte_of_an_initiation_is_rejected(void **state)
{
    struct pair pair;
    (void)state;
    pair_init(&pair, true);
    initiate(&pair, 0x01020304);
    const struct message_initiation good = pair.initiation;
    const struct noise_handshake before = pair.of_b;
    /* The type and index are not authenticated by Noise but by mac1. */
    for (size_t i = offsetof(struct message_initiation, ephemeral);
         i < offsetof(struct message_initiation, macs); i++) {
        pair.initiation = good;
        ((uint8_t *)&pair.initiation)[i] ^= 0x40;
        assert_int_equal(consume(&pair), NOISE_INVALID);
        assert_memory_equal(&pair.of_b, &before, sizeof(before));
    }
    pair.initiation = good;
    assert_int_equal(consume(&pair), NOISE_OK);
}

static void every_changed_byte_of_a_response_is_rejected(void **state)
{
    struct pair pair;
    (void)state;
    pair_init(&pair, true);
    initiate(&pair, 5);
    assert_int_equal(consume(&pair), NOISE_OK);
    assert_true(noise_create_response(&pair.of_b, 6, &pair.response));
    const struct message_response good = pair.response;
    const struct noise_handshake before = pair.of_a;
    for (size_t i = offsetof(struct message_response, receiver_index);
         i < offsetof(struct message_response, macs); i++) {
        pair.response = good;
        ((uint8_t *)&pair.response)[i] ^= 0x40;
        assert_false(noise_consume_response(&pair.of_a, &pair.a, &pair.response));
        assert_memory_equal(&pair.of_a, &before, sizeof(before));
    }
    assert_true(noise_consume_response(&pair.of_a, &pair.a, &good));
    assert_sessions_match(&pair);
}

static void ephemerals_of_low_order_are_rejected(void **state)
{
    struct pair pair;
    (void)state;
    pair_init(&pair, false);
    initiate(&pair, 1);
    const struct message_initiation good = pair.initiation;
    memset(pair.initiation.ephemeral, 0, KEY_LENGTH);
    assert_int_equal(consume(&pair), NOISE_INVALID);

    pair.initiation = good;
    assert_int_equal(consume(&pair), NOISE_OK);
    assert_true(noise_create_response(&pair.of_b, 2, &pair.response));
    memset(pair.response.ephemeral, 0, KEY_LENGTH);
    assert_false(noise_consume_response(&pair.of_a, &pair.a, &pair.response));
}

static void a_peer_key_of_low_order_gets_no_initiation(void **state)
{
    struct pair pair;
    static const uint8_t zero[KEY_LENGTH];
    (void)state;
    pair_init(&pair, false);
    noise_handshake_init(&pair.of_a, zero, zero);
    const struct noise_handshake before = pair.of_a;
    assert_false(noise_create_initiation(&pair.of_a, &pair.a, 1, pair.timestamp, &pair.initiation));
    assert_memory_equal(&pair.of_a, &before, sizeof(before));
}

static void a_wrong_psk_fails_at_the_response(void **state)
{
    struct pair pair;
    (void)state;
    pair_init(&pair, true);
    pair.of_b.preshared_key[31] ^= 1;
    initiate(&pair, 1);
    assert_int_equal(consume(&pair), NOISE_OK);
    assert_true(noise_create_response(&pair.of_b, 2, &pair.response));
    const struct noise_handshake before = pair.of_a;
    assert_false(noise_consume_response(&pair.of_a, &pair.a, &pair.response));
    assert_memory_equal(&pair.of_a, &before, sizeof(before));
}

static void a_wrong_static_key_is_rejected(void **state)
{
    struct pair pair, other;
    struct noise_initiation opened;
    (void)state;
    pair_init(&pair, false);
    pair_init(&other, false);

    /* Meant for another responder. */
    initiate(&pair, 1);
    assert_false(noise_open_initiation(&other.b, &pair.initiation, &opened));
    /* From a stranger, held against a's handshake. */
    noise_handshake_init(&other.of_a, pair.b.public_key, pair.of_a.preshared_key);
    initiate(&other, 1);
    assert_true(noise_open_initiation(&pair.b, &other.initiation, &opened));
    const struct noise_handshake before = pair.of_b;
    assert_int_equal(noise_consume_initiation(&pair.of_b, &pair.b, &opened, pair.now),
                     NOISE_INVALID);
    /* A stranger who claims a's public key, not having its private one: fails at ss. */
    other.a = pair.a;
    x25519_generate(other.a.private_key);
    noise_handshake_identity_changed(&other.of_a);
    initiate(&other, 1);
    assert_true(noise_open_initiation(&pair.b, &other.initiation, &opened));
    assert_memory_equal(opened.remote_static, pair.a.public_key, KEY_LENGTH);
    assert_int_equal(noise_consume_initiation(&pair.of_b, &pair.b, &opened, pair.now),
                     NOISE_INVALID);
    assert_memory_equal(&pair.of_b, &before, sizeof(before));
}

static void pitfall_53_an_equal_or_older_timestamp_is_replayed(void **state)
{
    struct pair pair;
    (void)state;
    pair_init(&pair, false);
    noise_tai64n(pair.timestamp, 1700000000, 500000000);
    initiate(&pair, 1);
    assert_int_equal(consume(&pair), NOISE_OK);
    const struct noise_handshake before = pair.of_b;

    /* The same message; a new one with the same label; older by 2^24 ns; by years (a reset clock).
     */
    pair.now += SECONDS(1);
    assert_int_equal(consume(&pair), NOISE_REPLAYED);
    initiate(&pair, 2);
    assert_int_equal(consume(&pair), NOISE_REPLAYED);
    noise_tai64n(pair.timestamp, 1700000000, 500000000 - (1 << 24));
    initiate(&pair, 3);
    assert_int_equal(consume(&pair), NOISE_REPLAYED);
    noise_tai64n(pair.timestamp, 0, 0);
    initiate(&pair, 4);
    assert_int_equal(consume(&pair), NOISE_REPLAYED);
    assert_memory_equal(&pair.of_b, &before, sizeof(before));

    noise_tai64n(pair.timestamp, 1700000000, 500000000 + (1 << 24));
    initiate(&pair, 5);
    assert_int_equal(consume(&pair), NOISE_OK);
}

static void pitfall_53_the_timestamp_outlives_sessions_and_clearing(void **state)
{
    struct pair pair;
    (void)state;
    pair_init(&pair, false);
    assert_handshake_completes(&pair);
    noise_handshake_clear(&pair.of_b);
    noise_handshake_identity_changed(&pair.of_b);
    pair.now += SECONDS(1000);
    initiate(&pair, 2);
    assert_int_equal(consume(&pair), NOISE_REPLAYED);
}

static void initiations_closer_than_20_ms_are_flood(void **state)
{
    struct pair pair;
    (void)state;
    pair_init(&pair, false);
    initiate(&pair, 1);
    assert_int_equal(consume(&pair), NOISE_OK);
    const struct noise_handshake before = pair.of_b;

    later(&pair, 20 * NSEC_PER_MSEC - 1);
    initiate(&pair, 2);
    assert_int_equal(consume(&pair), NOISE_FLOODED);
    pair.now -= SECONDS(1); /* a clock read earlier by another thread */
    assert_int_equal(consume(&pair), NOISE_FLOODED);
    assert_memory_equal(&pair.of_b, &before, sizeof(before));
    pair.now += SECONDS(1) + 1;
    assert_int_equal(consume(&pair), NOISE_OK);
}

static void the_first_initiation_is_never_flood(void **state)
{
    struct pair pair;
    (void)state;
    pair_init(&pair, false);
    pair.now = 0; /* just booted */
    initiate(&pair, 1);
    assert_int_equal(consume(&pair), NOISE_OK);
    later(&pair, 1);
    initiate(&pair, 2);
    assert_int_equal(consume(&pair), NOISE_FLOODED);
}

static void a_response_to_a_stale_initiation_is_rejected(void **state)
{
    struct pair pair;
    (void)state;
    pair_init(&pair, false);
    initiate(&pair, 1);
    assert_int_equal(consume(&pair), NOISE_OK);
    assert_true(noise_create_response(&pair.of_b, 2, &pair.response));
    struct message_response stale = pair.response;

    later(&pair, SECONDS(5));
    initiate(&pair, 3);
    assert_false(noise_consume_response(&pair.of_a, &pair.a, &stale));
    stale.receiver_index = 3; /* the same under the new index: it does not authenticate */
    assert_false(noise_consume_response(&pair.of_a, &pair.a, &stale));
    assert_int_equal(pair.of_a.state, NOISE_CREATED_INITIATION);

    assert_int_equal(consume(&pair), NOISE_OK);
    assert_true(noise_create_response(&pair.of_b, 4, &pair.response));
    assert_true(noise_consume_response(&pair.of_a, &pair.a, &pair.response));
    /* A second time, now that it is consumed. */
    assert_false(noise_consume_response(&pair.of_a, &pair.a, &pair.response));
    assert_sessions_match(&pair);
}

static void steps_out_of_order_are_refused(void **state)
{
    struct pair pair;
    struct noise_session_keys keys;
    (void)state;
    pair_init(&pair, false);
    assert_false(noise_create_response(&pair.of_b, 1, &pair.response));
    assert_false(noise_begin_session(&pair.of_a, &keys));
    memset(&pair.response, 0, sizeof(pair.response));
    assert_false(noise_consume_response(&pair.of_a, &pair.a, &pair.response));

    initiate(&pair, 1);
    assert_false(noise_create_response(&pair.of_a, 2, &pair.response));
    assert_false(noise_begin_session(&pair.of_a, &keys));
    assert_int_equal(consume(&pair), NOISE_OK);
    assert_false(noise_begin_session(&pair.of_b, &keys));
    assert_true(noise_create_response(&pair.of_b, 2, &pair.response));
    assert_false(noise_create_response(&pair.of_b, 3, &pair.response));
    assert_true(noise_begin_session(&pair.of_b, &keys));
    assert_false(noise_begin_session(&pair.of_b, &keys));
}

/* ---- what is kept and what is erased -----------------------------------------------------------
 */

static void a_session_erases_the_ephemeral_state_and_keeps_the_rest(void **state)
{
    struct pair pair;
    (void)state;
    pair_init(&pair, true);
    assert_handshake_completes(&pair);
    const struct noise_handshake *const ends[] = {&pair.of_a, &pair.of_b};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ends[i]->state, NOISE_ZEROED);
        assert_true(sodium_is_zero(ends[i]->ephemeral_private, KEY_LENGTH));
        assert_true(sodium_is_zero(ends[i]->remote_ephemeral, KEY_LENGTH));
        assert_true(sodium_is_zero(ends[i]->chaining_key, HASH_LENGTH));
        assert_true(sodium_is_zero(ends[i]->hash, HASH_LENGTH));
        assert_false(sodium_is_zero(ends[i]->preshared_key, KEY_LENGTH));
        assert_true(ends[i]->has_static_static);
    }
    assert_memory_equal(pair.of_b.remote_static, pair.a.public_key, KEY_LENGTH);
    assert_memory_equal(pair.of_b.latest_timestamp, pair.timestamp, TAI64N_LENGTH);
    /* The session goes on under the handshake's indices. */
    assert_int_equal(pair.of_a.local_index, 7);
    assert_int_equal(pair.of_b.local_index, 9);
}

static void a_fresh_handshake_keeps_nothing(void **state)
{
    struct pair pair;
    (void)state;
    pair_init(&pair, true);
    assert_handshake_completes(&pair);
    struct noise_handshake expected = {.state = NOISE_ZEROED};
    memcpy(expected.remote_static, pair.a.public_key, KEY_LENGTH);
    memcpy(expected.preshared_key, pair.of_b.preshared_key, KEY_LENGTH);
    noise_handshake_init(&pair.of_b, pair.of_b.remote_static, pair.of_b.preshared_key);
    assert_memory_equal(&pair.of_b, &expected, sizeof(expected));
}

static void a_failed_open_leaves_nothing_behind(void **state)
{
    struct pair pair;
    struct noise_initiation opened;
    (void)state;
    pair_init(&pair, false);
    initiate(&pair, 1);
    pair.initiation.encrypted_static[0] ^= 1;
    memset(&opened, 0xaa, sizeof(opened));
    assert_false(noise_open_initiation(&pair.b, &pair.initiation, &opened));
    assert_true(sodium_is_zero((const uint8_t *)&opened, sizeof(opened)));
}

static void tai64n_labels_are_ordered_and_whitened(void **state)
{
    uint8_t label[TAI64N_LENGTH], next[TAI64N_LENGTH];
    static const uint8_t epoch[TAI64N_LENGTH] = {0x40, 0, 0, 0, 0, 0, 0, 0x0a, 0, 0, 0, 0};
    (void)state;
    noise_tai64n(label, 0, 0);
    assert_memory_equal(label, epoch, TAI64N_LENGTH);
    noise_tai64n(label, 1, 999999999); /* 0x3b9ac9ff */
    assert_int_equal(label[7], 0x0b);
    assert_int_equal(label[8], 0x3b);
    assert_true(sodium_is_zero(label + 9, 3));

    noise_tai64n(next, 2, 0);
    assert_true(memcmp(label, next, TAI64N_LENGTH) < 0);
    noise_tai64n(label, 255, 0);
    noise_tai64n(next, 256, 0);
    assert_true(memcmp(label, next, TAI64N_LENGTH) < 0);
    noise_tai64n(label, 5, (1 << 24) - 1);
    noise_tai64n(next, 5, 1 << 24);
    assert_true(memcmp(label, next, TAI64N_LENGTH) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(initiator_gives_the_vectors_messages_and_keys),
        cmocka_unit_test(responder_gives_the_vectors_message_and_keys),
        cmocka_unit_test(handshakes_complete_with_and_without_psk_in_both_directions),
        cmocka_unit_test(rekeys_give_new_keys_and_reuse_the_static_secret),
        cmocka_unit_test(crossing_initiations_still_give_a_session),
        cmocka_unit_test(a_new_identity_drops_the_static_secret),
        cmocka_unit_test(identity_is_clamped_and_cleared_by_zero),
        cmocka_unit_test(every_changed_byte_of_an_initiation_is_rejected),
        cmocka_unit_test(every_changed_byte_of_a_response_is_rejected),
        cmocka_unit_test(ephemerals_of_low_order_are_rejected),
        cmocka_unit_test(a_peer_key_of_low_order_gets_no_initiation),
        cmocka_unit_test(a_wrong_psk_fails_at_the_response),
        cmocka_unit_test(a_wrong_static_key_is_rejected),
        cmocka_unit_test(pitfall_53_an_equal_or_older_timestamp_is_replayed),
        cmocka_unit_test(pitfall_53_the_timestamp_outlives_sessions_and_clearing),
        cmocka_unit_test(initiations_closer_than_20_ms_are_flood),
        cmocka_unit_test(the_first_initiation_is_never_flood),
        cmocka_unit_test(a_response_to_a_stale_initiation_is_rejected),
        cmocka_unit_test(steps_out_of_order_are_refused),
        cmocka_unit_test(a_session_erases_the_ephemeral_state_and_keeps_the_rest),
        cmocka_unit_test(a_fresh_handshake_keeps_nothing),
        cmocka_unit_test(a_failed_open_leaves_nothing_behind),
        cmocka_unit_test(tai64n_labels_are_ordered_and_whitened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
