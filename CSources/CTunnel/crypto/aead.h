/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ChaCha20-Poly1305 (RFC 8439) over vectors of packets. One file per back-end, one dispatcher with
 * a self-test; each back-end is callable by itself from tests.
 *
 * The nonce is 32 zero bits and the 64-bit little-endian counter (WireGuard §5.4.6), no associated
 * data.
 */
#ifndef CTUNNEL_AEAD_H
#define CTUNNEL_AEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AEAD_KEY_LENGTH 32
#define AEAD_TAG_LENGTH 16

/* Immutable after it is set; shared by all threads. */
struct aead_key {
    uint8_t bytes[AEAD_KEY_LENGTH];
};

/*
 * One packet of a batch. `length` is that of the plaintext, 0–65519. Sealing reads `length` bytes
 * from `source` and writes length + 16 to `destination`; opening reads length + 16 and writes
 * `length`. The two are equal or do not overlap. Opening sets `ok`; where it is false the
 * destination's `length` bytes are zeroed.
 */
struct aead_packet {
    uint8_t *destination;
    const uint8_t *source;
    uint64_t counter;
    uint32_t length;
    bool ok;
};

/* A thread's state for one back-end (contexts, job rings). One thread at a time. */
struct aead_worker;

struct aead_backend {
    const char *name;
    /* NULL where this machine cannot run it (missing library or CPU feature). Itself NULL where it
     * was not built for this architecture: then there is nothing else either. */
    struct aead_worker *(*create)(void);
    void (*destroy)(struct aead_worker *worker);
    void (*seal_n)(struct aead_worker *worker, const struct aead_key *key,
                   struct aead_packet *packets, size_t count);
    /* Returns how many are ok. */
    size_t (*open_n)(struct aead_worker *worker, const struct aead_key *key,
                     struct aead_packet *packets, size_t count);
    /* Drops any key material kept between calls; called before a thread sleeps. May be NULL. */
    void (*forget)(struct aead_worker *worker);
};

struct aead_worker {
    const struct aead_backend *backend;
};

extern const struct aead_backend aead_libsodium;
extern const struct aead_backend aead_libcrypto;
extern const struct aead_backend aead_ipsec_mb;
extern const struct aead_backend aead_avx512;   /* own kernel, x86 with AVX-512 IFMA */
extern const struct aead_backend aead_avx2;     /* own kernel, x86 with AVX2 and BMI2 */
extern const struct aead_backend aead_portable; /* compiler vectors, any 64-bit little-endian */

/* All back-ends compiled in, best guess first; NULL-terminated. */
extern const struct aead_backend *const aead_backends[];

/*
 * Runs the known answer of RFC 8439 A.5 (the other vectors' nonces cannot be given through this
 * interface) and a random cross-check against libsodium over mixed lengths. False: do not use it on
 * this machine.
 */
bool aead_self_test(const struct aead_backend *backend);

/*
 * With a name: that back-end, or NULL when it is unknown, cannot run or fails its self-test.
 * Without ("" or NULL): the fastest of those that pass, by a measurement of a few milliseconds over
 * batches of full-size and of small packets. Thread-safe; not cheap: once per engine.
 */
const struct aead_backend *aead_choose(const char *name);

static inline struct aead_worker *aead_worker_create(const struct aead_backend *backend)
{
    return backend->create ? backend->create() : NULL;
}

static inline void aead_worker_destroy(struct aead_worker *worker)
{
    if (worker)
        worker->backend->destroy(worker);
}

static inline void aead_seal_n(struct aead_worker *worker, const struct aead_key *key,
                               struct aead_packet *packets, size_t count)
{
    worker->backend->seal_n(worker, key, packets, count);
}

static inline size_t aead_open_n(struct aead_worker *worker, const struct aead_key *key,
                                 struct aead_packet *packets, size_t count)
{
    return worker->backend->open_n(worker, key, packets, count);
}

static inline void aead_forget(struct aead_worker *worker)
{
    if (worker->backend->forget)
        worker->backend->forget(worker);
}

#endif
