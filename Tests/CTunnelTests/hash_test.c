/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BLAKE2s against a plain implementation after RFC 7693 that passes the RFC's own self-test, and
 * against libcrypto's; the KDF against libcrypto's HMAC and HKDF.
 */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on
#include "crypto/blake2s.h"
#include "crypto/hash.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <pthread.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- BLAKE2s as RFC 7693 §3 writes it, for messages held in memory --------------------------- */

static const uint32_t initial_vector[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

/* RFC 7693 §2.7. */
static const uint8_t sigma[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static uint32_t rotate(uint32_t word, int by)
{
    return word >> by | word << (32 - by);
}

static void compress(uint32_t h[8], const uint8_t block[64], uint64_t offset, bool last)
{
    /* Columns, then diagonals. */
    static const uint8_t lanes[8][4] = {{0, 4, 8, 12},  {1, 5, 9, 13},  {2, 6, 10, 14},
                                        {3, 7, 11, 15}, {0, 5, 10, 15}, {1, 6, 11, 12},
                                        {2, 7, 8, 13},  {3, 4, 9, 14}};
    uint32_t v[16], m[16];

    memcpy(m, block, 64);
    memcpy(v, h, 32);
    memcpy(v + 8, initial_vector, 32);
    v[12] ^= (uint32_t)offset;
    v[13] ^= (uint32_t)(offset >> 32);
    if (last)
        v[14] = ~v[14];
    for (int round = 0; round < 10; round++)
        for (int i = 0; i < 8; i++) {
            uint32_t *a = &v[lanes[i][0]], *b = &v[lanes[i][1]];
            uint32_t *c = &v[lanes[i][2]], *d = &v[lanes[i][3]];
            *a += *b + m[sigma[round][2 * i]];
            *d = rotate(*d ^ *a, 16);
            *c += *d;
            *b = rotate(*b ^ *c, 12);
            *a += *b + m[sigma[round][2 * i + 1]];
            *d = rotate(*d ^ *a, 8);
            *c += *d;
            *b = rotate(*b ^ *c, 7);
        }
    for (int i = 0; i < 8; i++)
        h[i] ^= v[i] ^ v[i + 8];
}

static void reference(uint8_t *out, size_t out_length, const uint8_t *key, size_t key_length,
                      const uint8_t *data, size_t length)
{
    uint8_t *padded = calloc(1, 64 + length + 64);
    const size_t total = (key_length ? 64 : 0) + length;
    uint32_t h[8];

    assert_non_null(padded);
    if (key_length)
        memcpy(padded, key, key_length);
    if (length)
        memcpy(padded + (key_length ? 64 : 0), data, length);
    memcpy(h, initial_vector, 32);
    h[0] ^= 0x01010000u ^ (uint32_t)(key_length << 8) ^ (uint32_t)out_length;
    size_t offset = 0;
    for (; total - offset > 64; offset += 64)
        compress(h, padded + offset, offset + 64, false);
    compress(h, padded + offset, total, true);
    memcpy(out, h, out_length);
    free(padded);
}

/* RFC 7693 appendix E: selftest_seq. */
static void sequence(uint8_t *out, size_t length, uint32_t seed)
{
    uint32_t a = 0xdead4bad * seed, b = 1;
    for (size_t i = 0; i < length; i++) {
        const uint32_t t = a + b;
        a = b;
        b = t;
        out[i] = (uint8_t)(t >> 24);
    }
}

/* RFC 7693 appendix E: a hash over hashes of four output lengths, keyed and not. */
static void the_reference_passes_rfc7693_appendix_e(void **state)
{
    static const size_t outputs[] = {16, 20, 28, 32};
    static const size_t inputs[] = {0, 3, 64, 65, 255, 1024};
    static const uint8_t expected[32] = {0x6a, 0x41, 0x1f, 0x08, 0xce, 0x25, 0xad, 0xcd,
                                         0xfb, 0x02, 0xab, 0xa6, 0x41, 0x45, 0x1c, 0xec,
                                         0x53, 0xc5, 0x98, 0xb2, 0x4f, 0x4f, 0xc7, 0x87,
                                         0xfb, 0xdc, 0x88, 0x79, 0x7f, 0x4c, 0x1d, 0xfe};
    uint8_t all[2 * 6 * (16 + 20 + 28 + 32)], *next = all;
    uint8_t data[1024], key[32], result[32];
    (void)state;
    for (size_t o = 0; o < 4; o++)
        for (size_t i = 0; i < 6; i++) {
            sequence(data, inputs[i], (uint32_t)inputs[i]);
            reference(next, outputs[o], NULL, 0, data, inputs[i]);
            next += outputs[o];
            sequence(key, outputs[o], (uint32_t)outputs[o]);
            reference(next, outputs[o], key, outputs[o], data, inputs[i]);
            next += outputs[o];
        }
    assert_ptr_equal(next, all + sizeof(all));
    reference(result, 32, NULL, 0, all, sizeof(all));
    assert_memory_equal(result, expected, 32);
}

/* ---- the compression function ---------------------------------------------------------------- */

/* Any chaining value, block and length, those beyond 32 bits too. */
static void a_compression_equals_the_reference(void **state)
{
    uint32_t h[8], expected[8];
    uint8_t block[64];
    uint64_t length;
    (void)state;
    for (int i = 0; i < 2000; i++) {
        randombytes_buf(h, sizeof(h));
        randombytes_buf(block, sizeof(block));
        randombytes_buf(&length, sizeof(length));
        length >>= randombytes_uniform(64);
        memcpy(expected, h, sizeof(h));
        compress(expected, block, length, i % 2);
        blake2s_compress(h, block, length, i % 2);
        assert_memory_equal(h, expected, sizeof(h));
    }
}

static void two_compressions_at_once_equal_one_after_the_other(void **state)
{
    uint32_t h[2][8], expected[2][8];
    uint8_t blocks[2][64];
    uint64_t length;
    (void)state;
    for (int i = 0; i < 2000; i++) {
        randombytes_buf(h, sizeof(h));
        randombytes_buf(blocks, sizeof(blocks));
        randombytes_buf(&length, sizeof(length));
        length >>= randombytes_uniform(64);
        memcpy(expected, h, sizeof(h));
        compress(expected[0], blocks[0], length, false);
        compress(expected[1], blocks[1], length, false);
        blake2s_compress_two(h, blocks, length);
        assert_memory_equal(h, expected, sizeof(h));
    }
}

/* ---- BLAKE2s --------------------------------------------------------------------------------- */

/* RFC 7693 appendix B. */
static void rfc7693_appendix_b_abc(void **state)
{
    static const uint8_t expected[32] = {0x50, 0x8c, 0x5e, 0x8c, 0x32, 0x7c, 0x14, 0xe2,
                                         0xe1, 0xa7, 0x2b, 0xa3, 0x4e, 0xeb, 0x45, 0x2f,
                                         0x37, 0x45, 0x8b, 0x20, 0x9e, 0xd6, 0x3a, 0x29,
                                         0x4d, 0x99, 0x9b, 0x4c, 0x86, 0x67, 0x59, 0x82};
    uint8_t out[32];
    (void)state;
    blake2s_256(out, (const struct hash_part[]){{"abc", 3}}, 1);
    assert_memory_equal(out, expected, 32);
    blake2s_256(out, (const struct hash_part[]){{"a", 1}, {NULL, 0}, {"bc", 2}}, 3);
    assert_memory_equal(out, expected, 32);
}

static void hashes_of_every_length_and_split_equal_the_reference(void **state)
{
    uint8_t data[300], expected[32], out[32];
    (void)state;
    randombytes_buf(data, sizeof(data));
    for (size_t length = 0; length <= sizeof(data); length++) {
        const size_t cut = randombytes_uniform((uint32_t)length + 1);
        reference(expected, 32, NULL, 0, data, length);
        blake2s_256(out, (const struct hash_part[]){{data, length}}, 1);
        assert_memory_equal(out, expected, 32);
        blake2s_256(out, (const struct hash_part[]){{data, cut}, {data + cut, length - cut}}, 2);
        assert_memory_equal(out, expected, 32);
    }
    reference(expected, 32, NULL, 0, NULL, 0);
    blake2s_256(out, NULL, 0);
    assert_memory_equal(out, expected, 32);
}

static void macs_of_every_key_length_equal_the_reference(void **state)
{
    uint8_t data[200], key[32], expected[16], out[16];
    (void)state;
    randombytes_buf(data, sizeof(data));
    randombytes_buf(key, sizeof(key));
    for (size_t key_length = 1; key_length <= sizeof(key); key_length++)
        for (size_t length = 0; length <= sizeof(data); length++) {
            reference(expected, 16, key, key_length, data, length);
            blake2s_mac128(out, key, key_length, data, length);
            assert_memory_equal(out, expected, 16);
        }
}

static void libcrypto_mac128(uint8_t out[16], const uint8_t *key, size_t key_length,
                             const uint8_t *data, size_t length)
{
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "BLAKE2SMAC", NULL);
    EVP_MAC_CTX *context = EVP_MAC_CTX_new(mac);
    size_t size = 16;
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
        OSSL_PARAM_construct_end(),
    };
    assert_int_equal(EVP_MAC_init(context, key, key_length, parameters), 1);
    assert_int_equal(EVP_MAC_update(context, data, length), 1);
    assert_int_equal(EVP_MAC_final(context, out, &size, 16), 1);
    EVP_MAC_CTX_free(context);
    EVP_MAC_free(mac);
}

/* Random lengths and contents, in random pieces. */
static void hashes_and_macs_equal_those_of_libcrypto(void **state)
{
    uint8_t data[2000], key[32], expected[32], out[32];
    (void)state;
    for (int i = 0; i < 500; i++) {
        const size_t length = randombytes_uniform(sizeof(data) + 1);
        const size_t cut = randombytes_uniform((uint32_t)length + 1);
        const size_t key_length = 1 + randombytes_uniform(sizeof(key));
        randombytes_buf(data, length);
        randombytes_buf(key, sizeof(key));

        assert_int_equal(EVP_Q_digest(NULL, "BLAKE2S-256", NULL, data, length, expected, NULL), 1);
        blake2s_256(out, (const struct hash_part[]){{data, cut}, {data + cut, length - cut}}, 2);
        assert_memory_equal(out, expected, 32);
        libcrypto_mac128(expected, key, key_length, data, length);
        blake2s_mac128(out, key, key_length, data, length);
        assert_memory_equal(out, expected, 16);
    }
}

/* ---- the KDF --------------------------------------------------------------------------------- */

static void evp_hmac(uint8_t out[32], const uint8_t *key, const uint8_t *data, size_t length)
{
    size_t written = 32;
    assert_non_null(EVP_Q_mac(NULL, "HMAC", NULL, "BLAKE2S-256", NULL, key, 32, data, length, out,
                              32, &written));
    assert_int_equal(written, 32);
}

static void evp_hkdf(uint8_t out[96], const uint8_t salt[32], uint8_t *input, size_t length)
{
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *context = EVP_KDF_CTX_new(kdf);
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)"BLAKE2S-256", 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)salt, 32),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, input, length),
        OSSL_PARAM_construct_end(),
    };
    assert_int_equal(EVP_KDF_derive(context, out, 96, parameters), 1);
    EVP_KDF_CTX_free(context);
    EVP_KDF_free(kdf);
}

static void kdf_equals_libcrypto_hkdf(void **state)
{
    uint8_t key[32], input[200], expected[96], out[96];
    (void)state;
    for (size_t length = 1; length <= sizeof(input); length++) {
        randombytes_buf(key, sizeof(key));
        randombytes_buf(input, length);
        evp_hkdf(expected, key, input, length);
        hash_kdf(out, out + 32, out + 64, key, input, length);
        assert_memory_equal(out, expected, 96);
    }
}

/* HKDF of libcrypto takes no empty input, the transport keys do: by HMAC, step by step. */
static void kdf_of_nothing_equals_libcrypto_hmac(void **state)
{
    uint8_t key[32], secret[32], expected[64], block[33], out[64];
    (void)state;
    randombytes_buf(key, sizeof(key));
    evp_hmac(secret, key, (const uint8_t *)"", 0);
    evp_hmac(expected, secret, (const uint8_t *)"\1", 1);
    memcpy(block, expected, 32);
    block[32] = 2;
    evp_hmac(expected + 32, secret, block, 33);
    hash_kdf(out, out + 32, NULL, key, NULL, 0);
    assert_memory_equal(out, expected, 64);
}

static void kdf_gives_the_wanted_outputs_and_may_replace_its_key(void **state)
{
    uint8_t key[32], input[32], all[96], out[96];
    (void)state;
    randombytes_buf(key, sizeof(key));
    randombytes_buf(input, sizeof(input));
    hash_kdf(all, all + 32, all + 64, key, input, 32);

    hash_kdf(out, NULL, NULL, key, input, 32);
    assert_memory_equal(out, all, 32);
    hash_kdf(out, out + 32, NULL, key, input, 32);
    assert_memory_equal(out, all, 64);
    hash_kdf(NULL, NULL, out, key, input, 32);
    assert_memory_equal(out, all + 64, 32);
    hash_kdf(key, out, out + 32, key, input, 32);
    assert_memory_equal(key, all, 32);
    assert_memory_equal(out, all + 32, 64);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *hash_much(void *argument)
{
    const uint8_t seed = *(uint8_t *)argument;
    uint8_t data[100], expected[32], out[32];
    intptr_t wrong = 0;
    for (int i = 0; i < 500; i++) {
        memset(data, seed + i, sizeof(data));
        reference(expected, 32, NULL, 0, data, sizeof(data));
        blake2s_256(out, (const struct hash_part[]){{data, sizeof(data)}}, 1);
        wrong += memcmp(out, expected, 32) != 0;
        reference(expected, 16, data, 32, data, sizeof(data));
        blake2s_mac128(out, data, 32, data, sizeof(data));
        wrong += memcmp(out, expected, 16) != 0;
    }
    return (void *)wrong;
}

static void threads_hash_independently(void **state)
{
    pthread_t threads[4];
    uint8_t seeds[4] = {1, 60, 120, 180};
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hash_much, &seeds[i]), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_passes_rfc7693_appendix_e),
        cmocka_unit_test(a_compression_equals_the_reference),
        cmocka_unit_test(two_compressions_at_once_equal_one_after_the_other),
        cmocka_unit_test(rfc7693_appendix_b_abc),
        cmocka_unit_test(hashes_of_every_length_and_split_equal_the_reference),
        cmocka_unit_test(macs_of_every_key_length_equal_the_reference),
        cmocka_unit_test(hashes_and_macs_equal_those_of_libcrypto),
        cmocka_unit_test(kdf_equals_libcrypto_hkdf),
        cmocka_unit_test(kdf_of_nothing_equals_libcrypto_hmac),
        cmocka_unit_test(kdf_gives_the_wanted_outputs_and_may_replace_its_key),
        cmocka_unit_test(threads_hash_independently),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
