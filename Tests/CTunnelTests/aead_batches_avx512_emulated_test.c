/* SPDX-License-Identifier: Apache-2.0 */
/* aead_batches_test.c over the AVX-512 back-end, emulated, as in aead_avx512_emulated_test.c. */
#define AVX512_EMULATED
#include "crypto/aead_avx512.c"

#define ONLY_BACKEND aead_avx512
#include "aead_batches_test.c"
