/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the back-end under test takes of libsodium, for arm64 only: Debian has the library for
 * another architecture only where that architecture is enabled for the whole system.
 */
#ifndef ARM64_SODIUM_H
#define ARM64_SODIUM_H

#include <string.h>

static inline void sodium_memzero(void *memory, size_t length)
{
    explicit_bzero(memory, length);
}

static inline void sodium_stackzero(size_t length)
{
    explicit_bzero(__builtin_alloca(length), length);
}

#endif
