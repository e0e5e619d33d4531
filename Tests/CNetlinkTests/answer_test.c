/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel answers: as it should be, cut off, and hostile. */
#include "bytes.h"
#include "requests.h"

#include <errno.h>
#include <linux/rtnetlink.h>

#define HEADER(length, type) length " " type " 0000 01000000 00000000" /* nlmsghdr, sequence 1 */

static char explanation[NETLINK_EXPLANATION_CAPACITY];
static size_t taken;

static int count(const struct nlmsghdr *message, void *context)
{
    (void)message;
    (void)context;
    taken++;
    return 0;
}

static struct netlink_reading reading(void)
{
    taken = 0;
    explanation[0] = '\0';
    return (struct netlink_reading){.sequence = 1, .take = count, .explanation = explanation};
}

static int read_hex(struct netlink_reading *reading, const char *text)
{
    struct bytes bytes = bytes_from_hex(text);
    return netlink_read_datagram(reading, bytes.data, bytes.length);
}

/* ---- frames -------------------------------------------------------------------------------- */

static void acknowledgement_ends_a_request(void **state)
{
    (void)state;
    struct netlink_reading r = reading();
    assert_int_equal(read_hex(&r, HEADER("24000000", "0200") /* NLMSG_ERROR */
                              "00000000"                     /* no error */
                              "14000000 1000 0500 01000000 00000000"),
                     0);
    assert_true(r.done);
}

static void error_has_the_kernels_words(void **state)
{
    (void)state;
    struct netlink_reading r = reading();
    /* NLM_F_CAPPED | NLM_F_ACK_TLVS; NLMSGERR_ATTR_MSG 1: "bad\x1b!" and a NUL */
    assert_int_equal(read_hex(&r, "30000000 0200 0003 01000000 00000000"
                                  "eaffffff 14000000 1000 0500 01000000 00000000"
                                  "0a00 0100 6261641b2100 0000"),
                     -EINVAL);
    assert_string_equal(explanation, "bad!");
    assert_true(r.done);
}

static void words_follow_the_body_of_what_failed(void **state)
{
    (void)state;
    struct netlink_reading r = reading();
    /* Not capped: the request's 8 further bytes come first. */
    assert_int_equal(read_hex(&r, "34000000 0200 0002 01000000 00000000"
                                  "ffffffff 18000000 1000 0500 01000000 00000000"
                                  "1122334455667788"
                                  "0800 0100 6e6f0000"),
                     -EPERM);
    assert_string_equal(explanation, "no");
}

static void body_that_claims_to_be_longer_than_the_message_is_survived(void **state)
{
    (void)state;
    struct netlink_reading r = reading();
    assert_int_equal(read_hex(&r, "2c000000 0200 0002 01000000 00000000"
                                  "ffffffff f0ffffff 1000 0500 01000000 00000000"
                                  "0800 0100 6e6f0000"),
                     -EPERM);
    assert_string_equal(explanation, "");
}

static void error_code_that_is_none_is_refused(void **state)
{
    (void)state;
    struct netlink_reading r = reading();
    assert_int_equal(read_hex(&r,
                              HEADER("24000000", "0200") "01000000"
                                                         "14000000 1000 0500 01000000 00000000"),
                     -EPROTO);
    assert_int_equal(read_hex(&r,
                              HEADER("24000000", "0200") "00000080"
                                                         "14000000 1000 0500 01000000 00000000"),
                     -EPROTO);
    assert_int_equal(read_hex(&r, HEADER("14000000", "0200") "00000000"), -EPROTO);
}

static void late_answer_to_another_request_is_skipped(void **state)
{
    (void)state;
    struct netlink_reading r = reading();
    assert_int_equal(read_hex(&r, "24000000 0200 0000 09000000 00000000"
                                  "ffffffff 14000000 1000 0500 09000000 00000000"),
                     0);
    assert_false(r.done);
    assert_int_equal(taken, 0);
}

static void case_c97_dump_goes_on_until_done_and_done_has_a_code(void **state)
{
    (void)state;
    struct netlink_reading r = reading();
    assert_int_equal(read_hex(&r, "10000000 1000 0200 01000000 00000000"
                                  "10000000 1000 0200 01000000 00000000"),
                     0);
    assert_false(r.done);
    assert_int_equal(taken, 2);
    assert_int_equal(read_hex(&r, "10000000 1000 0200 01000000 00000000"
                                  "14000000 0300 0200 01000000 00000000 00000000"
                                  "10000000 1000 0200 01000000 00000000"),
                     0);
    assert_true(r.done);
    assert_int_equal(taken, 3);
    r = reading();
    assert_int_equal(read_hex(&r, "14000000 0300 0200 01000000 00000000 edffffff"), -ENODEV);
}

static void interrupted_dump_is_noticed(void **state)
{
    (void)state;
    struct netlink_reading r = reading();
    read_hex(&r, "10000000 1000 1200 01000000 00000000"); /* NLM_F_DUMP_INTR 0x10 */
    assert_true(r.interrupted);
}

static void truncated_frames_are_not_read(void **state)
{
    (void)state;
    struct netlink_reading r = reading();
    assert_int_equal(read_hex(&r, "10000000 1000 0200 01000000"), 0);          /* short */
    assert_int_equal(read_hex(&r, "0f000000 1000 0200 01000000 00000000"), 0); /* says less */
    assert_int_equal(read_hex(&r, "00000000 1000 0200 01000000 00000000"), 0); /* says nothing */
    assert_int_equal(read_hex(&r, "ffffffff 1000 0200 01000000 00000000"), 0); /* negative */
    assert_int_equal(read_hex(&r, "18000000 1000 0200 01000000 00000000"), 0); /* says more */
    assert_int_equal(taken, 0);
}

/* ---- links --------------------------------------------------------------------------------- */

static const struct nlmsghdr *message(struct bytes *bytes, const char *text)
{
    *bytes = bytes_from_hex(text);
    const struct nlmsghdr *header = (const struct nlmsghdr *)bytes->data;
    assert_int_equal(header->nlmsg_len, bytes->length);
    return header;
}

static void link_is_read(void **state)
{
    (void)state;
    struct bytes bytes;
    struct netlink_link link;
    assert_true(link_parse(
        message(&bytes,
                HEADER("54000000", "1000") "00 00 feff 07000000 41000000 00000000" /* IFF_UP */
                                           "0800 0300 77673000"                    /* IFLA_IFNAME */
                                           "0800 0400 8c050000"          /* IFLA_MTU 1420 */
                                           "0a00 1400 616c69617321 0000" /* IFLA_IFALIAS 20 */
                                           "1800 1280"                   /* IFLA_LINKINFO */
                                           "0e00 0100 776972656775617264 00 0000" /* kind */
                                           "0400 0280"),                          /* data */
        &link));
    assert_int_equal(link.index, 7);
    assert_true(link.up);
    assert_int_equal(link.mtu, 1420);
    assert_string_equal(link.name, "wg0");
    assert_string_equal(link.kind, "wireguard");
    assert_string_equal(link.alias, "alias!"); /* the kernel sends it with or without a NUL */
}

static void hostile_links_are_cut_or_refused(void **state)
{
    (void)state;
    struct bytes bytes;
    struct netlink_link link;
    /* A name of 24 characters is cut, a short MTU is none. */
    assert_true(link_parse(
        message(&bytes, HEADER("44000000",
                               "1000") "00 00 0000 07000000 00000000 00000000"
                                       "1c00 0300 616161616161616161616161616161616161616161616161"
                                       "0600 0400 8c05 0000"),
        &link));
    assert_string_equal(link.name, "aaaaaaaaaaaaaaa");
    assert_int_equal(link.mtu, 0);
    /* Family AF_BRIDGE, index 0, no name, a message without a header. */
    assert_false(link_parse(
        message(&bytes, HEADER("28000000", "1000") "07 00 0000 07000000 00000000 00000000"
                                                   "0800 0300 77673000"),
        &link));
    assert_false(link_parse(
        message(&bytes, HEADER("28000000", "1000") "00 00 0000 00000000 00000000 00000000"
                                                   "0800 0300 77673000"),
        &link));
    assert_false(link_parse(
        message(&bytes, HEADER("20000000", "1000") "00 00 0000 07000000 00000000 00000000"),
        &link));
    assert_false(
        link_parse(message(&bytes, HEADER("18000000", "1000") "00 00 0000 07000000"), &link));
    /* An attribute that says it is longer than the message, or nothing at all. */
    assert_false(link_parse(
        message(&bytes, HEADER("28000000", "1000") "00 00 0000 07000000 00000000 00000000"
                                                   "0900 0300 77673000"),
        &link));
    assert_false(link_parse(
        message(&bytes, HEADER("28000000", "1000") "00 00 0000 07000000 00000000 00000000"
                                                   "0000 0300 77673000"),
        &link));
}

/* ---- addresses ----------------------------------------------------------------------------- */

static void local_address_counts_not_the_peers(void **state)
{
    (void)state;
    struct bytes bytes;
    struct netlink_interface_address address;
    assert_true(address_parse(
        message(&bytes,
                HEADER("30000000", "1400") "02 18 80 00 03000000" /* ifaddrmsg: /24 */
                                           "0800 0100 0a090002"   /* IFA_ADDRESS: the peer's */
                                           "0800 0200 0a090001"   /* IFA_LOCAL */
                                           "0500 0b00 4e 000000"),
        &address));
    assert_int_equal(address.protocol, NETLINK_OWN_PROTOCOL);
    assert_int_equal(address.index, 3);
    assert_int_equal(address.address.length, 24);
    assert_memory_equal(address.address.bytes, ((uint8_t[]){10, 9, 0, 1}), 4);
    /* In the other order. */
    assert_true(address_parse(message(&bytes, HEADER("28000000", "1400") "02 18 80 00 03000000"
                                                                         "0800 0200 0a090001"
                                                                         "0800 0100 0a090002"),
                              &address));
    assert_int_equal(address.protocol, 0);
    assert_memory_equal(address.address.bytes, ((uint8_t[]){10, 9, 0, 1}), 4);
}

static void hostile_addresses_are_refused(void **state)
{
    (void)state;
    struct bytes bytes;
    struct netlink_interface_address address;
    /* /33, an IPv6 address of four bytes, an unknown family, none. */
    assert_false(address_parse(message(&bytes, HEADER("20000000", "1400") "02 21 80 00 03000000"
                                                                          "0800 0200 0a090001"),
                               &address));
    assert_false(address_parse(message(&bytes, HEADER("20000000", "1400") "0a 18 80 00 03000000"
                                                                          "0800 0200 0a090001"),
                               &address));
    assert_false(address_parse(message(&bytes, HEADER("20000000", "1400") "0c 18 80 00 03000000"
                                                                          "0800 0200 0a090001"),
                               &address));
    assert_false(address_parse(message(&bytes, HEADER("18000000", "1400") "02 18 80 00 03000000"),
                               &address));
}

/* ---- routes -------------------------------------------------------------------------------- */

static void route_is_read_with_the_table_of_its_attribute(void **state)
{
    (void)state;
    struct bytes bytes;
    struct netlink_routes routes = {0};
    assert_int_equal(
        route_parse(message(&bytes,
                            HEADER("3c000000",
                                   "1800") "02 10 00 00 fc 4e fd 01 00000000" /* RT_TABLE_COMPAT */
                                           "0800 0f00 6cca0000"
                                           "0800 0100 0a140000"
                                           "0800 0600 4d000000"
                                           "0800 0400 03000000"),
                    &routes),
        0);
    assert_int_equal(routes.count, 1);
    assert_int_equal(routes.items[0].table, 51820);
    assert_int_equal(routes.items[0].metric, 77);
    assert_int_equal(routes.items[0].index, 3);
    assert_int_equal(routes.items[0].protocol, NETLINK_OWN_PROTOCOL);
    assert_int_equal(routes.items[0].destination.length, 16);
    netlink_routes_free(&routes);
}

static void ipv6_default_metric_is_none(void **state)
{
    (void)state;
    struct bytes bytes;
    struct netlink_routes routes = {0};
    assert_int_equal(
        route_parse(message(&bytes, HEADER("2c000000", "1800") "0a 00 00 00 fe 4e 00 01 00000000"
                                                               "0800 0600 00040000"
                                                               "0800 0400 03000000"),
                    &routes),
        0);
    assert_int_equal(routes.items[0].metric, 0);
    assert_int_equal(routes.items[0].destination.family, 6);
    netlink_routes_free(&routes);
}

static void every_next_hop_is_a_route(void **state)
{
    (void)state;
    struct bytes bytes;
    struct netlink_routes routes = {0};
    assert_int_equal(
        route_parse(message(&bytes,
                            HEADER("40000000", "1800") "02 00 00 00 fe 03 00 01 00000000"
                                                       "2400 0900"           /* RTA_MULTIPATH 9 */
                                                       "1000 00 00 03000000" /* rtnexthop: link 3 */
                                                       "0800 0500 0a000001"  /* RTA_GATEWAY */
                                                       "1000 00 00 04000000" /* rtnexthop: link 4 */
                                                       "0800 0500 0a000002"),
                    &routes),
        0);
    assert_int_equal(routes.count, 2);
    assert_int_equal(routes.items[0].index, 3);
    assert_int_equal(routes.items[1].index, 4);
    netlink_routes_free(&routes);
    /* Lengths of 0 and beyond the end. */
    assert_int_equal(
        route_parse(
            message(&bytes,
                    HEADER("38000000", "1800") "02 00 00 00 fe 03 00 01 00000000"
                                               "1c00 0900 1000 00 00 03000000 0800 0500 0a000001"
                                               "0000 00 00 04000000"),
            &routes),
        0);
    assert_int_equal(routes.count, 1);
    netlink_routes_free(&routes);
    assert_int_equal(
        route_parse(message(&bytes, HEADER("28000000", "1800") "02 00 00 00 fe 03 00 01 00000000"
                                                               "0c00 0900 0900 00 00 03000000"),
                    &routes),
        0);
    assert_int_equal(routes.count, 0);
}

static void cached_and_malformed_routes_are_left_out(void **state)
{
    (void)state;
    struct bytes bytes;
    struct netlink_routes routes = {0};
    route_parse(message(&bytes, HEADER("1c000000", "1800") "02 00 00 00 fe 03 00 01 00020000"),
                &routes); /* RTM_F_CLONED 0x200 */
    route_parse(message(&bytes, HEADER("1c000000", "1800") "02 21 00 00 fe 03 00 01 00000000"),
                &routes); /* /33 */
    route_parse(message(&bytes, HEADER("1c000000", "1800") "80 00 00 00 fe 03 00 01 00000000"),
                &routes); /* RTNL_FAMILY_IPMR */
    route_parse(message(&bytes, HEADER("24000000", "1800") "0a 20 00 00 fe 03 00 01 00000000"
                                                           "0800 0100 0a140000"),
                &routes); /* four bytes for IPv6 */
    route_parse(message(&bytes, HEADER("14000000", "1800") "02 00 00 00"), &routes);
    assert_int_equal(routes.count, 0);
}

static void path_is_read_with_mtu_and_an_ipv6_gateway(void **state)
{
    (void)state;
    struct bytes bytes;
    struct netlink_path path;
    assert_true(path_parse(
        message(&bytes,
                HEADER("58000000",
                       "1800") "02 20 00 00 fc 00 00 01 00000000"
                               "0800 0f00 6cca0000" /* RTA_TABLE */
                               "0800 0400 03000000" /* RTA_OIF */
                               "0800 0700 c0000201" /* RTA_PREFSRC */
                               "1600 1200 0a00 fe800000000000000000000000000001 0000" /* VIA */
                               "0c00 0880"            /* RTA_METRICS */
                               "0800 0200 84050000"), /* RTAX_MTU 1412 */
        &path));
    assert_int_equal(path.index, 3);
    assert_int_equal(path.table, 51820);
    assert_int_equal(path.mtu, 1412);
    assert_int_equal(path.gateway.family, 6);
    assert_int_equal(path.gateway.bytes[0], 0xfe);
    assert_int_equal(path.source.family, 4);
    /* No link: nowhere. */
    assert_false(path_parse(
        message(&bytes, HEADER("1c000000", "1800") "02 20 00 00 fe 00 00 07 00000000"), &path));
}

/* ---- rules --------------------------------------------------------------------------------- */

static void rule_is_read(void **state)
{
    (void)state;
    struct bytes bytes;
    struct netlink_rule rule;
    assert_true(rule_parse(
        message(&bytes, HEADER("4c000000", "2000") "02 00 00 00 fc 00 00 01 02000000" /* inverted */
                                                   "0800 0f00 6cca0000" /* FRA_TABLE */
                                                   "0800 0d00 ffffffff" /* FRA_SUPPRESS_IFGROUP */
                                                   "0800 0600 fc7f0000" /* FRA_PRIORITY */
                                                   "0800 0a00 6cca0000" /* FRA_FWMARK */
                                                   "0800 1000 ffffffff" /* FRA_FWMASK */
                                                   "0500 1500 4e 000000"), /* FRA_PROTOCOL */
        &rule));
    assert_true(rule.inverted && rule.has_mark && rule.plain);
    assert_int_equal(rule.table, 51820);
    assert_int_equal(rule.priority, 32764);
    assert_int_equal(rule.mark, 51820);
    assert_int_equal(rule.protocol, NETLINK_OWN_PROTOCOL);
    assert_int_equal(rule.suppress_prefix_length, NETLINK_NO_SUPPRESSION);
}

static void rule_that_selects_more_is_not_plain(void **state)
{
    (void)state;
    struct bytes bytes;
    struct netlink_rule rule;
    assert_true(rule_parse(
        message(&bytes, HEADER("24000000", "2000") "02 00 18 00 fe 00 00 01 00000000"
                                                   "0800 0200 0a000000"), /* FRA_SRC 10.0.0.0/24 */
        &rule));
    assert_false(rule.plain);
    assert_true(rule_parse(
        message(&bytes, HEADER("1c000000",
                               "2000") "02 00 00 00 fe 00 00 06 00000000"), /* FR_ACT_BLACKHOLE */
        &rule));
    assert_false(rule.plain);
    assert_false(rule_parse(
        message(&bytes, HEADER("1c000000",
                               "2000") "80 00 00 00 fe 00 00 01 00000000"), /* RTNL_FAMILY_IPMR */
        &rule));
    assert_false(rule_parse(message(&bytes, HEADER("14000000", "2000") "02 00 00 00"), &rule));
}

/* ---- events -------------------------------------------------------------------------------- */

static void event_carries_link_table_protocol_and_port(void **state)
{
    (void)state;
    struct bytes bytes;
    struct netlink_event event;
    assert_true(event_parse(message(&bytes, "2c000000 1900 0000 01000000 39050000" /* port 1337 */
                                            "02 00 00 00 fc 4e fd 01 00000000"
                                            "0800 0f00 6cca0000"
                                            "0800 0400 03000000"),
                            &event));
    assert_int_equal(event.kind, NETLINK_EVENT_ROUTE_GONE);
    assert_int_equal(event.table, 51820);
    assert_int_equal(event.index, 3);
    assert_int_equal(event.protocol, NETLINK_OWN_PROTOCOL);
    assert_int_equal(event.port, 1337);
    assert_int_equal(event.family, 4);
    /* RTM_NEWNETCONF is 80, NETCONFA_IFINDEX 1 with -1 for all, NETCONFA_FORWARDING 2. */
    assert_true(event_parse(
        message(&bytes, HEADER("24000000", "5000") "02 00 0000"
                                                   "0800 0100 ffffffff 0800 0200 01000000"),
        &event));
    assert_int_equal(event.kind, NETLINK_EVENT_FORWARDING);
    assert_int_equal(event.family, 4);
    /* Of one link, or another setting (NETCONFA_RP_FILTER 3), or nothing at all. */
    assert_false(event_parse(
        message(&bytes, HEADER("24000000", "5000") "02 00 0000"
                                                   "0800 0100 03000000 0800 0200 01000000"),
        &event));
    assert_false(event_parse(
        message(&bytes, HEADER("24000000", "5000") "02 00 0000"
                                                   "0800 0100 ffffffff 0800 0300 01000000"),
        &event));
    assert_false(event_parse(message(&bytes, HEADER("10000000", "5000")), &event));
    /* A neighbour (RTM_NEWNEIGH 28) is not told, nor what the routing cache holds. */
    assert_false(event_parse(
        message(&bytes, HEADER("1c000000", "1c00") "02 00 0000 03000000 0200 00 00"), &event));
    assert_false(event_parse(
        message(&bytes, HEADER("1c000000", "1800") "02 00 00 00 fe 03 00 01 00020000"), &event));
    assert_false(event_parse(message(&bytes, HEADER("14000000", "1000") "00 00 0000"), &event));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acknowledgement_ends_a_request),
        cmocka_unit_test(error_has_the_kernels_words),
        cmocka_unit_test(words_follow_the_body_of_what_failed),
        cmocka_unit_test(body_that_claims_to_be_longer_than_the_message_is_survived),
        cmocka_unit_test(error_code_that_is_none_is_refused),
        cmocka_unit_test(late_answer_to_another_request_is_skipped),
        cmocka_unit_test(case_c97_dump_goes_on_until_done_and_done_has_a_code),
        cmocka_unit_test(interrupted_dump_is_noticed),
        cmocka_unit_test(truncated_frames_are_not_read),
        cmocka_unit_test(link_is_read),
        cmocka_unit_test(hostile_links_are_cut_or_refused),
        cmocka_unit_test(local_address_counts_not_the_peers),
        cmocka_unit_test(hostile_addresses_are_refused),
        cmocka_unit_test(route_is_read_with_the_table_of_its_attribute),
        cmocka_unit_test(ipv6_default_metric_is_none),
        cmocka_unit_test(every_next_hop_is_a_route),
        cmocka_unit_test(cached_and_malformed_routes_are_left_out),
        cmocka_unit_test(path_is_read_with_mtu_and_an_ipv6_gateway),
        cmocka_unit_test(rule_is_read),
        cmocka_unit_test(rule_that_selects_more_is_not_plain),
        cmocka_unit_test(event_carries_link_table_protocol_and_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
