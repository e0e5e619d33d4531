/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs on an emulated machine without an operating system: the AVX-512 back-end in the processor's
 * own instructions against RFC 8439 and against the portable back-end, which other tests compare
 * with libsodium.
 */
#include "../arm64/checks.h"

#define RUN     40 /* of the batches */
#define SHORT   600
#define LONGEST 65519

static struct aead_worker *reference;

static void expect(void)
{
    batch_point(&batch, batch.expected, batch.plain);
    aead_seal_n(reference, &batch.key, batch.packets, batch.count);
}

/* Twice, with a forged packet between, so that the second begins at any lane. */
static void takes_length(uint32_t length)
{
    batch.count = 3;
    batch.size = 0;
    for (size_t i = 0; i < batch.count; i++) {
        batch.packets[i].length = i == 1 ? length % 70 : length;
        batch.packets[i].counter = i - length;
        batch.offsets[i] = batch.size;
        batch.size += batch.packets[i].length + AEAD_TAG_LENGTH;
    }
    expect();
    seals_like_libsodium(length);
    opens_the_good_and_zeroes_the_forged(length);
}

/* Bochs's time stamp counter counts instructions, unless it keeps to real time. */
static uint64_t instructions(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

/* How many a packet takes, in batches of 32: for the documentation. */
static void count_instructions(const struct aead_backend *backend)
{
    static const uint32_t lengths[] = {64, 256, 1424};
    enum { COUNT = 32 };
    struct aead_worker *counted = aead_worker_create(backend);
    check(counted != NULL, backend->name, 0);
    printf("%s, instructions to a packet:", backend->name);
    for (size_t j = 0; j < sizeof(lengths) / sizeof(lengths[0]); j++) {
        for (size_t i = 0; i < COUNT; i++)
            batch.packets[i] =
                (struct aead_packet){batch.sealed + i * (MAX_LENGTH + AEAD_TAG_LENGTH), batch.plain,
                                     i, lengths[j], false};
        const uint64_t start = instructions();
        aead_seal_n(counted, &batch.key, batch.packets, COUNT);
        printf(" %zu for %d B", (size_t)((instructions() - start) / COUNT), (int)lengths[j]);
    }
    printf("\n");
}

int main(void)
{
    size_t packets = 0, lengths = 0;

    worker = aead_worker_create(&aead_avx512);
    reference = aead_worker_create(&aead_portable);
    check(worker != NULL, "a worker: the processor has no AVX-512 IFMA", 0);
    check(reference != NULL, "the reference", 0);
    gives_rfc8439_a_5();
    for (uint64_t number = 0; number < RUN; number++) {
        batch_fill(&batch, number);
        expect();
        seals_like_libsodium(number);
        opens_the_good_and_zeroes_the_forged(number);
        packets += batch.count;
    }
    for (uint32_t length = 0; length <= SHORT; length++, lengths++)
        takes_length(length);
    for (uint32_t length = LONGEST - 3; length <= LONGEST; length++, lengths++)
        takes_length(length);
    aead_forget(worker);
    count_instructions(&aead_avx512);
    count_instructions(&aead_avx2);
    printf("ok: RFC 8439 A.5, %zu packets in %d batches, %zu lengths to %d\n", packets, RUN,
           lengths, LONGEST);
    return 0;
}
