#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Pitfall 49 (C34): a host with several addresses answers from the one that was contacted; when
# that address goes away the tunnel goes on from another.
#
#   netns A: PEER $WA  192.0.2.1 2001:db8::1 ═══ netns B: ENGINE $WB  192.0.2.2 (primary) 192.0.2.3
#                                                           2001:db8::2 (primary) 2001:db8::3
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

topology_pair
in_ns "$B" ip addr add 192.0.2.3/24 dev "$VB"
in_ns "$B" ip addr add 2001:db8::3/64 dev "$VB" nodad
in_ns "$A" nft -f - <<'NFT'
table inet t {
    counter from_primary {}
    counter from_contacted {}
    chain in {
        type filter hook input priority 0
        udp sport 51820 ip saddr 192.0.2.2 counter name from_primary
        udp sport 51820 ip saddr 192.0.2.3 counter name from_contacted
        udp sport 51820 ip6 saddr 2001:db8::2 counter name from_primary
        udp sport 51820 ip6 saddr 2001:db8::3 counter name from_contacted
    }
}
NFT
reset() { in_ns "$A" nft reset counters >/dev/null; }

contact() { # DESCRIPTION ENDPOINT SECONDARY PRIMARY
    step "pitfall 49: $1"
    keys_create a b
    engine_start "$A" "$WA" "$PEER"
    engine_start "$B" "$WB" "$ENGINE"
    tunnel_configure "$A" "$WA" a b 1 endpoint "$2:51820"
    tunnel_configure "$B" "$WB" b a 2
    reset
    expect_ping "ping the secondary address's tunnel" "$A" 10.77.0.2
    expect_ping "ping back" "$B" 10.77.0.1
    expect_equal "packets from the primary address" "$(nft_count "$A" from_primary)" 0
    # The response, three answers, three requests.
    expect_at_least "packets from the contacted address" "$(nft_count "$A" from_contacted)" 7

    # The peer tries the primary address from now on only if told; the engine must not insist on an
    # address it no longer has.
    run in_ns "$B" ip addr del "$3" dev "$VB"
    reset
    expect "the engine sends on from another address" ping_gets_out
    in_ns "$A" wg set "$WA" peer "$(key_of b)" endpoint "$4:51820"
    expect_ping "ping by the primary address" "$A" 10.77.0.2
    expect_ping "ping back" "$B" 10.77.0.1
    expect_at_least "packets from the primary address" "$(nft_count "$A" from_primary)" 1
    tunnel_pair_stop
    wait_until 5 "the link to be gone" is_gone in_ns "$B" ip link show "$WB"
}
ping_gets_out() {
    in_ns "$B" ping -n -q -c 3 -i 0.1 -W 1 10.77.0.1
    [[ $(nft_count "$A" from_primary) -gt 0 ]]
}

contact "IPv4" 192.0.2.3 192.0.2.3/24 192.0.2.2
contact "IPv6" '[2001:db8::3]' 2001:db8::3/64 '[2001:db8::2]'
