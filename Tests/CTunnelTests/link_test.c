// SPDX-License-Identifier: Apache-2.0
/* The real device going down, away and gone, and how the monitor tells it. */
#include "tun_device.h"

#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <pthread.h>

/* ---- the real device going down, away and gone --------------------------------------------- */

/* RTM_NEWLINK or RTM_DELLINK for our link, with one attribute; waits for the acknowledgement. */
static void link_request(uint16_t type, uint16_t attribute, const void *value, uint16_t size)
{
    struct {
        struct nlmsghdr header;
        struct ifinfomsg link;
        char attributes[64];
    } request = {
        .header = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
                   .nlmsg_type = type,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
        .link = {.ifi_family = AF_UNSPEC, .ifi_index = (int)if_nametoindex(NAME)},
    };
    if (size > 0) {
        struct rtattr *a = (struct rtattr *)request.attributes;
        a->rta_type = attribute;
        a->rta_len = (unsigned short)RTA_LENGTH(size);
        memcpy(RTA_DATA(a), value, size);
        request.header.nlmsg_len += RTA_SPACE(size);
    }
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        char rest[512];
    } reply;
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    assert_int_equal(send(fd, &request, request.header.nlmsg_len, 0), request.header.nlmsg_len);
    assert_true(recv(fd, &reply, sizeof(reply), 0) >= (ssize_t)NLMSG_LENGTH(sizeof(reply.error)));
    assert_int_equal(reply.header.nlmsg_type, NLMSG_ERROR);
    assert_int_equal(reply.error.error, 0);
    close(fd);
}

static enum tun_read_result read_once(void)
{
    struct virtio_net_hdr header;
    size_t length;
    enum tun_read_result result;
    do { /* what the kernel says by itself when links change */
        result = tun_read(tun.queue[0], &header, frame, &length);
    } while (result == TUN_READ_FRAME);
    return result;
}

static void pitfall_20_a_device_survives_down_and_ends_with_its_link(void **state)
{
    (void)state;
    struct tunnel_options options = default_options();
    open_up(&options);
    set_flags(NAME, 0, IFF_UP);
    build_train(packet_tcp(4), 10);
    uint64_t calls = 0;
    assert_true(tun_write(tun.queue[0], packets, 10, &counters, &calls));
    assert_int_equal(drops(DROP_LINK_DOWN), 10);
    assert_true(tun.merge_tcp);
    assert_int_not_equal(read_once(), TUN_READ_ENDED);
    set_flags(NAME, IFF_UP, 0);
    check_udp_delivery(4, 500, 10, 1);

    link_request(RTM_DELLINK, 0, NULL, 0);
    assert_int_equal(read_once(), TUN_READ_ENDED);
    build_train(packet_tcp(4), 10);
    assert_false(tun_write(tun.queue[0], packets, 10, &counters, &calls));
}

/* Runs in a thread of its own, which may leave the test's namespace behind. */
static void *make_namespace(void *fd)
{
    if (unshare(CLONE_NEWNET) == 0)
        *(int *)fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    return NULL;
}

static void pitfall_60_a_link_moved_away_is_gone_here_but_not_ended(void **state)
{
    (void)state;
    struct tunnel_options options = default_options();
    struct tun_link_state link;
    pthread_t thread;
    int other = -1;

    open_up(&options);
    int monitor = tun_monitor_open();
    assert_true(monitor >= 0);
    assert_true(tun_link_query(NAME, &link));
    assert_true(link.up && !link.gone);
    assert_int_equal(pthread_create(&thread, NULL, make_namespace, &other), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(other >= 0);

    link_request(RTM_NEWLINK, IFLA_NET_NS_FD, &other, sizeof(other));
    tun_monitor_read(monitor, &link);
    assert_true(link.gone);
    assert_false(tun_link_query(NAME, &(struct tun_link_state){0}));
    assert_int_not_equal(read_once(), TUN_READ_ENDED);
    close(monitor);
    close(other);
}

/* 45 messages of 1,452 bytes fit a train, so 45 segments of TCP with timestamps are to fit a
 * super-packet, and not 46. */
static void super_packets_are_limited_to_a_train(void **state)
{
    (void)state;
    struct tun_link_state link;
    open_default();
    assert_true(tun_link_query(NAME, &link));
    assert_int_equal(link.gso_max_size, 65536);
    tun_limit_super_packets(link.ifindex, 1420);
    assert_true(tun_link_query(NAME, &link));
    assert_in_range(link.gso_max_size - 321, 45 * 1368, 46 * 1368 - 1);
    tun_limit_super_packets(link.ifindex, 576); /* as many as a train has at most */
    assert_true(tun_link_query(NAME, &link));
    assert_in_range(link.gso_max_size - 321, 64 * 524, 65 * 524 - 1);
    assert_int_equal(link.mtu, DEFAULT_MTU);
    tun_close(&tun);
}

static void pitfall_61_the_monitor_follows_down_up_mtu_and_name(void **state)
{
    (void)state;
    struct tun_link_state link, other;
    uint32_t mtu = 1280;

    open_default();
    int monitor = tun_monitor_open();
    assert_true(fcntl(monitor, F_GETFD) & FD_CLOEXEC);
    assert_true(tun_link_query(NAME, &link));
    tun_monitor_read(monitor, &link); /* nothing there: returns */
    set_flags(NAME, IFF_UP, 0);
    tun_monitor_read(monitor, &link);
    assert_true(link.up);
    set_flags(NAME, 0, IFF_UP);
    tun_monitor_read(monitor, &link);
    assert_false(link.up);
    link_request(RTM_NEWLINK, IFLA_MTU, &mtu, sizeof(mtu));
    tun_monitor_read(monitor, &link);
    assert_int_equal(link.mtu, 1280);

    /* what happens to other links is none of ours */
    other = link;
    set_flags("lo", 0, IFF_UP);
    set_flags("lo", IFF_UP, 0);
    tun_monitor_read(monitor, &link);
    assert_memory_equal(&link, &other, sizeof(link));

    link_request(RTM_NEWLINK, IFLA_IFNAME, "wgt0new", 8);
    tun_monitor_read(monitor, &link);
    assert_string_equal(link.name, "wgt0new");
    assert_false(link.gone);
    tun_close(&tun);
    tun_monitor_read(monitor, &link);
    assert_true(link.gone);
    close(monitor);
}

/* More events than the socket holds: the state is asked for instead. */
static void pitfall_61_an_overflow_of_the_monitor_loses_no_state(void **state)
{
    (void)state;
    struct tun_link_state link;
    int monitor = tun_monitor_open(), small = 1;

    open_default();
    assert_int_equal(setsockopt(monitor, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
    assert_true(tun_link_query(NAME, &link));
    for (int i = 0; i < 50; i++) {
        set_flags(NAME, IFF_UP, 0);
        set_flags(NAME, 0, IFF_UP);
    }
    set_flags(NAME, IFF_UP, 0);
    char byte;
    int error = 0;
    socklen_t size = sizeof(error);
    assert_int_equal(getsockopt(monitor, SOL_SOCKET, SO_ERROR, &error, &size), 0);
    assert_int_equal(error, ENOBUFS); /* it did overflow; reading that cleared it, so once more */
    while (recv(monitor, &byte, 1, MSG_DONTWAIT) >= 0)
        ;
    for (int i = 0; i < 50; i++) {
        set_flags(NAME, 0, IFF_UP);
        set_flags(NAME, IFF_UP, 0);
    }
    link.up = false;
    tun_monitor_read(monitor, &link);
    assert_true(link.up && !link.gone);
    assert_int_equal(link.mtu, DEFAULT_MTU);
    close(monitor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(pitfall_20_a_device_survives_down_and_ends_with_its_link),
        DEVICE_TEST(pitfall_60_a_link_moved_away_is_gone_here_but_not_ended),
        DEVICE_TEST(pitfall_61_the_monitor_follows_down_up_mtu_and_name),
        DEVICE_TEST(super_packets_are_limited_to_a_train),
        DEVICE_TEST(pitfall_61_an_overflow_of_the_monitor_loses_no_state),
    };
    enter_namespace();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
