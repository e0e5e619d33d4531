#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Spinning is for packets that come one after another: they find the engine awake. It ends with
# them: an idle link sleeps, whatever was asked for. Takes 26 s of real time.
#
#   netns A: ENGINE $WA (NEXUSGUARD_SPIN)  ═══  netns B: ENGINE $WB (NEXUSGUARD_SPIN)
#
# Runs alone: others that rename sockets wake an engine's main thread for a look.
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

SETTLED=17  # seconds after the last packet: passive keepalive at 10 s, new handshake at 15.334 s;
            # one more, since $SECONDS counts whole ones and 16 of them can be 15.01 s
observe() { python3 "$HERE/observe.py" "$@"; }
of() { observe state "$1" "d['workers'][0]['$2']"; }
seconds_have_passed() { ((SECONDS >= $1)); }

export NEXUSGUARD_SPIN=50000
topology_pair
for end in "$A" "$B"; do
    # No router solicitations: the engines would have to read them.
    in_ns "$end" sysctl -qw net.ipv6.conf.default.router_solicitations=0
done
tunnel_pair "$ENGINE" "$ENGINE"
expect_ping "ping" "$A" 10.77.0.2

step "200 pings, 5 ms apart, 50 ms of spinning after each"
in_ns "$A" ping -q -c 200 -i 0.005 10.77.0.2 >/dev/null
for interface in "$WA" "$WB"; do
    say "  $interface: $(of "$interface" spin_hits) hits, $(of "$interface" spun_ns) ns"
    # A ping is two packets to each engine; a busy machine may hold some up for longer than the wait.
    expect_at_least "$interface: packets that found it awake" "$(of "$interface" spin_hits)" 20
done

step "idle"
wait_until 30 "the timers of the last packet" seconds_have_passed $((SECONDS + SETTLED))
spun_a=$(of "$WA" spun_ns) spun_b=$(of "$WB" spun_ns)
observe watch 5 "$WA=${ENGINE_PID[$WA]}" "$WB=${ENGINE_PID[$WB]}" >"$WORK/watched" ||
    fail "the engines could not be watched"
for interface in "$WA" "$WB"; do
    expect_equal "$interface: threads that woke" \
        "$(json "$WORK/watched" "' '.join(n for n, c in d['$interface']['threads'].items() if c)")" ""
done
expect_equal "$WA: time spent spinning meanwhile" "$(($(of "$WA" spun_ns) - spun_a))" 0
expect_equal "$WB: time spent spinning meanwhile" "$(($(of "$WB" spun_ns) - spun_b))" 0

step "a configuration call alone does not begin a spin"
in_ns "$A" wg show "$WA" >/dev/null
expect_equal "$WA: time spent spinning" "$(($(of "$WA" spun_ns) - spun_a))" 0
