/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Project Wycheproof's cases, for the implementation of Poly1305 that was included before. A
 * back-end as a whole takes none of them: it has no additional data, and its nonces are counters.
 */
#ifndef POLY1305_WYCHEPROOF_H
#define POLY1305_WYCHEPROOF_H

#include "../vectors/wycheproof.h"

#include <sodium.h>
#include <stdlib.h>

#ifndef POLY1305_TARGET
#define POLY1305_TARGET /* the instructions that the implementation is compiled for */
#endif
#define WYCHEPROOF_CASES (sizeof(wycheproof) / sizeof(wycheproof[0]))

/* What is authenticated (RFC 8439 §2.8): both texts filled up to blocks, and their lengths. */
struct wycheproof_input {
    uint8_t key_block[64], tag[16];
    uint8_t additional[1024], ciphertext[1024], message[2080];
    size_t additional_length, ciphertext_length, message_length;
};

static size_t from_hex(uint8_t *out, size_t capacity, const char *text)
{
    size_t length;
    assert_int_equal(sodium_hex2bin(out, capacity, text, strlen(text), NULL, &length, NULL), 0);
    return length;
}

static size_t fill_up(uint8_t *message, const uint8_t *text, size_t length)
{
    memcpy(message, text, length);
    return (length + 15) / 16 * 16;
}

static struct wycheproof_input *wycheproof_read(const struct wycheproof_case *c)
{
    struct wycheproof_input *in = calloc(1, sizeof(*in));
    uint8_t key[32], nonce[12];
    assert_non_null(in);
    assert_int_equal(from_hex(key, sizeof(key), c->key), 32);
    assert_int_equal(from_hex(nonce, sizeof(nonce), c->nonce), 12);
    assert_int_equal(from_hex(in->tag, sizeof(in->tag), c->tag), 16);
    in->additional_length = from_hex(in->additional, sizeof(in->additional), c->additional);
    in->ciphertext_length = from_hex(in->ciphertext, sizeof(in->ciphertext), c->ciphertext);
    crypto_stream_chacha20_ietf(in->key_block, sizeof(in->key_block), nonce, key);

    size_t end = fill_up(in->message, in->additional, in->additional_length);
    end += fill_up(in->message + end, in->ciphertext, in->ciphertext_length);
    const uint64_t lengths[2] = {in->additional_length, in->ciphertext_length};
    memcpy(in->message + end, lengths, sizeof(lengths));
    in->message_length = end + sizeof(lengths);
    return in;
}

/* A packet of these bytes: they, filled up, and the lengths. */
POLY1305_TARGET static void wycheproof_compute(const struct wycheproof_input *in,
                                               const uint8_t *data, uint32_t length,
                                               uint64_t tag[2])
{
    struct poly1305_key *keys = calloc(1, sizeof(*keys));
    struct poly1305 poly = {0};
    const uint32_t steps = length / POLY1305_STEP;
    assert_non_null(keys);
    poly1305_load_keys(keys, (const uint8_t(*)[64])in->key_block, 1);
    if (steps)
        poly1305_steps(&poly, keys, data, steps);
    poly1305_end(&poly, keys, data + steps * POLY1305_STEP, length % POLY1305_STEP, length, tag);
    free(keys);
}

/* Where there is no additional data a packet's tag is the published one, or is not, where that was
 * spoilt. */
static void wycheproof_tags_are_as_published(void **state)
{
    size_t compared = 0;
    (void)state;
    for (size_t i = 0; i < WYCHEPROOF_CASES; i++) {
        struct wycheproof_input *in = wycheproof_read(&wycheproof[i]);
        uint64_t tag[2];
        if (!in->additional_length) {
            wycheproof_compute(in, in->ciphertext, (uint32_t)in->ciphertext_length, tag);
            if (!memcmp(tag, in->tag, sizeof(tag)) != wycheproof[i].valid)
                fail_msg("case %d", wycheproof[i].number);
            compared++;
        }
        free(in);
    }
    assert_int_equal(compared, 45);
}

/* All that is authenticated, as if it were a packet: the sums on the way are those that the cases
 * were made for, then comes one block more. */
static void wycheproof_sums_are_those_of_libsodium(void **state)
{
    (void)state;
    for (size_t i = 0; i < WYCHEPROOF_CASES; i++) {
        struct wycheproof_input *in = wycheproof_read(&wycheproof[i]);
        const uint64_t last[2] = {0, in->message_length};
        uint64_t tag[2];
        uint8_t expected[16];
        wycheproof_compute(in, in->message, (uint32_t)in->message_length, tag);
        memcpy(in->message + in->message_length, last, sizeof(last));
        crypto_onetimeauth_poly1305(expected, in->message, in->message_length + sizeof(last),
                                    in->key_block);
        if (memcmp(tag, expected, sizeof(expected)))
            fail_msg("case %d", wycheproof[i].number);
        free(in);
    }
}

#endif
