/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Longest prefix match at 1,000, 100,000 and 1,000,000 random prefixes: time to insert, to insert
 * the same again and to look up, the cache lines a lookup waits for, and memory per prefix. And
 * 10,000 peers of three prefixes each.
 *
 *   allowedips [--json]
 *
 * Half of the prefixes are hosts, the others have random lengths from 16 (IPv4) or 32 (IPv6) up.
 * Addresses lie within prefixes chosen at random, so the large tables are read from memory, not
 * from cache; each lookup waits for the one before, so that it is a latency. Once the table is
 * larger than the cache, cold time is lines × the machine's memory latency, which no structure can
 * avoid: "lines" is the figure that compares structures, and does not depend on the machine or its
 * load.
 *
 * Includes the unit to count them.
 */
#include "../../CSources/CTunnel/allowedips.c"
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOKUPS 2000000u
#define COLD    (1u << 20) /* addresses made beforehand; powers of two */
#define WARM    64u
#define REPEATS 3 /* the best counts: other load only adds */

struct result {
    const char *name;
    size_t prefixes;
    double insert_ns, again_ns, cold_ns, warm_ns, lines, bytes;
};

static uint64_t random_state = 88172645463325252ull;

/* xorshift64: G. Marsaglia, "Xorshift RNGs", J. Stat. Softw. 8(14), 2003. */
static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static double now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd + blocks_bytes();
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory) {
        fprintf(stderr, "allowedips: out of memory\n");
        exit(1);
    }
    return memory;
}

static struct allowedips_prefix random_prefix(uint8_t family)
{
    struct allowedips_prefix prefix = {.family = family};
    uint64_t halves[2] = {next_random(), next_random()};
    unsigned width = family == 4 ? 32 : 128, shortest = family == 4 ? 16 : 32;
    memcpy(prefix.address, halves, width / 8);
    if (family == 6)
        prefix.address[0] = 0x20 | (prefix.address[0] & 0x1f); /* 2000::/3, RFC 4291 §2.4 */
    prefix.length = (uint8_t)width;
    if (next_random() % 2)
        prefix.length = (uint8_t)(shortest + next_random() % (width - shortest + 1));
    return prefix;
}

static double insert_all(struct allowedips *table, const struct allowedips_prefix *prefixes,
                         size_t count, struct allowedips_owner *owners, size_t per_owner)
{
    double start = now_ns();
    for (size_t i = 0; i < count; i++) {
        if (allowedips_insert(table, &prefixes[i], &owners[i / per_owner]) != 0) {
            fprintf(stderr, "allowedips: insertion failed\n");
            exit(1);
        }
    }
    return (now_ns() - start) / (double)count;
}

/* An address within each prefix of a random sample. */
static struct allowedips_prefix *random_hosts(const struct allowedips_prefix *prefixes,
                                              size_t count, size_t sample)
{
    struct allowedips_prefix *hosts = allocate(sample, sizeof(*hosts));
    for (size_t i = 0; i < sample; i++) {
        const struct allowedips_prefix *prefix = &prefixes[next_random() % count];
        hosts[i] = *prefix;
        for (unsigned byte = (prefix->length + 7u) / 8; byte < 16; byte++)
            hosts[i].address[byte] = (uint8_t)next_random();
    }
    return hosts;
}

/* Each step of lookup() reads a line, or two, whose address the step before gave: a branch, a slot,
 * the prefix. The root is read by every lookup. */
static unsigned lines_of(const struct family *family, struct key key)
{
    uintptr_t line[2 * MAXIMUM_DEPTH], at = get(&family->root), last = 0;
    unsigned count = 0;
    while (at & BRANCH) {
        const struct branch *branch = as_branch(at);
        uintptr_t tagged = tagged_table(branch);
        if (at != get(&family->root))
            line[count++] = at / 64;
        last = prefix_of(branch) ? (uintptr_t)prefix_of(branch) : last;
        at = get(&branch->child[key_bit(key, branch->bit)]);
        if (tagged) {
            const struct slot *slot = slot_of(branch, tagged, key);
            line[count++] = (uintptr_t)slot / 64;
            last = get(&slot->cover) ? get(&slot->cover) : last;
            at = get(&slot->next);
        }
    }
    line[count++] = (at ? at : last) / 64;
    unsigned distinct_lines = 0;
    for (unsigned i = 0; i < count; i++) {
        bool seen = false;
        for (unsigned j = 0; j < i; j++)
            seen = seen || line[j] == line[i];
        distinct_lines += !seen;
    }
    return distinct_lines;
}

static double count_lines(const struct allowedips *table, const struct allowedips_prefix *prefixes,
                          size_t count)
{
    struct allowedips_prefix *hosts = random_hosts(prefixes, count, COLD);
    size_t lines = 0;
    for (size_t i = 0; i < COLD; i++) {
        bool ipv6 = hosts[i].family == 6;
        lines += lines_of(&table->family[ipv6], load_key(hosts[i].address, ipv6));
    }
    free(hosts);
    return (double)lines / COLD;
}

static double look_up(const struct allowedips *table, const struct allowedips_prefix *prefixes,
                      size_t count, size_t sample)
{
    struct allowedips_prefix *hosts = random_hosts(prefixes, count, sample);
    double best = 0;
    size_t missed = 0;
    for (unsigned repeat = 0; repeat < REPEATS; repeat++) {
        uintptr_t chain = 0;
        double start = now_ns();
        for (size_t i = 0; i < LOOKUPS; i++) {
            /* Adds nothing but the dependency: owners lie far below the top bit. */
            const struct allowedips_prefix *host = &hosts[(i + (chain >> 63)) & (sample - 1)];
            chain = (uintptr_t)(host->family == 4 ? allowedips_lookup4(table, host->address)
                                                  : allowedips_lookup6(table, host->address));
            missed += !chain;
        }
        double each = (now_ns() - start) / LOOKUPS;
        best = !repeat || each < best ? each : best;
    }
    if (missed) {
        fprintf(stderr, "allowedips: %zu lookups found nobody\n", missed);
        exit(1);
    }
    free(hosts);
    return best;
}

static struct result measure(struct epoch *epoch, const char *name,
                             const struct allowedips_prefix *prefixes, size_t count,
                             size_t per_owner)
{
    struct allowedips_owner *owners = allocate(count / per_owner + 1, sizeof(*owners));
    size_t before = heap_bytes();
    struct allowedips *table = allowedips_create(epoch);
    if (!table)
        exit(1);
    struct result result = {.name = name};
    result.insert_ns = insert_all(table, prefixes, count, owners, per_owner);
    epoch_reclaim(epoch);
    result.prefixes = allowedips_count(table);
    result.bytes = (double)(heap_bytes() - before) / (double)result.prefixes;
    result.again_ns = insert_all(table, prefixes, count, owners, per_owner);
    result.cold_ns = look_up(table, prefixes, count, COLD);
    result.lines = count_lines(table, prefixes, count);
    result.warm_ns = look_up(table, prefixes, count, WARM);
    allowedips_destroy(table);
    free(owners);
    epoch_reclaim(epoch);
    return result;
}

static struct result measure_random(struct epoch *epoch, uint8_t family, size_t count)
{
    struct allowedips_prefix *prefixes = allocate(count, sizeof(*prefixes));
    for (size_t i = 0; i < count; i++)
        prefixes[i] = random_prefix(family);
    struct result result =
        measure(epoch, family == 4 ? "random IPv4" : "random IPv6", prefixes, count, 1);
    free(prefixes);
    return result;
}

/* Per peer 10.x.y.z/32, fd00::x:y:z/128 and a site of 172.16.0.0/12. */
static struct result measure_peers(struct epoch *epoch, size_t peers)
{
    struct allowedips_prefix *prefixes = allocate(3 * peers, sizeof(*prefixes));
    for (uint32_t i = 0; i < peers; i++) {
        uint8_t low[3] = {(uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i};
        uint32_t site = (172u << 24 | 16u << 16) + i * 64;
        struct allowedips_prefix *p = &prefixes[3 * i];
        p[0] = (struct allowedips_prefix){
            .address = {10, low[0], low[1], low[2]}, .family = 4, .length = 32};
        p[1] = (struct allowedips_prefix){
            .address = {0xfd, [13] = low[0], low[1], low[2]}, .family = 6, .length = 128};
        p[2] = (struct allowedips_prefix){.address = {(uint8_t)(site >> 24), (uint8_t)(site >> 16),
                                                      (uint8_t)(site >> 8), (uint8_t)site},
                                          .family = 4,
                                          .length = 26};
    }
    struct result result = measure(epoch, "peers of 3", prefixes, 3 * peers, 3);
    free(prefixes);
    return result;
}

static void print_table(const struct result *results, size_t count)
{
    printf("%-12s %9s %10s %10s %10s %10s %6s %13s\n", "", "prefixes", "insert ns", "again ns",
           "cold ns", "warm ns", "lines", "bytes/prefix");
    for (size_t i = 0; i < count; i++)
        printf("%-12s %9zu %10.1f %10.1f %10.1f %10.1f %6.2f %13.1f\n", results[i].name,
               results[i].prefixes, results[i].insert_ns, results[i].again_ns, results[i].cold_ns,
               results[i].warm_ns, results[i].lines, results[i].bytes);
}

static void print_json(const struct result *results, size_t count)
{
    printf("{\"benchmark\": \"allowedips\", \"results\": [");
    for (size_t i = 0; i < count; i++)
        printf(
            "%s\n  {\"name\": \"%s\", \"prefixes\": %zu, \"insert_ns\": %.1f, \"again_ns\": %.1f, "
            "\"lookup_cold_ns\": %.1f, \"lookup_warm_ns\": %.1f, \"lines\": %.2f, "
            "\"bytes_per_prefix\": %.1f}",
            i ? "," : "", results[i].name, results[i].prefixes, results[i].insert_ns,
            results[i].again_ns, results[i].cold_ns, results[i].warm_ns, results[i].lines,
            results[i].bytes);
    printf("\n]}\n");
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {1000, 100000, 1000000};
    static struct epoch epoch;
    struct result results[7];
    size_t count = 0;

    if (argc > 2 || (argc == 2 && strcmp(argv[1], "--json") != 0)) {
        fprintf(stderr, "usage: allowedips [--json]\n");
        return 2;
    }
    epoch_init(&epoch);
    for (unsigned family = 4; family <= 6; family += 2)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
            results[count++] = measure_random(&epoch, (uint8_t)family, sizes[i]);
    results[count++] = measure_peers(&epoch, 10000);
    epoch_destroy(&epoch);
    (argc == 2 ? print_json : print_table)(results, count);
    return 0;
}
