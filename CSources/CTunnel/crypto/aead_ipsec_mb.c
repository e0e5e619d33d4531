/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ChaCha20-Poly1305 by Intel's ipsec-mb (x86 only), in bursts of jobs. The library is loaded at run
 * time: where it is missing this back-end is absent and the others do the work.
 *
 * Within one burst the library finishes every job of this cipher before it returns; it computes
 * tags and leaves comparing them to us.
 */
#include "../lines.h"
#include "aead.h"

#if __has_include(<intel-ipsec-mb.h>)

#include <assert.h>
#include <dlfcn.h>
#include <intel-ipsec-mb.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define BURST 64 /* at most IMB_MAX_BURST_SIZE */
static_assert(BURST <= IMB_MAX_BURST_SIZE, "a burst fits the ring");

struct ipsec_mb_worker {
    struct aead_worker base;
    IMB_MGR *manager;
    burst_fn_t submit;
    uint8_t nonces[BURST][16]; /* 12 used; spaced for aligned loads */
    uint8_t tags[BURST][AEAD_TAG_LENGTH];
};

static struct {
    bool loaded;
    bool same_version;
    IMB_MGR *(*allocate)(uint64_t flags);
    void (*release)(IMB_MGR *manager);
    void (*initialise)(IMB_MGR *manager, IMB_ARCH *arch);
} library;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_library(void)
{
    void *handle = dlopen("libIPSec_MB.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return;
    /* Never closed: the managers point into it. */
    unsigned (*version)(void);
    *(void **)&version = dlsym(handle, "imb_get_version");
    *(void **)&library.allocate = dlsym(handle, "alloc_mb_mgr");
    *(void **)&library.release = dlsym(handle, "free_mb_mgr");
    *(void **)&library.initialise = dlsym(handle, "init_mb_mgr_auto");
    /* The manager and the jobs are structs shared with the library: an older one lacks fields. */
    if (!version || version() < IMB_VERSION_NUM || version() >> 16 != IMB_VERSION_NUM >> 16)
        return;
    library.same_version = version() >> 8 == IMB_VERSION_NUM >> 8;
    library.loaded = library.allocate && library.release && library.initialise;
}

static void forget(struct aead_worker *base)
{
    /* The manager keeps no key of this cipher, only pointers; a tag we computed for a packet we
     * rejected would let its sender have it accepted. */
    struct ipsec_mb_worker *worker = (struct ipsec_mb_worker *)base;
    sodium_memzero(worker->tags, sizeof(worker->tags));
}

static void destroy(struct aead_worker *base)
{
    struct ipsec_mb_worker *worker = (struct ipsec_mb_worker *)base;
    forget(base);
    library.release(worker->manager);
    free(worker);
}

static struct aead_worker *create(void)
{
    IMB_ARCH arch = IMB_ARCH_NONE;

    pthread_once(&once, load_library);
    if (!library.loaded)
        return NULL;
    struct ipsec_mb_worker *worker = lines_alloc(sizeof(*worker));
    if (!worker)
        return NULL;
    worker->base.backend = &aead_ipsec_mb;
    worker->manager = library.allocate(0);
    if (worker->manager)
        library.initialise(worker->manager, &arch); /* the best of SSE, AVX2, AVX-512 */
    if (arch == IMB_ARCH_NONE || worker->manager->imb_errno != 0) {
        if (worker->manager)
            library.release(worker->manager);
        free(worker);
        return NULL;
    }
    /* Skipping the argument checks saves some 30 ns a packet. From 1.4 on the unchecked call needs
     * a session set up first, so with a later library than we know the checked one is used. */
    worker->submit = library.same_version ? worker->manager->submit_burst_nocheck
                                          : worker->manager->submit_burst;
    return &worker->base;
}

/* Processes up to BURST packets; true where all were completed. */
static bool run_burst(struct ipsec_mb_worker *worker, const struct aead_key *key,
                      struct aead_packet *packets, uint32_t count, IMB_CIPHER_DIRECTION direction)
{
    const bool sealing = direction == IMB_DIR_ENCRYPT;
    IMB_JOB *jobs[BURST];

    if (worker->manager->get_next_burst(worker->manager, count, jobs) != count)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct aead_packet *packet = &packets[i];
        IMB_JOB *job = jobs[i];
        memcpy(worker->nonces[i] + 4, &packet->counter, 8);
        job->enc_keys = key->bytes;
        job->dec_keys = key->bytes;
        job->key_len_in_bytes = AEAD_KEY_LENGTH;
        job->src = packet->source;
        job->dst = packet->destination;
        job->cipher_start_src_offset_in_bytes = 0;
        job->hash_start_src_offset_in_bytes = 0;
        job->msg_len_to_cipher_in_bytes = packet->length;
        job->msg_len_to_hash_in_bytes = packet->length;
        job->iv = worker->nonces[i];
        job->iv_len_in_bytes = 12;
        job->auth_tag_output = sealing ? packet->destination + packet->length : worker->tags[i];
        job->auth_tag_output_len_in_bytes = AEAD_TAG_LENGTH;
        job->u.CHACHA20_POLY1305.aad = NULL;
        job->u.CHACHA20_POLY1305.aad_len_in_bytes = 0;
        job->cipher_mode = IMB_CIPHER_CHACHA20_POLY1305;
        job->hash_alg = IMB_AUTH_CHACHA20_POLY1305;
        job->cipher_direction = direction;
        job->chain_order = sealing ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER;
    }
    return worker->submit(worker->manager, count, jobs) == count;
}

static uint32_t burst_size(size_t left)
{
    return left < BURST ? (uint32_t)left : BURST;
}

static void seal_n(struct aead_worker *base, const struct aead_key *key,
                   struct aead_packet *packets, size_t count)
{
    struct ipsec_mb_worker *worker = (struct ipsec_mb_worker *)base;

    while (count) {
        const uint32_t burst = burst_size(count);
        /* Cannot happen with the arguments above; going on would send plaintext. */
        if (!run_burst(worker, key, packets, burst, IMB_DIR_ENCRYPT))
            abort();
        packets += burst;
        count -= burst;
    }
}

static size_t open_n(struct aead_worker *base, const struct aead_key *key,
                     struct aead_packet *packets, size_t count)
{
    struct ipsec_mb_worker *worker = (struct ipsec_mb_worker *)base;
    size_t opened = 0;

    while (count) {
        const uint32_t burst = burst_size(count);
        const bool done = run_burst(worker, key, packets, burst, IMB_DIR_DECRYPT);
        for (uint32_t i = 0; i < burst; i++) {
            struct aead_packet *packet = &packets[i];
            /* In constant time: crypto_verify_16(3). */
            packet->ok =
                done && crypto_verify_16(worker->tags[i], packet->source + packet->length) == 0;
            if (!packet->ok)
                sodium_memzero(packet->destination, packet->length);
            opened += packet->ok;
        }
        packets += burst;
        count -= burst;
    }
    return opened;
}

const struct aead_backend aead_ipsec_mb = {
    .name = "ipsec-mb",
    .create = create,
    .destroy = destroy,
    .seal_n = seal_n,
    .open_n = open_n,
    .forget = forget,
};

#else

/* Without create() the rest is never called. */
const struct aead_backend aead_ipsec_mb = {.name = "ipsec-mb"};

#endif
