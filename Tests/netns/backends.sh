#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Back-ends and the live host against real engines: random tunnels reached from each other are as
# if made anew, ten thousand peers go in one apply, whoever died leaves nothing unknown (C81), other
# people's links, rules and tables stay as they are (C42, C46), what is missing is told (C83, C84).
#
#   netns $A                                netns $B
#   $WA, by backend-probe
#   $VA 192.0.2.1 ════════════════════════ $VB    and what others made
#
# PROGRAMS: engines, of which the first is ours, or kernel; default: $ENGINE and wireguard-go
#
# shellcheck source-path=SCRIPTDIR
PEER=true
source "$(dirname "$0")/lib.sh"
PROBE=${PROBE:-$ROOT/.build/release/backend-probe}
PAIRS=${PAIRS:-300}
SEED=${SEED:-1}
[[ -x $PROBE ]] || skip "no probe at $PROBE (build it, or set PROBE)"
if [[ -z ${PROGRAMS:-} ]]; then
    PROGRAMS="$(command -v "$ENGINE") $(command -v wireguard-go || true)"
fi
read -ra PROGRAMS <<<"$PROGRAMS"

# probe NAMESPACE VERB INTERFACE [ARGUMENT…]: ended when it hangs.
probe() {
    local ns=$1 verb=$2 interface=$3
    shift 3
    timeout 300 ip netns exec "$ns" "$PROBE" "$verb" "$interface" "$PROGRAM" "$WORK" "$@"
}
# All that a tunnel could leave behind in a namespace.
everything() {
    in_ns "$1" ip -d link show | sed 's/^[0-9]*: //' # without numbers of links
    in_ns "$1" ip addr show | sed 's/^[0-9]*: //'
    in_ns "$1" ip route show table all
    in_ns "$1" ip -6 route show table all
    in_ns "$1" ip rule
    in_ns "$1" ip -6 rule
    in_ns "$1" nft list ruleset
    in_ns "$1" sysctl -a --pattern 'src_valid_mark'
    find "$SOCKETS" -name "$P*" 2>/dev/null || true
}
netns_create "$A"
netns_create "$B"
veth_create "$A" "$VA" "$B" "$VB"

# ---- what others have --------------------------------------------------------------------------

in_ns "$A" ip addr add 192.0.2.1/24 dev "$VA"
in_ns "$A" ip route add 10.1.2.0/25 dev "$VA"
in_ns "$A" ip route add 203.0.113.0/24 dev "$VA" table 77
in_ns "$A" ip rule add fwmark 5 table 77 priority 100
in_ns "$A" nft add table inet others

# ---- random tunnels, ours and the reference ----------------------------------------------------

for PROGRAM in "${PROGRAMS[@]}"; do
    step "random tunnels with ${PROGRAM##*/}"
    everything "$A" >"$WORK/before"
    expect_equal "$PAIRS random pairs with ${PROGRAM##*/}" \
        "$(probe "$A" property "$WA" "$PAIRS" "$SEED" | sed 's/, [0-9]* changes//')" \
        "$PAIRS pairs, all as fresh"
    everything "$A" >"$WORK/after"
    expect "nothing is left and nothing of others changed" diff -u "$WORK/before" "$WORK/after"
    expect_equal "ten thousand peers in one apply with ${PROGRAM##*/}" \
        "$(probe "$A" many "$WA" 10000)" "10000 peers, twice, then 1"
    expect_equal "long lists with ${PROGRAM##*/}" "$(probe "$A" long "$WA" 3000)" \
        "lists of up to 3000 prefixes: set, moved, cut"
    everything "$A" >"$WORK/after"
    expect "nothing is left of them" diff -u "$WORK/before" "$WORK/after"
done
PROGRAM=${PROGRAMS[0]}

# ---- adoption ----------------------------------------------------------------------------------

step "whoever made the tunnel is gone, the next one knows it (C81)"
everything "$A" >"$WORK/before"
expect_equal "a second host" "$(probe "$A" adopt "$WA")" "adopted without a change"
expect "the link says whose it is" \
    grep -q "nexusguard: $WA" <(in_ns "$A" cat "/sys/class/net/$WA/ifalias")
expect "a third host takes it down" probe "$A" down "$WA"
everything "$A" >"$WORK/after"
expect "nothing is left" diff -u "$WORK/before" "$WORK/after"

step "the link is lost: rules stay behind, and the next tunnel removes them"
probe "$A" adopt "$WA" >"$WORK/out"
if [[ $PROGRAM == kernel ]]; then
    in_ns "$A" ip link del "$WA"
else
    # ss shows the name a socket was bound under, which goes on with a process id.
    ENGINE_OF_WA=$(in_ns "$A" ss -H -x -l -p | grep -F "$SOCKETS/$WA.sock" | sed 's/.*pid=\([0-9]*\).*/\1/')
    kill -KILL "$ENGINE_OF_WA"
fi
wait_until 10 "the link to go" is_gone in_ns "$A" ip link show "$WA"
expect "rules are left" grep -q 51820 <(in_ns "$A" ip rule)
probe "$A" adopt "$WA" >"$WORK/out"
expect "the tunnel is made again and taken down" probe "$A" down "$WA"
everything "$A" >"$WORK/after"
expect "nothing is left" diff -u "$WORK/before" "$WORK/after"

# ---- other people's links ----------------------------------------------------------------------

step "a link that others made is refused and named (C81)"
in_ns "$B" ip link add "$WB" type veth peer name "${P}x"
expect_equal "a veth" "$(probe "$B" foreign "$WB")" \
    "busy: $WB is a link of kind veth that nexusguard did not make: name the tunnel differently"
in_ns "$B" ip link del "$WB"
in_ns "$B" ip tuntap add "$WB" mode tun
expect "a tun device of somebody else" grep -q "^busy: $WB is a link of kind tun that nexusguard did" \
    <(probe "$B" foreign "$WB")
in_ns "$B" ip link set "$WB" alias "nexusguard: other"
expect "an alias of another name" grep -q '^busy: .*alias "nexusguard: other"' \
    <(probe "$B" foreign "$WB")
in_ns "$B" ip link del "$WB"

# ---- events ------------------------------------------------------------------------------------

step "what others change is heard, what belongs to others is told apart"
probe "$A" adopt "$WA" >"$WORK/out"
mkfifo "$WORK/hold"
sleep 300 >"$WORK/hold" & # holds the events' standard input open
BACKGROUND+=($!)
ip netns exec "$A" "$PROBE" events "$WA" "$PROGRAM" "$WORK" <"$WORK/hold" >"$WORK/events" 2>&1 &
BACKGROUND+=($!)
wait_until 10 "the listener" grep -q listening "$WORK/events"
in_ns "$A" ip route add 198.51.100.0/25 dev "$VA"
wait_until 10 "a path's change" grep -q pathsChanged "$WORK/events"
expect_equal "nothing of the tunnel so far" "$(grep -c tunnelChanged "$WORK/events" || true)" 0
in_ns "$A" ip rule del priority 32765
wait_until 10 "a rule's loss" grep -q tunnelChanged "$WORK/events"
: >"$WORK/events"
in_ns "$A" nft delete table inet "nexusguard-$WA"
wait_until 10 "the table's loss" grep -q tunnelChanged "$WORK/events"
expect "the nft table's loss was heard" grep -q tunnelChanged "$WORK/events"
expect "the tunnel is taken down all the same" probe "$A" down "$WA"
in_ns "$A" ip route del 198.51.100.0/25 dev "$VA"
