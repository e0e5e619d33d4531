#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# From a configuration file to a tunnel and back, as people type it: up on two hosts, ping, plan and
# sync of one changed peer, show, save, confirm, down; and beside wg-quick on the same file.
#
#   netns A: wg0.conf $WA  192.0.2.1 ═══ 192.0.2.2  netns B: wg0.conf $WB, 198.51.100.1 on lo
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

needs_command
BACKEND=${BACKEND:-userspace} # kernel: under tools/kernel-vm

topology_pair
keys_create a b c
(umask 077 && wg genpsk >"$WORK/psk")

# config NAME NUMBER PEER-KEY ENDPOINT ALLOWED-IPS [LINE…]: a file for the tunnel $NAME
config() {
    local name=$1 number=$2 peer=$3 endpoint=$4 allowed=$5
    shift 5
    (
        umask 077
        {
            printf '[Interface]\nPrivateKey = %s\n' "$(cat "$WORK/$name.key")"
            printf 'Address = 10.77.0.%d/24, fd77::%d/64\nListenPort = 51820\n' "$number" "$number"
            printf '%s\n' "$@"
            printf '[Peer]\nPublicKey = %s\nPresharedKey = %s\n' "$peer" "$(cat "$WORK/psk")"
            printf 'AllowedIPs = %s\nEndpoint = %s\n' "$allowed" "$endpoint"
        } >"$WORK/config"
    )
}
FILE_A=$WORK/$WA.conf FILE_B=$WORK/$WB.conf
config a 1 "$(key_of b)" 192.0.2.2:51820 "10.77.0.2/32, fd77::2/128"
mv "$WORK/config" "$FILE_A"
config b 2 "$(key_of a)" 192.0.2.1:51820 "10.77.0.1/32, fd77::1/128"
mv "$WORK/config" "$FILE_B"
in_ns "$B" ip addr add 198.51.100.1/32 dev lo

# command NAMESPACE ARGUMENT…: output in $WORK/out, messages in $WORK/err, exit code in STATUS
STATUS=0
command_in() {
    local ns=$1
    shift
    say "  $ ($ns) nexusguard $*"
    STATUS=0
    in_ns "$ns" "$COMMAND" "$@" >"$WORK/out" 2>"$WORK/err" || STATUS=$?
}
succeed() {
    command_in "$@"
    [[ $STATUS -eq 0 ]] || {
        cat "$WORK/out" "$WORK/err"
        fail "nexusguard ${*:2}: exit code $STATUS"
    }
    CHECKS=$((CHECKS + 1))
}
fails_with() { # CODE NAMESPACE ARGUMENT…
    local code=$1
    shift
    command_in "$@"
    expect_equal "exit code" "$STATUS" "$code"
}
# host_state NAMESPACE: what a tunnel may leave behind
host_state() {
    in_ns "$1" ip -d link
    in_ns "$1" ip addr
    in_ns "$1" ip -4 route show table all
    in_ns "$1" ip -6 route show table all
    in_ns "$1" ip -4 rule
    in_ns "$1" ip -6 rule
    in_ns "$1" nft list ruleset
    in_ns "$1" sysctl net.ipv4.conf.all.src_valid_mark
    { find /run/nexusguard /var/run/wireguard -name "$P*" -not -name "*.lock" || true; } | sort
} 2>/dev/null
steady_state() { host_state "$1" | sed -E 's/ (expires|valid_lft|preferred_lft) [^ ]+//g'; }
steady_state "$A" >"$WORK/before"
is_as_before() { diff "$WORK/before" <(steady_state "$A") >"$WORK/left"; }
await_as_before() {
    local deadline=$((SECONDS + 16 * PATIENCE))
    until is_as_before; do
        ((SECONDS < deadline)) || {
            cat "$WORK/left"
            fail "the host of A is not as it was before"
        }
        sleep 0.05 # between two looks
    done
    CHECKS=$((CHECKS + 1))
    say "  ok: the host of A is as before"
}

step "files that are refused change nothing"
chmod 644 "$FILE_A"
fails_with 5 "$A" up "$FILE_A"
expect "C95: the chmod is named" grep -qF "chmod 600 $FILE_A" "$WORK/err"
chmod 600 "$FILE_A"
mkdir "$WORK/h"
(umask 077 && sed "s|^\[Peer\]|PostUp = touch $WORK/hook-%i\n[Peer]|" "$FILE_A" >"$WORK/h/$WA.conf")
fails_with 5 "$A" up "$WORK/h/$WA.conf"
expect "C26: the command is shown" grep -qF "PostUp = touch $WORK/hook-%i" "$WORK/err"
fails_with 3 "$A" sync "$FILE_A"
fails_with 3 "$A" down "$WA"
fails_with 3 "$A" status "$WA"
fails_with 2 "$A" up "$FILE_A" --backend quantum
if command -v setpriv >/dev/null; then
    step "C83: a missing capability is named"
    STATUS=0
    in_ns "$A" setpriv --bounding-set=-net_admin "$COMMAND" up "$FILE_A" 2>"$WORK/err" || STATUS=$?
    expect_equal "exit code" "$STATUS" 4
    expect "the capability is named" grep -q CAP_NET_ADMIN "$WORK/err"
    for words in "check $FILE_A" "strip $FILE_A" "show interfaces"; do
        # shellcheck disable=SC2086 # words
        expect "  ${words%% *} goes on without it" \
            in_ns "$A" setpriv --bounding-set=-net_admin "$COMMAND" $words
    done
fi
expect_equal "host of A" "$(diff "$WORK/before" <(steady_state "$A"))" ""

step "names, in a copy of /etc that only this step sees"
cat >"$WORK/names" <<'SCRIPT'
set -euo pipefail
command=$1 file=$2 name=$3
mount -t tmpfs none /mnt
cp -a /etc /mnt/
mount --bind /mnt/etc /etc
rm -rf /etc/nexusguard
mkdir -p /etc/wireguard
cp "$file" "/etc/wireguard/$name.conf"
"$command" check "$name"
"$command" import "$file"
"$command" check "$name"
stat -c '%a %U' /etc/nexusguard "/etc/nexusguard/$name.conf"
"$command" import "$file" || echo "again: $?"
"$command" import --force "$file"
"$command" export "$name" -q | cmp - "/etc/nexusguard/$name.conf"
SCRIPT
umask 022
expect "import goes to /etc/nexusguard, which is searched first" diff <(
    cat <<EXPECTED
/etc/wireguard/$WA.conf: ok, 1 peer
/etc/nexusguard/$WA.conf
/etc/nexusguard/$WA.conf: ok, 1 peer
750 root
600 root
again: 1
/etc/nexusguard/$WA.conf
EXPECTED
) <(unshare -m bash "$WORK/names" "$COMMAND" "$FILE_A" "$WA" 2>"$WORK/err")
expect "the second import named --force" grep -q -- --force "$WORK/err"

step "plan of a tunnel that does not run"
succeed "$A" plan "$FILE_A"
expect "it would make a link" test -s "$WORK/out"
expect "no key is in it" is_gone grep -qF "$(cat "$WORK/a.key")" "$WORK/out"
await_as_before

step "up"
succeed "$A" up "$FILE_A" --backend "$BACKEND"
expect "it says what it did" grep -qE "^$WA: [0-9]+ changes?$" "$WORK/out"
succeed "$B" up "$FILE_B" --backend "$BACKEND"
expect_ping "ping B" "$A" 10.77.0.2
expect_ping "ping B, IPv6" "$A" fd77::2
succeed "$A" up "$FILE_A"
expect_equal "up again" "$(cat "$WORK/out")" "$WA: nothing to change"
succeed "$A" status "$WA"
expect "status says it is up" grep -q "^$WA: up, kept by process [0-9]" "$WORK/out"
expect_equal "show and wg show" "$(in_ns "$A" "$COMMAND" show "$WA" allowed-ips)" \
    "$(in_ns "$A" wg show "$WA" allowed-ips)"

step "plan shows one changed peer, sync applies it"
in_ns "$A" wg show "$WA" latest-handshakes >"$WORK/handshakes"
sed -i 's|^AllowedIPs = .*|&, 198.51.100.0/24|' "$FILE_A"
succeed "$A" plan "$FILE_A"
expect_equal "peers in the plan" "$(grep -ci peer "$WORK/out")" 1
expect "the prefix is in the plan" grep -q "198.51.100.0/24" "$WORK/out"
expect "no route was made" is_gone grep -q 198.51.100 <(in_ns "$A" ip route)
succeed "$A" sync "$FILE_A"
expect "the route is there" grep -q "198.51.100.0/24 dev $WA" <(in_ns "$A" ip route)
expect_ping "ping behind B" "$A" 198.51.100.1
expect_equal "C57: the session went on" "$(in_ns "$A" wg show "$WA" latest-handshakes)" \
    "$(cat "$WORK/handshakes")"
succeed "$A" plan "$FILE_A"
expect_equal "plan of the same" "$(cat "$WORK/out")" ""

step "JSON"
succeed "$A" plan "$FILE_A" --json
expect_equal "changes" "$(json "$WORK/out" 'len(d["changes"])')" 0
succeed "$A" status "$WA" --json
expect_equal "phase" "$(json "$WORK/out" 'd["phase"]')" up

step "sync --confirm comes back by itself, and stays when it is confirmed"
cp -p "$FILE_A" "$WORK/good"
sed -i 's|, 198.51.100.0/24||' "$FILE_A"
succeed "$A" sync "$FILE_A" --confirm 2
no_route() { ! grep -q 198.51.100 <(in_ns "$A" ip route); }
expect "the route is gone" no_route
has_route() { grep -q 198.51.100 <(in_ns "$A" ip route); }
wait_until 15 "the route to come back" has_route
succeed "$A" sync "$FILE_A" --confirm 60
succeed "$A" confirm "$WA"
succeed "$A" status "$WA"
expect "it is up, not provisional" grep -q "^$WA: up," "$WORK/out"
cp -p "$WORK/good" "$FILE_A"
succeed "$A" sync "$FILE_A"

step "set and save"
succeed "$A" set "$WA" peer "$(key_of b)" persistent-keepalive 21
succeed "$A" save "$FILE_A"
expect "the keepalive is in the file" grep -qx "PersistentKeepalive = 21" "$FILE_A"
expect "the addresses are still there" grep -qx "Address = 10.77.0.1/24, fd77::1/64" "$FILE_A"
expect_equal "mode of the file" "$(stat -c %a "$FILE_A")" 600
succeed "$A" check "$FILE_A"

step "a keeper that dies costs nothing, and the next one knows what to do"
kill_keeper() {
    succeed "$A" status "$WA" --json
    local pid
    pid=$(json "$WORK/out" 'd["process"]')
    kill -KILL "$pid"
    wait_until 5 "the keeper to be gone" is_gone kill -0 "$pid"
}
kill_keeper
fails_with 3 "$A" status "$WA"
expect_ping "ping without a keeper" "$A" 10.77.0.2
succeed "$A" sync "$FILE_A"
expect_equal "sync with the next keeper" "$(cat "$WORK/out")" "$WA: nothing to change"
succeed "$A" up -q "$FILE_A"
expect_equal "up -q" "$(cat "$WORK/out" "$WORK/err")" ""
kill_keeper # so that down has to start one

step "down"
succeed "$A" down "$WA"
succeed "$B" down "$WB"
expect "the link is gone" is_gone in_ns "$A" ip link show "$WA"
await_as_before
fails_with 3 "$A" down "$WA"

step "commands of the file, when they are allowed"
succeed "$A" up "$WORK/h/$WA.conf" --allow-hooks
expect "PostUp ran" test -e "$WORK/hook-$WA"
succeed "$A" down "$WA"
chmod 620 "$WORK/h/$WA.conf"
chgrp nogroup "$WORK/h/$WA.conf"
fails_with 5 "$A" up "$WORK/h/$WA.conf" --allow-hooks
expect "C26: who else may change the file" grep -q "chmod go-w" "$WORK/err"
rm "$WORK/hook-$WA"
succeed "$A" up "$WORK/h/$WA.conf" --no-hooks
expect "PostUp did not run" test ! -e "$WORK/hook-$WA"
succeed "$A" down "$WA"
await_as_before

# ---- beside wg-quick ---------------------------------------------------------------------------

# What both make of a file. Protocol numbers, metrics, priorities and nodad differ: docs/cli.md.
view() {
    local field
    {
        in_ns "$A" ip -o addr show dev "$WA" | sed 's/^[0-9]*: //'
        in_ns "$A" ip -o link show dev "$WA" | grep -o 'mtu [0-9]*'
        in_ns "$A" ip -4 route show table all dev "$WA" | sed 's/^/4 /'
        in_ns "$A" ip -6 route show table all dev "$WA" | sed 's/^/6 /'
        in_ns "$A" ip -4 rule | sed 's/^[0-9]*:/4 rule/'
        in_ns "$A" ip -6 rule | sed 's/^[0-9]*:/6 rule/'
        for field in public-key listen-port fwmark endpoints allowed-ips persistent-keepalive; do
            in_ns "$A" wg show "$WA" "$field" | tr -s '[:space:]' '\n' | sort | sed "s/^/$field /"
        done
        in_ns "$A" wg show "$WA" preshared-keys | sha256sum
        in_ns "$A" sysctl net.ipv4.conf.all.src_valid_mark
    } | sed -E 's/ (proto|metric|pref|valid_lft|preferred_lft) [^ ]+//g; s/ nodad//; s/ +$//; s/\\//g' |
        grep -vE ' fe80::| ff00::|multicast' | sort
}
compare_with_wg_quick() { # DESCRIPTION
    step "$1: the same device, addresses, routes and rules as wg-quick"
    say "  $ ($A) wg-quick up"
    in_ns "$A" env WG_QUICK_USERSPACE_IMPLEMENTATION="$NEXUSGUARD_ENGINE" \
        wg-quick up "$FILE_A" >"$WORK/quick.log" 2>&1 || {
        cat "$WORK/quick.log"
        fail "wg-quick up"
    }
    view >"$WORK/quick"
    in_ns "$A" wg-quick down "$FILE_A" >"$WORK/quick.log" 2>&1
    in_ns "$A" sysctl -qw net.ipv4.conf.all.src_valid_mark=0 # wg-quick leaves it
    wait_until 10 "the engine of wg-quick to end" is_gone in_ns "$A" ip link show "$WA"
    succeed "$A" up "$FILE_A" --backend "$BACKEND"
    expect_at_least "lines that are compared" "$(wc -l <"$WORK/quick")" 15
    view >"$WORK/ours"
    expect "the same" diff "$WORK/quick" "$WORK/ours"
    succeed "$A" down "$WA"
    await_as_before
}

step "a port that somebody else has (C62, C81)"
background "$A" python3 -c '
import socket, time
sockets = [socket.socket(family, socket.SOCK_DGRAM) for family in (socket.AF_INET, socket.AF_INET6)]
sockets[1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
sockets[0].bind(("", 51999)), sockets[1].bind(("::", 51999))
time.sleep(600)'
wait_until 10 "its socket" listens "$A" u 51999
sed "s/^ListenPort = .*/ListenPort = 51999/; s|^AllowedIPs = .*|&, 10.97.0.0/16|" "$FILE_A" >"$WORK/taken.conf"
mkdir "$WORK/t" && (umask 077 && cp "$WORK/taken.conf" "$WORK/t/$WA.conf")
fails_with 8 "$A" up "$WORK/t/$WA.conf" --backend "$BACKEND"
expect "up says at which step, and that nothing is left" \
    grep -q "step [0-9]* of [0-9]* of $WA failed: .*51999.*what had been made is removed" "$WORK/err"
await_as_before
succeed "$A" up "$FILE_A" --backend "$BACKEND"
view >"$WORK/running"
fails_with 8 "$A" sync "$WORK/t/$WA.conf"
expect "sync says it, and the former state is back" \
    grep -q "step [0-9]* of [0-9]* of $WA failed: .*51999.*the former state is back" "$WORK/err"
expect "it is" diff "$WORK/running" <(view)
expect "who has the port has it still" kill -0 "$BACKGROUND_PID"
succeed "$A" down "$WA"
await_as_before
kill "$BACKGROUND_PID"

command -v wg-quick >/dev/null || skip "no wg-quick to compare with"
compare_with_wg_quick "some prefixes"
sed -i 's|^AllowedIPs = .*|AllowedIPs = 0.0.0.0/0, ::/0|' "$FILE_A"
compare_with_wg_quick "the default route"
sed -i '/^\[Peer\]/i Table = 1234\nMTU = 1380' "$FILE_A"
compare_with_wg_quick "a table and an MTU"
sed -i 's/^Table = 1234/Table = off/' "$FILE_A"
compare_with_wg_quick "no routes"
