/* SPDX-License-Identifier: Apache-2.0 */
/* BLAKE2s (RFC 7693), HMAC over it, and the KDF of WireGuard §5.4. Thread-safe. */
#ifndef CTUNNEL_HASH_H
#define CTUNNEL_HASH_H

#include <stddef.h>
#include <stdint.h>

#define BLAKE2S_LENGTH 32

struct hash_part {
    const void *data;
    size_t length;
};

/* BLAKE2s-256 of the concatenation of `parts`. */
void blake2s_256(uint8_t out[BLAKE2S_LENGTH], const struct hash_part *parts, size_t count);
/* Keyed BLAKE2s with a 16-byte output: the MAC of §5.4.4. `key_length` 1–32. */
void blake2s_mac128(uint8_t out[16], const uint8_t *key, size_t key_length, const void *data,
                    size_t length);
/* HKDF with HMAC-BLAKE2s: 1 to 3 outputs of 32 bytes; unused ones NULL. `key` 32 bytes. */
void hash_kdf(uint8_t *out1, uint8_t *out2, uint8_t *out3, const uint8_t chaining_key[32],
              const void *input, size_t input_length);

#endif
