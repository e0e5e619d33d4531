/* SPDX-License-Identifier: Apache-2.0 */
/* X25519 (RFC 7748) by the faster of our libraries. Thread-safe. */
#ifndef CTUNNEL_CURVE25519_H
#define CTUNNEL_CURVE25519_H

#include <stdbool.h>
#include <stdint.h>

/* False: the result is all zero (a point of low order); `out` is zeroed then. Constant time. */
bool x25519(uint8_t out[32], const uint8_t secret[32], const uint8_t point[32]);
/* The public key of `secret`. */
void x25519_public(uint8_t out[32], const uint8_t secret[32]);
/* A clamped private key from the system's random source. */
void x25519_generate(uint8_t secret[32]);

#endif
