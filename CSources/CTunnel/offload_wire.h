/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What split.c and merge.c share: unaligned access to inner headers, their field offsets, and the
 * pseudo-header of transport checksums. Sources: RFC 791 §3.1 (IPv4), RFC 8200 §3 and §8.1 (IPv6),
 * RFC 9293 §3.1 (TCP), RFC 768 (UDP).
 */
#ifndef CTUNNEL_OFFLOAD_WIRE_H
#define CTUNNEL_OFFLOAD_WIRE_H

#include "offload.h"
#include <arpa/inet.h>
#include <string.h>

#define IPV4_HEADER_LENGTH        20 /* without options */
#define IPV4_TOS                  1
#define IPV4_TOTAL_LENGTH         2
#define IPV4_ID                   4
#define IPV4_FRAGMENT             6
#define IPV4_TTL                  8
#define IPV4_PROTOCOL             9
#define IPV4_CHECKSUM             10
#define IPV4_ADDRESSES            12
#define IPV4_DONT_FRAGMENT        0x4000
#define IPV4_FRAGMENT_OFFSET_MASK 0x3fff /* more fragments, and the offset */

#define IPV6_HEADER_LENGTH  40
#define IPV6_PAYLOAD_LENGTH 4
#define IPV6_NEXT_HEADER    6
#define IPV6_HOP_LIMIT      7
#define IPV6_ADDRESSES      8

#define TCP_HEADER_LENGTH  20 /* without options */
#define TCP_SEQUENCE       4
#define TCP_ACKNOWLEDGMENT 8
#define TCP_DATA_OFFSET    12
#define TCP_FLAGS          13
#define TCP_WINDOW         14
#define TCP_CHECKSUM       16
#define TCP_URGENT         18
#define TCP_FIN            0x01
#define TCP_PSH            0x08
#define TCP_ACK            0x10
#define TCP_CWR            0x80 /* RFC 3168 §6.1 */

#define UDP_HEADER_LENGTH 8
#define UDP_LENGTH        4
#define UDP_CHECKSUM      6

static inline uint16_t load_be16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t load_be32(const uint8_t *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof(value));
    return ntohl(value);
}

static inline void store_be16(uint8_t *p, uint16_t value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

static inline void store_be32(uint8_t *p, uint32_t value)
{
    value = htonl(value);
    memcpy(p, &value, sizeof(value));
}

/* A checksum is stored as it was summed: in memory order. */
static inline void store_checksum(uint8_t *p, uint16_t value)
{
    memcpy(p, &value, sizeof(value));
}

/* Addresses and protocol of the pseudo-header; the transport length is added by the caller. */
static inline uint64_t pseudo_header_sum(const uint8_t *ip, uint8_t version, uint8_t protocol)
{
    uint64_t sum = version == 4 ? checksum_add(0, ip + IPV4_ADDRESSES, 8)
                                : checksum_add(0, ip + IPV6_ADDRESSES, 32);
    return sum + htons(protocol);
}

/* Length as the pseudo-header carries it. */
static inline uint64_t pseudo_header_length(uint32_t transport_length)
{
    return htonl(transport_length);
}

/* Rewrites the checksum of an IPv4 header of `length` bytes. */
static inline void ipv4_set_checksum(uint8_t *ip, uint32_t length)
{
    store_checksum(ip + IPV4_CHECKSUM, 0);
    store_checksum(ip + IPV4_CHECKSUM, (uint16_t)~checksum_fold(checksum_add(0, ip, length)));
}

#endif
