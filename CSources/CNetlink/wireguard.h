/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's WireGuard: linux/wireguard.h describes its messages. */
#ifndef CNETLINK_WIREGUARD_H
#define CNETLINK_WIREGUARD_H

#include "socket.h"

#include <linux/genetlink.h>
#include <linux/wireguard.h>

/* Newer than the headers of Debian 12; Linux 6.16 has them (linux/wireguard.h). */
#define WIREGUARD_PREFIX_FLAGS     4         /* WGALLOWEDIP_A_FLAGS */
#define WIREGUARD_PREFIX_REMOVE_ME (1u << 0) /* WGALLOWEDIP_F_REMOVE_ME */

/* Bytes of one set request: what the kernel accepts in any case is a page; more than 8 KiB gains
 * nothing (NLMSG_GOODSIZE of linux/netlink.h). */
#define WIREGUARD_MESSAGE_MAXIMUM 8192

/* Asks once for the number of the family. -ENOENT: the kernel has no WireGuard. */
int wireguard_family(struct netlink *handle, uint16_t *family);
struct nlmsghdr *family_request(struct netlink_request *request);
bool family_parse(const struct nlmsghdr *message, uint16_t *family);

/* wireguard_get.c: a device as it comes in, message by message. */
struct wireguard_reading {
    struct netlink_wireguard_device *device;
    uint32_t *slots; /* hash by public key: number of the peer + 1, 0 for an empty slot */
    size_t slot_count;
    uint64_t seed;
    size_t last_peer; /* of the message before; SIZE_MAX: none yet */
    size_t prefixes;
};
struct nlmsghdr *wireguard_get_request(struct netlink_request *request, uint16_t family,
                                       const char *name);
int wireguard_take(const struct nlmsghdr *message, void *reading);
void wireguard_restart(void *reading);

/* wireguard_set.c: where the next message goes on. */
struct wireguard_writing {
    const char *name;
    const struct netlink_wireguard_changes *changes;
    uint16_t family;
    size_t capacity; /* of each message */
    bool begun;
    size_t peer, prefix; /* the next to be written; `prefix` within the peer */
    bool peer_begun;     /* an earlier message has the peer's other fields */
};
bool wireguard_is_written(const struct wireguard_writing *writing);
/* The next message into `buffer` (`capacity` bytes); NULL: not even one peer fits. */
struct nlmsghdr *wireguard_write_next(struct wireguard_writing *writing, void *buffer);

#endif
