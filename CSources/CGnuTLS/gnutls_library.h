/* SPDX-License-Identifier: Apache-2.0 */
/* What the module map cannot say itself: where the compiler's search path has the headers. */
#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
