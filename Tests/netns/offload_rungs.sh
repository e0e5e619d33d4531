#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every rung of the offload ladder and every worker count carries the same bytes, and with several
# workers no flow is reordered (pitfall 35).
#
#   netns A: ENGINE $WA [switches]  ═══  netns B: ENGINE $WB [the same switches]
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

topology_pair
engine_accepts_option --no-udp-gso || skip "$ENGINE has no offload switches"

servers_start "$B"
with() { # DESCRIPTION SWITCH…
    step "$1"
    shift
    ARGS_A=("$@") ARGS_B=("$@")
    tunnel_pair "$ENGINE" "$ENGINE"
    expect_ping "ping" "$A" 10.77.0.2
    expect_traffic "$A" 10.77.0.2 20
    expect_traffic "$A" fd77::2 20
}

with "every offload"
tunnel_pair_stop
# What --help names is what is tested: a new switch cannot be forgotten.
mapfile -t switches < <("$ENGINE" --help | grep -oE -- '--no-[a-z-]+' | sort -u)
expect_at_least "switches" "${#switches[@]}" 9
for switch in "${switches[@]}"; do
    with "$switch" "$switch"
    tunnel_pair_stop
done
with "no offload at all" "${switches[@]}"
tunnel_pair_stop

step "one end with every offload, the other with none"
ARGS_A=() ARGS_B=("${switches[@]}")
tunnel_pair "$ENGINE" "$ENGINE"
expect_traffic "$A" 10.77.0.2 20
tunnel_pair_stop

# Losses make TCP fill holes, which counts as out of order: so UDP with sequence numbers is the
# judge, and TCP where nothing was sent twice.
for workers in 1 2 4; do
    with "pitfall 35: $workers worker pair(s), no flow is reordered" --workers "$workers"
    for reverse in "" -R; do
        iperf "$A" 10.77.0.2 "$B" "$WORK/udp.json" -u -b 50M -l 1360 -P 4 -t 3 -w 4M $reverse
        expect_at_least "datagrams received" \
            "$(json "$WORK/udp.json" 'd["end"]["sum"]["packets"] - d["end"]["sum"]["lost_packets"]')" 30000
        expect_equal "datagrams out of order" \
            "$(json "$WORK/udp.json" 'sum(s["udp"]["out_of_order"] for s in d["end"]["streams"])')" 0
    done
    receiver=$B
    for reverse in "" -R; do
        before=$(net_counter "$receiver" TcpExt TCPOFOQueue)
        iperf "$A" 10.77.0.2 "$B" "$WORK/tcp.json" -n 100M -P 4 -C cubic $reverse
        sent_twice=$(json "$WORK/tcp.json" 'd["end"]["sum_sent"]["retransmits"]')
        out_of_order=$(($(net_counter "$receiver" TcpExt TCPOFOQueue) - before))
        if [[ $sent_twice -eq 0 ]]; then
            expect_equal "TCP segments out of order (none was sent twice)" "$out_of_order" 0
        else
            say "  note: $sent_twice segments sent twice, $out_of_order out of order: no verdict"
        fi
        receiver=$A
    done
    tunnel_pair_stop
done
