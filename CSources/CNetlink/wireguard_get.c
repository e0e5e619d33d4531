// SPDX-License-Identifier: Apache-2.0
/*
 * Reads a device. The kernel sends as many messages as needed; a peer whose prefixes do not fit
 * goes on in the next one with its key and further prefixes only (linux/wireguard.h). Peers are
 * found by key in a hash table, so that reading stays linear (C97, C99).
 */
#include "wireguard.h"

#include "attributes.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/random.h>

/* A device has at most 2^20 peers (MAX_PEERS_PER_DEVICE of the kernel's messages.h); more prefixes
 * than this are taken for a dump that never ends (C98). */
#define PEER_LIMIT   (1u << 20)
#define PREFIX_LIMIT (8u << 20)

/* ---- the family ---------------------------------------------------------------------------- */

struct nlmsghdr *family_request(struct netlink_request *request)
{
    struct nlmsghdr *message = netlink_begin(request->bytes, sizeof(request->bytes), GENL_ID_CTRL);
    struct genlmsghdr *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));

    header->cmd = CTRL_CMD_GETFAMILY;
    header->version = 1;
    mnl_attr_put_strz(message, CTRL_ATTR_FAMILY_NAME, WG_GENL_NAME);
    return message;
}

bool family_parse(const struct nlmsghdr *message, uint16_t *family)
{
    const struct nlattr *attribute;

    if (message->nlmsg_type != GENL_ID_CTRL ||
        mnl_nlmsg_get_payload_len(message) < sizeof(struct genlmsghdr))
        return false;
    mnl_attr_for_each(attribute, message, sizeof(struct genlmsghdr))
    {
        if (mnl_attr_get_type(attribute) == CTRL_ATTR_FAMILY_ID)
            *family = attribute_u16(attribute);
    }
    return *family != 0;
}

static int take_family(const struct nlmsghdr *message, void *context)
{
    return family_parse(message, context) ? 0 : -EPROTO;
}

int wireguard_family(struct netlink *handle, uint16_t *family)
{
    struct netlink_request request;
    int result = 0;

    if (handle->wireguard_family == 0)
        result = netlink_transact(handle, family_request(&request), 0, take_family,
                                  &handle->wireguard_family);
    *family = handle->wireguard_family;
    return result == 0 && *family == 0 ? -EPROTO : result;
}

/* ---- peers by key -------------------------------------------------------------------------- */

static size_t slot_of(const struct wireguard_reading *reading, const uint8_t *key)
{
    uint64_t hash = reading->seed, word;

    for (size_t i = 0; i < NETLINK_KEY_SIZE; i += sizeof(word)) {
        memcpy(&word, key + i, sizeof(word));
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u; /* 2^64 divided by the golden ratio */
        hash ^= hash >> 32;
    }
    return (size_t)hash & (reading->slot_count - 1);
}

/* The slot of this key, or the empty one where it belongs. */
static uint32_t *find_slot(const struct wireguard_reading *reading, const uint8_t *key)
{
    size_t slot = slot_of(reading, key);

    while (reading->slots[slot] != 0 &&
           memcmp(reading->device->peers[reading->slots[slot] - 1].public_key, key,
                  NETLINK_KEY_SIZE) != 0)
        slot = (slot + 1) & (reading->slot_count - 1);
    return &reading->slots[slot];
}

/* At most half of the slots are taken. */
static int make_slots(struct wireguard_reading *reading)
{
    const struct netlink_wireguard_device *device = reading->device;

    if (2 * (device->peer_count + 1) <= reading->slot_count)
        return 0;
    size_t count = reading->slot_count == 0 ? 64 : 2 * reading->slot_count;
    uint32_t *slots = calloc(count, sizeof(*slots));
    if (slots == NULL)
        return -ENOMEM;
    free(reading->slots);
    reading->slots = slots;
    reading->slot_count = count;
    for (size_t i = 0; i < device->peer_count; i++)
        *find_slot(reading, device->peers[i].public_key) = (uint32_t)i + 1;
    return 0;
}

/* ---- attributes ---------------------------------------------------------------------------- */

static void parse_endpoint(const struct nlattr *attribute, struct netlink_endpoint *endpoint)
{
    sa_family_t family = 0;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    attribute_copy(attribute, &family, sizeof(family));
    if (family == AF_INET && attribute_copy(attribute, &v4, sizeof(v4))) {
        endpoint->family = 4;
        memcpy(endpoint->bytes, &v4.sin_addr, sizeof(v4.sin_addr));
        endpoint->port = ntohs(v4.sin_port);
    } else if (family == AF_INET6 && attribute_copy(attribute, &v6, sizeof(v6))) {
        endpoint->family = 6;
        memcpy(endpoint->bytes, &v6.sin6_addr, sizeof(v6.sin6_addr));
        endpoint->port = ntohs(v6.sin6_port);
        endpoint->scope_id = v6.sin6_scope_id;
    }
}

static bool parse_prefix(const struct nlattr *nest, struct netlink_address *prefix)
{
    const struct nlattr *attribute, *address = NULL;
    uint8_t family = 0;

    *prefix = (struct netlink_address){0};
    mnl_attr_for_each_nested(attribute, nest)
    {
        switch (mnl_attr_get_type(attribute)) {
        case WGALLOWEDIP_A_FAMILY:
            family = family_from_kernel((uint8_t)attribute_u16(attribute));
            break;
        case WGALLOWEDIP_A_IPADDR:
            address = attribute;
            break;
        case WGALLOWEDIP_A_CIDR_MASK:
            prefix->length = attribute_u8(attribute);
            break;
        }
    }
    return address != NULL && attribute_address(address, family, prefix) &&
           address_is_valid(prefix);
}

static int take_prefixes(const struct nlattr *nest, struct wireguard_reading *reading,
                         struct netlink_wireguard_peer *peer)
{
    const struct nlattr *attribute;
    struct netlink_address prefix;

    mnl_attr_for_each_nested(attribute, nest)
    {
        if (!parse_prefix(attribute, &prefix))
            return -EPROTO;
        if (reading->prefixes++ >= PREFIX_LIMIT)
            return -EPROTO;
        struct netlink_address *items =
            netlink_grow(peer->prefixes, peer->prefix_count, sizeof(prefix));
        if (items == NULL)
            return -ENOMEM;
        peer->prefixes = items;
        items[peer->prefix_count++] = prefix;
    }
    return 0;
}

/* struct __kernel_timespec of linux/time_types.h. */
static void parse_time(const struct nlattr *attribute, struct netlink_wireguard_peer *peer)
{
    int64_t time[2];

    if (!attribute_copy(attribute, time, sizeof(time)) || time[1] < 0 || time[1] > 999999999)
        return;
    peer->last_handshake_seconds = time[0];
    peer->last_handshake_nanoseconds = (uint32_t)time[1];
}

static void parse_peer_field(const struct nlattr *attribute, struct netlink_wireguard_peer *peer)
{
    switch (mnl_attr_get_type(attribute)) {
    case WGPEER_A_PRESHARED_KEY:
        attribute_copy(attribute, peer->preshared_key, NETLINK_KEY_SIZE);
        break;
    case WGPEER_A_ENDPOINT:
        parse_endpoint(attribute, &peer->endpoint);
        break;
    case WGPEER_A_PERSISTENT_KEEPALIVE_INTERVAL:
        peer->keepalive = attribute_u16(attribute);
        break;
    case WGPEER_A_LAST_HANDSHAKE_TIME:
        parse_time(attribute, peer);
        break;
    case WGPEER_A_RX_BYTES:
        peer->rx_bytes = attribute_u64(attribute);
        break;
    case WGPEER_A_TX_BYTES:
        peer->tx_bytes = attribute_u64(attribute);
        break;
    }
}

/* ---- messages ------------------------------------------------------------------------------ */

static const struct nlattr *find(const struct nlattr *nest, uint16_t type)
{
    const struct nlattr *attribute, *found = NULL;

    mnl_attr_for_each_nested(attribute, nest)
    {
        if (mnl_attr_get_type(attribute) == type)
            found = attribute;
    }
    return found;
}

/* The number of the peer with this key, which may be a new one. */
static int number_of_peer(struct wireguard_reading *reading, const uint8_t *key, size_t *number)
{
    struct netlink_wireguard_device *device = reading->device;
    int result = make_slots(reading);

    if (result != 0)
        return result;
    uint32_t *slot = find_slot(reading, key);
    if (*slot == 0) {
        if (device->peer_count >= PEER_LIMIT)
            return -EPROTO;
        struct netlink_wireguard_peer *peers =
            netlink_grow(device->peers, device->peer_count, sizeof(*peers));
        if (peers == NULL)
            return -ENOMEM;
        device->peers = peers;
        memcpy(peers[device->peer_count].public_key, key, NETLINK_KEY_SIZE);
        *slot = (uint32_t)++device->peer_count;
    }
    *number = *slot - 1;
    return 0;
}

static int take_peer(const struct nlattr *nest, struct wireguard_reading *reading)
{
    const struct nlattr *attribute, *key = find(nest, WGPEER_A_PUBLIC_KEY);
    size_t before = reading->device->peer_count, number;

    if (key == NULL || mnl_attr_get_payload_len(key) != NETLINK_KEY_SIZE)
        return -EPROTO;
    int result = number_of_peer(reading, mnl_attr_get_payload(key), &number);
    if (result != 0)
        return result;
    bool is_new = reading->device->peer_count > before;
    const struct nlattr *prefixes = find(nest, WGPEER_A_ALLOWEDIPS);
    /* Only the peer before goes on, and only with more prefixes: else the dump gets nowhere. */
    if (!is_new && (number != reading->last_peer || prefixes == NULL))
        return -EPROTO;
    reading->last_peer = number;

    struct netlink_wireguard_peer *peer = &reading->device->peers[number];
    if (is_new) {
        mnl_attr_for_each_nested(attribute, nest)
        {
            parse_peer_field(attribute, peer);
        }
    }
    return prefixes == NULL ? 0 : take_prefixes(prefixes, reading, peer);
}

static int take_peers(const struct nlattr *nest, struct wireguard_reading *reading)
{
    const struct nlattr *attribute;
    int result;

    mnl_attr_for_each_nested(attribute, nest)
    {
        result = take_peer(attribute, reading);
        if (result != 0)
            return result;
    }
    return 0;
}

int wireguard_take(const struct nlmsghdr *message, void *context)
{
    struct wireguard_reading *reading = context;
    struct netlink_wireguard_device *device = reading->device;
    const struct nlattr *attribute;
    int result = 0;

    if (mnl_nlmsg_get_payload_len(message) < sizeof(struct genlmsghdr))
        return -EPROTO;
    mnl_attr_for_each(attribute, message, sizeof(struct genlmsghdr))
    {
        switch (mnl_attr_get_type(attribute)) {
        case WGDEVICE_A_IFINDEX:
            device->index = attribute_u32(attribute);
            break;
        case WGDEVICE_A_PRIVATE_KEY:
            device->has_private_key =
                attribute_copy(attribute, device->private_key, NETLINK_KEY_SIZE);
            break;
        case WGDEVICE_A_PUBLIC_KEY:
            attribute_copy(attribute, device->public_key, NETLINK_KEY_SIZE);
            break;
        case WGDEVICE_A_LISTEN_PORT:
            device->listen_port = attribute_u16(attribute);
            break;
        case WGDEVICE_A_FWMARK:
            device->fwmark = attribute_u32(attribute);
            break;
        case WGDEVICE_A_PEERS:
            result = take_peers(attribute, reading);
            break;
        }
        if (result != 0)
            return result;
    }
    return 0;
}

void wireguard_restart(void *context)
{
    struct wireguard_reading *reading = context;

    netlink_wireguard_free(reading->device);
    free(reading->slots);
    reading->slots = NULL;
    reading->slot_count = 0;
    reading->last_peer = SIZE_MAX;
    reading->prefixes = 0;
}

/* ---- the whole ----------------------------------------------------------------------------- */

struct nlmsghdr *wireguard_get_request(struct netlink_request *request, uint16_t family,
                                       const char *name)
{
    struct nlmsghdr *message = netlink_begin(request->bytes, sizeof(request->bytes), family);
    struct genlmsghdr *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));

    header->cmd = WG_CMD_GET_DEVICE;
    header->version = WG_GENL_VERSION;
    mnl_attr_put_strz(message, WGDEVICE_A_IFNAME, name);
    return message;
}

int netlink_wireguard_get(struct netlink *handle, const char *name,
                          struct netlink_wireguard_device *device)
{
    struct netlink_request request;
    struct wireguard_reading reading = {.device = device, .last_peer = SIZE_MAX};
    uint16_t family;

    *device = (struct netlink_wireguard_device){0};
    if (strlen(name) >= NETLINK_NAME_CAPACITY)
        return -ENODEV;
    int result = wireguard_family(handle, &family);
    if (result != 0)
        return result;
    if (getrandom(&reading.seed, sizeof(reading.seed), 0) != (ssize_t)sizeof(reading.seed))
        return -errno;
    result = netlink_dump(handle, wireguard_get_request(&request, family, name), wireguard_take,
                          wireguard_restart, &reading);
    free(reading.slots);
    if (result != 0)
        netlink_wireguard_free(device);
    return result;
}

void netlink_wireguard_free(struct netlink_wireguard_device *device)
{
    for (size_t i = 0; i < device->peer_count; i++)
        free(device->peers[i].prefixes);
    if (device->peers != NULL)
        explicit_bzero(device->peers, device->peer_count * sizeof(*device->peers));
    free(device->peers);
    explicit_bzero(device, sizeof(*device));
}
