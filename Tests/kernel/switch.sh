#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A running tunnel changes from the kernel to the engine and back while packets flow. Addresses, routes,
# rules, port and what was learned of the peer stay; how many pings that costs is printed.
#
#   netns $A: keeper of $WA  192.0.2.1 ═══ 192.0.2.2  netns $B: kernel $WB, whose endpoint $A is not told
#
# LIMIT: of lost pings for each change, at 20 a second; default 100 (the machine is emulated)
#
# shellcheck source-path=SCRIPTDIR/../netns
PEER=kernel
source "$(dirname "$0")/../netns/lib.sh"

needs_command
LIMIT=${LIMIT:-100}

topology_pair
keys_create a b
engine_start "$B" "$WB" kernel
tunnel_configure "$B" "$WB" b a 2 endpoint 192.0.2.1:51820
FILE=$WORK/$WA.conf
(
    umask 077
    cat >"$FILE" <<CONF
[Interface]
PrivateKey = $(cat "$WORK/a.key")
Address = 10.77.0.1/24, fd77::1/64
ListenPort = 51820
[Peer]
PublicKey = $(key_of b)
AllowedIPs = 0.0.0.0/0, ::/0
PersistentKeepalive = 25
CONF
)
kind() { in_ns "$A" ip -j -d link show "$WA" | json /dev/stdin 'd[0]["linkinfo"]["info_kind"]'; }
# Numbers of links and what only one of the kinds has are no part of it.
state() {
    in_ns "$A" ip -o addr show dev "$WA" | sed -E 's/^[0-9]+: //; s/ (valid|preferred)_lft [^ ]+//g' |
        grep -v ' fe80:'
    in_ns "$A" ip -4 route show table all dev "$WA"
    in_ns "$A" ip -6 route show table all dev "$WA" | grep -vE 'fe80:|multicast|^ff00:'
    in_ns "$A" ip rule
    in_ns "$A" ip -6 rule
    in_ns "$A" nft -s list ruleset
    in_ns "$A" sysctl net.ipv4.conf.all.src_valid_mark
    in_ns "$A" wg show "$WA" listen-port
    in_ns "$A" wg show "$WA" endpoints
    in_ns "$A" wg show "$WA" allowed-ips | tr -s '[:space:]' '\n' | sort
}

ask up --backend kernel "$FILE"
expect_equal "kind of the link" "$(kind)" wireguard
expect_ping "B begins, so A learns where it is" "$B" 10.77.0.1
expect_ping "and back" "$A" 10.77.0.2
state >"$WORK/before"

# change TO KIND-OF-LINK
change() {
    local sent lost
    step "to $1 while packets flow"
    # ip netns exec becomes ping: the process id is its own. A shell's background jobs ignore SIGINT.
    ip netns exec "$A" env --default-signal=INT ping -n -i 0.05 -W 20 10.77.0.2 >"$WORK/flow" 2>&1 &
    BACKGROUND+=($!)
    local flow=$!
    wait_until 10 "packets flow" has_answers "$WORK/flow" 5
    ask up --backend "$1" "$FILE"
    sed 's/^/  | /' "$WORK/ask.log"
    expect_equal "kind of the link" "$(kind)" "$2"
    flow_goes_on "$WORK/flow"
    kill -INT "$flow"
    wait "$flow" || true
    read -r sent lost < <(flow_count "$WORK/flow")
    say "  to $1: $lost of $sent pings lost, 20 a second"
    expect_at_least "lost pings left of $LIMIT" $((LIMIT - lost)) 0
    state >"$WORK/after"
    expect "addresses, routes, rules, port, endpoint as before" diff "$WORK/before" "$WORK/after"
    expect_ping "ping from B" "$B" 10.77.0.1
}
change userspace tun
change kernel wireguard
ask down "$WA"
expect "the link is gone" is_gone in_ns "$A" ip link show "$WA"
