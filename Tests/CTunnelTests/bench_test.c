/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's measurement of itself: that it measures what it says, and no more than it may. No
 * test here asks how fast anything is. */
#include "../../CSources/CTunnel/bench.c"

#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
/* cmocka.h needs the above */
#include <cmocka.h>

static struct bench *start(void)
{
    assert_true(sodium_init() >= 0);
    struct bench *b = bench_create();
    assert_non_null(b);
    assert_int_equal(init(b, aead_choose("libsodium")), 0);
    return b;
}

static void every_packet_sealed_is_opened_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < TUNNEL_BENCH_SHAPES; i++) {
        struct bench *b = start();
        struct counters *c = &b->thread->counters;
        uint64_t expected = (uint64_t)shapes[i].frames * shapes[i].segments;
        assert_true(keep_trains(b, &b->scenes[i]));
        assert_int_equal(b->scenes[i].train_count, TRAINS);
        assert_int_equal(counter_get(&c->tx.packets), 2 * expected); /* once to warm up */
        assert_int_equal(counter_get(&c->rx.packets), expected);
        bench_destroy(b);
    }
}

/* A frame that the merge did not recognise would make "in" another path than that of real TCP. */
static void super_packets_arrive_merged(void **state)
{
    (void)state;
    struct bench *b = start();
    assert_true(keep_trains(b, &b->scenes[0]));
    uint64_t before = counter_get(&b->thread->counters.rx.system_calls);
    measure_in(b);
    uint64_t receives = (TRAINS + UDP_RECEIVE_MESSAGES - 1) / UDP_RECEIVE_MESSAGES;
    /* one write per train, and the receives */
    assert_int_equal(counter_get(&b->thread->counters.rx.system_calls) - before, TRAINS + receives);
    bench_destroy(b);
}

static void what_is_timed_as_merging_merges(void **state)
{
    const uint32_t frames[TUNNEL_BENCH_SHAPES] = {UDP_RECEIVE_MESSAGES, MERGE_MAX_PACKETS};
    (void)state;
    struct bench *b = start();
    for (size_t i = 0; i < TUNNEL_BENCH_SHAPES; i++) {
        b->scene = &b->scenes[i];
        measure_out(b);
        measure_stages(b, &shapes[i]);
        assert_int_equal(b->queue.merge.frame_count, frames[i]);
    }
    bench_destroy(b);
}

static void a_lost_packet_is_no_figure(void **state)
{
    (void)state;
    struct bench *b = start();
    allowedips_remove_all(b->tunnel->allowed_ips, &b->peer->allowed_ips);
    assert_false(keep_trains(b, &b->scenes[1]));
    bench_destroy(b);
}

static void percentiles_are_of_nearest_rank(void **state)
{
    (void)state;
    double values[200];
    for (int i = 0; i < 200; i++)
        values[i] = 200 - i;
    assert_true(percentile(values, 200, 50) == 100);
    assert_true(percentile(values, 200, 99) == 198);
    assert_true(percentile(values, 1, 99) == 1);
}

static void check_direction(const struct tunnel_bench_direction *d)
{
    assert_true(d->path_ns > 0 && d->aead_ns > 0 && d->offload_ns > 0);
    assert_true(d->batch_p50_ns > 0 && d->batch_p99_ns >= d->batch_p50_ns);
    assert_true(d->batches >= MINIMUM_ROUNDS);
    assert_in_range(d->batch_packets, MAX_BATCH_PACKETS, UDP_RECEIVE_MESSAGES * MAX_BATCH_PACKETS);
}

static void every_figure_is_there(void **state)
{
    (void)state;
    char error[TUNNEL_ERROR_TEXT_CAPACITY];
    struct tunnel_bench result;
    unsigned in_use = 0;
    assert_int_equal(tunnel_bench(0, "", &result, error), 0);
    assert_string_equal(error, "");
    for (size_t i = 0; i < TUNNEL_BENCH_SHAPES; i++) {
        assert_int_equal(result.shapes[i].packet_length, shapes[i].packet_length);
        check_direction(&result.shapes[i].out);
        check_direction(&result.shapes[i].in);
    }
    assert_true(result.aead_count >= 2); /* libcrypto and libsodium run everywhere */
    for (unsigned i = 0; i < result.aead_count; i++) {
        const struct tunnel_bench_aead *a = &result.aeads[i];
        in_use += !strcmp(a->name, result.aead);
        for (unsigned l = 0; l < TUNNEL_BENCH_LENGTHS; l++)
            assert_true(a->seal_ns[l] > 0 && a->open_ns[l] > 0);
    }
    assert_int_equal(in_use, 1);
}

static void an_unknown_back_end_is_an_error_with_a_reason(void **state)
{
    (void)state;
    char error[TUNNEL_ERROR_TEXT_CAPACITY];
    struct tunnel_bench result;
    assert_int_equal(tunnel_bench(0, "rot13", &result, error), -ENOTSUP);
    assert_non_null(strstr(error, "rot13"));
}

static void the_probe_leaves_no_link_behind(void **state)
{
    (void)state;
    char name[TUNNEL_NAME_CAPACITY];
    struct tunnel_host host;
    snprintf(name, sizeof name, "ngb%d", (int)getpid());
    tunnel_probe_host(&host);
    assert_int_equal(if_nametoindex(name), 0);
    assert_true(host.kernel[0] && host.cpus > 0);
    assert_true(host.buffer_granted > 0 && host.buffer_granted <= host.buffer_wanted);
    assert_true(!host.tun_uso || host.tun_tso); /* pitfall 17 */
    assert_true(!host.tun_error || !host.tun_vnet_hdr);
    if (geteuid() != 0)
        assert_int_equal(host.tun_error, EPERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_packet_sealed_is_opened_again),
        cmocka_unit_test(super_packets_arrive_merged),
        cmocka_unit_test(what_is_timed_as_merging_merges),
        cmocka_unit_test(a_lost_packet_is_no_figure),
        cmocka_unit_test(percentiles_are_of_nearest_rank),
        cmocka_unit_test(every_figure_is_there),
        cmocka_unit_test(an_unknown_back_end_is_an_error_with_a_reason),
        cmocka_unit_test(the_probe_leaves_no_link_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
