#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Pitfall 50: every outer packet carries the fwmark, also after the port changed, so a tunnel that
# takes the default route does not swallow its own packets.
#
#   netns A: ENGINE $WA (default route)  192.0.2.1 ═══ 192.0.2.2  netns B: PEER $WB, 198.51.100.1 on lo
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

MARK=0x51820
topology_pair
in_ns "$A" ip route add default via 192.0.2.2
in_ns "$A" ip -6 route add default via 2001:db8::2
in_ns "$B" ip addr add 198.51.100.1/32 dev lo
in_ns "$B" ip -6 addr add 2001:db8:1::1/128 dev lo
in_ns "$A" nft -f - <<NFT
table inet t {
    counter marked {}
    counter unmarked {}
    chain out {
        type filter hook output priority 0
        oifname $VA udp dport 51820 meta mark $MARK counter name marked
        oifname $VA udp dport 51820 meta mark != $MARK counter name unmarked
    }
}
NFT

default_route() { # OUTER-ENDPOINT
    step "pitfall 50: default route through the tunnel to $1"
    keys_create a b
    engine_start "$A" "$WA" "$ENGINE"
    engine_start "$B" "$WB" "$PEER"
    tunnel_configure "$B" "$WB" b a 2
    in_ns "$A" wg set "$WA" fwmark "$MARK"
    tunnel_configure "$A" "$WA" a b 1
    in_ns "$A" wg set "$WA" peer "$(key_of b)" endpoint "$1" allowed-ips 0.0.0.0/0,::/0
    for family in -4 -6; do
        in_ns "$A" ip "$family" route add default dev "$WA" table 51820
        in_ns "$A" ip "$family" rule add not fwmark "$MARK" table 51820
    done
    in_ns "$A" nft reset counters >/dev/null

    expect_ping "ping beyond the peer" "$A" 198.51.100.1
    expect_ping "ping beyond the peer, IPv6" "$A" 2001:db8:1::1
    expect_ping "ping the outer address, inside the tunnel" "$A" 192.0.2.2
    run in_ns "$A" wg set "$WA" listen-port 51999
    expect_ping "ping after the port changed" "$A" 198.51.100.1
    run in_ns "$A" ip link set "$WA" down
    run in_ns "$A" ip link set "$WA" up
    for family in -4 -6; do in_ns "$A" ip "$family" route replace default dev "$WA" table 51820; done
    expect_ping "ping after the link was down" "$A" 198.51.100.1
    expect_equal "outer packets without the mark" "$(nft_count "$A" unmarked)" 0
    # 15 requests and at least one handshake. A loop would send thousands.
    local marked
    marked=$(nft_count "$A" marked)
    expect_at_least "outer packets with the mark" "$marked" 16
    expect_at_least "no loop: packets left of a bound of 100" "$((100 - marked))" 0

    run in_ns "$A" wg set "$WA" fwmark 0x77
    in_ns "$A" ip rule add fwmark 0x77 lookup main priority 10
    in_ns "$A" ip -6 rule add fwmark 0x77 lookup main priority 10
    in_ns "$A" nft reset counters >/dev/null
    expect_ping "ping after the mark changed" "$A" 198.51.100.1
    expect_equal "outer packets with the old mark" "$(nft_count "$A" marked)" 0
    expect_at_least "outer packets with the new mark" "$(nft_count "$A" unmarked)" 3

    for family in -4 -6; do
        in_ns "$A" ip "$family" rule del fwmark 0x77
        in_ns "$A" ip "$family" rule del not fwmark "$MARK"
    done
    tunnel_pair_stop
}
default_route 192.0.2.2:51820
default_route '[2001:db8::2]:51820'
