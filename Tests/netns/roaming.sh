#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Pitfall 45: the endpoint follows authenticated packets, and only those. A NAT gives the peer a
# new port, then a new address; a replayed packet and a forged one move nothing.
#
#   netns A: PEER $WA  192.168.1.2 ═══ 192.168.1.1  netns N (NAT)  192.0.2.1 ═══ 192.0.2.2  netns B: ENGINE $WB
#                                                                  192.0.2.3
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

N=${P}N
netns_create "$A"
netns_create "$N"
netns_create "$B"
veth_create "$A" "$VA" "$N" "${P}na"
veth_create "$N" "${P}nb" "$B" "$VB"
in_ns "$A" ip addr add 192.168.1.2/24 dev "$VA"
in_ns "$A" ip route add default via 192.168.1.1
in_ns "$N" ip addr add 192.168.1.1/24 dev "${P}na"
in_ns "$N" ip addr add 192.0.2.1/24 dev "${P}nb"
in_ns "$N" ip addr add 192.0.2.3/24 dev "${P}nb"
in_ns "$B" ip addr add 192.0.2.2/24 dev "$VB"
in_ns "$N" sysctl -qw net.ipv4.ip_forward=1

# nat STATEMENT: replaces the rule and forgets the mappings, for they outlive their rule.
nat() {
    say "  $ ($N) nft … postrouting $1"
    in_ns "$N" nft -f - <<NFT
table ip n
delete table ip n
table ip n {
    chain postrouting {
        type nat hook postrouting priority srcnat
        oifname ${P}nb ip saddr 192.168.1.2 meta l4proto udp $1
    }
}
NFT
    traffic "$N" forget-mappings
}
endpoint() { wg_field "$B" "$WB" endpoints; }
endpoint_is() { [[ $(endpoint) == "$1" ]]; }
handshake_time() { wg_field "$B" "$WB" latest-handshakes; }

nat 'masquerade to :40001'
keys_create a b
engine_start "$A" "$WA" "$PEER"
engine_start "$B" "$WB" "$ENGINE"
tunnel_configure "$A" "$WA" a b 1 endpoint 192.0.2.2:51820
tunnel_configure "$B" "$WB" b a 2

step "the endpoint is learned from the handshake"
expect_ping "ping through the NAT" "$A" 10.77.0.2
expect_equal "endpoint" "$(endpoint)" 192.0.2.1:40001
first=$(handshake_time)

step "pitfall 45: a new port, then a new address, learned from data without a new handshake"
nat 'masquerade to :40002'
expect_ping "ping from the new port" "$A" 10.77.0.2
expect_equal "endpoint" "$(endpoint)" 192.0.2.1:40002
expect_ping "ping back to the new port" "$B" 10.77.0.1
nat 'snat to 192.0.2.3:40003'
expect_ping "ping from the new address" "$A" 10.77.0.2
expect_equal "endpoint" "$(endpoint)" 192.0.2.3:40003
expect_ping "ping back to the new address" "$B" 10.77.0.1
expect_equal "time of the handshake" "$(handshake_time)" "$first"

step "pitfall 45: forged and replayed packets move nothing"
# A data message with no session, a cookie reply, an initiation of zeros.
zeros=$(printf '%0296d' 0)
in_ns "$N" nft add table inet t
in_ns "$N" nft add counter inet t forged
in_ns "$N" nft add chain inet t out '{ type filter hook output priority 0; }'
in_ns "$N" nft add rule inet t out udp dport 51820 counter name forged
traffic "$N" datagram 192.0.2.2 51820 "04000000${zeros:0:80}"
traffic "$N" datagram 192.0.2.2 51820 "03000000${zeros:0:120}"
traffic "$N" datagram 192.0.2.2 51820 "01000000${zeros:0:288}"
background "$N" python3 "$HERE/traffic.py" sniff-replay "${P}nb" 44444 192.0.2.2
replayer=$BACKGROUND_PID
sent() { ! kill -0 "$replayer" 2>/dev/null; }
ping_until_replayed() { in_ns "$A" ping -n -q -c 1 -W 1 10.77.0.2 >/dev/null && sent; }
wait_until 10 "a packet to be replayed" ping_until_replayed
expect_equal "datagrams sent by the attacker" "$(nft_count "$N" forged)" 4
# A packet that came after the attack proves that all of it was looked at.
expect_ping "ping from the peer's side" "$A" 10.77.0.2
expect_equal "endpoint" "$(endpoint)" 192.0.2.3:40003
expect_ping "ping back" "$B" 10.77.0.1

step "wg set moves it, data moves it back"
in_ns "$B" wg set "$WB" peer "$(key_of a)" endpoint 192.0.2.99:9
expect_equal "endpoint" "$(endpoint)" 192.0.2.99:9
expect_ping "ping" "$A" 10.77.0.2
wait_until 5 "the endpoint to return" endpoint_is 192.0.2.3:40003
expect_equal "endpoint" "$(endpoint)" 192.0.2.3:40003
