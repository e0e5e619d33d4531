// SPDX-License-Identifier: Apache-2.0
/*
 * Changes a device, in as many messages as needed (C98). What replaces stands only in the first
 * message of its device or peer, or the second would undo the first (pitfall 57).
 */
#include "wireguard.h"

#include "attributes.h"

#include <errno.h>
#include <netinet/in.h>
#include <unistd.h>

bool wireguard_is_written(const struct wireguard_writing *writing)
{
    return writing->begun && writing->peer == writing->changes->peer_count;
}

/* Takes back what was put since `nest`: later padding must not hold what stood there. */
static void cancel(struct nlmsghdr *message, struct nlattr *nest)
{
    char *end = mnl_nlmsg_get_payload_tail(message);

    memset(nest, 0, (size_t)(end - (char *)nest));
    message->nlmsg_len = (uint32_t)((char *)nest - (char *)message);
}

/* ---- one message --------------------------------------------------------------------------- */

static void put_device_fields(struct nlmsghdr *message,
                              const struct netlink_wireguard_change *device)
{
    if (device->fields & NETLINK_WIREGUARD_PRIVATE_KEY)
        mnl_attr_put(message, WGDEVICE_A_PRIVATE_KEY, NETLINK_KEY_SIZE, device->private_key);
    if (device->fields & NETLINK_WIREGUARD_LISTEN_PORT)
        mnl_attr_put_u16(message, WGDEVICE_A_LISTEN_PORT, device->listen_port);
    if (device->fields & NETLINK_WIREGUARD_FWMARK)
        mnl_attr_put_u32(message, WGDEVICE_A_FWMARK, device->fwmark);
    if (device->fields & NETLINK_WIREGUARD_REPLACE_PEERS)
        mnl_attr_put_u32(message, WGDEVICE_A_FLAGS, WGDEVICE_F_REPLACE_PEERS);
}

static bool put_endpoint(struct nlmsghdr *message, size_t capacity,
                         const struct netlink_endpoint *endpoint)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(endpoint->port)};
    struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6,
        .sin6_port = htons(endpoint->port),
        .sin6_scope_id = endpoint->scope_id,
    };

    memcpy(&v4.sin_addr, endpoint->bytes, sizeof(v4.sin_addr));
    memcpy(&v6.sin6_addr, endpoint->bytes, sizeof(v6.sin6_addr));
    return endpoint->family == 4
               ? mnl_attr_put_check(message, capacity, WGPEER_A_ENDPOINT, sizeof(v4), &v4)
               : mnl_attr_put_check(message, capacity, WGPEER_A_ENDPOINT, sizeof(v6), &v6);
}

/* Everything of a peer but its prefixes. In a later message (`again`) only what says which peer is
 * meant, and that it must not come to be. */
static bool put_peer_fields(struct nlmsghdr *message, size_t capacity,
                            const struct netlink_wireguard_peer_change *peer, bool again)
{
    uint32_t fields = peer->fields, flags = 0;

    if (fields & NETLINK_WIREGUARD_PEER_UPDATE_ONLY)
        flags |= WGPEER_F_UPDATE_ONLY;
    if (!again && fields & NETLINK_WIREGUARD_PEER_REMOVE)
        flags |= WGPEER_F_REMOVE_ME;
    if (!again && fields & NETLINK_WIREGUARD_PEER_REPLACE_PREFIXES)
        flags |= WGPEER_F_REPLACE_ALLOWEDIPS;
    if (!mnl_attr_put_check(message, capacity, WGPEER_A_PUBLIC_KEY, NETLINK_KEY_SIZE,
                            peer->public_key))
        return false;
    if (flags != 0 && !mnl_attr_put_u32_check(message, capacity, WGPEER_A_FLAGS, flags))
        return false;
    if (again)
        return true;
    if (fields & NETLINK_WIREGUARD_PEER_PRESHARED_KEY &&
        !mnl_attr_put_check(message, capacity, WGPEER_A_PRESHARED_KEY, NETLINK_KEY_SIZE,
                            peer->preshared_key))
        return false;
    if (fields & NETLINK_WIREGUARD_PEER_ENDPOINT &&
        !put_endpoint(message, capacity, &peer->endpoint))
        return false;
    return !(fields & NETLINK_WIREGUARD_PEER_KEEPALIVE) ||
           mnl_attr_put_u16_check(message, capacity, WGPEER_A_PERSISTENT_KEEPALIVE_INTERVAL,
                                  peer->keepalive);
}

/* All of it or nothing. */
static bool put_prefix(struct nlmsghdr *message, size_t capacity,
                       const struct netlink_wireguard_prefix_change *change)
{
    const struct netlink_address *prefix = &change->prefix;
    struct nlattr *nest = mnl_attr_nest_start_check(message, capacity, NLA_F_NESTED);

    if (nest == NULL)
        return false;
    if (!mnl_attr_put_u16_check(message, capacity, WGALLOWEDIP_A_FAMILY,
                                family_to_kernel(prefix->family)) ||
        !mnl_attr_put_check(message, capacity, WGALLOWEDIP_A_IPADDR, address_size(prefix->family),
                            prefix->bytes) ||
        !mnl_attr_put_u8_check(message, capacity, WGALLOWEDIP_A_CIDR_MASK, prefix->length) ||
        (change->remove && !mnl_attr_put_u32_check(message, capacity, WIREGUARD_PREFIX_FLAGS,
                                                   WIREGUARD_PREFIX_REMOVE_ME))) {
        cancel(message, nest);
        return false;
    }
    mnl_attr_nest_end(message, nest);
    return true;
}

/* As many of the peer's prefixes as fit; true when there are no more. */
static bool put_prefixes(struct wireguard_writing *writing, struct nlmsghdr *message,
                         const struct netlink_wireguard_peer_change *peer)
{
    const struct netlink_wireguard_prefix_change *prefixes =
        writing->changes->prefixes + peer->first_prefix;
    size_t first = writing->prefix;

    /* What is removed would come to be again with a prefix. */
    if (peer->fields & NETLINK_WIREGUARD_PEER_REMOVE || first == peer->prefix_count)
        return true;
    struct nlattr *nest =
        mnl_attr_nest_start_check(message, writing->capacity, WGPEER_A_ALLOWEDIPS);
    if (nest == NULL)
        return false;
    while (writing->prefix < peer->prefix_count &&
           put_prefix(message, writing->capacity, &prefixes[writing->prefix]))
        writing->prefix++;
    if (writing->prefix == first)
        cancel(message, nest);
    else
        mnl_attr_nest_end(message, nest);
    return writing->prefix == peer->prefix_count;
}

/* The next peer or the rest of it; true when all of it is in this message or earlier ones. */
static bool put_peer(struct wireguard_writing *writing, struct nlmsghdr *message)
{
    const struct netlink_wireguard_peer_change *peer = &writing->changes->peers[writing->peer];
    size_t prefix_before = writing->prefix;
    struct nlattr *nest = mnl_attr_nest_start_check(message, writing->capacity, NLA_F_NESTED);

    if (nest == NULL)
        return false;
    if (!put_peer_fields(message, writing->capacity, peer, writing->peer_begun)) {
        cancel(message, nest);
        return false;
    }
    bool complete = put_prefixes(writing, message, peer);
    /* Its key alone, again, would say nothing. */
    if (!complete && writing->peer_begun && writing->prefix == prefix_before) {
        cancel(message, nest);
        return false;
    }
    mnl_attr_nest_end(message, nest);
    writing->peer_begun = true;
    if (!complete)
        return false;
    writing->peer++;
    writing->prefix = 0;
    writing->peer_begun = false;
    return true;
}

struct nlmsghdr *wireguard_write_next(struct wireguard_writing *writing, void *buffer)
{
    const struct netlink_wireguard_changes *changes = writing->changes;
    struct nlmsghdr *message = netlink_begin(buffer, writing->capacity, writing->family);
    struct genlmsghdr *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));
    size_t peer = writing->peer, prefix = writing->prefix;
    bool peer_begun = writing->peer_begun, begun = writing->begun;

    header->cmd = WG_CMD_SET_DEVICE;
    header->version = WG_GENL_VERSION;
    mnl_attr_put_strz(message, WGDEVICE_A_IFNAME, writing->name);
    if (!begun)
        put_device_fields(message, &changes->device);
    writing->begun = true;
    if (writing->peer == changes->peer_count)
        return message;
    struct nlattr *nest = mnl_attr_nest_start_check(message, writing->capacity, WGDEVICE_A_PEERS);
    if (nest == NULL)
        return begun ? NULL : message;
    while (writing->peer < changes->peer_count && put_peer(writing, message))
        ;
    mnl_attr_nest_end(message, nest);
    bool progress = writing->peer != peer || writing->prefix != prefix ||
                    writing->peer_begun != peer_begun || !begun;
    return progress ? message : NULL;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static bool is_valid(const struct netlink_wireguard_changes *changes)
{
    for (size_t i = 0; i < changes->peer_count; i++) {
        const struct netlink_wireguard_peer_change *peer = &changes->peers[i];
        if (peer->first_prefix > changes->prefix_count ||
            peer->prefix_count > changes->prefix_count - peer->first_prefix)
            return false;
        if (peer->fields & NETLINK_WIREGUARD_PEER_ENDPOINT &&
            address_size(peer->endpoint.family) == 0)
            return false;
    }
    for (size_t i = 0; i < changes->prefix_count; i++) {
        if (!address_is_valid(&changes->prefixes[i].prefix))
            return false;
    }
    return true;
}

static size_t message_capacity(void)
{
    long page = sysconf(_SC_PAGESIZE);

    return page > 0 && page < WIREGUARD_MESSAGE_MAXIMUM ? (size_t)page : WIREGUARD_MESSAGE_MAXIMUM;
}

int netlink_wireguard_set(struct netlink *handle, const char *name,
                          const struct netlink_wireguard_changes *changes)
{
    _Alignas(struct nlmsghdr) char buffer[WIREGUARD_MESSAGE_MAXIMUM];
    struct wireguard_writing writing = {
        .name = name,
        .changes = changes,
        .capacity = message_capacity(),
    };

    if (strlen(name) >= NETLINK_NAME_CAPACITY)
        return -ENODEV;
    if (!is_valid(changes))
        return -EINVAL;
    int result = wireguard_family(handle, &writing.family);
    while (result == 0 && !wireguard_is_written(&writing)) {
        struct nlmsghdr *message = wireguard_write_next(&writing, buffer);
        result = message == NULL ? -EMSGSIZE : netlink_transact(handle, message, 0, NULL, NULL);
    }
    explicit_bzero(buffer, sizeof(buffer)); /* it had keys */
    return result;
}
