#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Who moves the packets when nobody says: the kernel where it has WireGuard, else the engine, and one
# line says why (C84). What was asked for by name is never replaced.
#
#   netns $A:  $WA
#
# It unloads the kernel's module: not for a machine in use.
#
# shellcheck source-path=SCRIPTDIR/../netns
PEER=kernel
source "$(dirname "$0")/../netns/lib.sh"

[[ -n ${KERNEL_VM:-} ]] || skip "this belongs into tools/kernel-vm"
needs_command
netns_create "$A"
keys_create a
FILE=$WORK/$WA.conf
(umask 077 && printf '[Interface]\nPrivateKey = %s\nAddress = 10.77.0.1/24\n' \
    "$(cat "$WORK/a.key")" >"$FILE")
kind() { in_ns "$A" ip -j -d link show "$WA" | json /dev/stdin 'd[0]["linkinfo"]["info_kind"]'; }

step "a kernel that has WireGuard"
expect_equal "backend" "$(nexusguard backend)" "kernel: available, taken by auto
userspace: available"
ask up "$FILE"
expect_equal "kind of the link" "$(kind)" wireguard
expect "not a word about it" is_gone grep -q "using nexusguard-engine" "$WORK/ask.log"
ask down "$WA"
ask up --backend userspace "$FILE"
expect_equal "kind of the link, asked for the engine" "$(kind)" tun
ask down "$WA"

step "its module is not loaded: it is, by asking"
rmmod wireguard
ask up "$FILE"
expect_equal "kind of the link" "$(kind)" wireguard
ask down "$WA"

step "a kernel that has none (C84)"
rmmod wireguard
modprobe=$(cat /proc/sys/kernel/modprobe)
echo /bin/false >/proc/sys/kernel/modprobe
expect_equal "backend" "$(nexusguard backend | head -n 1)" \
    "kernel: unavailable: this kernel has no WireGuard (it is in Linux 5.6 and later as the module wireguard)"
ask up "$FILE"
expect_equal "kind of the link" "$(kind)" tun
expect_equal "lines that say why" "$(grep -c "using nexusguard-engine: this kernel has no WireGuard" "$WORK/ask.log")" 1
ask down "$WA"
status=0
nexusguard up --backend kernel "$FILE" >"$WORK/out" 2>&1 || status=$?
expect_equal "exit code of --backend kernel" "$status" 1
expect "it says why" grep -q "this kernel has no WireGuard" "$WORK/out"
expect "there is no link" is_gone in_ns "$A" ip link show "$WA"
echo "$modprobe" >/proc/sys/kernel/modprobe
ask up "$FILE"
expect_equal "kind of the link, with the module back" "$(kind)" wireguard
ask down "$WA"
