/* SPDX-License-Identifier: Apache-2.0 */
/* Includes the unit to look at its tables: a stale slot may go unnoticed by lookups. */
#include "allowedips.c"
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static struct epoch epoch;
static struct epoch_reader *self;
static struct allowedips *table;
static struct allowedips_owner a, b, c;

static int setup(void **state)
{
    (void)state;
    epoch_init(&epoch);
    self = epoch_register(&epoch);
    table = allowedips_create(&epoch);
    a = b = c = (struct allowedips_owner){0};
    return table ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    allowedips_destroy(table);
    epoch_destroy(&epoch);
    return 0;
}

/* "10.0.0.0/8", "fd00::/64" */
static struct allowedips_prefix parse(const char *text)
{
    struct allowedips_prefix prefix = {.family = strchr(text, ':') ? 6 : 4};
    char address[64];
    const char *slash = strchr(text, '/');
    assert_non_null(slash);
    snprintf(address, sizeof(address), "%.*s", (int)(slash - text), text);
    assert_int_equal(inet_pton(prefix.family == 4 ? AF_INET : AF_INET6, address, prefix.address),
                     1);
    prefix.length = (uint8_t)atoi(slash + 1);
    return prefix;
}

static void insert(const char *text, struct allowedips_owner *owner)
{
    struct allowedips_prefix prefix = parse(text);
    assert_int_equal(allowedips_insert(table, &prefix, owner), 0);
}

static void remove_prefix(const char *text, struct allowedips_owner *owner)
{
    struct allowedips_prefix prefix = parse(text);
    allowedips_remove(table, &prefix, owner);
}

static struct allowedips_owner *find(uint8_t family, const uint8_t *address)
{
    epoch_enter(&epoch, self);
    struct allowedips_owner *owner =
        family == 4 ? allowedips_lookup4(table, address) : allowedips_lookup6(table, address);
    epoch_leave(self);
    return owner;
}

static struct allowedips_owner *who(const char *text)
{
    uint8_t address[16];
    uint8_t family = strchr(text, ':') ? 6 : 4;
    assert_int_equal(inet_pton(family == 4 ? AF_INET : AF_INET6, text, address), 1);
    return find(family, address);
}

static void an_empty_table_finds_nobody(void **state)
{
    (void)state;
    assert_null(who("10.0.0.1"));
    assert_null(who("fd00::1"));
    assert_int_equal(allowedips_count(table), 0);
}

static void the_longest_match_wins(void **state)
{
    (void)state;
    insert("10.0.0.0/8", &a);
    insert("10.1.0.0/16", &b);
    insert("10.1.2.3/32", &c);
    assert_ptr_equal(who("10.2.0.0"), &a);
    assert_ptr_equal(who("10.1.2.2"), &b);
    assert_ptr_equal(who("10.1.2.3"), &c);
    assert_ptr_equal(who("10.1.2.4"), &b);
    assert_null(who("11.0.0.0"));
    insert("fd00::/8", &a);
    insert("fd00:1::/63", &b);
    insert("fd00:1:0:1::/65", &c);
    assert_ptr_equal(who("fd00:1:0:1:7fff::"), &c);
    assert_ptr_equal(who("fd00:1:0:1:8000::"), &b);
    assert_ptr_equal(who("fd00:1:0:2::"), &a);
    assert_null(who("fe00::"));
}

static void default_routes_of_both_families(void **state)
{
    (void)state;
    insert("0.0.0.0/0", &a);
    assert_ptr_equal(who("255.255.255.255"), &a);
    assert_null(who("::"));
    insert("::/0", &b);
    assert_ptr_equal(who("::"), &b);
    assert_ptr_equal(who("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), &b);
    insert("0.0.0.0/1", &c);
    assert_ptr_equal(who("127.0.0.1"), &c);
    assert_ptr_equal(who("128.0.0.1"), &a);
    remove_prefix("0.0.0.0/0", &a);
    assert_ptr_equal(who("127.0.0.1"), &c);
    assert_null(who("128.0.0.1"));
}

static void host_bits_are_masked(void **state)
{
    (void)state;
    insert("10.1.2.3/8", &a);
    insert("fd00::ffff/120", &a);
    struct allowedips_prefix list[2];
    assert_int_equal(allowedips_list(&a, list, 2), 2);
    struct allowedips_prefix v4 = parse("10.0.0.0/8"), v6 = parse("fd00::ff00/120");
    assert_memory_equal(&list[0], &v4, sizeof(v4));
    assert_memory_equal(&list[1], &v6, sizeof(v6));
    insert("10.9.9.9/8", &b); /* the same prefix: it moves */
    assert_int_equal(allowedips_count(table), 2);
    remove_prefix("10.7.7.7/8", &b);
    assert_int_equal(allowedips_count(table), 1);
}

static void invalid_prefixes_are_refused(void **state)
{
    (void)state;
    struct allowedips_prefix bad[] = {
        {.family = 4, .length = 33}, {.family = 6, .length = 129}, {.family = 0}, {.family = 5}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(allowedips_insert(table, &bad[i], &a), -EINVAL);
        allowedips_remove(table, &bad[i], &a);
    }
    assert_int_equal(allowedips_count(table), 0);
    assert_null(a.first);
}

static void pitfall_57_a_prefix_added_elsewhere_moves(void **state)
{
    (void)state;
    insert("10.0.0.0/8", &a);
    insert("10.0.0.0/24", &a);
    insert("10.0.0.0/8", &b);
    assert_ptr_equal(who("10.9.9.9"), &b);
    assert_ptr_equal(who("10.0.0.9"), &a);
    assert_int_equal(a.count, 1);
    assert_int_equal(b.count, 1);
    assert_int_equal(allowedips_count(table), 2);
    remove_prefix("10.0.0.0/8", &a); /* no longer its own */
    assert_ptr_equal(who("10.9.9.9"), &b);
}

static void the_list_keeps_the_order_of_insertion(void **state)
{
    (void)state;
    static const char *const order[] = {"10.0.0.0/8", "fd00::/64", "10.0.0.1/32", "0.0.0.0/0"};
    for (unsigned i = 0; i < 4; i++)
        insert(order[i], &a);
    insert("fd00::/64", &a); /* again: keeps its place */
    struct allowedips_prefix list[4];
    memset(list, 0xee, sizeof(list));
    assert_int_equal(allowedips_list(&a, NULL, 0), 4);
    assert_int_equal(allowedips_list(&a, list, 2), 4);
    assert_int_equal(list[2].family, 0xee);
    assert_int_equal(allowedips_list(&a, list, 4), 4);
    for (unsigned i = 0; i < 4; i++) {
        struct allowedips_prefix expected = parse(order[i]);
        assert_memory_equal(&list[i], &expected, sizeof(expected));
    }
}

static void pitfall_63_sweep_removes_what_was_not_inserted_again(void **state)
{
    (void)state;
    insert("10.0.0.0/8", &a);
    insert("10.1.0.0/16", &a);
    insert("10.2.0.0/16", &b);
    allowedips_mark(&a);
    insert("10.0.0.0/8", &a);
    insert("10.3.0.0/16", &a);
    insert("10.2.0.0/16", &a); /* taken from another while marked */
    assert_ptr_equal(who("10.1.0.0"), &a);
    allowedips_sweep(table, &a);
    assert_int_equal(a.count, 3);
    assert_int_equal(b.count, 0);
    remove_prefix("10.0.0.0/8", &a);
    assert_null(who("10.1.0.0"));
    assert_ptr_equal(who("10.2.0.0"), &a);
    assert_ptr_equal(who("10.3.0.0"), &a);
    allowedips_sweep(table, &a); /* nothing marked: nothing happens */
    assert_int_equal(a.count, 2);
}

static void a_marked_prefix_taken_by_another_survives_the_sweep(void **state)
{
    (void)state;
    insert("10.0.0.0/8", &a);
    allowedips_mark(&a);
    insert("10.0.0.0/8", &b);
    allowedips_sweep(table, &a);
    allowedips_sweep(table, &b);
    assert_ptr_equal(who("10.0.0.1"), &b);
}

/* ---- the slow model ------------------------------------------------------------------------ */

#define OWNERS 7
#define MODEL  4096
#define ENOUGH 900

static struct {
    struct allowedips_prefix prefix;
    unsigned owner;
    bool marked;
} model[MODEL];
static size_t model_count;
static struct allowedips_owner owners[OWNERS];

static bool inside(const struct allowedips_prefix *prefix, uint8_t family, const uint8_t *address)
{
    if (prefix->family != family)
        return false;
    unsigned bytes = prefix->length / 8, bits = prefix->length % 8;
    return memcmp(prefix->address, address, bytes) == 0 &&
           (!bits || (prefix->address[bytes] ^ address[bytes]) >> (8 - bits) == 0);
}

static struct allowedips_owner *model_find(uint8_t family, const uint8_t *address)
{
    int best = -1;
    struct allowedips_owner *owner = NULL;
    for (size_t i = 0; i < model_count; i++) {
        if (model[i].prefix.length > best && inside(&model[i].prefix, family, address)) {
            best = model[i].prefix.length;
            owner = &owners[model[i].owner];
        }
    }
    return owner;
}

static size_t model_index(const struct allowedips_prefix *prefix)
{
    size_t i = 0;
    while (i < model_count && memcmp(&model[i].prefix, prefix, sizeof(*prefix)) != 0)
        i++;
    return i;
}

static void model_drop(size_t i)
{
    model[i] = model[--model_count];
}

static struct allowedips_prefix masked(struct allowedips_prefix prefix)
{
    for (unsigned bit = prefix.length; bit < 128; bit++)
        prefix.address[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
    return prefix;
}

/* Shapes that nest, that lie dense, that leave gaps of untested bits and that stand apart. */
static struct allowedips_prefix random_prefix(void)
{
    struct allowedips_prefix prefix = {.family = random() % 2 ? 4 : 6};
    unsigned width = prefix.family == 4 ? 32 : 128, shape = (unsigned)random() % 8;
    for (unsigned i = 0; i < width / 8; i++)
        prefix.address[i] = (uint8_t)random();
    prefix.length = (uint8_t)width;
    if (shape < 5) { /* two dense places, the second with a gap */
        static const uint8_t place[2][4] = {{10, 1, 0, 0}, {0xfd, 0x42, 0, 0}};
        memcpy(prefix.address, place[shape % 2], 3);
        if (prefix.family == 6) {
            memset(prefix.address + 3, 0, 13);
            prefix.address[shape % 2 ? 15 : 9] = (uint8_t)random();
            prefix.address[shape % 2 ? 14 : 8] = (uint8_t)random() & 1;
        }
    } else if (shape == 5) { /* sparse bits */
        for (unsigned i = 0; i < width / 8; i++)
            prefix.address[i] &= (uint8_t)(random() & random() & random());
    }
    if (random() % 3 == 0)
        prefix.length = (uint8_t)((unsigned)random() % (width + 1));
    return prefix;
}

static uint8_t random_address(uint8_t *address)
{
    struct allowedips_prefix prefix = random_prefix();
    if (model_count && random() % 4) {
        prefix = model[(size_t)random() % model_count].prefix;
        if (random() % 2) { /* its neighbourhood */
            unsigned bit = (unsigned)random() % (prefix.family == 4 ? 32 : 128);
            prefix.address[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
        }
    }
    memcpy(address, prefix.address, 16);
    return prefix.family;
}

static void assert_same(uint8_t family, const uint8_t *address)
{
    assert_ptr_equal(find(family, address), model_find(family, address));
}

/* First and last address of every prefix, and the ones just outside. */
static void compare_fully(void)
{
    for (size_t i = 0; i < model_count; i++) {
        uint8_t address[16];
        unsigned width = model[i].prefix.family == 4 ? 32 : 128;
        memcpy(address, model[i].prefix.address, 16);
        assert_same(model[i].prefix.family, address);
        for (unsigned bit = model[i].prefix.length; bit < width; bit++)
            address[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
        assert_same(model[i].prefix.family, address);
        if (model[i].prefix.length) {
            unsigned bit = model[i].prefix.length - 1u;
            address[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
            assert_same(model[i].prefix.family, address);
        }
    }
}

static void compare_lists(void)
{
    size_t counts[OWNERS] = {0}, marked[OWNERS] = {0};
    for (size_t i = 0; i < model_count; i++) {
        counts[model[i].owner]++;
        marked[model[i].owner] += model[i].marked;
    }
    for (unsigned i = 0; i < OWNERS; i++) {
        static struct allowedips_prefix list[MODEL];
        assert_int_equal(allowedips_list(&owners[i], list, MODEL), counts[i]);
        for (size_t j = 0; j < counts[i]; j++) {
            size_t at = model_index(&list[j]);
            assert_true(at < model_count && model[at].owner == i);
        }
        size_t have = 0;
        for (const struct allowedips_node *n = owners[i].first; n; n = n->list.next)
            have += n->marked;
        assert_int_equal(have, marked[i]);
    }
    assert_int_equal(allowedips_count(table), model_count);
}

/* Every branch has two reasons to be, every slot is what filling anew gives. */
static size_t tables_seen, prefixes_seen;

static void check_below(uintptr_t to, int above)
{
    if (!(to & BRANCH)) {
        prefixes_seen += to != 0;
        return;
    }
    const struct branch *branch = as_branch(to);
    assert_true(branch->bit > above);
    prefixes_seen += prefix_of(branch) != NULL;
    assert_true((get(&branch->child[0]) != 0) + (get(&branch->child[1]) != 0) +
                    (prefix_of(branch) != NULL) >=
                2);
    const struct table *old = table_of(branch);
    if (old) {
        size_t size = ((size_t)1 << old->bits) * sizeof(old->slot[0]);
        struct table *fresh = table_create(old->bits);
        assert_non_null(fresh);
        fill_table(fresh, branch);
        assert_memory_equal((const void *)fresh->slot, (const void *)old->slot, size);
        table_free(fresh);
        tables_seen++;
    }
    check_below(get(&branch->child[0]), branch->bit);
    check_below(get(&branch->child[1]), branch->bit);
}

static void check_structure(void)
{
    prefixes_seen = 0;
    check_below(get(&table->family[0].root), -1);
    check_below(get(&table->family[1].root), -1);
    assert_int_equal(prefixes_seen, model_count);
}

static void step_insert(void)
{
    struct allowedips_prefix prefix = random_prefix(), plain = masked(prefix);
    if (model_count && random() % 4 == 0) /* again, or a move */
        prefix = plain = model[(size_t)random() % model_count].prefix;
    size_t at = model_index(&plain);
    if (at == model_count && model_count++ == MODEL)
        fail();
    model[at].prefix = plain;
    model[at].owner = (unsigned)random() % OWNERS;
    model[at].marked = false;
    assert_int_equal(allowedips_insert(table, &prefix, &owners[model[at].owner]), 0);
}

static void step_remove(void)
{
    unsigned owner = (unsigned)random() % OWNERS;
    struct allowedips_prefix prefix = random_prefix();
    if (model_count && random() % 8) {
        size_t at = (size_t)random() % model_count;
        prefix = model[at].prefix;
        if (random() % 8)
            owner = model[at].owner;
    }
    allowedips_remove(table, &prefix, &owners[owner]);
    prefix = masked(prefix);
    size_t at = model_index(&prefix);
    if (at < model_count && model[at].owner == owner)
        model_drop(at);
}

static void step_whole_owner(void)
{
    unsigned owner = (unsigned)random() % OWNERS;
    long what = random() % 3;
    if (what == 0) {
        allowedips_remove_all(table, &owners[owner]);
        assert_null(owners[owner].first);
        assert_null(owners[owner].last);
    } else if (what == 1) {
        allowedips_mark(&owners[owner]);
    } else {
        allowedips_sweep(table, &owners[owner]);
    }
    for (size_t i = model_count; i-- > 0;) {
        if (model[i].owner != owner)
            continue;
        if (what == 1)
            model[i].marked = true;
        else if (what == 0 || model[i].marked)
            model_drop(i);
    }
}

static void random_operations_agree_with_a_linear_model(void **state)
{
    (void)state;
    srandom(1);
    memset(owners, 0, sizeof(owners));
    model_count = 0;
    for (unsigned step = 0; step < 40000; step++) {
        long what = random() % 1000;
        bool growing = model_count < 50 || (step / 4000 % 2 == 0 && model_count < ENOUGH);
        if (what < 3)
            step_whole_owner();
        else if (what < (growing ? 750 : 450))
            step_insert();
        else
            step_remove();

        for (unsigned i = 0; i < 4; i++) {
            uint8_t address[16];
            uint8_t family = random_address(address);
            assert_same(family, address);
        }
        if (step % 50 == 0)
            check_structure();
        if (step % 1000 == 0) {
            compare_fully();
            compare_lists();
            epoch_reclaim(&epoch);
        }
    }
    compare_fully();
    compare_lists();
    assert_true(tables_seen > 100); /* the shortcuts were exercised */
    for (unsigned i = 0; i < OWNERS; i++)
        allowedips_remove_all(table, &owners[i]);
    assert_int_equal(allowedips_count(table), 0);
    assert_int_equal(get(&table->family[0].root), 0);
    assert_int_equal(get(&table->family[1].root), 0);
}

/* ---- depth --------------------------------------------------------------------------------- */

static unsigned steps(const struct family *family, struct key key)
{
    unsigned count = 0;
    uintptr_t at = get(&family->root);
    for (; at & BRANCH; count++) {
        const struct branch *branch = as_branch(at);
        uintptr_t tagged = tagged_table(branch);
        at = tagged ? get(&slot_of(branch, tagged, key)->next)
                    : get(&branch->child[key_bit(key, branch->bit)]);
    }
    return count + 1;
}

/* 65,536 hosts in one /16 below a default route and a lone neighbour. */
static void lookups_stay_short_beside_outliers(void **state)
{
    (void)state;
    static const char *const v4 = "0.0.0.0/0", *const v6 = "::/0";
    insert(v4, &a);
    insert(v6, &a);
    insert("192.168.7.0/24", &b);
    insert("2001:db8::/32", &b);
    struct allowedips_prefix p4 = parse("10.77.0.0/32"), p6 = parse("fd12:3456:789a::/128");
    unsigned worst = 0;
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < 65536; i++) {
            unsigned host = i * 40503u & 0xffff; /* every one, out of order */
            p4.address[2] = p6.address[14] = (uint8_t)(host >> 8);
            p4.address[3] = p6.address[15] = (uint8_t)host;
            if (pass == 0) {
                assert_int_equal(allowedips_insert(table, &p4, &c), 0);
                assert_int_equal(allowedips_insert(table, &p6, &c), 0);
                continue;
            }
            unsigned n4 = steps(&table->family[0], load_key(p4.address, false));
            unsigned n6 = steps(&table->family[1], load_key(p6.address, true));
            worst = n4 > worst ? n4 : worst;
            worst = n6 > worst ? n6 : worst;
        }
    }
    assert_true(worst <= 6); /* a binary trie: 18 */
    assert_ptr_equal(who("10.77.255.255"), &c);
    assert_ptr_equal(who("10.78.0.0"), &a);
    assert_ptr_equal(who("fd12:3456:789a::1:0"), &a);
}

static void a_large_table_gives_its_memory_back(void **state)
{
    (void)state;
    struct allowedips_prefix prefix = {.family = 4, .length = 32};
    for (uint32_t i = 0; i < 3 * LARGE_AT; i++) {
        uint32_t address = i * 2654435761u; /* odd: all differ */
        memcpy(prefix.address, &address, 4);
        assert_int_equal(allowedips_insert(table, &prefix, &a), 0);
    }
    assert_int_equal(allowedips_count(table), 3 * LARGE_AT);
    assert_true(blocks_bytes() >= 2 * LARGE_AT * sizeof(struct allowedips_node));
    allowedips_remove_all(table, &a);
    while (epoch_reclaim(&epoch))
        ;
    assert_int_equal(blocks_bytes(), 0);
}

/* ---- readers ------------------------------------------------------------------------------- */

#define READERS 2
#define CHANGES 20000

static atomic_bool done;
static atomic_uint bad, ready, seen_a, seen_b;

/* 10.0.0.1 and fd00::1 belong to a or b, 10.0.9.9 and fd00::9:9 to c or, by the default route, to
 * b: whatever else happens, never to nobody. */
static void *watch(void *argument)
{
    static const uint8_t moved4[4] = {10, 0, 0, 1}, covered4[4] = {10, 0, 9, 9};
    static const uint8_t moved6[16] = {0xfd, [15] = 1}, covered6[16] = {0xfd, [13] = 9, [15] = 9};
    struct epoch_reader *reader = argument;
    atomic_fetch_add(&ready, 1);
    while (!atomic_load(&done)) {
        epoch_enter(&epoch, reader);
        const struct allowedips_owner *moved[2] = {allowedips_lookup4(table, moved4),
                                                   allowedips_lookup6(table, moved6)};
        const struct allowedips_owner *covered[2] = {allowedips_lookup4(table, covered4),
                                                     allowedips_lookup6(table, covered6)};
        epoch_leave(reader);
        for (unsigned i = 0; i < 2; i++) {
            if ((moved[i] != &a && moved[i] != &b) || (covered[i] != &b && covered[i] != &c))
                atomic_fetch_add(&bad, 1);
            atomic_fetch_add_explicit(moved[i] == &a ? &seen_a : &seen_b, 1, memory_order_relaxed);
        }
    }
    return NULL;
}

static void change_around(unsigned i)
{
    static struct allowedips_owner others;
    struct allowedips_prefix near = random_prefix();
    if (i == 0)
        others = (struct allowedips_owner){0};
    if (near.length == 0 ||
        random() % 2) { /* hosts close by: tables come and go above the watched */
        near = parse(near.family == 4 ? "10.0.0.0/32" : "fd00::/128");
        near.address[near.family == 4 ? 3 : 15] = (uint8_t)(2 + random() % 254);
        near.address[near.family == 4 ? 1 : 5] = (uint8_t)random() & 3;
    } else {
        near.address[0] = 0x60; /* elsewhere */
        near.length = near.length < 3 ? 3 : near.length;
    }
    if (i % 2000 == 1999)
        allowedips_remove_all(table, &others);
    else if (random() % 3)
        assert_int_equal(allowedips_insert(table, &near, &others), 0);
    else
        allowedips_remove(table, &near, &others);
}

static void pitfall_63_a_moved_prefix_always_has_an_owner(void **state)
{
    (void)state;
    pthread_t threads[READERS];
    tables_seen = 0;
    insert("0.0.0.0/0", &b);
    insert("::/0", &b);
    insert("10.0.0.1/32", &a);
    insert("fd00::1/128", &a);
    for (unsigned i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, watch, epoch_register(&epoch)), 0);
    while (atomic_load(&ready) < READERS)
        sched_yield();
    /* On until both owners were seen, should the readers hardly run. */
    for (unsigned i = 0; i < CHANGES || !atomic_load(&seen_a) || !atomic_load(&seen_b); i++) {
        struct allowedips_owner *owner = i % 2 ? &a : &b;
        insert("10.0.0.1/32", owner);
        insert("fd00::1/128", owner);
        change_around(i);
        if (i % 3 == 0) {
            insert("10.0.9.0/24", &c);
            insert("fd00::9:0/112", &c);
        } else if (i % 3 == 1) {
            remove_prefix("10.0.9.0/24", &c);
            remove_prefix("fd00::9:0/112", &c);
        } else { /* a replacement in which everything stays */
            allowedips_mark(&b);
            insert("0.0.0.0/0", &b);
            insert("::/0", &b);
            insert("10.0.0.1/32", &b);
            insert("fd00::1/128", &b);
            allowedips_sweep(table, &b);
        }
        if (i % 500 == 0) {
            check_below(get(&table->family[0].root), -1);
            check_below(get(&table->family[1].root), -1);
        }
        epoch_reclaim(&epoch);
    }
    atomic_store(&done, true);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&bad), 0);
    assert_true(tables_seen > 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_empty_table_finds_nobody),
        TEST(the_longest_match_wins),
        TEST(default_routes_of_both_families),
        TEST(host_bits_are_masked),
        TEST(invalid_prefixes_are_refused),
        TEST(pitfall_57_a_prefix_added_elsewhere_moves),
        TEST(the_list_keeps_the_order_of_insertion),
        TEST(pitfall_63_sweep_removes_what_was_not_inserted_again),
        TEST(a_marked_prefix_taken_by_another_survives_the_sweep),
        TEST(random_operations_agree_with_a_linear_model),
        TEST(lookups_stay_short_beside_outliers),
        TEST(a_large_table_gives_its_memory_back),
        TEST(pitfall_63_a_moved_prefix_always_has_an_owner),
    };
#ifdef __SANITIZE_THREAD__ /* the others have one thread, and no races to be found */
    cmocka_set_test_filter("pitfall_63_a_moved_*");
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
