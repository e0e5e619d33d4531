/* SPDX-License-Identifier: Apache-2.0 */
/* What the module map cannot say itself: where the compiler's search path has the header. */
#include <openssl/evp.h>
