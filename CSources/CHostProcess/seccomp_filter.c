/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allow-list of system calls of a confined packet engine, seccomp(2) through libseccomp.
 *
 * A call that is not listed fails with EPERM; it does not kill. The list is what refuses the
 * attacker either way, while a new C library that tries a newer call first and falls back on an
 * error (as glibc does with clone3) must not cost a gateway its tunnels. Calls of a foreign
 * architecture have no such excuse and kill the process.
 */
#include "rights.h"
#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Allowed with any arguments. None of them takes a path but the last group: stat(2) tells nothing
 * of a file's content, and removing names is Landlock's to limit. */
static const int unconditional[] = {
    /* packets and clients */
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(readv),
    SCMP_SYS(writev),
    SCMP_SYS(preadv2),
    SCMP_SYS(pwritev2),
    SCMP_SYS(recvfrom),
    SCMP_SYS(recvmsg),
    SCMP_SYS(recvmmsg),
    SCMP_SYS(sendto),
    SCMP_SYS(sendmsg),
    SCMP_SYS(sendmmsg),
    SCMP_SYS(accept4),
    SCMP_SYS(shutdown),
    /* sockets that are bound again when the port changes */
    SCMP_SYS(bind),
    SCMP_SYS(setsockopt),
    SCMP_SYS(getsockopt),
    SCMP_SYS(getsockname),
    SCMP_SYS(getpeername),
    SCMP_SYS(close),
    SCMP_SYS(dup),
    SCMP_SYS(dup2),
    SCMP_SYS(dup3),
    /* waiting */
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(epoll_create1),
    SCMP_SYS(epoll_ctl),
    SCMP_SYS(epoll_wait),
    SCMP_SYS(epoll_pwait),
    SCMP_SYS(epoll_pwait2),
    SCMP_SYS(eventfd2),
    SCMP_SYS(timerfd_create),
    SCMP_SYS(timerfd_settime),
    SCMP_SYS(timerfd_gettime),
    SCMP_SYS(futex),
    SCMP_SYS(nanosleep),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(membarrier),
    /* time, randomness, and questions about this process */
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_getres),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(time),
    SCMP_SYS(getrandom),
    SCMP_SYS(getcpu),
    SCMP_SYS(getpid),
    SCMP_SYS(getppid),
    SCMP_SYS(gettid),
    SCMP_SYS(getuid),
    SCMP_SYS(geteuid),
    SCMP_SYS(getgid),
    SCMP_SYS(getegid),
    SCMP_SYS(getrusage),
    SCMP_SYS(getrlimit),
    SCMP_SYS(sysinfo),
    SCMP_SYS(uname),
    SCMP_SYS(times),
    /* memory; mmap and mprotect are below */
    SCMP_SYS(brk),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(madvise),
    /* threads and signals */
    SCMP_SYS(set_robust_list),
    SCMP_SYS(set_tid_address),
    SCMP_SYS(rseq),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(sched_getattr),
    SCMP_SYS(sched_setattr),
    SCMP_SYS(sched_getparam),
    SCMP_SYS(sched_getscheduler),
    SCMP_SYS(getpriority),
    SCMP_SYS(setpriority),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    /* names: compare and remove our own sockets */
    SCMP_SYS(fstat),
    SCMP_SYS(lstat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(unlink),
};

/* Requests of a running engine on its TUN queues, and what names and describes a link. Anything
 * that would make or configure a device is done before. */
static const unsigned ioctl_requests[] = {
    TUNSETQUEUE,  TUNSETOFFLOAD, TUNGETIFF,  TUNSETSTEERINGEBPF, FIONREAD,
    SIOCGIFINDEX, SIOCGIFNAME,   SIOCGIFMTU, SIOCGIFFLAGS,       SIOCGIFTXQLEN,
};

static const int fcntl_commands[] = {F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC};

/* Arguments declared int or unsigned: the upper half of the register is not defined. */
#define LOW_HALF         UINT64_C(0xffffffff)
#define ARG_IS(n, value) SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, LOW_HALF, (uint64_t)(value)&LOW_HALF)
#define ARG_BITS(n, mask, value)                                                                   \
    SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, (uint64_t)(mask), (uint64_t)(value))

#define NEW_NAMESPACES                                                                             \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

static int allow_sockets(scmp_filter_ctx filter)
{
    /* UDP, ioctl carriers, and rtnetlink for the link's state: no TCP, no unix, no raw socket. */
    int failure = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, ARG_IS(0, AF_INET),
                                   ARG_BITS(1, 0xf, SOCK_DGRAM));
    if (!failure)
        failure = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, ARG_IS(0, AF_INET6),
                                   ARG_BITS(1, 0xf, SOCK_DGRAM));
    if (!failure)
        failure = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
                                   ARG_IS(0, AF_NETLINK), ARG_IS(2, 0 /* NETLINK_ROUTE */));
    return failure;
}

static int allow_threads(scmp_filter_ctx filter)
{
    /* A thread, never a process. The flags of clone3 lie in memory a filter cannot see: ENOSYS
     * makes the C library use clone. */
    int failure = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                                   ARG_BITS(0, CLONE_THREAD | NEW_NAMESPACES, CLONE_THREAD));
    if (!failure)
        failure = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    if (!failure)
        failure =
            seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1, ARG_IS(0, PR_SET_NAME));
    /* abort(3) signals itself. */
    if (!failure)
        failure =
            seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, ARG_IS(0, getpid()));
    return failure;
}

static int allow_memory(scmp_filter_ctx filter)
{
    int failure =
        seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, ARG_BITS(2, PROT_EXEC, 0));
    if (!failure)
        failure = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                                   ARG_BITS(2, PROT_EXEC, 0));
    /* getrlimit(3) asks through prlimit64; setting or asking about others is not allowed. */
    if (!failure)
        failure = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2, ARG_IS(0, 0),
                                   SCMP_CMP64(2, SCMP_CMP_EQ, 0, 0));
    return failure;
}

static int allow_listed(scmp_filter_ctx filter)
{
    int failure = 0;
    for (size_t i = 0; !failure && i < sizeof unconditional / sizeof *unconditional; i++)
        failure = seccomp_rule_add(filter, SCMP_ACT_ALLOW, unconditional[i], 0);
    /* Without AT_REMOVEDIR. */
    if (!failure)
        failure = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(unlinkat), 1, ARG_IS(2, 0));
    for (size_t i = 0; !failure && i < sizeof ioctl_requests / sizeof *ioctl_requests; i++)
        failure = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
                                   ARG_IS(1, ioctl_requests[i]));
    for (size_t i = 0; !failure && i < sizeof fcntl_commands / sizeof *fcntl_commands; i++)
        failure = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
                                   ARG_IS(1, fcntl_commands[i]));
    return failure;
}

int seccomp_enter(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter)
        return -ENOMEM;
    int failure = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    /* A binary tree instead of a chain: every packet pays for the length of the way. */
    if (!failure)
        failure = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (!failure)
        failure = allow_listed(filter);
    if (!failure)
        failure = allow_sockets(filter);
    if (!failure)
        failure = allow_threads(filter);
    if (!failure)
        failure = allow_memory(filter);
    if (!failure)
        failure = seccomp_load(filter);
    seccomp_release(filter);
    return failure;
}
