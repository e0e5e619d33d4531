/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allowed IPs: longest prefix match, one trie per family (cryptokey routing, §2). Lookups without
 * locks under the epoch; changes are serialised by the caller (the configuration lock).
 */
#ifndef CTUNNEL_ALLOWEDIPS_H
#define CTUNNEL_ALLOWEDIPS_H

#include "epoch.h"
#include <stddef.h>

struct allowedips;
struct allowedips_node;

/* Embedded in each peer: its prefixes, in order of insertion. Zero-initialised is empty. */
struct allowedips_owner {
    struct allowedips_node *first, *last;
    uint32_t count;
};

struct allowedips_prefix {
    uint8_t address[16]; /* network order, masked; IPv4 in the first four bytes */
    uint8_t family;      /* 4 or 6 */
    uint8_t length;
};

struct allowedips *allowedips_create(struct epoch *epoch);
/* Frees all nodes; owners are left dangling: clear them first or drop them too. */
void allowedips_destroy(struct allowedips *table);

/* Gives the prefix to `owner`, taking it from whoever has it, without a moment in which a lookup
 * finds nobody. Host bits are masked. 0, -EINVAL (family or length), -ENOMEM. */
int allowedips_insert(struct allowedips *table, const struct allowedips_prefix *prefix,
                      struct allowedips_owner *owner);
/* Only if `owner` holds exactly this prefix; else no effect. */
void allowedips_remove(struct allowedips *table, const struct allowedips_prefix *prefix,
                       struct allowedips_owner *owner);
void allowedips_remove_all(struct allowedips *table, struct allowedips_owner *owner);

/* Replacement without a gap: mark, insert what stays (again) or is new, sweep the rest.
 * Insertion clears the mark. */
void allowedips_mark(struct allowedips_owner *owner);
void allowedips_sweep(struct allowedips *table, struct allowedips_owner *owner);

/* Inside an epoch section. `address` is 4 or 16 bytes, network order, any alignment. NULL: nobody.
 */
struct allowedips_owner *allowedips_lookup4(const struct allowedips *table, const uint8_t *address);
struct allowedips_owner *allowedips_lookup6(const struct allowedips *table, const uint8_t *address);

/* Copies up to `capacity` prefixes in order; returns how many the owner has. Caller holds the
 * configuration lock. */
size_t allowedips_list(const struct allowedips_owner *owner, struct allowedips_prefix *out,
                       size_t capacity);
/* Prefixes in the table. */
size_t allowedips_count(const struct allowedips *table);

#endif
