/* SPDX-License-Identifier: Apache-2.0 */
/* The AVX2 back-end, as constant_time.h describes. */
#define BACKEND        aead_avx2
#define BACKEND_SOURCE "crypto/aead_avx2.c"
#include "constant_time.h"
