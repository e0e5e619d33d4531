// SPDX-License-Identifier: Apache-2.0
#pragma once

/*
 * A program that links this erases what it gives back to the heap: free(3) and realloc(3) are
 * replaced.
 *
 * Texts of Swift, and what JSON, HTTP and TLS libraries keep of what they read and wrote, cannot be
 * erased by whoever used them; without this, tokens and keys that passed through stay in free
 * memory until something else happens to be put there. Secrets that the program holds on purpose
 * are erased by their types as well.
 */

#include <stdbool.h>

/* Whether it does: not in a program with a sanitizer, which has a heap of its own. */
bool erasing_heap_is_used(void);
