/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a unix socket: SO_PEERCRED and SO_PEERGROUPS of unix(7). */
#include "include/host_process.h"
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int host_peer_identify(int fd, struct host_peer *peer)
{
    struct ucred credentials;
    socklen_t length = sizeof credentials;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0)
        return -errno;
    *peer = (struct host_peer){
        .process = credentials.pid, .user = credentials.uid, .group = credentials.gid};
    return 0;
}

ptrdiff_t host_peer_groups(int fd, uint32_t *groups, size_t capacity)
{
    _Static_assert(sizeof(gid_t) == sizeof *groups, "group numbers have 32 bits");
    socklen_t length = (socklen_t)(capacity * sizeof *groups);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &length) < 0 && errno != ERANGE)
        return -errno;
    return (ptrdiff_t)(length / sizeof *groups);
}

int host_peer_process_open(int fd)
{
    struct host_peer peer;
    int failure = host_peer_identify(fd, &peer);
    if (failure < 0)
        return failure;
    if (peer.process == getpid())
        return -EINVAL;
    int process = (int)syscall(SYS_pidfd_open, (pid_t)peer.process, 0);
    return process < 0 ? -errno : process;
}
