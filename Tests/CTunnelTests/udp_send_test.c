/* SPDX-License-Identifier: Apache-2.0 */
/* Sending: every rung of the ladder delivers each segment once, byte for byte, whatever fails. */
#include "udp_support.h"

static uint8_t bytes[MAX_DATAGRAM];
static struct udp udp;
static struct counters counters;
static struct script script;
static uint64_t system_calls;

static int setup(void **state)
{
    (void)state;
    system_calls = 0;
    open_udp(&udp, NULL, 1, &counters);
    use_script(&udp, &script);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    udp_close(&udp);
    return 0;
}

static unsigned send_train(const struct endpoint *to, const struct udp_train *train)
{
    return udp_send(&udp.pair[0], to, train, &counters, &system_calls);
}

static void fail_calls(unsigned count, int error)
{
    for (unsigned i = 0; i < count; i++)
        script.steps[script.step_count++].error = error;
}

/* ---- one sendmsg --------------------------------------------------------------------------- */

static void grouped_train_arrives_whole(void **state)
{
    (void)state;
    static const struct {
        const char *address;
        size_t length, segment_size;
    } cases[] = {
        {"127.0.0.1", 2, 1},        /* smallest */
        {"127.0.0.1", 64 * 32, 32}, /* 64 keepalives */
        {"127.0.0.1", 45 * 1452 + 39, 1452} /* short tail */,
        {"127.0.0.1", MAX_DATAGRAM, 1452}, /* longest */
        {"::1", 2, 1},
        {"::1", 64 * 32, 32},
        {"::1", MAX_DATAGRAM, 1452},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct endpoint to;
        int sink = open_plain(&to, cases[i].address, 0);
        struct udp_train train = make_train(bytes, cases[i].length, cases[i].segment_size);
        use_script(&udp, &script);
        assert_int_equal(send_train(&to, &train), 0);
        expect_train(sink, &train);
        assert_int_equal(script.call_count, 1);
        assert_true(script.calls[0].segment);
        close(sink);
    }
    assert_int_equal(system_calls, sizeof cases / sizeof *cases);
    assert_int_equal(all_drops(&counters), 0);
}

static void pitfall_25_single_datagram_has_no_udp_segment(void **state)
{
    (void)state;
    static const size_t segment_sizes[] = {0, 148, 1000};
    struct endpoint to;
    int sink = open_plain(&to, "127.0.0.1", 0);
    for (unsigned i = 0; i < 3; i++) {
        struct udp_train train = make_train(bytes, 148, segment_sizes[i]);
        assert_int_equal(send_train(&to, &train), 0);
        train.segment_size = 148;
        expect_train(sink, &train);
        assert_int_equal(script.call_count, i + 1);
        assert_int_equal(script.calls[i].kind, CALL_SENDMSG);
        assert_false(script.calls[i].segment);
    }
    close(sink);
}

static void pitfall_26_udp_segment_is_exactly_16_bits(void **state)
{
    (void)state;
    struct endpoint to;
    int sink = open_plain(&to, "127.0.0.1", 0);
    struct udp_train train = make_train(bytes, 3000, 1452);
    send_train(&to, &train);
    expect_train(sink, &train);
    assert_int_equal(script.calls[0].segment_cmsg_length, CMSG_LEN(sizeof(uint16_t)));
    assert_int_equal(script.calls[0].segment_size, 1452);
    close(sink);
}

/* ---- stepping down ------------------------------------------------------------------------- */

static void pitfall_21_eio_resends_once_ungrouped_and_ends_gso(void **state)
{
    (void)state;
    struct endpoint to;
    int sink = open_plain(&to, "127.0.0.1", 0);
    struct udp_train train = make_train(bytes, 10 * 1452 + 77, 1452);
    fail_calls(1, EIO);
    assert_int_equal(send_train(&to, &train), 0);
    expect_train(sink, &train);
    assert_int_equal(script.call_count, 2);
    assert_int_equal(script.calls[1].kind, CALL_SENDMMSG);
    assert_int_equal(script.calls[1].messages, 11);
    assert_false(udp.pair[0].v4.gso);
    assert_true(udp.pair[0].v6.gso);
    assert_int_equal(fallbacks(&counters, FALLBACK_UDP_GSO_EIO), 1);

    send_train(&to, &train);
    expect_train(sink, &train);
    assert_int_equal(script.call_count, 3);
    assert_false(script.calls[2].segment);
    assert_int_equal(all_drops(&counters), 0);
    close(sink);
}

static void pitfall_22_einval_first_retries_without_pktinfo(void **state)
{
    (void)state;
    struct endpoint to;
    int sink = open_plain(&to, "127.0.0.1", 0);
    to.source.v4.s_addr = htonl(0x7f000002);
    struct udp_train train = make_train(bytes, 5000, 1452);
    fail_calls(1, EINVAL);
    assert_int_equal(send_train(&to, &train), UDP_SOURCE_REFUSED);
    expect_train(sink, &train);
    assert_int_equal(script.call_count, 2);
    assert_true(script.calls[0].pktinfo && script.calls[0].segment);
    assert_true(!script.calls[1].pktinfo && script.calls[1].segment);
    assert_true(udp.pair[0].v4.gso);
    assert_int_equal(fallbacks(&counters, FALLBACK_UDP_SOURCE_CLEARED), 1);
    assert_int_equal(fallbacks(&counters, FALLBACK_UDP_GSO_EINVAL), 0);
    close(sink);
}

static void pitfall_22_einval_then_retries_without_gso(void **state)
{
    (void)state;
    struct endpoint to;
    int sink = open_plain(&to, "127.0.0.1", 0);
    to.source.v4.s_addr = htonl(0x7f000002);
    struct udp_train train = make_train(bytes, 5000, 1452);
    fail_calls(2, EINVAL);
    assert_int_equal(send_train(&to, &train), UDP_GSO_REFUSED);
    struct datagram *last = expect_train(sink, &train);
    assert_int_equal(ntohl(last->from.remote.v4.sin_addr.s_addr), 0x7f000002);
    assert_int_equal(script.call_count, 3);
    assert_true(script.calls[2].pktinfo && !script.calls[2].segment);
    assert_int_equal(fallbacks(&counters, FALLBACK_UDP_GSO_EINVAL), 1);
    assert_int_equal(fallbacks(&counters, FALLBACK_UDP_SOURCE_CLEARED), 0);
    close(sink);
}

static void pitfall_23_emsgsize_ends_gso_for_that_destination_only(void **state)
{
    (void)state;
    struct endpoint to;
    int sink = open_plain(&to, "127.0.0.1", 0);
    struct udp_train train = make_train(bytes, 5000, 1452);
    fail_calls(1, EMSGSIZE);
    assert_int_equal(send_train(&to, &train), UDP_GSO_REFUSED);
    expect_train(sink, &train);
    assert_int_equal(fallbacks(&counters, FALLBACK_UDP_GSO_EMSGSIZE), 1);
    assert_true(udp.pair[0].v4.gso);

    send_train(&to, &train);
    expect_train(sink, &train);
    assert_true(script.calls[2].segment);

    train.no_gso = true;
    assert_int_equal(send_train(&to, &train), 0);
    expect_train(sink, &train);
    assert_int_equal(script.call_count, 4);
    assert_int_equal(script.calls[3].kind, CALL_SENDMMSG);
    close(sink);
}

static void pitfall_23_segments_longer_than_the_link_arrive_in_fragments(void **state)
{
    (void)state;
    struct two_hosts hosts = make_two_hosts();
    run("ip link set ngudp0 mtu 1300");
    udp_close(&udp);
    setup(NULL);
    static const char *const addresses[] = {"10.77.0.2", "fd77::2"};
    for (unsigned i = 0; i < 2; i++) {
        struct endpoint to;
        enter(hosts.there);
        int sink = open_plain(&to, addresses[i], 0);
        enter(hosts.here);
        struct udp_train train = make_train(bytes, 10 * 1452, 1452);
        assert_int_equal(send_train(&to, &train), UDP_GSO_REFUSED);
        expect_train(sink, &train);
        close(sink);
    }
    assert_int_equal(all_drops(&counters), 0);
    leave_two_hosts(hosts);
}

static void refused_gso_is_not_blamed_when_single_packets_fail_too(void **state)
{
    (void)state;
    struct endpoint to = endpoint_to("127.0.0.1", 0, 0); /* port 0: EINVAL from the kernel */
    struct udp_train train = make_train(bytes, 5000, 1452);
    assert_int_equal(send_train(&to, &train), 0);
    assert_int_equal(drops(&counters, DROP_UDP_SEND_FAILED), 4);
    assert_int_equal(script.call_count, 2);
}

static void without_sendmmsg_each_packet_is_sent_alone(void **state)
{
    (void)state;
    struct endpoint to;
    int sink = open_plain(&to, "127.0.0.1", 0);
    struct udp_train train = make_train(bytes, 5000, 1452);
    train.no_gso = true;
    fail_calls(1, ENOSYS);
    assert_int_equal(send_train(&to, &train), 0);
    expect_train(sink, &train);
    assert_int_equal(script.call_count, 1 + 4);
    assert_int_equal(fallbacks(&counters, FALLBACK_UDP_WITHOUT_SENDMMSG), 1);
    send_train(&to, &train);
    expect_train(sink, &train);
    assert_int_equal(script.call_count, 1 + 4 + 4);
    assert_int_equal(system_calls, 1 + 4 + 4);
    assert_int_equal(fallbacks(&counters, FALLBACK_UDP_WITHOUT_SENDMMSG), 1);
    close(sink);
}

/* ---- many destinations --------------------------------------------------------------------- */

/* Datagram i is i bytes of i, to sink i % 4: two of each family. */
static const char *const many_at[4] = {"127.0.0.1", "::1", "127.0.0.1", "::1"};
static struct udp_single singles[UDP_MOST_SINGLES];
static struct endpoint many_to[4];
static int many_sink[4];

static void open_many(void)
{
    for (unsigned i = 0; i < 4; i++)
        many_sink[i] = open_plain(&many_to[i], many_at[i], 0);
    for (unsigned i = 0; i < UDP_MOST_SINGLES; i++) {
        uint8_t *data = bytes + i * 64;
        memset(data, (int)i, 64);
        singles[i] = (struct udp_single){.to = &many_to[i % 4], .data = data, .length = i + 1};
    }
}

/* Each datagram arrived once and at its own destination, but for the ones of `lost`. */
static void expect_many(uint32_t lost)
{
    for (unsigned i = 0; i < UDP_MOST_SINGLES; i++) {
        struct datagram d;
        if (lost & 1u << i)
            continue;
        receive_plain(many_sink[i % 4], &d);
        assert_int_equal(d.length, i + 1);
        assert_int_equal(d.tos, 0x88);
        assert_memory_equal(d.data, singles[i].data, i + 1);
    }
    for (unsigned i = 0; i < 4; i++) {
        assert_nothing_more(many_sink[i]);
        close(many_sink[i]);
    }
}

static void send_many(void)
{
    udp_send_singles(&udp.pair[0], singles, UDP_MOST_SINGLES, 0x88, &counters, &system_calls);
}

static void datagrams_to_many_destinations_take_one_call_per_family(void **state)
{
    (void)state;
    open_many();
    send_many();
    assert_int_equal(system_calls, 2);
    assert_int_equal(all_drops(&counters), 0);
    expect_many(0);
}

static void pitfall_31_many_destinations_resume_at_the_first_unsent(void **state)
{
    (void)state;
    open_many();
    script.steps[script.step_count++].limit = 5; /* of 16 */
    send_many();
    assert_int_equal(system_calls, 3);
    assert_int_equal(all_drops(&counters), 0);
    expect_many(0);
}

static void one_destination_that_fails_costs_only_its_datagram(void **state)
{
    (void)state;
    open_many();
    fail_calls(2, EPERM); /* the batch, and the first of it alone */
    send_many();
    assert_int_equal(drops(&counters, DROP_UDP_SEND_FAILED), 1);
    assert_int_equal(system_calls, 4);
    expect_many(1);
}

static void without_sendmmsg_many_destinations_take_a_call_each(void **state)
{
    (void)state;
    open_many();
    fail_calls(1, ENOSYS);
    send_many();
    assert_int_equal(fallbacks(&counters, FALLBACK_UDP_WITHOUT_SENDMMSG), 1);
    assert_int_equal(system_calls, 1 + 16 + 1); /* the socket of the other family has it */
    expect_many(0);
}

/* ---- partial and transient failures -------------------------------------------------------- */

static void pitfall_31_partial_sendmmsg_resumes_at_the_first_unsent(void **state)
{
    (void)state;
    struct endpoint to;
    int sink = open_plain(&to, "127.0.0.1", 0);
    struct udp_train train = make_train(bytes, 64 * 500 - 3, 500);
    train.no_gso = true;
    script.steps[0].limit = 3;
    script.steps[1].limit = 1;
    script.steps[2].error = EAGAIN;
    script.step_count = 3;
    send_train(&to, &train);
    expect_train(sink, &train);
    static const unsigned messages[] = {64, 61, 60, 60};
    assert_int_equal(script.call_count, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(script.calls[i].messages, messages[i]);
    assert_int_equal(all_drops(&counters), 0);
    close(sink);
}

static void pitfall_32_full_buffers_are_retried_without_duplicates(void **state)
{
    (void)state;
    struct endpoint to;
    int sink = open_plain(&to, "127.0.0.1", 0);
    struct udp_train train = make_train(bytes, 5000, 1452);
    for (unsigned no_gso = 0; no_gso < 2; no_gso++) {
        use_script(&udp, &script);
        train.no_gso = no_gso;
        fail_calls(1, EAGAIN);
        fail_calls(1, ENOBUFS);
        fail_calls(1, EINTR);
        fail_calls(1, ENOMEM);
        assert_int_equal(send_train(&to, &train), 0);
        expect_train(sink, &train);
        assert_int_equal(script.call_count, 5);
    }
    assert_int_equal(all_drops(&counters), 0);
    close(sink);
}

static void pitfall_32_retries_are_bounded_and_the_drop_counted(void **state)
{
    (void)state;
    static const int errors[] = {EAGAIN, ENOBUFS};
    struct endpoint to;
    int sink = open_plain(&to, "127.0.0.1", 0);
    struct udp_train train = make_train(bytes, 5000, 1452);
    for (unsigned i = 0; i < 4; i++) {
        use_script(&udp, &script);
        train.no_gso = i % 2;
        fail_calls(16, errors[i / 2]);
        assert_int_equal(send_train(&to, &train), 0);
        assert_nothing_more(sink);
        assert_int_equal(script.call_count, 5);
        assert_int_equal(drops(&counters, DROP_UDP_BUFFER_FULL), 4 * (i + 1));
    }
    assert_int_equal(all_drops(&counters), 16);
    close(sink);
}

static void error_of_one_packet_costs_that_packet(void **state)
{
    (void)state;
    struct endpoint to;
    int sink = open_plain(&to, "127.0.0.1", 0);
    struct udp_train train = make_train(bytes, 5000, 1000);
    train.no_gso = true;
    script.steps[0].limit = 2;
    script.steps[1].error = EPERM;
    script.step_count = 2;
    assert_int_equal(send_train(&to, &train), 0);
    expect_segments(sink, &train, 0, 2);
    expect_segments(sink, &train, 3, 5);
    assert_nothing_more(sink);
    assert_int_equal(drops(&counters, DROP_UDP_SEND_FAILED), 1);
    close(sink);
}

static void unreachable_destination_drops_the_train_in_few_calls(void **state)
{
    (void)state;
    struct endpoint to = endpoint_to("198.51.100.1", 9, 0); /* RFC 5737: no route to it here */
    struct udp_train train = make_train(bytes, 64 * 100, 100);
    assert_int_equal(send_train(&to, &train), 0);
    assert_int_equal(script.call_count, 1);
    train.no_gso = true;
    assert_int_equal(send_train(&to, &train), 0);
    assert_int_equal(script.call_count, 2);
    assert_int_equal(drops(&counters, DROP_UDP_SEND_FAILED), 128);
}

static void no_endpoint_and_missing_family_are_counted_drops(void **state)
{
    (void)state;
    struct endpoint none = {0}, to = endpoint_to("::1", 9, 0);
    struct udp_train train = make_train(bytes, 300, 100);
    int v6 = udp.pair[0].v6.fd;
    udp.pair[0].v6.fd = -1;
    assert_int_equal(send_train(&none, &train), 0);
    assert_int_equal(send_train(&to, &train), 0);
    udp.pair[0].v6.fd = v6;
    assert_int_equal(drops(&counters, DROP_UDP_SEND_FAILED), 6);
    assert_int_equal(script.call_count, 0);
}

static void pitfall_33_no_check_option_makes_gso_fail_and_singles_arrive(void **state)
{
    (void)state;
    int on = 1;
    struct endpoint to;
    int sink = open_plain(&to, "::1", 0);
    setsockopt(sink, IPPROTO_UDP, UDP_NO_CHECK6_RX, &on, sizeof on);
    assert_int_equal(setsockopt(udp.pair[0].v6.fd, IPPROTO_UDP, UDP_NO_CHECK6_TX, &on, sizeof on),
                     0);
    struct udp_train train = make_train(bytes, 5000, 1452);
    assert_int_equal(send_train(&to, &train), UDP_GSO_REFUSED);
    expect_train(sink, &train);
    assert_int_equal(fallbacks(&counters, FALLBACK_UDP_GSO_EINVAL), 1);
    close(sink);
}

/* ---- source, scope, TOS -------------------------------------------------------------------- */

/* One train on each rung, with the same endpoint; every segment must come from `expected`. */
static void expect_source_on_every_rung(const char *address, const char *source)
{
    struct endpoint to, expected = endpoint_to(source, udp.port, 0);
    int sink = open_plain(&to, address, 0);
    if (to.remote.family == AF_INET)
        to.source.v4 = expected.remote.v4.sin_addr;
    else
        to.source.v6 = expected.remote.v6.sin6_addr;
    struct udp_train train = make_train(bytes, 5000, 1452);
    for (unsigned rung = 0; rung < 3; rung++) {
        train.no_gso = rung > 0;
        udp.pair[0].v4.sendmmsg = udp.pair[0].v6.sendmmsg = rung < 2;
        assert_int_equal(send_train(&to, &train), 0);
        for (size_t i = 0; i < segments_of(&train); i++)
            assert_true(
                endpoint_remote_equal(&expect_segments(sink, &train, i, i + 1)->from, &expected));
        assert_nothing_more(sink);
    }
    close(sink);
}

static void pitfall_27_every_segment_inherits_the_source(void **state)
{
    (void)state;
    run("ip addr add fd77:1::1/128 dev lo nodad");
    expect_source_on_every_rung("127.0.0.1", "127.0.0.9");
    expect_source_on_every_rung("::1", "fd77:1::1");
}

static void pitfall_59_every_segment_has_the_tos_of_its_train(void **state)
{
    (void)state;
    static const char *const addresses[] = {"127.0.0.1", "::1"};
    static const uint8_t tos[] = {0, HANDSHAKE_TOS, 1, 2, 3, 0};
    for (unsigned family = 0; family < 2; family++) {
        struct endpoint to;
        int sink = open_plain(&to, addresses[family], 0);
        struct udp_train train = make_train(bytes, 5000, 1452);
        for (unsigned i = 0; i < sizeof tos; i++) {
            use_script(&udp, &script);
            train.tos = tos[i];
            train.no_gso = i == 2;
            assert_int_equal(send_train(&to, &train), 0);
            for (size_t k = 0; k < segments_of(&train); k++)
                assert_int_equal(expect_segments(sink, &train, k, k + 1)->tos, tos[i]);
            assert_int_equal(script.calls[0].tos, tos[i] != 0);
        }
        close(sink);
    }
}

static void pitfall_49_source_that_is_gone_is_cleared_and_sending_goes_on(void **state)
{
    (void)state;
    static const struct {
        const char *to, *source, *remains;
    } cases[] = {{"10.77.0.2", "10.77.0.3", "10.77.0.1"}, {"fd77::2", "fd77::3", "fd77::1"}};
    struct two_hosts hosts = make_two_hosts();
    udp_close(&udp);
    setup(NULL);
    for (unsigned i = 0; i < 2; i++) {
        struct endpoint to, source = endpoint_to(cases[i].source, udp.port, 0),
                            remains = endpoint_to(cases[i].remains, udp.port, 0);
        enter(hosts.there);
        int sink = open_plain(&to, cases[i].to, 0);
        enter(hosts.here);
        if (i)
            to.source.v6 = source.remote.v6.sin6_addr;
        else
            to.source.v4 = source.remote.v4.sin_addr;
        to.source_interface = if_nametoindex("ngudp0");
        struct udp_train train = make_train(bytes, 2000, 1000);
        assert_int_equal(send_train(&to, &train), 0);
        assert_true(endpoint_remote_equal(&expect_train(sink, &train)->from, &source));

        run(i ? "ip addr del fd77::3/64 dev ngudp0" : "ip addr del 10.77.0.3/24 dev ngudp0");
        for (unsigned single = 0; single < 2; single++) {
            train.length = single ? 1000 : 2000;
            assert_int_equal(send_train(&to, &train), UDP_SOURCE_REFUSED);
            assert_true(endpoint_remote_equal(&expect_train(sink, &train)->from, &remains));
        }
        endpoint_clear_source(&to);
        assert_int_equal(send_train(&to, &train), 0);
        expect_train(sink, &train);
        close(sink);
    }
    assert_int_equal(fallbacks(&counters, FALLBACK_UDP_SOURCE_CLEARED), 4);
    assert_int_equal(all_drops(&counters), 0);
    leave_two_hosts(hosts);
}

static void pitfall_49_each_error_of_a_lost_source_retries_without_it(void **state)
{
    (void)state;
    static const int errors[] = {EINVAL, EADDRNOTAVAIL, ENETUNREACH, EHOSTUNREACH, ENODEV};
    struct endpoint to;
    int sink = open_plain(&to, "127.0.0.1", 0);
    to.source.v4.s_addr = htonl(0x7f000002);
    struct udp_train train = make_train(bytes, 3000, 1000);
    train.no_gso = true;
    for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++) {
        use_script(&udp, &script);
        fail_calls(1, errors[i]);
        assert_int_equal(send_train(&to, &train), UDP_SOURCE_REFUSED);
        expect_train(sink, &train);
        assert_int_equal(script.call_count, 2);
        assert_false(script.calls[1].pktinfo);
    }
    assert_int_equal(all_drops(&counters), 0);
    close(sink);
}

static void pitfall_48_link_local_destination_is_reached_through_its_scope(void **state)
{
    (void)state;
    struct two_hosts hosts = make_two_hosts();
    udp_close(&udp);
    setup(NULL);
    struct endpoint to;
    enter(hosts.there);
    int sink = open_plain(&to, "fe80::2", if_nametoindex("ngudp1"));
    enter(hosts.here);
    to.remote.v6.sin6_scope_id = if_nametoindex("ngudp0");
    struct udp_train train = make_train(bytes, 5000, 1000);
    assert_int_equal(send_train(&to, &train), 0);
    expect_train(sink, &train);

    assert_int_equal(inet_pton(AF_INET6, "fe80::1", &to.source.v6), 1);
    to.source_interface = if_nametoindex("ngudp0");
    assert_int_equal(send_train(&to, &train), 0);
    expect_train(sink, &train);

    /* The same address on another link is another host. */
    endpoint_clear_source(&to);
    add_link("ngudp2", "ngudp3", hosts.there);
    run("ip addr add fe80::5/64 dev ngudp2 nodad");
    enter(hosts.there);
    run("ip link set ngudp3 up");
    enter(hosts.here);
    to.remote.v6.sin6_scope_id = if_nametoindex("ngudp2");
    train.data[0] ^= 1;
    assert_int_equal(send_train(&to, &train), 0);
    train.data[0] ^= 1;
    to.remote.v6.sin6_scope_id = if_nametoindex("ngudp0");
    assert_int_equal(send_train(&to, &train), 0);
    expect_train(sink, &train);
    assert_int_equal(all_drops(&counters), 0);
    close(sink);
    leave_two_hosts(hosts);
}

int main(void)
{
    alarm(100);
    stay_on_one_cpu();
    enter_new_namespace();
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(grouped_train_arrives_whole),
        TEST(pitfall_25_single_datagram_has_no_udp_segment),
        TEST(pitfall_26_udp_segment_is_exactly_16_bits),
        TEST(pitfall_21_eio_resends_once_ungrouped_and_ends_gso),
        TEST(pitfall_22_einval_first_retries_without_pktinfo),
        TEST(pitfall_22_einval_then_retries_without_gso),
        TEST(pitfall_23_emsgsize_ends_gso_for_that_destination_only),
        TEST(pitfall_23_segments_longer_than_the_link_arrive_in_fragments),
        TEST(refused_gso_is_not_blamed_when_single_packets_fail_too),
        TEST(without_sendmmsg_each_packet_is_sent_alone),
        TEST(datagrams_to_many_destinations_take_one_call_per_family),
        TEST(pitfall_31_many_destinations_resume_at_the_first_unsent),
        TEST(one_destination_that_fails_costs_only_its_datagram),
        TEST(without_sendmmsg_many_destinations_take_a_call_each),
        TEST(pitfall_31_partial_sendmmsg_resumes_at_the_first_unsent),
        TEST(pitfall_32_full_buffers_are_retried_without_duplicates),
        TEST(pitfall_32_retries_are_bounded_and_the_drop_counted),
        TEST(error_of_one_packet_costs_that_packet),
        TEST(unreachable_destination_drops_the_train_in_few_calls),
        TEST(no_endpoint_and_missing_family_are_counted_drops),
        TEST(pitfall_33_no_check_option_makes_gso_fail_and_singles_arrive),
        TEST(pitfall_27_every_segment_inherits_the_source),
        TEST(pitfall_59_every_segment_has_the_tos_of_its_train),
        TEST(pitfall_49_source_that_is_gone_is_cleared_and_sending_goes_on),
        TEST(pitfall_49_each_error_of_a_lost_source_retries_without_it),
        TEST(pitfall_48_link_local_destination_is_reached_through_its_scope),
    };
    return cmocka_run_group_tests_name("udp_send", tests, NULL, NULL);
}
