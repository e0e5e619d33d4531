/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock, landlock(7): deny-by-default access to the file system. There is no library for it and
 * glibc has no wrappers, hence raw system calls.
 */
#include "rights.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Kernel documentation, userspace-api/landlock.rst; Debian 12's header ends at ABI 2. */
#define ACCESS_FS_ABI1         ((UINT64_C(1) << 13) - 1) /* EXECUTE … MAKE_SYM */
#define ACCESS_FS_REFER        (UINT64_C(1) << 13)       /* ABI 2 */
#define ACCESS_FS_TRUNCATE     (UINT64_C(1) << 14)       /* ABI 3 */
#define ACCESS_FS_IOCTL_DEV    (UINT64_C(1) << 15)       /* ABI 5 */
#define ACCESS_NET_BIND_TCP    (UINT64_C(1) << 0)        /* ABI 4 */
#define ACCESS_NET_CONNECT_TCP (UINT64_C(1) << 1)        /* ABI 4 */
#define SCOPE_ABSTRACT_UNIX    (UINT64_C(1) << 0)        /* ABI 6 */
#define SCOPE_SIGNAL           (UINT64_C(1) << 1)        /* ABI 6 */

/* struct landlock_ruleset_attr as of ABI 6. Older kernels accept a longer structure whose unknown
 * end is zero. */
struct ruleset {
    uint64_t access_fs;
    uint64_t access_net;
    uint64_t scoped;
};

static struct ruleset ruleset_of_abi(int abi)
{
    struct ruleset set = {.access_fs = ACCESS_FS_ABI1};
    if (abi >= 2)
        set.access_fs |= ACCESS_FS_REFER;
    if (abi >= 3)
        set.access_fs |= ACCESS_FS_TRUNCATE;
    if (abi >= 4)
        set.access_net = ACCESS_NET_BIND_TCP | ACCESS_NET_CONNECT_TCP;
    if (abi >= 5)
        set.access_fs |= ACCESS_FS_IOCTL_DEV;
    if (abi >= 6)
        set.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
    return set;
}

static int allow_removal(int ruleset_fd, const char *directory)
{
    int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct landlock_path_beneath_attr rule = {
        .allowed_access = LANDLOCK_ACCESS_FS_REMOVE_FILE,
        .parent_fd = fd,
    };
    int failure = 0;
    if (syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        failure = -errno;
    close(fd);
    return failure;
}

int landlock_enter(const char *const *removable)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < 0) /* ENOSYS: not built in; EOPNOTSUPP: switched off at boot */
        return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;

    struct ruleset set = ruleset_of_abi((int)abi);
    int fd = (int)syscall(SYS_landlock_create_ruleset, &set, sizeof set, 0);
    if (fd < 0)
        return -errno;
    int failure = 0;
    for (; !failure && *removable; removable++)
        failure = allow_removal(fd, *removable);
    if (!failure && syscall(SYS_landlock_restrict_self, fd, 0) < 0)
        failure = -errno;
    close(fd);
    return failure ? failure : (int)abi;
}
