/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CTunnel: a WireGuard data path. This is its only public header: an opaque handle, plain
 * structs in, plain structs out.
 *
 * Thread-safety: every function may be called from any thread at any time between
 * tunnel_create() and tunnel_destroy(), unless it says otherwise; configuration calls exclude each
 * other on one lock. Packets never cross this interface.
 *
 * Errors: functions that can fail return 0 or a negative errno.
 */
#ifndef NEXUSGUARD_TUNNEL_H
#define NEXUSGUARD_TUNNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TUNNEL_KEY_LENGTH          32
#define TUNNEL_NAME_CAPACITY       16 /* IFNAMSIZ: 15 characters and the terminator */
#define TUNNEL_MAX_WORKERS         64
#define TUNNEL_ERROR_TEXT_CAPACITY 256

struct tunnel;

/* ---- creation ------------------------------------------------------------------------------ */

#define TUNNEL_MAX_SPIN_US 100000 /* more is taken as this */

/* Every rung of the offload ladder can be switched off; what the kernel lacks is found by probing.
 */
struct tunnel_options {
    char name[TUNNEL_NAME_CAPACITY]; /* interface name, NUL-terminated */
    int tun_fd;                      /* an open TUN descriptor to take over, or -1 to create one */
    uint32_t workers;                /* worker pairs; 0: half the CPUs, at least one */
    uint32_t mtu;                    /* 0: 1420 for a device made here, unchanged for a given one */
    bool no_vnet_hdr;                /* TUN without virtio-net header: no TUN offloads at all */
    bool no_tun_gso;                 /* TUN: no TSO and no USO super-packets from the kernel */
    bool no_tun_uso;                 /* TUN: TSO only */
    bool no_tun_merge;               /* TUN: write every packet by itself */
    bool no_tun_udp_merge;           /* TUN: merge TCP only (pitfall 18) */
    bool no_udp_gso;                 /* UDP: no UDP_SEGMENT on send */
    bool no_udp_gro;                 /* UDP: no UDP_GRO on receive */
    bool no_sendmmsg;                /* UDP: one sendto per packet */
    bool no_steering;                /* no BPF on the SO_REUSEPORT group, no TUN steering */
    uint32_t spin_us;                /* after a packet spin so long for the next; 0: never */
    char aead[16];                   /* "" (measure and choose) or a name of aead_backends */
};

/* Fills `options` with the defaults: tun_fd -1, everything else 0. */
void tunnel_options_init(struct tunnel_options *options);

/*
 * Creates the engine and its TUN device; no thread runs yet. On failure `*out` is NULL, the return
 * value is a negative errno and `error_text` (TUNNEL_ERROR_TEXT_CAPACITY bytes) holds one line that
 * names what was tried, on what, and what to do. Needs CAP_NET_ADMIN unless tun_fd is given.
 */
int tunnel_create(const struct tunnel_options *options, struct tunnel **out, char *error_text);

/* Starts every thread. Call it after the process forked, dropped its capabilities and set its
 * filters: threads inherit these. At most once. */
int tunnel_start(struct tunnel *tunnel);

/* Stops and joins every thread. Idempotent. Sessions stay until tunnel_destroy(). */
void tunnel_stop(struct tunnel *tunnel);

/* Stops if needed, erases every key, closes the device and frees the handle. Not concurrent with
 * any other call. NULL is allowed. */
void tunnel_destroy(struct tunnel *tunnel);

/* A descriptor that becomes readable when the engine has ended by itself (its device is gone).
 * Owned by the engine; poll it, do not close it. */
int tunnel_end_fd(const struct tunnel *tunnel);

/* Name of the interface as it is now; `out` has TUNNEL_NAME_CAPACITY bytes. */
void tunnel_name(const struct tunnel *tunnel, char *out);

/* ---- log ----------------------------------------------------------------------------------- */

enum tunnel_log_level { TUNNEL_LOG_ERROR = 0, TUNNEL_LOG_INFO = 1, TUNNEL_LOG_DEBUG = 2 };

/* Receives one line without newline and without secrets. May be called from any engine thread, one
 * at a time. Never per packet. Set it before tunnel_start(). */
typedef void (*tunnel_log_function)(void *context, enum tunnel_log_level level, const char *line);
void tunnel_set_log(struct tunnel *tunnel, enum tunnel_log_level most_verbose,
                    tunnel_log_function function, void *context);

/* ---- configuration in ---------------------------------------------------------------------- */

/* An IPv4 or IPv6 prefix. IPv4 uses the first four bytes. Host bits are masked when applied. */
struct tunnel_prefix {
    uint8_t address[16]; /* network byte order */
    uint8_t family;      /* 4 or 6 */
    uint8_t length;      /* 0–32 or 0–128 */
    bool remove;         /* take it from this peer (ignored when another peer holds it) */
};

struct tunnel_endpoint {
    uint8_t address[16]; /* network byte order */
    uint8_t family;      /* 4 or 6; 0: none */
    uint16_t port;       /* host byte order */
    uint32_t scope_id;   /* IPv6 link-local: interface index, else 0 */
};

enum tunnel_device_fields {
    TUNNEL_DEVICE_PRIVATE_KEY = 1 << 0, /* all zero removes it */
    TUNNEL_DEVICE_LISTEN_PORT = 1 << 1, /* 0: any free port */
    TUNNEL_DEVICE_FWMARK = 1 << 2,      /* 0 removes it */
};

struct tunnel_device_change {
    uint32_t fields;
    uint8_t private_key[TUNNEL_KEY_LENGTH];
    uint16_t listen_port;
    uint32_t fwmark;
};

/* Applies what `fields` names. -EADDRINUSE: port taken, the old sockets stay. */
int tunnel_set_device(struct tunnel *tunnel, const struct tunnel_device_change *change);

enum tunnel_peer_fields {
    TUNNEL_PEER_REMOVE = 1 << 0,
    TUNNEL_PEER_UPDATE_ONLY = 1 << 1, /* a peer that does not exist is not created */
    TUNNEL_PEER_REPLACE_ALLOWED_IPS = 1
                                      << 2, /* prefixes not listed are dropped, listed ones stay */
    TUNNEL_PEER_PRESHARED_KEY = 1 << 3,
    TUNNEL_PEER_ENDPOINT = 1 << 4,
    TUNNEL_PEER_KEEPALIVE = 1 << 5,
};

struct tunnel_peer_change {
    uint8_t public_key[TUNNEL_KEY_LENGTH];
    uint32_t fields;
    uint8_t preshared_key[TUNNEL_KEY_LENGTH]; /* all zero: none */
    struct tunnel_endpoint endpoint;
    uint16_t keepalive; /* seconds, 0: off */
    const struct tunnel_prefix *prefixes;
    size_t prefix_count;
};

/* Creates, updates or removes one peer. A peer with our own public key is ignored (returns 0), as
 * the reference does. Within a replacement (below) fields that are absent return to their default,
 * except the endpoint, which stays as learned. */
int tunnel_set_peer(struct tunnel *tunnel, const struct tunnel_peer_change *change);

/* `replace_peers=true`: peers not named by tunnel_set_peer() between these calls are removed at
 * commit; those named keep sessions, endpoint and counters (pitfall 63). Abort removes nobody.
 * One replacement at a time: begin returns -EBUSY while another is open. */
int tunnel_replace_peers_begin(struct tunnel *tunnel);
void tunnel_replace_peers_commit(struct tunnel *tunnel);
void tunnel_replace_peers_abort(struct tunnel *tunnel);

/* ---- state out ----------------------------------------------------------------------------- */

struct tunnel_device_state {
    bool has_private_key;
    uint8_t private_key[TUNNEL_KEY_LENGTH]; /* secret: the caller erases it */
    uint8_t public_key[TUNNEL_KEY_LENGTH];
    uint16_t listen_port;
    uint32_t fwmark;
    uint32_t mtu;
    bool up;
    size_t peer_count;
};

/* Of now: a link that was set up or down before the call is so in it. */
void tunnel_get_device(struct tunnel *tunnel, struct tunnel_device_state *out);

struct tunnel_peer_state {
    uint8_t public_key[TUNNEL_KEY_LENGTH];
    uint8_t preshared_key[TUNNEL_KEY_LENGTH]; /* secret: valid during the callback only */
    struct tunnel_endpoint endpoint;
    int64_t last_handshake_seconds; /* wall clock, 0: never */
    uint32_t last_handshake_nanoseconds;
    uint64_t rx_bytes;
    uint64_t tx_bytes;
    uint16_t keepalive;
};

/* Calls `visit` once per peer in order of creation, under the configuration lock: `visit` must not
 * call back into the tunnel. The pointers are valid during the call only. Stops when it returns
 * false. */
typedef bool (*tunnel_peer_visitor)(void *context, const struct tunnel_peer_state *peer,
                                    const struct tunnel_prefix *prefixes, size_t prefix_count);
void tunnel_for_each_peer(struct tunnel *tunnel, tunnel_peer_visitor visit, void *context);

/* ---- TAI64N floor (pitfall 53, case C78) --------------------------------------------------- */

/* The latest TAI64N label an initiation of this engine carried, as seconds and nanoseconds of
 * CLOCK_REALTIME; 0, 0: none yet. The caller persists it. */
void tunnel_get_timestamp_floor(struct tunnel *tunnel, uint64_t *seconds, uint32_t *nanoseconds);
/* From now on no initiation carries a label at or below it. Only ever raises it. */
void tunnel_set_timestamp_floor(struct tunnel *tunnel, uint64_t seconds, uint32_t nanoseconds);

/* ---- statistics ---------------------------------------------------------------------------- */

#define TUNNEL_BATCH_BUCKETS 8 /* batches of 1, 2–3, 4–7, …, ≥128 packets */
#define TUNNEL_MAX_DROPS     64
#define TUNNEL_MAX_FALLBACKS 32

struct tunnel_direction_stats {
    uint64_t packets; /* inner packets, keepalives included */
    uint64_t bytes;   /* outer UDP payload */
    uint64_t batches;
    uint64_t system_calls;
    uint64_t histogram[TUNNEL_BATCH_BUCKETS];
};

struct tunnel_worker_stats {
    struct tunnel_direction_stats tx, rx;
    uint64_t tx_cpu_ns, rx_cpu_ns; /* CPU time of the pair's threads so far */
    uint64_t spun_ns, spin_hits;   /* time spent spinning; how often a packet came meanwhile */
    bool split;                    /* the second thread serves the receiving direction now */
};

struct tunnel_stats {
    char aead[16];
    uint32_t workers;
    uint32_t sessions; /* keypairs that exist */
    /* the ladder, as in use now */
    bool vnet_hdr, tun_tso, tun_uso, tun_tcp_merge, tun_udp_merge, udp_gso, udp_gro, sendmmsg,
        steering;
    uint64_t drops[TUNNEL_MAX_DROPS];         /* by enum drop_reason */
    uint64_t fallbacks[TUNNEL_MAX_FALLBACKS]; /* by enum fallback_reason */
    uint64_t handshakes_initiated, handshakes_completed, handshake_messages_received,
        cookie_replies_sent;
    uint64_t staged_bytes;
    uint64_t control_wakeups; /* of the timer thread since start */
    struct tunnel_worker_stats worker[TUNNEL_MAX_WORKERS];
};

/* As tunnel_get_device(), so that it returns with a device that listens once its link is up. */
void tunnel_get_stats(struct tunnel *tunnel, struct tunnel_stats *out);

/* Snake-case names of the counters, NULL past the last. Static storage. */
const char *tunnel_drop_name(size_t reason);
const char *tunnel_fallback_name(size_t reason);

/* ---- benchmark ----------------------------------------------------------------------------- */

#define TUNNEL_BENCH_BACKENDS 8
#define TUNNEL_BENCH_LENGTHS  2
#define TUNNEL_BENCH_SHAPES   2

/* One direction of one kind of traffic. Per packet: medians of CPU time. Batches: elapsed time, so
 * whatever else the machine did is in it. */
struct tunnel_bench_direction {
    double path_ns;    /* all that the engine does, the AEAD included; the kernel's work is not */
    double aead_ns;    /* sealing, or opening, alone */
    double offload_ns; /* splitting with checksums, or verifying them and planning merges, alone */
    double batch_p50_ns, batch_p99_ns;
    uint64_t batches;
    uint32_t batch_packets; /* of a usual batch */
};

struct tunnel_bench_shape {
    uint32_t packet_length; /* inner, IP header included */
    bool super_packets;     /* as TSO hands them over; else one packet per read */
    struct tunnel_bench_direction out, in;
};

struct tunnel_bench_aead {
    char name[16];
    /* per packet, by TUNNEL_BENCH_LENGTHS, 32 to a call */
    double seal_ns[TUNNEL_BENCH_LENGTHS], open_ns[TUNNEL_BENCH_LENGTHS];
};

struct tunnel_bench {
    char aead[16]; /* the one in use */
    uint32_t aead_lengths[TUNNEL_BENCH_LENGTHS];
    uint32_t aead_count;
    struct tunnel_bench_aead aeads[TUNNEL_BENCH_BACKENDS]; /* every one this machine can run */
    struct tunnel_bench_shape shapes[TUNNEL_BENCH_SHAPES];
};

/* Measures this machine for about `milliseconds`, on the calling thread: no device, no socket, no
 * rights needed. `aead` as in tunnel_options. On failure `error_text` is as of tunnel_create(). */
int tunnel_bench(uint32_t milliseconds, const char *aead, struct tunnel_bench *out,
                 char *error_text);

#define TUNNEL_HOST_CARDS 16

/* A network card. */
struct tunnel_card {
    char name[TUNNEL_NAME_CAPACITY];
    uint32_t receive_queues;
    bool hash_known, hash_has_ports; /* which queue a UDP datagram goes to depends on its ports */
    bool gro_known, gro;
};

/* What this host offers a tunnel. */
struct tunnel_host {
    char kernel[65]; /* uname(2) */
    uint32_t cpus;   /* this process may use */
    bool x86, avx2;
    bool udp_gso, udp_gro;
    bool buffer_force;      /* SO_RCVBUFFORCE is allowed: net.core.rmem_max does not matter */
    uint32_t buffer_wanted; /* receive buffer in bytes */
    uint32_t buffer_granted;
    int tun_error; /* 0, or why no device could be made to try: a positive errno */
    bool tun_vnet_hdr, tun_tso, tun_uso, tun_multi_queue;
    uint32_t card_count;
    struct tunnel_card cards[TUNNEL_HOST_CARDS];
};

/* Asks the kernel. With CAP_NET_ADMIN it makes a TUN device for a moment, with CAP_SYS_ADMIN in a
 * network namespace of its own. Changes nothing else. */
void tunnel_probe_host(struct tunnel_host *out);

#endif
