/* SPDX-License-Identifier: Apache-2.0 */
/* What the module map cannot say itself: where the compiler's search path has the headers. */
#include <systemd/sd-bus.h>
#include <systemd/sd-id128.h>
#include <systemd/sd-journal.h>
