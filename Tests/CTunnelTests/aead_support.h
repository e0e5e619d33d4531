/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of AEAD back-ends: each back-end that runs here, and batches compared byte by byte
 * with an oracle. */
#ifndef AEAD_SUPPORT_H
#define AEAD_SUPPORT_H

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on
#include "crypto/aead.h"

#include "sanitized.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BATCH 512
#define LARGEST   65519
#define TAG       AEAD_TAG_LENGTH

typedef void backend_test(struct aead_worker *worker);

/* Runs `test` on each back-end; at least the two that need no special machine must be there. Or on
 * ONLY_BACKEND, which a program can define, or on the one that AEAD_TEST_BACKEND names: that must
 * run here. */
static inline void on_every_backend(backend_test *test)
{
    const char *only = getenv("AEAD_TEST_BACKEND");
    int count = 0;
#ifdef ONLY_BACKEND
    only = ONLY_BACKEND.name;
#endif
    for (size_t i = 0; aead_backends[i]; i++) {
        if (only && strcmp(only, aead_backends[i]->name) != 0)
            continue;
        struct aead_worker *worker = aead_worker_create(aead_backends[i]);
        if (!worker) {
            assert_ptr_not_equal(aead_backends[i], &aead_libsodium);
            assert_ptr_not_equal(aead_backends[i], &aead_libcrypto);
            print_message("          %s cannot run here\n", aead_backends[i]->name);
            continue;
        }
        assert_ptr_equal(worker->backend, aead_backends[i]);
        print_message("          %s\n", aead_backends[i]->name);
        test(worker);
        aead_worker_destroy(worker);
        count++;
    }
    assert_true(count >= (only ? 1 : 2));
}

static inline void *allocate(size_t size)
{
    void *memory = malloc(size);
    assert_non_null(memory);
    return memory;
}

static inline void random_key(struct aead_key *key)
{
    randombytes_buf(key->bytes, sizeof(key->bytes));
}

#define MIXED UINT32_MAX /* of random lengths */

/* A batch laid out end to end with random gaps, hence at every alignment. */
struct batch {
    struct aead_packet packets[MAX_BATCH];
    size_t offsets[MAX_BATCH];
    size_t count, size;
    uint8_t *plain, *expected, *out;
};

static inline uint32_t random_length(void)
{
    switch (randombytes_uniform(8)) {
    case 0:
        return randombytes_uniform(20);
    case 1:
        return 16 * randombytes_uniform(80);
    case 2:
        return 64 * randombytes_uniform(20) + randombytes_uniform(3);
    case 3:
        return 1420 + randombytes_uniform(20);
    default:
        return randombytes_uniform(600);
    }
}

static inline void batch_lay_out(struct batch *batch, size_t count, uint32_t length)
{
    batch->count = count;
    batch->size = 0;
    for (size_t i = 0; i < count; i++) {
        batch->packets[i].length = length == MIXED ? random_length() : length;
        randombytes_buf(&batch->packets[i].counter, 8);
        batch->size += randombytes_uniform(5);
        batch->offsets[i] = batch->size;
        batch->size += batch->packets[i].length + TAG;
    }
    batch->plain = allocate(batch->size + 1);
    batch->expected = allocate(batch->size + 1);
    batch->out = allocate(batch->size + 1);
    randombytes_buf(batch->plain, batch->size);
    /* The gaps must stay what they are, in each buffer. */
    memcpy(batch->expected, batch->plain, batch->size);
    memcpy(batch->out, batch->plain, batch->size);
}

static inline void batch_free(struct batch *batch)
{
    free(batch->plain);
    free(batch->expected);
    free(batch->out);
}

static inline void batch_point(struct batch *batch, uint8_t *destination, const uint8_t *source)
{
    for (size_t i = 0; i < batch->count; i++) {
        batch->packets[i].destination = destination + batch->offsets[i];
        batch->packets[i].source = source + batch->offsets[i];
        batch->packets[i].ok = false;
    }
}

static inline void assert_all_opened(const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        assert_true(batch->packets[i].ok);
        assert_memory_equal(batch->packets[i].destination, batch->plain + batch->offsets[i],
                            batch->packets[i].length);
    }
}

/* Seals and opens the batch, in place or not, and compares every byte of the buffers. */
static inline void check_batch(struct aead_worker *worker, struct aead_worker *oracle,
                               struct batch *batch, const struct aead_key *key, bool in_place)
{
    batch_point(batch, batch->expected, batch->plain);
    aead_seal_n(oracle, key, batch->packets, batch->count);
    batch_point(batch, batch->out, in_place ? batch->out : batch->plain);
    aead_seal_n(worker, key, batch->packets, batch->count);
    assert_memory_equal(batch->out, batch->expected, batch->size);

    if (in_place) {
        batch_point(batch, batch->out, batch->out);
        assert_int_equal(aead_open_n(worker, key, batch->packets, batch->count), batch->count);
        assert_all_opened(batch);
    } else {
        uint8_t *opened = allocate(batch->size + 1);
        batch_point(batch, opened, batch->out);
        assert_int_equal(aead_open_n(worker, key, batch->packets, batch->count), batch->count);
        assert_all_opened(batch);
        assert_memory_equal(batch->out, batch->expected, batch->size); /* the source is as it was */
        free(opened);
    }
}

#endif
