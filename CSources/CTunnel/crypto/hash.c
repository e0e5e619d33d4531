/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BLAKE2s by libcrypto. The algorithms are fetched once per process and the contexts are kept per
 * thread: a fetch and a fresh context cost more than hashing 64 bytes. libcrypto failing here means
 * that it has no default provider or no memory; a handshake cannot go on with an undefined hash, so
 * that ends the process.
 */
#include "hash.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BLAKE2S_BLOCK      64 /* RFC 7693 §2.1 */
#define BLAKE2S_KEY_LENGTH 32

struct contexts {
    EVP_MD_CTX *digest;
    EVP_MAC_CTX *mac;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t contexts_key; /* only for its destructor at thread exit */
static EVP_MD *blake2s;
static EVP_MAC *blake2s_mac;
static _Thread_local struct contexts *thread_contexts;

static void check(int success)
{
    if (success != 1)
        abort();
}

static void contexts_free(void *pointer)
{
    struct contexts *contexts = pointer;
    EVP_MD_CTX_free(contexts->digest);
    EVP_MAC_CTX_free(contexts->mac);
    free(contexts);
    thread_contexts = NULL;
}

static void fetch_algorithms(void)
{
    blake2s = EVP_MD_fetch(NULL, "BLAKE2S-256", NULL);
    blake2s_mac = EVP_MAC_fetch(NULL, "BLAKE2SMAC", NULL);
    check(blake2s && blake2s_mac && pthread_key_create(&contexts_key, contexts_free) == 0);
}

static struct contexts *contexts(void)
{
    if (thread_contexts)
        return thread_contexts;
    pthread_once(&once, fetch_algorithms);
    struct contexts *new = calloc(1, sizeof(*new));
    check(new != NULL);
    new->digest = EVP_MD_CTX_new();
    new->mac = EVP_MAC_CTX_new(blake2s_mac);
    check(new->digest &&new->mac &&EVP_DigestInit_ex2(new->digest, blake2s, NULL) == 1 &&
          pthread_setspecific(contexts_key, new) == 0);
    return thread_contexts = new;
}

void blake2s_256(uint8_t out[BLAKE2S_LENGTH], const struct hash_part *parts, size_t count)
{
    EVP_MD_CTX *context = contexts()->digest;
    check(EVP_DigestInit_ex2(context, NULL, NULL));
    for (size_t i = 0; i < count; i++)
        check(EVP_DigestUpdate(context, parts[i].data, parts[i].length));
    /* Final also wipes the chaining value and the buffered input. */
    check(EVP_DigestFinal_ex(context, out, NULL));
}

void blake2s_mac128(uint8_t out[16], const uint8_t *key, size_t key_length, const void *data,
                    size_t length)
{
    static const uint8_t no_key[BLAKE2S_KEY_LENGTH];
    size_t size = 16;
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
        OSSL_PARAM_construct_end(),
    };
    EVP_MAC_CTX *context = contexts()->mac;

    check(EVP_MAC_init(context, key, key_length, parameters));
    check(EVP_MAC_update(context, data, length));
    check(EVP_MAC_final(context, out, &size, size));
    /* The context keeps the key for a later init without one; none comes. */
    check(EVP_MAC_init(context, no_key, sizeof(no_key), parameters));
}

/* HMAC (RFC 2104 §2) of `data` followed by `suffix`, keyed with one hash length. */
static void hmac(uint8_t out[BLAKE2S_LENGTH], const uint8_t key[BLAKE2S_LENGTH],
                 struct hash_part data, struct hash_part suffix)
{
    uint8_t pad[BLAKE2S_BLOCK];
    uint8_t inner[BLAKE2S_LENGTH];

    memset(pad, 0x36, sizeof(pad));
    for (size_t i = 0; i < BLAKE2S_LENGTH; i++)
        pad[i] ^= key[i];
    blake2s_256(inner, (const struct hash_part[]){{pad, sizeof(pad)}, data, suffix}, 3);

    for (size_t i = 0; i < sizeof(pad); i++)
        pad[i] ^= 0x36 ^ 0x5c;
    blake2s_256(out, (const struct hash_part[]){{pad, sizeof(pad)}, {inner, sizeof(inner)}}, 2);

    OPENSSL_cleanse(pad, sizeof(pad));
    OPENSSL_cleanse(inner, sizeof(inner));
}

/* HKDF (RFC 5869) with an empty info: extract, then T(i) = HMAC(PRK, T(i-1) || i). */
void hash_kdf(uint8_t *out1, uint8_t *out2, uint8_t *out3, const uint8_t chaining_key[32],
              const void *input, size_t input_length)
{
    uint8_t *const outputs[] = {out1, out2, out3};
    const size_t last = out3 ? 3 : out2 ? 2 : 1;
    uint8_t pseudorandom_key[BLAKE2S_LENGTH];
    uint8_t block[BLAKE2S_LENGTH];

    hmac(pseudorandom_key, chaining_key, (struct hash_part){input, input_length},
         (struct hash_part){NULL, 0});
    for (size_t i = 0; i < last; i++) {
        const uint8_t number = (uint8_t)(i + 1);
        hmac(block, pseudorandom_key, (struct hash_part){block, i ? sizeof(block) : 0},
             (struct hash_part){&number, 1});
        if (outputs[i])
            memcpy(outputs[i], block, sizeof(block));
    }
    OPENSSL_cleanse(pseudorandom_key, sizeof(pseudorandom_key));
    OPENSSL_cleanse(block, sizeof(block));
}
