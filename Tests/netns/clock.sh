#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A machine begins with a clock of long ago, and its peer has seen later handshakes (C78): without what
# the keeper has recorded they are refused, with it they are not. The clock of a network namespace
# cannot be set, so the other end of it is moved: the first life sends labels of tomorrow.
#
#     host site1         host site2
#   192.0.2.1           192.0.2.2
#   wg0 10.77.0.1       wg0 10.77.0.2
#        └──── a switch ────┘
#
# COMMAND: the command under test; default: .build/release/nexusguard
#
# shellcheck source-path=SCRIPTDIR
PEER=true
source "$(dirname "$0")/lib.sh"
# shellcheck source=../../tools/hosts.sh
source "$ROOT/tools/hosts.sh"

needs_command
RECORD=/var/lib/nexusguard/tunnels/wg0.clock
TOMORROW=$(($(date +%s) + 86400))

code=0 # cleanup looks at it
trap 'code=$?; set +e; hosts_end; (exit "$code"); cleanup' EXIT
hosts_begin "$P"
host_add site1 192.0.2.1/24
host_add site2 192.0.2.2/24
keys_create a b

configuration() { # OWN-KEY ADDRESS PEER-KEY ALLOWED [FURTHER-LINE]: into OWN-KEY/wg0.conf
    mkdir "$WORK/$1"
    (
        umask 077
        cat >"$WORK/$1/wg0.conf" <<CONF
[Interface]
PrivateKey = $(cat "$WORK/$1.key")
Address = $2/24
ListenPort = 51820
MTU = 1420
[Peer]
PublicKey = $(key_of "$3")
AllowedIPs = $4/32
${5:-}
CONF
    )
}
configuration a 10.77.0.1 b 10.77.0.2 "Endpoint = 192.0.2.2:51820"
configuration b 10.77.0.2 a 10.77.0.1

# A request to an engine's state socket (docs/engine-state.md); prints the first line of the answer.
# shellcheck disable=SC2016 # Python's own
state() { # HOST REQUEST
    on "$1" python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect("/run/nexusguard/wg0.engine")
s.sendall(sys.argv[1].encode())
print(s.makefile().readline().strip())' "$2"
}
refused() {
    state site2 $'get=1\n\n' | python3 -c 'import json, sys; print(json.load(sys.stdin)["drops"]["handshake_replayed"])'
}

keeper_start() {
    on site1 "$COMMAND" keep --foreground wg0 >>"$WORK/keep.log" 2>&1 &
    BACKGROUND+=($!)
    wait_until 15 "the keeper" on site1 "$COMMAND" status wg0
}
keeper_process() { on site1 cat /run/nexusguard/wg0.lock; }
keeper_is_gone() { ! kill -0 "$KEEPER" 2>/dev/null; }
keeper_stop() {
    KEEPER=$(keeper_process)
    kill -TERM "$KEEPER"
    wait_until 10 "the keeper's end" keeper_is_gone
}
has_link() { on site1 ip link show wg0; }
# What a reboot takes: all but /var/lib.
reboot() {
    on site1 ip link del wg0
    wait_until 10 "the engine's end" is_gone on site1 test -S /run/nexusguard/wg0.engine
    on site1 sh -c 'rm -f /run/nexusguard/wg0.*'
}
is_up() { on site1 "$COMMAND" status wg0 | grep -q ': up'; }

# The peer answers and does not call, or a handshake of its own would do: no initiation (type 1, the
# first byte after the UDP header) leaves it.
on site2 nft -f - <<'NFT'
table inet t {
    chain out {
        type filter hook output priority 0
        udp dport 51820 @th,64,8 1 drop
    }
}
NFT

step "handshakes of tomorrow"
run on site2 "$COMMAND" up --quiet --backend userspace "$WORK/b/wg0.conf"
keeper_start
run on site1 "$COMMAND" up --quiet --persist --backend userspace "$WORK/a/wg0.conf"
expect_equal "the engine takes a floor" "$(state site1 "set=1"$'\n'"timestamp_floor=$TOMORROW.000000000"$'\n\n')" errno=0
expect "the tunnel carries data" on site1 ping -c 1 -W 5 10.77.0.2
keeper_stop
expect_equal "what was recorded" "$(on site1 cut -d' ' -f1-2 "$RECORD")" "nexusguard-clock 1"
expect_at_least "and when it was" "$(on site1 cut -d' ' -f3 "$RECORD")" "$TOMORROW"
expect_equal "its mode" "$(on site1 stat -c %a "$RECORD")" 600

step "a reboot without the record: the peer refuses the handshakes"
on site1 mv "$RECORD" "$RECORD.kept"
reboot
keeper_start
wait_until 15 "the tunnel" is_up
before=$(refused)
on site1 ping -c 1 -W 5 -w 5 10.77.0.2 >/dev/null && fail "a handshake of before was accepted"
expect_at_least "handshakes that the peer refused" "$(refused)" "$((before + 1))"
keeper_stop

step "a reboot with it: the peer accepts them"
on site1 mv "$RECORD.kept" "$RECORD"
reboot
keeper_start
wait_until 15 "the tunnel" is_up
before=$(refused)
expect "the tunnel carries data" on site1 ping -c 3 -i 0.05 -W 5 10.77.0.2
expect_equal "handshakes that the peer refused" "$(refused)" "$before"
on site1 "$COMMAND" status wg0 >"$WORK/status"
expect "status says how it is" grep -q "the clock is 8[0-9]* s behind its latest handshake" "$WORK/status"

step "another keeper costs no packet"
on site1 env --default-signal=INT ping -i 0.02 -W 2 10.77.0.2 >"$WORK/flow.log" 2>&1 &
FLOW=$!
BACKGROUND+=("$FLOW")
wait_until 10 "packets flow" grep -q 'icmp_seq=3 ' "$WORK/flow.log"
keeper_stop
keeper_start
wait_until 15 "the tunnel" is_up
flow_goes_on "$WORK/flow.log"
kill -INT "$(ip netns pids "${P}site1" | xargs -r ps -o pid=,comm= -p | awk '$2 == "ping" { print $1; exit }')"
wait "$FLOW" || true
read -r sent lost < <(flow_count "$WORK/flow.log")
expect_equal "pings of $sent that did not come back" "$lost" 0
run on site1 "$COMMAND" down wg0
expect "what it sent is remembered beyond its end" on site1 test -s "$RECORD"
