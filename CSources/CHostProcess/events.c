/* SPDX-License-Identifier: Apache-2.0 */
/* Signals as a descriptor (signalfd(2)), and the service manager's notification socket. */
#include "include/host_process.h"
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int host_signals_open(bool hangup_ends)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGINT);
    if (hangup_ends)
        sigaddset(&ending, SIGHUP);
    else
        sigaction(SIGHUP, &ignore, NULL);
    /* A signal that the starter ignored (nohup, `&` in a script) would never reach the descriptor:
     * signalfd(2) needs it pending. SIGHUP ignored by nohup(1) is meant and stays. */
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(SIGTERM, &standard, NULL);
    sigaction(SIGINT, &standard, NULL);
    if (sigprocmask(SIG_BLOCK, &ending, NULL) < 0)
        return -errno;
    int fd = signalfd(-1, &ending, SFD_NONBLOCK | SFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int host_signals_next(int fd)
{
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

int host_notify_open(void)
{
    const char *name = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!name || (name[0] != '/' && name[0] != '@') || strlen(name) >= sizeof address.sun_path)
        return -1;
    size_t length = strlen(name);
    memcpy(address.sun_path, name, length);
    if (name[0] == '@') /* abstract, unix(7) */
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    if (connect(fd, (struct sockaddr *)&address, size) == 0)
        return fd;
    close(fd);
    return -1;
}

void host_notify(int fd, const char *state)
{
    if (fd >= 0)
        (void)!send(fd, state, strlen(state), MSG_NOSIGNAL);
}
