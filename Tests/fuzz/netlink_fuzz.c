// SPDX-License-Identifier: Apache-2.0
/*
 * What a kernel, or who claims to be one, answers. The first byte chooses the reader, the rest is
 * one datagram after the other: two bytes of length, then as many bytes.
 */
#include "requests.h"
#include "wireguard.h"

#include <stdlib.h>
#include <string.h>

#define DATAGRAM_CAPACITY 4096

struct answers {
    uint8_t kind;
    struct netlink_routes routes;
    struct netlink_wireguard_device device;
    struct wireguard_reading reading;
};

/* Texts end, families are known, lengths fit: what the owner relies on. */
static void check_link(const struct nlmsghdr *message)
{
    struct netlink_link link;

    if (link_parse(message, &link) &&
        (memchr(link.name, 0, sizeof(link.name)) == NULL || link.index == 0 ||
         memchr(link.kind, 0, sizeof(link.kind)) == NULL ||
         memchr(link.alias, 0, sizeof(link.alias)) == NULL))
        abort();
}

static void check_address(const struct netlink_address *address)
{
    if ((address->family != 4 && address->family != 6) ||
        address->length > (address->family == 4 ? 32 : 128))
        abort();
}

static void check_route(const struct nlmsghdr *message, struct netlink_routes *routes)
{
    size_t before = routes->count;

    if (route_parse(message, routes) != 0)
        abort();
    for (size_t i = before; i < routes->count; i++)
        check_address(&routes->items[i].destination);
}

static int take(const struct nlmsghdr *message, void *context)
{
    struct answers *answers = context;
    struct netlink_interface_address address;
    struct netlink_event event;
    struct netlink_rule rule;
    struct netlink_path path;
    uint16_t family = 0;

    switch (answers->kind % 8) {
    case 0:
        check_link(message);
        return 0;
    case 1:
        if (address_parse(message, &address))
            check_address(&address.address);
        return 0;
    case 2:
        check_route(message, &answers->routes);
        return 0;
    case 3:
        if (path_parse(message, &path) && path.index == 0)
            abort();
        return 0;
    case 4:
        if (rule_parse(message, &rule) && rule.family != 4 && rule.family != 6)
            abort();
        return 0;
    case 5:
        if (event_parse(message, &event) && event.kind == NETLINK_EVENT_NONE)
            abort();
        return 0;
    case 6:
        if (family_parse(message, &family) && family == 0)
            abort();
        return 0;
    default:
        return wireguard_take(message, &answers->reading);
    }
}

static void check_device(const struct netlink_wireguard_device *device)
{
    for (size_t i = 0; i < device->peer_count; i++) {
        const struct netlink_wireguard_peer *peer = &device->peers[i];
        for (size_t p = 0; p < peer->prefix_count; p++)
            check_address(&peer->prefixes[p]);
        for (size_t other = 0; other < i && i < 32; other++) {
            if (memcmp(device->peers[other].public_key, peer->public_key, NETLINK_KEY_SIZE) == 0)
                abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static _Alignas(struct nlmsghdr) char datagram[DATAGRAM_CAPACITY];
    char explanation[NETLINK_EXPLANATION_CAPACITY] = "";
    struct answers answers = {.kind = size > 0 ? data[0] : 0};
    struct netlink_reading reading = {
        .sequence = 1, .take = take, .context = &answers, .explanation = explanation};
    size_t at = 1;

    answers.reading = (struct wireguard_reading){.device = &answers.device, .last_peer = SIZE_MAX};
    while (at + 2 <= size && !reading.done) {
        size_t length = (size_t)data[at] | (size_t)data[at + 1] << 8;
        at += 2;
        length = length < size - at ? length : size - at;
        length = length < sizeof(datagram) ? length : sizeof(datagram);
        memcpy(datagram, data + at, length);
        at += length;
        if (netlink_read_datagram(&reading, datagram, length) != 0)
            break;
    }
    if (memchr(explanation, 0, sizeof(explanation)) == NULL)
        abort();
    check_device(&answers.device);
    netlink_routes_free(&answers.routes);
    wireguard_restart(&answers.reading);
    return 0;
}
