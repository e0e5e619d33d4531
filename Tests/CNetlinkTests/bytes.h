/* SPDX-License-Identifier: Apache-2.0 */
/* Whole messages as bytes: written as hexadecimal digits, blanks between them for the reader. */
#ifndef CNETLINK_BYTES_H
#define CNETLINK_BYTES_H

#include "cmocka_includes.h"
#include <libmnl/libmnl.h>
#include <stdio.h>
#include <string.h>

#define BYTES_CAPACITY 16384

struct bytes {
    size_t length;
    _Alignas(struct nlmsghdr) unsigned char data[BYTES_CAPACITY];
};

static inline struct bytes bytes_from_hex(const char *text)
{
    struct bytes bytes = {0};
    unsigned value;
    int used;

    for (; *text != '\0'; text += used) {
        used = 1;
        if (*text == ' ')
            continue;
        assert_int_equal(sscanf(text, "%2x%n", &value, &used), 1);
        assert_int_equal(used, 2);
        assert_true(bytes.length < BYTES_CAPACITY);
        bytes.data[bytes.length++] = (unsigned char)value;
    }
    return bytes;
}

/* `expected` has the whole message: length, type, then 00 for what the sender fills in. */
static inline void assert_message(const struct nlmsghdr *message, const char *expected)
{
    struct bytes bytes = bytes_from_hex(expected);

    assert_int_equal(message->nlmsg_len, bytes.length);
    assert_memory_equal(message, bytes.data, bytes.length);
}

#endif
