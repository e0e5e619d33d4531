/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending a train: one sendmsg() with UDP GSO, else sendmmsg(), else one sendmsg() per segment. A
 * failed call has sent nothing of the messages it did not report, so no step down the ladder sends
 * a segment twice.
 */
#include "udp.h"

#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>

/* ENOBUFS, EAGAIN: retries per train, and how long each may wait for room in the socket. */
#define TRANSIENT_RETRIES 4
#define ROOM_TIMEOUT_MS   1

struct control {
    _Alignas(struct cmsghdr) uint8_t bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) +
                                           CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint16_t))];
    size_t length;
};

/* One train on its way. */
struct sending {
    struct udp_socket *socket;
    const struct endpoint *to;
    const struct udp_train *train;
    struct counters *counters;
    uint64_t *system_calls;
    bool has_source;  /* the endpoint names one of our addresses … */
    bool with_source; /* … and the kernel has not refused it */
    unsigned retries;
    unsigned flags;
    struct control control;
};

/* ---- control messages ---------------------------------------------------------------------- */

static bool names_source(const struct endpoint *e)
{
    if (e->remote.family == AF_INET)
        return e->source.v4.s_addr != INADDR_ANY;
    return !IN6_IS_ADDR_UNSPECIFIED(&e->source.v6);
}

static void add_control(struct control *c, int level, int type, const void *data, size_t size)
{
    struct cmsghdr *header = (struct cmsghdr *)(c->bytes + c->length);
    memset(header, 0, CMSG_SPACE(size));
    header->cmsg_level = level;
    header->cmsg_type = type;
    header->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(header), data, size);
    c->length += CMSG_SPACE(size);
}

/*
 * The address is sticky, the interface is not: naming it would override routing (ip(7),
 * IP_PKTINFO), and where the reply's route leaves through another one it would send into the void.
 * Only a link-local source needs it.
 */
static void add_source(struct control *c, const struct endpoint *e)
{
    if (e->remote.family == AF_INET) {
        struct in_pktinfo info = {.ipi_spec_dst = e->source.v4};
        add_control(c, IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
    } else {
        struct in6_pktinfo info = {.ipi6_addr = e->source.v6};
        if (IN6_IS_ADDR_LINKLOCAL(&e->source.v6))
            info.ipi6_ifindex = e->source_interface;
        add_control(c, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
    }
}

static void add_tos(struct control *c, const struct endpoint *to, int tos)
{
    if (tos && to->remote.family == AF_INET)
        add_control(c, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
    else if (tos)
        add_control(c, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof tos);
}

/* `segment_size` 0: no UDP_SEGMENT, for single datagrams (pitfall 25). */
static void write_control(struct sending *s, uint16_t segment_size)
{
    s->control.length = 0;
    if (s->with_source)
        add_source(&s->control, s->to);
    add_tos(&s->control, s->to, s->train->tos);
    if (segment_size) /* exactly 16 bits (pitfall 26) */
        add_control(&s->control, IPPROTO_UDP, UDP_SEGMENT, &segment_size, sizeof segment_size);
}

static void address_to(const struct endpoint *to, struct control *control, struct msghdr *message,
                       struct iovec *data)
{
    bool v4 = to->remote.family == AF_INET;
    *message = (struct msghdr){
        .msg_name = (void *)(uintptr_t)&to->remote,
        .msg_namelen = v4 ? sizeof to->remote.v4 : sizeof to->remote.v6,
        .msg_iov = data,
        .msg_iovlen = 1,
        .msg_control = control->length ? control->bytes : NULL,
        .msg_controllen = control->length,
    };
}

/* Every message of a train has the same destination, source and TOS (pitfalls 27, 59). */
static void address_message(struct sending *s, struct msghdr *message, struct iovec *data)
{
    address_to(s->to, &s->control, message, data);
}

/* ---- errors -------------------------------------------------------------------------------- */

static bool is_transient(int error)
{
    return error == EAGAIN || error == ENOBUFS || error == ENOMEM || error == EINTR;
}

/* What the kernel says of a source address or an interface that is gone (pitfall 49). */
static bool may_be_of_source(int error)
{
    return error == EINVAL || error == EADDRNOTAVAIL || error == ENETUNREACH ||
           error == EHOSTUNREACH || error == ENODEV;
}

/* True: try the same again, later or without the source. */
static bool recover(struct sending *s, int error)
{
    if (is_transient(error)) {
        if (!s->retries)
            return false;
        s->retries--;
        if (error == EAGAIN) {
            struct pollfd room = {.fd = s->socket->fd, .events = POLLOUT};
            ++*s->system_calls;
            poll(&room, 1, ROOM_TIMEOUT_MS);
        }
        return true;
    }
    if (s->with_source && may_be_of_source(error)) {
        s->with_source = false;
        return true;
    }
    return false;
}

static void note_sent(struct sending *s)
{
    if (s->has_source && !s->with_source && !(s->flags & UDP_SOURCE_REFUSED)) {
        s->flags |= UDP_SOURCE_REFUSED;
        count_fallback(s->counters, FALLBACK_UDP_SOURCE_CLEARED);
    }
}

static void drop(struct sending *s, int error, size_t segments)
{
    count_drop(s->counters, is_transient(error) ? DROP_UDP_BUFFER_FULL : DROP_UDP_SEND_FAILED,
               segments);
}

/* ---- the ladder ---------------------------------------------------------------------------- */

/* All of the train in one call; 0 or the errno that ended the attempt. */
static int send_grouped(struct sending *s)
{
    const struct udp_socket *socket = s->socket;
    struct iovec data = {.iov_base = s->train->data, .iov_len = s->train->length};
    for (;;) {
        struct msghdr message;
        write_control(s, (uint16_t)s->train->segment_size);
        address_message(s, &message, &data);
        ++*s->system_calls;
        if (socket->io->sendmsg(socket->io_context, socket->fd, &message, 0) >= 0) {
            note_sent(s);
            return 0;
        }
        int error = errno;
        if (!recover(s, error))
            return error;
    }
}

/* One call; how many messages it sent, or a negative errno. */
static int send_some(struct sending *s, struct mmsghdr *messages, unsigned count)
{
    struct udp_socket *socket = s->socket;
    if (count > 1 && atomic_load_explicit(&socket->sendmmsg, memory_order_relaxed)) {
        ++*s->system_calls;
        int sent = socket->io->sendmmsg(socket->io_context, socket->fd, messages, count, 0);
        if (sent > 0)
            return sent;
        if (!sent)
            return -EAGAIN;
        if (errno != ENOSYS)
            return -errno;
        if (atomic_exchange(&socket->sendmmsg, false))
            count_fallback(s->counters, FALLBACK_UDP_WITHOUT_SENDMMSG);
    }
    ++*s->system_calls;
    if (socket->io->sendmsg(socket->io_context, socket->fd, &messages->msg_hdr, 0) < 0)
        return -errno;
    return 1;
}

/*
 * `count` messages, each its own datagram; returns how many were sent. An error belongs to the
 * first unsent message (sendmmsg(2)). One about that packet alone (too long, or dropped by a
 * firewall rule) costs only that packet; any other would meet the rest as well.
 */
static unsigned send_messages(struct sending *s, struct mmsghdr *messages, struct iovec *data,
                              unsigned count)
{
    unsigned next = 0, sent = 0;
    while (next < count) {
        write_control(s, 0);
        for (unsigned i = next; i < count; i++)
            address_message(s, &messages[i].msg_hdr, &data[i]);
        int result = 0;
        while (next < count && (result = send_some(s, messages + next, count - next)) > 0) {
            note_sent(s);
            next += (unsigned)result;
            sent += (unsigned)result;
        }
        if (next == count || recover(s, -result))
            continue;
        bool of_one_packet = result == -EMSGSIZE || result == -EPERM;
        unsigned lost = of_one_packet ? 1 : count - next;
        drop(s, -result, lost);
        next += lost;
    }
    return sent;
}

static size_t send_separately(struct sending *s, size_t segments)
{
    struct mmsghdr messages[MAX_TRAIN_SEGMENTS];
    struct iovec data[MAX_TRAIN_SEGMENTS];
    size_t size = segments > 1 ? s->train->segment_size : s->train->length;
    size_t sent = 0, offset = 0;
    while (segments) {
        unsigned count = 0;
        for (; count < MAX_TRAIN_SEGMENTS && segments; count++, segments--) {
            size_t left = s->train->length - offset;
            data[count].iov_base = s->train->data + offset;
            data[count].iov_len = left < size ? left : size;
            offset += data[count].iov_len;
        }
        sent += send_messages(s, messages, data, count);
    }
    return sent;
}

/*
 * What a refused train means: EIO, the device cannot (udp(7)): no more GSO on this socket
 * (pitfall 21). EINVAL and EMSGSIZE, a segment is longer than this path takes: no more GSO to this
 * destination (pitfalls 22, 23). Returns whether its segments may be sent one by one.
 */
static bool step_down(struct sending *s, int error, bool *destination_refuses)
{
    switch (error) {
    case EIO:
        atomic_store(&s->socket->gso, false);
        count_fallback(s->counters, FALLBACK_UDP_GSO_EIO);
        break;
    case EINVAL:
        *destination_refuses = true;
        count_fallback(s->counters, FALLBACK_UDP_GSO_EINVAL);
        break;
    case EMSGSIZE:
        *destination_refuses = true;
        count_fallback(s->counters, FALLBACK_UDP_GSO_EMSGSIZE);
        break;
    default:
        return false;
    }
    s->with_source = s->has_source; /* the source was not to blame */
    return true;
}

unsigned udp_send(struct udp_pair *pair, const struct endpoint *endpoint,
                  const struct udp_train *train, struct counters *counters, uint64_t *system_calls)
{
    struct sending s = {
        .socket = endpoint->remote.family == AF_INET6 ? &pair->v6 : &pair->v4,
        .to = endpoint,
        .train = train,
        .counters = counters,
        .system_calls = system_calls,
        .has_source = names_source(endpoint),
        .with_source = names_source(endpoint),
        .retries = TRANSIENT_RETRIES,
    };
    size_t segments = 1;
    if (train->segment_size && train->segment_size < train->length)
        segments = (train->length + train->segment_size - 1) / train->segment_size;
    if (s.socket->fd < 0 || !endpoint_is_set(endpoint)) {
        drop(&s, EAFNOSUPPORT, segments);
        return 0;
    }
    bool destination_refuses = false;
    if (segments > 1 && !train->no_gso &&
        atomic_load_explicit(&s.socket->gso, memory_order_relaxed)) {
        int error = send_grouped(&s);
        if (!error)
            return s.flags;
        if (!step_down(&s, error, &destination_refuses)) {
            drop(&s, error, segments);
            return s.flags;
        }
    }
    size_t sent = send_separately(&s, segments);
    if (destination_refuses && sent)
        s.flags |= UDP_GSO_REFUSED;
    return s.flags;
}

/* ---- many destinations --------------------------------------------------------------------- */

static void send_single(struct udp_pair *pair, const struct udp_single *single, uint8_t tos,
                        struct counters *counters, uint64_t *system_calls)
{
    struct udp_train train = {
        .data = single->data, .length = single->length, .segment_size = single->length, .tos = tos};
    udp_send(pair, single->to, &train, counters, system_calls);
}

/* The ones of one family, as messages of one call; returns how many. */
static unsigned gather(const struct udp_single *singles, unsigned count, sa_family_t family,
                       uint8_t tos, struct control *controls, struct iovec *data,
                       struct mmsghdr *messages, const struct udp_single **of)
{
    unsigned n = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct endpoint *to = singles[i].to;
        if (to->remote.family != family)
            continue;
        controls[n].length = 0;
        if (names_source(to))
            add_source(&controls[n], to);
        add_tos(&controls[n], to, tos);
        data[n] = (struct iovec){.iov_base = singles[i].data, .iov_len = singles[i].length};
        address_to(to, &controls[n], &messages[n].msg_hdr, &data[n]);
        of[n++] = &singles[i];
    }
    return n;
}

/* What one sendmmsg() of them sent; 0: nothing, or it is not to be used. */
static unsigned send_together(struct udp_socket *socket, struct mmsghdr *messages, unsigned count,
                              struct counters *counters, uint64_t *system_calls)
{
    if (count < 2 || socket->fd < 0 ||
        !atomic_load_explicit(&socket->sendmmsg, memory_order_relaxed))
        return 0;
    ++*system_calls;
    int sent = socket->io->sendmmsg(socket->io_context, socket->fd, messages, count, 0);
    if (sent < 0 && errno == ENOSYS && atomic_exchange(&socket->sendmmsg, false))
        count_fallback(counters, FALLBACK_UDP_WITHOUT_SENDMMSG);
    return sent > 0 ? (unsigned)sent : 0;
}

void udp_send_singles(struct udp_pair *pair, const struct udp_single *singles, unsigned count,
                      uint8_t tos, struct counters *counters, uint64_t *system_calls)
{
    struct control controls[UDP_MOST_SINGLES];
    struct iovec data[UDP_MOST_SINGLES];
    struct mmsghdr messages[UDP_MOST_SINGLES];
    const struct udp_single *of[UDP_MOST_SINGLES];
    struct udp_socket *const sockets[] = {&pair->v4, &pair->v6};

    for (unsigned i = 0; i < 2; i++) {
        sa_family_t family = i ? AF_INET6 : AF_INET;
        unsigned n = gather(singles, count, family, tos, controls, data, messages, of);
        unsigned next = 0;
        while (next < n) {
            unsigned sent =
                send_together(sockets[i], messages + next, n - next, counters, system_calls);
            next += sent;
            /* What the call did not report was not sent: the error is of the first of those. */
            if (!sent)
                send_single(pair, of[next++], tos, counters, system_calls);
        }
    }
}
