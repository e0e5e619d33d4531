#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# wg(8) and wg-quick(8) see no difference: after the same commands the engine and the reference
# print the same lines for every verb and field of wg show, for dump and for showconf, and the same
# commands fail.
#
#   netns A: ENGINE $WA      netns B: wireguard-go $WB      (no link between them)
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

REFERENCE=wireguard-go
command -v "$REFERENCE" >/dev/null || skip "no $REFERENCE to compare with"
FIELDS=(public-key private-key listen-port fwmark peers preshared-keys endpoints allowed-ips
    latest-handshakes transfer persistent-keepalive dump)

netns_create "$A"
netns_create "$B"
engine_start "$A" "$WA" "$ENGINE"
engine_start "$B" "$WB" "$REFERENCE"
keys_create device other one two three
for name in p1 p2; do (umask 077 && wg genpsk >"$WORK/$name"); done

# The order of allowed IPs and of peers is nobody's promise; the interface's name differs.
normalise() {
    sed -e "s/$WA/IF/g; s/$WB/IF/g" | python3 -c '
import re, sys
for line in sys.stdin.read().splitlines():
    fields = re.split(r"(\t| ?= ?|: )", line)
    fields = [re.sub(r"[0-9a-f.:]+/\d+(?:(?:, ?| )[0-9a-f.:]+/\d+)*",
                     lambda m: ",".join(sorted(re.split(r", ?| ", m[0]))), f) for f in fields]
    print("".join(fields))' | sort
}
# Every line is marked with the field it belongs to, for all are sorted together.
observe() { # NAMESPACE INTERFACE
    local field
    {
        for field in "${FIELDS[@]}"; do
            in_ns "$1" wg show "$2" "$field" 2>&1 | sed "s/^/$field: /"
        done
        in_ns "$1" env WG_HIDE_KEYS=never wg show "$2" 2>&1 | sed 's/^/pretty: /'
        in_ns "$1" wg showconf "$2" 2>&1 | sed 's/^/showconf: /'
    } | normalise
}

# both DESCRIPTION COMMAND…: IF stands for the interface. Same exit code, same message, same state.
both() {
    local description=$1 status_a=0 status_b=0
    shift
    in_ns "$A" "${@//IF/$WA}" >"$WORK/out.a" 2>&1 || status_a=$?
    in_ns "$B" "${@//IF/$WB}" >"$WORK/out.b" 2>&1 || status_b=$?
    [[ $status_a == "$status_b" ]] ||
        fail "$description: exit code $status_a, the reference $status_b: $(cat "$WORK/out.a")"
    expect "$description: same messages" diff <(normalise <"$WORK/out.b") <(normalise <"$WORK/out.a")
    observe "$A" "$WA" >"$WORK/state.a"
    observe "$B" "$WB" >"$WORK/state.b"
    expect "$description: same state (exit code $status_a)" diff "$WORK/state.b" "$WORK/state.a"
}
peer_count() { in_ns "$A" wg show "$WA" peers | wc -l; }

ONE=$(key_of one) TWO=$(key_of two) THREE=$(key_of three)

step "wg set"
both "private key and port" wg set IF private-key "$WORK/device.key" listen-port 51821
both "fwmark" wg set IF fwmark 0xca6c
both "a peer with everything" wg set IF peer "$ONE" preshared-key "$WORK/p1" \
    endpoint 192.0.2.9:1234 persistent-keepalive 25 allowed-ips 10.1.0.0/16,fd00:1::/32
both "a peer with nothing" wg set IF peer "$TWO"
both "host bits are masked, single addresses get a mask" \
    wg set IF peer "$TWO" allowed-ips 10.2.3.4/16,10.9.9.9,fd00::1,::/0,0.0.0.0/0
both "a prefix moves to the peer that names it last" wg set IF peer "$TWO" allowed-ips 10.1.0.0/16
both "an IPv6 endpoint" wg set IF peer "$TWO" endpoint '[2001:db8::9]:65535'
both "a mapped prefix stays IPv6" wg set IF peer "$TWO" allowed-ips ::ffff:10.0.0.1/128
both "an empty list of allowed IPs" wg set IF peer "$TWO" allowed-ips ""
both "the preshared key goes" wg set IF peer "$ONE" preshared-key /dev/null
both "the keepalive goes" wg set IF peer "$ONE" persistent-keepalive off
both "our own key as a peer is ignored" wg set IF peer "$(key_of device)" allowed-ips 10.8.0.0/16
expect_equal "peers" "$(peer_count)" 2
both "a new private key that is a peer's removes that peer" wg set IF private-key "$WORK/two.key"
expect_equal "peers" "$(peer_count)" 1
both "the private key goes" wg set IF private-key /dev/null
both "the fwmark goes" wg set IF fwmark off
both "a peer is removed" wg set IF peer "$ONE" remove
both "a peer that does not exist is removed" wg set IF peer "$THREE" remove
expect_equal "peers" "$(peer_count)" 0

step "wg setconf, addconf, syncconf"
umask 077
cat >"$WORK/full.conf" <<CONF
[Interface]
PrivateKey = $(cat "$WORK/device.key")
ListenPort = 51822
FwMark = 0x1234
[Peer]
PublicKey = $ONE
PresharedKey = $(cat "$WORK/p1")
Endpoint = 192.0.2.9:1000
AllowedIPs = 10.1.0.0/16, fd00:1::/32
PersistentKeepalive = 25
[Peer]
PublicKey = $TWO
AllowedIPs = 10.2.0.0/16
AllowedIPs = 10.3.0.0/16
CONF
cat >"$WORK/more.conf" <<CONF
[Peer]
PublicKey = $THREE
PresharedKey = $(cat "$WORK/p2")
AllowedIPs = 10.3.0.0/16, 10.4.0.0/16
CONF
cat >"$WORK/sync.conf" <<CONF
[Interface]
PrivateKey = $(cat "$WORK/other.key")
ListenPort = 51823
[Peer]
PublicKey = $ONE
AllowedIPs = 10.1.0.0/16
[Peer]
PublicKey = $THREE
Endpoint = [2001:db8::3]:3
AllowedIPs = 10.3.0.0/16
CONF
: >"$WORK/empty.conf"
umask 022
both "setconf" wg setconf IF "$WORK/full.conf"
both "setconf of the same again" wg setconf IF "$WORK/full.conf"
both "addconf" wg addconf IF "$WORK/more.conf"
expect_equal "peers" "$(peer_count)" 3
both "syncconf" wg syncconf IF "$WORK/sync.conf"
expect_equal "peers" "$(peer_count)" 2
(umask 077 && sed "/$(sed 's/[+/]/./g' <<<"$ONE")/a Endpoint = 192.0.2.8:8" "$WORK/sync.conf" >"$WORK/small.conf")
both "setconf of a smaller file" wg setconf IF "$WORK/small.conf"

# Here the reference differs: it forgets every peer before it reads the new ones.
step "pitfall 63: setconf leaves a peer that stays its endpoint"
run in_ns "$A" wg setconf "$WA" "$WORK/sync.conf"
expect_equal "peers" "$(peer_count)" 2
expect "the endpoint is the old one" grep -qF "$ONE	192.0.2.8:8" <(in_ns "$A" wg show "$WA" endpoints)
run in_ns "$B" wg setconf "$WB" "$WORK/small.conf"

step "what showconf prints, setconf takes"
in_ns "$A" wg showconf "$WA" >"$WORK/shown.conf"
observe "$A" "$WA" >"$WORK/before"
run in_ns "$A" wg setconf "$WA" "$WORK/shown.conf"
observe "$A" "$WA" >"$WORK/after"
expect "state after the round trip" diff "$WORK/before" "$WORK/after"

step "failures fail alike"
background "$A" python3 -c 'import socket, signal
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("", 5555)); signal.pause()'
wait_until 5 "the port to be taken in A" listens "$A" u 5555
background "$B" python3 -c 'import socket, signal
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("", 5555)); signal.pause()'
wait_until 5 "the port to be taken in B" listens "$B" u 5555
in_ns "$A" ip link set "$WA" up
in_ns "$B" ip link set "$WB" up
for end in "$A $WA" "$B $WB"; do
    read -r ns interface <<<"$end"
    expect "a taken port is refused in $ns" is_gone in_ns "$ns" wg set "$interface" listen-port 5555
done
both "a port that is free again" wg set IF listen-port 51824
both "an unknown verb" wg frobnicate IF
both "a bad key" wg set IF peer AAAA
# Sockets are not namespaced: other programs' interfaces may be listed too.
expect "wg show interfaces lists both" test "$(in_ns "$A" wg show interfaces | tr ' ' '\n' | grep -cxE "$WA|$WB")" -eq 2
# A file without an interface section clears key, port and peers.
in_ns "$A" wg setconf "$WA" "$WORK/empty.conf"
expect_equal "peers after an empty file" "$(peer_count)" 0
expect_equal "private key after an empty file" "$(in_ns "$A" wg show "$WA" private-key)" "(none)"

step "10,000 peers"
python3 -c '
import base64, sys
print("[Interface]\nListenPort = 51825")
for i in range(10000):
    key = base64.b64encode(b"\x01" * 28 + i.to_bytes(4, "big")).decode()
    a = f"10.{i >> 8}.{i & 255}"
    print(f"[Peer]\nPublicKey = {key}\nAllowedIPs = {a}.0/25, {a}.128/25, fd00:{i:x}::/64")
' >"$WORK/many.conf"
run in_ns "$A" wg setconf "$WA" "$WORK/many.conf"
expect_equal "peers" "$(peer_count)" 10000
run in_ns "$A" wg syncconf "$WA" "$WORK/many.conf"
expect_equal "peers after syncconf of the same" "$(peer_count)" 10000
expect_equal "prefixes" "$(in_ns "$A" wg show "$WA" allowed-ips | cut -f2 | wc -w)" 30000
run in_ns "$A" wg setconf "$WA" "$WORK/empty.conf"
expect_equal "peers after an empty file" "$(peer_count)" 0

step "a link that does not exist"
expect "wg show of no interface fails" is_gone in_ns "$A" wg show "${P}no"
