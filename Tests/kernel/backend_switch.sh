#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A running tunnel moves from one back-end to the other and back, under traffic; run by
#
#   tools/kernel-vm Tests/kernel/backend_switch.sh
#
# Tests/netns/keeper_live.sh does it: what is lost is printed, and what must stay is compared. It begins
# with the kernel where the kernel has WireGuard.
set -euo pipefail
cd "$(dirname "$0")/../.."
[[ -n ${KERNEL_VM:-} ]] || {
    printf 'SKIP: this belongs into tools/kernel-vm\n'
    exit 77
}
PEER=kernel BACKENDS="userspace kernel" ROUNDS=2 exec Tests/netns/keeper_live.sh
