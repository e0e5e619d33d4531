// SPDX-License-Identifier: Apache-2.0
/* Links: rtnetlink(7), RTM_…LINK. */
#include "attributes.h"
#include "requests.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

/* No link has this name while netlink_link_probe() asks, nor after it. */
#define PROBE_NAME "nexusguardprobe"

/* ---- answers ------------------------------------------------------------------------------- */

static void parse_kind(const struct nlattr *nest, struct netlink_link *link)
{
    const struct nlattr *attribute;

    mnl_attr_for_each_nested(attribute, nest)
    {
        if (mnl_attr_get_type(attribute) == IFLA_INFO_KIND)
            attribute_string(attribute, link->kind, sizeof(link->kind));
    }
}

/* Bridges tell their ports' state as links of family AF_BRIDGE: those are not the link itself. */
bool link_parse(const struct nlmsghdr *message, struct netlink_link *link)
{
    const struct ifinfomsg *header = mnl_nlmsg_get_payload(message);
    const struct nlattr *attribute;

    if (message->nlmsg_type != RTM_NEWLINK ||
        mnl_nlmsg_get_payload_len(message) < sizeof(*header) || header->ifi_family != AF_UNSPEC ||
        header->ifi_index <= 0)
        return false;
    *link = (struct netlink_link){
        .index = (uint32_t)header->ifi_index,
        .up = (header->ifi_flags & IFF_UP) != 0,
    };
    mnl_attr_for_each(attribute, message, sizeof(*header))
    {
        switch (mnl_attr_get_type(attribute)) {
        case IFLA_IFNAME:
            attribute_string(attribute, link->name, sizeof(link->name));
            break;
        case IFLA_MTU:
            link->mtu = attribute_u32(attribute);
            break;
        case IFLA_IFALIAS:
            attribute_string(attribute, link->alias, sizeof(link->alias));
            break;
        case IFLA_LINKINFO:
            parse_kind(attribute, link);
            break;
        }
    }
    return link->name[0] != '\0';
}

static int take_listed(const struct nlmsghdr *message, void *context)
{
    struct netlink_links *links = context;
    struct netlink_link link;

    if (!link_parse(message, &link))
        return 0;
    struct netlink_link *items = netlink_grow(links->items, links->count, sizeof(link));
    if (items == NULL)
        return -ENOMEM;
    links->items = items;
    items[links->count++] = link;
    return 0;
}

static void restart_list(void *context)
{
    netlink_links_free(context);
}

void netlink_links_free(struct netlink_links *links)
{
    free(links->items);
    *links = (struct netlink_links){0};
}

/* ---- asking -------------------------------------------------------------------------------- */

struct nlmsghdr *link_get_request(struct netlink_request *request, const char *name, uint32_t index)
{
    struct nlmsghdr *message = netlink_begin(request->bytes, sizeof(request->bytes), RTM_GETLINK);
    struct ifinfomsg *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));

    header->ifi_family = AF_UNSPEC;
    header->ifi_index = (int)index;
    if (name != NULL)
        mnl_attr_put_strz(message, IFLA_IFNAME, name);
    /* Statistics are half of the answer and not read here. */
    mnl_attr_put_u32(message, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
    return message;
}

int netlink_link_list(struct netlink *handle, struct netlink_links *links)
{
    struct netlink_request request;

    *links = (struct netlink_links){0};
    int result =
        netlink_dump(handle, link_get_request(&request, NULL, 0), take_listed, restart_list, links);
    if (result != 0)
        netlink_links_free(links);
    return result;
}

static int take_link(const struct nlmsghdr *message, void *context)
{
    link_parse(message, context);
    return 0;
}

static int get_link(struct netlink *handle, const char *name, uint32_t index,
                    struct netlink_link *link)
{
    struct netlink_request request;

    *link = (struct netlink_link){0};
    int result =
        netlink_transact(handle, link_get_request(&request, name, index), 0, take_link, link);
    return result == 0 && link->index == 0 ? -EPROTO : result;
}

int netlink_link_by_name(struct netlink *handle, const char *name, struct netlink_link *link)
{
    if (strlen(name) >= NETLINK_NAME_CAPACITY)
        return -ENODEV;
    return get_link(handle, name, 0, link);
}

int netlink_link_by_index(struct netlink *handle, uint32_t index, struct netlink_link *link)
{
    /* To the kernel 0 means "look at the name", and the sign counts. */
    if (index == 0 || index > INT32_MAX)
        return -ENODEV;
    return get_link(handle, NULL, index, link);
}

/* ---- making and removing ------------------------------------------------------------------- */

struct nlmsghdr *link_create_request(struct netlink_request *request, const char *name,
                                     const char *kind, const uint32_t *mtu)
{
    struct nlmsghdr *message = netlink_begin(request->bytes, sizeof(request->bytes), RTM_NEWLINK);

    mnl_nlmsg_put_extra_header(message, sizeof(struct ifinfomsg));
    mnl_attr_put_strz(message, IFLA_IFNAME, name);
    if (mtu != NULL)
        mnl_attr_put_u32(message, IFLA_MTU, *mtu);
    struct nlattr *nest = mnl_attr_nest_start(message, IFLA_LINKINFO);
    mnl_attr_put_strz(message, IFLA_INFO_KIND, kind);
    mnl_attr_nest_end(message, nest);
    return message;
}

int netlink_link_create(struct netlink *handle, const char *name, const char *kind)
{
    struct netlink_request request;

    if (strlen(name) >= NETLINK_NAME_CAPACITY || strlen(kind) >= NETLINK_KIND_CAPACITY)
        return -EINVAL;
    return netlink_transact(handle, link_create_request(&request, name, kind, NULL),
                            NLM_F_CREATE | NLM_F_EXCL, NULL, NULL);
}

/* The kernel looks for the kind, then for the right to make a link, then at the MTU; only then it
 * would make one. -1 is below every minimum (dev_validate_mtu of net/core/dev.c). */
int netlink_link_probe(struct netlink *handle, const char *kind)
{
    const uint32_t impossible_mtu = UINT32_MAX;
    struct netlink_request request;
    struct netlink_link link;

    if (strlen(kind) >= NETLINK_KIND_CAPACITY)
        return -EINVAL;
    int result =
        netlink_transact(handle, link_create_request(&request, PROBE_NAME, kind, &impossible_mtu),
                         NLM_F_CREATE | NLM_F_EXCL, NULL, NULL);
    if (result == -EINVAL)
        return 0;
    /* A kernel that takes any MTU: ours is the link that has just come to be. */
    if (result == 0 && netlink_link_by_name(handle, PROBE_NAME, &link) == 0)
        return netlink_link_remove(handle, link.index);
    return result;
}

struct nlmsghdr *link_change_request(struct netlink_request *request, uint16_t type, uint32_t index)
{
    struct nlmsghdr *message = netlink_begin(request->bytes, sizeof(request->bytes), type);
    struct ifinfomsg *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));

    header->ifi_family = AF_UNSPEC;
    header->ifi_index = (int)index;
    return message;
}

static int change(struct netlink *handle, struct nlmsghdr *message)
{
    const struct ifinfomsg *header = mnl_nlmsg_get_payload(message);

    /* 0 would be "any" to the kernel. */
    if (header->ifi_index <= 0)
        return -ENODEV;
    return netlink_transact(handle, message, 0, NULL, NULL);
}

int netlink_link_remove(struct netlink *handle, uint32_t index)
{
    struct netlink_request request;

    return change(handle, link_change_request(&request, RTM_DELLINK, index));
}

/* ---- changing ------------------------------------------------------------------------------ */

int netlink_link_set_mtu(struct netlink *handle, uint32_t index, uint32_t mtu)
{
    struct netlink_request request;
    struct nlmsghdr *message = link_change_request(&request, RTM_SETLINK, index);

    mnl_attr_put_u32(message, IFLA_MTU, mtu);
    return change(handle, message);
}

int netlink_link_set_up(struct netlink *handle, uint32_t index, bool up)
{
    struct netlink_request request;
    struct nlmsghdr *message = link_change_request(&request, RTM_SETLINK, index);
    struct ifinfomsg *header = mnl_nlmsg_get_payload(message);

    header->ifi_change = IFF_UP;
    header->ifi_flags = up ? IFF_UP : 0;
    return change(handle, message);
}

int netlink_link_rename(struct netlink *handle, uint32_t index, const char *name)
{
    struct netlink_request request;
    struct nlmsghdr *message = link_change_request(&request, RTM_SETLINK, index);

    if (name[0] == '\0' || strlen(name) >= NETLINK_NAME_CAPACITY)
        return -EINVAL;
    mnl_attr_put_strz(message, IFLA_IFNAME, name);
    return change(handle, message);
}

int netlink_link_set_alias(struct netlink *handle, uint32_t index, const char *alias)
{
    struct netlink_request request;
    struct nlmsghdr *message = link_change_request(&request, RTM_SETLINK, index);

    /* The kernel keeps one byte less than IFALIASZ. */
    if (strlen(alias) > NETLINK_ALIAS_CAPACITY - 2)
        return -EINVAL;
    /* Without a NUL, as the kernel wants it; an empty one takes the alias away. */
    mnl_attr_put(message, IFLA_IFALIAS, strlen(alias), alias);
    return change(handle, message);
}
