/* SPDX-License-Identifier: Apache-2.0 */
/* A listening unix socket under a name: made or adopted, watched, removed at the end. unix(7). */
#include "include/host_process.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG        64
#define CLAIM_ATTEMPTS 8 /* somebody else may make and remove names at the same time */
/* A socket is bound beside its name first: a dot and a process id (proc(5): below 2^22). */
#define ASIDE_LENGTH 8
#define PATH_LENGTH  (sizeof(((struct sockaddr_un *)0)->sun_path) - 1 - ASIDE_LENGTH)

__attribute__((format(printf, 3, 4))) static int failed(char *error_text, int failure,
                                                        const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error_text, HOST_ERROR_CAPACITY, format, arguments);
    va_end(arguments);
    return failure;
}

static int address_of(const char *path, struct sockaddr_un *address, char *error_text)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (path[0] != '/')
        return failed(error_text, -EINVAL, "socket path %s is not absolute; begin it with /", path);
    if (strlen(path) > PATH_LENGTH)
        return failed(error_text, -ENAMETOOLONG,
                      "socket path %.40s… is longer than %zu bytes; choose a shorter one", path,
                      PATH_LENGTH);
    strcpy(address->sun_path, path);
    return 0;
}

/* ---- is somebody there? -------------------------------------------------------------------- */

enum occupant { NOBODY, STALE_SOCKET, LIVE_SOCKET, NOT_A_SOCKET };

/* Negative errno when it cannot be told. `*status` is filled unless NOBODY. */
static int occupant_of(const struct sockaddr_un *address, struct stat *status)
{
    if (lstat(address->sun_path, status) < 0)
        return errno == ENOENT ? NOBODY : -errno;
    if (!S_ISSOCK(status->st_mode))
        return NOT_A_SOCKET;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int failure = connect(fd, (const struct sockaddr *)address, sizeof *address) < 0 ? errno : 0;
    close(fd);
    switch (failure) {
    case ECONNREFUSED:
        return STALE_SOCKET;
    case ENOENT:
        return NOBODY;
    case 0:
    case EAGAIN:     /* its backlog is full */
    case EPROTOTYPE: /* alive, of another type */
        return LIVE_SOCKET;
    default:
        return -failure;
    }
}

static int refuse(int occupant, const char *path, char *error_text)
{
    if (occupant == LIVE_SOCKET)
        return failed(error_text, -EADDRINUSE,
                      "already running: a process answers on %s; stop it first", path);
    if (occupant == NOT_A_SOCKET)
        return failed(
            error_text, -EEXIST,
            "cannot listen on %s: something that is not a socket is in the way; remove it", path);
    return failed(error_text, occupant, "cannot examine %s: %s", path, strerror(-occupant));
}

int host_listener_probe(const char *path, char *error_text)
{
    struct sockaddr_un address;
    int failure = address_of(path, &address, error_text);
    if (failure)
        return failure;
    struct stat status;
    int occupant = occupant_of(&address, &status);
    return occupant == LIVE_SOCKET ? refuse(occupant, path, error_text) : 0;
}

/* ---- making -------------------------------------------------------------------------------- */

/* Every missing directory above `path`, 0755 whatever the umask (case C85). */
static int make_directories(const char *path, char *error_text)
{
    char directory[HOST_PATH_CAPACITY];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(directory, sizeof directory, "%.*s", (int)(slash - path), path);
        if (mkdir(directory, 0755) == 0) {
            if (chmod(directory, 0755) == 0)
                continue;
        } else if (errno == EEXIST) {
            continue;
        }
        return failed(error_text, -errno, "cannot make the directory %s for the socket: %s",
                      directory, strerror(errno));
    }
    return 0;
}

/* Gives the socket that listens under the name `aside` the name of `address`, which it takes from a
 * socket nobody answers on. */
static int claim_name(const char *aside, const struct sockaddr_un *address, char *error_text)
{
    for (int attempt = 0; attempt < CLAIM_ATTEMPTS; attempt++) {
        if (link(aside, address->sun_path) == 0)
            return 0;
        if (errno != EEXIST)
            return failed(error_text, -errno, "cannot bind %s: %s", address->sun_path,
                          strerror(errno));
        struct stat status;
        int occupant = occupant_of(address, &status);
        if (occupant == NOBODY)
            continue;
        if (occupant != STALE_SOCKET)
            return refuse(occupant, address->sun_path, error_text);
        if (unlink(address->sun_path) < 0 && errno != ENOENT)
            return failed(error_text, -errno, "cannot remove the stale socket %s: %s",
                          address->sun_path, strerror(errno));
    }
    return failed(error_text, -EBUSY, "cannot bind %s: others keep taking the name",
                  address->sun_path);
}

/*
 * Between bind(2) and listen(2) a socket refuses connections, and whoever finds it so takes it for
 * what a process that ended has left and removes it: wg(8) does, and another of us. So the name
 * appears when the socket listens.
 */
static int listen_as(int fd, const struct sockaddr_un *address, char *error_text)
{
    struct sockaddr_un aside = {.sun_family = AF_UNIX};
    snprintf(aside.sun_path, sizeof aside.sun_path, "%.*s.%d", (int)PATH_LENGTH, address->sun_path,
             (int)getpid());
    unlink(aside.sun_path); /* of a process that had this number and was killed here */
    if (bind(fd, (const struct sockaddr *)&aside, sizeof aside) < 0)
        return failed(error_text, -errno, "cannot bind %s: %s", address->sun_path, strerror(errno));
    int failure = 0;
    if (listen(fd, BACKLOG) < 0)
        failure = failed(error_text, -errno, "cannot listen on %s: %s", address->sun_path,
                         strerror(errno));
    if (!failure)
        failure = claim_name(aside.sun_path, address, error_text);
    unlink(aside.sun_path);
    return failure;
}

/* "/directory" of the name. */
static void directory_of(const struct host_listener *listener, char *directory)
{
    snprintf(directory, HOST_PATH_CAPACITY, "%.*s",
             (int)(strrchr(listener->path, '/') - listener->path), listener->path);
}

/* Remembers what the name leads to and watches it. Unlinking changes the link count, which inotify
 * tells as IN_ATTRIB; IN_DELETE_SELF only comes when the socket is closed too. The directory tells
 * the new name of what was renamed. */
static int watch_name(struct host_listener *listener, char *error_text)
{
    struct stat status;
    if (lstat(listener->path, &status) < 0)
        return failed(error_text, -errno, "%s vanished during the start: %s", listener->path,
                      strerror(errno));
    listener->device = status.st_dev;
    listener->inode = status.st_ino;
    listener->watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    char directory[HOST_PATH_CAPACITY];
    directory_of(listener, directory);
    if (listener->watch_fd < 0 ||
        inotify_add_watch(listener->watch_fd, listener->path,
                          IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_DONT_FOLLOW) < 0 ||
        inotify_add_watch(listener->watch_fd, directory[0] ? directory : "/",
                          IN_MOVED_TO | IN_ONLYDIR) < 0)
        return failed(error_text, -errno,
                      "cannot watch %s: inotify: %s (see fs.inotify.max_user_instances and "
                      "max_user_watches)",
                      listener->path, strerror(errno));
    return 0;
}

int host_listener_open(struct host_listener *listener, const char *path, char *error_text)
{
    *listener = (struct host_listener){.fd = -1, .watch_fd = -1};
    struct sockaddr_un address;
    int failure = address_of(path, &address, error_text);
    if (!failure)
        failure = make_directories(path, error_text);
    if (failure)
        return failure;
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener->fd < 0)
        return failed(error_text, -errno, "cannot make a socket for %s: %s", path, strerror(errno));
    /* On Linux bind(2) gives the name the descriptor's mode: it is private from its first moment,
     * whatever the umask. */
    fchmod(listener->fd, 0600);
    failure = listen_as(listener->fd, &address, error_text);
    if (!failure) {
        strcpy(listener->path, address.sun_path);
        listener->made_here = true;
        failure = watch_name(listener, error_text);
    }
    if (failure)
        host_listener_close(listener);
    return failure;
}

int host_listener_adopt(struct host_listener *listener, int fd, char *error_text)
{
    *listener = (struct host_listener){.fd = -1, .watch_fd = -1};
    int domain = 0, type = 0, listening = 0;
    socklen_t length = sizeof(int);
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) < 0)
        return failed(error_text, -errno, "cannot take over descriptor %d: %s", fd,
                      strerror(errno));
    if (domain != AF_UNIX || type != SOCK_STREAM || !listening)
        return failed(error_text, -EINVAL,
                      "descriptor %d is not a listening unix stream socket; bind and listen first",
                      fd);
    struct sockaddr_un address;
    length = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &length) < 0 ||
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
        return failed(error_text, -errno, "cannot take over descriptor %d: %s", fd,
                      strerror(errno));
    listener->fd = fd;
    size_t name_length = length - offsetof(struct sockaddr_un, sun_path);
    if (length <= offsetof(struct sockaddr_un, sun_path) || address.sun_path[0] != '/')
        return 0; /* unnamed, abstract or relative: no name to watch */
    snprintf(listener->path, sizeof listener->path, "%.*s", (int)name_length, address.sun_path);
    int failure = watch_name(listener, error_text);
    if (failure)
        host_listener_close(listener);
    return failure;
}

/* ---- use and end --------------------------------------------------------------------------- */

int host_listener_accept(struct host_listener *listener)
{
    int fd;
    do
        fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    return fd < 0 ? -errno : fd;
}

static bool name_leads_here(const struct host_listener *listener)
{
    struct stat status;
    return lstat(listener->path, &status) == 0 && status.st_dev == listener->device &&
           status.st_ino == listener->inode;
}

/* Whoever renames the link of a tunnel renames its socket as well: the new name is followed. */
static void follow_name(struct host_listener *listener, const char *name)
{
    struct host_listener moved = *listener;
    char directory[HOST_PATH_CAPACITY];
    directory_of(listener, directory);
    int length =
        snprintf(moved.path, sizeof moved.path, "%.*s/%.*s",
                 (int)sizeof(((struct sockaddr_un *)0)->sun_path), directory, NAME_MAX, name);
    if (length < (int)sizeof moved.path && name_leads_here(&moved))
        strcpy(listener->path, moved.path);
}

bool host_listener_removed(struct host_listener *listener)
{
    if (listener->watch_fd < 0)
        return false;
    _Alignas(struct inotify_event) char events[sizeof(struct inotify_event) + NAME_MAX + 1];
    ssize_t length;
    while ((length = read(listener->watch_fd, events, sizeof events)) > 0) {
        for (const char *at = events; at < events + length;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            if (event->len && event->mask & IN_MOVED_TO)
                follow_name(listener, event->name);
            at += sizeof *event + event->len;
        }
    }
    return !name_leads_here(listener);
}

void host_listener_close(struct host_listener *listener)
{
    if (listener->made_here && !host_listener_removed(listener) && name_leads_here(listener))
        unlink(listener->path);
    if (listener->fd >= 0)
        close(listener->fd);
    if (listener->watch_fd >= 0)
        close(listener->watch_fd);
    *listener = (struct host_listener){.fd = -1, .watch_fd = -1};
}

/* ---- the other side ------------------------------------------------------------------------ */

int host_connect(const char *path, char *error_text)
{
    struct sockaddr_un address;
    int failure = address_of(path, &address, error_text);
    if (failure)
        return failure;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return failed(error_text, -errno, "cannot make a socket: %s", strerror(errno));
    /* A unix socket connects at once or not at all, also when it does not block (unix(7)). */
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    failure = -errno;
    close(fd);
    return failed(error_text, failure, "cannot connect to %s: %s", path, strerror(-failure));
}
