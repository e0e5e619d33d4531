/* SPDX-License-Identifier: Apache-2.0 */
/* Binding, steering and replacing sockets while other threads use them. */
#include "udp_support.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define WORKERS 4

static struct udp udp;
static struct counters counters;
static const struct udp_options no_options;

static int teardown(void **state)
{
    (void)state;
    udp_close(&udp);
    return 0;
}

static struct udp_socket *socket_of(unsigned worker, unsigned family)
{
    return family ? &udp.pair[worker].v6 : &udp.pair[worker].v4;
}

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t length = sizeof value;
    assert_return_code(getsockopt(fd, level, name, &value, &length), errno);
    return value;
}

static uint16_t port_of(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in6 v6;
    } name;
    socklen_t length = sizeof name;
    assert_return_code(getsockname(fd, &name.any, &length), errno);
    return ntohs(name.v6.sin6_port); /* where sin_port is, too */
}

static unsigned open_descriptors(void)
{
    unsigned count = 0;
    DIR *all = opendir("/proc/self/fd");
    assert_non_null(all);
    while (readdir(all))
        count++;
    closedir(all);
    return count;
}

static void send_plain(const struct endpoint *to, const void *data, size_t size)
{
    struct endpoint e = *to;
    int fd = socket(e.remote.family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_return_code(fd, errno);
    assert_int_equal(sendto(fd, data, size, 0, address_of(&e), length_of(&e)), size);
    close(fd);
}

/* ---- sockets and their options ------------------------------------------------------------- */

static void placeholders_sleep_in_poll(void **state)
{
    (void)state;
    assert_int_equal(udp_init(&udp, &no_options, WORKERS, &counters), 0);
    assert_false(udp.bound);
    struct pollfd polled[2 * WORKERS];
    for (unsigned i = 0; i < 2 * WORKERS; i++) {
        polled[i] = (struct pollfd){.fd = socket_of(i / 2, i % 2)->fd, .events = POLLIN};
        assert_int_equal(port_of(polled[i].fd), 0);
    }
    assert_int_equal(poll(polled, 2 * WORKERS, 0), 0);
}

static void bound_sockets_have_every_option(void **state)
{
    (void)state;
    open_udp(&udp, NULL, WORKERS, &counters);
    for (unsigned worker = 0; worker < WORKERS; worker++) {
        for (unsigned family = 0; family < 2; family++) {
            int fd = socket_of(worker, family)->fd;
            assert_int_equal(port_of(fd), udp.port);
            assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
            assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
            assert_in_range(option(fd, SOL_SOCKET, SO_RCVBUF), 7 << 20, INT32_MAX);
            assert_in_range(option(fd, SOL_SOCKET, SO_SNDBUF), 7 << 20, INT32_MAX);
            assert_int_equal(option(fd, IPPROTO_UDP, UDP_GRO), 1);
            assert_int_equal(option(fd, SOL_SOCKET, SO_REUSEPORT), 1);
        }
        int v4 = udp.pair[worker].v4.fd, v6 = udp.pair[worker].v6.fd;
        assert_int_equal(option(v4, IPPROTO_IP, IP_PKTINFO), 1);
        assert_int_equal(option(v4, IPPROTO_IP, IP_RECVTOS), 1);
        assert_int_equal(option(v6, IPPROTO_IPV6, IPV6_V6ONLY), 1);
        assert_int_equal(option(v6, IPPROTO_IPV6, IPV6_RECVPKTINFO), 1);
        assert_int_equal(option(v6, IPPROTO_IPV6, IPV6_RECVTCLASS), 1);
    }
    assert_true(udp.bound && udp.steering);
    assert_true(udp.gso_usable && udp.gro_usable);
}

static void pitfall_33_checksums_are_never_switched_off(void **state)
{
    (void)state;
    open_udp(&udp, NULL, 2, &counters);
    for (unsigned worker = 0; worker < 2; worker++) {
        assert_int_equal(option(udp.pair[worker].v4.fd, SOL_SOCKET, SO_NO_CHECK), 0);
        assert_int_equal(option(udp.pair[worker].v6.fd, SOL_SOCKET, SO_NO_CHECK), 0);
        assert_int_equal(option(udp.pair[worker].v6.fd, IPPROTO_UDP, UDP_NO_CHECK6_TX), 0);
        assert_int_equal(option(udp.pair[worker].v6.fd, IPPROTO_UDP, UDP_NO_CHECK6_RX), 0);
    }
}

static void pitfall_34_kernels_that_corrupt_gso_are_denied(void **state)
{
    (void)state;
    static const struct {
        const char *release;
        bool gso, gro;
    } cases[] = {
        {"4.19.0-21-amd64", true, false},
        {"5.11.22", true, false},
        {"5.12.0", true, true},
        {"6.1.0-37-amd64", true, true},
        {"6.18.44", true, true},
        {"6.99.99", true, true},
        {"7.0", false, true},
        {"7.0.0-rc1", false, true},
        {"7.0.12-generic", false, true},
        {"7.1", false, true},
        {"7.1.4", false, true},
        {"7.1.4-arch1-1", false, true},
        {"7.1.5", true, true},
        {"7.2.0", true, true},
        {"10.0.1", true, true},
        {"", true, true},
        {"unknown", true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(udp_kernel_gso_reliable(cases[i].release), cases[i].gso);
        assert_int_equal(udp_kernel_gro_reliable(cases[i].release), cases[i].gro);
    }
}

static void options_switch_the_rungs_off(void **state)
{
    (void)state;
    static const struct udp_options off = {true, true, true, true};
    open_udp(&udp, &off, 2, &counters);
    for (unsigned i = 0; i < 4; i++) {
        struct udp_socket *s = socket_of(i / 2, i % 2);
        assert_false(s->gso || s->gro || s->sendmmsg);
        assert_int_equal(option(s->fd, IPPROTO_UDP, UDP_GRO), 0);
    }
    assert_false(udp.steering);
    for (unsigned i = 0; i < FALLBACK_COUNT; i++) /* chosen, not fallen back to */
        assert_int_equal(fallbacks(&counters, i), 0);
}

static void a_single_worker_shares_its_port_with_nobody(void **state)
{
    (void)state;
    open_udp(&udp, NULL, 1, &counters);
    assert_int_equal(option(udp.pair[0].v4.fd, SOL_SOCKET, SO_REUSEPORT), 0);
    assert_int_equal(option(udp.pair[0].v6.fd, SOL_SOCKET, SO_REUSEPORT), 0);
    assert_false(udp.steering);
    assert_int_equal(udp_steer(&udp, 0x12345678), 0);
}

static void pitfall_50_fwmark_is_on_every_socket_also_after_rebind(void **state)
{
    (void)state;
    assert_int_equal(udp_init(&udp, &no_options, WORKERS, &counters), 0);
    static const uint32_t marks[] = {51820, 0xffffffff, 0, 7};
    for (unsigned round = 0; round < 4; round++) {
        assert_int_equal(udp_set_fwmark(&udp, marks[round]), 0);
        for (unsigned rebound = 0; rebound < 2; rebound++) {
            for (unsigned i = 0; i < 2 * WORKERS; i++)
                assert_int_equal((uint32_t)option(socket_of(i / 2, i % 2)->fd, SOL_SOCKET, SO_MARK),
                                 marks[round]);
            assert_int_equal(udp_bind(&udp, 0, &counters), 0);
        }
    }
}

/* ---- ports --------------------------------------------------------------------------------- */

static void pitfall_58_a_second_engine_gets_eaddrinuse(void **state)
{
    (void)state;
    struct udp second;
    open_udp(&udp, NULL, WORKERS, &counters);
    for (unsigned workers = 1; workers <= WORKERS; workers += WORKERS - 1) {
        unsigned before = open_descriptors();
        assert_int_equal(udp_init(&second, &no_options, workers, &counters), 0);
        assert_int_equal(udp_bind(&second, udp.port, &counters), -EADDRINUSE);
        assert_false(second.bound);
        assert_int_equal(port_of(second.pair[0].v4.fd), 0);
        assert_int_equal(open_descriptors(), before + 2 * workers);
        udp_close(&second);
    }
}

static void failed_rebind_keeps_the_old_sockets(void **state)
{
    (void)state;
    static const char *const taken_in[] = {"0.0.0.0", "::1"};
    open_udp(&udp, NULL, WORKERS, &counters);
    uint16_t port = udp.port;
    for (unsigned family = 0; family < 2; family++) {
        struct endpoint taken, to = endpoint_to(family ? "::1" : "127.0.0.1", port, 0);
        int owner = open_plain(&taken, taken_in[family], 0);
        unsigned before = open_descriptors();
        assert_int_equal(udp_bind(&udp, port_of(owner), &counters), -EADDRINUSE);
        assert_int_equal(open_descriptors(), before);
        assert_true(udp.bound && udp.steering);
        assert_int_equal(udp.port, port);
        uint8_t message[16] = {MESSAGE_DATA};
        send_plain(&to, message, sizeof message);
        assert_int_equal(recv(socket_of(0, family)->fd, message, sizeof message, 0), 16);
        close(owner);
    }
}

static void no_descriptors_left_keeps_the_old_sockets(void **state)
{
    (void)state;
    open_udp(&udp, NULL, WORKERS, &counters);
    uint16_t port = udp.port;
    int spare = open("/dev/null", O_RDONLY | O_CLOEXEC), filler[1024];
    unsigned filled = 0;
    assert_return_code(spare, errno);
    while (filled < 1024 && (filler[filled] = fcntl(spare, F_DUPFD_CLOEXEC, 0)) >= 0)
        filled++;
    assert_in_range(filled, 4 * WORKERS, 1023); /* the limit main() sets is reached */
    /* Any number of free descriptors up to what a rebind needs: sockets, then their copies. */
    for (unsigned freed = 0; freed < 4 * WORKERS; freed++) {
        assert_int_equal(udp_bind(&udp, 0, &counters), -EMFILE);
        assert_int_equal(udp.port, port);
        for (unsigned i = 0; i < 2 * WORKERS; i++)
            assert_int_equal(port_of(socket_of(i / 2, i % 2)->fd), port);
        close(filler[--filled]);
    }
    assert_int_equal(udp_bind(&udp, 0, &counters), 0);
    while (filled)
        close(filler[--filled]);
    close(spare);
}

static void the_bound_port_again_changes_nothing(void **state)
{
    (void)state;
    open_udp(&udp, NULL, 2, &counters);
    uint8_t byte = 1;
    struct endpoint to = endpoint_to("127.0.0.1", udp.port, 0);
    send_plain(&to, &byte, 1);
    assert_int_equal(udp_bind(&udp, udp.port, &counters), 0);
    assert_int_equal(recv(udp.pair[0].v4.fd, &byte, 1, 0), 1); /* still queued */
}

/* From now on `number` fails with `error` where its argument is `value`; 0 or -1. */
static int refuse_system_call(unsigned number, unsigned argument, unsigned value, unsigned error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[argument])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* The status of `body`, run in a child because system calls cannot be allowed again. */
static int exit_status_of(int (*body)(void))
{
    pid_t child = fork();
    assert_return_code(child, errno);
    if (!child)
        _exit(body());
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int rebind_with_the_last_replacement_refused(void)
{
    uint16_t port = udp.port;
    if (refuse_system_call(SYS_dup3, 1, (unsigned)udp.pair[WORKERS - 1].v6.fd, EBUSY))
        return 99;
    unsigned before = open_descriptors();
    if (udp_bind(&udp, 0, &counters) != -EBUSY)
        return 1;
    for (unsigned i = 0; i < 2 * WORKERS; i++)
        if (port_of(socket_of(i / 2, i % 2)->fd) != port)
            return 2;
    return open_descriptors() != before || udp.port != port ? 3 : 0;
}

static void a_replacement_that_fails_is_undone_for_all_sockets(void **state)
{
    (void)state;
    open_udp(&udp, NULL, WORKERS, &counters);
    assert_int_equal(exit_status_of(rebind_with_the_last_replacement_refused), 0);
}

static int use_udp_without_ipv6(void)
{
    struct counters own = {0};
    uint8_t data[2000] = {0};
    uint64_t calls = 0;
    struct udp_train train = {.data = data, .length = sizeof data, .segment_size = 1000};
    struct udp_received *received;
    struct udp_receiver *receiver = udp_receiver_create();
    if (refuse_system_call(SYS_socket, 0, AF_INET6, EAFNOSUPPORT)) /* as with ipv6.disable=1 */
        return 99;
    struct endpoint v6 = {.remote.v6 = {.sin6_family = AF_INET6, .sin6_port = htons(9)}};
    if (udp_init(&udp, &no_options, 2, &own) || udp_bind(&udp, 0, &own))
        return 1;
    if (udp.pair[0].v6.fd != -1 || udp.pair[1].v6.fd != -1 || !udp.steering)
        return 2;
    if (fallbacks(&own, FALLBACK_UDP_IPV6_UNAVAILABLE) != 1)
        return 3;
    if (udp_send(&udp.pair[0], &v6, &train, &own, &calls) || drops(&own, DROP_UDP_SEND_FAILED) != 2)
        return 4;
    if (udp_receive(&udp.pair[0].v6, receiver, &received, &own))
        return 5;
    struct endpoint v4 = {.remote.v4 = {.sin_family = AF_INET, .sin_port = htons(udp.port)}};
    v4.remote.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (udp_send(&udp.pair[1], &v4, &train, &own, &calls) ||
        udp_receive(&udp.pair[0].v4, receiver, &received, &own) != 1)
        return 6;
    if (udp_set_fwmark(&udp, 5) || udp_bind(&udp, 0, &own))
        return 7;
    udp_close(&udp);
    udp_receiver_destroy(receiver);
    return 0;
}

static void a_host_without_ipv6_is_counted_and_works(void **state)
{
    (void)state;
    assert_int_equal(exit_status_of(use_udp_without_ipv6), 0);
}

/* ---- steering ------------------------------------------------------------------------------ */

static void pitfall_58_steering_works_with_a_first_socket_bound_alone(void **state)
{
    (void)state;
    static const char *const addresses[] = {"127.0.0.1", "::1"};
    static const unsigned worker_counts[] = {2, 3, WORKERS};
    for (unsigned run = 0; run < 6; run++) {
        unsigned workers = worker_counts[run / 2], family = run % 2, hit[WORKERS] = {0};
        open_udp(&udp, NULL, workers, &counters);
        struct endpoint to = endpoint_to(addresses[family], udp.port, 0);
        for (uint32_t i = 0; i < 64; i++) {
            struct message_data message = {.type = MESSAGE_DATA, .counter = i};
            message.receiver_index = i * 2654435761u; /* Knuth's multiplier: all bytes vary */
            unsigned expected = udp_steer(&udp, message.receiver_index);
            assert_in_range(expected, 0, workers - 1);
            hit[expected]++;
            send_plain(&to, &message, sizeof message);
            struct message_data got;
            assert_int_equal(recv(socket_of(expected, family)->fd, &got, sizeof got, 0),
                             sizeof got);
            assert_memory_equal(&got, &message, sizeof got);
        }
        for (unsigned worker = 0; worker < workers; worker++)
            assert_in_range(hit[worker], 1, 63);
        udp_close(&udp);
    }
    assert_int_equal(fallbacks(&counters, FALLBACK_STEERING_UNAVAILABLE), 0);
}

static void datagrams_too_short_to_steer_go_to_the_first_worker(void **state)
{
    (void)state;
    open_udp(&udp, NULL, WORKERS, &counters);
    struct endpoint to = endpoint_to("127.0.0.1", udp.port, 0);
    static const uint8_t bytes[7] = {4, 0, 0, 0, 3, 3, 3};
    uint8_t got[8];
    for (ssize_t size = 0; size < 8; size++) {
        send_plain(&to, bytes, (size_t)size);
        assert_int_equal(recv(udp.pair[0].v4.fd, got, sizeof got, 0), size);
    }
}

static void pitfall_28_a_train_goes_by_its_first_index(void **state)
{
    (void)state;
    open_udp(&udp, NULL, WORKERS, &counters);
    struct endpoint to = endpoint_to("127.0.0.1", udp.port, 0);
    struct udp_receiver *receiver = udp_receiver_create();
    for (uint32_t first = 0; first < WORKERS; first++) {
        struct message_data messages[2 * WORKERS] = {{0}};
        for (uint32_t i = 0; i < 2 * WORKERS; i++)
            messages[i].receiver_index = (first + i) << 24;
        struct udp_train train = {.data = (uint8_t *)messages,
                                  .length = sizeof messages,
                                  .segment_size = sizeof *messages};
        uint64_t calls = 0;
        struct udp_received *received;
        udp_send(&udp.pair[0], &to, &train, &counters, &calls);
        unsigned worker = udp_steer(&udp, messages[0].receiver_index);
        assert_int_equal(worker, first);
        assert_int_equal(udp_receive(&udp.pair[worker].v4, receiver, &received, &counters), 1);
        assert_int_equal(received->segment_size, sizeof *messages);
        assert_int_equal(received->length, sizeof messages);
        assert_memory_equal(received->data, messages, sizeof messages);
    }
    udp_receiver_destroy(receiver);
}

/* ---- rebind under traffic ------------------------------------------------------------------ */

#define REBINDS 40

struct traffic {
    _Atomic bool stop;
    _Atomic unsigned sent;
    struct counters counters;
    struct endpoint echo;
    int sink;
    int seen[2]; /* a pipe: one byte per datagram received */
    int wake;    /* eventfd */
};

/* One train, and the next when it has arrived: a lost one would time out. */
static void *keep_sending(void *argument)
{
    struct traffic *t = argument;
    static uint8_t bytes[3000];
    static struct datagram d;
    struct udp_train train = {.data = bytes, .length = sizeof bytes, .segment_size = 1000};
    uint64_t calls = 0;
    while (!t->stop) {
        udp_send(&udp.pair[1], &t->echo, &train, &t->counters, &calls);
        for (unsigned i = 0; i < 3; i++) {
            receive_plain(t->sink, &d);
            if (d.length != 1000)
                abort();
        }
        t->sent++;
    }
    return NULL;
}

/* Sleeps in poll() without a timeout and is woken after each rebind, as a worker is. */
static void *keep_receiving(void *argument)
{
    struct traffic *t = argument;
    struct udp_receiver *receiver = udp_receiver_create();
    struct counters own = {0};
    while (!t->stop) {
        struct pollfd polled[3] = {{.fd = udp.pair[0].v4.fd, .events = POLLIN},
                                   {.fd = udp.pair[0].v6.fd, .events = POLLIN},
                                   {.fd = t->wake, .events = POLLIN}};
        eventfd_t count_of_wakes;
        if (poll(polled, 3, -1) < 0)
            abort();
        if (polled[2].revents && eventfd_read(t->wake, &count_of_wakes))
            abort();
        for (unsigned family = 0; family < 2; family++) {
            struct udp_received *received;
            int count = udp_receive(socket_of(0, family), receiver, &received, &own);
            if (count < 0)
                abort();
            for (int i = 0; i < count; i++)
                if (write(t->seen[1], received[i].data, 1) != 1)
                    abort();
        }
    }
    udp_receiver_destroy(receiver);
    return NULL;
}

static void rebind_under_a_sleeping_receiver_and_a_sender_loses_nothing(void **state)
{
    (void)state;
    static struct traffic t;
    pthread_t sender, receiver;
    open_udp(&udp, NULL, 2, &counters);
    memset(&t, 0, sizeof t);
    t.sink = open_plain(&t.echo, "127.0.0.1", 0);
    assert_return_code(pipe2(t.seen, O_CLOEXEC), errno);
    assert_return_code(t.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), errno);
    int before[] = {udp.pair[0].v4.fd, udp.pair[0].v6.fd, udp.pair[1].v4.fd, udp.pair[1].v6.fd};
    assert_int_equal(pthread_create(&sender, NULL, keep_sending, &t), 0);
    assert_int_equal(pthread_create(&receiver, NULL, keep_receiving, &t), 0);
    for (unsigned i = 0; i < REBINDS; i++) {
        uint16_t old = udp.port;
        assert_int_equal(udp_bind(&udp, 0, &counters), 0);
        assert_int_not_equal(udp.port, old);
        assert_return_code(eventfd_write(t.wake, 1), errno);
        /* Index 0 goes to worker 0. */
        struct endpoint to = endpoint_to(i % 2 ? "::1" : "127.0.0.1", udp.port, 0);
        struct message_data message = {.type = i + 1};
        uint8_t seen;
        send_plain(&to, &message, sizeof message);
        assert_int_equal(read(t.seen[0], &seen, 1), 1);
        assert_int_equal(seen, i + 1);
    }
    t.stop = true;
    assert_return_code(eventfd_write(t.wake, 1), errno);
    pthread_join(sender, NULL);
    pthread_join(receiver, NULL);
    assert_int_equal(all_drops(&t.counters), 0);
    assert_int_not_equal(t.sent, 0);
    assert_nothing_more(t.sink);
    int after[] = {udp.pair[0].v4.fd, udp.pair[0].v6.fd, udp.pair[1].v4.fd, udp.pair[1].v6.fd};
    assert_memory_equal(before, after, sizeof before);
    close(t.sink);
    close(t.wake);
    close(t.seen[0]);
    close(t.seen[1]);
}

static void rebind_arms_gso_again(void **state)
{
    (void)state;
    open_udp(&udp, NULL, 2, &counters);
    udp.pair[1].v4.gso = false; /* as after EIO */
    assert_int_equal(udp_bind(&udp, 0, &counters), 0);
    assert_true(udp.pair[1].v4.gso);
}

int main(void)
{
    alarm(100);
    enter_new_namespace();
    struct rlimit descriptors = {.rlim_cur = 256, .rlim_max = 256};
    setrlimit(RLIMIT_NOFILE, &descriptors);
#define TEST(f) cmocka_unit_test_teardown(f, teardown)
    const struct CMUnitTest tests[] = {
        TEST(placeholders_sleep_in_poll),
        TEST(bound_sockets_have_every_option),
        TEST(pitfall_33_checksums_are_never_switched_off),
        cmocka_unit_test(pitfall_34_kernels_that_corrupt_gso_are_denied),
        TEST(options_switch_the_rungs_off),
        TEST(a_single_worker_shares_its_port_with_nobody),
        TEST(pitfall_50_fwmark_is_on_every_socket_also_after_rebind),
        TEST(pitfall_58_a_second_engine_gets_eaddrinuse),
        TEST(failed_rebind_keeps_the_old_sockets),
        TEST(no_descriptors_left_keeps_the_old_sockets),
        TEST(a_replacement_that_fails_is_undone_for_all_sockets),
        TEST(the_bound_port_again_changes_nothing),
        TEST(a_host_without_ipv6_is_counted_and_works),
        TEST(pitfall_58_steering_works_with_a_first_socket_bound_alone),
        TEST(datagrams_too_short_to_steer_go_to_the_first_worker),
        TEST(pitfall_28_a_train_goes_by_its_first_index),
        TEST(rebind_under_a_sleeping_receiver_and_a_sender_loses_nothing),
        TEST(rebind_arms_gso_again),
    };
    return cmocka_run_group_tests_name("udp_bind", tests, NULL, NULL);
}
