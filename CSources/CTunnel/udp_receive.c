/* SPDX-License-Identifier: Apache-2.0 */
/* Receiving: one recvmmsg() of up to eight datagrams or GRO trains, each with its ancillary data.
 */
#include "engine.h"
#include "lines.h"
#include "udp.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

/* Room for pktinfo, TOS and GRO of either family, and some to spare. */
#define CONTROL_CAPACITY 256
/* Errors of single packets that one call may skip. */
#define SKIPPED_ERRORS 4

union control {
    _Alignas(struct cmsghdr) uint8_t bytes[CONTROL_CAPACITY];
};

struct udp_receiver {
    uint8_t *buffers; /* mapped: pages that no packet has reached cost no memory */
    struct mmsghdr messages[UDP_RECEIVE_MESSAGES];
    struct iovec data[UDP_RECEIVE_MESSAGES];
    struct sockaddr_in6 names[UDP_RECEIVE_MESSAGES]; /* large enough for IPv4 */
    union control controls[UDP_RECEIVE_MESSAGES];
    struct udp_received received[UDP_RECEIVE_MESSAGES];
};

#define BUFFER_BYTES ((size_t)UDP_RECEIVE_MESSAGES * UDP_RECEIVE_CAPACITY)

struct udp_receiver *udp_receiver_create(void)
{
    struct udp_receiver *r = lines_alloc(sizeof *r);
    if (!r)
        return NULL;
    r->buffers =
        mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (r->buffers == MAP_FAILED) {
        free(r);
        return NULL;
    }
    madvise(r->buffers, BUFFER_BYTES, MADV_NOHUGEPAGE);
    return r;
}

void udp_receiver_destroy(struct udp_receiver *receiver)
{
    if (!receiver)
        return;
    munmap(receiver->buffers, BUFFER_BYTES);
    free(receiver);
}

/* Every length is in and out: set before each call (pitfall 26). */
static void prepare(struct udp_receiver *r)
{
    for (unsigned i = 0; i < UDP_RECEIVE_MESSAGES; i++) {
        r->data[i].iov_base = r->buffers + (size_t)i * UDP_RECEIVE_CAPACITY;
        r->data[i].iov_len = UDP_RECEIVE_CAPACITY;
        r->messages[i].msg_hdr = (struct msghdr){
            .msg_name = &r->names[i],
            .msg_namelen = sizeof r->names[i],
            .msg_iov = &r->data[i],
            .msg_iovlen = 1,
            .msg_control = r->controls[i].bytes,
            .msg_controllen = sizeof r->controls[i].bytes,
        };
    }
}

/* Errors that an ICMP message about one earlier packet leaves on a socket (icmp(7), udp(7)). */
static bool is_of_one_packet(int error)
{
    return error == EINTR || error == ECONNREFUSED || error == EHOSTUNREACH ||
           error == ENETUNREACH || error == EHOSTDOWN || error == EMSGSIZE || error == EPROTO ||
           error == ENOPROTOOPT;
}

static void read_source(struct endpoint *e, const struct cmsghdr *c)
{
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO &&
        c->cmsg_len >= CMSG_LEN(sizeof(struct in_pktinfo))) {
        struct in_pktinfo info;
        memcpy(&info, CMSG_DATA(c), sizeof info);
        e->source.v4 = info.ipi_spec_dst; /* the local address, also of a broadcast */
        e->source_interface = (uint32_t)info.ipi_ifindex;
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO &&
               c->cmsg_len >= CMSG_LEN(sizeof(struct in6_pktinfo))) {
        struct in6_pktinfo info;
        memcpy(&info, CMSG_DATA(c), sizeof info);
        if (IN6_IS_ADDR_MULTICAST(&info.ipi6_addr)) /* no source to reply from */
            return;
        e->source.v6 = info.ipi6_addr;
        e->source_interface = info.ipi6_ifindex;
    }
}

/* socket(7), SO_TIMESTAMPNS: by the wall clock, which may have been set meanwhile. */
static void read_arrival(struct udp_received *out, const struct cmsghdr *c,
                         const struct timespec *now)
{
    struct timespec arrival;
    memcpy(&arrival, CMSG_DATA(c), sizeof arrival);
    int64_t waited =
        (now->tv_sec - arrival.tv_sec) * (int64_t)NSEC_PER_SEC + now->tv_nsec - arrival.tv_nsec;
    out->waited_ns = waited > 0 ? (uint64_t)waited : 0;
}

static void read_control(struct udp_received *out, struct msghdr *header,
                         const struct timespec *now)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        int value = 0;
        size_t size = c->cmsg_len - CMSG_LEN(0);
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS && size >= 1) {
            out->tos = *CMSG_DATA(c); /* one byte, unlike in IPv6 (ip(7), RFC 3542 §6.5) */
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS &&
                   size >= sizeof value) {
            memcpy(&value, CMSG_DATA(c), sizeof value);
            out->tos = (uint8_t)value;
        } else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO &&
                   size >= sizeof value) { /* an int, although UDP_SEGMENT has 16 bits */
            memcpy(&value, CMSG_DATA(c), sizeof value);
            if (value > 0 && (uint32_t)value < out->length)
                out->segment_size = (uint32_t)value;
        } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS &&
                   size >= sizeof(struct timespec)) {
            read_arrival(out, c, now);
        } else {
            read_source(&out->from, c);
        }
    }
}

/* False: nothing to pass on, and counted. */
static bool read_message(struct udp_received *out, struct mmsghdr *message,
                         const struct timespec *now, struct counters *counters)
{
    struct msghdr *header = &message->msg_hdr;
    if (header->msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
        count_drop(counters, DROP_UDP_TRUNCATED, 1);
        return false;
    }
    if (!message->msg_len) {
        count_drop(counters, DROP_MESSAGE_TOO_SHORT, 1);
        return false;
    }
    *out = (struct udp_received){
        .data = header->msg_iov->iov_base,
        .length = message->msg_len,
        .segment_size = message->msg_len,
    };
    /* Without padding or flow label, for endpoints are compared; with the scope (pitfall 48). */
    const struct sockaddr_in6 *name = header->msg_name;
    if (name->sin6_family == AF_INET) {
        memcpy(&out->from.remote.v4, name, sizeof out->from.remote.v4);
        memset(out->from.remote.v4.sin_zero, 0, sizeof out->from.remote.v4.sin_zero);
    } else {
        out->from.remote.v6 = *name;
        out->from.remote.v6.sin6_flowinfo = 0;
    }
    read_control(out, header, now);
    return true;
}

int udp_receive(struct udp_socket *socket, struct udp_receiver *receiver, struct udp_received **out,
                struct counters *counters)
{
    *out = receiver->received;
    if (socket->fd < 0)
        return 0;
    int count = -1;
    for (unsigned i = 0; count < 0; i++) {
        prepare(receiver);
        count = socket->io->recvmmsg(socket->io_context, socket->fd, receiver->messages,
                                     UDP_RECEIVE_MESSAGES, MSG_DONTWAIT);
        if (count < 0 && errno == EAGAIN)
            return 0;
        if (count < 0 && !is_of_one_packet(errno))
            return -errno;
        if (count < 0 && i == SKIPPED_ERRORS)
            return 0;
    }
    struct timespec now;
    int kept = 0;
    clock_wall(&now);
    for (int i = 0; i < count; i++)
        if (read_message(&receiver->received[kept], &receiver->messages[i], &now, counters))
            kept++;
    return kept;
}
