/* SPDX-License-Identifier: Apache-2.0 */
/* Create, start, stop, destroy. Everything that opens a file or loads a library happens in
 * tunnel_create(), before the process gives up the right to. */
#include "engine.h"
#include "lines.h"
#include "receive.h"
#include "send.h"
#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

void wake(int event_fd)
{
    uint64_t one = 1;
    ssize_t written = write(event_fd, &one, sizeof one);
    (void)written; /* a full eventfd is awake already */
}

void wake_workers(struct tunnel *tunnel)
{
    for (unsigned i = 0; i < tunnel->worker_count; i++) {
        wake(tunnel->worker[i].primary_wake);
        wake(tunnel->worker[i].secondary_wake);
    }
}

void tunnel_log(struct tunnel *tunnel, enum tunnel_log_level level, const char *format, ...)
{
    char line[512];
    va_list arguments;
    if (!tunnel->log_function || level > tunnel->log_level)
        return;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&tunnel->log_lock);
    tunnel->log_function(tunnel->log_context, level, line);
    pthread_mutex_unlock(&tunnel->log_lock);
}

void tunnel_set_log(struct tunnel *tunnel, enum tunnel_log_level most_verbose,
                    tunnel_log_function function, void *context)
{
    tunnel->log_level = most_verbose;
    tunnel->log_function = function;
    tunnel->log_context = context;
}

void tunnel_options_init(struct tunnel_options *options)
{
    *options = (struct tunnel_options){.tun_fd = -1};
}

int tunnel_end_fd(const struct tunnel *tunnel)
{
    return tunnel->end_fd;
}

void tunnel_name(const struct tunnel *tunnel, char *out)
{
    pthread_mutex_lock((pthread_mutex_t *)&tunnel->link_lock);
    memcpy(out, tunnel->link.name, TUNNEL_NAME_CAPACITY);
    pthread_mutex_unlock((pthread_mutex_t *)&tunnel->link_lock);
}

/* ---- create -------------------------------------------------------------------------------- */

static unsigned choose_workers(const struct tunnel_options *options)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned workers = options->workers ? options->workers : (cpus > 2 ? (unsigned)cpus / 2 : 1);
    return workers < TUNNEL_MAX_WORKERS ? workers : TUNNEL_MAX_WORKERS;
}

/* All sessions of a peer go to the worker that the peer was dealt to: if a rekey moved it, the new
 * worker could overtake what the former has still to read (pitfall 35). */
static bool deal_index(void *context, uint32_t index)
{
    struct tunnel *tunnel = context;
    return !tunnel->udp.steering || udp_steer(&tunnel->udp, index) == tunnel->index_worker;
}

static int init_thread(struct tunnel *tunnel, struct thread *t, unsigned worker, bool data,
                       const char *name, unsigned slot)
{
    t->tunnel = tunnel;
    t->slot = slot;
    snprintf(t->name, sizeof t->name, "%s", name);
    t->reader = epoch_register(&tunnel->epoch);
    t->aead = aead_worker_create(tunnel->aead);
    t->sockets = &tunnel->udp.pair[worker];
    t->sender = sender_create();
    if (data) {
        t->queue = tunnel->tun.queue[worker];
        t->receiver = receiver_create();
    }
    return t->reader && t->aead && t->sender && (!data || t->receiver) ? 0 : -ENOMEM;
}

static void destroy_thread(struct thread *t)
{
    aead_worker_destroy(t->aead);
    sender_destroy(t->sender);
    receiver_destroy(t->receiver);
}

static int init_threads(struct tunnel *tunnel)
{
    char name[16];
    tunnel->thread_count = 2 * tunnel->worker_count + 2;
    int error = init_thread(tunnel, &tunnel->control, 0, false, "control", 0);
    if (!error)
        error = init_thread(tunnel, &tunnel->handshake, 0, false, "handshake", 1);
    for (unsigned i = 0; i < tunnel->worker_count && !error; i++) {
        struct worker *w = &tunnel->worker[i];
        w->primary_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        w->secondary_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (w->primary_wake < 0 || w->secondary_wake < 0)
            return -errno;
        snprintf(name, sizeof name, "worker-%u-a", (uint8_t)i);
        error = init_thread(tunnel, &w->primary, i, true, name, 2 + 2 * i);
        if (error)
            break;
        snprintf(name, sizeof name, "worker-%u-b", (uint8_t)i);
        error = init_thread(tunnel, &w->secondary, i, true, name, 3 + 2 * i);
    }
    return error;
}

static void init_locks(struct tunnel *tunnel)
{
    pthread_mutex_init(&tunnel->config_lock, NULL);
    pthread_mutex_init(&tunnel->follow_lock, NULL);
    pthread_mutex_init(&tunnel->label_lock, NULL);
    pthread_mutex_init(&tunnel->link_lock, NULL);
    pthread_mutex_init(&tunnel->log_lock, NULL);
    pthread_rwlock_init(&tunnel->peers_lock, NULL);
    pthread_rwlock_init(&tunnel->identity_lock, NULL);
    epoch_init(&tunnel->epoch);
}

static int init_tables(struct tunnel *tunnel)
{
    randombytes_buf(tunnel->peer_hash_key, sizeof tunnel->peer_hash_key);
    tunnel->indices = index_table_create(&tunnel->epoch);
    tunnel->allowed_ips = allowedips_create(&tunnel->epoch);
    if (!tunnel->indices || !tunnel->allowed_ips)
        return -ENOMEM;
    index_table_set_filter(tunnel->indices, deal_index, tunnel);
    return handshake_queue_init(&tunnel->handshakes);
}

static int init_descriptors(struct tunnel *tunnel)
{
    tunnel->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    tunnel->control_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    tunnel->control_timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    tunnel->monitor_fd = tun_monitor_open();
    timer_queue_init(&tunnel->timers, tunnel->control_wake);
    if (tunnel->end_fd < 0 || tunnel->control_wake < 0 || tunnel->control_timer < 0)
        return -errno;
    return tunnel->monitor_fd < 0 ? tunnel->monitor_fd : 0;
}

void tunnel_end_monitor(struct tunnel *tunnel)
{
    close(tunnel->monitor_fd);
    tunnel->monitor_fd = -1;
}

void tunnel_follow_mtu(struct tunnel *tunnel, const struct tun_link_state *link)
{
    uint32_t mtu = link->mtu ? link->mtu : DEFAULT_MTU;
    if (atomic_exchange(&tunnel->mtu, mtu) != mtu && tunnel->tun.made_here && tunnel->tun.tso)
        tun_limit_super_packets(link->ifindex, mtu);
}

/* After the monitor is open, so that no change is lost between the two. */
static void init_link(struct tunnel *tunnel)
{
    if (!tun_link_query(tunnel->tun.name, &tunnel->link)) {
        tunnel->link.gone = true; /* a descriptor from another namespace */
        tunnel->link.up = true;
        tunnel_end_monitor(tunnel);
    }
    memcpy(tunnel->link.name, tunnel->tun.name, sizeof tunnel->link.name);
    tunnel_follow_mtu(tunnel, &tunnel->link);
}

static int create(struct tunnel *tunnel, char *error_text)
{
    const struct tunnel_options *options = &tunnel->options;
    struct udp_options udp = {
        .no_gso = options->no_udp_gso,
        .no_gro = options->no_udp_gro,
        .no_sendmmsg = options->no_sendmmsg,
        .no_steering = options->no_steering,
    };
    tunnel->aead = aead_choose(options->aead);
    if (!tunnel->aead) {
        snprintf(error_text, TUNNEL_ERROR_TEXT_CAPACITY,
                 "AEAD back-end '%s' is unknown or does not run on this machine; "
                 "leave the choice out to take the fastest that does",
                 options->aead);
        return -ENOTSUP;
    }
    int error = init_descriptors(tunnel);
    if (!error) {
        error = tun_open(&tunnel->tun, options, tunnel->worker_count, &tunnel->control.counters,
                         error_text);
        if (error)
            return error; /* it named the cause */
        tunnel->worker_count = tunnel->tun.queue_count;
        init_link(tunnel);
        error = udp_init(&tunnel->udp, &udp, tunnel->worker_count, &tunnel->control.counters);
    }
    if (!error)
        error = init_tables(tunnel);
    if (!error)
        error = init_threads(tunnel);
    if (error)
        snprintf(error_text, TUNNEL_ERROR_TEXT_CAPACITY, "cannot set up the engine for '%s': %s",
                 options->name, strerror(-error));
    return error;
}

int tunnel_create(const struct tunnel_options *options, struct tunnel **out, char *error_text)
{
    *out = NULL;
    error_text[0] = 0;
    if (sodium_init() < 0) {
        snprintf(error_text, TUNNEL_ERROR_TEXT_CAPACITY, "libsodium does not initialise");
        return -ENOTSUP;
    }
    struct tunnel *tunnel = lines_alloc(sizeof *tunnel);
    if (!tunnel)
        return -ENOMEM;
    tunnel->options = *options;
    if (tunnel->options.spin_us > TUNNEL_MAX_SPIN_US)
        tunnel->options.spin_us = TUNNEL_MAX_SPIN_US;
    tunnel->worker_count = choose_workers(options);
    tunnel->worker = lines_alloc(tunnel->worker_count * sizeof *tunnel->worker);
    if (!tunnel->worker) {
        free(tunnel);
        return -ENOMEM;
    }
    tunnel->end_fd = tunnel->control_wake = tunnel->control_timer = tunnel->monitor_fd = -1;
    tunnel->worker_capacity = tunnel->worker_count;
    for (unsigned i = 0; i < tunnel->worker_capacity; i++)
        tunnel->worker[i].primary_wake = tunnel->worker[i].secondary_wake = -1;
    init_locks(tunnel);

    int error = create(tunnel, error_text);
    if (error) {
        tunnel_destroy(tunnel);
        return error;
    }
    *out = tunnel;
    return 0;
}

/* ---- start and stop ------------------------------------------------------------------------ */

/* A thread names itself: from outside that takes a file below /proc, which confinement denies. */
static void *run_thread(void *argument)
{
    struct thread *t = argument;
    prctl(PR_SET_NAME, t->name);
    return t->body(t);
}

static int start_thread(struct thread *t, void *(*body)(void *))
{
    t->body = body;
    int error = pthread_create(&t->id, NULL, run_thread, t);
    if (error)
        return -error;
    t->started = true;
    return 0;
}

int tunnel_start(struct tunnel *tunnel)
{
    if (tunnel->started)
        return -EALREADY;
    tunnel->started = true;
    if (tunnel->link.up)
        tunnel_link_up(tunnel);
    int error = start_thread(&tunnel->control, control_thread);
    if (!error)
        error = start_thread(&tunnel->handshake, handshake_thread);
    for (unsigned i = 0; i < tunnel->worker_count && !error; i++) {
        error = start_thread(&tunnel->worker[i].primary, worker_primary);
        if (!error)
            error = start_thread(&tunnel->worker[i].secondary, worker_secondary);
    }
    if (error)
        tunnel_stop(tunnel);
    return error;
}

void tunnel_end(struct tunnel *tunnel)
{
    if (!atomic_exchange(&tunnel->stopping, true))
        tunnel_log(tunnel, TUNNEL_LOG_INFO, "the device is gone");
    wake(tunnel->end_fd);
}

static void join(struct thread *t)
{
    if (t->started)
        pthread_join(t->id, NULL);
    t->started = false;
}

void tunnel_stop(struct tunnel *tunnel)
{
    atomic_store(&tunnel->stopping, true);
    handshake_queue_stop(&tunnel->handshakes);
    wake(tunnel->control_wake);
    wake_workers(tunnel);
    join(&tunnel->control);
    join(&tunnel->handshake);
    for (unsigned i = 0; i < tunnel->worker_count; i++) {
        join(&tunnel->worker[i].primary);
        join(&tunnel->worker[i].secondary);
    }
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void destroy_tables(struct tunnel *tunnel)
{
    while (tunnel->first_peer)
        tunnel_remove_peer(tunnel, tunnel->first_peer);
    if (tunnel->handshakes.ring)
        handshake_queue_destroy(&tunnel->handshakes);
    epoch_destroy(&tunnel->epoch);
    if (tunnel->indices)
        index_table_destroy(tunnel->indices);
    if (tunnel->allowed_ips)
        allowedips_destroy(tunnel->allowed_ips);
    timer_queue_destroy(&tunnel->timers);
    free(tunnel->peer_hash);
}

void tunnel_destroy(struct tunnel *tunnel)
{
    if (!tunnel)
        return;
    if (tunnel->started)
        tunnel_stop(tunnel);
    destroy_tables(tunnel);
    destroy_thread(&tunnel->control);
    destroy_thread(&tunnel->handshake);
    for (unsigned i = 0; i < tunnel->worker_capacity; i++) {
        destroy_thread(&tunnel->worker[i].primary);
        destroy_thread(&tunnel->worker[i].secondary);
        close_fd(tunnel->worker[i].primary_wake);
        close_fd(tunnel->worker[i].secondary_wake);
    }
    udp_close(&tunnel->udp);
    tun_close(&tunnel->tun);
    close_fd(tunnel->end_fd);
    close_fd(tunnel->control_wake);
    close_fd(tunnel->control_timer);
    close_fd(tunnel->monitor_fd);
    free(tunnel->worker);
    sodium_memzero(tunnel, sizeof *tunnel);
    free(tunnel);
}
