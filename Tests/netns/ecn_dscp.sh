#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The outer header's TOS byte: 0x88 (AF41) on handshakes; on data the inner ECN field and no DSCP.
# Inbound congestion marks go to the inner packet by RFC 6040 section 4.2.
#
#   netns A: ENGINE $WA  192.0.2.1 ═══ 192.0.2.2  netns B: ENGINE $WB
#                           └ nft: what leaves; marks CE on its way
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

topology_pair
# The UDP payload begins 64 bits into the transport header: the message type.
in_ns "$A" nft -f - <<'NFT'
table inet t {
    counter initiation_0x88 {}
    counter initiation_other {}
    counter data_not_ect {}
    counter data_ect0 {}
    counter data_ect1 {}
    counter data_ce {}
    counter data_with_dscp {}
    chain out {
        type filter hook output priority 0
        udp dport 51820 @th,64,8 1 ip dscp af41 ip ecn not-ect counter name initiation_0x88
        udp dport 51820 @th,64,8 1 ip6 dscp af41 ip6 ecn not-ect counter name initiation_0x88
        udp dport 51820 @th,64,8 1 ip dscp != af41 counter name initiation_other
        udp dport 51820 @th,64,8 1 ip6 dscp != af41 counter name initiation_other
        udp dport 51820 @th,64,8 4 ip dscp != cs0 counter name data_with_dscp
        udp dport 51820 @th,64,8 4 ip6 dscp != cs0 counter name data_with_dscp
        udp dport 51820 @th,64,8 4 ip ecn not-ect counter name data_not_ect
        udp dport 51820 @th,64,8 4 ip6 ecn not-ect counter name data_not_ect
        udp dport 51820 @th,64,8 4 ip ecn ect0 counter name data_ect0
        udp dport 51820 @th,64,8 4 ip6 ecn ect0 counter name data_ect0
        udp dport 51820 @th,64,8 4 ip ecn ect1 counter name data_ect1
        udp dport 51820 @th,64,8 4 ip6 ecn ect1 counter name data_ect1
        udp dport 51820 @th,64,8 4 ip ecn ce counter name data_ce
        udp dport 51820 @th,64,8 4 ip6 ecn ce counter name data_ce
    }
}
NFT
in_ns "$B" nft -f - <<'NFT'
table inet t {
    counter not_ect {}
    counter ect0 {}
    counter ect1 {}
    counter ce {}
    chain in {
        type filter hook input priority 0
        icmp type echo-request ip ecn not-ect counter name not_ect
        icmp type echo-request ip ecn ect0 counter name ect0
        icmp type echo-request ip ecn ect1 counter name ect1
        icmp type echo-request ip ecn ce counter name ce
        icmpv6 type echo-request ip6 ecn not-ect counter name not_ect
        icmpv6 type echo-request ip6 ecn ect0 counter name ect0
        icmpv6 type echo-request ip6 ecn ect1 counter name ect1
        icmpv6 type echo-request ip6 ecn ce counter name ce
    }
}
NFT
reset() {
    in_ns "$A" nft reset counters >/dev/null
    in_ns "$B" nft reset counters >/dev/null
}
# mark ECN: rewrites the ECN field of every outer data message, as a congested router does.
mark() {
    in_ns "$A" nft -f - <<NFT
table inet m {
    chain out {
        type filter hook postrouting priority 10
        udp dport 51820 @th,64,8 4 ip ecn set $1
        udp dport 51820 @th,64,8 4 ip6 ecn set $1
    }
}
NFT
}
unmark() { in_ns "$A" nft delete table inet m; }
send() { in_ns "$A" ping -n -q -c 3 -i 0.05 -W 1 -Q "$1" "$2" >/dev/null; }

# tos byte of the sender, counter of the outer packet
outside() { # ADDRESS
    local tos name
    while read -r tos name; do
        reset
        expect "$1: ping with TOS $tos" send "$tos" "$1"
        expect_equal "$1: outer packets, $name" "$(nft_count "$A" "data_$name")" 3
        expect_equal "$1: outer packets with a DSCP" "$(nft_count "$A" data_with_dscp)" 0
        expect_equal "$1: inner packets arrive, $name" "$(nft_count "$B" "$name")" 3
    done <<'CASES'
0x00 not_ect
0x02 ect0
0x01 ect1
0x03 ce
0xb8 not_ect
0xba ect0
CASES
}

# RFC 6040 figure 4: inner, outer, what arrives. One line departs from it: a packet that is not ECN
# capable is delivered under a congestion mark instead of dropped, as the kernel's WireGuard does, so
# that a path that marks everything does not cut the tunnel.
on_receipt() { # ADDRESS
    local inner outer result status
    while read -r inner outer result; do
        mark "$outer"
        reset
        status=0
        send "$inner" "$1" || status=$?
        expect_equal "$1: inner $inner, outer $outer: arrive as $result (ping: $status)" \
            "$(nft_count "$B" "$result")" 3
        unmark
    done <<'CASES'
0x00 not-ect not_ect
0x00 ect0 not_ect
0x00 ect1 not_ect
0x00 ce not_ect
0x02 not-ect ect0
0x02 ect0 ect0
0x02 ect1 ect1
0x02 ce ce
0x01 not-ect ect1
0x01 ect0 ect1
0x01 ect1 ect1
0x01 ce ce
0x03 not-ect ce
0x03 ect0 ce
0x03 ect1 ce
0x03 ce ce
CASES
}

tunnel_pair "$ENGINE" "$ENGINE"
for endpoint in 192.0.2.2:51820 '[2001:db8::2]:51820'; do
    step "outer $endpoint"
    in_ns "$A" wg set "$WA" peer "$(key_of b)" remove
    in_ns "$B" wg set "$WB" peer "$(key_of a)" remove
    in_ns "$B" wg set "$WB" peer "$(key_of a)" allowed-ips 10.77.0.1/32,fd77::1/128
    in_ns "$A" wg set "$WA" peer "$(key_of b)" allowed-ips 10.77.0.2/32,fd77::2/128 endpoint "$endpoint"
    reset
    expect_ping "ping" "$A" 10.77.0.2
    expect_equal "initiations with TOS 0x88" "$(nft_count "$A" initiation_0x88)" 1
    expect_equal "initiations with another" "$(nft_count "$A" initiation_other)" 0
    outside 10.77.0.2
    outside fd77::2
    on_receipt 10.77.0.2
    on_receipt fd77::2
done
