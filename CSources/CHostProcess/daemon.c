/* SPDX-License-Identifier: Apache-2.0 */
/* Inherited descriptors, and becoming a daemon that tells its parent when it is ready. */
#include "include/host_process.h"
#include "io.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_FREE 3 /* past the standard streams */

static bool listed(const int *list, size_t count, int fd)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == fd)
            return true;
    return false;
}

/* close_range(2) is Linux 5.9; older kernels get the loop over what the limit allows. */
static void close_from_to(unsigned first, unsigned last)
{
    if (first > last)
        return;
    if (syscall(SYS_close_range, first, last, 0) == 0)
        return;
    long limit = sysconf(_SC_OPEN_MAX);
    for (unsigned fd = first; fd <= last && (long)fd < limit; fd++)
        close((int)fd);
}

static int fill_standard_streams(void)
{
    for (int fd = 0; fd < FIRST_FREE; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        /* open(2) takes the lowest free number, which is this one: all below exist by now. */
        if (open("/dev/null", O_RDWR) != fd)
            return -errno;
    }
    return 0;
}

int host_clean_descriptors(const int *keep, size_t keep_count)
{
    int highest = FIRST_FREE - 1;
    for (size_t i = 0; i < keep_count; i++) {
        if (keep[i] < 0 || fcntl(keep[i], F_GETFD) < 0)
            return -EBADF;
        if (keep[i] >= FIRST_FREE && fcntl(keep[i], F_SETFD, FD_CLOEXEC) < 0)
            return -errno;
        if (keep[i] > highest)
            highest = keep[i];
    }
    int failure = fill_standard_streams();
    if (failure)
        return failure;
    for (int fd = FIRST_FREE; fd < highest; fd++)
        if (!listed(keep, keep_count, fd))
            close(fd);
    close_from_to((unsigned)highest + 1, UINT_MAX);
    return 0;
}

int host_move_above_standard(int fd)
{
    if (fd >= FIRST_FREE)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE);
    return moved < 0 ? -errno : moved;
}

void host_set_umask(void)
{
    umask(077);
}

/* ---- the report: one byte of exit code, then the error line up to the end of the stream ------ */

int host_report_ready(int report_fd)
{
    int failure = write_all(report_fd, "\0", 1);
    close(report_fd);
    return failure;
}

void host_report_failure(int report_fd, uint8_t exit_code, const char *line)
{
    if (write_all(report_fd, &exit_code, 1) == 0)
        write_all(report_fd, line, strlen(line));
    close(report_fd);
}

static int code_of_dead_child(const char *program, pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status))
        dprintf(STDERR_FILENO, "%s: the background process was killed by signal %d (%s)\n", program,
                WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        dprintf(STDERR_FILENO, "%s: the background process ended before it was ready (exit %d)\n",
                program, WEXITSTATUS(status));
    return 1;
}

/* The parent's whole remaining life. */
static int await_report(const char *program, int fd, pid_t child)
{
    uint8_t code;
    ssize_t length = read_retry(fd, &code, 1);
    if (length != 1)
        return code_of_dead_child(program, child);
    char line[1024];
    while ((length = read_retry(fd, line, sizeof line)) > 0)
        write_all(STDERR_FILENO, line, (size_t)length);
    return code;
}

static int enter_background(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return -errno;
    for (int fd = 0; fd < FIRST_FREE; fd++)
        if (dup2(null, fd) < 0) /* clears close-on-exec on the copy */
            return -errno;
    if (null >= FIRST_FREE)
        close(null);
    if (setsid() < 0 || chdir("/") < 0)
        return -errno;
    host_set_umask();
    return 0;
}

int host_daemonise(const char *program)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0)
        return -errno;
    pid_t child = fork();
    if (child < 0) {
        int failure = -errno;
        close(report[0]);
        close(report[1]);
        return failure;
    }
    if (child > 0) {
        close(report[1]);
        _exit(await_report(program, report[0], child));
    }
    close(report[0]);
    int failure = enter_background();
    if (failure) {
        char line[HOST_ERROR_CAPACITY];
        snprintf(line, sizeof line, "%s: cannot go to the background: %s\n", program,
                 strerror(-failure));
        host_report_failure(report[1], 1, line);
        _exit(1);
    }
    return report[1];
}
