/* SPDX-License-Identifier: Apache-2.0 */
/* What is told to the kernel's WireGuard, byte for byte and over many messages. linux/wireguard.h
 * has the numbers. */
#include "attributes.h"
#include "bytes.h"
#include "wireguard.h"

#include <arpa/inet.h>
#include <stdlib.h>

static _Alignas(struct nlmsghdr) char buffer[WIREGUARD_MESSAGE_MAXIMUM];

static struct wireguard_writing writing(const struct netlink_wireguard_changes *changes,
                                        size_t capacity)
{
    memset(buffer, 0xaa, sizeof(buffer));
    return (struct wireguard_writing){
        .name = "wg0", .changes = changes, .family = 0x1f, .capacity = capacity};
}

/* ---- bytes --------------------------------------------------------------------------------- */

static void nothing_but_the_name(void **state)
{
    (void)state;
    const struct netlink_wireguard_changes changes = {0};
    struct wireguard_writing w = writing(&changes, 4096);
    assert_false(wireguard_is_written(&w));
    assert_message(wireguard_write_next(&w, buffer),
                   "1c000000 1f00 0000 00000000 00000000" /* nlmsghdr: the family */
                   "01 01 0000"                           /* WG_CMD_SET_DEVICE 1, version 1 */
                   "0800 0200 77673000");                 /* WGDEVICE_A_IFNAME 2 */
    assert_true(wireguard_is_written(&w));
}

static void device_fields(void **state)
{
    (void)state;
    struct netlink_wireguard_changes changes = {
        .device = {.fields = NETLINK_WIREGUARD_PRIVATE_KEY | NETLINK_WIREGUARD_LISTEN_PORT |
                             NETLINK_WIREGUARD_FWMARK | NETLINK_WIREGUARD_REPLACE_PEERS,
                   .listen_port = 51820,
                   .fwmark = 0xca6c}};
    memset(changes.device.private_key, 0x11, NETLINK_KEY_SIZE);
    struct wireguard_writing w = writing(&changes, 4096);
    assert_message(wireguard_write_next(&w, buffer),
                   "58000000 1f00 0000 00000000 00000000" /* nlmsghdr */
                   "01 01 0000"                           /* genlmsghdr */
                   "0800 0200 77673000"                   /* WGDEVICE_A_IFNAME */
                   "2400 0300"                            /* WGDEVICE_A_PRIVATE_KEY 3 */
                   "1111111111111111111111111111111111111111111111111111111111111111"
                   "0600 0600 6cca 0000"  /* WGDEVICE_A_LISTEN_PORT 6, padding */
                   "0800 0700 6cca0000"   /* WGDEVICE_A_FWMARK 7 */
                   "0800 0500 01000000"); /* WGDEVICE_A_FLAGS 5: REPLACE_PEERS */
}

static void peer_with_everything(void **state)
{
    (void)state;
    const struct netlink_wireguard_prefix_change prefixes[] = {
        {.prefix = {.family = 4, .length = 24, .bytes = {10, 9}}},
        {.prefix = {.family = 6, .length = 64, .bytes = {0xfd}}, .remove = true},
    };
    struct netlink_wireguard_peer_change peer = {
        .fields = NETLINK_WIREGUARD_PEER_UPDATE_ONLY | NETLINK_WIREGUARD_PEER_REPLACE_PREFIXES |
                  NETLINK_WIREGUARD_PEER_PRESHARED_KEY | NETLINK_WIREGUARD_PEER_ENDPOINT |
                  NETLINK_WIREGUARD_PEER_KEEPALIVE,
        .endpoint = {.family = 6, .bytes = {0xfe, 0x80, [15] = 1}, .port = 51820, .scope_id = 3},
        .keepalive = 25,
        .prefix_count = 2,
    };
    memset(peer.public_key, 0x22, NETLINK_KEY_SIZE);
    memset(peer.preshared_key, 0x33, NETLINK_KEY_SIZE);
    const struct netlink_wireguard_changes changes = {
        .peers = &peer, .peer_count = 1, .prefixes = prefixes, .prefix_count = 2};
    struct wireguard_writing w = writing(&changes, 4096);
    assert_message(wireguard_write_next(&w, buffer),
                   "ec000000 1f00 0000 00000000 00000000" /* nlmsghdr */
                   "01 01 0000"                           /* genlmsghdr */
                   "0800 0200 77673000"                   /* WGDEVICE_A_IFNAME */
                   "d000 0880"                            /* WGDEVICE_A_PEERS 8, nested */
                   "cc00 0080"                            /* one peer, nested */
                   "2400 0100"                            /* WGPEER_A_PUBLIC_KEY 1 */
                   "2222222222222222222222222222222222222222222222222222222222222222"
                   "0800 0300 06000000" /* WGPEER_A_FLAGS 3: REPLACE_ALLOWEDIPS, UPDATE_ONLY */
                   "2400 0200"          /* WGPEER_A_PRESHARED_KEY 2 */
                   "3333333333333333333333333333333333333333333333333333333333333333"
                   "2000 0400"          /* WGPEER_A_ENDPOINT 4: sockaddr_in6 */
                   "0a00 ca6c 00000000" /* AF_INET6, port, flow */
                   "fe800000000000000000000000000001 03000000" /* address, scope */
                   "0600 0500 1900 0000"                       /* PERSISTENT_KEEPALIVE_INTERVAL 5 */
                   "5000 0980"                                 /* WGPEER_A_ALLOWEDIPS 9, nested */
                   "1c00 0080"                                 /* one prefix, nested */
                   "0600 0100 0200 0000"                       /* WGALLOWEDIP_A_FAMILY 1: AF_INET */
                   "0800 0200 0a090000"                        /* WGALLOWEDIP_A_IPADDR 2 */
                   "0500 0300 18 000000"                       /* WGALLOWEDIP_A_CIDR_MASK 3 */
                   "3000 0080"                                 /* one prefix, nested */
                   "0600 0100 0a00 0000"                       /* AF_INET6 */
                   "1400 0200 fd000000000000000000000000000000"
                   "0500 0300 40 000000"
                   "0800 0400 01000000"); /* WGALLOWEDIP_A_FLAGS 4: REMOVE_ME */
    assert_true(wireguard_is_written(&w));
}

static void removed_peer_has_no_prefixes(void **state)
{
    (void)state;
    const struct netlink_wireguard_prefix_change prefix = {.prefix = {.family = 4}};
    struct netlink_wireguard_peer_change peer = {.fields = NETLINK_WIREGUARD_PEER_REMOVE,
                                                 .prefix_count = 1};
    const struct netlink_wireguard_changes changes = {
        .peers = &peer, .peer_count = 1, .prefixes = &prefix, .prefix_count = 1};
    struct wireguard_writing w = writing(&changes, 4096);
    assert_message(wireguard_write_next(&w, buffer),
                   "50000000 1f00 0000 00000000 00000000" /* nlmsghdr */
                   "01 01 0000"                           /* genlmsghdr */
                   "0800 0200 77673000"                   /* WGDEVICE_A_IFNAME */
                   "3400 0880 3000 0080"                  /* WGDEVICE_A_PEERS, one peer */
                   "2400 0100"                            /* WGPEER_A_PUBLIC_KEY */
                   "0000000000000000000000000000000000000000000000000000000000000000"
                   "0800 0300 01000000"); /* WGPEER_A_FLAGS: REMOVE_ME */
    assert_true(wireguard_is_written(&w));
}

/* ---- many messages ------------------------------------------------------------------------- */

/* What the kernel would have made of all messages: how often each thing was told. */
struct told {
    size_t messages, device_flags, private_keys;
    size_t prefixes[64], replaced[64], preshared[64], update_only[64];
    uint32_t next_prefix[64]; /* prefixes of a peer are numbered: they come in order, once each */
};

static void read_peer(const struct nlattr *nest, struct told *told)
{
    const struct nlattr *attribute, *prefix, *field;
    size_t number = SIZE_MAX;

    mnl_attr_for_each_nested(attribute, nest)
    {
        uint16_t type = mnl_attr_get_type(attribute);
        if (type == WGPEER_A_PUBLIC_KEY)
            number = ((const uint8_t *)mnl_attr_get_payload(attribute))[0];
        assert_true(number < 64);
        if (type == WGPEER_A_FLAGS) {
            told->replaced[number] += (attribute_u32(attribute) & WGPEER_F_REPLACE_ALLOWEDIPS) != 0;
            told->update_only[number] += (attribute_u32(attribute) & WGPEER_F_UPDATE_ONLY) != 0;
        }
        if (type == WGPEER_A_PRESHARED_KEY)
            told->preshared[number]++;
        if (type != WGPEER_A_ALLOWEDIPS)
            continue;
        mnl_attr_for_each_nested(prefix, attribute)
        {
            mnl_attr_for_each_nested(field, prefix)
            {
                if (mnl_attr_get_type(field) == WGALLOWEDIP_A_IPADDR)
                    assert_int_equal(ntohl(attribute_u32(field)), told->next_prefix[number]++);
            }
            told->prefixes[number]++;
        }
    }
}

static void read_message(const struct nlmsghdr *message, struct told *told)
{
    const struct nlattr *attribute, *peer;

    told->messages++;
    mnl_attr_for_each(attribute, message, sizeof(struct genlmsghdr))
    {
        switch (mnl_attr_get_type(attribute)) {
        case WGDEVICE_A_FLAGS:
            told->device_flags++;
            break;
        case WGDEVICE_A_PRIVATE_KEY:
            told->private_keys++;
            break;
        case WGDEVICE_A_PEERS:
            mnl_attr_for_each_nested(peer, attribute)
            {
                read_peer(peer, told);
            }
        }
    }
}

#define PEERS 40

static struct netlink_wireguard_peer_change peers[PEERS];
static struct netlink_wireguard_prefix_change *prefixes;

/* Peer i has i * i prefixes: some of none, some of more than a message. */
static struct netlink_wireguard_changes many(void)
{
    size_t count = 0;

    prefixes = calloc(PEERS * PEERS * PEERS, sizeof(*prefixes));
    assert_non_null(prefixes);
    memset(peers, 0, sizeof(peers));
    for (size_t i = 0; i < PEERS; i++) {
        peers[i].public_key[0] = (uint8_t)i;
        peers[i].fields = NETLINK_WIREGUARD_PEER_REPLACE_PREFIXES |
                          NETLINK_WIREGUARD_PEER_UPDATE_ONLY | NETLINK_WIREGUARD_PEER_PRESHARED_KEY;
        peers[i].first_prefix = count;
        peers[i].prefix_count = i * i;
        for (uint32_t p = 0; p < i * i; p++) {
            uint32_t address = htonl(p);
            prefixes[count].prefix = (struct netlink_address){.family = 4, .length = 32};
            memcpy(prefixes[count++].prefix.bytes, &address, sizeof(address));
        }
    }
    return (struct netlink_wireguard_changes){
        .device = {.fields = NETLINK_WIREGUARD_REPLACE_PEERS | NETLINK_WIREGUARD_PRIVATE_KEY},
        .peers = peers,
        .peer_count = PEERS,
        .prefixes = prefixes,
        .prefix_count = count,
    };
}

/* Of every capacity that holds at least one peer's fields and one prefix. */
static void case_c98_pitfall_57_replacing_stands_in_first_fragments_only(void **state)
{
    (void)state;
    const struct netlink_wireguard_changes changes = many();
    size_t fewest = SIZE_MAX;

    for (size_t capacity = 200; capacity <= WIREGUARD_MESSAGE_MAXIMUM; capacity += 4) {
        struct told told = {0};
        struct wireguard_writing w = writing(&changes, capacity);
        while (!wireguard_is_written(&w)) {
            const struct nlmsghdr *message = wireguard_write_next(&w, buffer);
            assert_non_null(message);
            assert_true(message->nlmsg_len <= capacity);
            read_message(message, &told);
        }
        assert_int_equal(told.device_flags, 1);
        assert_int_equal(told.private_keys, 1);
        for (size_t i = 0; i < PEERS; i++) {
            assert_int_equal(told.prefixes[i], i * i);
            assert_int_equal(told.replaced[i], 1);
            assert_int_equal(told.preshared[i], 1);
            assert_true(told.update_only[i] >= 1); /* in every fragment: none may create */
        }
        assert_true(told.messages > 1);
        if (told.messages < fewest)
            fewest = told.messages;
    }
    /* 28 bytes for each of 20,540 prefixes in 8 KiB: full messages, not one for each peer. */
    assert_true(fewest <= 20540 * 28 / 8000 + 3);
    free(prefixes);
}

static void capacity_too_small_for_a_peer_is_told_and_does_not_loop(void **state)
{
    (void)state;
    struct netlink_wireguard_peer_change peer = {.fields = 0};
    const struct netlink_wireguard_changes changes = {.peers = &peer, .peer_count = 1};
    struct wireguard_writing w = writing(&changes, 64);
    assert_non_null(wireguard_write_next(&w, buffer));
    assert_false(wireguard_is_written(&w));
    assert_null(wireguard_write_next(&w, buffer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_but_the_name),
        cmocka_unit_test(device_fields),
        cmocka_unit_test(peer_with_everything),
        cmocka_unit_test(removed_peer_has_no_prefixes),
        cmocka_unit_test(case_c98_pitfall_57_replacing_stands_in_first_fragments_only),
        cmocka_unit_test(capacity_too_small_for_a_peer_is_told_and_does_not_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
