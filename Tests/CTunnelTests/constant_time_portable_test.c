/* SPDX-License-Identifier: Apache-2.0 */
/* The portable back-end, as constant_time.h describes. */
#define BACKEND        aead_portable
#define BACKEND_SOURCE "crypto/aead_portable.c"
#include "constant_time.h"
