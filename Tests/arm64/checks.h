/* SPDX-License-Identifier: Apache-2.0 */
/* What a back-end must do with RFC 8439 A.5 and with a batch whose sealed bytes are known. The
 * first thing that is not so ends the program. */
#ifndef ARM64_CHECKS_H
#define ARM64_CHECKS_H

#include "batch.h"
#include "crypto/aead_vectors.h"

#include <stdio.h>
#include <stdlib.h>

static struct aead_worker *worker;
static struct batch batch;

static void check(bool good, const char *what, uint64_t number)
{
    if (good)
        return;
    printf("not ok: %s, batch %llu\n", what, (unsigned long long)number);
    exit(1);
}

static void gives_rfc8439_a_5(void)
{
    uint8_t buffer[AEAD_VECTOR_LENGTH + AEAD_TAG_LENGTH];
    struct aead_packet packet = {buffer, aead_vector_plaintext, aead_vector_counter,
                                 AEAD_VECTOR_LENGTH, false};
    struct aead_key key;

    memcpy(key.bytes, aead_vector_key, sizeof(key.bytes));
    aead_seal_n(worker, &key, &packet, 1);
    check(memcmp(buffer, aead_vector_ciphertext, AEAD_VECTOR_LENGTH) == 0, "ciphertext of A.5", 0);
    check(memcmp(buffer + AEAD_VECTOR_LENGTH, aead_vector_tag, AEAD_TAG_LENGTH) == 0, "tag of A.5",
          0);
    packet.source = buffer;
    check(aead_open_n(worker, &key, &packet, 1) == 1 && packet.ok, "opening of A.5", 0);
    check(memcmp(buffer, aead_vector_plaintext, AEAD_VECTOR_LENGTH) == 0, "plaintext of A.5", 0);
}

static void seals_like_libsodium(uint64_t number)
{
    batch_point(&batch, batch.sealed, batch.plain);
    aead_seal_n(worker, &batch.key, batch.packets, batch.count);
    check(memcmp(batch.sealed, batch.expected, batch.size) == 0, "sealing", number);

    memcpy(batch.sealed, batch.plain, batch.size);
    batch_point(&batch, batch.sealed, batch.sealed);
    aead_seal_n(worker, &batch.key, batch.packets, batch.count);
    check(memcmp(batch.sealed, batch.expected, batch.size) == 0, "sealing in place", number);
}

/* In place, with one byte of every third packet changed. */
static void opens_the_good_and_zeroes_the_forged(uint64_t number)
{
    uint64_t random = number;
    size_t good = 0;

    for (size_t i = 0; i < batch.count; i++) {
        const uint32_t size = batch.packets[i].length + AEAD_TAG_LENGTH;
        if (i % 3 == 1)
            batch.sealed[batch.offsets[i] + next_random(&random) % size] ^= 1;
        else
            good++;
    }
    check(aead_open_n(worker, &batch.key, batch.packets, batch.count) == good, "count of good",
          number);
    for (size_t i = 0; i < batch.count; i++) {
        const uint8_t *opened = batch.sealed + batch.offsets[i];
        const uint8_t *plain = batch.plain + batch.offsets[i];
        static const uint8_t zero[UINT16_MAX];
        const bool forged = i % 3 == 1;
        check(batch.packets[i].ok != forged, "verdict", number);
        check(memcmp(opened, forged ? zero : plain, batch.packets[i].length) == 0,
              forged ? "zeroes" : "plaintext", number);
    }
}

#endif
