#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A hub with 1,000 enrolled peers: each of them gets a session and an answer through the hub's tunnel,
# and one that is enrolled afterwards costs the others nothing: no packet of an established flow, no
# handshake, no endpoint.
#
#      host hub                  host site                host peers
#   192.0.2.1:8443 ──────────── 192.0.2.2 ─────────────── 192.0.2.3
#   nghub0 10.80.0.1             ng0 10.80.0.2             1,000 peers 198.18.0.1 …, one process
#
#   PEERS, MORE   how many there are, and how many come one by one    default: 1000, 20
#   COMMAND       the command under test    default: .build/release/nexusguard
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"
# shellcheck source=../../tools/fleet.sh
source "$ROOT/tools/fleet.sh"

PEERS=${PEERS:-1000} MORE=${MORE:-20}
needs_command
C=$ROOT/CSources/CTunnel
"${CC:-cc}" -std=gnu17 -D_GNU_SOURCE -O2 -I"$C" -o "$WORK/peers" "$ROOT/Benchmarks/rig/reconnect.c" \
    "$C"/{noise,cookie}.c "$C"/crypto/{hash,blake2s,curve25519}.c -lsodium -lpthread

code=0 # cleanup looks at it
show_logs() {
    local log
    for log in "$WORK"/{hub,site}.log; do
        say "-- $(basename "$log")"
        tail -n 15 "$log"
    done
}
trap 'code=$?; set +e; [[ $code -eq 0 ]] || show_logs; hosts_end; (exit "$code"); cleanup' EXIT
hosts_begin "$P"

# enrol FIRST COUNT: of the keys of $WORK/keys, at the end of $WORK/peers.txt
enrol() {
    tail -n +"$(($1 + 1))" "$WORK/keys" | head -n "$2" |
        on hub python3 -B "$HERE/hub_peers.py" "$FLEET_HUB" 8443 "$FLEET_TOKEN" "$1" >>"$WORK/peers.txt"
}
peers_at_hub() { on hub wg show nghub0 peers | wc -l; }
has_peers() { (($(peers_at_hub) == $1)); }
# Of the peers whose keys are listed: key, endpoint, prefixes, time of the handshake.
sessions() { on hub wg show nghub0 dump | tail -n +2 | grep -F -f "$1" | cut -f1,3-5 | sort; }
# connect COUNT: the first peers make their handshakes, each until an echo has come back.
connect() {
    (cat "$WORK/seed" && head -n "$1" "$WORK/peers.txt") |
        on peers "$WORK/peers" run "$FLEET_HUB" 51820 "$HUB_KEY" "$1" 60 >"$WORK/connected.json"
}

step "a hub and a site with a real agent"
fleet_hub || fail "the hub does not come up"
run on hub "$COMMAND" hub set pools=10.80.0.0/16
HUB_KEY=$(on hub "$COMMAND" hub status | sed -n 's/^public key: //p')
fleet_token 0 || fail "no token"
fleet_site site 192.0.2.2 || fail "no site"
expect "the site is connected" on site "$COMMAND" wait --timeout 30

step "$PEERS peers are enrolled"
host_add peers 192.0.2.3/24
on peers ip route add local 198.18.0.0/15 dev lo
on hub ip route add 198.18.0.0/15 via 192.0.2.3
(umask 077 && wg genkey >"$WORK/seed")
"$WORK/peers" config $((PEERS + MORE)) <"$WORK/seed" | sed -n 's/^PublicKey = //p' >"$WORK/keys"
head -n "$PEERS" "$WORK/keys" >"$WORK/first"
(umask 077 && true >"$WORK/peers.txt")
start=${EPOCHREALTIME/./}
enrol 0 "$PEERS"
say "  $(((${EPOCHREALTIME/./} - start) / 1000)) ms"
wait_until 30 "all are peers of the hub's interface" has_peers $((PEERS + 1))

step "all of them connect"
connect "$PEERS"
say "  $(cat "$WORK/connected.json")"
expect_equal "peers that got an answer through the tunnel" "$(json "$WORK/connected.json" 'd["back"]')" "$PEERS"

step "$MORE more, one by one, while packets flow"
sessions "$WORK/first" >"$WORK/before"
expect_equal "peers with a session" "$(awk '$4 > 0' "$WORK/before" | wc -l)" "$PEERS"
on site env --default-signal=INT ping -n -i 0.01 -W 2 10.80.0.1 >"$WORK/flow.log" 2>&1 &
FLOW=$!
for ((number = PEERS; number < PEERS + MORE; number++)); do
    enrol "$number" 1
    wait_until 30 "number $number is a peer" has_peers $((number + 2))
done
flow_goes_on "$WORK/flow.log"
kill -INT "$(ip netns pids "${P}site" | xargs ps -o pid=,comm= -p | awk '$2 == "ping" { print $1 }')"
wait "$FLOW" || true
read -r sent lost < <(flow_count "$WORK/flow.log")
expect_at_least "pings of the established flow" "$sent" $((10 * MORE))
expect_equal "of $sent pings without an answer" "$lost" 0
sessions "$WORK/first" >"$WORK/after"
expect "key, endpoint, prefixes and handshake of the $PEERS are as before" \
    cmp "$WORK/before" "$WORK/after"

step "the newcomers connect too"
connect $((PEERS + MORE))
say "  $(cat "$WORK/connected.json")"
expect_equal "peers that got an answer through the tunnel" \
    "$(json "$WORK/connected.json" 'd["back"]')" $((PEERS + MORE))
hub=$(ip netns pids "${P}hub" | xargs ps -o pid=,args= -p | awk '/nexusguard hub run/ { print $1; exit }')
say "  the hub: $(awk '/VmRSS/ { print $2 }' "/proc/$hub/status") kB resident"
