#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# While the link of a full tunnel is made anew, no packet that belongs into the tunnel leaves beside it,
# IPv4 or IPv6, also when the keeper dies in the middle; and what stops them is gone afterwards.
#
#   netns $A: $WA with 0.0.0.0/0, ::/0; default routes by 192.0.2.2, 2001:db8::2
#             a counter sees what leaves by $VA for 198.51.100.7 or 2001:db8:9::7
#   netns $B: $WB, an engine too; has those two addresses and echoes
#
# COMMAND: the command under test; default: .build/release/nexusguard
# ROUNDS: of kill -9 of the keeper that makes the link anew; default 4
#
# shellcheck source-path=SCRIPTDIR
: "${PEER:=${ENGINE:-$(cd "$(dirname "$0")/../.." && pwd)/.build/release/nexusguard-engine}}"
source "$(dirname "$0")/lib.sh"

COMMAND=${COMMAND:-$ROOT/.build/release/nexusguard}
ROUNDS=${ROUNDS:-4}
command -v "$COMMAND" >/dev/null || skip "no command at $COMMAND (build it, or set COMMAND)"
NEXUSGUARD_ENGINE=$(command -v "$ENGINE")
export NEXUSGUARD_ENGINE

topology_pair
in_ns "$A" ip route add default via 192.0.2.2
in_ns "$A" ip -6 route add default via 2001:db8::2
in_ns "$B" ip addr add 198.51.100.7/32 dev lo
in_ns "$B" ip addr add 2001:db8:9::7/128 dev lo nodad
in_ns "$A" nft -f - <<NFT
table inet t {
    counter v4 { }
    counter v6 { }
    chain out {
        type filter hook output priority 0
        oifname "$VA" ip daddr 198.51.100.7 counter name v4
        oifname "$VA" ip6 daddr 2001:db8:9::7 counter name v6
    }
}
NFT
beside() { echo $(($(nft_count "$A" v4) + $(nft_count "$A" v6))); }
keys_create a b
engine_start "$B" "$WB" "$PEER"
tunnel_configure "$B" "$WB" b a 2 endpoint 192.0.2.1:51820
servers_start "$B"
FILE=$WORK/$WA.conf
(umask 077 && cat >"$FILE") <<CONF
[Interface]
Address = 10.77.0.1/24, fd77::1/64
PrivateKey = $(cat "$WORK/a.key")
ListenPort = 51820
[Peer]
PublicKey = $(key_of b)
AllowedIPs = 0.0.0.0/0, ::/0
Endpoint = 192.0.2.2:51820
CONF

step "the counter counts"
expect "a ping beside" in_ns "$A" ping -n -q -c 1 -W 5 198.51.100.7
expect "and one by IPv6" in_ns "$A" ping -n -q -c 1 -W 5 2001:db8:9::7
expect_equal "counted" "$(beside)" 2

step "up"
ask up "$FILE"
expect_ping "ping through the tunnel" "$A" 198.51.100.7
expect_ping "and by IPv6" "$A" 2001:db8:9::7
expect_equal "beside it so far" "$(beside)" 2

# As many datagrams as the CPU has time for, to both addresses, until its standard input ends.
cat >"$WORK/flood.py" <<'PYTHON'
import select, socket, sys
flows = []
for family, address in (socket.AF_INET, "198.51.100.7"), (socket.AF_INET6, "2001:db8:9::7"):
    flows.append((socket.socket(family, socket.SOCK_DGRAM), (address, 7000)))
sent = refused = 0
print("begun", flush=True)
while not select.select([sys.stdin], [], [], 0.0005)[0]:
    for flow, target in flows:
        try:
            flow.sendto(b"x" * 100, target)
            sent += 1
        except OSError:
            refused += 1
print(sent, refused)
PYTHON
flood_begin() {
    rm -f "$WORK/gate" "$WORK/flood"
    mkfifo "$WORK/gate"
    exec {GATE}<>"$WORK/gate"
    ip netns exec "$A" python3 "$WORK/flood.py" <"$WORK/gate" >"$WORK/flood" 2>&1 &
    FLOOD=$!
    BACKGROUND+=("$FLOOD")
    wait_until 20 "datagrams flow" grep -q begun "$WORK/flood"
}
flood_end() { # DESCRIPTION
    local sent refused
    echo end >&"$GATE"
    wait "$FLOOD" || fail "the sender: $(cat "$WORK/flood")"
    exec {GATE}>&-
    read -r sent refused < <(tail -n 1 "$WORK/flood")
    say "  $1: $sent datagrams sent, $refused refused"
    expect_at_least "datagrams sent" "$sent" 100
    expect_equal "beside the tunnel" "$(($(beside) - 2))" 0
}
is_free() { [[ $(barriers) -eq 0 ]]; }
barriers() {
    { in_ns "$A" ip -4 route show table all && in_ns "$A" ip -6 route show table all; } |
        grep "unreachable default" | grep -c "proto 78" || true
}

for round in 1 2 3; do
    step "another engine, number $round"
    before=$(in_ns "$A" cat "/sys/class/net/$WA/ifindex")
    flood_begin
    ask up --renew "$FILE"
    expect_ping "the tunnel carries again" "$A" 198.51.100.7
    flood_end "renewal"
    expect "another link" test "$before" != "$(in_ns "$A" cat "/sys/class/net/$WA/ifindex")"
    expect_equal "unreachable routes left" "$(barriers)" 0
done

step "$ROUNDS times kill -9 of the keeper that makes the link anew"
RANDOM=17
KILLED=0
flood_begin
for ((round = 1; round <= ROUNDS; round++)); do
    nexusguard sync --renew -q "$FILE" >"$WORK/killed.log" 2>&1 &
    client=$!
    # The point is random, and the load of the machine makes it more so.
    sleep "0.$(printf %03d $((RANDOM % 250)))"
    if pid=$(keeper_pid); then
        kill -KILL "$pid" 2>/dev/null && KILLED=$((KILLED + 1))
    fi
    wait "$client" || true
    ask sync "$FILE"
    expect_ping "the tunnel after kill $round" "$A" 198.51.100.7
    expect_equal "unreachable routes left" "$(barriers)" 0
done
expect_at_least "keepers killed" "$KILLED" 1
flood_end "kills"

# died: as a keeper leaves it that is killed between the old link and the new one's routes.
died() {
    local pid table
    pid=$(keeper_pid) || fail "no keeper runs"
    kill -KILL "$pid"
    wait_until 10 "the keeper to be gone" is_gone kill -0 "$pid"
    table=$(($(in_ns "$A" wg show "$WA" fwmark)))
    in_ns "$A" ip route add unreachable default table "$table" metric 4294967294 proto 78
    in_ns "$A" ip -6 route add unreachable default table "$table" metric 4294967294 proto 78
    expect_equal "unreachable routes that it left" "$(barriers)" 2
}
step "the next keeper finds them, and down does"
died
ask sync "$FILE"
wait_until 10 "they are gone" is_free
expect_ping "the tunnel" "$A" 198.51.100.7
died
ask down "$WA"
expect_equal "unreachable routes left" "$(barriers)" 0
expect "the link is gone" is_gone in_ns "$A" ip link show "$WA"
expect_ping "the host's own way is back" "$A" 198.51.100.7
