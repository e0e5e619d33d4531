#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/demo removes everything it made: at its end, after Ctrl-C in the midst of it, after SIGTERM.
# (It makes the network itself; this test only looks on.)
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

set -m # jobs get a process group each and may be interrupted, as from a terminal
DEMO=$ROOT/tools/demo
export NEXUSGUARD_ENGINE=$ENGINE

# What the demonstration with process id $1 has: every name it makes carries that number.
traces() {
    ip netns list | grep -w "ngd$1[ab]" || true
    ip -o link | grep -w "ngd$1[abv]" || true
    find "$SOCKETS" -name "ngd$1*" 2>/dev/null || true
    pgrep -af "ngd$1[ab]" || true
    pgrep -a -g "$1" || true
}
demo_start() {
    NEXUSGUARD_DEMO_SECONDS=$1 "$DEMO" >"$WORK/demo.log" 2>&1 &
    DEMO_PID=$!
    BACKGROUND+=("$DEMO_PID")
}
demo_end() {
    DEMO_STATUS=0
    wait "$DEMO_PID" || DEMO_STATUS=$?
    sed 's/^/  | /' "$WORK/demo.log"
}
reached() { grep -q "$1" "$WORK/demo.log"; }
has_traffic() { pgrep -f "iperf3 .*-c $1" -g "$DEMO_PID"; }

step "to the end"
demo_start 1
demo_end
expect_equal "exit code" "$DEMO_STATUS" 0
expect_equal "the last line begins with" "$(tail -n 1 "$WORK/demo.log" | cut -c1-3)" "OK:"
expect_equal "left behind" "$(traces "$DEMO_PID")" ""

# interrupted DESCRIPTION SIGNAL TARGET-PREFIX ADDRESS EXIT-CODE
interrupted() {
    step "$1"
    demo_start 60
    wait_until 60 "the tunnel's traffic" has_traffic "$4"
    expect_at_least "traces while it runs" "$(traces "$DEMO_PID" | wc -l)" 4
    run kill -s "$2" -- "$3$DEMO_PID"
    demo_end
    expect_equal "exit code" "$DEMO_STATUS" "$5"
    expect "it says so" reached "FAILED"
    expect_equal "left behind" "$(traces "$DEMO_PID")" ""
}
interrupted "Ctrl-C while the cable is measured (SIGINT to the whole group)" INT - 192.0.2.2 130
interrupted "SIGINT to the script alone" INT "" 192.0.2.2 130
interrupted "SIGTERM to the script alone" TERM "" 192.0.2.2 143

step "Ctrl-C while the tunnel is measured"
demo_start 3
wait_until 60 "the tunnel's traffic" has_traffic 10.99.0.2
kill -s INT -- "-$DEMO_PID"
demo_end
expect_equal "exit code" "$DEMO_STATUS" 130
expect_equal "left behind" "$(traces "$DEMO_PID")" ""

step "an engine that does not start"
printf '#!/bin/sh\nexit 1\n' >"$WORK/broken"
chmod +x "$WORK/broken"
NEXUSGUARD_ENGINE=$WORK/broken demo_start 1
demo_end
expect_equal "exit code" "$DEMO_STATUS" 1
expect "it says so" reached "FAILED"
expect_equal "left behind" "$(traces "$DEMO_PID")" ""
