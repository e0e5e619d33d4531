// SPDX-License-Identifier: Apache-2.0
/* Addresses of links: rtnetlink(7), RTM_…ADDR. */
#include "attributes.h"
#include "requests.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

bool netlink_marks_addresses(void)
{
    struct utsname system;
    unsigned major, minor;

    if (uname(&system) != 0 || sscanf(system.release, "%u.%u", &major, &minor) != 2)
        return false;
    return major > 5 || (major == 5 && minor >= 18);
}

/* ---- listing ------------------------------------------------------------------------------- */

struct nlmsghdr *address_list_request(struct netlink_request *request, uint32_t index)
{
    struct nlmsghdr *message = netlink_begin(request->bytes, sizeof(request->bytes), RTM_GETADDR);
    struct ifaddrmsg *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));

    header->ifa_index = index;
    return message;
}

/* IFA_LOCAL is the link's own address where IFA_ADDRESS is that of a point-to-point peer; IPv6 has
 * IFA_LOCAL only with a peer. */
bool address_parse(const struct nlmsghdr *message, struct netlink_interface_address *address)
{
    const struct ifaddrmsg *header = mnl_nlmsg_get_payload(message);
    const struct nlattr *attribute;
    bool has_local = false;

    if ((message->nlmsg_type != RTM_NEWADDR && message->nlmsg_type != RTM_DELADDR) ||
        mnl_nlmsg_get_payload_len(message) < sizeof(*header))
        return false;
    uint8_t family = family_from_kernel(header->ifa_family);
    *address = (struct netlink_interface_address){
        .index = header->ifa_index,
        .scope = header->ifa_scope,
    };
    mnl_attr_for_each(attribute, message, sizeof(*header))
    {
        switch (mnl_attr_get_type(attribute)) {
        case IFA_LOCAL:
            has_local = attribute_address(attribute, family, &address->address);
            break;
        case IFA_ADDRESS:
            if (!has_local)
                attribute_address(attribute, family, &address->address);
            break;
        case IFA_PROTO:
            address->protocol = attribute_u8(attribute);
            break;
        }
    }
    address->address.length = header->ifa_prefixlen;
    return address_is_valid(&address->address);
}

struct listing {
    uint32_t index;
    struct netlink_interface_addresses *addresses;
};

static int take_listed(const struct nlmsghdr *message, void *context)
{
    struct listing *listing = context;
    struct netlink_interface_addresses *list = listing->addresses;
    struct netlink_interface_address address;

    /* A kernel without strict checking lists those of all links. */
    if (!address_parse(message, &address) ||
        (listing->index != 0 && address.index != listing->index))
        return 0;
    struct netlink_interface_address *items =
        netlink_grow(list->items, list->count, sizeof(address));
    if (items == NULL)
        return -ENOMEM;
    list->items = items;
    items[list->count++] = address;
    return 0;
}

static void restart_list(void *context)
{
    netlink_addresses_free(((struct listing *)context)->addresses);
}

int netlink_address_list(struct netlink *handle, uint32_t index,
                         struct netlink_interface_addresses *addresses)
{
    struct netlink_request request;
    struct listing listing = {.index = index, .addresses = addresses};

    *addresses = (struct netlink_interface_addresses){0};
    int result = netlink_dump(handle, address_list_request(&request, index), take_listed,
                              restart_list, &listing);
    if (result != 0)
        netlink_addresses_free(addresses);
    return result;
}

void netlink_addresses_free(struct netlink_interface_addresses *addresses)
{
    free(addresses->items);
    *addresses = (struct netlink_interface_addresses){0};
}

/* ---- changing ------------------------------------------------------------------------------ */

struct nlmsghdr *address_request(struct netlink_request *request, uint16_t type, uint32_t index,
                                 const struct netlink_address *address)
{
    struct nlmsghdr *message = netlink_begin(request->bytes, sizeof(request->bytes), type);
    struct ifaddrmsg *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));

    header->ifa_family = family_to_kernel(address->family);
    header->ifa_prefixlen = address->length;
    header->ifa_index = index;
    if (type == RTM_NEWADDR && address->family == 6)
        header->ifa_flags = IFA_F_NODAD;
    put_address(message, IFA_LOCAL, address);
    put_address(message, IFA_ADDRESS, address);
    if (type == RTM_NEWADDR)
        mnl_attr_put_u8(message, IFA_PROTO, NETLINK_OWN_PROTOCOL);
    return message;
}

int netlink_address_add(struct netlink *handle, uint32_t index,
                        const struct netlink_address *address)
{
    struct netlink_request request;

    if (!address_is_valid(address))
        return -EINVAL;
    return netlink_transact(handle, address_request(&request, RTM_NEWADDR, index, address),
                            NLM_F_CREATE | NLM_F_EXCL, NULL, NULL);
}

int netlink_address_remove(struct netlink *handle, uint32_t index,
                           const struct netlink_address *address)
{
    struct netlink_request request;

    if (!address_is_valid(address))
        return -EINVAL;
    return netlink_transact(handle, address_request(&request, RTM_DELADDR, index, address), 0, NULL,
                            NULL);
}
