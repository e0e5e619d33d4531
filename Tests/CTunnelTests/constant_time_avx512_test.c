/* SPDX-License-Identifier: Apache-2.0 */
/* The AVX-512 back-end, as constant_time.h describes; emulated, as valgrind does not know these
 * instructions. What remains to be said of them: their time does not depend on what they compute.
 */
#define AVX512_EMULATED
#define BACKEND        aead_avx512
#define BACKEND_SOURCE "crypto/aead_avx512.c"
#include "constant_time.h"
