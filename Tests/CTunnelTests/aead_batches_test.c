/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every back-end this machine can run against libsodium and libcrypto: batches of any count,
 * packets of any length and alignment, in place and not.
 */
#include "aead_support.h"

#define RANDOM_PACKETS (SANITIZED ? 10000 : 100000)

static void equals_libsodium(struct aead_worker *worker)
{
    struct aead_worker *oracle = aead_worker_create(&aead_libsodium);
    struct batch *batch = allocate(sizeof(*batch));
    struct aead_key key;
    size_t packets = 0;

    for (int round = 0; packets < RANDOM_PACKETS; round++) {
        if (round % 4 == 0)
            random_key(&key);
        if (round % 7 == 0)
            aead_forget(worker);
        batch_lay_out(batch, randombytes_uniform(MAX_BATCH + 1), MIXED);
        check_batch(worker, oracle, batch, &key, round & 1);
        packets += batch->count;
        batch_free(batch);
    }
    free(batch);
    aead_worker_destroy(oracle);
}

static void every_backend_equals_libsodium_over_random_batches(void **state)
{
    (void)state;
    on_every_backend(equals_libsodium);
}

static void takes_the_edges(struct aead_worker *worker)
{
    static const size_t counts[] = {1,   2,   31,  32,  33,  63,  64, 65,
                                    127, 128, 129, 255, 256, 257, 512};
    struct aead_worker *oracle = aead_worker_create(&aead_libsodium);
    struct batch *batch = allocate(sizeof(*batch));
    struct aead_key key;
    random_key(&key);

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        batch_lay_out(batch, counts[i], 48);
        check_batch(worker, oracle, batch, &key, i & 1);
        batch_free(batch);
    }
    for (size_t count = 1; count <= 70; count++) { /* keepalives only */
        batch_lay_out(batch, count, 0);
        check_batch(worker, oracle, batch, &key, count & 1);
        batch_free(batch);
    }
    for (uint32_t length = LARGEST - 2; length <= LARGEST; length++) {
        batch_lay_out(batch, 3, length);
        check_batch(worker, oracle, batch, &key, length & 1);
        batch_free(batch);
    }
    /* Nothing at all. */
    aead_seal_n(worker, &key, NULL, 0);
    assert_int_equal(aead_open_n(worker, &key, NULL, 0), 0);
    free(batch);
    aead_worker_destroy(oracle);
}

static void every_backend_takes_batches_of_0_to_512_and_the_longest_packet(void **state)
{
    (void)state;
    on_every_backend(takes_the_edges);
}

/* Each length by itself and beside its neighbours, so that it begins at any block of a group. */
static void takes_lengths(struct aead_worker *worker, uint32_t from, uint32_t to, uint32_t step)
{
    struct aead_worker *oracle = aead_worker_create(&aead_libsodium);
    struct batch *batch = allocate(sizeof(*batch));
    struct aead_key key;
    random_key(&key);

    for (uint32_t length = from; length <= to; length += step) {
        batch_lay_out(batch, 1, length);
        check_batch(worker, oracle, batch, &key, length & 1);
        batch_free(batch);
        batch_lay_out(batch, 2 + length % 9, length);
        check_batch(worker, oracle, batch, &key, ~length & 1);
        batch_free(batch);
    }
    free(batch);
    aead_worker_destroy(oracle);
}

static void takes_short_lengths(struct aead_worker *worker)
{
    takes_lengths(worker, 0, 2100, SANITIZED ? 7 : 1);
}

static void every_backend_takes_every_length_to_2100(void **state)
{
    (void)state;
    on_every_backend(takes_short_lengths);
}

static void takes_long_lengths(struct aead_worker *worker)
{
    static const int32_t around[] = {-64, -17, -16, -1, 0, 1, 15, 16, 64};
    const size_t offsets = sizeof(around) / sizeof(around[0]);
    for (uint32_t multiple = 2048, i = 0; multiple < LARGEST - 64; multiple += 512, i++)
        for (size_t j = SANITIZED ? i % offsets : 0; j < offsets; j += SANITIZED ? offsets : 1) {
            const uint32_t length = (uint32_t)((int32_t)multiple + around[j]);
            takes_lengths(worker, length, length, 1);
        }
}

static void every_backend_takes_lengths_around_multiples_of_512(void **state)
{
    (void)state;
    on_every_backend(takes_long_lengths);
}

/* AEAD_TEST_BATCHES, for instance 1000000, against libsodium and libcrypto in turn. */
static void equals_both_oracles(struct aead_worker *worker)
{
    const char *wanted = getenv("AEAD_TEST_BATCHES");
    const size_t batches = wanted ? strtoull(wanted, NULL, 10) : SANITIZED ? 300 : 3000;
    struct aead_worker *oracles[2] = {aead_worker_create(&aead_libsodium),
                                      aead_worker_create(&aead_libcrypto)};
    struct batch *batch = allocate(sizeof(*batch));
    struct aead_key key;

    assert_true(batches > 0);
    for (size_t round = 0; round < batches; round++) {
        if (round % 4 == 0)
            random_key(&key);
        batch_lay_out(batch, 1 + randombytes_uniform(round % 16 ? 20 : 100), MIXED);
        check_batch(worker, oracles[round & 1], batch, &key, round & 2);
        batch_free(batch);
    }
    free(batch);
    aead_worker_destroy(oracles[0]);
    aead_worker_destroy(oracles[1]);
}

static void every_backend_equals_libsodium_and_libcrypto(void **state)
{
    (void)state;
    on_every_backend(equals_both_oracles);
}

static void takes_any_alignment(struct aead_worker *worker)
{
    struct aead_key key;
    uint8_t plain[400], expected[300 + TAG], sealed[400 + TAG], opened[400];
    random_key(&key);
    randombytes_buf(plain, sizeof(plain));
    for (uint32_t from = 0; from < 64; from += SANITIZED ? 3 : 1)
        for (uint32_t to = 0; to < 64; to += SANITIZED ? 3 : 1) {
            struct aead_packet packet = {expected, plain + from, from, 237 + to, false};
            struct aead_worker *oracle = aead_worker_create(&aead_libsodium);
            aead_seal_n(oracle, &key, &packet, 1);
            aead_worker_destroy(oracle);
            packet.destination = sealed + to;
            aead_seal_n(worker, &key, &packet, 1);
            assert_memory_equal(sealed + to, expected, packet.length + TAG);
            packet.source = sealed + to;
            packet.destination = opened + from;
            assert_int_equal(aead_open_n(worker, &key, &packet, 1), 1);
            assert_memory_equal(opened + from, plain + from, packet.length);
        }
}

static void every_backend_takes_any_alignment(void **state)
{
    (void)state;
    on_every_backend(takes_any_alignment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_backend_equals_libsodium_over_random_batches),
        cmocka_unit_test(every_backend_takes_batches_of_0_to_512_and_the_longest_packet),
        cmocka_unit_test(every_backend_takes_every_length_to_2100),
        cmocka_unit_test(every_backend_takes_lengths_around_multiples_of_512),
        cmocka_unit_test(every_backend_equals_libsodium_and_libcrypto),
        cmocka_unit_test(every_backend_takes_any_alignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
