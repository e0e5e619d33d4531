/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every AEAD back-end this machine can run: nanoseconds per packet to seal and to open, in place,
 * by size, by packets per call, and with the packets in cache or not.
 *
 *   aead [--json]
 *
 * A sample is 32 packets. "Hot" takes the same ones every time; "cold" goes through 16 MiB, which
 * no second-level cache holds. The back-ends take turns, so that what else the machine does meets
 * all of them, and medians are printed: compare the columns, not the runs.
 */
#include "crypto/aead.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PACKETS      32
#define MAX_BACKENDS 8
#define HOT_ROUNDS   301
#define COLD_BYTES   (16u << 20)
#define COLD_ROUNDS  3

static const uint32_t lengths[] = {64, 256, 1424, 16384}; /* 1424: a full packet of MTU 1420 */
static const size_t batches[] = {PACKETS, 1};

enum operation { SEAL, OPEN, OPERATIONS };

struct scenario {
    uint32_t length;
    size_t batch;
    bool cold;
    size_t slabs, rounds;
};

struct samples {
    double *values;
    size_t count;
};

struct contestants {
    struct aead_worker *workers[MAX_BACKENDS];
    size_t count;
};

static const char *const operation_names[OPERATIONS] = {"seal", "open"};

static double now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void *allocate(size_t size)
{
    void *memory = aligned_alloc(64, (size + 63) & ~(size_t)63);
    if (!memory) {
        fprintf(stderr, "aead: out of memory\n");
        exit(1);
    }
    memset(memory, 0x5a, size);
    return memory;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(struct samples *samples)
{
    qsort(samples->values, samples->count, sizeof(*samples->values), compare);
    return samples->values[samples->count / 2];
}

/* One pass over the slabs with one operation; a sample per slab. */
static void pass(struct aead_worker *worker, const struct scenario *scenario,
                 enum operation operation, uint8_t *memory, struct samples *samples)
{
    static const struct aead_key key = {{1, 2, 3}};
    const size_t size = scenario->length + AEAD_TAG_LENGTH;

    for (size_t slab = 0; slab < scenario->slabs; slab++) {
        struct aead_packet packets[PACKETS];
        size_t opened = 0;
        for (size_t i = 0; i < PACKETS; i++) {
            uint8_t *bytes = memory + (slab * PACKETS + i) * size;
            packets[i] = (struct aead_packet){bytes, bytes, i, scenario->length, false};
        }
        const double start = now_ns();
        for (size_t i = 0; i < PACKETS; i += scenario->batch) {
            if (operation == SEAL)
                aead_seal_n(worker, &key, packets + i, scenario->batch);
            else
                opened += aead_open_n(worker, &key, packets + i, scenario->batch);
        }
        samples->values[samples->count++] = (now_ns() - start) / PACKETS;
        if (operation == OPEN && opened != PACKETS) {
            fprintf(stderr, "aead: %s opened %zu of %d packets\n", worker->backend->name, opened,
                    PACKETS);
            exit(1);
        }
    }
}

/* The medians by operation and back-end. */
static void measure(const struct contestants *contestants, const struct scenario *scenario,
                    double medians[OPERATIONS][MAX_BACKENDS])
{
    uint8_t *memory =
        allocate(scenario->slabs * PACKETS * (size_t)(scenario->length + AEAD_TAG_LENGTH));
    struct samples samples[OPERATIONS][MAX_BACKENDS] = {0};

    for (int operation = 0; operation < OPERATIONS; operation++)
        for (size_t i = 0; i < contestants->count; i++)
            samples[operation][i].values =
                allocate(scenario->slabs * scenario->rounds * sizeof(double));
    for (size_t round = 0; round < scenario->rounds; round++)
        for (size_t i = 0; i < contestants->count; i++)
            for (int operation = 0; operation < OPERATIONS; operation++)
                pass(contestants->workers[i], scenario, operation, memory, &samples[operation][i]);
    for (int operation = 0; operation < OPERATIONS; operation++)
        for (size_t i = 0; i < contestants->count; i++) {
            medians[operation][i] = median(&samples[operation][i]);
            free(samples[operation][i].values);
        }
    free(memory);
}

static void print_row(const struct contestants *contestants, const struct scenario *scenario,
                      enum operation operation, const double *medians)
{
    printf("%6u %5zu  %-4s %-4s ", scenario->length, scenario->batch,
           scenario->cold ? "cold" : "hot", operation_names[operation]);
    for (size_t i = 0; i < contestants->count; i++)
        printf(" %10.1f", medians[i]);
    printf("\n");
}

static void print_json(const struct contestants *contestants, const struct scenario *scenario,
                       enum operation operation, const double *medians)
{
    static bool any;
    for (size_t i = 0; i < contestants->count; i++) {
        printf("%s\n  {\"backend\": \"%s\", \"length\": %u, \"batch\": %zu, \"cache\": \"%s\", "
               "\"operation\": \"%s\", \"ns_per_packet\": %.1f}",
               any ? "," : "", contestants->workers[i]->backend->name, scenario->length,
               scenario->batch, scenario->cold ? "cold" : "hot", operation_names[operation],
               medians[i]);
        any = true;
    }
}

static void run_all(const struct contestants *contestants, bool json)
{
    for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++)
        for (size_t b = 0; b < sizeof(batches) / sizeof(batches[0]); b++)
            for (int cold = 0; cold < 2; cold++) {
                const size_t slab = PACKETS * (size_t)(lengths[l] + AEAD_TAG_LENGTH);
                const struct scenario scenario = {lengths[l], batches[b], cold,
                                                  cold ? COLD_BYTES / slab : 1,
                                                  cold ? COLD_ROUNDS : HOT_ROUNDS};
                double medians[OPERATIONS][MAX_BACKENDS];
                measure(contestants, &scenario, medians);
                for (int operation = 0; operation < OPERATIONS; operation++)
                    (json ? print_json : print_row)(contestants, &scenario, operation,
                                                    medians[operation]);
            }
}

int main(int argc, char **argv)
{
    struct contestants contestants = {0};
    const bool json = argc == 2 && strcmp(argv[1], "--json") == 0;

    if (argc > 2 || (argc == 2 && !json)) {
        fprintf(stderr, "usage: aead [--json]\n");
        return 2;
    }
    for (size_t i = 0; aead_backends[i] && contestants.count < MAX_BACKENDS; i++) {
        struct aead_worker *worker = aead_worker_create(aead_backends[i]);
        if (worker)
            contestants.workers[contestants.count++] = worker;
    }
    if (json) {
        printf("{\"benchmark\": \"aead\", \"results\": [");
    } else {
        printf("%6s %5s  %-4s %-4s ", "bytes", "batch", "", "");
        for (size_t i = 0; i < contestants.count; i++)
            printf(" %10s", contestants.workers[i]->backend->name);
        printf("   ns per packet\n");
    }
    run_all(&contestants, json);
    if (json)
        printf("\n]}\n");
    for (size_t i = 0; i < contestants.count; i++)
        aead_worker_destroy(contestants.workers[i]);
    return 0;
}
