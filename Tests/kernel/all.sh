#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What only a kernel with WireGuard can show; run by tools/test as
#
#   tools/kernel-vm Tests/kernel/all.sh
#
# in one emulated machine: the engine and the kernel as each other's peer in both roles, and the
# command with the kernel as its back-end beside wg-quick on the same kernel.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
[[ -n ${KERNEL_VM:-} ]] || {
    printf 'SKIP: this belongs into tools/kernel-vm\n'
    exit 77
}

failed=()
# run NAME COMMAND…
run() {
    local name=$1 status=0
    shift
    printf '\n######## %s\n' "$name"
    "$@" || status=$?
    [[ $status -eq 0 ]] || failed+=("$name (exit code $status)")
}
run "the engine with the kernel as its peer" env PEER=kernel Tests/netns/interop.sh
run "roaming, with the kernel as the peer" env PEER=kernel Tests/netns/roaming.sh
run "the command on the kernel's WireGuard" env BACKEND=kernel PEER=kernel Tests/netns/cli.sh

[[ ${#failed[@]} -eq 0 ]] || {
    printf 'FAIL: %s\n' "${failed[@]}"
    exit 1
}
printf 'PASS\n'
