#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What HostNetwork's Netlink does to a network (C37, C41, C42): the tests of
# Tests/HostNetworkTests/NetlinkNamespaceTests.swift in a namespace of their own, then ip(8) looks
# whether anything of others' differs from before.
#
#   netns $A:  tnl0 (TUN, stands for the tunnel's link)    out0 192.0.2.1, 2001:db8::1 ═══ out1
#
# shellcheck source-path=SCRIPTDIR
ENGINE=true PEER=true # neither is needed
source "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR/../../tools
source "$ROOT/tools/lib.sh"

use_swift
# The program itself: `swift test` as root would leave files of root's in .build.
TESTS=$ROOT/.build/swift-tests/debug/NexusGuardPackageTests.xctest
[[ -x $TESTS ]] || skip "no tests at $TESTS (tools/test build/tests)"

step "topology"
netns_create "$A"
in_ns "$A" ip tuntap add tnl0 mode tun
in_ns "$A" ip link set tnl0 mtu 1420
in_ns "$A" ip addr add 10.9.9.9/32 dev tnl0
# Up once: the first time gives a link its queue for good.
in_ns "$A" ip link set tnl0 up
in_ns "$A" ip link set tnl0 down
in_ns "$A" ip link add out0 type veth peer name out1
in_ns "$A" ip link set out0 up
in_ns "$A" ip link set out1 up
in_ns "$A" ip addr add 192.0.2.1/24 dev out0
in_ns "$A" ip addr add 2001:db8::1/64 dev out0 nodad
in_ns "$A" ip route add default via 192.0.2.254
in_ns "$A" ip -6 route add default via 2001:db8::fe

step "others' routes and rules"
run in_ns "$A" ip route add 198.51.101.0/24 via 192.0.2.253 mtu 1412
run in_ns "$A" ip -6 route add 2001:db8:1::/48 via 2001:db8::fd mtu 1412
run in_ns "$A" ip route add blackhole 198.19.0.0/24 proto bgp
run in_ns "$A" ip route add 198.18.0.0/24 table 77 nexthop dev out0 nexthop dev out1
run in_ns "$A" ip rule add priority 32760 table main suppress_prefixlength 0 protocol static
run in_ns "$A" ip -6 rule add priority 800 fwmark 0x5/0xff table 78 protocol ospf

state() {
    in_ns "$A" ip -j -d addr
    in_ns "$A" ip -d rule
    in_ns "$A" ip -d -6 rule
    # Without what counts down.
    in_ns "$A" ip -d -N route show table all | sort
    in_ns "$A" ip -d -N -6 route show table all | sed 's/ expires [0-9]*sec//' | sort
}
settled() { [[ $(in_ns "$A" ip -j addr show dev "$1") != *tentative* ]]; }
wait_until 10 "duplicate address detection of out0" settled out0
wait_until 10 "duplicate address detection of out1" settled out1
state >"$WORK/before"

step "the Swift tests"
in_ns "$A" env NEXUSGUARD_TEST_NAMESPACE="$A" "$TESTS" --testing-library swift-testing \
    --filter NetlinkNamespaceTests >"$WORK/tests.log" 2>&1 || {
    grep -vE 'started\.$' "$WORK/tests.log" | tail -n 60
    fail "the tests in the namespace"
}
grep -E 'Test .* passed|skipped' "$WORK/tests.log" || true
expect "they ran and none was skipped" grep -qE 'Test run with [1-9][0-9]* tests? .*passed' \
    "$WORK/tests.log"
expect_equal "skipped tests" "$(grep -c 'skipped' "$WORK/tests.log" || true)" 0

step "nothing is left and nothing of others' is gone"
state >"$WORK/after"
expect "links, addresses, rules and routes as before" diff "$WORK/before" "$WORK/after"
