#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Data threads have short slices of processor time for packets that come alone, and those of everyone
# while they move bulk.
#
#   netns A: ENGINE $WA, iperf3 -c  ═══  netns B: ENGINE $WB, iperf3 -s
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

topology_pair
tunnel_pair "$ENGINE" "$ENGINE"
expect_ping "ping" "$A" 10.77.0.2

# slices INTERFACE: of its data threads, without repetition, in ns.
slices() {
    python3 "$HERE/observe.py" slices "${ENGINE_PID[$1]}" | xargs -n 1 | sed -n 's/^worker.*=//p' | sort -u | xargs
}
[[ $(slices "$WA") != 0 ]] || skip "this kernel has no slices for threads (Linux 6.12 has)"
are_short() {
    in_ns "$A" ping -q -c 1 -W 1 10.77.0.2 # a thread looks at its slices when it has worked
    [[ $(slices "$WA") == 100000 ]]
}
moves_bulk() { [[ $(slices "$WA") != 100000 ]]; }

step "packets that come alone"
expect_equal "slices" "$(slices "$WA")" 100000

step "one TCP stream"
background "$B" iperf3 -s -1 -p 5201
wait_until 10 "iperf3 to listen" listens "$B" t 5201
background "$A" iperf3 -c 10.77.0.2 -p 5201 -t 60
stream=$BACKGROUND_PID
wait_until 20 "the slices of everyone" moves_bulk
say "  slices: $(slices "$WA")"
kill "$stream"

step "packets that come alone, again"
wait_until 20 "short slices" are_short
expect_equal "slices" "$(slices "$WA")" 100000
