#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Pitfalls 51 and 52: 20,000 initiations per second, from thousands of sources and with a valid mac1,
# harm nobody. Data flows on, strangers get cookie replies and nothing else, and who answers the
# cookie still gets a session. A bad mac1 gets silence.
#
#   netns A: ENGINE $WA, PEER $WC  192.0.2.1 ═══ 192.0.2.2      netns B: ENGINE $WB, the victim
#   netns F: the flood  198.18.0.0/15 ── 203.0.113.1 ═══ 203.0.113.2
#
# Runs alone: the handshake thread gives way to everything else that wants a processor, and a fresh
# peer's session may come after the flood where others want both.
#
# What share of its throughput the victim keeps is a benchmark: Benchmarks/handshake_flood.
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"
F=${P}F VF=${P}vf VG=${P}vg WC=${P}wc

observe() { python3 "$HERE/observe.py" "$@"; }
victim() { observe state "$WB" "$1"; }
compiler=$(command -v cc || command -v clang) || skip "no C compiler"
"$compiler" -std=gnu17 -D_GNU_SOURCE -O2 -I"$ROOT/CSources/CTunnel" -o "$WORK/flood" \
    "$HERE/handshake_flood.c" "$ROOT"/CSources/CTunnel/crypto/{hash,blake2s}.c -lsodium

topology_pair
netns_create "$F"
veth_create "$F" "$VF" "$B" "$VG"
in_ns "$F" ip addr add 203.0.113.1/24 dev "$VF"
in_ns "$B" ip addr add 203.0.113.2/24 dev "$VG"
in_ns "$F" ip route add local 198.18.0.0/15 dev lo
in_ns "$B" ip route add 198.18.0.0/15 via 203.0.113.1
in_ns "$B" nft -f - <<'NFT'
table inet t {
    counter to_strangers {}
    counter to_strangers_cookies {}
    counter to_client_cookies {}
    chain out {
        type filter hook output priority 0
        ip daddr 198.18.0.0/15 counter name to_strangers
        ip daddr 198.18.0.0/15 udp sport 51820 udp length 72 counter name to_strangers_cookies
        ip daddr 192.0.2.1 udp sport 51820 udp length 72 counter name to_client_cookies
    }
}
NFT

tunnel_pair "$ENGINE" "$ENGINE"
expect_ping "ping" "$A" 10.77.0.2
servers_start "$B"
expect_traffic "$A" 10.77.0.2 5
# A further peer of the victim, which will shake hands during the flood.
keys_create c
engine_start "$A" "$WC" "$PEER"
in_ns "$A" wg set "$WC" listen-port 51821 private-key "$WORK/c.key"
in_ns "$A" wg set "$WC" peer "$(key_of b)" allowed-ips 10.78.0.2/32 endpoint 192.0.2.2:51820
in_ns "$A" ip addr add 10.78.0.1/24 dev "$WC"
in_ns "$A" ip link set "$WC" up
in_ns "$B" wg set "$WB" peer "$(key_of c)" allowed-ips 10.78.0.1/32
in_ns "$B" ip addr add 10.78.0.2/24 dev "$WB"

# handled COUNT: the victim is done with as many messages since the start. What is queued is the
# difference of what came in and what has a verdict.
handled() {
    [[ $(victim 'd["handshakes"]["messages_received"]') -ge $1 ]] && [[ $(victim 'sum(d["drops"][r]
        for r in ("mac1_invalid", "mac2_missing", "handshake_invalid", "handshake_queue_full",
                  "handshake_stale", "handshake_unknown_peer", "rate_limited"))') -ge $1 ]]
}
under_load() { [[ $(victim 'd["handshakes"]["cookie_replies_sent"]') -gt 0 ]]; }

step "pitfall 51: a bad mac1 gets silence"
in_ns "$F" "$WORK/flood" 203.0.113.2 51820 "$(key_of b)" 5000 1 50 bad-mac1 >"$WORK/bad.json"
expect_equal "sent" "$(json "$WORK/bad.json" 'd["sent"]')" 5000
expect_equal "lengths that came back" "$(json "$WORK/bad.json" 'len(d["replies"])')" 0
wait_until 10 "the victim to be done with them" handled 5000
expect_equal "dropped for their mac1" "$(victim 'd["drops"]["mac1_invalid"]')" 5000
expect_equal "datagrams that left for their sources" "$(nft_count "$B" to_strangers)" 0

step "pitfall 52: a flood with a valid mac1"
observe reset-peak "${ENGINE_PID[$WB]}"
before=$(observe rss "${ENGINE_PID[$WB]}")
ip netns exec "$F" "$WORK/flood" 203.0.113.2 51820 "$(key_of b)" 20000 45 1000 >"$WORK/flood.json" &
flood=$!
BACKGROUND+=("$flood")
wait_until 10 "the victim to come under load" under_load

in_ns "$A" ping -n -q -c 100 -i 0.05 -W 5 10.77.0.2 >"$WORK/ping" &
ping=$!
in_ns "$A" ping -n -q -c 1 -W 10 10.78.0.2 >/dev/null & # asks the fresh peer for a handshake
BACKGROUND+=("$ping" "$!")
expect "TCP goes on, 20 MB each way, same bytes" traffic "$A" tcp 10.77.0.2 7000 20
wait "$ping" || true
expect_at_least "pings answered of 100" \
    "$(sed -n 's/.* \([0-9]*\) received.*/\1/p' "$WORK/ping")" 99
wait_until 30 "the fresh peer's handshake" has_handshake "$A" "$WC"
expect "while the flood goes on" kill -0 "$flood"
expect_at_least "cookies the fresh peer was given" "$(nft_count "$B" to_client_cookies)" 1
expect_ping "ping the fresh peer's tunnel" "$A" 10.78.0.2

kill "$flood"
wait "$flood" || fail "the flood: $(cat "$WORK/flood.json")"
say "  $(cat "$WORK/flood.json")"
expect_at_least "sent" "$(json "$WORK/flood.json" 'd["sent"]')" 40000
expect_equal "lengths that came back" "$(json "$WORK/flood.json" '" ".join(d["replies"])')" 64
expect_at_least "cookie replies received" "$(json "$WORK/flood.json" 'd["replies"]["64"]')" 1000
expect_at_least "cookie replies sent" "$(victim 'd["handshakes"]["cookie_replies_sent"]')" 1000
expect_at_least "dropped for want of a mac2" "$(victim 'd["drops"]["mac2_missing"]')" 1000
expect_equal "datagrams to strangers that are no cookie reply" \
    $(($(nft_count "$B" to_strangers) - $(nft_count "$B" to_strangers_cookies))) 0
after=$(observe peak "${ENGINE_PID[$WB]}")
say "  memory: $before kB before, at most $after kB"
# The queue of 4,096 messages is below 1 MB, the table of sources 1 MB; TCP buffers are reused.
expect_at_least "kB left of 4,096 more" $((before + 4096 - after)) 0
expect_ping "ping afterwards" "$A" 10.77.0.2
expect_ping "ping back" "$B" 10.77.0.1
