/* SPDX-License-Identifier: Apache-2.0 */
/* Reading attributes of any length: what is too short reads as if it were not there. */
#ifndef CNETLINK_ATTRIBUTES_H
#define CNETLINK_ATTRIBUTES_H

#include "include/netlink.h"

#include <libmnl/libmnl.h>
#include <string.h>
#include <sys/socket.h>

static inline bool attribute_copy(const struct nlattr *attribute, void *value, size_t size)
{
    if (mnl_attr_get_payload_len(attribute) < size)
        return false;
    memcpy(value, mnl_attr_get_payload(attribute), size);
    return true;
}

static inline uint8_t attribute_u8(const struct nlattr *attribute)
{
    uint8_t value = 0;
    attribute_copy(attribute, &value, sizeof(value));
    return value;
}

static inline uint16_t attribute_u16(const struct nlattr *attribute)
{
    uint16_t value = 0;
    attribute_copy(attribute, &value, sizeof(value));
    return value;
}

static inline uint32_t attribute_u32(const struct nlattr *attribute)
{
    uint32_t value = 0;
    attribute_copy(attribute, &value, sizeof(value));
    return value;
}

static inline uint64_t attribute_u64(const struct nlattr *attribute)
{
    uint64_t value = 0;
    attribute_copy(attribute, &value, sizeof(value));
    return value;
}

/* A string with or without its NUL; what does not fit is cut off. */
static inline void attribute_string(const struct nlattr *attribute, char *text, size_t capacity)
{
    size_t length = strnlen(mnl_attr_get_payload(attribute), mnl_attr_get_payload_len(attribute));

    if (length >= capacity)
        length = capacity - 1;
    memcpy(text, mnl_attr_get_payload(attribute), length);
    text[length] = '\0';
}

/* 4 or 6 for AF_INET or AF_INET6; 0 for any other. */
static inline uint8_t family_from_kernel(uint8_t family)
{
    return family == AF_INET ? 4 : family == AF_INET6 ? 6 : 0;
}

static inline uint8_t family_to_kernel(uint8_t family)
{
    return family == 4 ? AF_INET : family == 6 ? AF_INET6 : AF_UNSPEC;
}

static inline size_t address_size(uint8_t family)
{
    return family == 4 ? 4 : family == 6 ? 16 : 0;
}

static inline uint8_t address_bits(uint8_t family)
{
    return (uint8_t)(8 * address_size(family));
}

/* false, and nothing is written, unless the attribute has an address of exactly this family. */
static inline bool attribute_address(const struct nlattr *attribute, uint8_t family,
                                     struct netlink_address *address)
{
    size_t size = address_size(family);

    if (size == 0 || mnl_attr_get_payload_len(attribute) != size)
        return false;
    address->family = family;
    memcpy(address->bytes, mnl_attr_get_payload(attribute), size);
    return true;
}

static inline bool address_is_valid(const struct netlink_address *address)
{
    return address_size(address->family) > 0 && address->length <= address_bits(address->family);
}

static inline void put_address(struct nlmsghdr *message, uint16_t type,
                               const struct netlink_address *address)
{
    mnl_attr_put(message, type, address_size(address->family), address->bytes);
}

#endif
