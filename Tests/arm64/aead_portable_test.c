/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs on arm64 (or under qemu): the portable AEAD back-end against RFC 8439 and against the file
 * `expect` wrote on the host.
 *
 *   aead_portable_test EXPECTED
 */
#include "checks.h"

int main(int argc, char **argv)
{
    FILE *expected = argc == 2 ? fopen(argv[1], "rb") : NULL;
    size_t packets = 0;

    worker = aead_worker_create(&aead_portable);
    check(expected != NULL, "the file of expected bytes", 0);
    check(worker != NULL, "a worker", 0);
    gives_rfc8439_a_5();
    for (uint64_t number = 0; number < BATCHES; number++) {
        batch_fill(&batch, number);
        check(fread(batch.expected, 1, batch.size, expected) == batch.size, "file", number);
        seals_like_libsodium(number);
        opens_the_good_and_zeroes_the_forged(number);
        packets += batch.count;
    }
    check(fgetc(expected) == EOF, "the file's end", BATCHES);
    fclose(expected);
    aead_worker_destroy(worker);
    printf("ok: RFC 8439 A.5 and %zu packets in %d batches\n", packets, BATCHES);
    return 0;
}
