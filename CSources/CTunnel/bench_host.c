/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this host offers a tunnel, asked without changing it. Cards: Linux's
 * include/uapi/linux/ethtool.h; reading the flow hash and GRO needs no rights.
 */
#include "messages.h"
#include "tun.h"
#include "udp.h"
#include <dirent.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#define BUFFER_WANTED (7 << 20) /* as udp_bind() asks for */

/* ---- sockets ------------------------------------------------------------------------------- */

static void probe_offloads(struct tunnel_host *host, struct counters *counters)
{
    static const struct udp_options everything;
    struct udp udp;
    if (udp_init(&udp, &everything, 1, counters))
        return;
    host->udp_gso = udp.gso_usable;
    host->udp_gro = udp.gro_usable;
    udp_close(&udp);
}

static void probe_buffers(struct tunnel_host *host, int fd)
{
    int size = BUFFER_WANTED, granted = 0;
    socklen_t length = sizeof granted;
    host->buffer_wanted = BUFFER_WANTED;
    host->buffer_force = !setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    if (!host->buffer_force)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    if (!getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &granted, &length))
        host->buffer_granted = (uint32_t)granted / 2; /* the kernel doubles it: socket(7) */
}

/* ---- the TUN device ------------------------------------------------------------------------ */

struct tun_probe {
    struct tunnel_host *host;
    struct counters *counters;
};

/* On a thread of its own, because only a thread's namespace can be left behind with it. */
static void *probe_tun(void *argument)
{
    struct tun_probe *probe = argument;
    struct tunnel_host *host = probe->host;
    struct tunnel_options options;
    struct tun tun;
    char text[TUNNEL_ERROR_TEXT_CAPACITY];

    tunnel_options_init(&options);
    snprintf(options.name, sizeof options.name, "ngb%d", (int)getpid());
    int refused = unshare(CLONE_NEWNET); /* then here, for as long as the probe takes */
    (void)refused;
    int error = tun_open(&tun, &options, 2, probe->counters, text);
    host->tun_error = -error;
    if (error)
        return NULL;
    host->tun_vnet_hdr = tun.vnet_hdr;
    host->tun_tso = tun.tso;
    host->tun_uso = tun.uso;
    host->tun_multi_queue = tun.queue_count > 1;
    tun_close(&tun);
    return NULL;
}

/* ---- network cards ------------------------------------------------------------------------- */

static bool ask_card(int fd, const char *name, void *command)
{
    struct ifreq request = {.ifr_data = command};
    memcpy(request.ifr_name, name, strnlen(name, IFNAMSIZ - 1));
    return ioctl(fd, SIOCETHTOOL, &request) == 0;
}

static uint32_t count_receive_queues(const char *name)
{
    char path[64];
    uint32_t count = 0;
    snprintf(path, sizeof path, "/sys/class/net/%s/queues", name);
    DIR *directory = opendir(path);
    if (!directory)
        return 0;
    for (struct dirent *entry; (entry = readdir(directory));)
        count += !strncmp(entry->d_name, "rx-", 3);
    closedir(directory);
    return count;
}

static void probe_card(struct tunnel_card *card, int fd)
{
    struct ethtool_rxnfc hash = {.cmd = ETHTOOL_GRXFH, .flow_type = UDP_V4_FLOW};
    struct ethtool_value gro = {.cmd = ETHTOOL_GGRO};
    card->receive_queues = count_receive_queues(card->name);
    card->hash_known = ask_card(fd, card->name, &hash);
    card->hash_has_ports = card->hash_known && (hash.data & RXH_L4_B_0_1);
    card->gro_known = ask_card(fd, card->name, &gro);
    card->gro = card->gro_known && gro.data;
}

/* Only cards have a device behind them; bridges, tunnels and veth have none. */
static bool is_card(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/sys/class/net/%s/device", name);
    return access(path, F_OK) == 0;
}

static void probe_cards(struct tunnel_host *host, int fd)
{
    struct if_nameindex *all = if_nameindex();
    for (struct if_nameindex *i = all; i && i->if_index; i++) {
        if (host->card_count == TUNNEL_HOST_CARDS)
            break;
        if (!is_card(i->if_name))
            continue;
        struct tunnel_card *card = &host->cards[host->card_count++];
        snprintf(card->name, sizeof card->name, "%s", i->if_name);
        probe_card(card, fd);
    }
    if (all)
        if_freenameindex(all);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static void probe_machine(struct tunnel_host *host)
{
    struct utsname name;
    cpu_set_t set;
    if (!uname(&name))
        snprintf(host->kernel, sizeof host->kernel, "%.64s", name.release);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    host->cpus = sched_getaffinity(0, sizeof set, &set) ? (uint32_t)(online > 0 ? online : 1)
                                                        : (uint32_t)CPU_COUNT(&set);
#ifdef __x86_64__
    host->x86 = true;
    host->avx2 = __builtin_cpu_supports("avx2");
#endif
}

void tunnel_probe_host(struct tunnel_host *out)
{
    struct counters counters = {0}; /* not read: what is missing stands in `out` */
    struct tun_probe probe = {out, &counters};
    pthread_t thread;
    memset(out, 0, sizeof *out);
    probe_machine(out);
    probe_offloads(out, &counters);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        probe_buffers(out, fd);
        probe_cards(out, fd);
        close(fd);
    }
    int error = pthread_create(&thread, NULL, probe_tun, &probe);
    if (error)
        out->tun_error = error;
    else
        pthread_join(thread, NULL);
}
