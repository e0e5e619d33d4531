/* SPDX-License-Identifier: Apache-2.0 */
/* What the trie of allowedips.c consists of. For allowedips.c and its test only. */
#ifndef CTUNNEL_ALLOWEDIPS_TRIE_H
#define CTUNNEL_ALLOWEDIPS_TRIE_H

#include "allowedips.h"
#include "blocks.h"
#include <assert.h>
#include <string.h>

/* Left-aligned, host order; IPv4 in the upper half of `hi`. */
struct key {
    uint64_t hi, lo;
};

/* A prefix; what a lookup reads lies together. 40 bytes for IPv4, 56 for IPv6: with malloc's word
 * they fill chunks of 48 and 64. */
struct allowedips_node {
    union {
        struct {
            struct allowedips_node *previous, *next;
        } list; /* of the owner; the writer's */
        struct epoch_item retired;
    };
    /* struct allowedips_owner *, or REMOVED | the branch that was unlinked together with it */
    _Atomic(uintptr_t) owner;
    uint8_t length;
    bool ipv6, marked, blocked; /* of the writer; `blocked`: from blocks.h, not from malloc() */
    uint32_t address4;
    uint64_t address6[]; /* two, in IPv6 only */
};

#define REMOVED ((uintptr_t)1)

/* 0, a prefix, or BRANCH | a branch. */
typedef _Atomic(uintptr_t) node_link;
#define BRANCH ((uintptr_t)1)

/* For all addresses with the slot's bits: the longest prefix that ends within the table, below its
 * branch, or 0; and where longer ones are. */
struct slot {
    node_link cover, next;
};

#define TABLE_ALIGNMENT ARRAY_ALIGNMENT
struct table {
    struct epoch_item retired;
    unsigned bits;
    _Alignas(TABLE_ALIGNMENT) struct slot slot[]; /* 2^bits */
};

/* Has at least two of: child 0, child 1, prefix. */
struct branch {
    node_link child[2];
    _Atomic(struct allowedips_node *) prefix; /* of `bit` bits */
    /* Over bits [bit, bit + bits): a struct table * | bits, so that both are read at once. 0: none.
     */
    _Atomic(uintptr_t) table;
    uint8_t bit;
    bool blocked;
};

/* Idle peers are many: a prefix with its branch stays within two small chunks of malloc. */
static_assert(sizeof(void *) != 8 || sizeof(struct allowedips_node) == 40, "a chunk of 48");
static_assert(sizeof(void *) != 8 || sizeof(struct branch) == 40, "a chunk of 48");

/* ---- keys and links ------------------------------------------------------------------------ */

static inline struct key load_key(const uint8_t *address, bool ipv6)
{
    struct key key = {0, 0};
    if (ipv6) {
        memcpy(&key, address, 16);
        key.hi = __builtin_bswap64(key.hi);
        key.lo = __builtin_bswap64(key.lo);
    } else {
        uint32_t word;
        memcpy(&word, address, 4);
        key.hi = (uint64_t)__builtin_bswap32(word) << 32;
    }
    return key;
}

static inline unsigned key_bit(struct key key, unsigned bit)
{
    return (bit < 64 ? key.hi >> (63 - bit) : key.lo >> (127 - bit)) & 1;
}

/* Bits [from, from + count), 0 < count < 64; past the end they read as zero. */
static inline uint64_t key_bits(struct key key, unsigned from, unsigned count)
{
    unsigned __int128 all = (unsigned __int128)key.hi << 64 | key.lo;
    return (uint64_t)(all << from >> 64) >> (64 - count);
}

static inline struct key key_masked(struct key key, unsigned length)
{
    if (length <= 64)
        return (struct key){length ? key.hi & ~0ull << (64 - length) : 0, 0};
    return (struct key){key.hi, key.lo & ~0ull << (128 - length)};
}

/* Leading bits in which both agree. */
static inline unsigned common_bits(struct key a, struct key b)
{
    if (a.hi != b.hi)
        return (unsigned)__builtin_clzll(a.hi ^ b.hi);
    return a.lo != b.lo ? 64 + (unsigned)__builtin_clzll(a.lo ^ b.lo) : 128;
}

static inline struct key node_key(const struct allowedips_node *node)
{
    if (!node->ipv6)
        return (struct key){(uint64_t)node->address4 << 32, 0};
    return (struct key){node->address6[0], node->address6[1]};
}

static inline uintptr_t get(const node_link *at)
{
    return atomic_load_explicit(at, memory_order_acquire);
}

static inline void set(node_link *at, uintptr_t to)
{
    atomic_store_explicit(at, to, memory_order_release);
}

static inline struct branch *as_branch(uintptr_t to)
{
    return (struct branch *)(to & ~BRANCH);
}

static inline struct allowedips_node *prefix_of(const struct branch *branch)
{
    return atomic_load_explicit(&branch->prefix, memory_order_acquire);
}

static inline uintptr_t tagged_table(const struct branch *branch)
{
    return atomic_load_explicit(&branch->table, memory_order_acquire);
}

static inline struct table *as_table(uintptr_t tagged)
{
    return (struct table *)(tagged & ~(uintptr_t)(TABLE_ALIGNMENT - 1));
}

static inline struct table *table_of(const struct branch *branch)
{
    return as_table(tagged_table(branch));
}

/* The slot for `key` of the table below a branch. */
static inline const struct slot *slot_of(const struct branch *branch, uintptr_t tagged,
                                         struct key key)
{
    return &as_table(tagged)->slot[key_bits(key, branch->bit, tagged & (TABLE_ALIGNMENT - 1))];
}

#endif
