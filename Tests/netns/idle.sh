#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A tunnel that carries nothing costs nothing: no thread of either engine wakes while no timer is
# due. With a persistent keepalive it wakes for that and for nothing else. Takes 41 s of real time.
#
#   netns A: ENGINE $WA [persistent keepalive 2 s]  ═══  netns B: ENGINE $WB
#
# It has directories for sockets of its own: an engine watches its own socket's directory, and would
# wake for those of others.
[[ -n ${IDLE_RUN:-} || $(id -u) -ne 0 ]] || exec env IDLE_RUN=1 unshare --mount --propagation private "$0"
if [[ -n ${IDLE_RUN:-} ]]; then
    mkdir -p /run/wireguard /run/nexusguard /run/netns
    mount -t tmpfs tmpfs /run/wireguard
    mount -t tmpfs tmpfs /run/nexusguard
    mount -t tmpfs tmpfs /run/netns # so that others do not see names that lead nowhere for them
fi
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

WINDOW=8    # seconds that are watched
INTERVAL=2  # of the persistent keepalive
SETTLED=17  # seconds after the last packet: passive keepalive at 10 s, new handshake at 15.334 s;
            # one more, since $SECONDS counts whole ones and 16 of them can be 15.01 s
seconds_have_passed() { ((SECONDS >= $1)); }
observe() { python3 "$HERE/observe.py" "$@"; }
received() { observe state "$1" 'sum(w["rx"]["packets"] for w in d["workers"])'; }
watch() {
    observe watch $WINDOW "$WA=${ENGINE_PID[$WA]}" "$WB=${ENGINE_PID[$WB]}" >"$WORK/watched" ||
        fail "the engines could not be watched"
}
# of INTERFACE EXPRESSION: EXPRESSION is Python about `e`, what was seen of that engine.
of() { json "$WORK/watched" "[$2 for e in [d['$1']]][0]"; }
# Threads of INTERFACE that woke, but for the one named.
others_awake() { of "$1" "' '.join(n for n, c in e['threads'].items() if c and n != '$2')"; }
# expect_due DESCRIPTION INTERFACE COUNT SECONDS: one per INTERVAL, give or take one.
expect_due() {
    say "  $1: $(of "$2" "'%d in %.1f s' % ($3, $4)")"
    expect_equal "$1: one per $INTERVAL s, ± 1" "$(of "$2" "abs($3 - $4 / $INTERVAL) < 1.5")" True
}

topology_pair
for end in "$A" "$B"; do
    # No router solicitations: the engines would have to read them.
    in_ns "$end" sysctl -qw net.ipv6.conf.default.router_solicitations=0
done
tunnel_pair "$ENGINE" "$ENGINE"
expect_ping "ping" "$A" 10.77.0.2
wait_until 30 "the timers of the last packet" seconds_have_passed $((SECONDS + SETTLED))

step "idle for $WINDOW s"
watch
for interface in "$WA" "$WB"; do
    expect_at_least "threads watched" "$(of "$interface" "len(e['threads'])")" 5
    expect_equal "threads that woke" "$(others_awake "$interface" nobody)" ""
    expect_equal "wake-ups of the timer thread" "$(of "$interface" "e['wakeups']")" 0
    expect_equal "packets received" "$(of "$interface" "e['received']")" 0
done

step "a keepalive every $INTERVAL s, for $WINDOW s"
before=$(received "$WB")
in_ns "$A" wg set "$WA" peer "$(key_of b)" persistent-keepalive $INTERVAL
a_keepalive_came() { (($(received "$WB") > before)); }
wait_until 10 "the first keepalive" a_keepalive_came
watch
expect_due "keepalives received" "$WB" "e['received']" "e['told_seconds']"
expect_due "wake-ups of the sender's timer thread" "$WA" "e['wakeups']" "e['told_seconds']"
expect_due "the same by the kernel's count" "$WA" "e['threads']['control']" "e['seconds']"
expect_due "wake-ups of the receiver's data thread" "$WB" "e['threads']['worker-0-a']" "e['seconds']"
expect_equal "other threads of the sender that woke" "$(others_awake "$WA" control)" ""
expect_equal "other threads of the receiver that woke" "$(others_awake "$WB" worker-0-a)" ""
expect_equal "wake-ups of the receiver's timer thread" "$(of "$WB" "e['wakeups']")" 0
