/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control thread: performs what the timers decide, frees what the epoch has passed, follows the
 * link. It sleeps until the earliest deadline and wakes for nothing else.
 */
#include "engine.h"
#include "send.h"
#include <errno.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define RECLAIM_RETRY (10 * NSEC_PER_MSEC) /* a data thread was inside its section */

static void hold_timers(struct peer_timers *timers)
{
    peer_hold(container_of(timers, struct peer, timers));
}

static void give_up(struct thread *t, struct peer *peer)
{
    pthread_mutex_lock(&peer->lock);
    uint32_t dropped = peer_purge_staged(peer);
    pthread_mutex_unlock(&peer->lock);
    count_drop(&t->counters, DROP_STAGED_GIVEN_UP, dropped);
}

static void perform(struct thread *t, struct peer *peer, uint32_t actions, uint64_t now)
{
    if (actions & TIMER_ACT_GIVE_UP)
        give_up(t, peer);
    if (actions & TIMER_ACT_ERASE_KEYS)
        peer_erase_keys(peer, now);
    if (actions & (TIMER_ACT_RETRY_HANDSHAKE | TIMER_ACT_NEW_HANDSHAKE)) {
        peer_clear_source(peer); /* maybe our address went away (pitfall 49) */
        handshake_request(peer, actions & TIMER_ACT_RETRY_HANDSHAKE, now);
    }
    if (actions & TIMER_ACT_KEEPALIVE)
        send_keepalive(t, peer, now);
}

/* Returns when the next timer is due. */
static uint64_t run_timers(struct thread *t)
{
    struct tunnel *tunnel = t->tunnel;
    struct peer_timers *timers;
    uint64_t now = clock_now(), next;

    while ((timers = timer_queue_take(&tunnel->timers, now, &next, hold_timers))) {
        struct peer *peer = container_of(timers, struct peer, timers);
        epoch_enter(&tunnel->epoch, t->reader);
        uint32_t actions = timers_due(timers, now);
        if (actions && !atomic_load(&peer->dead))
            perform(t, peer, actions, now);
        epoch_leave(t->reader);
        peer_release(peer);
    }
    return next;
}

/* ---- the link ------------------------------------------------------------------------------ */

void tunnel_link_up(struct tunnel *tunnel)
{
    pthread_mutex_lock(&tunnel->config_lock);
    atomic_store(&tunnel->up, true);
    if (!atomic_load(&tunnel->udp.bound)) {
        int error = tunnel_bind(tunnel, tunnel->udp.port);
        if (error)
            tunnel_log(tunnel, TUNNEL_LOG_ERROR, "cannot open UDP port %u: %s", tunnel->udp.port,
                       strerror(-error));
    }
    for (struct peer *p = tunnel->first_peer; p; p = p->next)
        timers_resume(&p->timers, clock_now());
    pthread_mutex_unlock(&tunnel->config_lock);
    tunnel_log(tunnel, TUNNEL_LOG_DEBUG, "link up");
}

void tunnel_link_down(struct tunnel *tunnel)
{
    pthread_mutex_lock(&tunnel->config_lock);
    atomic_store(&tunnel->up, false);
    for (struct peer *p = tunnel->first_peer; p; p = p->next) {
        timers_stop(&p->timers);
        peer_clear_sessions(p, true);
    }
    pthread_mutex_unlock(&tunnel->config_lock);
    tunnel_log(tunnel, TUNNEL_LOG_DEBUG, "link down");
}

static void take_link_news(struct tunnel *tunnel)
{
    pthread_mutex_lock(&tunnel->link_lock);
    struct tun_link_state now = tunnel->link;
    pthread_mutex_unlock(&tunnel->link_lock);

    tun_monitor_read(tunnel->monitor_fd, &now);
    if (now.gone) {
        /* Moved to another namespace, which we cannot watch: the device lives on (pitfall 60), so
         * it counts as up; should it be deleted, its descriptor says so. */
        now.up = true;
        tunnel_end_monitor(tunnel);
        tunnel_log(tunnel, TUNNEL_LOG_INFO,
                   "interface %s left this network namespace; its link state is no longer followed",
                   now.name);
    }
    pthread_mutex_lock(&tunnel->link_lock);
    tunnel->link = now;
    pthread_mutex_unlock(&tunnel->link_lock);
    if (now.mtu)
        tunnel_follow_mtu(tunnel, &now);
    if (now.up && !atomic_load(&tunnel->up))
        tunnel_link_up(tunnel);
    else if (!now.up && atomic_load(&tunnel->up))
        tunnel_link_down(tunnel);
}

void tunnel_follow_link(struct tunnel *tunnel)
{
    pthread_mutex_lock(&tunnel->follow_lock);
    if (atomic_load(&tunnel->monitor_fd) >= 0)
        take_link_news(tunnel);
    pthread_mutex_unlock(&tunnel->follow_lock);
}

/* ---- the loop ------------------------------------------------------------------------------ */

static void arm_timer(int timer_fd, uint64_t when)
{
    struct itimerspec spec = {0}; /* disarmed */
    if (when != UINT64_MAX) {
        spec.it_value.tv_sec = (time_t)(when / NSEC_PER_SEC);
        spec.it_value.tv_nsec = (long)(when % NSEC_PER_SEC);
        if (!when)
            spec.it_value.tv_nsec = 1;
    }
    timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

uint64_t control_step(struct thread *t)
{
    uint64_t next = run_timers(t);
    uint64_t retry = clock_now() + RECLAIM_RETRY;
    if (epoch_reclaim(&t->tunnel->epoch) && next > retry)
        next = retry;
    aead_forget(t->aead);
    return next;
}

void *control_thread(void *argument)
{
    struct thread *t = argument;
    struct tunnel *tunnel = t->tunnel;
    struct pollfd fds[] = {
        {.fd = tunnel->control_wake, .events = POLLIN},
        {.fd = tunnel->control_timer, .events = POLLIN},
        {.events = POLLIN},
    };

    while (!atomic_load(&tunnel->stopping)) {
        uint64_t drained;
        fds[2].fd = atomic_load(&tunnel->monitor_fd); /* -1 once the link is out of sight */
        arm_timer(tunnel->control_timer, control_step(t));
        if (poll(fds, 3, -1) < 0)
            continue;
        counter_add(&t->counters.wakeups, 1);
        for (int i = 0; i < 2; i++)
            if (fds[i].revents && read(fds[i].fd, &drained, sizeof drained) < 0)
                continue; /* raced: nothing to drain */
        if (fds[2].revents)
            tunnel_follow_link(tunnel);
    }
    return NULL;
}
