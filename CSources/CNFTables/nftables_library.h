/* SPDX-License-Identifier: Apache-2.0 */
/* What the module map cannot say itself: where the compiler's search path has the headers. */
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <nftables/libnftables.h>
