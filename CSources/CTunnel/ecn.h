/* SPDX-License-Identifier: Apache-2.0 */
/* Congestion marks of inner packets (RFC 3168, RFC 6040). */
#ifndef CTUNNEL_ECN_H
#define CTUNNEL_ECN_H

#include <stdbool.h>
#include <stdint.h>

enum ecn { ECN_NOT_ECT = 0, ECN_ECT_1 = 1, ECN_ECT_0 = 2, ECN_CE = 3 };

/* Of an IPv4 or IPv6 packet. */
static inline uint8_t ecn_of(const uint8_t *packet)
{
    return packet[0] >> 4 == 4 ? packet[1] & 3 : packet[1] >> 4 & 3;
}

static inline void ecn_set(uint8_t *packet, uint8_t ecn)
{
    if (packet[0] >> 4 != 4) {
        packet[1] = (uint8_t)((packet[1] & 0xcf) | ecn << 4);
        return;
    }
    /* Header checksum updated in place, RFC 1624 equation 3. */
    uint32_t old_word = (uint32_t)packet[0] << 8 | packet[1];
    packet[1] = (uint8_t)((packet[1] & 0xfc) | ecn);
    uint32_t new_word = (uint32_t)packet[0] << 8 | packet[1];
    uint32_t sum = (uint32_t)packet[10] << 8 | packet[11];
    sum = (~sum & 0xffff) + (~old_word & 0xffff) + new_word;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    packet[10] = (uint8_t)(~sum >> 8);
    packet[11] = (uint8_t)~sum;
}

/* The signal to slow down for who understands it. False: its sender does not; drop the packet. */
static inline bool ecn_mark_congestion(uint8_t *packet)
{
    if (ecn_of(packet) == ECN_NOT_ECT)
        return false;
    if (ecn_of(packet) != ECN_CE)
        ecn_set(packet, ECN_CE);
    return true;
}

#endif
