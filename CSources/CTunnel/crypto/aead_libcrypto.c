/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ChaCha20-Poly1305 by libcrypto's EVP interface: one context per direction, keyed only when the
 * batch's key differs from the last one, so a packet costs a new nonce and no key set-up.
 */
#include "../lines.h"
#include "aead.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct direction {
    EVP_CIPHER_CTX *context;
    bool keyed;
    struct aead_key key; /* what `context` holds, while `keyed` */
};

struct libcrypto_worker {
    struct aead_worker base;
    struct direction seal, open;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static EVP_CIPHER *cipher; /* fetched once: an implicit fetch per key costs more than the key */

static void fetch_cipher(void)
{
    cipher = EVP_CIPHER_fetch(NULL, "ChaCha20-Poly1305", NULL);
}

static void direction_forget(struct direction *direction)
{
    if (!direction->keyed)
        return;
    /* Frees the cipher's state, and libcrypto wipes it as it does. */
    EVP_CIPHER_CTX_reset(direction->context);
    OPENSSL_cleanse(&direction->key, sizeof(direction->key));
    direction->keyed = false;
}

static bool direction_set_key(struct direction *direction, const struct aead_key *key, int encrypt)
{
    if (direction->keyed && CRYPTO_memcmp(&direction->key, key, sizeof(*key)) == 0)
        return true;
    const EVP_CIPHER *type = direction->keyed ? NULL : cipher;
    direction->keyed = true; /* from here on there is something to forget */
    direction->key = *key;
    if (EVP_CipherInit_ex2(direction->context, type, key->bytes, NULL, encrypt, NULL) == 1)
        return true;
    direction_forget(direction);
    return false;
}

static void forget(struct aead_worker *base)
{
    struct libcrypto_worker *worker = (struct libcrypto_worker *)base;
    direction_forget(&worker->seal);
    direction_forget(&worker->open);
}

static void destroy(struct aead_worker *base)
{
    struct libcrypto_worker *worker = (struct libcrypto_worker *)base;
    forget(base);
    EVP_CIPHER_CTX_free(worker->seal.context);
    EVP_CIPHER_CTX_free(worker->open.context);
    free(worker);
}

static struct aead_worker *create(void)
{
    pthread_once(&once, fetch_cipher);
    if (!cipher)
        return NULL;
    struct libcrypto_worker *worker = lines_alloc(sizeof(*worker));
    if (!worker)
        return NULL;
    worker->base.backend = &aead_libcrypto;
    worker->seal.context = EVP_CIPHER_CTX_new();
    worker->open.context = EVP_CIPHER_CTX_new();
    if (!worker->seal.context || !worker->open.context) {
        destroy(&worker->base);
        return NULL;
    }
    return &worker->base;
}

static void make_nonce(uint8_t nonce[12], uint64_t counter)
{
    memset(nonce, 0, 4);
    memcpy(nonce + 4, &counter, 8);
}

static bool seal_one(EVP_CIPHER_CTX *context, struct aead_packet *packet)
{
    uint8_t *tag = packet->destination + packet->length;
    uint8_t nonce[12];
    int written = 0;

    make_nonce(nonce, packet->counter);
    return EVP_EncryptInit_ex2(context, NULL, NULL, nonce, NULL) == 1 &&
           EVP_EncryptUpdate(context, packet->destination, &written, packet->source,
                             (int)packet->length) == 1 &&
           EVP_EncryptFinal_ex(context, tag, &written) == 1 &&
           EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, AEAD_TAG_LENGTH, tag) == 1;
}

static void seal_n(struct aead_worker *base, const struct aead_key *key,
                   struct aead_packet *packets, size_t count)
{
    struct direction *seal = &((struct libcrypto_worker *)base)->seal;

    /* There is no packet that fails to seal: a failure is a lack of memory at a new key, and going
     * on would send plaintext. */
    if (count && !direction_set_key(seal, key, 1))
        abort();
    for (size_t i = 0; i < count; i++)
        if (!seal_one(seal->context, &packets[i]))
            abort();
}

static bool open_one(EVP_CIPHER_CTX *context, struct aead_packet *packet)
{
    uint8_t tag[AEAD_TAG_LENGTH]; /* the control call takes a writable pointer */
    uint8_t nonce[12];
    int written = 0;

    make_nonce(nonce, packet->counter);
    memcpy(tag, packet->source + packet->length, sizeof(tag));
    return EVP_DecryptInit_ex2(context, NULL, NULL, nonce, NULL) == 1 &&
           EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, sizeof(tag), tag) == 1 &&
           EVP_DecryptUpdate(context, packet->destination, &written, packet->source,
                             (int)packet->length) == 1 &&
           EVP_DecryptFinal_ex(context, tag, &written) == 1; /* compares the tag, writes nothing */
}

static size_t open_n(struct aead_worker *base, const struct aead_key *key,
                     struct aead_packet *packets, size_t count)
{
    struct direction *open = &((struct libcrypto_worker *)base)->open;
    const bool keyed = count && direction_set_key(open, key, 0);
    size_t opened = 0;

    for (size_t i = 0; i < count; i++) {
        struct aead_packet *packet = &packets[i];
        packet->ok = keyed && open_one(open->context, packet);
        if (!packet->ok && packet->length)
            OPENSSL_cleanse(packet->destination, packet->length);
        opened += packet->ok;
    }
    /* A forged packet must not leave an entry per packet in the thread's error queue. */
    if (opened != count)
        ERR_clear_error();
    return opened;
}

const struct aead_backend aead_libcrypto = {
    .name = "libcrypto",
    .create = create,
    .destroy = destroy,
    .seal_n = seal_n,
    .open_n = open_n,
    .forget = forget,
};
