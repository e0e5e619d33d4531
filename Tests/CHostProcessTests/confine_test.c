/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a confined process still can and no longer can. A forked child confines itself, tries, and
 * reports one errno per attempt (0: it succeeded); the test looks at it from outside meanwhile.
 */
#include "include/host_process.h"
#include "rights.h"

#include "cmocka_includes.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 3

static char directory[64], secret[96], socket_name[96];
static int landlock_abi;

static int outcome(long result)
{
    if (result < 0)
        return errno;
    return 0;
}

/* ---- attempts -------------------------------------------------------------------------------- */

static int read_root_only_file(void)
{
    return outcome(open(secret, O_RDONLY));
}
static int read_shadow(void)
{
    return outcome(open("/etc/shadow", O_RDONLY));
}
static int write_root_only_file(void)
{
    return outcome(open(secret, O_WRONLY));
}
static int truncate_file(void)
{
    return outcome(truncate(secret, 0));
}
static int make_file(void)
{
    return outcome(open("/tmp/nghp-made", O_WRONLY | O_CREAT, 0600));
}
static int make_file_where_sockets_are(void)
{
    char name[128];
    snprintf(name, sizeof name, "%s/sockets/made", directory);
    return outcome(open(name, O_WRONLY | O_CREAT, 0600));
}
static int open_by_openat2(void)
{
    uint64_t how[3] = {O_RDONLY, 0, 0}; /* struct open_how, openat2(2) */
    return outcome(syscall(SYS_openat2, AT_FDCWD, secret, how, sizeof how));
}
static int rename_file(void)
{
    return outcome(rename(secret, "/tmp/nghp-moved"));
}
static int change_mode(void)
{
    return outcome(chmod(secret, 0644));
}
static int link_file(void)
{
    return outcome(link(secret, "/tmp/nghp-linked"));
}
static int make_directory(void)
{
    return outcome(mkdir("/tmp/nghp-directory", 0700));
}
static int execute(void)
{
    char *const arguments[] = {"/bin/true", NULL};
    return outcome(execve(arguments[0], arguments, NULL));
}
static int be_traced(void)
{
    return outcome(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}
static int trace_the_parent(void)
{
    return outcome(ptrace(PTRACE_SEIZE, getppid(), NULL, NULL));
}
static int signal_the_parent(void)
{
    return outcome(kill(getppid(), SIGCONT));
}
static int fork_a_process(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return outcome(pid);
}
static int enter_a_namespace(void)
{
    return outcome(unshare(CLONE_NEWNS));
}
static int unix_socket(void)
{
    return outcome(socket(AF_UNIX, SOCK_STREAM, 0));
}
static int tcp_socket(void)
{
    return outcome(socket(AF_INET, SOCK_STREAM, 0));
}
static int raw_socket(void)
{
    return outcome(socket(AF_PACKET, SOCK_RAW, 0));
}
static int executable_memory(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? errno : 0;
}
static int make_memory_executable(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? -1 : outcome(mprotect(page, 4096, PROT_READ | PROT_EXEC));
}
static int io_uring(void)
{
    char parameters[120] = {0};
    return outcome(syscall(SYS_io_uring_setup, 4, parameters));
}
static int regain_a_capability(void)
{
    cap_value_t wanted = CAP_DAC_OVERRIDE;
    cap_t now = cap_init();
    cap_set_flag(now, CAP_PERMITTED, 1, &wanted, CAP_SET);
    return outcome(cap_set_proc(now));
}
static int remove_a_foreign_name(void)
{
    return outcome(unlink(secret));
}
static int raise_the_core_limit(void)
{
    struct rlimit limit = {1, 1};
    return outcome(setrlimit(RLIMIT_CORE, &limit));
}

static const struct attempt {
    const char *name;
    int (*act)(void);
} denied[] = {
    {"read a root-only file", read_root_only_file},
    {"read /etc/shadow", read_shadow},
    {"write a root-only file", write_root_only_file},
    {"truncate a file", truncate_file},
    {"make a file", make_file},
    {"make a file beside the sockets", make_file_where_sockets_are},
    {"open by openat2", open_by_openat2},
    {"rename a file", rename_file},
    {"change a mode", change_mode},
    {"link a file", link_file},
    {"make a directory", make_directory},
    {"execute", execute},
    {"be traced", be_traced},
    {"trace the parent", trace_the_parent},
    {"signal the parent", signal_the_parent},
    {"fork", fork_a_process},
    {"enter a namespace", enter_a_namespace},
    {"unix socket", unix_socket},
    {"TCP socket", tcp_socket},
    {"packet socket", raw_socket},
    {"executable memory", executable_memory},
    {"make memory executable", make_memory_executable},
    {"io_uring", io_uring},
    {"regain a capability", regain_a_capability},
    {"raise the core limit", raise_the_core_limit},
};
#define DENIED_COUNT (sizeof denied / sizeof *denied)

static int udp_socket_on_a_low_port_with_mark(void)
{
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    unsigned mark = 51820;
    int buffer = 7 << 20;
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(89)};
    if (setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) < 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
        return errno;
    return outcome(close(fd));
}
static int link_monitor(void)
{
    return outcome(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0));
}
static int index_of_a_link(void)
{
    return if_nametoindex("lo") == 0 ? errno : 0;
}
static int name_a_thread(void)
{
    return pthread_setname_np(pthread_self(), "named");
}
static int lower_the_priority(void)
{
    return outcome(setpriority(PRIO_PROCESS, 0, 5));
}
static int allocate(void)
{
    volatile char *memory = malloc(64 << 20);
    if (!memory)
        return ENOMEM;
    memory[32 << 20] = 1;
    free((void *)memory);
    return 0;
}
static int remove_our_name(void)
{
    return outcome(unlink(socket_name));
}

static const struct attempt allowed[] = {
    {"UDP on port 89 with a mark and forced buffers", udp_socket_on_a_low_port_with_mark},
    {"link monitor", link_monitor},
    {"index of a link", index_of_a_link},
    {"name a thread", name_a_thread},
    {"lower the priority", lower_the_priority},
    {"allocate", allocate},
    {"remove our own socket's name", remove_our_name},
};
#define ALLOWED_COUNT (sizeof allowed / sizeof *allowed)

/* ---- the confined child ---------------------------------------------------------------------- */

struct report {
    int confined; /* host_confine()'s result */
    struct host_confinement confinement;
    int threads_started;
    int denied[DENIED_COUNT];
    int allowed[ALLOWED_COUNT];
    int foreign_removal;
};

static pthread_barrier_t everybody_runs;
static int let_go[2];

static void *wait_for_the_end(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&everybody_runs);
    char end;
    return (void *)(intptr_t)read(let_go[0], &end, 1);
}

static void confine_and_try(int out)
{
    static struct report report;
    char text[HOST_ERROR_CAPACITY], sockets[96];
    snprintf(sockets, sizeof sockets, "%s/sockets", directory);
    const char *const removable[] = {sockets, NULL};
    report.confined = host_confine(removable, &report.confinement, text);
    if (report.confined == 0) {
        pthread_barrier_init(&everybody_runs, NULL, THREADS + 1);
        pthread_t thread;
        for (int i = 0; i < THREADS; i++)
            report.threads_started += pthread_create(&thread, NULL, wait_for_the_end, NULL) == 0;
        pthread_barrier_wait(&everybody_runs);
        for (size_t i = 0; i < DENIED_COUNT; i++)
            report.denied[i] = denied[i].act();
        for (size_t i = 0; i < ALLOWED_COUNT; i++)
            report.allowed[i] = allowed[i].act();
        report.foreign_removal = remove_a_foreign_name();
    }
    if (write(out, &report, sizeof report) != sizeof report)
        abort();
    char end;
    _exit(read(let_go[0], &end, 1) == 0 ? 0 : 1);
}

/* Value of `field` in a status file, e.g. "CapEff". */
static void status_field(const char *task, pid_t pid, const char *field, char *value, size_t size)
{
    char path[320], line[256];
    snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int)pid, task);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    size_t length = strlen(field);
    value[0] = '\0';
    while (fgets(line, sizeof line, file))
        if (strncmp(line, field, length) == 0 && line[length] == ':') {
            line[strcspn(line, "\n")] = '\0';
            snprintf(value, size, "%s", line + length + 1 + strspn(line + length + 1, "\t "));
        }
    fclose(file);
}

static int check_every_thread(pid_t pid)
{
    static const struct {
        const char *field, *value;
    } expected[] = {
        /* CAP_NET_BIND_SERVICE is bit 10, CAP_NET_ADMIN bit 12: capabilities(7) */
        {"CapInh", "0000000000000000"},
        {"CapPrm", "0000000000001400"},
        {"CapEff", "0000000000001400"},
        {"CapBnd", "0000000000000000"},
        {"CapAmb", "0000000000000000"},
        {"NoNewPrivs", "1"},
        {"Seccomp", "2"},
    };
    char path[64], value[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    assert_non_null(tasks);
    int count = 0;
    for (struct dirent *task; (task = readdir(tasks));) {
        if (task->d_name[0] == '.')
            continue;
        count++;
        for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
            status_field(task->d_name, pid, expected[i].field, value, sizeof value);
            if (strcmp(value, expected[i].value) != 0)
                fail_msg("thread %s: %s is %s", task->d_name, expected[i].field, value);
        }
    }
    closedir(tasks);
    return count;
}

static pid_t fork_child(void (*act)(int out), int *from)
{
    int out[2];
    assert_int_equal(pipe(out), 0);
    assert_int_equal(pipe(let_go), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(out[0]);
        close(let_go[1]);
        act(out[1]);
        _exit(99);
    }
    close(out[1]);
    close(let_go[0]);
    *from = out[0];
    return pid;
}

static void end_child(pid_t pid, int from)
{
    int status;
    close(let_go[1]);
    close(from);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void confined_process_keeps_two_rights_and_reaches_no_file(void **state)
{
    (void)state;
    int from;
    pid_t pid = fork_child(confine_and_try, &from);
    struct report report;
    assert_int_equal(read(from, &report, sizeof report), sizeof report);
    assert_int_equal(report.confined, 0);
    assert_true(report.confinement.bounding_set_emptied);
    assert_int_equal(report.confinement.landlock_abi, landlock_abi);
    assert_int_equal(report.threads_started, THREADS);
    for (size_t i = 0; i < DENIED_COUNT; i++)
        if (report.denied[i] != EPERM)
            fail_msg("%s: errno %d instead of EPERM", denied[i].name, report.denied[i]);
    for (size_t i = 0; i < ALLOWED_COUNT; i++)
        if (report.allowed[i] != 0)
            fail_msg("%s: errno %d", allowed[i].name, report.allowed[i]);
    /* Only Landlock tells directories apart. */
    if (landlock_abi > 0) {
        assert_int_equal(report.foreign_removal, EACCES);
        assert_int_equal(access(secret, F_OK), 0);
    }
    assert_int_equal(access(socket_name, F_OK), -1);
    assert_int_equal(check_every_thread(pid), THREADS + 1);
    end_child(pid, from);
}

/* ---- each filter alone ----------------------------------------------------------------------- */

static void landlock_alone(int out)
{
    const char *const removable[] = {NULL};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int results[] = {landlock_enter(removable) > 0,
                     read_root_only_file(),
                     write_root_only_file(),
                     make_file(),
                     execute(),
                     remove_a_foreign_name(),
                     rename_file()};
    if (write(out, results, sizeof results) != sizeof results)
        abort();
    _exit(0);
}

static void seccomp_alone(int out)
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int results[] = {
        seccomp_enter() == 0, read_root_only_file(), write_root_only_file(), make_file(), execute(),
        truncate_file(),      rename_file()};
    if (write(out, results, sizeof results) != sizeof results)
        abort();
    _exit(0);
}

static void landlock_alone_keeps_files_out_of_reach(void **state)
{
    (void)state;
    if (landlock_abi == 0)
        skip();
    int from, results[7];
    pid_t pid = fork_child(landlock_alone, &from);
    assert_int_equal(read(from, results, sizeof results), sizeof results);
    assert_int_equal(results[0], 1);
    for (size_t i = 1; i < sizeof results / sizeof *results; i++)
        assert_int_equal(results[i], EACCES);
    end_child(pid, from);
}

static void seccomp_alone_keeps_files_out_of_reach(void **state)
{
    (void)state;
    int from, results[7];
    pid_t pid = fork_child(seccomp_alone, &from);
    assert_int_equal(read(from, results, sizeof results), sizeof results);
    assert_int_equal(results[0], 1);
    for (size_t i = 1; i < sizeof results / sizeof *results; i++)
        assert_int_equal(results[i], EPERM);
    end_child(pid, from);
}

static void confine_beside_a_thread(int out)
{
    pthread_t thread;
    pthread_barrier_init(&everybody_runs, NULL, 2);
    pthread_create(&thread, NULL, wait_for_the_end, NULL);
    pthread_barrier_wait(&everybody_runs);
    struct host_confinement result;
    char text[HOST_ERROR_CAPACITY];
    const char *const removable[] = {NULL};
    int failure = host_confine(removable, &result, text);
    if (write(out, &failure, sizeof failure) != sizeof failure)
        abort();
    _exit(0);
}

static void confining_beside_a_running_thread_is_refused(void **state)
{
    (void)state;
    int from, failure = 0;
    pid_t pid = fork_child(confine_beside_a_thread, &from);
    assert_int_equal(read(from, &failure, sizeof failure), sizeof failure);
    assert_int_equal(failure, -EBUSY);
    end_child(pid, from);
}

/* ---- signals --------------------------------------------------------------------------------- */

static void take_signals(int out)
{
    signal(SIGTERM, SIG_IGN); /* as a careless starter leaves it */
    int fd = host_signals_open(false);
    int results[4] = {host_signals_next(fd)};
    raise(SIGHUP); /* ignored */
    raise(SIGTERM);
    raise(SIGINT);
    for (int i = 1; i < 4; i++)
        results[i] = host_signals_next(fd);
    if (write(out, results, sizeof results) != sizeof results)
        abort();
    _exit(0);
}

static void ending_signals_arrive_by_descriptor_even_if_ignored_before(void **state)
{
    (void)state;
    int from, results[4];
    pid_t pid = fork_child(take_signals, &from);
    assert_int_equal(read(from, results, sizeof results), sizeof results);
    assert_int_equal(results[0], 0);
    assert_int_equal(results[1] + results[2], SIGTERM + SIGINT);
    assert_int_equal(results[3], 0);
    end_child(pid, from);
}

/* ---- log ------------------------------------------------------------------------------------- */

/* A system log of its own: /dev is a fresh tmpfs in a mount namespace of the child. */
static void log_while_confined(int out)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
    int log = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", "/dev", "tmpfs", 0, NULL) < 0 ||
        bind(log, (struct sockaddr *)&address, sizeof address) < 0)
        abort();
    host_log_open(HOST_LOG_SYSLOG, "program", "wg0");
    struct host_confinement result;
    char text[HOST_ERROR_CAPACITY], line[256] = "";
    const char *const removable[] = {NULL};
    if (host_confine(removable, &result, text) < 0)
        abort();
    host_log(6, "first line");
    if (recv(log, line, sizeof line - 1, MSG_DONTWAIT) < 0 ||
        write(out, line, sizeof line) != sizeof line)
        abort();
    _exit(0);
}

static void lines_reach_the_system_log_while_confined(void **state)
{
    (void)state;
    int from;
    char line[256] = "";
    pid_t pid = fork_child(log_while_confined, &from);
    assert_int_equal(read(from, line, sizeof line), sizeof line);
    assert_int_equal(strncmp(line, "<30>", 4), 0); /* daemon.info */
    assert_non_null(strstr(line, " program["));
    assert_non_null(strstr(line, "]: wg0: first line"));
    end_child(pid, from);
}

static int prepare(void **state)
{
    (void)state;
    char name[96];
    snprintf(directory, sizeof directory, "/tmp/nghp-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(name, sizeof name, "%s/sockets", directory);
    mkdir(name, 0755);
    snprintf(secret, sizeof secret, "%s/secret", directory);
    snprintf(socket_name, sizeof socket_name, "%s/sockets/wg0.sock", directory);
    for (int i = 0; i < 2; i++) {
        int fd = open(i ? socket_name : secret, O_WRONLY | O_CREAT, 0600);
        assert_int_equal(write(fd, "key", 3), 3);
        close(fd);
    }
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* VERSION */);
    landlock_abi = abi < 0 ? 0 : (int)abi;
    return 0;
}

static int clean(void **state)
{
    (void)state;
    char name[96];
    unlink(secret);
    unlink(socket_name);
    snprintf(name, sizeof name, "%s/sockets", directory);
    rmdir(name);
    return rmdir(directory);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, prepare, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(confined_process_keeps_two_rights_and_reaches_no_file),
        TEST(landlock_alone_keeps_files_out_of_reach),
        TEST(seccomp_alone_keeps_files_out_of_reach),
        TEST(confining_beside_a_running_thread_is_refused),
        TEST(lines_reach_the_system_log_while_confined),
        TEST(ending_signals_arrive_by_descriptor_even_if_ignored_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
