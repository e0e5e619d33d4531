/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Patricia trie (D. R. Morrison, JACM 15(4), 1968) of prefixes per family. A branch tests one bit
 * and may carry the prefix that ends there; bits in between are not stored, so a lookup goes to the
 * bottom first, keeps the prefixes it meets and compares them, longest first. Whatever covers the
 * address lies on that path.
 *
 * A branch with many descendants also has a jump table: an array over the next 4 to 24 bits whose
 * slots lead straight to the first node that those bits do not decide, and tell the longest prefix
 * that they do decide (leaf pushing: V. Srinivasan and G. Varghese, ACM TOCS 17(1), 1999). The
 * width is the largest that keeps two in five slots distinct (level compression: S. Nilsson
 * and G. Karlsson, IEEE JSAC 17(6), 1999), which makes the depth of a lookup nearly independent of
 * the number of prefixes. Tables are shortcuts: the branches below stay as they are, a change
 * refreshes the slots it touches, and when the trie has grown by a third all tables are planned
 * anew.
 *
 * In a large trie a lookup costs the memory it waits for, not the instructions: nodes then come
 * from blocks in huge pages, and what one step reads lies in one cache line where it can.
 *
 * Readers run under the epoch while one writer changes links, one at a time, each to a subtree that
 * resolves every unchanged prefix as before; the two halves of a slot resolve different prefixes. A
 * prefix that moves only has its owner overwritten.
 */
#include "allowedips_trie.h"
#include "blocks.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAXIMUM_DEPTH      129 /* branches test bits 0…127; one more as bound */
#define MINIMUM_TABLE_BITS 4
#define MAXIMUM_TABLE_BITS 24
#define PLAN_AT            192   /* 64 new prefixes: fewer need no table */
#define LARGE_AT           32768 /* from here on nodes come in blocks of 2 MiB */

struct family {
    node_link root;
    size_t count;
    size_t changes; /* since the tables were planned: three for a new prefix, else one */
    size_t plan_at;
};

struct allowedips {
    struct epoch *epoch;
    struct family family[2];
};

/* The writer's way to a link: the tables above it may have to follow its changes. */
struct path {
    node_link *at;                        /* in `parent`, or the root */
    node_link *parent_at;                 /* leads to `parent` */
    struct branch *parent, *grandparent;  /* NULL: none */
    struct branch *tabled[MAXIMUM_DEPTH]; /* with tables, at and above `parent` */
    unsigned count;
    /* The longest prefix at or above `parent`, and above it */
    const struct allowedips_node *cover, *parent_cover;
};

/* ---- lookup -------------------------------------------------------------------------------- */

static inline bool covers(const struct allowedips_node *node, struct key key, bool ipv6)
{
    if (!ipv6)
        return (uint64_t)(node->address4 ^ (uint32_t)(key.hi >> 32)) >> (32 - node->length) == 0;
    struct key own = {node->address6[0], node->address6[1]};
    return common_bits(own, key) >= node->length;
}

/* A removed prefix may hide a shorter one of the same table: the way is asked again, and is known
 * to be new, since prefixes are marked after the links and slots have changed. */
static inline __attribute__((always_inline)) struct allowedips_owner *
lookup(const struct family *family, struct key key, bool ipv6)
{
    uintptr_t met[2 * MAXIMUM_DEPTH]; /* prefixes by length */
again:;
    unsigned count = 0;
    uintptr_t at = get(&family->root);
    while (at & BRANCH) {
        const struct branch *branch = as_branch(at);
        uintptr_t prefix = (uintptr_t)prefix_of(branch), tagged = tagged_table(branch);
        met[count] = prefix;
        count += prefix != 0;
        if (tagged) {
            const struct slot *slot = slot_of(branch, tagged, key);
            met[count] = get(&slot->cover);
            count += met[count] != 0;
            at = get(&slot->next);
        } else {
            at = get(&branch->child[key_bit(key, branch->bit)]);
        }
    }
    met[count] = at;
    count += at != 0;
    while (count) {
        const struct allowedips_node *node = (const struct allowedips_node *)met[--count];
        if (!covers(node, key, ipv6))
            continue;
        uintptr_t owner = get(&node->owner);
        if (owner & REMOVED)
            goto again;
        return (struct allowedips_owner *)owner;
    }
    return NULL;
}

struct allowedips_owner *allowedips_lookup4(const struct allowedips *table, const uint8_t *address)
{
    return lookup(&table->family[0], load_key(address, false), false);
}

struct allowedips_owner *allowedips_lookup6(const struct allowedips *table, const uint8_t *address)
{
    return lookup(&table->family[1], load_key(address, true), true);
}

/* The node of exactly this prefix: by the readers' way as far as tables do not pass it. */
static struct allowedips_node *find_exact(const struct family *family, struct key key,
                                          unsigned length, bool ipv6)
{
    uintptr_t at = get(&family->root);
    const struct allowedips_node *found = NULL;
    while (at & BRANCH) {
        const struct branch *branch = as_branch(at);
        uintptr_t tagged = tagged_table(branch);
        found = prefix_of(branch);
        if (branch->bit >= length)
            break;
        if (tagged) {
            const struct slot *slot = slot_of(branch, tagged, key);
            found = (const struct allowedips_node *)get(&slot->cover);
            if (found && found->length == length)
                break;
            if (!found || found->length < length) {
                at = get(&slot->next);
                continue;
            }
        }
        at = get(&branch->child[key_bit(key, branch->bit)]);
    }
    if (at && !(at & BRANCH))
        found = (const struct allowedips_node *)at;
    bool same = found && found->length == length && covers(found, key, ipv6);
    return same ? (struct allowedips_node *)found : NULL;
}

/* Some prefix below a link: all of them agree in the bits before the link. */
static const struct allowedips_node *any_below(uintptr_t to)
{
    while (to & BRANCH) {
        const struct branch *branch = as_branch(to);
        const struct allowedips_node *prefix = prefix_of(branch);
        if (prefix)
            return prefix;
        to = get(&branch->child[0]); /* without a prefix there are two children */
    }
    return (const struct allowedips_node *)to;
}

/* ---- jump tables --------------------------------------------------------------------------- */

static void set_slots(struct slot *slots, size_t count, uintptr_t cover, uintptr_t next)
{
    for (size_t i = 0; i < count; i++) {
        set(&slots[i].cover, cover);
        set(&slots[i].next, next);
    }
}

/* Of the slots for bits [bit, end), the ones that agree with `node` up to its bit `to`. The others
 * lead to nobody. */
static struct slot *narrow(struct slot *slots, const struct allowedips_node *node, unsigned bit,
                           unsigned to, unsigned end, uintptr_t cover)
{
    if (to == bit)
        return slots;
    size_t below = (size_t)1 << (end - to), all = (size_t)1 << (end - bit);
    size_t first = key_bits(node_key(node), bit, to - bit) * below;
    set_slots(slots, first, cover, 0);
    set_slots(slots + first + below, all - first - below, cover, 0);
    return slots + first;
}

/* Fills the slots for bits [bit, end) below a link, of which there are 2^(end - bit). `cover` is
 * the longest prefix above the link and below the table's branch. */
static void fill(struct slot *slots, uintptr_t to, unsigned bit, unsigned end, uintptr_t cover)
{
    if (!to || (to & BRANCH && as_branch(to)->bit > end)) {
        set_slots(slots, (size_t)1 << (end - bit), cover, to);
        return;
    }
    if (!(to & BRANCH)) {
        const struct allowedips_node *leaf = (const struct allowedips_node *)to;
        bool ends = leaf->length <= end;
        unsigned until = ends ? leaf->length : end;
        slots = narrow(slots, leaf, bit, until, end, cover);
        set_slots(slots, (size_t)1 << (end - until), ends ? to : cover, ends ? 0 : to);
        return;
    }
    const struct branch *branch = as_branch(to);
    uintptr_t prefix = (uintptr_t)prefix_of(branch);
    if (branch->bit > bit) /* all below agree in the bits that are skipped */
        slots = narrow(slots, any_below(to), bit, branch->bit, end, cover);
    cover = prefix ? prefix : cover;
    if (branch->bit == end) {
        set_slots(slots, 1, cover, to);
        return;
    }
    size_t half = (size_t)1 << (end - branch->bit - 1);
    fill(slots, get(&branch->child[0]), branch->bit + 1, end, cover);
    fill(slots + half, get(&branch->child[1]), branch->bit + 1, end, cover);
}

/* Not by fill(): the branch's own prefix is not in its table. */
static void fill_table(struct table *table, const struct branch *branch)
{
    unsigned bit = branch->bit + 1, end = branch->bit + table->bits;
    fill(table->slot, get(&branch->child[0]), bit, end, 0);
    fill(table->slot + ((size_t)1 << (table->bits - 1)), get(&branch->child[1]), bit, end, 0);
}

/* After `path->at` changed, or what it leads to gained or lost a prefix. */
static void refresh_tables(const struct path *path, struct key key)
{
    if (!path->parent)
        return;
    unsigned bit = path->parent->bit + 1u;
    for (unsigned i = 0; i < path->count; i++) {
        const struct branch *branch = path->tabled[i];
        struct table *table = table_of(branch);
        unsigned end = branch->bit + table->bits;
        bool covered = path->cover && path->cover->length > branch->bit;
        if (bit <= end)
            fill(table->slot + key_bits(key_masked(key, bit), branch->bit, table->bits),
                 get(path->at), bit, end, covered ? (uintptr_t)path->cover : 0);
    }
}

static size_t table_size(unsigned bits)
{
    return sizeof(struct table) + ((size_t)1 << bits) * sizeof(struct slot);
}

static struct table *table_create(unsigned bits)
{
    struct table *table = array_take(table_size(bits));
    if (table)
        table->bits = bits;
    return table;
}

static void table_free(struct table *table)
{
    if (table)
        array_give(table, table_size(table->bits));
}

static void release_table(struct epoch_item *item)
{
    static_assert(offsetof(struct table, retired) == 0, "the item is at the start");
    table_free((struct table *)item);
}

static void replace_table(struct epoch *epoch, struct branch *branch, struct table *table)
{
    struct table *old = table_of(branch);
    atomic_store_explicit(&branch->table, table ? (uintptr_t)table | table->bits : 0,
                          memory_order_release);
    if (old)
        epoch_retire(epoch, &old->retired, release_table);
}

/* Distinct non-empty slots of a table that ends before bit `end`, below this link. */
static size_t distinct(uintptr_t to, unsigned end)
{
    if (!(to & BRANCH) || as_branch(to)->bit >= end)
        return to != 0;
    const struct branch *branch = as_branch(to);
    return distinct(get(&branch->child[0]), end) + distinct(get(&branch->child[1]), end);
}

static unsigned best_bits(const struct branch *branch, unsigned width)
{
    unsigned bits = 0;
    for (unsigned i = MINIMUM_TABLE_BITS; i <= MAXIMUM_TABLE_BITS && branch->bit + i <= width;
         i++) {
        size_t used = distinct(get(&branch->child[0]), branch->bit + i) +
                      distinct(get(&branch->child[1]), branch->bit + i);
        if (used * 5 < (size_t)2 << i)
            break;
        bits = i;
    }
    return bits;
}

/* Gives the branches below a link the tables they deserve. Branches before bit `covered` lie inside
 * a table above. Out of memory costs speed only. */
static void plan(struct epoch *epoch, uintptr_t to, unsigned covered, unsigned width)
{
    if (!(to & BRANCH))
        return;
    struct branch *branch = as_branch(to);
    const struct table *old = table_of(branch);
    unsigned bits = branch->bit < covered ? 0 : best_bits(branch, width);

    if (bits != (old ? old->bits : 0)) {
        struct table *table = bits ? table_create(bits) : NULL;
        if (table)
            fill_table(table, branch);
        replace_table(epoch, branch, table);
    }
    if (bits && branch->bit + bits > covered)
        covered = branch->bit + bits;
    plan(epoch, get(&branch->child[0]), covered, width);
    plan(epoch, get(&branch->child[1]), covered, width);
}

/* After as many new prefixes as a third of the trie; removed ones leave tables that are only larger
 * than they need be, and count a third as much. */
static void count_change(struct allowedips *table, struct family *family, bool added)
{
    family->changes += added ? 3 : 1;
    if (family->changes < family->plan_at)
        return;
    plan(table->epoch, get(&family->root), 0, family == &table->family[0] ? 32 : 128);
    family->changes = 0;
    family->plan_at = family->count > PLAN_AT ? family->count : PLAN_AT;
}

/* ---- the writer's walk --------------------------------------------------------------------- */

static void path_start(struct path *path, struct family *family)
{
    path->at = &family->root;
    path->parent_at = NULL;
    path->parent = NULL;
    path->grandparent = NULL;
    path->count = 0;
    path->cover = path->parent_cover = NULL;
}

static void descend(struct path *path, struct key key)
{
    struct branch *branch = as_branch(get(path->at));
    path->parent_cover = path->cover;
    if (prefix_of(branch))
        path->cover = prefix_of(branch);
    if (table_of(branch))
        path->tabled[path->count++] = branch;
    path->parent_at = path->at;
    path->grandparent = path->parent;
    path->parent = branch;
    path->at = &branch->child[key_bit(key, branch->bit)];
}

/* Once only: to the link that leads to the parent. */
static void ascend(struct path *path)
{
    if (path->count && path->tabled[path->count - 1] == path->parent)
        path->count--;
    path->cover = path->parent_cover;
    path->at = path->parent_at;
    path->parent = path->grandparent;
}

/* To the link of the leaf, or of the branch that carries the prefix. */
static void walk_to(struct path *path, struct family *family, const struct allowedips_node *node)
{
    struct key key = node_key(node);
    path_start(path, family);
    for (;;) {
        uintptr_t to = get(path->at);
        if (to == (uintptr_t)node || prefix_of(as_branch(to)) == node)
            return;
        descend(path, key);
    }
}

/* The prefix that shows where `key`/`length` departs from the trie. */
static const struct allowedips_node *nearest(const struct family *family, struct key key,
                                             unsigned length)
{
    uintptr_t to = get(&family->root);
    while (to & BRANCH && as_branch(to)->bit < length) {
        uintptr_t next = get(&as_branch(to)->child[key_bit(key, as_branch(to)->bit)]);
        if (!next)
            break;
        to = next;
    }
    return to ? any_below(to) : NULL;
}

/* ---- owners' lists ------------------------------------------------------------------------- */

static void list_append(struct allowedips_owner *owner, struct allowedips_node *node)
{
    node->list.previous = owner->last;
    node->list.next = NULL;
    if (owner->last)
        owner->last->list.next = node;
    else
        owner->first = node;
    owner->last = node;
    owner->count++;
}

static void list_remove(struct allowedips_owner *owner, struct allowedips_node *node)
{
    struct allowedips_node *previous = node->list.previous, *next = node->list.next;
    if (previous)
        previous->list.next = next;
    else
        owner->first = next;
    if (next)
        next->list.previous = previous;
    else
        owner->last = previous;
    owner->count--;
}

static struct allowedips_owner *owner_of(const struct allowedips_node *node)
{
    return (struct allowedips_owner *)get(&node->owner);
}

/* ---- insert -------------------------------------------------------------------------------- */

static struct allowedips_node *node_create(struct key key, unsigned length, bool ipv6, bool blocked,
                                           struct allowedips_owner *owner)
{
    size_t size = sizeof(struct allowedips_node);
    size += ipv6 ? 2 * sizeof(((struct allowedips_node *)0)->address6[0]) : 0;
    struct allowedips_node *node = blocked ? blocks_take(size) : malloc(size);
    if (!node)
        return NULL;
    node->blocked = blocked;
    atomic_init(&node->owner, (uintptr_t)owner);
    node->length = (uint8_t)length;
    node->ipv6 = ipv6;
    node->marked = false;
    node->address4 = (uint32_t)(key.hi >> 32);
    if (ipv6) {
        node->address6[0] = key.hi;
        node->address6[1] = key.lo;
    }
    return node;
}

static void node_free(struct allowedips_node *node)
{
    if (node && node->blocked)
        blocks_give(node);
    else
        free(node);
}

static struct branch *branch_create(unsigned bit, bool blocked)
{
    struct branch *branch = blocked ? blocks_take(sizeof(*branch)) : malloc(sizeof(*branch));
    if (branch) {
        memset(branch, 0, sizeof(*branch));
        branch->bit = (uint8_t)bit;
        branch->blocked = blocked;
    }
    return branch;
}

static void branch_free(struct branch *branch)
{
    if (branch && branch->blocked)
        blocks_give(branch);
    else
        free(branch);
}

/* Links a new prefix into the trie; the tables follow. */
static int link_node(struct family *family, struct allowedips_node *node)
{
    struct key key = node_key(node);
    unsigned length = node->length;
    const struct allowedips_node *near = nearest(family, key, length);
    unsigned split = length; /* the bit at which the new prefix leaves the trie, or ends */
    if (near) {
        unsigned common = common_bits(key, node_key(near));
        split = split < near->length ? split : near->length;
        split = split < common ? split : common;
    }

    struct path path;
    uintptr_t to;
    path_start(&path, family);
    while ((to = get(path.at)) & BRANCH &&
           (as_branch(to)->bit < split || (as_branch(to)->bit == split && split < length)))
        descend(&path, key);

    if (!to) {
        set(path.at, (uintptr_t)node);
    } else if (to & BRANCH && as_branch(to)->bit == split) {
        atomic_store_explicit(&as_branch(to)->prefix, node, memory_order_release);
    } else {
        struct branch *branch = branch_create(split, node->blocked);
        if (!branch)
            return -ENOMEM;
        if (split == length)
            atomic_init(&branch->prefix, node);
        else
            atomic_init(&branch->child[key_bit(key, split)], (uintptr_t)node);
        /* What was here: a shorter prefix ends at the branch, anything else goes on below it. */
        if (!(to & BRANCH) && near->length == split)
            atomic_init(&branch->prefix, (struct allowedips_node *)to);
        else
            atomic_init(&branch->child[key_bit(node_key(near), split)], to);
        set(path.at, (uintptr_t)branch | BRANCH);
    }
    refresh_tables(&path, key);
    return 0;
}

int allowedips_insert(struct allowedips *table, const struct allowedips_prefix *prefix,
                      struct allowedips_owner *owner)
{
    bool ipv6 = prefix->family == 6;
    if ((prefix->family != 4 && !ipv6) || prefix->length > (ipv6 ? 128 : 32))
        return -EINVAL;
    struct family *family = &table->family[ipv6];
    struct key key = key_masked(load_key(prefix->address, ipv6), prefix->length);

    struct allowedips_node *node = find_exact(family, key, prefix->length, ipv6);
    if (node) {
        node->marked = false;
        struct allowedips_owner *former = owner_of(node);
        if (former != owner) {
            list_remove(former, node);
            list_append(owner, node);
            set(&node->owner, (uintptr_t)owner);
        }
        return 0;
    }

    node = node_create(key, prefix->length, ipv6, family->count >= LARGE_AT, owner);
    if (!node)
        return -ENOMEM;
    if (link_node(family, node) != 0) {
        node_free(node);
        return -ENOMEM;
    }
    list_append(owner, node);
    family->count++;
    count_change(table, family, true);
    return 0;
}

/* ---- remove -------------------------------------------------------------------------------- */

static void release_node(struct epoch_item *item)
{
    struct allowedips_node *node =
        (struct allowedips_node *)((char *)item - offsetof(struct allowedips_node, retired));
    branch_free((struct branch *)(get(&node->owner) & ~REMOVED));
    node_free(node);
}

/* Takes the prefix out of the trie. Returns the branch that became superfluous, or NULL. */
static struct branch *unlink_node(struct family *family, struct allowedips_node *node)
{
    struct path path;
    walk_to(&path, family, node);
    struct key key = node_key(node);
    uintptr_t to = get(path.at);
    struct branch *superfluous = NULL;

    if (to & BRANCH) {
        struct branch *branch = as_branch(to);
        uintptr_t child[2] = {get(&branch->child[0]), get(&branch->child[1])};
        if (child[0] && child[1]) {
            atomic_store_explicit(&branch->prefix, NULL, memory_order_release);
        } else {
            set(path.at, child[0] | child[1]);
            superfluous = branch;
        }
    } else if (!path.parent) {
        set(path.at, 0);
    } else {
        struct branch *branch = path.parent;
        uintptr_t sibling = get(&branch->child[!key_bit(key, branch->bit)]);
        struct allowedips_node *prefix = prefix_of(branch);
        if (sibling && prefix) {
            set(path.at, 0);
        } else {
            ascend(&path); /* tables above the branch follow; its own goes with it */
            set(path.at, sibling ? sibling : (uintptr_t)prefix);
            superfluous = branch;
        }
    }
    refresh_tables(&path, key);
    return superfluous;
}

static void remove_node(struct allowedips *table, struct allowedips_owner *owner,
                        struct allowedips_node *node)
{
    struct family *family = &table->family[node->ipv6];
    struct branch *superfluous = unlink_node(family, node);
    list_remove(owner, node);
    family->count--;
    /* Readers that still see the node fall back on the next shorter prefix. */
    set(&node->owner, (uintptr_t)superfluous | REMOVED);
    if (superfluous && table_of(superfluous))
        epoch_retire(table->epoch, &table_of(superfluous)->retired, release_table);
    epoch_retire(table->epoch, &node->retired, release_node);
    count_change(table, family, false);
}

void allowedips_remove(struct allowedips *table, const struct allowedips_prefix *prefix,
                       struct allowedips_owner *owner)
{
    bool ipv6 = prefix->family == 6;
    if ((prefix->family != 4 && !ipv6) || prefix->length > (ipv6 ? 128 : 32))
        return;
    struct key key = key_masked(load_key(prefix->address, ipv6), prefix->length);
    struct allowedips_node *node = find_exact(&table->family[ipv6], key, prefix->length, ipv6);
    if (node && owner_of(node) == owner)
        remove_node(table, owner, node);
}

void allowedips_remove_all(struct allowedips *table, struct allowedips_owner *owner)
{
    while (owner->first)
        remove_node(table, owner, owner->first);
}

void allowedips_mark(struct allowedips_owner *owner)
{
    for (struct allowedips_node *node = owner->first; node; node = node->list.next)
        node->marked = true;
}

void allowedips_sweep(struct allowedips *table, struct allowedips_owner *owner)
{
    struct allowedips_node *next;
    for (struct allowedips_node *node = owner->first; node; node = next) {
        next = node->list.next;
        if (node->marked)
            remove_node(table, owner, node);
    }
}

/* ---- the whole table ----------------------------------------------------------------------- */

struct allowedips *allowedips_create(struct epoch *epoch)
{
    struct allowedips *table = calloc(1, sizeof(*table));
    if (!table)
        return NULL;
    table->epoch = epoch;
    table->family[0].plan_at = PLAN_AT;
    table->family[1].plan_at = PLAN_AT;
    return table;
}

static void free_below(uintptr_t to)
{
    if (to & BRANCH) {
        struct branch *branch = as_branch(to);
        free_below(get(&branch->child[0]));
        free_below(get(&branch->child[1]));
        node_free(prefix_of(branch));
        table_free(table_of(branch));
        branch_free(branch);
    } else {
        node_free((struct allowedips_node *)to);
    }
}

void allowedips_destroy(struct allowedips *table)
{
    if (!table)
        return;
    free_below(get(&table->family[0].root));
    free_below(get(&table->family[1].root));
    free(table);
}

size_t allowedips_list(const struct allowedips_owner *owner, struct allowedips_prefix *out,
                       size_t capacity)
{
    const struct allowedips_node *node = owner->first;
    for (size_t i = 0; node && i < capacity; i++, node = node->list.next) {
        struct key key = node_key(node);
        uint64_t wire[2] = {__builtin_bswap64(key.hi), __builtin_bswap64(key.lo)};
        memcpy(out[i].address, wire, sizeof(wire));
        out[i].family = node->ipv6 ? 6 : 4;
        out[i].length = node->length;
    }
    return owner->count;
}

size_t allowedips_count(const struct allowedips *table)
{
    return table->family[0].count + table->family[1].count;
}
