// SPDX-License-Identifier: Apache-2.0
/*
 * The link as the kernel tells it, through rtnetlink(7). A deletion reported here is no end of the
 * device: a link that moved to another namespace is reported the same way (pitfall 60). And the one
 * thing it is asked for: super-packets of a size that suits.
 */
#include "messages.h"
#include "tun.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* One link message with all its attributes; an ordinary one has about 1,500 bytes. */
#define MESSAGE_CAPACITY (32 * 1024)

static int open_route_socket(uint32_t groups, int flags)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | flags, NETLINK_ROUTE);

    if (fd < 0)
        return -errno;
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

int tun_monitor_open(void)
{
    return open_route_socket(RTMGRP_LINK, SOCK_NONBLOCK);
}

/* One datagram from the kernel. Length, 0 for one to skip, or a negative errno. */
static ssize_t receive_message(int fd, void *buffer)
{
    struct sockaddr_nl sender = {0};
    struct iovec iov = {.iov_base = buffer, .iov_len = MESSAGE_CAPACITY};
    struct msghdr message = {
        .msg_name = &sender,
        .msg_namelen = sizeof(sender),
        .msg_iov = &iov,
        .msg_iovlen = 1,
    };
    ssize_t n;

    do {
        n = recvmsg(fd, &message, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    if (message.msg_flags & MSG_TRUNC)
        return -ENOBUFS; /* part of it is lost: as after an overflow */
    return sender.nl_pid == 0 ? n : 0;
}

/* ---- messages ------------------------------------------------------------------------------ */

static int take_attribute(const struct nlattr *attribute, void *context)
{
    struct tun_link_state *state = context;

    switch (mnl_attr_get_type(attribute)) {
    case IFLA_IFNAME:
        if (mnl_attr_validate(attribute, MNL_TYPE_NUL_STRING) < 0 ||
            mnl_attr_get_payload_len(attribute) > sizeof(state->name))
            return MNL_CB_ERROR;
        strcpy(state->name, mnl_attr_get_str(attribute));
        break;
    case IFLA_MTU:
        if (mnl_attr_validate(attribute, MNL_TYPE_U32) < 0)
            return MNL_CB_ERROR;
        state->mtu = mnl_attr_get_u32(attribute);
        break;
    case IFLA_GSO_MAX_SIZE:
        if (mnl_attr_validate(attribute, MNL_TYPE_U32) < 0)
            return MNL_CB_ERROR;
        state->gso_max_size = mnl_attr_get_u32(attribute);
        break;
    }
    return MNL_CB_OK;
}

/* The message's link header; NULL for other messages. Bridges report their ports' comings and
 * goings as links of family AF_BRIDGE: those are not the link's own. */
static const struct ifinfomsg *link_header(const struct nlmsghdr *message)
{
    if (message->nlmsg_type != RTM_NEWLINK && message->nlmsg_type != RTM_DELLINK)
        return NULL;
    if (mnl_nlmsg_get_payload_len(message) < sizeof(struct ifinfomsg))
        return NULL;
    const struct ifinfomsg *link = mnl_nlmsg_get_payload(message);
    return link->ifi_family == AF_UNSPEC ? link : NULL;
}

static void take_link(const struct nlmsghdr *message, const struct ifinfomsg *link,
                      struct tun_link_state *state)
{
    if (message->nlmsg_type == RTM_DELLINK) {
        state->gone = true;
        return;
    }
    state->gone = false;
    state->ifindex = link->ifi_index;
    state->up = (link->ifi_flags & IFF_UP) != 0;
    mnl_attr_parse(message, sizeof(*link), take_attribute, state);
}

/* ---- query --------------------------------------------------------------------------------- */

static bool send_query(int fd, const char *name, int ifindex)
{
    char buffer[256];
    struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);

    message->nlmsg_type = RTM_GETLINK;
    message->nlmsg_flags = NLM_F_REQUEST;
    message->nlmsg_seq = 1;
    struct ifinfomsg *link = mnl_nlmsg_put_extra_header(message, sizeof(*link));
    link->ifi_family = AF_UNSPEC;
    link->ifi_index = ifindex;
    if (name != NULL)
        mnl_attr_put_strz(message, IFLA_IFNAME, name);
    return send(fd, message, message->nlmsg_len, 0) == (ssize_t)message->nlmsg_len;
}

/* The kernel answers inside send(): one message into `buffer`, the link or an error. The link's
 * message, or NULL. */
static const struct nlmsghdr *query(const char *name, int ifindex, void *buffer)
{
    const struct nlmsghdr *message = buffer;
    int fd = open_route_socket(0, 0);
    ssize_t length = 0;

    if (fd < 0)
        return NULL;
    if (send_query(fd, name, ifindex))
        length = receive_message(fd, buffer);
    close(fd);
    bool found = length > 0 && mnl_nlmsg_ok(message, (int)length) && link_header(message) != NULL;
    return found ? message : NULL;
}

static bool query_link(const char *name, int ifindex, struct tun_link_state *state)
{
    _Alignas(struct nlmsghdr) char buffer[MESSAGE_CAPACITY];
    const struct nlmsghdr *message = query(name, ifindex, buffer);

    if (message != NULL)
        take_link(message, link_header(message), state);
    return message != NULL;
}

bool tun_link_query(const char *name, struct tun_link_state *state)
{
    *state = (struct tun_link_state){0};
    return query_link(name, 0, state);
}

/*
 * TCP cuts its super-packets to gso_max_size less room for headers (sk_setup_caps in
 * net/core/sock.c: MAX_TCP_HEADER and one), in multiples of its segment: the MTU less 40 bytes of
 * headers, in IPv6 60, and mostly 12 of timestamps (RFC 7323). The size is right for the common
 * case, IPv4 with those; the others get as many segments or one less.
 */
#define TCP_HEADER_ROOM     384
#define TCP_COMMON_OVERHEAD 52

static uint32_t super_packet_size(uint32_t mtu)
{
    uint32_t segments = MAX_TRAIN_BYTES / (mtu + (uint32_t)MESSAGE_DATA_MINIMUM);
    if (segments > MAX_TRAIN_SEGMENTS)
        segments = MAX_TRAIN_SEGMENTS;
    return segments * (mtu - TCP_COMMON_OVERHEAD) + TCP_HEADER_ROOM;
}

void tun_limit_super_packets(int ifindex, uint32_t mtu)
{
    char buffer[256];
    struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
    int fd;

    if (mtu <= TCP_COMMON_OVERHEAD || mtu > MAX_TRAIN_BYTES / 2 ||
        (fd = open_route_socket(0, 0)) < 0)
        return;
    message->nlmsg_type = RTM_NEWLINK;
    message->nlmsg_flags = NLM_F_REQUEST;
    struct ifinfomsg *link = mnl_nlmsg_put_extra_header(message, sizeof(*link));
    link->ifi_family = AF_UNSPEC;
    link->ifi_index = ifindex;
    mnl_attr_put_u32(message, IFLA_GSO_MAX_SIZE, super_packet_size(mtu));
    ssize_t sent = send(fd, message, message->nlmsg_len, 0);
    (void)sent;
    close(fd);
}

/* The first attribute of this type inside `nest`, or NULL. */
static const struct nlattr *find_nested(const struct nlattr *nest, uint16_t type)
{
    const struct nlattr *attribute;

    mnl_attr_for_each_nested(attribute, nest)
    {
        if (mnl_attr_get_type(attribute) == type)
            return attribute;
    }
    return NULL;
}

bool tun_link_has_packet_information(const char *name)
{
    _Alignas(struct nlmsghdr) char buffer[MESSAGE_CAPACITY];
    const struct nlmsghdr *message = query(name, 0, buffer);
    const struct nlattr *attribute, *data = NULL, *found = NULL;

    if (message == NULL)
        return false;
    mnl_attr_for_each(attribute, message, sizeof(struct ifinfomsg))
    {
        if (mnl_attr_get_type(attribute) == IFLA_LINKINFO)
            data = find_nested(attribute, IFLA_INFO_DATA);
    }
    if (data != NULL)
        found = find_nested(data, IFLA_TUN_PI);
    return found != NULL && mnl_attr_validate(found, MNL_TYPE_U8) >= 0 &&
           mnl_attr_get_u8(found) != 0;
}

/* ---- monitor ------------------------------------------------------------------------------- */

static void take_messages(const char *buffer, int length, struct tun_link_state *state)
{
    const struct nlmsghdr *message = (const struct nlmsghdr *)buffer;

    for (; mnl_nlmsg_ok(message, length); message = mnl_nlmsg_next(message, &length)) {
        const struct ifinfomsg *link = link_header(message);
        if (link != NULL && link->ifi_index == state->ifindex)
            take_link(message, link, state);
    }
}

void tun_monitor_read(int monitor_fd, struct tun_link_state *state)
{
    _Alignas(struct nlmsghdr) char buffer[MESSAGE_CAPACITY];
    bool overflowed = false;
    ssize_t n;

    while ((n = receive_message(monitor_fd, buffer)) >= 0 || n == -ENOBUFS) {
        if (n == -ENOBUFS)
            overflowed = true;
        else
            take_messages(buffer, (int)n, state);
    }
    /* Asked only now: what was queued before the overflow is older than the answer. */
    if (overflowed)
        state->gone = !query_link(NULL, state->ifindex, state);
}
