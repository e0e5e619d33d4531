/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CHostProcess: what a program needs to live on a Linux host — becoming a daemon, giving up rights,
 * local sockets, signals, log. Nothing here knows WireGuard.
 *
 * Thread-safety: everything up to and including host_become_user() belongs to the time before the
 * first thread; host_log() may be called from any thread; the rest from one thread at a time.
 *
 * Errors: functions that can fail return 0 (or a descriptor) or a negative errno. Where there is an
 * `error_text` (HOST_ERROR_CAPACITY bytes) it then holds one line that names what was tried, on
 * what, why it failed and, where that is known, what to do.
 */
#ifndef NEXUSGUARD_HOST_PROCESS_H
#define NEXUSGUARD_HOST_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HOST_ERROR_CAPACITY 256
#define HOST_PATH_CAPACITY  108 /* sockaddr_un.sun_path, unix(7) */

/* ---- descriptors and daemon (daemon.c) ----------------------------------------------------- */

/* Makes descriptors 0–2 exist (/dev/null), so that no device or socket ever lands on a standard
 * stream; closes everything above that is not in `keep`; marks those in `keep` close-on-exec.
 * -EBADF: an entry of `keep` is not open. */
int host_clean_descriptors(const int *keep, size_t keep_count);

/* A duplicate at 3 or above, close-on-exec; the original is closed unless it is a standard stream.
 */
int host_move_above_standard(int fd);

/*
 * Forks. In the child: a session of its own, "/" as working directory, umask 077, standard streams
 * on /dev/null; returns the descriptor for host_report_…(). The parent does not return: it waits
 * until the child reports, writes the child's line to standard error if there is one, and ends with
 * the child's exit code. A child that dies without a report makes the parent say so and exit 1.
 */
int host_daemonise(const char *program);

/* Tells the waiting parent that everything accepts. -EPIPE: it has gone (the start was aborted). */
int host_report_ready(int report_fd);
void host_report_failure(int report_fd, uint8_t exit_code, const char *line);

/* ---- rights (confine.c, landlock.c, seccomp_filter.c, user.c) ------------------------------ */

bool host_has_net_admin(void);

struct host_confinement {
    int landlock_abi;          /* 0: the kernel has none; seccomp alone keeps files out of reach */
    bool bounding_set_emptied; /* false: no CAP_SETPCAP at start; no_new_privs still holds */
};

/*
 * Gives up everything but CAP_NET_ADMIN, CAP_NET_BIND_SERVICE and the system calls of a packet
 * engine; for this thread and all it will start. From here on no file can be opened, made, changed
 * or executed; names can be removed beneath `removable` only (NULL-terminated directories; where
 * the kernel has no Landlock the directory is not checked). -EBUSY: threads already exist.
 */
int host_confine(const char *const *removable, struct host_confinement *result, char *error_text);

/*
 * Becomes `user` with `group` and the groups of `name` in group(5), without any capability, for
 * good: no_new_privs, no core dumps. Started without user id 0, only gives up what there is.
 * -EBUSY: threads already exist.
 */
int host_become_user(const char *name, uid_t user, gid_t group, char *error_text);

/* No core dumps, no words at a crash, and nobody attaches; for who keeps the rights it has. 0 or a
 * negative errno. */
int host_forbid_dumps(void);

/* As many open files as the hard limit allows, `wanted` at most. Where that is refused they stay as
 * they are. */
void host_raise_file_limit(unsigned long wanted);

/* ---- local sockets (local_socket.c) -------------------------------------------------------- */

struct host_listener {
    int fd;
    int watch_fd; /* inotify; readable when something happened to the name. -1: no name to watch */
    bool made_here;
    uint64_t device, inode;
    char path[HOST_PATH_CAPACITY]; /* "" for an adopted socket without a name */
};

/* -EADDRINUSE with an error text when somebody answers on `path`; 0 otherwise. Changes nothing. */
int host_listener_probe(const char *path, char *error_text);

/* Makes missing directories (0755) and a listening stream socket (0600). A socket nobody answers on
 * is replaced; a live one (-EADDRINUSE) and whatever is not a socket (-EEXIST) stay. */
int host_listener_open(struct host_listener *listener, const char *path, char *error_text);

/* Takes over a listening unix stream socket. Its name is watched, but not removed at the end. */
int host_listener_adopt(struct host_listener *listener, int fd, char *error_text);

/* A connection, non-blocking and close-on-exec, or a negative errno (-EAGAIN: none waiting). */
int host_listener_accept(struct host_listener *listener);

/* Drains the watch; true when the name is gone or no longer leads to this socket. A name that was
 * changed within its directory (rename(2)) is followed: `path` is the new one. */
bool host_listener_removed(struct host_listener *listener);

/* Removes the name if this process made it and it still leads to this socket; closes. */
void host_listener_close(struct host_listener *listener);

/* Connects to the stream socket at `path`; non-blocking and close-on-exec. -EAGAIN: somebody
 * listens whose queue is full; -ECONNREFUSED and -ENOENT: nobody does. */
int host_connect(const char *path, char *error_text);

/* ---- other programs (spawn.c) -------------------------------------------------------------- */

struct host_child {
    pid_t pid;     /* -1: has ended and was reaped */
    int pid_fd;    /* readable when it has ended (pidfd_open(2)); -1: the kernel has none */
    int output_fd; /* what it and its own children wrote, in memory */
    int exit_code; /* of exit(3); valid when it has ended and `signal` is 0 */
    int signal;    /* that ended it */
};

/*
 * Starts the program at `path` in a session of its own, with signals as at login, standard input on
 * /dev/null and no other descriptor of this process. The vectors end with NULL; `environment` is
 * all it gets. A negative errno: nothing was started and nothing is to be closed.
 */
int host_child_start(struct host_child *child, const char *path, char *const *arguments,
                     char *const *environment);
/* Reaps it. Never waits. */
bool host_child_has_ended(struct host_child *child);
/* SIGKILL to it and to all it started, but for those who made a session of their own. */
void host_child_kill(const struct host_child *child);
/* The first `size` bytes of its output; how many, or a negative errno. */
ssize_t host_child_output(const struct host_child *child, char *buffer, size_t size);
/* The process goes on. */
void host_child_close(struct host_child *child);

/* ---- signals and service manager (events.c) ------------------------------------------------ */

/* Ignores SIGPIPE, blocks SIGTERM and SIGINT (for all later threads) and returns a descriptor that
 * delivers them. SIGHUP is delivered too when `hangup_ends`, else ignored. */
int host_signals_open(bool hangup_ends);
/* Number of the next pending signal, 0 when there is none. */
int host_signals_next(int fd);

/* Connects to $NOTIFY_SOCKET (sd_notify(3)). -1: not set or not reachable. */
int host_notify_open(void);
void host_notify(int fd, const char *state);

/* ---- clients of local sockets (local_peer.c) ------------------------------------------------ */

struct host_peer {
    int32_t process;
    uint32_t user, group;
};

/* As the kernel noted them when the other side connected. 0 or a negative errno. */
int host_peer_identify(int fd, struct host_peer *peer);
/* Its supplementary groups; how many there are, which may be more than fit: then none is filled in.
 * Negative errno. */
ptrdiff_t host_peer_groups(int fd, uint32_t *groups, size_t capacity);
/* A descriptor that is readable once the other side's process has ended (pidfd_open(2)), or a
 * negative errno: EINVAL when that process is this one. */
int host_peer_process_open(int fd);

/* ---- alarm (boot_timer.c) ------------------------------------------------------------------ */

/* A descriptor that is readable from the set time of CLOCK_BOOTTIME on, or a negative errno. */
int host_boot_timer_open(void);
/* Milliseconds since boot; negative: never. */
void host_boot_timer_set(int fd, int64_t milliseconds);

/* ---- wake-ups (wakeup.c) -------------------------------------------------------------------- */

/* A descriptor that is readable from `raise` to `clear`, or a negative errno. `raise` may be called
 * from any thread. */
int host_wakeup_open(void);
void host_wakeup_raise(int fd);
void host_wakeup_clear(int fd);

/* A descriptor that is readable when addresses or routes of this host changed (rtnetlink(7)), or a
 * negative errno. Needs no right. */
int host_network_changes_open(void);

/* ---- log (log.c) --------------------------------------------------------------------------- */

enum host_log_target { HOST_LOG_STDERR, HOST_LOG_SYSLOG };

/* Every line names its `subject`. Opens what it needs now, since nothing can be opened later. */
void host_log_open(enum host_log_target target, const char *program, const char *subject);
/* From now on lines name this one. */
void host_log_rename(const char *subject);
/* `priority` as in syslog(3). */
void host_log(int priority, const char *line);

/* ---- time (universal_time.c) ---------------------------------------------------------------- */

#define HOST_TIME_CAPACITY 32

/* Milliseconds since 1970 as "2026-01-31T23:59:59.123Z". */
void host_time_text(int64_t milliseconds, char text[HOST_TIME_CAPACITY]);
/* The same from a date, with or without a time, a fraction and an offset; false when it is none. */
bool host_time_parse(const char *text, int64_t *milliseconds);

/* ---- small things the Swift importer cannot express ---------------------------------------- */

void host_set_umask(void); /* 077 */

#endif
