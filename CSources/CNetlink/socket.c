// SPDX-License-Identifier: Apache-2.0
#include "socket.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* A network whose routes change faster than they can be listed this often is told, not waited for.
 */
#define DUMP_ATTEMPTS 16

/* ---- opening and closing ------------------------------------------------------------------- */

int netlink_socket_open(int protocol, uint32_t groups, int flags)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | flags, protocol);

    if (fd < 0)
        return -errno;
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

/* For requests: bounded waiting, explanations, and strict checking (Linux 4.20), without which a
 * dump ignores its filter. What an old kernel does not know is done without. */
static int open_for_requests(enum netlink_subsystem subsystem)
{
    static const int options[] = {NETLINK_EXT_ACK, NETLINK_CAP_ACK, NETLINK_GET_STRICT_CHK};
    struct timeval limit = {.tv_sec = NETLINK_TIMEOUT_SECONDS};
    int protocol = subsystem == NETLINK_SUBSYSTEM_ROUTE ? NETLINK_ROUTE : NETLINK_GENERIC;
    int on = 1, fd = netlink_socket_open(protocol, 0, 0);

    if (fd < 0)
        return fd;
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
        setsockopt(fd, SOL_NETLINK, options[i], &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    return fd;
}

static uint32_t port_of(int fd)
{
    struct sockaddr_nl address = {0};
    socklen_t length = sizeof(address);

    if (getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        return 0;
    return address.nl_pid;
}

int netlink_open(struct netlink **handle, enum netlink_subsystem subsystem)
{
    struct netlink *made = calloc(1, sizeof(*made));

    *handle = NULL;
    if (made == NULL)
        return -ENOMEM;
    made->subsystem = subsystem;
    made->buffer = malloc(NETLINK_RECEIVE_CAPACITY);
    made->fd = made->buffer == NULL ? -ENOMEM : open_for_requests(subsystem);
    if (made->fd < 0) {
        int error = made->fd;
        netlink_close(made);
        return error;
    }
    made->port = port_of(made->fd);
    *handle = made;
    return 0;
}

void netlink_close(struct netlink *handle)
{
    if (handle == NULL)
        return;
    if (handle->fd >= 0)
        close(handle->fd);
    free(handle->buffer);
    free(handle);
}

const char *netlink_explanation(const struct netlink *handle)
{
    return handle->explanation;
}

uint32_t netlink_port(const struct netlink *handle)
{
    return handle->port;
}

/* ---- answers ------------------------------------------------------------------------------- */

/* The text of an extended acknowledgement (NLMSGERR_ATTR_MSG), which begins `offset` bytes behind
 * the message's header. Only what cannot steer a terminal. */
static void take_explanation(const struct nlmsghdr *message, size_t offset, char *explanation)
{
    const struct nlattr *attribute;

    if (!(message->nlmsg_flags & NLM_F_ACK_TLVS) || offset > mnl_nlmsg_get_payload_len(message))
        return;
    mnl_attr_for_each(attribute, message, offset)
    {
        if (mnl_attr_get_type(attribute) != NLMSGERR_ATTR_MSG)
            continue;
        const char *text = mnl_attr_get_payload(attribute);
        size_t length = mnl_attr_get_payload_len(attribute), kept = 0;
        for (size_t i = 0; i < length && text[i] != '\0'; i++) {
            if (text[i] >= 0x20 && text[i] < 0x7F && kept + 1 < NETLINK_EXPLANATION_CAPACITY)
                explanation[kept++] = text[i];
        }
        explanation[kept] = '\0';
    }
}

/* NLMSG_ERROR: a code, the header of what failed and, unless capped, its body. */
static int take_error(struct netlink_reading *reading, const struct nlmsghdr *message)
{
    if (mnl_nlmsg_get_payload_len(message) < sizeof(struct nlmsgerr))
        return -EPROTO;
    const struct nlmsgerr *error = mnl_nlmsg_get_payload(message);
    size_t offset = sizeof(*error);

    if (!(message->nlmsg_flags & NLM_F_CAPPED) && error->msg.nlmsg_len > sizeof(error->msg))
        offset += MNL_ALIGN((size_t)error->msg.nlmsg_len - sizeof(error->msg));
    if (error->error > 0 || error->error < -4095) /* MAX_ERRNO of the kernel */
        return -EPROTO;
    if (error->error != 0)
        take_explanation(message, offset, reading->explanation);
    reading->done = true;
    return error->error;
}

/* NLMSG_DONE: the end of a dump, with the code of what went wrong on the way (C97). */
static int take_done(struct netlink_reading *reading, const struct nlmsghdr *message)
{
    int code = 0;

    if (mnl_nlmsg_get_payload_len(message) >= sizeof(code))
        memcpy(&code, mnl_nlmsg_get_payload(message), sizeof(code));
    if (code < -4095)
        return -EPROTO;
    if (code < 0)
        take_explanation(message, MNL_ALIGN(sizeof(code)), reading->explanation);
    reading->done = true;
    return code < 0 ? code : 0;
}

bool netlink_message_fits(const struct nlmsghdr *message, int rest)
{
    return mnl_nlmsg_ok(message, rest) && message->nlmsg_len <= INT_MAX;
}

int netlink_read_datagram(struct netlink_reading *reading, const void *bytes, size_t length)
{
    const struct nlmsghdr *message = bytes;
    int rest = (int)length, result = 0;

    for (; netlink_message_fits(message, rest); message = mnl_nlmsg_next(message, &rest)) {
        /* Late answers to a request that was given up. */
        if (message->nlmsg_seq != reading->sequence)
            continue;
        if (message->nlmsg_flags & NLM_F_DUMP_INTR)
            reading->interrupted = true;
        if (message->nlmsg_type == NLMSG_ERROR)
            result = take_error(reading, message);
        else if (message->nlmsg_type == NLMSG_DONE)
            result = take_done(reading, message);
        else if (message->nlmsg_type >= NLMSG_MIN_TYPE && reading->take != NULL)
            result = reading->take(message, reading->context);
        if (result != 0 || reading->done)
            return result;
    }
    return 0;
}

ssize_t netlink_receive(int fd, void *buffer, size_t capacity)
{
    struct sockaddr_nl sender = {0};
    struct iovec iov = {.iov_base = buffer, .iov_len = capacity};
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
        return -EMSGSIZE;
    return sender.nl_pid == 0 ? n : 0;
}

/* ---- requests ------------------------------------------------------------------------------ */

struct nlmsghdr *netlink_begin(void *buffer, size_t capacity, uint16_t type)
{
    /* libmnl 1.0.4 leaves the padding of attributes as it finds it. */
    memset(buffer, 0, capacity);
    struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);

    message->nlmsg_type = type;
    return message;
}

static int send_messages(int fd, const void *messages, size_t length)
{
    ssize_t sent;

    do {
        sent = send(fd, messages, length, 0);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return -errno;
    return sent == (ssize_t)length ? 0 : -EMSGSIZE;
}

/* `length`: of the first message and all behind it, which have its sequence number. */
static int exchange(struct netlink *handle, int fd, const struct nlmsghdr *message, size_t length,
                    struct netlink_reading *reading)
{
    handle->explanation[0] = '\0';
    reading->sequence = message->nlmsg_seq;
    reading->explanation = handle->explanation;

    int result = send_messages(fd, message, length);
    ssize_t n = 0;
    while (result == 0 && !reading->done) {
        n = netlink_receive(fd, handle->buffer, NETLINK_RECEIVE_CAPACITY);
        if (n < 0)
            result = n == -EAGAIN ? -ETIMEDOUT : (int)n;
        else
            result = netlink_read_datagram(reading, handle->buffer, (size_t)n);
        if (n > 0)
            explicit_bzero(handle->buffer, (size_t)n);
    }
    return result;
}

int netlink_transact(struct netlink *handle, struct nlmsghdr *message, uint16_t flags,
                     netlink_take take, void *context)
{
    struct netlink_reading reading = {.take = take, .context = context};

    message->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
    message->nlmsg_seq = ++handle->sequence;
    return exchange(handle, handle->fd, message, message->nlmsg_len, &reading);
}

int netlink_transact_all(struct netlink *handle, void *messages, size_t length, uint16_t flags)
{
    struct netlink_reading reading = {0};
    struct nlmsghdr *message = messages, *last = NULL;
    int rest = (int)length;

    handle->sequence++;
    for (; mnl_nlmsg_ok(message, rest); message = mnl_nlmsg_next(message, &rest)) {
        message->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
        message->nlmsg_seq = handle->sequence;
        last = message;
    }
    if (last == NULL)
        return 0;
    /* Who fails answers without being asked. What follows the first answer is that of a request
     * that was given up. */
    last->nlmsg_flags |= NLM_F_ACK;
    return exchange(handle, handle->fd, messages, length, &reading);
}

/* On a socket of its own: a dump that is given up half-way would keep the handle's busy. What makes
 * no sense in a dump that changed meanwhile may do so in the next. */
int netlink_dump(struct netlink *handle, struct nlmsghdr *message, netlink_take take,
                 void (*restart)(void *context), void *context)
{
    int result = 0;

    message->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    for (int attempt = 0; attempt < DUMP_ATTEMPTS; attempt++) {
        struct netlink_reading reading = {.take = take, .context = context};
        int fd = open_for_requests(handle->subsystem);
        if (fd < 0)
            return fd;
        message->nlmsg_seq = ++handle->sequence;
        result = exchange(handle, fd, message, message->nlmsg_len, &reading);
        close(fd);
        if (result != -ENOBUFS && !reading.interrupted)
            return result;
        restart(context);
    }
    return result != 0 ? result : -EAGAIN;
}

/* ---- arrays -------------------------------------------------------------------------------- */

void *netlink_grow(void *items, size_t count, size_t size)
{
    /* Capacities are 16, 32, 64…: full exactly at those counts. */
    bool full = count == 0 || (count >= 16 && (count & (count - 1)) == 0);

    if (!full)
        return items;
    void *larger = calloc(count == 0 ? 16 : 2 * count, size);
    if (larger == NULL)
        return NULL;
    if (count > 0) {
        memcpy(larger, items, count * size);
        explicit_bzero(items, count * size);
    }
    free(items);
    return larger;
}
