/* SPDX-License-Identifier: Apache-2.0 */
/* What wakes a loop over poll(2): another thread, or a change of the host's network. */
#include "include/host_process.h"
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

int host_wakeup_open(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

/* Neither fails in a way that matters: a counter that is full is readable, one that is empty was
 * read by nobody else. */
void host_wakeup_raise(int fd)
{
    (void)eventfd_write(fd, 1);
}

void host_wakeup_clear(int fd)
{
    eventfd_t count;
    (void)eventfd_read(fd, &count);
}

int host_network_changes_open(void)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd < 0)
        return -errno;
    struct sockaddr_nl address = {
        .nl_family = AF_NETLINK,
        .nl_groups =
            RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE,
    };
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        int failure = -errno;
        close(fd);
        return failure;
    }
    return fd;
}
