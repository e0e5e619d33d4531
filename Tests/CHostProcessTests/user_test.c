/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of root's rights after host_become_user(). A forked child changes and reports. */
#include "include/host_process.h"

#include "cmocka_includes.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

/* The exit code of `body` in a child; 0 is what it returns when all is well. */
static int in_child(int (*body)(void))
{
    pid_t child = fork();
    if (child == 0)
        _exit(body());
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool has_capabilities(void)
{
    cap_t now = cap_get_proc(), none = cap_init();
    bool has = !now || !none || cap_compare(now, none) != 0;
    cap_free(now);
    cap_free(none);
    return has;
}

static int become_nobody(void)
{
    char text[HOST_ERROR_CAPACITY];
    if (host_become_user("nobody", NOBODY, NOBODY, text) != 0)
        return 1;
    uid_t real, effective, saved;
    gid_t groups[16];
    if (getresuid(&real, &effective, &saved) < 0 || real != NOBODY || effective != NOBODY ||
        saved != NOBODY || getegid() != NOBODY)
        return 2;
    int count = getgroups(16, groups);
    for (int i = 0; i < count; i++)
        if (groups[i] == 0)
            return 3;
    if (has_capabilities())
        return 4;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
        return 5;
    if (setuid(0) == 0 || errno != EPERM)
        return 6;
    if (open("/etc/shadow", O_RDONLY) >= 0 || errno != EACCES)
        return 7;
    struct rlimit cores;
    if (getrlimit(RLIMIT_CORE, &cores) < 0 || cores.rlim_max != 0)
        return 8;
    return cap_get_bound(CAP_SYS_ADMIN) == 0 ? 0 : 9;
}

static void every_right_of_root_is_gone(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(in_child(become_nobody), 0);
}

static void speak(int number)
{
    (void)number;
}

static int crash_in_silence(void)
{
    static const int crashes[] = {SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
    for (size_t i = 0; i < 7; i++)
        signal(crashes[i], speak);
    if (host_forbid_dumps() != 0 || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
        return 1;
    for (size_t i = 0; i < 7; i++)
        if (signal(crashes[i], SIG_DFL) != SIG_DFL)
            return 2;
    return 0;
}

static void a_crash_writes_nothing(void **state)
{
    (void)state;
    assert_int_equal(in_child(crash_in_silence), 0);
}

static int stay_root(void)
{
    char text[HOST_ERROR_CAPACITY];
    if (host_become_user("root", 0, 0, text) != 0 || geteuid() != 0 || has_capabilities())
        return 1;
    return sethostname("nexusguard-test", 15) < 0 && errno == EPERM ? 0 : 2;
}

static void root_by_name_keeps_its_number_only(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(in_child(stay_root), 0);
}

static int twice(void)
{
    char text[HOST_ERROR_CAPACITY];
    if (host_become_user("nobody", NOBODY, NOBODY, text) != 0)
        return 1;
    /* As whoever started without rights: there is nothing left to give up. */
    return host_become_user("", NOBODY, NOBODY, text) == 0 && geteuid() == NOBODY ? 0 : 2;
}

static void without_rights_there_is_nothing_to_do(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(in_child(twice), 0);
}

static int under_a_filter(void)
{
    char text[HOST_ERROR_CAPACITY];
    if (host_become_user("nobody", NOBODY, NOBODY, text) != 0)
        return 1;
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (!filter || seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(capset), 0) < 0 ||
        seccomp_load(filter) < 0)
        return 2;
    return host_become_user("", NOBODY, NOBODY, text) == 0 ? 0 : 3;
}

/* As a service whose SystemCallFilter= is without @privileged. */
static void a_filter_that_refuses_capset_is_no_failure_without_rights(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(in_child(under_a_filter), 0);
}

static void *wait_forever(void *argument)
{
    pause();
    return argument;
}

static int with_a_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_forever, NULL) != 0)
        return 1;
    char text[HOST_ERROR_CAPACITY];
    int result = host_become_user("nobody", NOBODY, NOBODY, text);
    return result == -EBUSY && strstr(text, "threads") && geteuid() != NOBODY ? 0 : 2;
}

static void a_thread_that_would_keep_its_rights_is_noticed(void **state)
{
    (void)state;
    assert_int_equal(in_child(with_a_thread), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_right_of_root_is_gone),
        cmocka_unit_test(a_crash_writes_nothing),
        cmocka_unit_test(root_by_name_keeps_its_number_only),
        cmocka_unit_test(without_rights_there_is_nothing_to_do),
        cmocka_unit_test(a_filter_that_refuses_capset_is_no_failure_without_rights),
        cmocka_unit_test(a_thread_that_would_keep_its_rights_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
