/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what BLAKE2s and the KDF make of fixed inputs of many lengths. Built for the host, whose
 * hashes the unit tests compare with libcrypto's, and for arm64: both must print the same.
 */
#include "crypto/hash.h"

#include <stdio.h>

#define LARGEST 300

static void print(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        printf("%02x", bytes[i]);
    putchar('\n');
}

int main(void)
{
    uint8_t data[LARGEST], out[96] = {0};
    for (size_t i = 0; i < LARGEST; i++)
        data[i] = (uint8_t)(i * i + 7 * i);
    for (size_t length = 0; length <= LARGEST; length++) {
        blake2s_256(out, (const struct hash_part[]){{data, length}}, 1);
        print(out, 32);
        blake2s_mac128(out, data + 1, 1 + length % 32, data, length);
        print(out, 16);
        hash_kdf(out, out + 32, out + 64, out, data, length);
        print(out, 96);
    }
    return 0;
}
