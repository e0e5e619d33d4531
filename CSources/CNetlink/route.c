// SPDX-License-Identifier: Apache-2.0
/* Routes: rtnetlink(7), RTM_…ROUTE. */
#include "attributes.h"
#include "requests.h"

#include <assert.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>

/* IP6_RT_PRIO_USER of the kernel's linux/ipv6_route.h: what "no metric" becomes for IPv6. */
#define IPV6_DEFAULT_METRIC 1024

/* ---- listing ------------------------------------------------------------------------------- */

struct nlmsghdr *route_list_request(struct netlink_request *request, uint8_t family,
                                    uint8_t protocol, uint32_t index)
{
    struct nlmsghdr *message = netlink_begin(request->bytes, sizeof(request->bytes), RTM_GETROUTE);
    struct rtmsg *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));

    header->rtm_family = family_to_kernel(family);
    header->rtm_protocol = protocol;
    if (index != 0)
        mnl_attr_put_u32(message, RTA_OIF, index);
    return message;
}

static int append(struct netlink_routes *routes, const struct netlink_route *route)
{
    struct netlink_route *items = netlink_grow(routes->items, routes->count, sizeof(*route));

    if (items == NULL)
        return -ENOMEM;
    routes->items = items;
    items[routes->count++] = *route;
    return 0;
}

/* RTA_MULTIPATH: struct rtnexthop, each with a length of its own. */
static int append_next_hops(const struct nlattr *attribute, struct netlink_route *route,
                            struct netlink_routes *routes)
{
    const char *bytes = mnl_attr_get_payload(attribute);
    size_t rest = mnl_attr_get_payload_len(attribute);
    struct rtnexthop hop;

    while (rest >= sizeof(hop)) {
        memcpy(&hop, bytes, sizeof(hop));
        if (hop.rtnh_len < sizeof(hop) || hop.rtnh_len > rest)
            return 0;
        route->index = hop.rtnh_ifindex > 0 ? (uint32_t)hop.rtnh_ifindex : 0;
        int result = append(routes, route);
        if (result != 0)
            return result;
        size_t step = MNL_ALIGN(hop.rtnh_len);
        if (step >= rest)
            return 0;
        bytes += step;
        rest -= step;
    }
    return 0;
}

int route_parse(const struct nlmsghdr *message, struct netlink_routes *routes)
{
    const struct rtmsg *header = mnl_nlmsg_get_payload(message);
    const struct nlattr *attribute, *next_hops = NULL;

    if (message->nlmsg_type != RTM_NEWROUTE || mnl_nlmsg_get_payload_len(message) < sizeof(*header))
        return 0;
    uint8_t family = family_from_kernel(header->rtm_family);
    if (family == 0 || header->rtm_flags & RTM_F_CLONED)
        return 0;
    struct netlink_route route = {
        .destination = {.family = family, .length = header->rtm_dst_len},
        .table = header->rtm_table,
        .protocol = header->rtm_protocol,
        .type = header->rtm_type,
    };
    mnl_attr_for_each(attribute, message, sizeof(*header))
    {
        switch (mnl_attr_get_type(attribute)) {
        case RTA_DST:
            if (!attribute_address(attribute, family, &route.destination))
                return 0;
            break;
        case RTA_TABLE:
            route.table = attribute_u32(attribute);
            break;
        case RTA_PRIORITY:
            route.metric = attribute_u32(attribute);
            break;
        case RTA_OIF:
            route.index = attribute_u32(attribute);
            break;
        case RTA_MULTIPATH:
            next_hops = attribute;
            break;
        }
    }
    if (family == 6 && route.metric == IPV6_DEFAULT_METRIC)
        route.metric = 0;
    if (!address_is_valid(&route.destination))
        return 0;
    return next_hops != NULL ? append_next_hops(next_hops, &route, routes) : append(routes, &route);
}

struct listing {
    uint8_t protocol;
    uint32_t index;
    size_t kept; /* those of the other family, which was listed before */
    struct netlink_routes *routes;
};

/* A kernel without strict checking ignores the filter, so it is applied here as well. */
static int take_listed(const struct nlmsghdr *message, void *context)
{
    struct listing *listing = context;
    struct netlink_routes *routes = listing->routes;
    size_t before = routes->count;
    int result = route_parse(message, routes);
    size_t kept = before;

    for (size_t i = before; i < routes->count; i++) {
        const struct netlink_route *route = &routes->items[i];
        if ((listing->protocol == 0 || route->protocol == listing->protocol) &&
            (listing->index == 0 || route->index == listing->index))
            routes->items[kept++] = *route;
    }
    routes->count = kept;
    return result;
}

static void restart_list(void *context)
{
    struct listing *listing = context;

    listing->routes->count = listing->kept;
}

int netlink_route_list(struct netlink *handle, uint8_t protocol, uint32_t index,
                       struct netlink_routes *routes)
{
    struct netlink_request request;
    struct listing listing = {.protocol = protocol, .index = index, .routes = routes};
    int result = 0;

    *routes = (struct netlink_routes){0};
    for (uint8_t family = 4; family <= 6 && result == 0; family += 2) {
        listing.kept = routes->count;
        result = netlink_dump(handle, route_list_request(&request, family, protocol, index),
                              take_listed, restart_list, &listing);
        /* A kernel without IPv6 has no such routes. */
        if (family == 6 && (result == -EOPNOTSUPP || result == -EAFNOSUPPORT))
            result = 0;
    }
    if (result != 0)
        netlink_routes_free(routes);
    return result;
}

void netlink_routes_free(struct netlink_routes *routes)
{
    free(routes->items);
    *routes = (struct netlink_routes){0};
}

/* ---- changing ------------------------------------------------------------------------------ */

/* IPv6 has its unreachable routes at the loopback, and says so when it is asked. */
static bool leads_nowhere(const struct netlink_route *route)
{
    static_assert(NETLINK_ROUTE_UNREACHABLE == RTN_UNREACHABLE, "as the kernel has it");
    return route->type == RTN_UNREACHABLE;
}

struct nlmsghdr *route_request(struct netlink_request *request, uint16_t type,
                               const struct netlink_route *route)
{
    struct nlmsghdr *message = netlink_begin(request->bytes, sizeof(request->bytes), type);
    struct rtmsg *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));

    header->rtm_family = family_to_kernel(route->destination.family);
    header->rtm_dst_len = route->destination.length;
    /* The header has eight bits for a table; RTA_TABLE counts. */
    header->rtm_table = route->table < 256 ? (uint8_t)route->table : RT_TABLE_UNSPEC;
    header->rtm_protocol = NETLINK_OWN_PROTOCOL;
    header->rtm_scope = leads_nowhere(route) ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
    header->rtm_type = leads_nowhere(route) ? RTN_UNREACHABLE : RTN_UNICAST;
    if (route->destination.length > 0)
        put_address(message, RTA_DST, &route->destination);
    if (!leads_nowhere(route))
        mnl_attr_put_u32(message, RTA_OIF, route->index);
    mnl_attr_put_u32(message, RTA_TABLE, route->table);
    if (route->metric != 0)
        mnl_attr_put_u32(message, RTA_PRIORITY, route->metric);
    return message;
}

static bool route_is_valid(const struct netlink_route *route)
{
    return address_is_valid(&route->destination) && (route->index != 0 || leads_nowhere(route)) &&
           route->table != 0;
}

int netlink_route_add(struct netlink *handle, const struct netlink_route *route)
{
    struct netlink_request request;

    if (!route_is_valid(route))
        return -EINVAL;
    return netlink_transact(handle, route_request(&request, RTM_NEWROUTE, route),
                            NLM_F_CREATE | NLM_F_EXCL, NULL, NULL);
}

/* Well below the 208 KiB of a socket's send buffer (net.core.wmem_default). */
#define BATCH_CAPACITY (32 * 1024)

int netlink_routes_add(struct netlink *handle, const struct netlink_route *routes, size_t count)
{
    _Alignas(struct nlmsghdr) char batch[BATCH_CAPACITY];
    struct netlink_request request;
    size_t length = 0;
    int result = 0;

    for (size_t i = 0; i < count && result == 0; i++) {
        if (!route_is_valid(&routes[i]))
            return -EINVAL;
        const struct nlmsghdr *message = route_request(&request, RTM_NEWROUTE, &routes[i]);
        memcpy(batch + length, message, MNL_ALIGN(message->nlmsg_len));
        length += MNL_ALIGN(message->nlmsg_len);
        if (length <= sizeof(batch) - sizeof(request.bytes) && i + 1 < count)
            continue;
        result = netlink_transact_all(handle, batch, length, NLM_F_CREATE | NLM_F_EXCL);
        length = 0;
    }
    return result;
}

int netlink_route_remove(struct netlink *handle, const struct netlink_route *route)
{
    struct netlink_request request;

    if (!route_is_valid(route))
        return -EINVAL;
    return netlink_transact(handle, route_request(&request, RTM_DELROUTE, route), 0, NULL, NULL);
}

/* ---- lookup -------------------------------------------------------------------------------- */

struct nlmsghdr *route_lookup_request(struct netlink_request *request,
                                      const struct netlink_address *destination, uint32_t mark)
{
    struct nlmsghdr *message = netlink_begin(request->bytes, sizeof(request->bytes), RTM_GETROUTE);
    struct rtmsg *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));

    header->rtm_family = family_to_kernel(destination->family);
    header->rtm_dst_len = address_bits(destination->family);
    /* Else IPv4 says "main", whichever table it was; IPv6 tells it anyhow, and strict checking
     * refuses the flag there. */
    if (destination->family == 4)
        header->rtm_flags = RTM_F_LOOKUP_TABLE;
    put_address(message, RTA_DST, destination);
    if (mark != 0)
        mnl_attr_put_u32(message, RTA_MARK, mark);
    return message;
}

static uint32_t parse_mtu(const struct nlattr *metrics)
{
    const struct nlattr *attribute;
    uint32_t mtu = 0;

    mnl_attr_for_each_nested(attribute, metrics)
    {
        if (mnl_attr_get_type(attribute) == RTAX_MTU)
            mtu = attribute_u32(attribute);
    }
    return mtu;
}

/* RTA_VIA: an IPv4 route through an IPv6 gateway; struct rtvia, then the address. */
static void parse_via(const struct nlattr *attribute, struct netlink_address *gateway)
{
    const struct rtvia *via = mnl_attr_get_payload(attribute);
    size_t length = mnl_attr_get_payload_len(attribute);

    if (length < sizeof(*via))
        return;
    uint8_t family = family_from_kernel((uint8_t)via->rtvia_family);
    if (family == 0 || length - sizeof(*via) != address_size(family))
        return;
    gateway->family = family;
    memcpy(gateway->bytes, via->rtvia_addr, address_size(family));
}

bool path_parse(const struct nlmsghdr *message, struct netlink_path *path)
{
    const struct rtmsg *header = mnl_nlmsg_get_payload(message);
    const struct nlattr *attribute;

    if (message->nlmsg_type != RTM_NEWROUTE || mnl_nlmsg_get_payload_len(message) < sizeof(*header))
        return false;
    uint8_t family = family_from_kernel(header->rtm_family);
    *path = (struct netlink_path){.table = header->rtm_table};
    mnl_attr_for_each(attribute, message, sizeof(*header))
    {
        switch (mnl_attr_get_type(attribute)) {
        case RTA_OIF:
            path->index = attribute_u32(attribute);
            break;
        case RTA_TABLE:
            path->table = attribute_u32(attribute);
            break;
        case RTA_GATEWAY:
            attribute_address(attribute, family, &path->gateway);
            break;
        case RTA_VIA:
            parse_via(attribute, &path->gateway);
            break;
        case RTA_PREFSRC:
            attribute_address(attribute, family, &path->source);
            break;
        case RTA_METRICS:
            path->mtu = parse_mtu(attribute);
            break;
        }
    }
    path->gateway.length = address_bits(path->gateway.family);
    path->source.length = address_bits(path->source.family);
    return family != 0 && path->index != 0;
}

static int take_path(const struct nlmsghdr *message, void *context)
{
    return path_parse(message, context) ? 0 : -ENETUNREACH;
}

int netlink_route_lookup(struct netlink *handle, const struct netlink_address *destination,
                         uint32_t mark, struct netlink_path *path)
{
    struct netlink_request request;

    *path = (struct netlink_path){0};
    if (address_size(destination->family) == 0)
        return -EAFNOSUPPORT;
    int result = netlink_transact(handle, route_lookup_request(&request, destination, mark), 0,
                                  take_path, path);
    return result == 0 && path->index == 0 ? -EPROTO : result;
}
