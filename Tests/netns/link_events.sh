#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What others do to the link, the socket and the port (pitfalls 20, 60, 61, 62, 64).
#
#   netns A: ENGINE $WA  192.0.2.1 ═══ 192.0.2.2  netns B: PEER $WB        netns C: takes $WA over
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

C=${P}C
topology_pair
netns_create "$C"
tunnel_pair "$ENGINE" "$PEER"
expect_ping "ping" "$A" 10.77.0.2

step "pitfalls 20 and 61: down stops, up goes on"
for round in 1 2 3; do
    run in_ns "$A" ip link set "$WA" down
    expect "round $round: the engine runs and answers" engine_answers "$A" "$WA"
    expect "round $round: nothing comes through" is_gone in_ns "$B" ping -n -q -c 1 -W 1 10.77.0.1
    run in_ns "$A" ip link set "$WA" up
    expect_ping "round $round: ping" "$A" 10.77.0.2
done

step "pitfall 61: up sends persistent keepalives without any traffic"
# Nothing of IPv6's own chatter either: it is switched off on the link.
in_ns "$A" sysctl -qw "net.ipv6.conf.$WA.disable_ipv6=1"
in_ns "$A" nft -f - <<'NFT'
table inet t {
    counter sent {}
    chain out {
        type filter hook output priority 0
        udp dport 51820 counter name sent
    }
}
NFT
in_ns "$A" wg set "$WA" peer "$(key_of b)" persistent-keepalive 25
run in_ns "$A" ip link set "$WA" down
in_ns "$A" nft reset counters >/dev/null
run in_ns "$A" ip link set "$WA" up
has_sent() { [[ $(nft_count "$A" sent) -gt 0 ]]; }
wait_until 10 "the keepalive, or the handshake it needs" has_sent
expect_at_least "outer packets without inner traffic" "$(nft_count "$A" sent)" 1
expect_ping "ping" "$A" 10.77.0.2
in_ns "$A" wg set "$WA" peer "$(key_of b)" persistent-keepalive off

step "pitfall 64: a port below 1024, after the start"
run in_ns "$A" wg set "$WA" listen-port 500
expect_equal "port" "$(in_ns "$A" wg show "$WA" listen-port)" 500
expect_ping "ping" "$A" 10.77.0.2
expect_equal "the peer sees it" "$(wg_field "$B" "$WB" endpoints)" 192.0.2.1:500

step "pitfall 60: the link moves to another namespace, the engine stays"
run ip -n "$A" link set "$WA" netns "$C"
in_ns "$C" ip addr add 10.77.0.1/24 dev "$WA"
in_ns "$C" ip link set "$WA" up
expect_ping "ping from the new namespace" "$C" 10.77.0.2
expect_ping "ping to the new namespace" "$B" 10.77.0.1
expect "outer sockets stay in the old one" listens "$A" u 500
expect "the engine runs and answers" in_ns "$C" wg show "$WA" listen-port
run in_ns "$C" ip link set "$WA" down
run in_ns "$C" ip link set "$WA" up
expect_ping "ping after down and up there" "$C" 10.77.0.2
wakeups() { python3 "$HERE/observe.py" state "$WA" 'd["control_wakeups"]'; }
WOKEN=$(wakeups)
run in_ns "$A" ip link add "${P}x" type veth peer name "${P}y"
for _ in 1 2 3 4 5; do run in_ns "$A" ip link set "${P}x" up; done
WOKEN=$(($(wakeups) - WOKEN))
# A loop that reads no news turns some hundred thousand times meanwhile.
expect "links of the old namespace do not keep it awake ($WOKEN wake-ups)" test "$WOKEN" -lt 50

step "pitfall 60: the link is deleted, the engine ends"
run in_ns "$C" ip link del "$WA"
wait_until 10 "the engine to end" engine_ended "$WA"
engine_reap "$WA"
expect_equal "exit code" "$ENGINE_STATUS" 0
expect "the socket is gone" test ! -e "$SOCKETS/$WA.sock"

step "pitfall 62: the socket is removed, the engine ends"
engine_start "$A" "$WA" "$ENGINE"
run rm "$SOCKETS/$WA.sock"
wait_until 10 "the engine to end" engine_ended "$WA"
engine_reap "$WA"
expect_equal "exit code" "$ENGINE_STATUS" 0
expect "the link is gone" is_gone in_ns "$A" ip link show "$WA"

step "pitfall 62: the socket is removed and another engine started at once"
# In the background: the start is a process of its own, and nothing waits for the former's end.
for round in 1 2 3 4 5 6 7 8 9 10; do
    expect "start $round" in_ns "$A" "$ENGINE" "$WA"
    rm "$SOCKETS/$WA.sock"
done
link_is_gone() { is_gone in_ns "$A" ip link show "$WA"; }
wait_until 10 "the last to end" link_is_gone

step "SIGTERM ends it and leaves nothing"
engine_start "$A" "$WA" "$ENGINE"
engine_stop "$WA"
expect_equal "exit code" "$ENGINE_STATUS" 0
expect "the socket is gone" test ! -e "$SOCKETS/$WA.sock"
expect "the link is gone" is_gone in_ns "$A" ip link show "$WA"
