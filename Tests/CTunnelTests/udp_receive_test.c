/* SPDX-License-Identifier: Apache-2.0 */
/* Receiving: datagrams and GRO trains of both families with source, local address and TOS. */
#include "udp_support.h"

static uint8_t bytes[MAX_DATAGRAM];
static struct udp udp;
static struct counters counters;
static struct udp_receiver *receiver;
static struct udp_received *received;

static int setup(void **state)
{
    (void)state;
    open_udp(&udp, NULL, 1, &counters);
    receiver = udp_receiver_create();
    return receiver ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    udp_receiver_destroy(receiver);
    udp_close(&udp);
    return 0;
}

static int receive(unsigned family)
{
    return udp_receive(family ? &udp.pair[0].v6 : &udp.pair[0].v4, receiver, &received, &counters);
}

static int receive_when_ready(unsigned family)
{
    struct pollfd p = {.fd = family ? udp.pair[0].v6.fd : udp.pair[0].v4.fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 10000), 1);
    return receive(family);
}

static const char *const loopback[] = {"127.0.0.1", "::1"};

/* ---- contents ------------------------------------------------------------------------------ */

static void nothing_waiting_is_no_error(void **state)
{
    (void)state;
    assert_int_equal(receive(0), 0);
    assert_int_equal(receive(1), 0);
}

static void pitfall_30_datagrams_of_every_size_arrive(void **state)
{
    (void)state;
    static const size_t sizes[] = {1,     2,     3,     4,     7,     8,           31,   32,
                                   64,    92,    148,   1199,  1452,  1500,        4096, 8191,
                                   16384, 32767, 32768, 65000, 65506, MAX_DATAGRAM};
    for (unsigned family = 0; family < 2; family++) {
        struct endpoint from, to = endpoint_to(loopback[family], udp.port, 0);
        int fd = open_plain(&from, loopback[family], 0);
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            make_train(bytes, sizes[i], sizes[i]);
            assert_int_equal(sendto(fd, bytes, sizes[i], 0, address_of(&to), length_of(&to)),
                             sizes[i]);
            assert_int_equal(receive(family), 1);
            assert_int_equal(received->length, sizes[i]);
            assert_int_equal(received->segment_size, sizes[i]);
            assert_memory_equal(received->data, bytes, sizes[i]);
            assert_true(endpoint_remote_equal(&received->from, &from));
        }
        close(fd);
    }
    assert_int_equal(all_drops(&counters), 0);
}

static void pitfall_30_empty_datagrams_are_counted_and_leave_the_others(void **state)
{
    (void)state;
    for (unsigned family = 0; family < 2; family++) {
        struct endpoint from, to = endpoint_to(loopback[family], udp.port, 0);
        int fd = open_plain(&from, loopback[family], 0);
        for (uint8_t i = 0; i < 7; i++)
            assert_int_equal(sendto(fd, &i, i % 2, 0, address_of(&to), length_of(&to)), i % 2);
        assert_int_equal(receive(family), 3);
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(received[i].length, 1);
            assert_int_equal(*received[i].data, 2 * i + 1);
        }
        close(fd);
    }
    assert_int_equal(drops(&counters, DROP_MESSAGE_TOO_SHORT), 8);
}

static void one_call_returns_eight_and_the_next_goes_on(void **state)
{
    (void)state;
    struct endpoint from, to = endpoint_to(loopback[0], udp.port, 0);
    int fd = open_plain(&from, loopback[0], 0);
    for (uint8_t i = 0; i < 20; i++)
        assert_int_equal(sendto(fd, &i, 1, 0, address_of(&to), length_of(&to)), 1);
    static const int counts[] = {8, 8, 4, 0};
    uint8_t expected = 0;
    for (unsigned call = 0; call < 4; call++) {
        assert_int_equal(receive(0), counts[call]);
        for (int i = 0; i < counts[call]; i++)
            assert_int_equal(*received[i].data, expected++);
    }
    close(fd);
}

static void pitfall_26_gro_size_is_read_as_an_int(void **state)
{
    (void)state;
    static const struct {
        size_t length, segment_size;
    } trains[] = {{2, 1}, {64 * 32, 32}, {45 * 1452, 1452}, {3000, 1500}, {40000, 20000}};
    for (unsigned family = 0; family < 2; family++) {
        struct endpoint to = endpoint_to(loopback[family], udp.port, 0);
        for (unsigned i = 0; i < sizeof trains / sizeof *trains; i++) {
            uint64_t calls = 0;
            struct udp_train train = make_train(bytes, trains[i].length, trains[i].segment_size);
            assert_int_equal(udp_send(&udp.pair[0], &to, &train, &counters, &calls), 0);
            assert_int_equal(receive(family), 1);
            assert_int_equal(received->length, train.length);
            assert_int_equal(received->segment_size, train.segment_size);
            assert_memory_equal(received->data, bytes, train.length);
        }
    }
}

static void without_gro_a_train_arrives_as_datagrams(void **state)
{
    (void)state;
    static const struct udp_options no_gro = {.no_gro = true};
    udp_close(&udp);
    open_udp(&udp, &no_gro, 1, &counters);
    struct endpoint to = endpoint_to(loopback[0], udp.port, 0);
    struct udp_train train = make_train(bytes, 3500, 1000);
    uint64_t calls = 0;
    udp_send(&udp.pair[0], &to, &train, &counters, &calls);
    assert_int_equal(receive(0), 4);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(received[i].length, i < 3 ? 1000 : 500);
        assert_int_equal(received[i].segment_size, received[i].length);
        assert_memory_equal(received[i].data, bytes + 1000 * i, received[i].length);
    }
}

/* ---- lengths that the kernel reports and changes ------------------------------------------- */

struct shrunk {
    size_t data, control; /* what the kernel is given instead, or 0 */
    unsigned calls;
};

/* Checks that every call starts with full lengths (pitfall 26), then lets the kernel truncate. */
static int shrinking_recvmmsg(void *context, int fd, struct mmsghdr *m, unsigned count, int flags)
{
    struct shrunk *s = context;
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(m[i].msg_hdr.msg_namelen, sizeof(struct sockaddr_in6));
        assert_in_range(m[i].msg_hdr.msg_controllen, 100, 1000);
        assert_in_range(m[i].msg_hdr.msg_iov->iov_len, MAX_DATAGRAM, 65536);
        assert_int_equal(m[i].msg_hdr.msg_flags, 0);
        if (s->data)
            m[i].msg_hdr.msg_iov->iov_len = s->data;
        if (s->control)
            m[i].msg_hdr.msg_controllen = s->control;
    }
    s->calls++;
    return recvmmsg(fd, m, count, flags, NULL);
}

static const struct udp_io shrinking_io = {.recvmmsg = shrinking_recvmmsg};

static void pitfall_26_lengths_are_reset_before_every_call(void **state)
{
    (void)state;
    struct shrunk shrunk = {0};
    struct endpoint from, to = endpoint_to(loopback[0], udp.port, 0);
    int fd = open_plain(&from, loopback[0], 0);
    udp.pair[0].v4.io = &shrinking_io;
    udp.pair[0].v4.io_context = &shrunk;
    for (unsigned i = 0; i < 5; i++) {
        for (unsigned k = 0; k <= i; k++)
            sendto(fd, bytes, 100, 0, address_of(&to), length_of(&to));
        assert_int_equal(receive(0), i + 1);
        for (unsigned k = 0; k <= i; k++) {
            assert_true(endpoint_remote_equal(&received[k].from, &from));
            assert_int_equal(ntohl(received[k].from.source.v4.s_addr), INADDR_LOOPBACK);
        }
    }
    assert_int_equal(shrunk.calls, 5);
    close(fd);
}

static void pitfall_29_truncated_data_or_control_is_dropped_and_counted(void **state)
{
    (void)state;
    static const struct shrunk cases[] = {{.data = 99}, {.control = 20}};
    struct endpoint from, to = endpoint_to(loopback[0], udp.port, 0);
    int fd = open_plain(&from, loopback[0], 0);
    for (unsigned i = 0; i < 2; i++) {
        struct shrunk shrunk = cases[i];
        udp.pair[0].v4.io = &shrinking_io;
        udp.pair[0].v4.io_context = &shrunk;
        sendto(fd, bytes, 100, 0, address_of(&to), length_of(&to));
        sendto(fd, bytes, 100, 0, address_of(&to), length_of(&to));
        assert_int_equal(receive(0), 0);
        assert_int_equal(drops(&counters, DROP_UDP_TRUNCATED), 2 * (i + 1));
        shrunk = (struct shrunk){0};
        sendto(fd, bytes, 100, 0, address_of(&to), length_of(&to));
        assert_int_equal(receive(0), 1);
    }
    close(fd);
}

struct failing {
    int errors[8];
    unsigned count, calls;
};

static int failing_recvmmsg(void *context, int fd, struct mmsghdr *m, unsigned count, int flags)
{
    struct failing *f = context;
    if (f->calls < f->count) {
        errno = f->errors[f->calls++];
        return -1;
    }
    f->calls++;
    return recvmmsg(fd, m, count, flags, NULL);
}

static const struct udp_io failing_io = {.recvmmsg = failing_recvmmsg};

static void errors_of_one_packet_are_skipped_and_others_returned(void **state)
{
    (void)state;
    static const struct {
        struct failing failing;
        int expected;
        unsigned calls;
    } cases[] = {
        {{{ECONNREFUSED, EHOSTUNREACH, EINTR}, 3, 0}, 1, 4},
        {{{EAGAIN}, 1, 0}, 0, 1},
        {{{EBADF}, 1, 0}, -EBADF, 1},
        {{{EPROTO, ENOMEM}, 2, 0}, -ENOMEM, 2},
        {{{EINTR, EINTR, EINTR, EINTR, EINTR, EINTR, EINTR, EINTR}, 8, 0}, 0, 5},
    };
    struct endpoint to = endpoint_to(loopback[0], udp.port, 0), from;
    int fd = open_plain(&from, loopback[0], 0);
    sendto(fd, bytes, 100, 0, address_of(&to), length_of(&to));
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct failing failing = cases[i].failing;
        udp.pair[0].v4.io = &failing_io;
        udp.pair[0].v4.io_context = &failing;
        assert_int_equal(receive(0), cases[i].expected);
        assert_int_equal(failing.calls, cases[i].calls);
    }
    close(fd);
}

/* ---- addresses and TOS --------------------------------------------------------------------- */

static void pitfall_49_replies_come_from_the_address_contacted(void **state)
{
    (void)state;
    static const char *const own[2][2] = {{"10.77.0.1", "10.77.0.3"}, {"fd77::1", "fd77::3"}};
    static const char *const remote[] = {"10.77.0.2", "fd77::2"};
    struct two_hosts hosts = make_two_hosts();
    udp_close(&udp);
    open_udp(&udp, NULL, 1, &counters);
    for (unsigned family = 0; family < 2; family++) {
        struct endpoint from;
        enter(hosts.there);
        int fd = open_plain(&from, remote[family], 0);
        enter(hosts.here);
        for (unsigned i = 0; i < 2; i++) {
            struct endpoint to = endpoint_to(own[family][i], udp.port, 0);
            sendto(fd, bytes, 148, 0, address_of(&to), length_of(&to));
            assert_int_equal(receive_when_ready(family), 1);
            struct endpoint learned = received->from;
            assert_true(endpoint_remote_equal(&learned, &from));
            assert_int_equal(learned.source_interface, if_nametoindex("ngudp0"));

            struct udp_train reply = make_train(bytes, 2000, 1000);
            uint64_t calls = 0;
            assert_int_equal(udp_send(&udp.pair[0], &learned, &reply, &counters, &calls), 0);
            assert_true(endpoint_remote_equal(&expect_train(fd, &reply)->from, &to));

            sendto(fd, bytes, 32, 0, address_of(&to), length_of(&to));
            assert_int_equal(receive_when_ready(family), 1);
            assert_true(endpoint_equal(&received->from, &learned)); /* nothing new to learn */
        }
        close(fd);
    }
    leave_two_hosts(hosts);
}

static void pitfall_48_link_local_sources_keep_their_scope(void **state)
{
    (void)state;
    struct two_hosts hosts = make_two_hosts();
    udp_close(&udp);
    open_udp(&udp, NULL, 1, &counters);
    unsigned scope = if_nametoindex("ngudp0");
    enter(hosts.there);
    unsigned far_scope = if_nametoindex("ngudp1");
    struct endpoint from, to = endpoint_to("fe80::1", udp.port, far_scope);
    int fd = open_plain(&from, "fe80::2", far_scope);
    enter(hosts.here);
    sendto(fd, bytes, 148, 0, address_of(&to), length_of(&to));
    assert_int_equal(receive_when_ready(1), 1);
    struct endpoint learned = received->from;
    from.remote.v6.sin6_scope_id = scope;
    assert_true(endpoint_remote_equal(&learned, &from));
    assert_int_equal(learned.source_interface, scope);

    struct udp_train reply = make_train(bytes, 2000, 1000);
    uint64_t calls = 0;
    assert_int_equal(udp_send(&udp.pair[0], &learned, &reply, &counters, &calls), 0);
    assert_true(endpoint_remote_equal(&expect_train(fd, &reply)->from, &to));
    close(fd);
    leave_two_hosts(hosts);
}

static void tos_and_ecn_arrive_with_single_datagrams_and_trains(void **state)
{
    (void)state;
    for (unsigned family = 0; family < 2; family++) {
        struct endpoint to = endpoint_to(loopback[family], udp.port, 0);
        for (unsigned tos = 0; tos < 256; tos++) {
            uint64_t calls = 0;
            struct udp_train train = make_train(bytes, tos % 2 ? 3000 : 1000, 1000);
            train.tos = (uint8_t)tos;
            udp_send(&udp.pair[0], &to, &train, &counters, &calls);
            assert_int_equal(receive(family), 1);
            assert_int_equal(received->length, train.length);
            assert_int_equal(received->tos, tos);
        }
    }
}

/* ---- memory -------------------------------------------------------------------------------- */

static unsigned resident_pages(void)
{
    unsigned size, resident;
    FILE *f = fopen("/proc/self/statm", "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%u %u", &size, &resident), 2);
    fclose(f);
    return resident;
}

static void untouched_buffers_cost_no_memory(void **state)
{
    (void)state;
    enum { COUNT = 16 };
    struct udp_receiver *many[COUNT];
    resident_pages(); /* stdio's own buffers */
    unsigned before = resident_pages();
    for (unsigned i = 0; i < COUNT; i++)
        assert_non_null(many[i] = udp_receiver_create());
    assert_in_range(resident_pages(), 0, before + COUNT * 16); /* of 128 pages each */
    for (unsigned i = 0; i < COUNT; i++)
        udp_receiver_destroy(many[i]);
}

int main(void)
{
    alarm(100);
    stay_on_one_cpu();
    enter_new_namespace();
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(nothing_waiting_is_no_error),
        TEST(pitfall_30_datagrams_of_every_size_arrive),
        TEST(pitfall_30_empty_datagrams_are_counted_and_leave_the_others),
        TEST(one_call_returns_eight_and_the_next_goes_on),
        TEST(pitfall_26_gro_size_is_read_as_an_int),
        TEST(without_gro_a_train_arrives_as_datagrams),
        TEST(pitfall_26_lengths_are_reset_before_every_call),
        TEST(pitfall_29_truncated_data_or_control_is_dropped_and_counted),
        TEST(errors_of_one_packet_are_skipped_and_others_returned),
        TEST(pitfall_49_replies_come_from_the_address_contacted),
        TEST(pitfall_48_link_local_sources_keep_their_scope),
        TEST(tos_and_ecn_arrive_with_single_datagrams_and_trains),
        TEST(untouched_buffers_cost_no_memory),
    };
    return cmocka_run_group_tests_name("udp_receive", tests, NULL, NULL);
}
