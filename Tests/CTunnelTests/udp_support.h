/* SPDX-License-Identifier: Apache-2.0 */
/* What the udp_*_test programs share: namespaces of their own, plain sockets at the other end, and
 * system calls that are recorded and made to fail. */
#ifndef UDP_SUPPORT_H
#define UDP_SUPPORT_H

#include "udp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- namespaces ---------------------------------------------------------------------------- */

static inline void run(const char *command)
{
    if (system(command))
        fail_msg("%s", command);
}

static inline void enter(int namespace)
{
    assert_return_code(setns(namespace, CLONE_NEWNET), errno);
}

/* A new network namespace with its loopback up; the caller's from now on. */
static inline int enter_new_namespace(void)
{
    assert_return_code(unshare(CLONE_NEWNET), errno);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_return_code(fd, errno);
    struct ifreq lo = {.ifr_name = "lo"};
    assert_return_code(ioctl(fd, SIOCGIFFLAGS, &lo), errno);
    lo.ifr_flags |= IFF_UP;
    assert_return_code(ioctl(fd, SIOCSIFFLAGS, &lo), errno);
    close(fd);
    /* Without CLOEXEC: run() names it as /proc/self/fd/N. */
    int namespace = open("/proc/thread-self/ns/net", O_RDONLY);
    assert_return_code(namespace, errno);
    return namespace;
}

/* Joins the caller's namespace with `other` by a veth pair, `near` here and `far` there. */
static inline void add_link(const char *near, const char *far, int other)
{
    char command[200];
    snprintf(command, sizeof command,
             "ip link add %s type veth peer name %s && "
             "ip link set %s netns /proc/self/fd/%d && ip link set %s up",
             near, far, far, other, near);
    run(command);
}

/* Waits for the operational state, which follows the carrier by a work queue (operstates.rst). */
static inline void await_link_up(const char *name)
{
    char command[160];
    snprintf(command, sizeof command,
             "for i in $(seq 500); do ip link show %s | grep -q 'state UP' && exit; sleep 0.02; "
             "done; exit 1",
             name);
    run(command);
}

/*
 *   here  10.77.0.1, .3  fd77::1, ::3  fe80::1              there  10.77.0.2  fd77::2  fe80::2
 *     ngudp0 ─────────────────────────── veth ─────────────────────────── ngudp1
 *
 * The caller stays here.
 */
struct two_hosts {
    int here, there;
};

static inline struct two_hosts make_two_hosts(void)
{
    struct two_hosts hosts;
    hosts.there = enter_new_namespace();
    hosts.here = enter_new_namespace();
    add_link("ngudp0", "ngudp1", hosts.there);
    run("ip addr add 10.77.0.1/24 dev ngudp0; ip addr add 10.77.0.3/24 dev ngudp0;"
        "ip addr add fd77::1/64 dev ngudp0 nodad; ip addr add fd77::3/64 dev ngudp0 nodad;"
        "ip addr add fe80::1/64 dev ngudp0 nodad");
    enter(hosts.there);
    run("ip link set ngudp1 up");
    /* Until both ends are up, what neighbour discovery sends is lost. */
    await_link_up("ngudp1");
    run("ip addr add 10.77.0.2/24 dev ngudp1;"
        "ip addr add fd77::2/64 dev ngudp1 nodad; ip addr add fe80::2/64 dev ngudp1 nodad");
    enter(hosts.here);
    await_link_up("ngudp0");
    return hosts;
}

static inline void leave_two_hosts(struct two_hosts hosts)
{
    close(hosts.here);
    close(hosts.there);
    close(enter_new_namespace());
}

/* ---- addresses and plain sockets ----------------------------------------------------------- */

static inline struct endpoint endpoint_to(const char *address, uint16_t port, unsigned scope)
{
    struct endpoint e = {0};
    if (inet_pton(AF_INET, address, &e.remote.v4.sin_addr) == 1) {
        e.remote.v4.sin_family = AF_INET;
        e.remote.v4.sin_port = htons(port);
    } else {
        assert_int_equal(inet_pton(AF_INET6, address, &e.remote.v6.sin6_addr), 1);
        e.remote.v6.sin6_family = AF_INET6;
        e.remote.v6.sin6_port = htons(port);
        e.remote.v6.sin6_scope_id = scope;
    }
    return e;
}

static inline struct sockaddr *address_of(struct endpoint *e)
{
    return (struct sockaddr *)&e->remote;
}

static inline socklen_t length_of(const struct endpoint *e)
{
    return e->remote.family == AF_INET ? sizeof e->remote.v4 : sizeof e->remote.v6;
}

/* A plain socket on `address`; `*e` becomes its name. Receiving gives up after ten seconds, which
 * only a failing test gets to. */
static inline int open_plain(struct endpoint *e, const char *address, unsigned scope)
{
    *e = endpoint_to(address, 0, scope);
    int fd = socket(e->remote.family, SOCK_DGRAM | SOCK_CLOEXEC, 0), size = 16 << 20, on = 1;
    assert_return_code(fd, errno);
    assert_return_code(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size), errno);
    struct timeval limit = {.tv_sec = 10};
    assert_return_code(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), errno);
    if (e->remote.family == AF_INET)
        setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof on);
    else
        setsockopt(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof on);
    socklen_t length = length_of(e);
    assert_return_code(bind(fd, address_of(e), length), errno);
    assert_return_code(getsockname(fd, address_of(e), &length), errno);
    return fd;
}

struct datagram {
    uint8_t data[65536];
    ssize_t length;
    struct endpoint from;
    int tos;
};

static inline void receive_plain(int fd, struct datagram *d)
{
    _Alignas(struct cmsghdr) uint8_t control[128];
    struct iovec data = {d->data, sizeof d->data};
    memset(&d->from, 0, sizeof d->from);
    struct msghdr m = {.msg_name = &d->from.remote,
                       .msg_namelen = sizeof d->from.remote,
                       .msg_iov = &data,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof control};
    d->length = recvmsg(fd, &m, 0);
    assert_return_code(d->length, errno);
    d->tos = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
        if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
            (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS))
            d->tos = *CMSG_DATA(c); /* little endian: the low byte of an int comes first */
}

static inline void assert_nothing_more(int fd)
{
    uint8_t byte;
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
}

/* ---- trains -------------------------------------------------------------------------------- */

static inline struct udp_train make_train(uint8_t *data, size_t length, size_t segment_size)
{
    for (size_t i = 0; i < length; i++)
        data[i] = (uint8_t)(i * 31 + i / 251);
    return (struct udp_train){.data = data, .length = length, .segment_size = segment_size};
}

/* Each segment from `first` to `end` arrives once, in order, byte for byte; returns the last. */
static inline struct datagram *expect_segments(int fd, const struct udp_train *t, size_t first,
                                               size_t end)
{
    static struct datagram d;
    for (size_t i = first; i < end; i++) {
        size_t offset = i * t->segment_size, left = t->length - offset;
        size_t size = left < t->segment_size ? left : t->segment_size;
        receive_plain(fd, &d);
        assert_int_equal(d.length, size);
        assert_memory_equal(d.data, t->data + offset, size);
    }
    return &d;
}

/* A veth pair queues per CPU: a sender that the scheduler moves between two sends may see its
 * packets overtake each other. Tests that compare the order call this first. */
static inline void stay_on_one_cpu(void)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(sched_getcpu(), &cpus);
    assert_return_code(sched_setaffinity(0, sizeof cpus, &cpus), errno);
}

static inline size_t segments_of(const struct udp_train *t)
{
    return (t->length + t->segment_size - 1) / t->segment_size;
}

static inline struct datagram *expect_train(int fd, const struct udp_train *t)
{
    struct datagram *last = expect_segments(fd, t, 0, segments_of(t));
    assert_nothing_more(fd);
    return last;
}

/* ---- recorded system calls ----------------------------------------------------------------- */

enum call_kind { CALL_SENDMSG, CALL_SENDMMSG };

struct call {
    enum call_kind kind;
    unsigned messages;
    size_t bytes; /* of the first message */
    bool pktinfo, tos, segment;
    uint16_t segment_size;
    size_t segment_cmsg_length;
};

/* The first `step_count` calls: fail with `error`, or send at most `limit` messages. Later ones and
 * those without either go to the system. */
struct script {
    struct {
        int error;
        unsigned limit;
    } steps[16];
    unsigned step_count, call_count;
    struct call calls[256];
};

static inline void record(struct script *s, enum call_kind kind, unsigned messages,
                          const struct msghdr *m)
{
    assert_in_range(s->call_count, 0, 255);
    struct call *call = &s->calls[s->call_count++];
    *call = (struct call){.kind = kind, .messages = messages, .bytes = m->msg_iov->iov_len};
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c;
         c = CMSG_NXTHDR((struct msghdr *)(uintptr_t)m, c)) {
        if (c->cmsg_level == IPPROTO_UDP) {
            call->segment = true;
            call->segment_cmsg_length = c->cmsg_len;
            memcpy(&call->segment_size, CMSG_DATA(c), sizeof call->segment_size);
        } else if (c->cmsg_type == (c->cmsg_level == IPPROTO_IP ? IP_PKTINFO : IPV6_PKTINFO)) {
            call->pktinfo = true;
        } else {
            call->tos = true;
        }
    }
}

static inline ssize_t scripted_sendmsg(void *context, int fd, const struct msghdr *m, int flags)
{
    struct script *s = context;
    unsigned step = s->call_count;
    record(s, CALL_SENDMSG, 1, m);
    if (step < s->step_count && s->steps[step].error) {
        errno = s->steps[step].error;
        return -1;
    }
    return sendmsg(fd, m, flags);
}

static inline int scripted_sendmmsg(void *context, int fd, struct mmsghdr *m, unsigned count,
                                    int flags)
{
    struct script *s = context;
    unsigned step = s->call_count;
    record(s, CALL_SENDMMSG, count, &m->msg_hdr);
    if (step < s->step_count && s->steps[step].error) {
        errno = s->steps[step].error;
        return -1;
    }
    if (step < s->step_count && s->steps[step].limit && s->steps[step].limit < count)
        count = s->steps[step].limit;
    return sendmmsg(fd, m, count, flags);
}

static const struct udp_io scripted_io = {.sendmsg = scripted_sendmsg,
                                          .sendmmsg = scripted_sendmmsg};

static inline void use_script(struct udp *udp, struct script *s)
{
    memset(s, 0, sizeof *s);
    udp->pair[0].v4.io = udp->pair[0].v6.io = &scripted_io;
    udp->pair[0].v4.io_context = udp->pair[0].v6.io_context = s;
}

/* ---- the unit ------------------------------------------------------------------------------ */

static inline void open_udp(struct udp *udp, const struct udp_options *options, unsigned workers,
                            struct counters *counters)
{
    static const struct udp_options none;
    memset(counters, 0, sizeof *counters);
    assert_int_equal(udp_init(udp, options ? options : &none, workers, counters), 0);
    assert_int_equal(udp_bind(udp, 0, counters), 0);
}

static inline uint64_t drops(const struct counters *c, enum drop_reason reason)
{
    return counter_get(&c->drops[reason]);
}

static inline uint64_t all_drops(const struct counters *c)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < DROP_COUNT; i++)
        sum += counter_get(&c->drops[i]);
    return sum;
}

static inline uint64_t fallbacks(const struct counters *c, enum fallback_reason reason)
{
    return counter_get(&c->fallbacks[reason]);
}

#endif
