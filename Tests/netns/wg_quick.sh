#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# wg-quick(8) brings a tunnel up and down with the engine as WG_QUICK_USERSPACE_IMPLEMENTATION:
# a tunnel with some prefixes, and one that takes the default route.
#
#   netns A: wg-quick, ENGINE $WA  192.0.2.1 ═══ 192.0.2.2  netns B: PEER $WB, 198.51.100.1 on lo
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

topology_pair
if in_ns "$A" ip link add "${P}k" type wireguard 2>/dev/null; then
    skip "the kernel has WireGuard, which wg-quick prefers to any program"
fi
keys_create a b
engine_start "$B" "$WB" "$PEER"
tunnel_configure "$B" "$WB" b a 2
in_ns "$B" ip addr add 198.51.100.1/32 dev lo

config() { # ALLOWED-IPS
    cat <<CONF
[Interface]
Address = 10.77.0.1/24, fd77::1/64
PrivateKey = $(cat "$WORK/a.key")
ListenPort = 51820
PostUp = touch $WORK/%i.up
[Peer]
PublicKey = $(key_of b)
Endpoint = 192.0.2.2:51820
AllowedIPs = $1
CONF
}
# The word ip in an implementation's name would be read as an option: it is called by path.
quick() {
    say "  $ ($A) wg-quick $1 $WA"
    in_ns "$A" env WG_QUICK_USERSPACE_IMPLEMENTATION="$(command -v "$ENGINE")" \
        wg-quick "$1" "$WORK/$WA.conf" >"$WORK/quick.log" 2>&1 || {
        cat "$WORK/quick.log"
        fail "wg-quick $1"
    }
}
# The engine wg-quick started: by the name of the interface on its command line, in our namespace.
engines() {
    local pid
    for pid in $(ip netns pids "$A"); do
        tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -F " $WA" || true
    done
}
rules() { in_ns "$A" ip -4 rule; in_ns "$A" ip -6 rule; in_ns "$A" nft list ruleset; }
RULES_BEFORE=$(rules)

up_and_down() { # DESCRIPTION ALLOWED-IPS ADDRESS
    step "$1"
    (umask 077 && config "$2" >"$WORK/$WA.conf")
    quick up
    expect "the PostUp command ran" test -e "$WORK/$WA.up"
    expect "the socket is for its owner alone" test "$(stat -c %a "$SOCKETS/$WA.sock")" -le 700
    expect_equal "engines running" "$(engines | wc -l)" 1
    expect_equal "MTU wg-quick chose" "$(in_ns "$A" cat "/sys/class/net/$WA/mtu")" 1420
    expect_ping "ping the peer" "$A" 10.77.0.2
    expect_ping "ping the peer, IPv6" "$A" fd77::2
    expect_ping "ping $3 through the tunnel" "$A" "$3"
    quick down
    expect "the link is gone" is_gone in_ns "$A" ip link show "$WA"
    wait_until 10 "the engine to end" no_engine
    expect "the socket is gone" test ! -e "$SOCKETS/$WA.sock"
    expect_equal "rules and tables left behind" "$(diff <(rules) <(echo "$RULES_BEFORE"))" ""
    rm -f "$WORK/$WA.up"
}
no_engine() { [[ -z $(engines) ]]; }

up_and_down "some prefixes" "10.77.0.0/24, fd77::/64, 198.51.100.0/24" 198.51.100.1
up_and_down "the default route" "0.0.0.0/0, ::/0" 198.51.100.1

step "save and strip"
quick up
in_ns "$A" wg set "$WA" peer "$(key_of b)" persistent-keepalive 21
quick save
expect "the file has what was set" grep -q 'PersistentKeepalive = 21' "$WORK/$WA.conf"
expect "wg takes what strip prints" in_ns "$A" bash -c "wg syncconf $WA <(wg-quick strip '$WORK/$WA.conf')"
expect_ping "the tunnel still works" "$A" 10.77.0.2
quick down
