/* SPDX-License-Identifier: Apache-2.0 */
/* read(2) and write(2) that finish what they began. */
#ifndef CHOSTPROCESS_IO_H
#define CHOSTPROCESS_IO_H

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

static inline ssize_t read_retry(int fd, void *buffer, size_t size)
{
    ssize_t length;
    do
        length = read(fd, buffer, size);
    while (length < 0 && errno == EINTR);
    return length;
}

/* 0 or a negative errno. For descriptors that block. */
static inline int write_all(int fd, const void *data, size_t size)
{
    const char *next = data;
    while (size > 0) {
        ssize_t length = write(fd, next, size);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return -errno;
        next += length;
        size -= (size_t)length;
    }
    return 0;
}

#endif
