/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every back-end this machine can run, against RFC 8439 and against libsodium (itself checked
 * against the RFC first): vectors, forgeries, keys and memory; the self-test against back-ends that
 * are wrong; the choice.
 */
#include "../vectors/rfc8439.h"
#include "aead_support.h"
#include "crypto/aead_vectors.h"

#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- RFC 8439 ---------------------------------------------------------------------------------
 */

static void the_oracle_gives_rfc8439_2_8_2_and_a_5(void **state)
{
    uint8_t out[AEAD_VECTOR_LENGTH], tag[TAG];
    (void)state;
    crypto_aead_chacha20poly1305_ietf_encrypt_detached(
        out, tag, NULL, rfc8439_282_plaintext, sizeof(rfc8439_282_plaintext), rfc8439_282_data,
        sizeof(rfc8439_282_data), NULL, rfc8439_282_nonce, rfc8439_282_key);
    assert_memory_equal(out, rfc8439_282_ciphertext, sizeof(rfc8439_282_ciphertext));
    assert_memory_equal(tag, rfc8439_282_tag, TAG);
    crypto_aead_chacha20poly1305_ietf_encrypt_detached(
        out, tag, NULL, aead_vector_plaintext, AEAD_VECTOR_LENGTH, rfc8439_a5_data,
        sizeof(rfc8439_a5_data), NULL, rfc8439_a5_nonce, aead_vector_key);
    assert_memory_equal(out, aead_vector_ciphertext, AEAD_VECTOR_LENGTH);
    assert_memory_equal(tag, rfc8439_a5_tag, TAG);
}

static void gives_a_5(struct aead_worker *worker)
{
    uint8_t sealed[AEAD_VECTOR_LENGTH + TAG], opened[AEAD_VECTOR_LENGTH];
    struct aead_packet packet = {sealed, aead_vector_plaintext, aead_vector_counter,
                                 AEAD_VECTOR_LENGTH, false};
    struct aead_key key;
    memcpy(key.bytes, aead_vector_key, sizeof(key.bytes));
    aead_seal_n(worker, &key, &packet, 1);
    assert_memory_equal(sealed, aead_vector_ciphertext, AEAD_VECTOR_LENGTH);
    assert_memory_equal(sealed + AEAD_VECTOR_LENGTH, aead_vector_tag, TAG);
    packet.destination = opened;
    packet.source = sealed;
    assert_int_equal(aead_open_n(worker, &key, &packet, 1), 1);
    assert_true(packet.ok);
    assert_memory_equal(opened, aead_vector_plaintext, AEAD_VECTOR_LENGTH);
}

static void every_backend_gives_rfc8439_a_5(void **state)
{
    (void)state;
    on_every_backend(gives_a_5);
}

/* ---- forgeries ---------------------------------------------------------------------------------
 */

/* Three packets, the middle one with one byte changed: for every length to 130 and every byte. */
static void rejects_every_byte(struct aead_worker *worker)
{
    struct aead_key key;
    uint8_t plain[3][130], sealed[3][130 + TAG], opened[3][130];
    random_key(&key);
    randombytes_buf(plain, sizeof(plain));
    for (uint32_t length = 0; length <= 130; length += SANITIZED ? 13 : 1) {
        struct aead_packet packets[3];
        for (int i = 0; i < 3; i++)
            packets[i] = (struct aead_packet){sealed[i], plain[i], length + i, length, false};
        aead_seal_n(worker, &key, packets, 3);
        for (uint32_t position = 0; position < length + TAG; position++) {
            const bool in_place = position & 1;
            uint8_t copy[130 + TAG];
            memcpy(copy, sealed[1], sizeof(copy));
            copy[position] ^= (uint8_t)(1u << (position & 7));
            memset(opened, 0xaa, sizeof(opened));
            for (int i = 0; i < 3; i++) {
                packets[i].source = i == 1 ? copy : sealed[i];
                packets[i].destination = i == 1 && in_place ? copy : opened[i];
                packets[i].ok = i == 1;
            }
            assert_int_equal(aead_open_n(worker, &key, packets, 3), 2);
            assert_true(packets[0].ok && !packets[1].ok && packets[2].ok);
            assert_true(sodium_is_zero(packets[1].destination, length));
            if (!in_place && length < 130)
                assert_int_equal(opened[1][length], 0xaa); /* and no byte more */
            assert_memory_equal(opened[0], plain[0], length);
            assert_memory_equal(opened[2], plain[2], length);
        }
    }
}

static void every_backend_rejects_a_change_of_any_byte_and_zeroes_the_output(void **state)
{
    (void)state;
    on_every_backend(rejects_every_byte);
}

/* A train of full packets with one bit wrong in each in turn, and with all wrong; in place. */
static void rejects_in_trains(struct aead_worker *worker)
{
    enum { TRAIN = 45, LENGTH = 1424, ALL = TRAIN };
    struct aead_key key;
    uint8_t *plain = allocate(TRAIN * (size_t)LENGTH);
    uint8_t *sealed = allocate(TRAIN * (size_t)(LENGTH + TAG));
    random_key(&key);
    randombytes_buf(plain, TRAIN * (size_t)LENGTH);

    for (size_t forged = 0; forged <= ALL; forged++) {
        struct aead_packet packets[TRAIN];
        for (size_t i = 0; i < TRAIN; i++)
            packets[i] = (struct aead_packet){sealed + i * (LENGTH + TAG), plain + i * LENGTH, i,
                                              LENGTH, false};
        aead_seal_n(worker, &key, packets, TRAIN);
        for (size_t i = 0; i < TRAIN; i++) {
            packets[i].source = packets[i].destination;
            packets[i].ok = i == forged;
            if (i == forged || forged == ALL)
                packets[i].destination[randombytes_uniform(LENGTH + TAG)] ^=
                    (uint8_t)(1u << randombytes_uniform(8));
        }
        assert_int_equal(aead_open_n(worker, &key, packets, TRAIN), forged == ALL ? 0 : TRAIN - 1);
        for (size_t i = 0; i < TRAIN; i++) {
            const bool good = i != forged && forged != ALL;
            assert_int_equal(packets[i].ok, good);
            if (good)
                assert_memory_equal(packets[i].destination, plain + i * LENGTH, LENGTH);
            else
                assert_true(sodium_is_zero(packets[i].destination, LENGTH));
        }
    }
    free(plain);
    free(sealed);
}

static void every_backend_rejects_a_forged_packet_within_a_train(void **state)
{
    (void)state;
    on_every_backend(rejects_in_trains);
}

static void rejects_wrong_context(struct aead_worker *worker)
{
    struct aead_key key, other;
    uint8_t plain[100] = {1}, sealed[100 + TAG], opened[100];
    random_key(&key);
    other = key;
    other.bytes[31] ^= 0x80;
    struct aead_packet packet = {sealed, plain, 0x0123456789abcdef, 100, false};
    aead_seal_n(worker, &key, &packet, 1);
    packet.source = sealed;
    packet.destination = opened;

    assert_int_equal(aead_open_n(worker, &other, &packet, 1), 0);
    for (int bit = 0; bit < 64; bit++) { /* the whole counter is in the nonce */
        packet.counter ^= 1ull << bit;
        packet.ok = true;
        assert_int_equal(aead_open_n(worker, &key, &packet, 1), 0);
        assert_false(packet.ok);
        packet.counter ^= 1ull << bit;
    }
    packet.length = 99; /* truncated: the tag is a byte off */
    assert_int_equal(aead_open_n(worker, &key, &packet, 1), 0);
    packet.length = 100;
    assert_int_equal(aead_open_n(worker, &key, &packet, 1), 1);
    assert_memory_equal(opened, plain, 100);
}

static void every_backend_rejects_a_wrong_key_counter_or_length(void **state)
{
    (void)state;
    on_every_backend(rejects_wrong_context);
}

/* ---- keys, memory ------------------------------------------------------------------------------
 */

/* The key's bytes count, not its address; sealing and opening keep apart; forget changes nothing.
 */
static void follows_the_key(struct aead_worker *worker)
{
    struct aead_worker *oracle = aead_worker_create(&aead_libsodium);
    struct aead_key key, opening;
    uint8_t plain[64] = {7}, expected[64 + TAG], sealed[64 + TAG], theirs[64 + TAG], opened[64];
    for (int round = 0; round < 40; round++) {
        random_key(&key); /* at the same address as the last */
        random_key(&opening);
        for (int twice = 0; twice < 2; twice++) {
            struct aead_packet packet = {expected, plain, (uint64_t)round, 64, false};
            aead_seal_n(oracle, &key, &packet, 1);
            packet.destination = theirs;
            aead_seal_n(oracle, &opening, &packet, 1);

            packet.destination = sealed;
            aead_seal_n(worker, &key, &packet, 1);
            assert_memory_equal(sealed, expected, sizeof(sealed));
            if (round % 3 == 0)
                aead_forget(worker);
            packet.destination = opened;
            packet.source = theirs;
            assert_int_equal(aead_open_n(worker, &opening, &packet, 1), 1);
            assert_memory_equal(opened, plain, 64);
            packet.source = expected;
            assert_int_equal(aead_open_n(worker, &key, &packet, 1), 1);
        }
    }
    aead_forget(worker);
    aead_forget(worker);
    aead_worker_destroy(oracle);
}

static void every_backend_follows_a_change_of_key(void **state)
{
    (void)state;
    on_every_backend(follows_the_key);
}

/* Packets that end at an unmapped page, and ones that begin after one. */
static void stays_inside(struct aead_worker *worker)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *map = mmap(NULL, 6 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    uint8_t *first = map + page, *second = map + 4 * page; /* one page each */
    assert_int_equal(mprotect(first, page, PROT_READ | PROT_WRITE), 0);
    assert_int_equal(mprotect(second, page, PROT_READ | PROT_WRITE), 0);
    struct aead_key key;
    random_key(&key);

    for (uint32_t length = 0; length <= 1500; length += length < 300 ? 1 : 97)
        for (int at_end = 0; at_end < 2; at_end++) {
            uint8_t *sealed = at_end ? second + page - length - TAG : second;
            uint8_t *plain = at_end ? first + page - length : first;
            memset(plain, 0x33, length);
            struct aead_packet packet = {sealed, plain, length, length, false};
            aead_seal_n(worker, &key, &packet, 1);
            memset(plain, 0, length);
            packet.source = sealed;
            packet.destination = plain;
            assert_int_equal(aead_open_n(worker, &key, &packet, 1), 1);
            for (uint32_t i = 0; i < length; i++)
                assert_int_equal(plain[i], 0x33);
            packet.destination = sealed; /* in place */
            assert_int_equal(aead_open_n(worker, &key, &packet, 1), 1);
        }
    assert_int_equal(munmap(map, 6 * page), 0);
}

static void no_backend_reads_or_writes_outside_its_packets(void **state)
{
    (void)state;
    on_every_backend(stays_inside);
}

/* How often `masked` (xor 0x5a) occurs in the process's writable memory. The mask keeps this
 * search's own copy out of the count. */
static int count_in_memory(const uint8_t masked[AEAD_KEY_LENGTH])
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], permissions[8];
    unsigned long start, end;
    int found = 0;
    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%lx-%lx %7s", &start, &end, permissions) != 3 ||
            strncmp(permissions, "rw", 2) != 0 || strstr(line, "[v"))
            continue;
        for (const uint8_t *at = (const uint8_t *)start; at + AEAD_KEY_LENGTH <= (uint8_t *)end;
             at++) {
            size_t i = 0;
            while (i < AEAD_KEY_LENGTH && at[i] == (uint8_t)(masked[i] ^ 0x5a))
                i++;
            found += i == AEAD_KEY_LENGTH;
        }
    }
    fclose(maps);
    return found;
}

static void forgets_the_key(struct aead_worker *worker)
{
    struct aead_key key;
    uint8_t masked[AEAD_KEY_LENGTH], buffer[100 + TAG] = {0};
    struct aead_packet packet = {buffer, buffer, 1, 100, false};
    random_key(&key);
    for (size_t i = 0; i < sizeof(masked); i++)
        masked[i] = key.bytes[i] ^ 0x5a;

    aead_seal_n(worker, &key, &packet, 1);
    assert_int_equal(aead_open_n(worker, &key, &packet, 1), 1);
    /* The search finds what is there: at least the key itself. */
    assert_true(count_in_memory(masked) >= (worker->backend == &aead_libcrypto ? 2 : 1));
    sodium_memzero(&key, sizeof(key));
    aead_forget(worker);
    assert_int_equal(count_in_memory(masked), 0);
}

static void no_backend_holds_a_key_after_forget(void **state)
{
    (void)state;
    if (SANITIZED) /* shadow memory and quarantine: terabytes to search, and copies of their own */
        skip();
    on_every_backend(forgets_the_key);
}

/* ---- the self-test and the choice ---------------------------------------------------------------
 */

enum fault {
    NO_FAULT,
    WRONG_BYTE,     /* in the ciphertext of a long packet */
    WRONG_TAG,      /* of the last packet of a batch */
    ACCEPTS_FORGED, /* reports ok without checking */
    LEAVES_FORGED,  /* rejects, but leaves the output */
    COUNTS_WRONG,
};

static enum fault fault;

static void faulty_seal(struct aead_worker *worker, const struct aead_key *key,
                        struct aead_packet *packets, size_t count)
{
    aead_libsodium.seal_n(worker, key, packets, count);
    for (size_t i = 0; i < count; i++)
        if (fault == WRONG_BYTE && packets[i].length > 1000)
            packets[i].destination[1000] ^= 1;
    if (fault == WRONG_TAG && count > 1)
        packets[count - 1].destination[packets[count - 1].length + 15] ^= 1;
}

static size_t faulty_open(struct aead_worker *worker, const struct aead_key *key,
                          struct aead_packet *packets, size_t count)
{
    size_t opened = aead_libsodium.open_n(worker, key, packets, count);
    for (size_t i = 0; i < count; i++) {
        if (!packets[i].ok && fault == LEAVES_FORGED && packets[i].length)
            packets[i].destination[packets[i].length - 1] = 1;
        if (!packets[i].ok && fault == ACCEPTS_FORGED)
            packets[i].ok = ++opened;
    }
    return fault == COUNTS_WRONG ? count : opened;
}

static struct aead_worker faulty_worker;

static struct aead_worker *faulty_create(void)
{
    return &faulty_worker;
}

static void faulty_destroy(struct aead_worker *worker)
{
    (void)worker;
}

static const struct aead_backend faulty = {
    .name = "faulty",
    .create = faulty_create,
    .destroy = faulty_destroy,
    .seal_n = faulty_seal,
    .open_n = faulty_open,
};

static struct aead_worker *no_worker(void)
{
    return NULL;
}

static void the_self_test_finds_each_fault(void **state)
{
    struct aead_backend backend = faulty;
    (void)state;
    faulty_worker.backend = &backend;
    for (fault = WRONG_BYTE; fault <= COUNTS_WRONG; fault++)
        for (int i = 0; i < 3; i++)
            assert_false(aead_self_test(&backend));
    fault = NO_FAULT;
    assert_true(aead_self_test(&backend));
    backend.create = no_worker;
    assert_false(aead_self_test(&backend));
}

static void passes_the_self_test(struct aead_worker *worker)
{
    for (int i = 0; i < 10; i++)
        assert_true(aead_self_test(worker->backend));
}

static void every_backend_passes_the_self_test(void **state)
{
    (void)state;
    on_every_backend(passes_the_self_test);
}

static void is_chosen_by_name(struct aead_worker *worker)
{
    assert_ptr_equal(aead_choose(worker->backend->name), worker->backend);
}

static bool is_listed(const struct aead_backend *backend)
{
    for (size_t i = 0; aead_backends[i]; i++)
        if (aead_backends[i] == backend)
            return true;
    return false;
}

static void a_choice_is_by_name_or_among_those_that_run(void **state)
{
    (void)state;
    on_every_backend(is_chosen_by_name);
    assert_null(aead_choose("no such back-end"));
    assert_null(aead_choose("libsodiu"));
    assert_true(is_listed(aead_choose(NULL)));
    assert_true(is_listed(aead_choose("")));
}

/* ---- threads -----------------------------------------------------------------------------------
 */

struct thread_work {
    const struct aead_backend *backend;
    size_t wrong;
};

static void *work(void *argument)
{
    struct thread_work *thread = argument;
    struct aead_worker *worker = aead_worker_create(thread->backend);
    struct aead_worker *oracle = aead_worker_create(&aead_libsodium);
    uint8_t plain[40][200], sealed[40][200 + TAG], expected[40][200 + TAG];
    struct aead_packet packets[40];
    struct aead_key key;

    for (int round = 0; round < 100; round++) {
        random_key(&key);
        randombytes_buf(plain, sizeof(plain));
        for (uint32_t i = 0; i < 40; i++)
            packets[i] = (struct aead_packet){expected[i], plain[i], i, 5 * i, false};
        aead_seal_n(oracle, &key, packets, 40);
        for (uint32_t i = 0; i < 40; i++)
            packets[i].destination = sealed[i];
        aead_seal_n(worker, &key, packets, 40);
        for (uint32_t i = 0; i < 40; i++) {
            thread->wrong += memcmp(sealed[i], expected[i], 5 * i + TAG) != 0;
            packets[i].source = packets[i].destination;
        }
        thread->wrong += aead_open_n(worker, &key, packets, 40) != 40;
    }
    aead_worker_destroy(oracle);
    aead_worker_destroy(worker);
    thread->wrong += !aead_choose(NULL);
    return NULL;
}

static void works_in_threads(struct aead_worker *worker)
{
    pthread_t threads[3];
    struct thread_work results[3];
    for (int i = 0; i < 3; i++) {
        results[i] = (struct thread_work){worker->backend, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &results[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(results[i].wrong, 0);
    }
}

static void workers_and_choices_are_independent_between_threads(void **state)
{
    (void)state;
    on_every_backend(works_in_threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oracle_gives_rfc8439_2_8_2_and_a_5),
        cmocka_unit_test(every_backend_gives_rfc8439_a_5),
        cmocka_unit_test(every_backend_rejects_a_change_of_any_byte_and_zeroes_the_output),
        cmocka_unit_test(every_backend_rejects_a_forged_packet_within_a_train),
        cmocka_unit_test(every_backend_rejects_a_wrong_key_counter_or_length),
        cmocka_unit_test(every_backend_follows_a_change_of_key),
        cmocka_unit_test(no_backend_reads_or_writes_outside_its_packets),
        cmocka_unit_test(no_backend_holds_a_key_after_forget),
        cmocka_unit_test(the_self_test_finds_each_fault),
        cmocka_unit_test(every_backend_passes_the_self_test),
        cmocka_unit_test(a_choice_is_by_name_or_among_those_that_run),
        cmocka_unit_test(workers_and_choices_are_independent_between_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
