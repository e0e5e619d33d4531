/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's shape: who runs, what each thread owns, what is shared and under which lock.
 *
 *   worker pair i      primary     TUN queue i → seal → UDP     and, at low load, the way back too
 *                      secondary   UDP sockets i → open → TUN queue i, when the primary saturates
 *   handshake          initiations and everything that is not data; lower priority
 *   control            timers due, epoch reclamation, link changes
 *
 * Data threads share: the receiver index table and the allowed IPs (epoch), sessions (atomic
 * counters), a peer's data_lock once per batch. Everything else is their own.
 */
#ifndef CTUNNEL_ENGINE_H
#define CTUNNEL_ENGINE_H

#include "allowedips.h"
#include "counters.h"
#include "crypto/aead.h"
#include "handshake.h"
#include "include/tunnel.h"
#include "index.h"
#include "noise.h"
#include "peer.h"
#include "tun.h"
#include "udp.h"
#include <pthread.h>

#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

struct sender;   /* send.c: the outbound slab and the train being built */
struct receiver; /* receive.c: received trains and the packets to deliver */

/* One thread and everything only it touches. */
struct thread {
    struct tunnel *tunnel;
    char name[16];
    unsigned slot; /* its place in session.in_flight */
    pthread_t id;
    void *(*body)(void *thread);
    bool started;
    struct epoch_reader *reader;
    struct aead_worker *aead;
    struct udp_pair *sockets;
    struct tun_queue *queue; /* data threads only */
    struct sender *sender;
    struct receiver *receiver; /* data threads only */
    struct counters counters;
};

struct worker {
    struct thread primary, secondary;
    _Atomic bool split;               /* the secondary serves the receiving direction */
    int primary_wake, secondary_wake; /* eventfds */
};

struct tunnel {
    struct tunnel_options options;
    struct tun tun;
    struct udp udp;
    struct epoch epoch;
    struct index_table *indices;
    struct allowedips *allowed_ips;
    const struct aead_backend *aead;

    _Atomic bool stopping;
    _Atomic bool up;
    _Atomic uint32_t mtu;
    int end_fd; /* eventfd: the device is gone */

    pthread_mutex_t config_lock; /* one configuration call at a time */
    bool replacing;
    struct peer *first_peer, *last_peer;
    size_t peer_count;
    /* by public key; writers hold config_lock too, so configuration reads need only that */
    pthread_rwlock_t peers_lock;
    struct peer **peer_hash;
    size_t peer_hash_size;
    uint8_t peer_hash_key[16];

    pthread_rwlock_t identity_lock;
    struct noise_identity identity;

    pthread_mutex_t label_lock; /* TAI64N */
    uint64_t label_floor_seconds, label_sent_seconds;
    uint32_t label_floor_nanoseconds, label_sent_nanoseconds;

    _Atomic uint64_t staged_bytes; /* of all peers */
    uint32_t peers_created;        /* config_lock: peers are dealt to workers in turn */
    unsigned index_worker; /* handshake thread: the worker of the peer an index is drawn for */

    struct timer_queue timers;
    int control_wake, control_timer;
    pthread_mutex_t follow_lock; /* one at a time takes the link's news; before config_lock */
    _Atomic int monitor_fd;      /* follow_lock closes it; -1 once the link left this namespace */
    pthread_mutex_t link_lock;
    struct tun_link_state link;

    struct handshake_queue handshakes;

    unsigned thread_count; /* slots */
    struct thread control, handshake;
    unsigned worker_count; /* in use; the device may give fewer queues than asked for */
    unsigned worker_capacity;
    struct worker *worker;
    bool started;

    pthread_mutex_t log_lock;
    enum tunnel_log_level log_level;
    tunnel_log_function log_function;
    void *log_context;
};

/* CLOCK_BOOTTIME: counts sleep, never jumps (pitfall 54). */
uint64_t clock_now(void);
/* CLOCK_REALTIME: for TAI64N labels and for people, nothing else. */
struct timespec;
void clock_wall(struct timespec *now);

__attribute__((format(printf, 3, 4))) void
tunnel_log(struct tunnel *tunnel, enum tunnel_log_level level, const char *format, ...);

/* Wakes a thread that sleeps in poll on this eventfd. */
void wake(int event_fd);

/* The device is gone: everything stops, tunnel_end_fd() becomes readable. */
void tunnel_end(struct tunnel *tunnel);

/* Under peers_lock or config_lock. NULL: unknown. */
struct peer *tunnel_find_peer(struct tunnel *tunnel, const uint8_t public_key[KEY_LENGTH]);

/* Binds all sockets to `port` (0: any) and wakes whoever sleeps on the former ones. Under
 * config_lock. 0 or a negative errno; on failure the former sockets stay. */
int tunnel_bind(struct tunnel *tunnel, uint16_t port);
void wake_workers(struct tunnel *tunnel);

/* Takes the peer out of every table and kills it. Under config_lock. */
void tunnel_remove_peer(struct tunnel *tunnel, struct peer *peer);

/* Takes over what the kernel has told of the link until now. The control thread does so when it is
 * told, and whoever asks for the device's state does so first: the kernel queues the news before
 * the call that makes the change returns (__dev_notify_flags of net/core/dev.c), so who has set the
 * link up and then asks finds a device that is up and listens. Not under config_lock. */
void tunnel_follow_link(struct tunnel *tunnel);
/* Under follow_lock. */
void tunnel_link_up(struct tunnel *tunnel);
void tunnel_link_down(struct tunnel *tunnel);
/* Takes over the link's MTU. */
void tunnel_follow_mtu(struct tunnel *tunnel, const struct tun_link_state *link);
/* The link is out of sight: news of other links, which nobody would read, must not wake. */
void tunnel_end_monitor(struct tunnel *tunnel);

/* One turn of the control thread: what is due is done, what the epoch passed is freed. Returns the
 * next deadline, UINT64_MAX: none. */
uint64_t control_step(struct thread *thread);

/* Thread bodies. */
void *worker_primary(void *thread);
void *worker_secondary(void *thread);
void *control_thread(void *thread);
void *handshake_thread(void *thread);

#endif
