/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TUN device: creation, its offload ladder, batch reads and writes. Each worker pair owns one
 * queue; a queue that is attached must be read.
 */
#ifndef CTUNNEL_TUN_H
#define CTUNNEL_TUN_H

#include "counters.h"
#include "lines.h"
#include "offload.h"
#include <stdatomic.h>

#define TUN_FRAME_CAPACITY (65535 + 1)

/* System calls of a queue, replaceable by tests (fake devices, injected errors). They return what
 * the system call returns, with errno set. */
struct tun_io {
    ssize_t (*readv)(void *context, int fd, const struct iovec *iov, int count);
    ssize_t (*writev)(void *context, int fd, const struct iovec *iov, int count);
};
extern const struct tun_io tun_io_system;

struct tun;

struct tun_queue {
    int fd; /* non-blocking */
    const struct tun_io *io;
    void *io_context;
    struct tun *tun;
    /* Scratch of the receiving thread, on lines of its own wherever the queue lies. */
    char apart_before[CACHE_LINE];
    struct merge merge;
    char apart_behind[CACHE_LINE];
};

struct tun {
    char name[TUNNEL_NAME_CAPACITY];
    bool made_here;
    bool vnet_hdr, tso, uso;           /* fixed after tun_open() */
    _Atomic bool merge_tcp, merge_udp; /* switched off at run time after EINVAL */
    unsigned queue_count;
    struct tun_queue *queue[TUNNEL_MAX_WORKERS];
};

/*
 * Opens /dev/net/tun and creates `options->name`, or takes over options->tun_fd, climbing the
 * ladder CSUM+TSO4/6+USO4/6 → without USO → without vnet header, and multi-queue → one queue. Rungs
 * not reached are counted in `counters`. Sets the MTU and txqueuelen ≥ 1,000 of a device made here.
 * 0 or a negative errno with one line in `error_text`: -ENOENT /dev/net/tun missing, -EPERM no
 * CAP_NET_ADMIN, -EBUSY or -EEXIST name taken, -EINVAL name.
 */
int tun_open(struct tun *tun, const struct tunnel_options *options, unsigned queues,
             struct counters *counters, char *error_text);
void tun_close(struct tun *tun);

/* Attaches the program that keeps each flow on one queue (pitfall 35) to the device of `fd`, for as
 * long as it lives. 0 or a negative errno: -EPERM without CAP_BPF where unprivileged BPF is off. */
int tun_steer(int fd);

enum tun_read_result {
    TUN_READ_FRAME,
    TUN_READ_EMPTY, /* would block */
    TUN_READ_DOWN,  /* EIO: interface down, survivable (pitfall 20) */
    TUN_READ_ENDED, /* EBADFD: the device is gone */
};

/* Reads one frame: `header` is zeroed for devices without vnet header; `*length` counts the packet
 * only. `buffer` has TUN_FRAME_CAPACITY bytes. */
enum tun_read_result tun_read(struct tun_queue *queue, struct virtio_net_hdr *header,
                              uint8_t *buffer, size_t *length);

/*
 * Writes packets (at most MERGE_MAX_PACKETS), merged where allowed, in place. EINVAL on a merged
 * frame: written again as single packets, that kind of merging disabled and counted. Packets the
 * device refuses are counted as TUN_WRITE_FAILED (EIO while down: LINK_DOWN). False: the device is
 * gone. Adds its system calls to `*system_calls`.
 */
bool tun_write(struct tun_queue *queue, struct packet *packets, size_t count,
               struct counters *counters, uint64_t *system_calls);

/* The link as the kernel tells it: descriptor of a netlink socket subscribed to link changes, or a
 * negative errno. */
int tun_monitor_open(void);

struct tun_link_state {
    bool gone; /* a deletion was reported: moved to another namespace, or deleted (pitfall 60) */
    bool up;
    uint32_t mtu;
    uint32_t gso_max_size;           /* of what the stack hands over at once */
    char name[TUNNEL_NAME_CAPACITY]; /* follows a rename */
    int ifindex;
};
/* Asks once and fills `state` (by name); false: no such link here. */
bool tun_link_query(const char *name, struct tun_link_state *state);
/* Asks the stack for super-packets that make one train each: larger ones leave a rest, which costs
 * a second send and a second receive. A refusal costs speed only. */
void tun_limit_super_packets(int ifindex, uint32_t mtu);
/* Whether the TUN device `name` puts packet information in front of each packet (no IFF_NO_PI). */
bool tun_link_has_packet_information(const char *name);
/* Drains the monitor without blocking; folds all events that concern state->ifindex into `state`.
 * On overflow (ENOBUFS) queries again. */
void tun_monitor_read(int monitor_fd, struct tun_link_state *state);

#endif
