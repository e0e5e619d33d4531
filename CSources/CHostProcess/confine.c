/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving up rights. Capabilities, no_new_privs and filters belong to threads (capabilities(7),
 * prctl(2)): this runs while there is one, and all later ones inherit.
 *
 * The user id stays: names in root's socket directories must be removed at the end, and an
 * unprivileged id would need CAP_DAC_OVERRIDE for that, which is more than Landlock leaves.
 */
#include "include/host_process.h"
#include "rights.h"
#include <dirent.h>
#include <errno.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static const cap_value_t kept[] = {CAP_NET_ADMIN, CAP_NET_BIND_SERVICE};
#define KEPT_COUNT (sizeof kept / sizeof *kept)

static bool permitted(cap_value_t capability)
{
    cap_t now = cap_get_proc();
    cap_flag_value_t value = CAP_CLEAR;
    bool has = now && cap_get_flag(now, capability, CAP_PERMITTED, &value) == 0 && value == CAP_SET;
    cap_free(now);
    return has;
}

static bool effective(cap_value_t capability)
{
    cap_t now = cap_get_proc();
    cap_flag_value_t value = CAP_CLEAR;
    bool has = now && cap_get_flag(now, capability, CAP_EFFECTIVE, &value) == 0 && value == CAP_SET;
    cap_free(now);
    return has;
}

bool host_has_net_admin(void)
{
    return effective(CAP_NET_ADMIN);
}

int thread_count(void)
{
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks)
        return -errno;
    int count = 0;
    for (struct dirent *entry; (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* What a language's runtime does at a crash, such as Swift's backtrace with registers and the
 * memory that they point to, belongs no more in a log than a core file on a disk. */
void crash_quietly(void)
{
    static const int crashes[] = {SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        (void)signal(crashes[i], SIG_DFL);
}

/* A crash must not write keys to a disk, and nobody may attach: core(5), prctl(2). */
int forbid_dumps(void)
{
    crash_quietly();
    struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return -errno;
    return 0;
}

/* Uid 0 then means nothing to execve(2) and setuid(2), for good. Both this and the bounding set
 * want CAP_SETPCAP; a process that was started without it has little to lose. */
static int empty_bounding_set(bool *emptied)
{
    *emptied = false;
    if (!permitted(CAP_SETPCAP))
        return 0;
    unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                         SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                         SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
        return -errno;
    for (cap_value_t capability = 0; cap_get_bound(capability) >= 0; capability++)
        if (cap_drop_bound(capability) < 0)
            return -errno;
    *emptied = true;
    return 0;
}

static int keep_two_capabilities(void)
{
    if (cap_reset_ambient() < 0)
        return -errno;
    cap_value_t held[KEPT_COUNT];
    int held_count = 0;
    for (size_t i = 0; i < KEPT_COUNT; i++)
        if (permitted(kept[i]))
            held[held_count++] = kept[i];
    cap_t wanted = cap_init(); /* all clear */
    if (!wanted)
        return -errno;
    int failure = 0;
    if ((held_count > 0 && (cap_set_flag(wanted, CAP_PERMITTED, held_count, held, CAP_SET) < 0 ||
                            cap_set_flag(wanted, CAP_EFFECTIVE, held_count, held, CAP_SET) < 0)) ||
        cap_set_proc(wanted) < 0)
        failure = -errno;
    cap_free(wanted);
    return failure;
}

static int failed(const char *what, int failure, char *error_text)
{
    snprintf(error_text, HOST_ERROR_CAPACITY, "cannot confine the process: %s: %s", what,
             strerror(-failure));
    return failure;
}

int host_confine(const char *const *removable, struct host_confinement *result, char *error_text)
{
    *result = (struct host_confinement){0};
    int threads = thread_count();
    if (threads < 0)
        return failed("/proc/self/task (is /proc mounted?)", threads, error_text);
    if (threads != 1)
        return failed("threads already run", -EBUSY, error_text);

    int failure = forbid_dumps();
    if (failure)
        return failed("core dumps", failure, error_text);
    if ((failure = empty_bounding_set(&result->bounding_set_emptied)))
        return failed("capability bounding set", failure, error_text);
    if ((failure = keep_two_capabilities()))
        return failed("capabilities", failure, error_text);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return failed("no_new_privs", -errno, error_text);
    int abi = landlock_enter(removable);
    if (abi < 0)
        return failed("Landlock", abi, error_text);
    result->landlock_abi = abi;
    if ((failure = seccomp_enter()))
        return failed("seccomp filter", failure, error_text);
    return 0;
}
