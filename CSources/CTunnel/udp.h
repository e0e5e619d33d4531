/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outer UDP sockets: one per family and worker, GSO trains out, GRO trains in, and the ladder
 * GSO+GRO → sendmmsg → sendto. Descriptor numbers never change: a rebind puts new sockets under the
 * old numbers (dup3), so threads that poll or send need no lock. A thread that sleeps in poll()
 * goes on waiting for the old socket: after udp_bind() each must be woken once, through an eventfd
 * it polls too.
 */
#ifndef CTUNNEL_UDP_H
#define CTUNNEL_UDP_H

#include "counters.h"
#include "endpoint.h"
#include "messages.h"
#include <stdatomic.h>
#include <sys/socket.h> /* struct mmsghdr needs _GNU_SOURCE */

/* Injectable system calls; semantics and errno of the originals. */
struct udp_io {
    ssize_t (*sendmsg)(void *context, int fd, const struct msghdr *message, int flags);
    int (*sendmmsg)(void *context, int fd, struct mmsghdr *messages, unsigned count, int flags);
    int (*recvmmsg)(void *context, int fd, struct mmsghdr *messages, unsigned count, int flags);
};
extern const struct udp_io udp_io_system;

struct udp_socket {
    int fd; /* non-blocking; -1: family not available on this host */
    int family;
    _Atomic bool gso, gro, sendmmsg; /* rungs in use; cleared at run time */
    const struct udp_io *io;
    void *io_context;
};

/* One worker's sockets. */
struct udp_pair {
    struct udp_socket v4, v6;
};

struct udp_options {
    bool no_gso, no_gro, no_sendmmsg, no_steering;
};

struct udp {
    struct udp_options options;
    unsigned worker_count;
    struct udp_pair pair[TUNNEL_MAX_WORKERS];
    _Atomic bool bound; /* false: nothing may be sent yet */
    uint16_t port;      /* guarded by the configuration lock, like the two below */
    uint32_t fwmark;
    _Atomic bool steering;       /* also read where indices are drawn */
    bool gso_usable, gro_usable; /* fixed after udp_init(): what kernel and options allow */
};

/* Kernels, named as by uname(2), whose UDP GSO does not corrupt packets (pitfall 34), and whose UDP
 * GRO is complete; pure. */
bool udp_kernel_gso_reliable(const char *release);
bool udp_kernel_gro_reliable(const char *release);

/* Makes unbound placeholder descriptors for every worker and finds which families exist. */
int udp_init(struct udp *udp, const struct udp_options *options, unsigned workers,
             struct counters *counters);
void udp_close(struct udp *udp);

/*
 * Binds every worker's sockets to `port` (0: one free in both families), with fwmark, pktinfo,
 * received TOS, buffers of 7 MiB (SO_*BUFFORCE), GRO, and outer DF handling; the first socket
 * without SO_REUSEPORT, siblings with it (pitfall 58), steered by classic BPF on the receiver index
 * (word 1 of the payload modulo workers). The port that is bound already: nothing happens. On
 * failure the old sockets stay: -EADDRINUSE…
 */
int udp_bind(struct udp *udp, uint16_t port, struct counters *counters);
/* Applies to the open sockets and to all later binds (pitfall 50); on failure nothing changes. */
int udp_set_fwmark(struct udp *udp, uint32_t fwmark);
/* The worker that steering gives this receiver index to, whether steering works or not; pure. */
unsigned udp_steer(const struct udp *udp, uint32_t receiver_index_host_order);

/* ---- sending ------------------------------------------------------------------------------- */

/* A train: `length` bytes, contiguous, segments of `segment_size` but the last, ≤ 64 segments and
 * ≤ MAX_DATAGRAM bytes; one destination, one TOS (pitfall 59). */
struct udp_train {
    uint8_t *data;
    size_t length;
    size_t segment_size;
    uint8_t tos;
    bool no_gso; /* this destination refused GSO before (pitfall 23) */
};

enum udp_send_flags {
    UDP_SOURCE_REFUSED = 1 << 0, /* sent without the sticky source: the caller clears it */
    UDP_GSO_REFUSED = 1 << 1, /* EMSGSIZE or EINVAL: the caller sets no_gso for this destination */
};

/* Returns enum udp_send_flags. Never blocks longer than a few bounded retries; what cannot be sent
 * is counted and dropped, never sent twice (pitfalls 21–25, 27, 31, 32). Every system call is added
 * to
 * `*system_calls`. */
unsigned udp_send(struct udp_pair *pair, const struct endpoint *endpoint,
                  const struct udp_train *train, struct counters *counters, uint64_t *system_calls);

/* One datagram of many, each with its own destination. */
struct udp_single {
    const struct endpoint *to;
    void *data;
    size_t length;
};
#define UDP_MOST_SINGLES 32

/* Up to UDP_MOST_SINGLES datagrams, with one call per family where nothing fails. One that fails is
 * sent by udp_send(), and may be dropped and counted by it, before the next are tried. */
void udp_send_singles(struct udp_pair *pair, const struct udp_single *singles, unsigned count,
                      uint8_t tos, struct counters *counters, uint64_t *system_calls);

/* ---- receiving ----------------------------------------------------------------------------- */

#define UDP_RECEIVE_MESSAGES 8
#define UDP_RECEIVE_CAPACITY 65536

/* One received datagram or GRO train. */
struct udp_received {
    uint8_t *data;
    uint32_t length;
    uint32_t segment_size; /* = length when it is a single datagram; never 0 */
    uint8_t tos;
    bool signal;          /* false; for the caller */
    uint64_t waited_ns;   /* in the socket; 0: not known */
    struct endpoint from; /* source: the local address and interface it arrived on */
};

struct udp_receiver; /* buffers of one receiving thread: 8 × 64 KiB */
struct udp_receiver *udp_receiver_create(void);
void udp_receiver_destroy(struct udp_receiver *receiver);

/* One recvmmsg without blocking. Returns how many entries of `*out` are filled (0: empty), or a
 * negative errno for an error that is not of one packet. Truncated and empty datagrams are counted,
 * not returned (pitfalls 29, 30). `*out` is valid until the next call. */
int udp_receive(struct udp_socket *socket, struct udp_receiver *receiver, struct udp_received **out,
                struct counters *counters);

#endif
