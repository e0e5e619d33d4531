#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What only a kernel with WireGuard can show; run by `tools/test kernel` as
#
#   tools/kernel-vm Tests/kernel/all.sh [NAME…]     only the parts whose name contains a NAME
#
# in one emulated machine: the engine and the kernel as each other's peer in both roles, and the
# command and its keeper with the kernel as their back-end. Tests/kernel/units.sh is a machine of its
# own.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
[[ -n ${KERNEL_VM:-} ]] || {
    printf 'SKIP: this belongs into tools/kernel-vm\n'
    exit 77
}
names=("$@")

failed=() count=0
# run NAME WHAT COMMAND…
run() {
    local name=$1 what=$2 status=0 begun=$SECONDS asked=no word
    shift 2
    [[ ${#names[@]} -gt 0 ]] || asked=yes
    for word in "${names[@]}"; do
        [[ $name != *"$word"* ]] || asked=yes
    done
    [[ $asked == yes ]] || return 0
    printf '\n######## %s: %s\n' "$name" "$what"
    "$@" || status=$?
    count=$((count + 1))
    [[ $status -eq 0 ]] || failed+=("$name (exit code $status)")
    printf '######## %s: exit code %d after %d s\n' "$name" "$status" $((SECONDS - begun))
}
run auto "who is chosen, with and without the module" Tests/kernel/auto.sh
run backends "random tunnels, long lists, 10,000 peers, adoption" \
    env PROGRAMS=kernel PAIRS="${PAIRS:-300}" Tests/netns/backends.sh
run many "what peers cost" Tests/kernel/many.sh
run cli "the command on the kernel's WireGuard" env BACKEND=kernel PEER=kernel Tests/netns/cli.sh
run show "show and set beside wg" env ENGINE=kernel PEER=kernel Tests/netns/show.sh
# Without a word about it a keeper takes the kernel here.
run keeper "the keeper heals and undoes" env PEER=kernel ROUNDS="${ROUNDS:-3}" Tests/netns/keeper.sh
run gateway "forwards through a tunnel" Tests/netns/gateway.sh
run interop "the engine with the kernel as its peer" env PEER=kernel MEGABYTES="${MEGABYTES:-1}" Tests/netns/interop.sh
run switch "a running tunnel changes its back-end" Tests/kernel/switch.sh
run live "the same under more traffic, and killed keepers" Tests/kernel/backend_switch.sh
run leak "what leaves beside a full tunnel that is made anew" \
    env PEER=kernel ROUNDS=2 Tests/netns/renew_leak.sh
run roaming "roaming, with the kernel as the peer" env PEER=kernel Tests/netns/roaming.sh

if [[ ${#failed[@]} -gt 0 ]]; then
    printf 'FAIL: %s\n' "${failed[@]}"
    exit 1
fi
[[ $count -gt 0 ]] || {
    printf 'FAIL: nothing is called like that\n'
    exit 1
}
printf 'PASS: %d parts\n' "$count"
