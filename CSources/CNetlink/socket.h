/* SPDX-License-Identifier: Apache-2.0 */
/* One netlink socket: requests with their answers, and dumps. */
#ifndef CNETLINK_SOCKET_H
#define CNETLINK_SOCKET_H

#include "include/netlink.h"

#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <sys/types.h>

/* Larger than what the kernel puts into one datagram of a dump (32 KiB, netlink_recvmsg() asks for
 * no more), and than one link with all attributes. */
#define NETLINK_RECEIVE_CAPACITY (64 * 1024)

/* Larger than any request of fixed size here. */
#define NETLINK_REQUEST_CAPACITY 1024

struct netlink {
    int fd;
    enum netlink_subsystem subsystem;
    uint32_t port;
    uint32_t sequence;
    uint16_t wireguard_family; /* generic handles; 0: not asked for yet */
    char explanation[NETLINK_EXPLANATION_CAPACITY];
    char *buffer; /* NETLINK_RECEIVE_CAPACITY; erased after use, for it may have held keys */
};

struct netlink_request {
    _Alignas(struct nlmsghdr) char bytes[NETLINK_REQUEST_CAPACITY];
};

/* Begins a message in `buffer`, all zeros; its flags, sequence and port are set by whoever sends
 * it. */
struct nlmsghdr *netlink_begin(void *buffer, size_t capacity, uint16_t type);

/* One message of an answer; 0 or a negative errno, which ends the reading. */
typedef int (*netlink_take)(const struct nlmsghdr *message, void *context);

/* Sends `message` and takes what comes before its acknowledgement. `take` may be NULL. */
int netlink_transact(struct netlink *handle, struct nlmsghdr *message, uint16_t flags,
                     netlink_take take, void *context);

/*
 * Sends the whole messages in `length` bytes as one, without answers but of those that fail: the
 * code of the first of these. The kernel goes through all of them.
 */
int netlink_transact_all(struct netlink *handle, void *messages, size_t length, uint16_t flags);

/*
 * Sends `message` as a dump and takes every message of it. A dump that changed while it was read
 * (NLM_F_DUMP_INTR) is not consistent: `restart` forgets what was taken, and it is read again.
 */
int netlink_dump(struct netlink *handle, struct nlmsghdr *message, netlink_take take,
                 void (*restart)(void *context), void *context);

/* What came in one datagram, for one request. `done` is set at the acknowledgement or end. */
struct netlink_reading {
    uint32_t sequence;
    netlink_take take;
    void *context;
    char *explanation;
    bool done;
    bool interrupted;
};
int netlink_read_datagram(struct netlink_reading *reading, const void *bytes, size_t length);

/* Whether a whole message stands there. mnl_nlmsg_ok() takes a length beyond INT_MAX for a negative
 * one, and mnl_nlmsg_next() would stay where it is. */
bool netlink_message_fits(const struct nlmsghdr *message, int rest);

/* One datagram from the kernel: its length, 0 for one of another sender, or a negative errno
 * (-EMSGSIZE: cut off). */
ssize_t netlink_receive(int fd, void *buffer, size_t capacity);

/* A bound socket; negative errno. */
int netlink_socket_open(int protocol, uint32_t groups, int flags);

/* Room for one more behind `count` items: the array, moved and with the former place erased when
 * it was full; NULL without memory, and `items` stays. */
void *netlink_grow(void *items, size_t count, size_t size);

#endif
