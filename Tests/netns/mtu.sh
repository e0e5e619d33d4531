#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Packet sizes: padding to 16 stops at the MTU (pitfall 44), an MTU set by others counts at once
# (pitfall 61), and the outer packet may be fragmented: its DF bit is clear (pitfall 24).
#
#   netns A: ENGINE $WA  192.0.2.1 ═══ 192.0.2.254  netns R  198.51.100.254 ══(MTU 1300)══ 198.51.100.2  netns B: PEER $WB
#                                        2001:db8::ff         2001:db8:1::ff
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

R=${P}R
netns_create "$A"
netns_create "$R"
netns_create "$B"
veth_create "$A" "$VA" "$R" "${P}ra"
veth_create "$R" "${P}rb" "$B" "$VB"
in_ns "$A" ip addr add 192.0.2.1/24 dev "$VA"
in_ns "$A" ip addr add 2001:db8::1/64 dev "$VA" nodad
in_ns "$R" ip addr add 192.0.2.254/24 dev "${P}ra"
in_ns "$R" ip addr add 2001:db8::ff/64 dev "${P}ra" nodad
in_ns "$R" ip addr add 198.51.100.254/24 dev "${P}rb"
in_ns "$R" ip addr add 2001:db8:1::ff/64 dev "${P}rb" nodad
in_ns "$B" ip addr add 198.51.100.2/24 dev "$VB"
in_ns "$B" ip addr add 2001:db8:1::2/64 dev "$VB" nodad
in_ns "$A" ip route add default via 192.0.2.254
in_ns "$A" ip -6 route add default via 2001:db8::ff
in_ns "$B" ip route add default via 198.51.100.254
in_ns "$B" ip -6 route add default via 2001:db8:1::ff
in_ns "$R" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1

# IPv4 20 + UDP 8 + header 16 + tag 16 = 60 bytes around the padded packet.
in_ns "$R" nft -f - <<'NFT'
table inet t {
    counter full {}
    counter padded_1296 {}
    counter capped_1285 {}
    counter keepalive {}
    counter dont_fragment {}
    chain pre {
        type filter hook prerouting priority -500
        ip saddr 192.0.2.1 meta l4proto udp ip length 1480 counter name full
        ip saddr 192.0.2.1 meta l4proto udp ip length 1356 counter name padded_1296
        ip saddr 192.0.2.1 meta l4proto udp ip length 1345 counter name capped_1285
        ip saddr 192.0.2.1 meta l4proto udp ip length 60 counter name keepalive
        ip saddr 192.0.2.1 meta l4proto udp ip frag-off & 0x4000 != 0 counter name dont_fragment
    }
}
NFT
reset() { in_ns "$R" nft reset counters >/dev/null; }

keys_create a b
engine_start "$A" "$WA" "$ENGINE"
engine_start "$B" "$WB" "$PEER"
tunnel_configure "$A" "$WA" a b 1 endpoint 198.51.100.2:51820
tunnel_configure "$B" "$WB" b a 2
servers_start "$B"
expect_equal "MTU of a new device" "$(in_ns "$A" cat "/sys/class/net/$WA/mtu")" 1420

expect_ping "ping" "$A" 10.77.0.2
step "pitfall 44: padding to a multiple of 16, never beyond the MTU; keepalives are empty"
# One packet at a time: a train of several would count as one.
reset
expect_ping "1,420 bytes" "$A" 10.77.0.2 -s 1392 -M "do" -c 1
expect_equal "outer packets of 1,420 + 60" "$(nft_count "$R" full)" 1
reset
expect_ping "1,284 bytes at MTU 1420" "$A" 10.77.0.2 -s 1256 -M "do" -c 1
expect_equal "outer packets of 1,296 + 60" "$(nft_count "$R" padded_1296)" 1
reset
in_ns "$A" wg set "$WA" peer "$(key_of b)" persistent-keepalive 1
has_keepalive() { [[ $(nft_count "$R" keepalive) -gt 0 ]]; }
wait_until 10 "a keepalive of exactly 32 bytes" has_keepalive
expect_at_least "outer packets of 0 + 60" "$(nft_count "$R" keepalive)" 1
in_ns "$A" wg set "$WA" peer "$(key_of b)" persistent-keepalive off

step "pitfall 61: another MTU, set by others, counts at once"
run in_ns "$A" ip link set "$WA" mtu 1285
reset
expect_ping "1,284 bytes at MTU 1285" "$A" 10.77.0.2 -s 1256 -M "do" -c 1
expect_equal "outer packets of 1,285 + 60" "$(nft_count "$R" capped_1285)" 1
expect_equal "outer packets of 1,296 + 60" "$(nft_count "$R" padded_1296)" 0
run in_ns "$A" ip link set "$WA" mtu 1420
reset
expect_ping "1,284 bytes at MTU 1420" "$A" 10.77.0.2 -s 1256 -M "do" -c 1
expect_equal "outer packets of 1,296 + 60" "$(nft_count "$R" padded_1296)" 1

step "pitfall 24: the path's MTU shrinks to 1300, outer packets are fragmented"
run in_ns "$R" ip link set "${P}rb" mtu 1300
run in_ns "$B" ip link set "$VB" mtu 1300
reset
expect_ping "1,420 bytes" "$A" 10.77.0.2 -s 1392 -M "do" -c 10
expect_traffic "$A" 10.77.0.2 5
expect_equal "outer packets with DF" "$(nft_count "$R" dont_fragment)" 0
expect_at_least "fragments the far end put together" "$(net_counter "$B" Ip ReasmOKs)" 10

step "pitfall 24: the same with a path MTU learned from ICMP on record"
# Something else on this host, with DF, makes the kernel learn it.
in_ns "$A" ping -n -q -c 2 -i 0.2 -W 1 -s 1400 -M "do" 198.51.100.2 >/dev/null || true
expect "the kernel learned the path's MTU" bash -c "ip -n $A route get 198.51.100.2 | grep -q 'mtu 1300'"
reset
expect_ping "1,420 bytes" "$A" 10.77.0.2 -s 1392 -M "do" -c 10
expect_traffic "$A" 10.77.0.2 5
expect_equal "outer packets with DF" "$(nft_count "$R" dont_fragment)" 0

step "pitfall 24: over IPv6 the sender fragments"
run in_ns "$A" wg set "$WA" peer "$(key_of b)" endpoint '[2001:db8:1::2]:51820'
# The first packets teach the path's MTU by ICMPv6.
in_ns "$A" ping -n -q -c 2 -i 0.2 -W 1 -s 1392 -M "do" 10.77.0.2 >/dev/null || true
expect_ping "1,420 bytes" "$A" 10.77.0.2 -s 1392 -M "do"
expect_traffic "$A" fd77::2 5
