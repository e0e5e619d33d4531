/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outer UDP sockets: what the kernel offers, binding, steering, and replacing sockets under
 * descriptor numbers that other threads are using.
 */
#include "udp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#define SOCKET_BUFFER_BYTES (7 << 20)
/* Port 0: how often the port found for one family may be taken in the other. */
#define FREE_PORT_ATTEMPTS 64

#define SLOTS (2 * TUNNEL_MAX_WORKERS)

/* ---- kernel -------------------------------------------------------------------------------- */

static long kernel_version(const char *release)
{
    unsigned major = 0, minor = 0, patch = 0;
    if (sscanf(release, "%u.%u.%u", &major, &minor, &patch) < 2)
        return -1;
    return (long)major * 1000000 + (long)minor * 1000 + patch;
}

bool udp_kernel_gso_reliable(const char *release)
{
    /* Segments of equal length arrive corrupted from 7.0 to 7.1.4: tailscale issues #19918, #21335.
     */
    long version = kernel_version(release);
    return version < 7000000 || version > 7001004;
}

bool udp_kernel_gro_reliable(const char *release)
{
    /* UDP_GRO cannot be read back before 5.12: wireguard-go commit c92064f leaves it off there. */
    long version = kernel_version(release);
    return version < 0 || version >= 5012000;
}

static int enable(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value) ? -errno : 0;
}

static void probe_offloads(struct udp *udp, struct counters *counters)
{
    struct utsname host;
    const char *release = uname(&host) ? "" : host.release;
    int fd = udp->pair[0].v4.fd >= 0 ? udp->pair[0].v4.fd : udp->pair[0].v6.fd;

    if (!udp->options.no_gso) {
        int size;
        socklen_t length = sizeof size;
        udp->gso_usable = udp_kernel_gso_reliable(release) &&
                          !getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &size, &length);
        if (!udp->gso_usable)
            count_fallback(counters, FALLBACK_UDP_WITHOUT_GSO);
    }
    if (!udp->options.no_gro) {
        udp->gro_usable = udp_kernel_gro_reliable(release) && !enable(fd, IPPROTO_UDP, UDP_GRO, 1);
        if (!udp->gro_usable)
            count_fallback(counters, FALLBACK_UDP_WITHOUT_GRO);
    }
}

/* ---- descriptors --------------------------------------------------------------------------- */

static ssize_t system_sendmsg(void *context, int fd, const struct msghdr *message, int flags)
{
    (void)context;
    return sendmsg(fd, message, flags);
}

static int system_sendmmsg(void *context, int fd, struct mmsghdr *messages, unsigned count,
                           int flags)
{
    (void)context;
    return sendmmsg(fd, messages, count, flags);
}

static int system_recvmmsg(void *context, int fd, struct mmsghdr *messages, unsigned count,
                           int flags)
{
    (void)context;
    return recvmmsg(fd, messages, count, flags, NULL);
}

const struct udp_io udp_io_system = {
    .sendmsg = system_sendmsg,
    .sendmmsg = system_sendmmsg,
    .recvmmsg = system_recvmmsg,
};

/* The sockets of all workers and both families in one row: even numbers are IPv4. */
static struct udp_socket *slot(struct udp *udp, unsigned i)
{
    return i % 2 ? &udp->pair[i / 2].v6 : &udp->pair[i / 2].v4;
}

static void close_all(const int *fds, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static void arm_rungs(struct udp *udp)
{
    for (unsigned i = 0; i < 2 * udp->worker_count; i++) {
        atomic_store(&slot(udp, i)->gso, udp->gso_usable);
        atomic_store(&slot(udp, i)->gro, udp->gro_usable);
    }
}

int udp_init(struct udp *udp, const struct udp_options *options, unsigned workers,
             struct counters *counters)
{
    if (!workers || workers > TUNNEL_MAX_WORKERS)
        return -EINVAL;
    memset(udp, 0, sizeof *udp);
    udp->options = *options;
    udp->worker_count = workers;
    for (unsigned i = 0; i < 2 * workers; i++) {
        struct udp_socket *s = slot(udp, i);
        s->fd = -1;
        s->family = i % 2 ? AF_INET6 : AF_INET;
        s->io = &udp_io_system;
        atomic_init(&s->sendmmsg, !options->no_sendmmsg);
    }
    for (unsigned i = 0; i < 2 * workers; i++) {
        struct udp_socket *s = slot(udp, i);
        s->fd = socket(s->family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (s->fd < 0 && errno != EAFNOSUPPORT) {
            int error = -errno;
            udp_close(udp);
            return error;
        }
    }
    if (udp->pair[0].v4.fd < 0 && udp->pair[0].v6.fd < 0)
        return -EAFNOSUPPORT;
    if (udp->pair[0].v6.fd < 0)
        count_fallback(counters, FALLBACK_UDP_IPV6_UNAVAILABLE);
    probe_offloads(udp, counters);
    arm_rungs(udp);
    return 0;
}

void udp_close(struct udp *udp)
{
    atomic_store(&udp->bound, false);
    for (unsigned i = 0; i < 2 * udp->worker_count; i++) {
        struct udp_socket *s = slot(udp, i);
        if (s->fd >= 0)
            close(s->fd);
        s->fd = -1;
    }
}

/* Puts fresh[i] under the number of slot i, for all slots or none, and consumes `fresh` in either
 * case. No shutdown() of the old sockets: poll() would wake, look the number up again, find the new
 * socket idle and sleep on without having registered there (fs/select.c, do_poll). */
static int replace_sockets(struct udp *udp, int *fresh)
{
    unsigned count = 2 * udp->worker_count, done = 0;
    int old[SLOTS], error = 0;
    for (unsigned i = 0; i < count; i++)
        old[i] = -1;
    for (unsigned i = 0; i < count && !error; i++)
        if (fresh[i] >= 0 && (old[i] = fcntl(slot(udp, i)->fd, F_DUPFD_CLOEXEC, 0)) < 0)
            error = -errno;
    for (; done < count && !error; done++)
        if (fresh[done] >= 0 && dup3(fresh[done], slot(udp, done)->fd, O_CLOEXEC) < 0)
            error = -errno;
    if (error) {
        for (unsigned i = 0; i < done; i++)
            if (old[i] >= 0)
                dup3(old[i], slot(udp, i)->fd, O_CLOEXEC);
    }
    close_all(old, count);
    close_all(fresh, count);
    return error;
}

/* ---- binding ------------------------------------------------------------------------------- */

/* Root may exceed net.core.[rw]mem_max; others get as much as it allows. */
static void enlarge_buffers(int fd)
{
    if (enable(fd, SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BUFFER_BYTES))
        enable(fd, SOL_SOCKET, SO_RCVBUF, SOCKET_BUFFER_BYTES);
    if (enable(fd, SOL_SOCKET, SO_SNDBUFFORCE, SOCKET_BUFFER_BYTES))
        enable(fd, SOL_SOCKET, SO_SNDBUF, SOCKET_BUFFER_BYTES);
}

/*
 * Outer path MTU (pitfall 24). IPv4 leaves DF clear and ignores learned MTUs (ip(7),
 * IP_PMTUDISC_OMIT): routers fragment, GSO keeps working, and forged ICMP has no effect. In IPv6
 * only the sender may fragment, so the learned MTU has to count: plain sends then fragment, and GSO
 * sends are refused with EMSGSIZE, which udp_send() knows about (pitfall 23).
 */
static int set_mtu_discovery(int fd, int family)
{
    if (family == AF_INET)
        return enable(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_OMIT);
    return enable(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT);
}

/* A socket with every option but SO_REUSEPORT, unbound; or a negative errno. */
static int open_socket(const struct udp *udp, int family)
{
    int fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int error = 0;
    if (family == AF_INET) {
        if (!(error = enable(fd, IPPROTO_IP, IP_PKTINFO, 1)))
            error = enable(fd, IPPROTO_IP, IP_RECVTOS, 1);
    } else {
        if (!(error = enable(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1)) &&
            !(error = enable(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)))
            error = enable(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    }
    if (!error)
        error = set_mtu_discovery(fd, family);
    if (!error && udp->fwmark)
        error = enable(fd, SOL_SOCKET, SO_MARK, (int)udp->fwmark);
    if (!error && udp->gro_usable)
        error = enable(fd, IPPROTO_UDP, UDP_GRO, 1);
    if (error) {
        close(fd);
        return error;
    }
    enable(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1); /* without it a standing queue is not seen */
    enlarge_buffers(fd);
    return fd;
}

/* Binds to the wildcard address; a `*port` of 0 becomes the one the kernel chose. */
static int bind_socket(int fd, int family, uint16_t *port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {0};
    socklen_t length = family == AF_INET ? sizeof address.v4 : sizeof address.v6;
    if (family == AF_INET)
        address.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(*port)};
    else
        address.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(*port)};
    if (bind(fd, &address.any, length))
        return -errno;
    if (!*port) {
        if (getsockname(fd, &address.any, &length))
            return -errno;
        *port = ntohs(family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
    }
    return 0;
}

/*
 * One family's sockets of all workers. The first is bound without SO_REUSEPORT, so that a port in
 * use by anyone, another engine of the same user included, is EADDRINUSE; only then does it open to
 * its siblings (pitfall 58). A group's order is that of binding: worker i has index i.
 */
static int bind_family(struct udp *udp, int family, uint16_t *port, int *fresh)
{
    for (unsigned worker = 0; worker < udp->worker_count; worker++) {
        unsigned i = 2 * worker + (family == AF_INET6);
        int error = 0;
        if ((fresh[i] = open_socket(udp, family)) < 0)
            return fresh[i];
        if (worker)
            error = enable(fresh[i], SOL_SOCKET, SO_REUSEPORT, 1);
        if (!error)
            error = bind_socket(fresh[i], family, port);
        if (!error && !worker && udp->worker_count > 1)
            error = enable(fresh[i], SOL_SOCKET, SO_REUSEPORT, 1);
        if (error)
            return error;
    }
    return 0;
}

static int bind_all(struct udp *udp, uint16_t *port, int *fresh)
{
    for (unsigned i = 0; i < 2 * udp->worker_count; i++)
        fresh[i] = -1;
    int error = 0;
    if (udp->pair[0].v4.fd >= 0)
        error = bind_family(udp, AF_INET, port, fresh);
    if (!error && udp->pair[0].v6.fd >= 0)
        error = bind_family(udp, AF_INET6, port, fresh);
    if (error)
        close_all(fresh, 2 * udp->worker_count);
    return error;
}

/* ---- steering ------------------------------------------------------------------------------ */

/*
 * socket(7), SO_ATTACH_REUSEPORT_CBPF: the program returns the index of the socket in its group. It
 * sees the UDP payload from offset 0 and loads words in network order. A datagram too short for the
 * load goes to the first socket, because such a load returns 0.
 */
static int attach_steering(int fd, unsigned workers)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct message_data, receiver_index)),
        BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, workers),
        BPF_STMT(BPF_RET | BPF_A, 0),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program) ? -errno
                                                                                          : 0;
}

unsigned udp_steer(const struct udp *udp, uint32_t receiver_index_host_order)
{
    /* The index is little endian on the wire and the program reads it as big endian. */
    return __builtin_bswap32(receiver_index_host_order) % udp->worker_count;
}

static bool steer_group(const struct udp *udp, const int *fresh, struct counters *counters)
{
    if (udp->worker_count < 2 || udp->options.no_steering)
        return false;
    for (unsigned family = 0; family < 2; family++) {
        if (fresh[family] >= 0 && attach_steering(fresh[family], udp->worker_count)) {
            count_fallback(counters, FALLBACK_STEERING_UNAVAILABLE);
            return false;
        }
    }
    return true;
}

/* ---- configuration ------------------------------------------------------------------------- */

int udp_bind(struct udp *udp, uint16_t port, struct counters *counters)
{
    if (atomic_load(&udp->bound) && port && port == udp->port)
        return 0;
    int fresh[SLOTS], error;
    uint16_t chosen;
    unsigned attempts = port ? 1 : FREE_PORT_ATTEMPTS;
    do {
        chosen = port;
        error = bind_all(udp, &chosen, fresh);
    } while (error == -EADDRINUSE && --attempts);
    if (error)
        return error;
    bool steering = steer_group(udp, fresh, counters);
    if ((error = replace_sockets(udp, fresh)))
        return error;
    udp->port = chosen;
    udp->steering = steering;
    arm_rungs(udp);
    atomic_store(&udp->bound, true);
    return 0;
}

int udp_set_fwmark(struct udp *udp, uint32_t fwmark)
{
    for (unsigned i = 0; i < 2 * udp->worker_count; i++) {
        if (slot(udp, i)->fd < 0)
            continue;
        int error = enable(slot(udp, i)->fd, SOL_SOCKET, SO_MARK, (int)fwmark);
        if (error) {
            while (i--)
                if (slot(udp, i)->fd >= 0)
                    enable(slot(udp, i)->fd, SOL_SOCKET, SO_MARK, (int)udp->fwmark);
            return error;
        }
    }
    udp->fwmark = fwmark;
    return 0;
}
