/* SPDX-License-Identifier: Apache-2.0 */
/* Each test forks a starter, which becomes the parent of a daemon; the daemon tells what it sees
 * through a pipe of its own. */
#include "include/host_process.h"

#include "cmocka_includes.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct seen {
    pid_t process, session;
    bool at_root;
    mode_t mask;
    bool null[3];
};

static bool is_null(int fd)
{
    struct stat status, null;
    return fstat(fd, &status) == 0 && stat("/dev/null", &null) == 0 &&
           status.st_rdev == null.st_rdev && S_ISCHR(status.st_mode);
}

static struct seen look_around(void)
{
    struct seen seen = {.process = getpid(), .session = getsid(0)};
    char directory[PATH_MAX] = "";
    seen.at_root = getcwd(directory, sizeof directory) && strcmp(directory, "/") == 0;
    seen.mask = umask(077);
    for (int fd = 0; fd < 3; fd++)
        seen.null[fd] = is_null(fd);
    return seen;
}

/* A starter whose standard error is a pipe; `act` is the daemon's life after the fork. */
struct starter {
    pid_t pid;
    int errors;
    int from_daemon, to_daemon;
};

static void must(bool condition)
{
    if (!condition)
        abort();
}

static struct starter start(void (*act)(int report, int out, int in))
{
    int errors[2], from[2], to[2];
    assert_int_equal(pipe(errors), 0);
    assert_int_equal(pipe(from), 0);
    assert_int_equal(pipe(to), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(errors[1], 2);
        close(errors[0]);
        close(errors[1]);
        close(from[0]);
        close(to[1]);
        int report = host_daemonise("program");
        must(report >= 3);
        act(report, from[1], to[0]);
        _exit(0);
    }
    close(errors[1]);
    close(from[1]);
    close(to[0]);
    return (struct starter){pid, errors[0], from[0], to[1]};
}

static int exit_code(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void read_errors(const struct starter *starter, char *text, size_t capacity)
{
    size_t used = 0;
    ssize_t length;
    while ((length = read(starter->errors, text + used, capacity - 1 - used)) > 0)
        used += (size_t)length;
    text[used] = '\0';
}

static void finish(const struct starter *starter)
{
    close(starter->errors);
    close(starter->from_daemon);
    close(starter->to_daemon);
}

static void becomes_ready(int report, int out, int in)
{
    struct seen seen = look_around();
    must(write(out, &seen, sizeof seen) == sizeof seen);
    char go;
    must(read(in, &go, 1) == 1);
    must(host_report_ready(report) == 0);
    must(read(in, &go, 1) == 0); /* stays until the test lets it go */
}

static void parent_exits_only_when_the_daemon_is_ready(void **state)
{
    (void)state;
    struct starter starter = start(becomes_ready);
    struct seen seen;
    assert_int_equal(read(starter.from_daemon, &seen, sizeof seen), sizeof seen);
    assert_int_equal(waitpid(starter.pid, NULL, WNOHANG), 0);
    assert_int_equal(write(starter.to_daemon, "g", 1), 1);
    assert_int_equal(exit_code(starter.pid), 0);

    assert_int_equal(kill(seen.process, 0), 0); /* it lives on */
    assert_int_not_equal(seen.process, starter.pid);
    assert_int_equal(seen.session, seen.process);
    assert_true(seen.at_root);
    assert_int_equal(seen.mask, 077);
    for (int fd = 0; fd < 3; fd++)
        assert_true(seen.null[fd]);
    finish(&starter);
}

static void fails_busy(int report, int out, int in)
{
    (void)out, (void)in;
    host_report_failure(report, 8, "program: name taken\n");
}

static void failure_reaches_the_starter_as_code_and_line(void **state)
{
    (void)state;
    struct starter starter = start(fails_busy);
    assert_int_equal(exit_code(starter.pid), 8);
    char text[256];
    read_errors(&starter, text, sizeof text);
    assert_string_equal(text, "program: name taken\n");
    finish(&starter);
}

static void is_killed(int report, int out, int in)
{
    (void)report, (void)out, (void)in;
    raise(SIGKILL);
}

static void ends_silently(int report, int out, int in)
{
    (void)report, (void)out, (void)in;
    _exit(3);
}

static void death_before_the_report_is_told(void **state)
{
    (void)state;
    char text[256];
    struct starter killed = start(is_killed);
    assert_int_equal(exit_code(killed.pid), 1);
    read_errors(&killed, text, sizeof text);
    assert_non_null(strstr(text, "killed by signal 9"));
    finish(&killed);

    struct starter silent = start(ends_silently);
    assert_int_equal(exit_code(silent.pid), 1);
    read_errors(&silent, text, sizeof text);
    assert_non_null(strstr(text, "before it was ready (exit 3)"));
    finish(&silent);
}

static void reports_to_nobody(int report, int out, int in)
{
    signal(SIGPIPE, SIG_IGN);
    char go;
    must(write(out, "b", 1) == 1); /* born */
    must(read(in, &go, 1) == 1);
    int result = host_report_ready(report);
    must(write(out, &result, sizeof result) == sizeof result);
}

static void aborted_start_is_noticed(void **state)
{
    (void)state;
    struct starter starter = start(reports_to_nobody);
    char born;
    assert_int_equal(read(starter.from_daemon, &born, 1), 1);
    assert_int_equal(kill(starter.pid, SIGTERM), 0);
    int status;
    assert_int_equal(waitpid(starter.pid, &status, 0), starter.pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(write(starter.to_daemon, "g", 1), 1);
    int result = 0;
    assert_int_equal(read(starter.from_daemon, &result, sizeof result), sizeof result);
    assert_int_equal(result, -EPIPE);
    finish(&starter);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

/* Runs `act` in a child whose descriptors are its own. */
static int in_child(int (*act)(void))
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(act());
    return exit_code(pid);
}

static int closes_all_but_the_kept(void)
{
    int kept = fcntl(open("/dev/zero", O_RDONLY), F_DUPFD, 40);
    int below = fcntl(0, F_DUPFD, 20), above = fcntl(0, F_DUPFD, 60);
    if (kept < 40 || below < 20 || above < 60)
        return 1;
    if (host_clean_descriptors(&kept, 1) != 0)
        return 2;
    for (int fd = 3; fd < 256; fd++)
        if ((fcntl(fd, F_GETFD) >= 0) != (fd == kept))
            return 3;
    return fcntl(kept, F_GETFD) == FD_CLOEXEC ? 0 : 4;
}

static int missing_standard_streams_are_filled(void)
{
    close(0);
    close(2);
    if (host_clean_descriptors(NULL, 0) != 0)
        return 1;
    return is_null(0) && is_null(2) && fcntl(3, F_GETFD) < 0 ? 0 : 2;
}

static int refuses_a_descriptor_that_is_not_open(void)
{
    int missing = 77;
    close(missing);
    return host_clean_descriptors(&missing, 1) == -EBADF ? 0 : 1;
}

static void inherited_descriptors_are_closed_but_the_kept(void **state)
{
    (void)state;
    assert_int_equal(in_child(closes_all_but_the_kept), 0);
    assert_int_equal(in_child(missing_standard_streams_are_filled), 0);
    assert_int_equal(in_child(refuses_a_descriptor_that_is_not_open), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parent_exits_only_when_the_daemon_is_ready),
        cmocka_unit_test(failure_reaches_the_starter_as_code_and_line),
        cmocka_unit_test(death_before_the_report_is_told),
        cmocka_unit_test(aborted_start_is_noticed),
        cmocka_unit_test(inherited_descriptors_are_closed_but_the_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
