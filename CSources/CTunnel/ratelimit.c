/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each source has one instant: when its bucket will be full again. That is the generic cell rate
 * algorithm (ITU-T I.371, annex A), equal to a token bucket. A source whose instant has passed has
 * a full bucket, just like one never seen; its entry is free for another source, and no collector
 * is needed.
 *
 * A source may lie in two buckets, chosen by a keyed hash: nobody can aim sources at one bucket,
 * and buckets overflow only when nearly the whole table is live.
 */
#include "ratelimit.h"
#include "messages.h"
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define WAYS     8
#define BUCKETS  (RATELIMIT_ENTRIES / WAYS)
#define COST_NS  (NSEC_PER_SEC / RATELIMIT_PER_SECOND)
#define BURST_NS (COST_NS * RATELIMIT_BURST)
/* IPv6 multicast is never a source (RFC 4291 §2.7): room for IPv4 among the /64s. */
#define IPV4_SOURCE (0xff00ull << 48)

struct entry {
    uint64_t source;
    uint64_t full_at_ns;
};

struct ratelimit {
    uint8_t key[crypto_shorthash_KEYBYTES];
    struct entry entries[BUCKETS][WAYS];
};

static_assert((BUCKETS & (BUCKETS - 1)) == 0, "buckets are chosen by masking");
static_assert(crypto_shorthash_BYTES == sizeof(uint64_t), "two bucket numbers from one hash");

struct ratelimit *ratelimit_create(void)
{
    /* calloc: untouched pages stay unbacked. */
    struct ratelimit *limit = calloc(1, sizeof(*limit));
    if (limit)
        randombytes_buf(limit->key, sizeof(limit->key));
    return limit;
}

void ratelimit_destroy(struct ratelimit *limit)
{
    free(limit);
}

static uint64_t source_of(uint8_t family, const uint8_t *address)
{
    uint64_t prefix = 0;
    for (unsigned i = 0; i < (family == 4 ? 4 : 8); i++)
        prefix = prefix << 8 | address[i];
    return family == 4 ? IPV4_SOURCE | prefix : prefix;
}

/* The source's entry, else a free one for it, else NULL. */
static struct entry *find(struct ratelimit *limit, uint64_t source, uint64_t now_ns)
{
    uint64_t hash;
    crypto_shorthash((uint8_t *)&hash, (const uint8_t *)&source, sizeof(source), limit->key);

    struct entry *unused = NULL;
    unsigned most_room = 0;
    for (unsigned choice = 0; choice < 2; choice++) {
        struct entry *bucket = limit->entries[hash >> (32 * choice) & (BUCKETS - 1)];
        struct entry *last = NULL;
        unsigned room = 0;
        for (unsigned i = 0; i < WAYS; i++) {
            if (bucket[i].full_at_ns > now_ns) {
                if (bucket[i].source == source)
                    return &bucket[i];
            } else {
                last = &bucket[i];
                room++;
            }
        }
        if (room > most_room) {
            unused = last;
            most_room = room;
        }
    }
    if (unused)
        *unused = (struct entry){.source = source, .full_at_ns = now_ns};
    return unused;
}

bool ratelimit_allow(struct ratelimit *limit, uint8_t family, const uint8_t *address,
                     uint64_t now_ns)
{
    struct entry *entry = find(limit, source_of(family, address), now_ns);
    if (!entry || entry->full_at_ns - now_ns + COST_NS > BURST_NS)
        return false;
    entry->full_at_ns += COST_NS;
    return true;
}
