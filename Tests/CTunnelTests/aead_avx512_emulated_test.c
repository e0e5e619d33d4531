/* SPDX-License-Identifier: Apache-2.0 */
/* aead_test.c over the AVX-512 back-end, emulated: it says what it computes on any machine. */
#define AVX512_EMULATED
#include "crypto/aead_avx512.c"

#define ONLY_BACKEND aead_avx512
#include "aead_test.c"
