/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Becoming an ordinary user, for programs that parse what a network sends and need no right at all.
 */
#include "include/host_process.h"
#include "rights.h"
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static int drop_bounding_set(void)
{
    for (cap_value_t capability = 0; cap_get_bound(capability) >= 0; capability++)
        if (cap_drop_bound(capability) < 0)
            return -errno;
    return 0;
}

static int change_ids(const char *name, uid_t user, gid_t group)
{
    /* In this order: without user id 0 the groups could not be changed any more (credentials(7)).
     */
    if (initgroups(name, group) < 0 || setresgid(group, group, group) < 0 ||
        setresuid(user, user, user) < 0)
        return -errno;
    return 0;
}

/* Inheritable and ambient ones too, and those that a user id of 0 would have kept. Where there are
 * none nothing is asked for: a service's filter may refuse capset(2), as @privileged of
 * systemd.exec(5) does. */
static int clear_capabilities(void)
{
    cap_t now = cap_get_proc(), none = cap_init();
    int failure = now && none ? 0 : -errno;
    /* An ambient one is permitted as well (capabilities(7)). */
    if (!failure && cap_compare(now, none) != 0 &&
        (cap_reset_ambient() < 0 || cap_set_proc(none) < 0))
        failure = -errno;
    cap_free(now);
    cap_free(none);
    return failure;
}

static int failed(const char *what, int failure, char *error_text)
{
    snprintf(error_text, HOST_ERROR_CAPACITY, "cannot give up rights: %s: %s", what,
             strerror(-failure));
    return failure;
}

int host_become_user(const char *name, uid_t user, gid_t group, char *error_text)
{
    int threads = thread_count();
    if (threads < 0)
        return failed("/proc/self/task (is /proc mounted?)", threads, error_text);
    if (threads != 1)
        return failed("threads already run", -EBUSY, error_text);

    int failure;
    if (geteuid() == 0) {
        /* A container may run root without CAP_SETPCAP: no_new_privs below holds all the same. */
        if ((failure = drop_bounding_set()) && failure != -EPERM)
            return failed("capability bounding set", failure, error_text);
        if ((user != 0 || group != 0) && (failure = change_ids(name, user, group)))
            return failed("user and groups", failure, error_text);
    }
    if ((failure = clear_capabilities()))
        return failed("capabilities", failure, error_text);
    if ((failure = forbid_dumps()))
        return failed("core dumps", failure, error_text);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return failed("no_new_privs", -errno, error_text);
    return 0;
}

/* Alone it forbids core files and pipes too (core(5)); a unit may refuse setrlimit(2). */
int host_forbid_dumps(void)
{
    crash_quietly();
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

void host_raise_file_limit(unsigned long wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}
