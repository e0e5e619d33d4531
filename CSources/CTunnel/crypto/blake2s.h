/* SPDX-License-Identifier: Apache-2.0 */
/* The compression function of BLAKE2s (RFC 7693 §3.2), for one hash or two at once. */
#ifndef CTUNNEL_BLAKE2S_H
#define CTUNNEL_BLAKE2S_H

#include <stdbool.h>
#include <stdint.h>

#define BLAKE2S_BLOCK       64
#define BLAKE2S_STATE_WORDS 8

/* Before the first block, unkeyed (`key_length` 0) or keyed; lengths in bytes, up to 32. */
void blake2s_initialise(uint32_t h[BLAKE2S_STATE_WORDS], uint32_t out_length, uint32_t key_length);
/* `length`: bytes hashed so far, this block's included and the block of a key too. */
void blake2s_compress(uint32_t h[BLAKE2S_STATE_WORDS], const uint8_t block[BLAKE2S_BLOCK],
                      uint64_t length, bool last);
/* Two states that are alike in `length` take a block each, which is not their last. */
void blake2s_compress_two(uint32_t h[][BLAKE2S_STATE_WORDS], const uint8_t blocks[][BLAKE2S_BLOCK],
                          uint64_t length);

#endif
