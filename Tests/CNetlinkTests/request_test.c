/* SPDX-License-Identifier: Apache-2.0 */
/* Every request, byte for byte. Numbers are those of a little-endian machine. The layouts are those
 * of linux/netlink.h, rtnetlink.h, if_link.h, if_addr.h, fib_rules.h, genetlink.h. Flags, sequence
 * and port (8 and 4 digits each) are filled in by the sender. */
#include "bytes.h"
#include "requests.h"
#include "wireguard.h"

#include <linux/rtnetlink.h>
#include <net/if.h>

static struct netlink_request request;

static const struct netlink_address v4 = {.family = 4, .length = 24, .bytes = {10, 9, 0, 1}};
static const struct netlink_address v6 = {
    .family = 6, .length = 64, .bytes = {0xfd, 0x09, [15] = 1}};

static void link_by_name(void **state)
{
    (void)state;
    assert_message(link_get_request(&request, "wg0", 0),
                   "30000000 1200 0000 00000000 00000000"  /* nlmsghdr: RTM_GETLINK 18 */
                   "00 00 0000 00000000 00000000 00000000" /* ifinfomsg */
                   "0800 0300 77673000"                    /* IFLA_IFNAME 3 */
                   "0800 1d00 08000000");                  /* IFLA_EXT_MASK 29: no stats */
}

static void link_by_index(void **state)
{
    (void)state;
    assert_message(link_get_request(&request, NULL, 7),
                   "28000000 1200 0000 00000000 00000000"  /* nlmsghdr: RTM_GETLINK */
                   "00 00 0000 07000000 00000000 00000000" /* ifinfomsg: index */
                   "0800 1d00 08000000");                  /* IFLA_EXT_MASK */
}

static void link_of_kind_wireguard(void **state)
{
    (void)state;
    assert_message(link_create_request(&request, "wg0", "wireguard", NULL),
                   "3c000000 1000 0000 00000000 00000000"   /* nlmsghdr: RTM_NEWLINK 16 */
                   "00 00 0000 00000000 00000000 00000000"  /* ifinfomsg */
                   "0800 0300 77673000"                     /* IFLA_IFNAME */
                   "1400 1280"                              /* IFLA_LINKINFO 18, nested */
                   "0e00 0100 776972656775617264 00 0000"); /* IFLA_INFO_KIND 1, padding */
}

static void probe_asks_for_an_impossible_mtu(void **state)
{
    (void)state;
    const uint32_t mtu = UINT32_MAX;
    assert_message(link_create_request(&request, "wg0", "wireguard", &mtu),
                   "44000000 1000 0000 00000000 00000000"   /* nlmsghdr: RTM_NEWLINK */
                   "00 00 0000 00000000 00000000 00000000"  /* ifinfomsg */
                   "0800 0300 77673000"                     /* IFLA_IFNAME */
                   "0800 0400 ffffffff"                     /* IFLA_MTU 4 */
                   "1400 1280"                              /* IFLA_LINKINFO, nested */
                   "0e00 0100 776972656775617264 00 0000"); /* IFLA_INFO_KIND */
}

static void link_is_removed_by_index(void **state)
{
    (void)state;
    assert_message(link_change_request(&request, RTM_DELLINK, 9),
                   "20000000 1100 0000 00000000 00000000"    /* nlmsghdr: RTM_DELLINK 17 */
                   "00 00 0000 09000000 00000000 00000000"); /* ifinfomsg: index */
}

static void address_list_names_the_link(void **state)
{
    (void)state;
    assert_message(address_list_request(&request, 3),
                   "18000000 1600 0000 00000000 00000000" /* nlmsghdr: RTM_GETADDR 22 */
                   "00 00 00 00 03000000");               /* ifaddrmsg: index */
}

static void address_of_ipv4_is_marked_as_ours(void **state)
{
    (void)state;
    assert_message(address_request(&request, RTM_NEWADDR, 3, &v4),
                   "30000000 1400 0000 00000000 00000000" /* nlmsghdr: RTM_NEWADDR 20 */
                   "02 18 00 00 03000000"                 /* ifaddrmsg: AF_INET, /24, index */
                   "0800 0200 0a090001"                   /* IFA_LOCAL 2 */
                   "0800 0100 0a090001"                   /* IFA_ADDRESS 1 */
                   "0500 0b00 4e 000000");                /* IFA_PROTO 11: ours, padding */
}

static void address_of_ipv6_has_no_duplicate_detection(void **state)
{
    (void)state;
    assert_message(address_request(&request, RTM_NEWADDR, 3, &v6),
                   "48000000 1400 0000 00000000 00000000"       /* nlmsghdr: RTM_NEWADDR */
                   "0a 40 02 00 03000000"                       /* /64, IFA_F_NODAD, index */
                   "1400 0200 fd090000000000000000000000000001" /* IFA_LOCAL */
                   "1400 0100 fd090000000000000000000000000001" /* IFA_ADDRESS */
                   "0500 0b00 4e 000000");                      /* IFA_PROTO */
}

static void removed_address_is_told_without_a_mark(void **state)
{
    (void)state;
    assert_message(address_request(&request, RTM_DELADDR, 3, &v4),
                   "28000000 1500 0000 00000000 00000000" /* nlmsghdr: RTM_DELADDR 21 */
                   "02 18 00 00 03000000"                 /* ifaddrmsg */
                   "0800 0200 0a090001"                   /* IFA_LOCAL */
                   "0800 0100 0a090001");                 /* IFA_ADDRESS */
}

static void route_list_asks_for_ours_through_the_link(void **state)
{
    (void)state;
    assert_message(route_list_request(&request, 4, NETLINK_OWN_PROTOCOL, 3),
                   "24000000 1a00 0000 00000000 00000000" /* nlmsghdr: RTM_GETROUTE 26 */
                   "02 00 00 00 00 4e 00 00 00000000"     /* rtmsg: AF_INET, protocol */
                   "0800 0400 03000000");                 /* RTA_OIF 4 */
    assert_message(route_list_request(&request, 6, 0, 0),
                   "1c000000 1a00 0000 00000000 00000000" /* nlmsghdr */
                   "0a 00 00 00 00 00 00 00 00000000");   /* rtmsg: AF_INET6, all */
}

static void route_has_scope_link_our_protocol_table_and_metric(void **state)
{
    (void)state;
    const struct netlink_route route = {
        .destination = {.family = 4, .length = 16, .bytes = {10, 20}},
        .table = 254,
        .metric = 77,
        .index = 3,
    };
    assert_message(route_request(&request, RTM_NEWROUTE, &route),
                   "3c000000 1800 0000 00000000 00000000" /* nlmsghdr: RTM_NEWROUTE 24 */
                   "02 10 00 00 fe 4e fd 01 00000000"     /* /16, main, ours, link, unicast */
                   "0800 0100 0a140000"                   /* RTA_DST 1 */
                   "0800 0400 03000000"                   /* RTA_OIF 4 */
                   "0800 0f00 fe000000"                   /* RTA_TABLE 15 */
                   "0800 0600 4d000000");                 /* RTA_PRIORITY 6 */
}

static void default_route_in_a_large_table_has_no_destination(void **state)
{
    (void)state;
    const struct netlink_route route = {
        .destination = {.family = 6},
        .table = 51820,
        .index = 3,
    };
    assert_message(route_request(&request, RTM_DELROUTE, &route),
                   "2c000000 1900 0000 00000000 00000000" /* nlmsghdr: RTM_DELROUTE 25 */
                   "0a 00 00 00 00 4e fd 01 00000000"     /* rtmsg: table in the attribute */
                   "0800 0400 03000000"                   /* RTA_OIF */
                   "0800 0f00 6cca0000");                 /* RTA_TABLE */
}

static void an_unreachable_route_names_no_link(void **state)
{
    (void)state;
    const struct netlink_route route = {
        .destination = {.family = 4},
        .table = 51820,
        .metric = 0xfffffffe,
        .type = NETLINK_ROUTE_UNREACHABLE,
    };
    assert_message(route_request(&request, RTM_NEWROUTE, &route),
                   "2c000000 1800 0000 00000000 00000000" /* nlmsghdr: RTM_NEWROUTE */
                   "02 00 00 00 00 4e 00 07 00000000"     /* rtmsg: universe, RTN_UNREACHABLE */
                   "0800 0f00 6cca0000"                   /* RTA_TABLE */
                   "0800 0600 feffffff");                 /* RTA_PRIORITY */
}

static void lookup_asks_for_the_real_table_with_a_mark(void **state)
{
    (void)state;
    assert_message(route_lookup_request(&request, &v4, 51820),
                   "2c000000 1a00 0000 00000000 00000000" /* nlmsghdr: RTM_GETROUTE */
                   "02 20 00 00 00 00 00 00 00100000"     /* /32, RTM_F_LOOKUP_TABLE 0x1000 */
                   "0800 0100 0a090001"                   /* RTA_DST */
                   "0800 1000 6cca0000");                 /* RTA_MARK 16 */
    assert_message(route_lookup_request(&request, &v6, 0),
                   "30000000 1a00 0000 00000000 00000000"         /* nlmsghdr */
                   "0a 80 00 00 00 00 00 00 00000000"             /* /128 */
                   "1400 0100 fd090000000000000000000000000001"); /* RTA_DST */
}

static void full_tunnel_rule_is_inverted_and_matches_the_whole_mark(void **state)
{
    (void)state;
    const struct netlink_rule rule = {
        .family = 4,
        .inverted = true,
        .has_mark = true,
        .priority = 32764,
        .table = 51820,
        .mark = 51820,
        .mask = UINT32_MAX,
        .suppress_prefix_length = NETLINK_NO_SUPPRESSION,
    };
    assert_message(rule_request(&request, RTM_NEWRULE, &rule),
                   "44000000 2000 0000 00000000 00000000" /* nlmsghdr: RTM_NEWRULE 32 */
                   "02 00 00 00 00 00 00 01 02000000"     /* FR_ACT_TO_TBL, FIB_RULE_INVERT */
                   "0800 0600 fc7f0000"                   /* FRA_PRIORITY 6 */
                   "0800 0a00 6cca0000"                   /* FRA_FWMARK 10 */
                   "0800 1000 ffffffff"                   /* FRA_FWMASK 16 */
                   "0800 0f00 6cca0000"                   /* FRA_TABLE 15 */
                   "0500 1500 4e 000000");                /* FRA_PROTOCOL 21, padding */
}

static void suppressing_rule_is_removed_by_all_it_has(void **state)
{
    (void)state;
    const struct netlink_rule rule = {
        .family = 6, .priority = 32763, .table = 254, .suppress_prefix_length = 0};
    assert_message(rule_request(&request, RTM_DELRULE, &rule),
                   "3c000000 2100 0000 00000000 00000000" /* nlmsghdr: RTM_DELRULE 33 */
                   "0a 00 00 00 fe 00 00 01 00000000"     /* fib_rule_hdr: AF_INET6, main */
                   "0800 0600 fb7f0000"                   /* FRA_PRIORITY */
                   "0800 0f00 fe000000"                   /* FRA_TABLE */
                   "0800 0e00 00000000"                   /* FRA_SUPPRESS_PREFIXLEN 14 */
                   "0500 1500 4e 000000");                /* FRA_PROTOCOL */
}

static void family_is_asked_for_by_name(void **state)
{
    (void)state;
    assert_message(family_request(&request),
                   "24000000 1000 0000 00000000 00000000"   /* nlmsghdr: GENL_ID_CTRL 16 */
                   "03 01 0000"                             /* CTRL_CMD_GETFAMILY 3, version */
                   "0e00 0200 776972656775617264 00 0000"); /* CTRL_ATTR_FAMILY_NAME 2 */
}

static void device_is_asked_for_by_name(void **state)
{
    (void)state;
    assert_message(wireguard_get_request(&request, 0x1f, "wg0"),
                   "1c000000 1f00 0000 00000000 00000000" /* nlmsghdr: the family */
                   "00 01 0000"                           /* WG_CMD_GET_DEVICE 0, version 1 */
                   "0800 0200 77673000");                 /* WGDEVICE_A_IFNAME 2 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(link_by_name),
        cmocka_unit_test(link_by_index),
        cmocka_unit_test(link_of_kind_wireguard),
        cmocka_unit_test(probe_asks_for_an_impossible_mtu),
        cmocka_unit_test(link_is_removed_by_index),
        cmocka_unit_test(address_list_names_the_link),
        cmocka_unit_test(address_of_ipv4_is_marked_as_ours),
        cmocka_unit_test(address_of_ipv6_has_no_duplicate_detection),
        cmocka_unit_test(removed_address_is_told_without_a_mark),
        cmocka_unit_test(route_list_asks_for_ours_through_the_link),
        cmocka_unit_test(route_has_scope_link_our_protocol_table_and_metric),
        cmocka_unit_test(an_unreachable_route_names_no_link),
        cmocka_unit_test(default_route_in_a_large_table_has_no_destination),
        cmocka_unit_test(lookup_asks_for_the_real_table_with_a_mark),
        cmocka_unit_test(full_tunnel_rule_is_inverted_and_matches_the_whole_mark),
        cmocka_unit_test(suppressing_rule_is_removed_by_all_it_has),
        cmocka_unit_test(family_is_asked_for_by_name),
        cmocka_unit_test(device_is_asked_for_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
