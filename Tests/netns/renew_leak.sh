#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# While the link of a tunnel is made anew, no packet that belongs into the tunnel leaves beside it,
# IPv4 or IPv6, also when the keeper dies in the middle; and what stops them is gone afterwards. So for
# the tunnels that have a wider route, or another's of the same width, behind theirs:
#
#   full    0.0.0.0/0 and ::/0, with a table and rules of their own
#   halves  0.0.0.0/1 and so on, in the main table before the default routes
#   table   Table = 777, to which a rule of the host's leads, and in which somebody else has a default route
#
#   netns $A: $WA; default routes by 192.0.2.2, 2001:db8::2
#             a counter sees what leaves by $VA for 198.51.100.7 or 2001:db8:9::7
#   netns $B: $WB, an engine too; has those two addresses and echoes
#
# COMMAND: the command under test; default: .build/release/nexusguard
# ROUNDS: of kill -9 of the keeper that makes the link anew, for each of them; default 2
#
# shellcheck source-path=SCRIPTDIR
: "${PEER:=${ENGINE:-$(cd "$(dirname "$0")/../.." && pwd)/.build/release/nexusguard-engine}}"
source "$(dirname "$0")/lib.sh"

needs_command
ROUNDS=${ROUNDS:-2}

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
config() { # LINE-OF-INTERFACE ALLOWED-IPS
    (umask 077 && cat >"$FILE") <<CONF
[Interface]
Address = 10.77.0.1/24, fd77::1/64
PrivateKey = $(cat "$WORK/a.key")
ListenPort = 51820
$1
[Peer]
PublicKey = $(key_of b)
AllowedIPs = $2
Endpoint = 192.0.2.2:51820
CONF
}

step "the counter counts"
expect "a ping beside" in_ns "$A" ping -n -q -c 1 -W 5 198.51.100.7
expect "and one by IPv6" in_ns "$A" ping -n -q -c 1 -W 5 2001:db8:9::7
expect_equal "counted" "$(beside)" 2

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
    BEFORE=$(beside)
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
    expect_equal "beside the tunnel" "$(($(beside) - BEFORE))" 0
}
barriers() {
    { in_ns "$A" ip -4 route show table all && in_ns "$A" ip -6 route show table all; } |
        grep "^unreachable" | grep -c "proto 78" || true
}
expect_through() { # DESCRIPTION
    expect_ping "$1" "$A" 198.51.100.7
    expect_ping "  by IPv6 too" "$A" 2001:db8:9::7
}
# What the host has besides, and the keeper's files but its lock.
host_state() {
    in_ns "$A" ip -4 rule
    in_ns "$A" ip -6 rule
    in_ns "$A" ip -4 route show table all
    in_ns "$A" ip -6 route show table all | sed 's/fe80::[0-9a-f:]*/fe80::x/'
    find /run/nexusguard -name "$WA*" -not -name "*.lock"
}

# The keeper is killed as soon as the kernel tells of the first unreachable route, with who has asked it,
# who would start another one: so it leaves some, unless it was quicker; then again.
dies_with_barriers() {
    local pid tell line try client
    for try in {1..10}; do
        ask sync "$FILE"
        pid=$(keeper_pid) || fail "no keeper runs"
        exec {tell}< <(exec ip netns exec "$A" ip monitor route)
        MONITOR=$!
        BACKGROUND+=("$MONITOR")
        # Not in_ns: the process id is to be its own.
        ip netns exec "$A" "$COMMAND" sync --renew -q "$FILE" >"$WORK/killed.log" 2>&1 &
        client=$!
        while read -r -t $((30 * PATIENCE)) line <&"$tell"; do
            [[ $line != unreachable*"proto 78"* ]] || break
        done
        kill -KILL "$pid" "$client"
        kill "$MONITOR"
        exec {tell}<&-
        wait "$client" 2>/dev/null || true
        wait_until 10 "the keeper to be gone" is_gone kill -0 "$pid"
        [[ $(barriers) -eq 0 ]] || break
    done
    expect_at_least "unreachable routes that it left (try $try)" "$(barriers)" 1
}

# check NAME LINE-OF-INTERFACE ALLOWED-IPS
check() {
    local round before
    config "$2" "$3"
    host_state >"$WORK/before"
    ask up "$FILE"
    expect_through "ping through the tunnel"

    step "$1: another engine"
    before=$(in_ns "$A" cat "/sys/class/net/$WA/ifindex")
    flood_begin
    ask up --renew "$FILE"
    expect_through "the tunnel carries again"
    flood_end "renewal"
    expect "another link" test "$before" != "$(in_ns "$A" cat "/sys/class/net/$WA/ifindex")"
    expect_equal "unreachable routes left" "$(barriers)" 0

    step "$1: $ROUNDS times kill -9 of the keeper that makes the link anew"
    RANDOM=17 KILLED=0
    flood_begin
    for ((round = 1; round <= ROUNDS; round++)); do
        keeper_killed_within 250 sync --renew -q "$FILE"
        ask sync "$FILE"
        expect_ping "the tunnel after kill $round" "$A" 198.51.100.7
        expect_equal "unreachable routes left" "$(barriers)" 0
    done
    expect_at_least "keepers killed" "$KILLED" 1
    dies_with_barriers
    ask sync "$FILE"
    expect_through "the tunnel of the next keeper"
    expect_equal "unreachable routes left" "$(barriers)" 0
    flood_end "kills"

    step "$1: down finds them too"
    dies_with_barriers
    ask down "$WA"
    expect "the link is gone" is_gone in_ns "$A" ip link show "$WA"
    expect "routes, rules and files as before" diff "$WORK/before" <(host_state)
    expect_ping "the host's own way is back" "$A" 198.51.100.7
}

step "full: everything, by a table and rules of its own"
check full "" "0.0.0.0/0, ::/0"
step "halves: everything, in the main table"
check halves "" "0.0.0.0/1, 128.0.0.0/1, ::/1, 8000::/1"
step "table: a table that the file names"
in_ns "$A" ip rule add pref 700 to 198.51.100.0/24 lookup 777
in_ns "$A" ip -6 rule add pref 700 to 2001:db8:9::/48 lookup 777
in_ns "$A" ip route add default via 192.0.2.2 table 777 metric 500
in_ns "$A" ip -6 route add default via 2001:db8::2 table 777 metric 2000
check table "Table = 777" "0.0.0.0/0, ::/0"
