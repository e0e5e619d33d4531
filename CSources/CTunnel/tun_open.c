// SPDX-License-Identifier: Apache-2.0
/*
 * Creation of a TUN device, or adoption of one, and its offload ladder. Facts about the ioctls:
 * Documentation/networking/tuntap.rst and include/uapi/linux/if_tun.h of Linux.
 */
#include "tun.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Linux 6.2; newer than the headers of Debian 12. */
#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

#define OFFLOAD_TSO (TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN)
#define OFFLOAD_USO (TUN_F_USO4 | TUN_F_USO6)

#define TXQUEUELEN_MINIMUM 1000 /* the driver's 500 drops bursts of TCP */
#define CLONE_DEVICE       "/dev/net/tun"

__attribute__((format(printf, 3, 4))) static int fail(char *error_text, int error,
                                                      const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error_text, TUNNEL_ERROR_TEXT_CAPACITY, format, arguments);
    va_end(arguments);
    return -error;
}

/* ---- names --------------------------------------------------------------------------------- */

/* What the kernel takes as an interface name (dev_valid_name in net/core/dev.c), and no '%', which
 * it would take as a template. */
static bool name_is_valid(const char *name)
{
    size_t length = strnlen(name, TUNNEL_NAME_CAPACITY);

    if (length == 0 || length == TUNNEL_NAME_CAPACITY)
        return false;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return false;
    for (const char *c = name; *c != '\0'; c++) {
        if (*c == '/' || *c == ':' || *c == '%' || isspace((unsigned char)*c))
            return false;
    }
    return true;
}

static int creation_failed(char *error_text, const char *name, int error)
{
    switch (error) {
    case EBUSY:
    case EEXIST:
    case EINVAL: /* also what an existing interface that is no TUN device answers */
        if (error != EINVAL || if_nametoindex(name) != 0)
            return fail(error_text, EBUSY,
                        "cannot create interface '%s': name already in use by another interface; "
                        "choose another name or delete it",
                        name);
        break;
    case EPERM:
    case EACCES:
        return fail(error_text, EPERM,
                    "cannot create interface '%s': operation not permitted; run with "
                    "CAP_NET_ADMIN or as root",
                    name);
    }
    return fail(error_text, error, "cannot create interface '%s': %s; see the kernel log", name,
                strerror(error));
}

/* ---- one queue ----------------------------------------------------------------------------- */

static int open_clone_device(char *error_text, const char *name)
{
    int fd = open(CLONE_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);

    if (fd >= 0)
        return fd;
    if (errno == ENOENT || errno == ENODEV || errno == ENXIO)
        return fail(error_text, ENOENT,
                    "cannot create interface '%s': " CLONE_DEVICE " is missing; load the kernel "
                    "module tun (modprobe tun)",
                    name);
    if (errno == EPERM || errno == EACCES)
        return fail(error_text, EPERM,
                    "cannot create interface '%s': no permission to open " CLONE_DEVICE
                    "; run as root or grant access to it",
                    name);
    return fail(error_text, errno, "cannot create interface '%s': opening " CLONE_DEVICE ": %s",
                name, strerror(errno));
}

/* TUNSETIFF; 0 or an errno. */
static int attach(int fd, const char *name, unsigned flags)
{
    struct ifreq request = {.ifr_flags = (short)(IFF_TUN | IFF_NO_PI | flags)};

    memcpy(request.ifr_name, name, strnlen(name, IFNAMSIZ - 1));
    return ioctl(fd, TUNSETIFF, &request) == 0 ? 0 : errno;
}

static int add_queue(struct tun *tun, int fd)
{
    struct tun_queue *queue = calloc(1, sizeof(*queue));

    if (queue == NULL)
        return ENOMEM;
    queue->fd = fd;
    queue->io = &tun_io_system;
    queue->tun = tun;
    tun->queue[tun->queue_count++] = queue;
    return 0;
}

/* ---- the offload ladder -------------------------------------------------------------------- */

/* The header's size is the device's: one handed in may have another. */
static int set_header_size(int fd)
{
    int size = sizeof(struct virtio_net_hdr);
    return ioctl(fd, TUNSETVNETHDRSZ, &size) == 0 ? 0 : errno;
}

/* Sets are requested whole: USO4 without USO6, or either without CSUM, is EINVAL (pitfall 17). */
static void climb_offloads(struct tun *tun, int fd, const struct tunnel_options *options,
                           struct counters *counters)
{
    if (!options->no_tun_gso && !options->no_tun_uso) {
        if (ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | OFFLOAD_TSO | OFFLOAD_USO) == 0) {
            tun->tso = tun->uso = true;
            return;
        }
        count_fallback(counters, FALLBACK_TUN_WITHOUT_USO);
    }
    if (!options->no_tun_gso) {
        if (ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | OFFLOAD_TSO) == 0) {
            tun->tso = true;
            return;
        }
        count_fallback(counters, FALLBACK_TUN_WITHOUT_TSO);
    }
    /* Without any, the kernel finishes packets itself: slower and right. */
    if (ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM) != 0)
        ioctl(fd, TUNSETOFFLOAD, 0);
}

static void set_offloads(struct tun *tun, int fd, const struct tunnel_options *options,
                         struct counters *counters)
{
    bool merge = tun->vnet_hdr && !options->no_vnet_hdr && !options->no_tun_merge;

    atomic_store(&tun->merge_tcp, merge);
    atomic_store(&tun->merge_udp, merge && !options->no_tun_udp_merge);
    if (!tun->vnet_hdr) {
        if (!options->no_vnet_hdr)
            count_fallback(counters, FALLBACK_TUN_WITHOUT_VNET_HDR);
    } else if (options->no_vnet_hdr) {
        ioctl(fd, TUNSETOFFLOAD, 0); /* handed in with a header, which is then always zero */
    } else {
        climb_offloads(tun, fd, options, counters);
    }
}

/* ---- a device made here -------------------------------------------------------------------- */

/*
 * Creates the device by its first queue. IFF_TUN_EXCL, or a second engine would join the first
 * one's device as another queue. An existing device is taken only if it is a persistent
 * single-queue TUN device that nobody has open (`ip tuntap add`).
 */
static int attach_first(struct tun *tun, int fd, unsigned queues)
{
    unsigned vnet_hdr = tun->vnet_hdr ? IFF_VNET_HDR : 0;
    unsigned multi_queue = queues > 1 ? IFF_MULTI_QUEUE : 0;
    int error = attach(fd, tun->name, IFF_TUN_EXCL | vnet_hdr | multi_queue);

    if (error == EINVAL && multi_queue != 0) {
        multi_queue = 0;
        error = attach(fd, tun->name, IFF_TUN_EXCL | vnet_hdr);
    }
    if (error == 0) {
        tun->made_here = true;
        return 0;
    }
    return error == EBUSY ? attach(fd, tun->name, vnet_hdr) : error;
}

static int open_first(struct tun *tun, unsigned queues, char *error_text)
{
    int fd = open_clone_device(error_text, tun->name);
    if (fd < 0)
        return fd;

    int error = attach_first(tun, fd, queues);
    if (error == EINVAL && tun->vnet_hdr && if_nametoindex(tun->name) == 0) {
        tun->vnet_hdr = false;
        error = attach_first(tun, fd, queues);
    }
    if (error == 0 && tun->vnet_hdr)
        error = set_header_size(fd);
    if (error == 0)
        error = add_queue(tun, fd);
    if (error == 0)
        return 0;
    close(fd);
    return creation_failed(error_text, tun->name, error);
}

static bool is_multi_queue(int fd)
{
    struct ifreq request = {0};
    return ioctl(fd, TUNGETIFF, &request) == 0 && (request.ifr_flags & IFF_MULTI_QUEUE);
}

/* The other queues; a device that gives fewer is used with those, each of which will be read. */
static void open_siblings(struct tun *tun, unsigned queues)
{
    unsigned flags = IFF_MULTI_QUEUE | (tun->vnet_hdr ? IFF_VNET_HDR : 0);

    if (!is_multi_queue(tun->queue[0]->fd))
        return;
    while (tun->queue_count < queues) {
        int fd = open(CLONE_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
            return;
        if (attach(fd, tun->name, flags) != 0 || add_queue(tun, fd) != 0) {
            close(fd);
            return;
        }
    }
}

/* ---- a device handed in -------------------------------------------------------------------- */

static int take_over(struct tun *tun, int fd, char *error_text)
{
    struct ifreq request = {0};

    if (ioctl(fd, TUNGETIFF, &request) != 0)
        return fail(error_text, EINVAL,
                    "cannot use descriptor %d: it is not an attached TUN device; hand in one "
                    "that was set up with TUNSETIFF",
                    fd);
    memcpy(tun->name, request.ifr_name, sizeof(tun->name) - 1);
    /* IFF_NO_PI cannot be read from the flags: TUNGETIFF answers IFF_NOFILTER in the same bit. */
    if (!(request.ifr_flags & IFF_TUN) || tun_link_has_packet_information(tun->name))
        return fail(error_text, EINVAL,
                    "cannot use interface '%s' of descriptor %d: it must be a TUN device with "
                    "IFF_NO_PI; create it so",
                    tun->name, fd);
    tun->vnet_hdr = (request.ifr_flags & IFF_VNET_HDR) != 0;

    int status = fcntl(fd, F_GETFL);
    int error = tun->vnet_hdr ? set_header_size(fd) : 0;
    if (error == 0 &&
        (fcntl(fd, F_SETFL, status | O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0))
        error = errno;
    if (error == 0)
        error = add_queue(tun, fd);
    if (error != 0)
        return fail(error_text, error, "cannot use interface '%s' of descriptor %d: %s", tun->name,
                    fd, strerror(error));
    return 0;
}

/* ---- MTU and queue length ------------------------------------------------------------------ */

static struct ifreq named_request(const struct tun *tun)
{
    struct ifreq request = {0};
    memcpy(request.ifr_name, tun->name, sizeof(request.ifr_name));
    return request;
}

/* Room for bursts; a refusal costs speed only. */
static void raise_queue_length(const struct tun *tun, int control)
{
    struct ifreq request = named_request(tun);

    if (ioctl(control, SIOCGIFTXQLEN, &request) == 0 && request.ifr_qlen < TXQUEUELEN_MINIMUM) {
        request.ifr_qlen = TXQUEUELEN_MINIMUM;
        ioctl(control, SIOCSIFTXQLEN, &request);
    }
}

static int set_link(struct tun *tun, uint32_t mtu, char *error_text)
{
    struct ifreq request = named_request(tun);
    int error = 0;

    if (mtu == 0 && tun->made_here)
        mtu = DEFAULT_MTU;
    int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (control < 0)
        return fail(error_text, errno, "cannot set up interface '%s': socket: %s", tun->name,
                    strerror(errno));
    if (tun->made_here)
        raise_queue_length(tun, control);
    request.ifr_mtu = mtu <= INT32_MAX ? (int)mtu : INT32_MAX;
    if (mtu != 0 && ioctl(control, SIOCSIFMTU, &request) != 0)
        error = errno;
    close(control);
    if (error != 0)
        return fail(error_text, error,
                    "cannot set MTU %u on interface '%s': %s; choose one from 68 to 65535", mtu,
                    tun->name, strerror(error));
    return 0;
}

/* ---- open and close ------------------------------------------------------------------------ */

static int make(struct tun *tun, const struct tunnel_options *options, unsigned queues,
                char *error_text)
{
    if (!name_is_valid(options->name))
        return fail(error_text, EINVAL,
                    "invalid interface name '%.15s': 1 to 15 characters without spaces, '/', ':' "
                    "and '%%'",
                    options->name);
    memcpy(tun->name, options->name, sizeof(tun->name));
    tun->vnet_hdr = !options->no_vnet_hdr;

    int result = open_first(tun, queues, error_text);
    if (result == 0)
        open_siblings(tun, queues);
    return result;
}

int tun_open(struct tun *tun, const struct tunnel_options *options, unsigned queues,
             struct counters *counters, char *error_text)
{
    bool given = options->tun_fd >= 0;

    memset(tun, 0, sizeof(*tun));
    error_text[0] = '\0';
    if (queues > TUNNEL_MAX_WORKERS)
        queues = TUNNEL_MAX_WORKERS;

    int result = given ? take_over(tun, options->tun_fd, error_text)
                       : make(tun, options, queues, error_text);
    if (result != 0)
        return result;
    set_offloads(tun, tun->queue[0]->fd, options, counters);
    if (tun->queue_count > 1 && !options->no_steering && tun_steer(tun->queue[0]->fd))
        count_fallback(counters, FALLBACK_STEERING_UNAVAILABLE);
    result = set_link(tun, options->mtu, error_text);
    if (result == 0)
        return 0;
    if (given) { /* stays the caller's */
        free(tun->queue[0]);
        tun->queue_count = 0;
    }
    tun_close(tun);
    return result;
}

void tun_close(struct tun *tun)
{
    for (unsigned i = 0; i < tun->queue_count; i++) {
        close(tun->queue[i]->fd);
        free(tun->queue[i]);
        tun->queue[i] = NULL;
    }
    tun->queue_count = 0;
}
