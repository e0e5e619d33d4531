/* SPDX-License-Identifier: Apache-2.0 */
/* Other programs, started and awaited. posix_spawn(3), pidfd_open(2). */
#include "include/host_process.h"
#include "io.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_FREE 3 /* past the standard streams */

/* The streams: nothing to read, and all that is written goes to `output`. */
static int describe_streams(posix_spawn_file_actions_t *actions, int output)
{
    int failure = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    for (int fd = 1; fd < FIRST_FREE && !failure; fd++)
        failure = posix_spawn_file_actions_adddup2(actions, output, fd);
    if (!failure)
        failure = posix_spawn_file_actions_addclosefrom_np(actions, FIRST_FREE);
    return failure;
}

/* A session of its own, and signals as a fresh login has them: this process may block SIGTERM or
 * ignore SIGPIPE, and exec keeps both (execve(2)). */
static int describe_process(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    int failure = posix_spawnattr_setsigmask(attributes, &none);
    if (!failure)
        failure = posix_spawnattr_setsigdefault(attributes, &all);
    if (!failure)
        failure = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                                           POSIX_SPAWN_SETSIGDEF);
    return failure;
}

/* 0 or a positive errno, as posix_spawn(3) returns it. */
static int spawn(struct host_child *child, const char *path, char *const *arguments,
                 char *const *environment)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failure = posix_spawn_file_actions_init(&actions);
    if (failure)
        return failure;
    failure = posix_spawnattr_init(&attributes);
    if (failure) {
        posix_spawn_file_actions_destroy(&actions);
        return failure;
    }
    failure = describe_streams(&actions, child->output_fd);
    if (!failure)
        failure = describe_process(&attributes);
    if (!failure)
        failure = posix_spawn(&child->pid, path, &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failure;
}

int host_child_start(struct host_child *child, const char *path, char *const *arguments,
                     char *const *environment)
{
    *child = (struct host_child){.pid = -1, .pid_fd = -1, .output_fd = -1};
    /* Memory instead of a pipe: no writer ever waits for its reader, or dies with it. */
    child->output_fd = memfd_create("output", MFD_CLOEXEC);
    if (child->output_fd < 0)
        return -errno;
    int failure = spawn(child, path, arguments, environment);
    if (failure) {
        close(child->output_fd);
        child->output_fd = -1;
        child->pid = -1;
        return -failure;
    }
    /* Linux 5.3; without it the caller has nothing to poll and asks again and again. */
    child->pid_fd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    return 0;
}

bool host_child_has_ended(struct host_child *child)
{
    if (child->pid < 0)
        return true;
    int status = 0;
    pid_t ended;
    do
        ended = waitpid(child->pid, &status, WNOHANG);
    while (ended < 0 && errno == EINTR);
    if (ended == 0)
        return false;
    child->pid = -1;
    /* ECHILD: somebody ignores SIGCHLD or has reaped it; how it ended is not known any more. */
    if (ended > 0 && WIFEXITED(status))
        child->exit_code = WEXITSTATUS(status);
    else
        child->signal = ended > 0 ? WTERMSIG(status) : SIGCHLD;
    return true;
}

void host_child_kill(const struct host_child *child)
{
    if (child->pid > 0)
        kill(-child->pid, SIGKILL); /* it leads its session, hence its process group */
}

ssize_t host_child_output(const struct host_child *child, char *buffer, size_t size)
{
    ssize_t length;
    do
        length = pread(child->output_fd, buffer, size, 0);
    while (length < 0 && errno == EINTR);
    return length < 0 ? -errno : length;
}

void host_child_close(struct host_child *child)
{
    if (child->pid_fd >= 0)
        close(child->pid_fd);
    if (child->output_fd >= 0)
        close(child->output_fd);
    *child = (struct host_child){.pid = -1, .pid_fd = -1, .output_fd = -1};
}
