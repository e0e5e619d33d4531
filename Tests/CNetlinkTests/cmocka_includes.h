/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka wants these four before itself. */
#ifndef CNETLINK_CMOCKA_INCLUDES_H
#define CNETLINK_CMOCKA_INCLUDES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
