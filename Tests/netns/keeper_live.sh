#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A tunnel under traffic: changes of it, and the death of its keeper, cost no packet; a link that is
# made anew (another engine, another back-end) costs what lies between the old one's end and one
# handshake, and a keeper that dies in the middle of that leaves one tunnel.
#
#   netns A: keeper of $WA  192.0.2.1 ═══ 192.0.2.2  netns B: PEER $WB, which knows where A is;
#            A learns where B is from its first packet
#   both ping each other every 10 ms; one TCP connection carries 4 Mbit/s from A to B
#   (in an emulated machine, which could do little else, a tenth of that)
#
# COMMAND: the command under test; default: .build/release/nexusguard
# BACKENDS: to switch to, one after the other; default: none, a link of the same kind is made anew.
#           "kernel userspace" where the kernel has WireGuard (tools/kernel-vm)
# ROUNDS: of kill -9 of the keeper while it makes a link anew; default 6
#
# The peer is an engine of ours unless PEER says otherwise: what a full buffer of another loses is
# nothing that a change has lost.
#
# shellcheck source-path=SCRIPTDIR
: "${PEER:=${ENGINE:-$(cd "$(dirname "$0")/../.." && pwd)/.build/release/nexusguard-engine}}"
source "$(dirname "$0")/lib.sh"

needs_command
BACKENDS=${BACKENDS:-}
ROUNDS=${ROUNDS:-6}
SLOWER=${KERNEL_VM:+10}
SLOWER=${SLOWER:-1}
INTERVAL=$(python3 -c "print($SLOWER / 100)")
etc_create

topology_pair
keys_create a b
engine_start "$B" "$WB" "$PEER"
tunnel_configure "$B" "$WB" b a 2 endpoint 192.0.2.1:51820

FILE=$WORK/$WA.conf
OTHERS="" # further peers
# config [LINE-OF-INTERFACE [PREFIXES-OF-B [LINE-OF-B]]]
config() {
    (
        umask 077
        cat >"$FILE" <<CONF
[Interface]
Address = 10.77.0.1/24, fd77::1/64
PrivateKey = $(cat "$WORK/a.key")
ListenPort = 51820
${1:-MTU = 1420}
[Peer]
PublicKey = $(key_of b)
AllowedIPs = 10.77.0.2/32, fd77::2/128${2:-}
${3:-}
$OTHERS
CONF
    )
}
facts() { # what no change may touch
    in_ns "$A" cat "/sys/class/net/$WA/ifindex"
    in_ns "$A" wg show "$WA" listen-port
    # On a slow machine the next one was due by itself (REKEY_AFTER_TIME, WireGuard paper section 6.1).
    ((SECONDS - BEGUN >= 100)) || in_ns "$A" wg show "$WA" latest-handshakes | grep -F "$(key_of b)"
}
received() { in_ns "$A" wg show "$WA" transfer | grep -F "$(key_of b)" | cut -f2; }

# pings NAME NAMESPACE ADDRESS: until `stop_pings NAME`, which sets SENT and LOST: what had no answer,
# before the last that had one.
declare -A PINGS=()
pings() {
    ip netns exec "$2" ping -n -i "$INTERVAL" -W 2 "$3" >"$WORK/ping.$1" 2>&1 &
    PINGS[$1]=$!
    BACKGROUND+=("$!")
}
stop_pings() {
    kill -INT "${PINGS[$1]}"
    wait "${PINGS[$1]}" || true
    read -r SENT LOST < <(flow_count "$WORK/ping.$1")
}

# What the engines dropped because their queues stay short: on a machine that is busy with other work
# that happens, and no change is to blame for it.
congested() {
    local interface
    for interface in "$WA" "$WB"; do
        [[ -S /run/nexusguard/$interface.engine ]] || continue
        python3 "$HERE/traffic.py" counters "/run/nexusguard/$interface.engine"
    done | { grep -o "_congested': [0-9]*" || true; } | awk '{ n += $2 } END { print n + 0 }'
}

step "up"
config
ask up "$FILE"
# An initiation that finds nobody is repeated after 5 s only (REKEY_TIMEOUT, WireGuard paper section 6.1).
expect "whoever up has told finds an engine that listens" in_ns "$B" ping -n -q -c 1 -W 4 10.77.0.1
expect_ping "ping from B" "$B" 10.77.0.1
expect_ping "ping to B" "$A" 10.77.0.2
expect_equal "where A has learned that B is" "$(wg_field "$A" "$WA" endpoints)" 192.0.2.2:51820

step "changes under traffic"
BEGUN=$SECONDS
facts >"$WORK/facts"
BEFORE=$(received) CONGESTED=$(congested) TOTAL=0
pings out "$A" 10.77.0.2
pings in "$B" 10.77.0.1
# Until its standard input ends: then both digests are printed.
cat >"$WORK/stream.py" <<'PYTHON'
import hashlib, random, select, socket, sys
if sys.argv[1] == "take":
    server = socket.create_server(("10.77.0.2", 7001))
    digest, connection = hashlib.sha256(), server.accept()[0]
    while data := connection.recv(65536):
        digest.update(data)
else:
    connection = socket.create_connection(("10.77.0.2", 7001))
    digest, numbers, total = hashlib.sha256(), random.Random(1), 0
    # 4 KiB each 8 ms are 4 Mbit/s.
    while not select.select([sys.stdin], [], [], 0.008 * int(sys.argv[2]))[0]:
        data = numbers.randbytes(4096)
        digest.update(data)
        connection.sendall(data)
        total += len(data)
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)  # the other side has it all
    print(total, file=sys.stderr)
print(digest.hexdigest())
PYTHON
ip netns exec "$B" python3 "$WORK/stream.py" take >"$WORK/taken" 2>&1 &
TAKER=$!
BACKGROUND+=("$TAKER")
wait_until 10 "the TCP server" listens "$B" t 7001
mkfifo "$WORK/gate"
exec {GATE}<>"$WORK/gate"
ip netns exec "$A" python3 "$WORK/stream.py" give "$SLOWER" <"$WORK/gate" >"$WORK/given" 2>"$WORK/total" &
GIVER=$!
BACKGROUND+=("$GIVER")
changes() { # DESCRIPTION ARGUMENT…: of sync, which has something to do
    say "  $ ($A) nexusguard sync ${*:2}: $1"
    nexusguard sync "${@:2}" >"$WORK/ask.log" 2>"$WORK/changes.log" || fail "$1: $(cat "$WORK/changes.log")"
    expect "$1: $(cat "$WORK/ask.log")" test -s "$WORK/changes.log"
}
for number in 1 2 3 4 5; do
    OTHERS+="[Peer]
PublicKey = $(wg genkey | wg pubkey)
AllowedIPs = 10.91.$number.0/24
"
done
config
changes "five more peers" "$FILE"
config "" ", 10.92.0.0/16, fd92::/64"
changes "more prefixes, no MTU" "$FILE"
OTHERS=""
config "MTU = 1420" ", 10.92.0.0/16" "PersistentKeepalive = 25"
changes "the peers go, a keepalive comes" "$FILE"
config "MTU = 1380"
changes "another MTU, the keepalive goes" "$FILE"
if has_resolver_file; then
    config "DNS = 10.77.0.53"
    changes "a resolver" "$FILE"
    expect "the resolver's file says so" grep -q "nameserver 10.77.0.53" "$WORK/etc/resolv.conf"
    config
    changes "no resolver" "$FILE"
    expect_equal "the resolver's file" "$(cat "$WORK/etc/resolv.conf")" "nameserver 192.0.2.53"
fi
changes "a forward" --forward tcp:8443=10.77.0.2:443 "$FILE"
changes "another forward" --masquerade --forward tcp:8444=10.77.0.2:443 "$FILE"
KEEPER=$(keeper_pid) || fail "no keeper runs"
kill -KILL "$KEEPER"
wait_until 10 "the keeper to be gone" is_gone kill -0 "$KEEPER"
config "MTU = 1420" ", 10.93.0.0/16"
changes "by another keeper, without the forward" "$FILE"
in_ns "$A" nft flush ruleset
table_is_back() { in_ns "$A" nft list tables | grep -q "nexusguard-$WA"; }
wait_until 10 "the nft table to be back" table_is_back
echo end >&"$GATE"
wait "$GIVER" || fail "TCP: $(tail -n 3 "$WORK/total")"
wait "$TAKER" || fail "TCP: $(tail -n 3 "$WORK/taken")"
for direction in out in; do
    stop_pings "$direction"
    say "  pings ($direction) without an answer: $LOST of $SENT"
    TOTAL=$((TOTAL + LOST))
done
CONGESTED=$(($(congested) - CONGESTED))
expect "lost by the changes: $TOTAL less $CONGESTED that a full queue dropped" test "$TOTAL" -le "$CONGESTED"
expect "TCP: $(cat "$WORK/total") bytes, the same ones" diff "$WORK/given" "$WORK/taken"
facts >"$WORK/after"
expect "number of the link, port, latest handshake (where none was due): as before" \
    diff "$WORK/after" <(head -n "$(wc -l <"$WORK/after")" "$WORK/facts")
expect_at_least "bytes received since" "$(($(received) - BEFORE))" 10000

# ---- another link ------------------------------------------------------------------------------

state() {
    in_ns "$A" cat "/sys/class/net/$WA/mtu"
    in_ns "$A" ip -o addr show "$WA" scope global | sed -E 's/^[0-9]+: //; s/ *valid_lft.*//'
    in_ns "$A" ip route show table all | grep -v fe80 | sort
    in_ns "$A" ip -6 route show table all | grep -v -e fe80 -e ff00 | sort
    in_ns "$A" ip rule
    in_ns "$A" nft list ruleset
    in_ns "$A" wg showconf "$WA"
}
links() { in_ns "$A" ip -o link | wc -l; }
# The handshake that the new link begins ends when both engines have had a processor; B itself would begin
# one 15 s after a packet without an answer.
is_answered() { in_ns "$B" ping -n -q -c 1 -W 1 10.77.0.1; }
# renew DESCRIPTION ARGUMENT…: a link in the place of the one that is there, under traffic.
renew() {
    local description=$1 index
    shift
    state >"$WORK/state"
    index=$(in_ns "$A" cat "/sys/class/net/$WA/ifindex")
    pings out "$A" 10.77.0.2
    pings in "$B" 10.77.0.1
    expect_ping "traffic flows" "$B" 10.77.0.1
    ask sync "$@" "$FILE"
    expect "what changes is told" grep -q "one new handshake with each peer" "$WORK/ask.log"
    wait_until 4 "traffic to flow again" is_answered
    # 10 ms each: at most a second without an answer (ten where the machine is emulated).
    for direction in out in; do
        stop_pings "$direction"
        expect "$description: $LOST of $SENT pings ($direction) had no answer (at most 100)" test "$LOST" -le 100
    done
    expect "another link" test "$index" != "$(in_ns "$A" cat "/sys/class/net/$WA/ifindex")"
    state | diff - "$WORK/state" >"$WORK/diff" || {
        cat "$WORK/diff"
        fail "addresses, routes, rules, nft, peers or learned endpoints changed"
    }
    expect_equal "what is missing" "$(nexusguard plan "$FILE" 2>/dev/null)" ""
    expect "nothing is left over" is_gone sh -c "ls /run/nexusguard $SOCKETS | grep -e ^${WA}_ -e ^$WA.replacing"
}

config
ask sync "$FILE"
LINKS=$(links)
if [[ -z $BACKENDS ]]; then
    step "the same kind of link, made anew, twice"
    renew "another engine" --renew
    renew "and another" --renew
else
    for backend in $BACKENDS; do
        step "from the one back-end to the other: $backend"
        renew "$backend" --backend "$backend"
    done
fi
expect_equal "links" "$(links)" "$LINKS"

step "$ROUNDS times kill -9 of the keeper that makes the link anew"
RANDOM=11
for ((round = 1; round <= ROUNDS; round++)); do
    keeper_killed_within 250 sync --renew -q "$FILE"
    ask sync "$FILE"
    # Killed between the exchange and the first word of the new link, B notices by itself: 15 s after what it
    # sent last (KEEPALIVE_TIMEOUT + REKEY_TIMEOUT, WireGuard paper section 6.5), and 5 for each repetition.
    wait_until 10 "a tunnel after kill $round" is_answered
    [[ $(links) -eq $LINKS ]] || fail "links: $(in_ns "$A" ip -o link)"
done
expect_at_least "keepers killed" "$KILLED" 1

step "down"
ask down "$WA"
is_alone() { [[ -z $(ip netns pids "$A") ]]; }
wait_until 10 "no process of ours to be left" is_alone
expect "no file of ours is left" is_gone sh -c "ls /run/nexusguard $SOCKETS | grep -e ^$WA | grep -v lock"
