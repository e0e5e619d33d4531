/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel's WireGuard tells of a device: whole, in fragments, cut off, and hostile. */
#include "bytes.h"
#include "wireguard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#define KEY(byte)                                                                                  \
    byte byte byte byte byte byte byte byte byte byte byte byte byte byte byte byte byte byte byte \
        byte byte byte byte byte byte byte byte byte byte byte byte byte
#define GENERIC "1f00 0200 01000000 00000000 00 01 0000" /* family, WG_CMD_GET_DEVICE, version */

static struct netlink_wireguard_device device;
static struct wireguard_reading reading;

static int begin(void **state)
{
    (void)state;
    memset(&device, 0, sizeof(device));
    reading = (struct wireguard_reading){.device = &device, .last_peer = SIZE_MAX, .seed = 1};
    return 0;
}

static int end(void **state)
{
    (void)state;
    wireguard_restart(&reading);
    return 0;
}

static int take_hex(const char *text)
{
    struct bytes bytes = bytes_from_hex(text);
    const struct nlmsghdr *message = (const struct nlmsghdr *)bytes.data;
    assert_int_equal(message->nlmsg_len, bytes.length);
    return wireguard_take(message, &reading);
}

static void family_is_read(void **state)
{
    (void)state;
    struct bytes bytes = bytes_from_hex("24000000 1000 0000 01000000 00000000" /* GENL_ID_CTRL */
                                        "01 02 0000"                           /* NEWFAMILY */
                                        "0600 0100 1f00 0000"                  /* FAMILY_ID 1 */
                                        "0800 0300 01000000");
    uint16_t family = 0;
    assert_true(family_parse((const struct nlmsghdr *)bytes.data, &family));
    assert_int_equal(family, 0x1f);
    bytes = bytes_from_hex("14000000 1000 0000 01000000 00000000 01 02 0000");
    family = 0;
    assert_false(family_parse((const struct nlmsghdr *)bytes.data, &family));
}

static void device_and_peer_are_read(void **state)
{
    (void)state;
    assert_int_equal(
        take_hex("3c010000" GENERIC "0800 0100 05000000"         /* WGDEVICE_A_IFINDEX 1 */
                 "0800 0200 77673000"                            /* WGDEVICE_A_IFNAME 2 */
                 "2400 0300" KEY("11")                           /* PRIVATE_KEY 3 */
                 "2400 0400" KEY("12")                           /* PUBLIC_KEY 4 */
                 "0600 0600 6cca 0000"                           /* LISTEN_PORT 6 */
                 "0800 0700 6cca0000"                            /* FWMARK 7 */
                 "c000 0880 bc00 0080"                           /* PEERS 8, one peer */
                 "2400 0100" KEY("22")                           /* WGPEER_A_PUBLIC_KEY 1 */
                 "2400 0200" KEY("33")                           /* PRESHARED_KEY 2 */
                 "1400 0600 0a00000000000000 0500000000000000"   /* LAST_HANDSHAKE_TIME 6 */
                 "0600 0500 1900 0000"                           /* KEEPALIVE 5 */
                 "0c00 0800 0201000000000000"                    /* TX_BYTES 8 */
                 "0c00 0700 0301000000000000"                    /* RX_BYTES 7 */
                 "0800 0a00 01000000"                            /* PROTOCOL_VERSION 10 */
                 "1400 0400 0200 ca6c c0000202 0000000000000000" /* ENDPOINT 4: sockaddr_in */
                 "2000 0980 1c00 0080"                           /* ALLOWEDIPS 9, one prefix */
                 "0500 0300 18 000000 0600 0100 0200 0000 0800 0200 0a090000"),
        0);
    assert_int_equal(device.index, 5);
    assert_true(device.has_private_key);
    assert_int_equal(device.private_key[31], 0x11);
    assert_int_equal(device.public_key[31], 0x12);
    assert_int_equal(device.listen_port, 51820);
    assert_int_equal(device.fwmark, 51820);
    assert_int_equal(device.peer_count, 1);
    const struct netlink_wireguard_peer *peer = &device.peers[0];
    assert_int_equal(peer->public_key[0], 0x22);
    assert_int_equal(peer->preshared_key[31], 0x33);
    assert_int_equal(peer->last_handshake_seconds, 10);
    assert_int_equal(peer->last_handshake_nanoseconds, 5);
    assert_int_equal(peer->keepalive, 25);
    assert_int_equal(peer->rx_bytes, 0x103);
    assert_int_equal(peer->tx_bytes, 0x102);
    assert_int_equal(peer->endpoint.family, 4);
    assert_int_equal(peer->endpoint.port, 51820);
    assert_int_equal(peer->endpoint.bytes[3], 2);
    assert_int_equal(peer->prefix_count, 1);
    assert_int_equal(peer->prefixes[0].length, 24);
    assert_int_equal(peer->prefixes[0].bytes[1], 9);
}

#define PEER(key) "2c00 0880 2800 0080 2400 0100" KEY(key)
#define PEER_WITH(key, byte)                                                                       \
    "4c00 0880 4800 0080 2400 0100" KEY(key) "2000 0980 1c00 0080 0500 0300 20 000000"             \
                                             "0600 0100 0200 0000 0800 0200 0a0000" byte

static void case_c97_peer_goes_on_in_the_next_message(void **state)
{
    (void)state;
    assert_int_equal(take_hex("40000000" GENERIC PEER("01")), 0);
    assert_int_equal(take_hex("60000000" GENERIC PEER_WITH("02", "01")), 0);
    assert_int_equal(take_hex("60000000" GENERIC PEER_WITH("02", "02")), 0);
    assert_int_equal(take_hex("60000000" GENERIC PEER_WITH("03", "03")), 0);
    assert_int_equal(device.peer_count, 3);
    assert_int_equal(device.peers[0].prefix_count, 0);
    assert_int_equal(device.peers[1].prefix_count, 2);
    assert_int_equal(device.peers[1].prefixes[1].bytes[3], 2);
    assert_int_equal(device.peers[2].prefix_count, 1);
}

static void case_c98_dump_without_progress_is_refused(void **state)
{
    (void)state;
    assert_int_equal(take_hex("40000000" GENERIC PEER("01")), 0);
    assert_int_equal(take_hex("40000000" GENERIC PEER("01")), -EPROTO);
    assert_int_equal(take_hex("60000000" GENERIC PEER_WITH("02", "01")), 0);
    /* An earlier peer does not go on: the kernel has begun again. */
    assert_int_equal(take_hex("60000000" GENERIC PEER_WITH("01", "01")), -EPROTO);
}

static void restart_forgets_and_erases(void **state)
{
    (void)state;
    assert_int_equal(take_hex("60000000" GENERIC PEER_WITH("02", "01")), 0);
    assert_int_equal(take_hex("38000000" GENERIC "2400 0300" KEY("11")), 0);
    wireguard_restart(&reading);
    const struct netlink_wireguard_device nothing = {0};
    assert_memory_equal(&device, &nothing, sizeof(nothing));
    assert_int_equal(take_hex("60000000" GENERIC PEER_WITH("02", "01")), 0);
    assert_int_equal(device.peers[0].prefix_count, 1);
}

static void hostile_answers_are_refused_or_read_as_nothing(void **state)
{
    (void)state;
    /* No header, a key of 31 bytes, none at all, /33, an unknown family, no address. */
    assert_int_equal(take_hex("10000000 1f00 0200 01000000 00000000"), -EPROTO);
    assert_int_equal(take_hex("1c000000" GENERIC "0800 0880 0400 0080"), -EPROTO);
    assert_int_equal(take_hex("24000000" GENERIC "1000 0880 0c00 0080 0600 0100 1111 0000"),
                     -EPROTO);
    assert_int_equal(take_hex("60000000" GENERIC "4c00 0880 4800 0080 2400 0100" KEY(
                         "01") "2000 0980 1c00 0080 0500 0300 21 000000"
                               "0600 0100 0200 0000 0800 0200 0a000001"),
                     -EPROTO);
    assert_int_equal(take_hex("60000000" GENERIC "4c00 0880 4800 0080 2400 0100" KEY(
                         "02") "2000 0980 1c00 0080 0500 0300 20 000000"
                               "0600 0100 0300 0000 0800 0200 0a000001"),
                     -EPROTO);
    assert_int_equal(take_hex("48000000" GENERIC
                              "3400 0880 3000 0080 2400 0100" KEY("03") "0800 0980 0400 0080"),
                     -EPROTO);
    /* A short private key is none, a nest longer than its message is not there. */
    assert_int_equal(take_hex("1c000000" GENERIC "0800 0300 11111111"), 0);
    assert_false(device.has_private_key);
    assert_int_equal(take_hex("1c000000" GENERIC "ff00 0880 0400 0080"), 0);
}

/* ---- many peers ---------------------------------------------------------------------------- */

static struct nlmsghdr *peer_message(void *buffer, uint32_t number, uint32_t prefixes)
{
    uint8_t key[NETLINK_KEY_SIZE] = {0};
    struct nlmsghdr *message = netlink_begin(buffer, 4096, 0x1f);

    memcpy(key, &number, sizeof(number));
    mnl_nlmsg_put_extra_header(message, sizeof(struct genlmsghdr));
    struct nlattr *list = mnl_attr_nest_start(message, WGDEVICE_A_PEERS);
    struct nlattr *peer = mnl_attr_nest_start(message, 0);
    mnl_attr_put(message, WGPEER_A_PUBLIC_KEY, sizeof(key), key);
    struct nlattr *allowed = mnl_attr_nest_start(message, WGPEER_A_ALLOWEDIPS);
    for (uint32_t i = 0; i < prefixes; i++) {
        struct nlattr *prefix = mnl_attr_nest_start(message, 0);
        mnl_attr_put_u16(message, WGALLOWEDIP_A_FAMILY, AF_INET);
        mnl_attr_put_u32(message, WGALLOWEDIP_A_IPADDR, htonl(number * 16 + i));
        mnl_attr_put_u8(message, WGALLOWEDIP_A_CIDR_MASK, 32);
        mnl_attr_nest_end(message, prefix);
    }
    mnl_attr_nest_end(message, allowed);
    mnl_attr_nest_end(message, peer);
    mnl_attr_nest_end(message, list);
    return message;
}

/* Slots looked at for all peers: with hashing by key a small number for each. */
static void case_c99_many_peers_are_merged_in_linear_time(void **state)
{
    (void)state;
    static _Alignas(struct nlmsghdr) char buffer[4096];
    const uint32_t count = 20000;

    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(wireguard_take(peer_message(buffer, i, 3), &reading), 0);
        assert_int_equal(wireguard_take(peer_message(buffer, i, 2), &reading), 0);
    }
    assert_int_equal(device.peer_count, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number;
        memcpy(&number, device.peers[i].public_key, sizeof(number));
        assert_int_equal(number, i);
        assert_int_equal(device.peers[i].prefix_count, 5);
    }
    assert_true(reading.slot_count >= 2 * count && reading.slot_count <= 8 * count);
    /* The longest row of taken slots bounds every search. */
    size_t row = 0, longest = 0;
    for (size_t i = 0; i < reading.slot_count; i++) {
        row = reading.slots[i] != 0 ? row + 1 : 0;
        longest = row > longest ? row : longest;
    }
    assert_true(longest < 200);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(family_is_read),
        TEST(device_and_peer_are_read),
        TEST(case_c97_peer_goes_on_in_the_next_message),
        TEST(case_c98_dump_without_progress_is_refused),
        TEST(restart_forgets_and_erases),
        TEST(hostile_answers_are_refused_or_read_as_nothing),
        TEST(case_c99_many_peers_are_merged_in_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
