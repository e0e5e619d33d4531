/* SPDX-License-Identifier: Apache-2.0 */
/*
 * That a back-end takes no branch and no address from key and plaintext, as memcheck.h describes.
 *
 * A test defines BACKEND and BACKEND_SOURCE before it includes this file. The source is included
 * here, so that it makes its one public result known: whether a tag was right.
 */
#ifndef CONSTANT_TIME_H
#define CONSTANT_TIME_H

#include "memcheck.h"

#include BACKEND_SOURCE

#include <sodium.h>

#if HAVE_MEMCHECK

#define PACKETS 20
#define LARGEST 1600
#define TAG     AEAD_TAG_LENGTH

/* Whole groups, parts of them, tails of every kind and nothing. */
static const uint32_t lengths[PACKETS] = {1424, 0,   1,   15,  16,  17,  63,   64,  65,   448,
                                          511,  512, 513, 100, 200, 300, 1600, 333, 1279, 48};

struct secrets {
    struct aead_key key;
    uint8_t plain[PACKETS][LARGEST], sealed[PACKETS][LARGEST + TAG], opened[PACKETS][LARGEST];
    struct aead_packet packets[PACKETS];
};

static void reveal(void *bytes, size_t length)
{
    (void)VALGRIND_MAKE_MEM_DEFINED(bytes, length);
}

/* How many of the bytes are defined in any bit. */
static size_t count_known(uint8_t *bytes, size_t length)
{
    uint8_t unknown[LARGEST + TAG];
    size_t known = 0;
    assert_int_equal(VALGRIND_GET_VBITS(bytes, unknown, length), 1);
    for (size_t i = 0; i < length; i++)
        known += unknown[i] != 0xff;
    return known;
}

static void seal_hidden(struct aead_worker *worker, struct secrets *secrets, size_t first,
                        size_t count)
{
    for (size_t i = 0; i < PACKETS; i++)
        secrets->packets[i] = (struct aead_packet){secrets->sealed[i], secrets->plain[i],
                                                   0x100000000 + i, lengths[i], false};
    hide(&secrets->key, sizeof(secrets->key));
    hide(secrets->plain, sizeof(secrets->plain));
    aead_seal_n(worker, &secrets->key, secrets->packets + first, count);
}

static struct secrets *create_secrets(void)
{
    struct secrets *secrets = calloc(1, sizeof(*secrets));
    assert_non_null(secrets);
    randombytes_buf(secrets->key.bytes, sizeof(secrets->key.bytes));
    randombytes_buf(secrets->plain, sizeof(secrets->plain));
    return secrets;
}

static void sealing_takes_no_branch_or_address_from_key_or_plaintext(void **state)
{
    struct aead_worker *worker = aead_worker_create(&BACKEND);
    (void)state;
    if (!worker)
        skip();
    struct secrets *secrets = create_secrets();
    const unsigned before_all = VALGRIND_COUNT_ERRORS;

    seal_hidden(worker, secrets, 0, PACKETS);
    /* The marks went all the way, so whatever was decided on the way was not decided by a secret
     * that memcheck had lost sight of. */
    for (size_t i = 0; i < PACKETS; i++)
        assert_int_equal(count_known(secrets->sealed[i], lengths[i] + TAG), 0);
    for (size_t i = 0; i < PACKETS; i++)
        seal_hidden(worker, secrets, i, 1);
    aead_forget(worker);
    assert_int_equal(VALGRIND_COUNT_ERRORS, before_all);
    aead_worker_destroy(worker);
    free(secrets);
}

static void opening_takes_none_from_key_or_plaintext_but_whether_the_tag_is_right(void **state)
{
    struct aead_worker *worker = aead_worker_create(&BACKEND);
    (void)state;
    if (!worker)
        skip();
    struct secrets *secrets = create_secrets();
    seal_hidden(worker, secrets, 0, PACKETS);
    reveal(secrets->sealed, sizeof(secrets->sealed)); /* it has been on the network */
    const unsigned before_all = VALGRIND_COUNT_ERRORS;

    for (size_t i = 0; i < PACKETS; i++) {
        secrets->packets[i].source = secrets->sealed[i];
        secrets->packets[i].destination = secrets->opened[i];
        if (i % 4 == 3)
            secrets->sealed[i][lengths[i] / 2] ^= 1;
    }
    assert_int_equal(aead_open_n(worker, &secrets->key, secrets->packets, PACKETS),
                     PACKETS - PACKETS / 4);
    for (size_t i = 0; i < PACKETS; i++) {
        assert_int_equal(secrets->packets[i].ok, i % 4 != 3);
        if (secrets->packets[i].ok)
            assert_int_equal(count_known(secrets->opened[i], lengths[i]), 0);
    }
    for (size_t i = 0; i < PACKETS; i++)
        assert_int_equal(aead_open_n(worker, &secrets->key, secrets->packets + i, 1), i % 4 != 3);
    aead_forget(worker);
    assert_int_equal(VALGRIND_COUNT_ERRORS, before_all);

    reveal(secrets->opened, sizeof(secrets->opened));
    reveal(secrets->plain, sizeof(secrets->plain));
    for (size_t i = 0; i < PACKETS; i++)
        if (secrets->packets[i].ok)
            assert_memory_equal(secrets->opened[i], secrets->plain[i], lengths[i]);
    aead_worker_destroy(worker);
    free(secrets);
}

int main(int argc, char **argv)
{
    (void)argc;
    run_under_valgrind(argv[0]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sealing_takes_no_branch_or_address_from_key_or_plaintext),
        cmocka_unit_test(opening_takes_none_from_key_or_plaintext_but_whether_the_tag_is_right),
        cmocka_unit_test(memcheck_counts_a_branch_on_a_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif

#endif
