// SPDX-License-Identifier: Apache-2.0
/* What changes on the host, told by the kernel as it happens. */
#include "attributes.h"
#include "requests.h"

#include <errno.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Bytes the kernel may hold for us: a network daemon that replaces some thousand routes at once
 * should not end in an overflow. Beyond net.core.rmem_max only with CAP_NET_ADMIN. */
#define MONITOR_QUEUE (4 * 1024 * 1024)

#define GROUP(number) (1u << ((number)-1))

struct netlink_monitor {
    int fd;
    int rest;                       /* bytes of `buffer` not looked at yet */
    const struct nlmsghdr *message; /* the next in `buffer` */
    char *buffer;
};

int netlink_monitor_open(struct netlink_monitor **monitor)
{
    const uint32_t groups =
        GROUP(RTNLGRP_LINK) | GROUP(RTNLGRP_IPV4_IFADDR) | GROUP(RTNLGRP_IPV6_IFADDR) |
        GROUP(RTNLGRP_IPV4_ROUTE) | GROUP(RTNLGRP_IPV6_ROUTE) | GROUP(RTNLGRP_IPV4_RULE) |
        GROUP(RTNLGRP_IPV6_RULE) | GROUP(RTNLGRP_IPV4_NETCONF) | GROUP(RTNLGRP_IPV6_NETCONF);
    struct netlink_monitor *made = calloc(1, sizeof(*made));
    int size = MONITOR_QUEUE;

    *monitor = NULL;
    if (made == NULL)
        return -ENOMEM;
    made->buffer = malloc(NETLINK_RECEIVE_CAPACITY);
    made->fd =
        made->buffer == NULL ? -ENOMEM : netlink_socket_open(NETLINK_ROUTE, groups, SOCK_NONBLOCK);
    if (made->fd < 0) {
        int error = made->fd;
        netlink_monitor_close(made);
        return error;
    }
    if (setsockopt(made->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) != 0)
        setsockopt(made->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    *monitor = made;
    return 0;
}

void netlink_monitor_close(struct netlink_monitor *monitor)
{
    if (monitor == NULL)
        return;
    if (monitor->fd >= 0)
        close(monitor->fd);
    free(monitor->buffer);
    free(monitor);
}

int netlink_monitor_descriptor(const struct netlink_monitor *monitor)
{
    return monitor->fd;
}

/* ---- messages ------------------------------------------------------------------------------ */

static bool parse_link(const struct nlmsghdr *message, struct netlink_event *event)
{
    const struct ifinfomsg *header = mnl_nlmsg_get_payload(message);

    if (mnl_nlmsg_get_payload_len(message) < sizeof(*header) || header->ifi_family != AF_UNSPEC ||
        header->ifi_index <= 0)
        return false;
    event->index = (uint32_t)header->ifi_index;
    return true;
}

static bool parse_address(const struct nlmsghdr *message, struct netlink_event *event)
{
    struct netlink_interface_address address;

    if (!address_parse(message, &address))
        return false;
    event->family = address.address.family;
    event->protocol = address.protocol;
    event->index = address.index;
    return true;
}

static bool parse_route(const struct nlmsghdr *message, struct netlink_event *event)
{
    const struct rtmsg *header = mnl_nlmsg_get_payload(message);
    const struct nlattr *attribute;

    /* What is cached of a route comes and goes with traffic. */
    if (mnl_nlmsg_get_payload_len(message) < sizeof(*header) || header->rtm_flags & RTM_F_CLONED)
        return false;
    event->family = family_from_kernel(header->rtm_family);
    event->protocol = header->rtm_protocol;
    event->table = header->rtm_table;
    mnl_attr_for_each(attribute, message, sizeof(*header))
    {
        if (mnl_attr_get_type(attribute) == RTA_TABLE)
            event->table = attribute_u32(attribute);
        else if (mnl_attr_get_type(attribute) == RTA_OIF)
            event->index = attribute_u32(attribute);
    }
    return event->family != 0;
}

static bool parse_rule(const struct nlmsghdr *message, struct netlink_event *event)
{
    struct netlink_rule rule;

    if (!rule_parse(message, &rule))
        return false;
    event->family = rule.family;
    event->protocol = rule.protocol;
    event->table = rule.table;
    return true;
}

/* Of all settings that are told only this one, and only of the whole host. */
static bool parse_forwarding(const struct nlmsghdr *message, struct netlink_event *event)
{
    const struct netconfmsg *header = mnl_nlmsg_get_payload(message);
    const struct nlattr *attribute;
    bool is_forwarding = false;
    bool is_of_all = false;

    if (mnl_nlmsg_get_payload_len(message) < MNL_ALIGN(sizeof(*header)))
        return false;
    event->family = family_from_kernel(header->ncm_family);
    mnl_attr_for_each(attribute, message, sizeof(*header))
    {
        if (mnl_attr_get_type(attribute) == NETCONFA_FORWARDING)
            is_forwarding = true;
        else if (mnl_attr_get_type(attribute) == NETCONFA_IFINDEX)
            is_of_all = attribute_u32(attribute) == (uint32_t)NETCONFA_IFINDEX_ALL;
    }
    return event->family != 0 && is_forwarding && is_of_all;
}

bool event_parse(const struct nlmsghdr *message, struct netlink_event *event)
{
    static const struct {
        uint16_t type;
        enum netlink_event_kind kind;
        bool (*parse)(const struct nlmsghdr *, struct netlink_event *);
    } table[] = {
        {RTM_NEWLINK, NETLINK_EVENT_LINK, parse_link},
        {RTM_DELLINK, NETLINK_EVENT_LINK_GONE, parse_link},
        {RTM_NEWADDR, NETLINK_EVENT_ADDRESS, parse_address},
        {RTM_DELADDR, NETLINK_EVENT_ADDRESS_GONE, parse_address},
        {RTM_NEWROUTE, NETLINK_EVENT_ROUTE, parse_route},
        {RTM_DELROUTE, NETLINK_EVENT_ROUTE_GONE, parse_route},
        {RTM_NEWRULE, NETLINK_EVENT_RULE, parse_rule},
        {RTM_DELRULE, NETLINK_EVENT_RULE_GONE, parse_rule},
        {RTM_NEWNETCONF, NETLINK_EVENT_FORWARDING, parse_forwarding},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        if (message->nlmsg_type != table[i].type)
            continue;
        *event = (struct netlink_event){.kind = table[i].kind, .port = message->nlmsg_pid};
        return table[i].parse(message, event);
    }
    return false;
}

/* ---- reading ------------------------------------------------------------------------------- */

int netlink_monitor_next(struct netlink_monitor *monitor, struct netlink_event *event)
{
    *event = (struct netlink_event){.kind = NETLINK_EVENT_NONE};
    while (true) {
        while (netlink_message_fits(monitor->message, monitor->rest)) {
            const struct nlmsghdr *message = monitor->message;
            monitor->message = mnl_nlmsg_next(message, &monitor->rest);
            if (event_parse(message, event))
                return 0;
        }
        monitor->rest = 0;
        *event = (struct netlink_event){.kind = NETLINK_EVENT_NONE};
        ssize_t n = netlink_receive(monitor->fd, monitor->buffer, NETLINK_RECEIVE_CAPACITY);
        if (n == -EAGAIN)
            return 0;
        if (n == -ENOBUFS || n == -EMSGSIZE) {
            event->kind = NETLINK_EVENT_OVERFLOW;
            return 0;
        }
        if (n < 0)
            return (int)n;
        monitor->message = (const struct nlmsghdr *)monitor->buffer;
        monitor->rest = (int)n;
    }
}
