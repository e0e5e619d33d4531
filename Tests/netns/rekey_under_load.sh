#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Pitfall 41: the session is renewed after 120 s under load without losing a packet, with one
# initiation per 5 s at most. Takes 130 s of real time. REKEY_PEER=PROGRAM puts another one at B.
#
#   netns A: ENGINE $WA  192.0.2.1 ═══ 192.0.2.2  netns B: ENGINE $WB
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

topology_pair
for end in "$A" "$B"; do
    in_ns "$end" nft -f - <<'NFT'
table inet t {
    counter initiations {}
    chain out {
        type filter hook output priority 0
        udp dport 51820 udp length 156 @th,64,8 1 counter name initiations
    }
}
NFT
done
tunnel_pair "$ENGINE" "${REKEY_PEER:-$ENGINE}"
expect_ping "ping" "$A" 10.77.0.2
first=$(wg_field "$A" "$WA" latest-handshakes)

# Both directions at once, 2 × 10 Mbit/s: paced, so that a loss is the tunnel's doing.
iperf "$A" 10.77.0.2 "$B" "$WORK/udp.json" -u -b 10M -l 1360 -t 130 -w 4M --bidir

packets() { json "$WORK/udp.json" "sum(s['udp']['packets'] for s in d['end']['streams'] if s['udp']['sender'] == $1)"; }
lost() { json "$WORK/udp.json" "sum(s['udp']['lost_packets'] for s in d['end']['streams'] if s['udp']['sender'] == $1)"; }
expect_at_least "datagrams from the engine's side" "$(packets True)" 100000
expect_at_least "datagrams from the peer's side" "$(packets False)" 100000
expect_equal "lost, from the engine's side" "$(lost True)" 0
expect_equal "lost, from the peer's side" "$(lost False)" 0

second=$(wg_field "$A" "$WA" latest-handshakes)
expect_at_least "seconds between the handshakes" $((second - first)) 115
initiations=$(($(nft_count "$A" initiations) + $(nft_count "$B" initiations)))
# The first, and one for the renewal; the side that answers may have one on its way as well.
expect_at_least "initiations in all" "$initiations" 2
expect_at_least "initiations left of a bound of 4" $((4 - initiations)) 0
# 100,000 datagrams with their inner headers. (nft counts a GSO train as one packet.)
expect_at_least "bytes sent, as wg shows them" "$(wg_field "$A" "$WA" transfer | cut -f2)" 138000000
