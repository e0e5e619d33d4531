#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A keeper and its host: how soon what others remove is back (printed, not judged), an address that was
# there before, status while a command of the configuration runs, who may ask (C96), and a tunnel that
# comes back with the machine (C64) though the network comes late (C90), but not from a damaged file
# (C23).
#
#   netns A: keeper of $WA  192.0.2.1 ═══ 192.0.2.2  netns B
#
# shellcheck source-path=SCRIPTDIR
PEER=true
source "$(dirname "$0")/lib.sh"

needs_command

topology_pair
keys_create a b
FILE=$WORK/$WA.conf STATE=$WORK/state KEPT=$WORK/state/tunnels/$WA.conf
conf() { # FURTHER-LINES-OF-INTERFACE
    (
        umask 077
        cat >"$FILE" <<CONF
[Interface]
Address = 10.77.0.1/24, fd77::1/64
PrivateKey = $(cat "$WORK/a.key")
ListenPort = 51820
MTU = 1420
$1
[Peer]
PublicKey = $(key_of b)
Endpoint = 192.0.2.2:51820
AllowedIPs = 0.0.0.0/0, ::/0
CONF
    )
}
state() {
    in_ns "$A" ip addr show "$WA" scope global | sed 's/ *valid_lft.*//'
    in_ns "$A" ip -4 route show table all | sort
    in_ns "$A" ip -4 rule
    in_ns "$A" nft list ruleset
} 2>/dev/null
is_state() { [[ $(state | sed '/^[0-9]*: /s/^[0-9]*: //') == "$(cat "$WORK/up")" ]]; }
milliseconds() { echo $(($(date +%s%N) / 1000000)); }

step "what others remove is back, told once, and the link stays"
conf ""
ask up "$FILE"
state | sed '/^[0-9]*: /s/^[0-9]*: //' >"$WORK/up"
mended() { nexusguard status "$WA" --json | sed 's/.*"mended":\([0-9]*\).*/\1/'; }
is_mended() { [[ $(mended) -gt $1 ]] && is_state; }
link_facts() { # what a link that is made again would lose
    in_ns "$A" cat "/sys/class/net/$WA/ifindex"
    in_ns "$A" wg show "$WA" private-key | sha256sum
    in_ns "$A" ss -H -l -n -u -p "sport = :51820" | grep -o 'pid=[0-9]*' | sort -u
}
link_facts >"$WORK/link"
steal() { # COMMAND
    local before begin
    before=$(mended)
    begin=$(milliseconds)
    in_ns "$A" sh -c "$1"
    until is_mended "$before"; do
        [[ $(($(milliseconds) - begin)) -lt 15000 ]] || fail "not healed: $1"
        sleep 0.02 # between two looks at the condition
    done
    CHECKS=$((CHECKS + 1))
    say "  ok: back and seen after $(($(milliseconds) - begin)) ms: $1"
    expect_equal "    warnings" "$(($(mended) - before))" 1
    expect "    number of the link, key and engine as before" diff <(link_facts) "$WORK/link"
}
steal "nft flush ruleset"
steal "ip rule flush; ip rule add pref 32766 table main; ip rule add pref 32767 table default"
# The same thing told twice in a minute is one line: the route is taken before it goes with the address.
steal "ip route del default table 51820"
steal "ip addr del fd77::1/64 dev $WA"
steal "ip link set $WA mtu 1300"
steal "ip addr flush dev $WA scope global"

step "an address that somebody else added first is used, and stays"
in_ns "$A" ip addr add 10.88.0.1/24 dev "$WA"
sed -i 's|^Address = |Address = 10.88.0.1/24, |' "$FILE"
ask sync "$FILE"
expect_equal "the same again" "$(nexusguard sync "$FILE" 2>/dev/null)" "$WA: nothing to change"
in_ns "$A" ip addr add 10.89.0.1/32 dev "$WA" # the keeper looks
in_ns "$A" ip rule del pref 32765
wait_until 10 "the rule" sh -c "ip netns exec $A ip rule | grep -q ^32765:"
nexusguard status "$WA" --json >"$WORK/status"
expect "the address was not mended" is_gone grep -q "10.88.0.1" "$WORK/status"
expect_equal "and is there once" "$(in_ns "$A" ip addr show "$WA" | grep -c 10.88.0.1)" 1
conf ""
ask sync "$FILE"
expect "it is still there" sh -c "ip netns exec $A ip addr show $WA | grep -q 10.88.0.1"
ask down "$WA"

step "status answers while a command of the configuration runs"
mkfifo "$WORK/gate"
conf "PostUp = read x <$WORK/gate"
ip netns exec "$A" "$COMMAND" up --allow-hooks "$FILE" >"$WORK/up.log" 2>&1 &
UP=$!
BACKGROUND+=("$UP")
has_link() { in_ns "$A" ip link show "$WA"; }
wait_until 15 "the link" has_link
in_ns "$A" "$COMMAND" status "$WA" >"$WORK/status" 2>&1
expect "an answer" grep -q "kept by process" "$WORK/status"
nexusguard down "$WA" >"$WORK/down.log" 2>&1 && fail "down was accepted in the middle"
expect "a change has to wait" grep -q "being changed by another request" "$WORK/down.log"
expect "the command still runs" kill -0 "$UP"
# One that waits for somebody keeps no other from its work (C63).
SECOND=${P}2
sed -e "s|^PostUp.*||; s|10.77.0.1/24, fd77::1/64|10.78.0.1/24|; s|^ListenPort.*|ListenPort = 51822|" \
    -e 's|^AllowedIPs.*|AllowedIPs = 10.78.0.2/32|' "$FILE" >"$WORK/$SECOND.conf"
chmod 600 "$WORK/$SECOND.conf"
ask up "$WORK/$SECOND.conf"
ask down "$SECOND"
echo go >"$WORK/gate"
wait "$UP" || fail "up: $(cat "$WORK/up.log")"
CHECKS=$((CHECKS + 1))
ask status "$WA"

step "another user is told no (C96)"
expect_equal "mode of the socket" "$(stat -c %a "/run/nexusguard/$WA.keeper.sock")" \
    "$(getent group nexusguard >/dev/null && echo 660 || echo 600)"
python3 - "/run/nexusguard/$WA.keeper.sock" >"$WORK/other" <<'PYTHON' || true
import os, socket, sys
# The directory and the socket are opened by root, as a mistake of modes would let others do it.
os.chmod(sys.argv[1], 0o666)
os.setgroups([]); os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect(sys.argv[1])
print(s.recv(4096).decode()) # before it has asked for anything
PYTHON
expect "even where the mode is wrong" grep -q '"kind":"permission","exitCode":4' "$WORK/other"
cat >"$WORK/false.py" <<'PYTHON'
import os, socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); os.chmod(sys.argv[1], 0o666)
os.setgroups([]); os.setgid(65534); os.setuid(65534)
s.listen(); print("listening", flush=True)
c = s.accept()[0]; print(len(c.recv(100)), flush=True)
PYTHON
ask down "$WA"
# The credentials of a listener are those at listen(2) (unix(7), SO_PEERCRED).
python3 "$WORK/false.py" "/run/nexusguard/$WA.keeper.sock" >"$WORK/false.out" &
BACKGROUND+=($!)
wait_until 10 "the false keeper" grep -q listening "$WORK/false.out"
conf ""
nexusguard up "$FILE" >"$WORK/ask.log" 2>&1 && fail "a false keeper was believed"
expect "a socket of somebody else gets no configuration" grep -q "is not a keeper's" "$WORK/ask.log"
wait_until 10 "its end" grep -qx 0 "$WORK/false.out"
rm -f "/run/nexusguard/$WA.keeper.sock"

step "a tunnel that comes back with the machine (C64, C90)"
start_keeper() { # as the unit does
    # Not in_ns: the process id is to be the keeper's own.
    ip netns exec "$A" "$COMMAND" keep --foreground --state "$STATE" "$WA" >"$WORK/keep.log" 2>&1 &
    KEEPER=$!
    BACKGROUND+=("$KEEPER")
    wait_until 15 "the keeper" test -S "/run/nexusguard/$WA.keeper.sock"
}
# What a reboot takes.
reboot() {
    kill -KILL "$KEEPER"
    wait "$KEEPER" 2>/dev/null || true
    in_ns "$A" ip link del "$WA" 2>/dev/null || true
    in_ns "$A" sh -c 'nft flush ruleset; ip rule flush; ip -6 rule flush; ip rule add pref 32766 table main;
        ip -6 rule add pref 32766 table main'
    wait_until 10 "the engine's end" is_gone has_link
    rm -f "/run/nexusguard/$WA".*
}
mkdir -m 755 "$STATE"
start_keeper
expect "it waits" sh -c "ip netns exec $A $COMMAND status $WA | grep -q waiting"
ask up --persist --masquerade "$FILE"
expect_equal "mode of what is kept" "$(stat -c %a "$KEPT") $(stat -c %a "$STATE/tunnels")" "600 700"
reboot
in_ns "$A" ip link set "$VA" down
start_keeper
wait_until 15 "the tunnel, without a network" has_link
is_taken() { in_ns "$A" ip route get 203.0.113.9 | grep -q " dev $WA "; }
wait_until 15 "its rules" is_taken
in_ns "$A" ip link set "$VA" up
in_ns "$A" ip route add default via 192.0.2.2
expect "what is for the tunnel does not leave beside it, now that there is a way (C56)" is_taken
is_up() { nexusguard status "$WA" | grep -q ": up"; }
wait_until 15 "it to be up" is_up
expect_equal "what it lacks" "$(nexusguard plan --masquerade "$FILE" 2>/dev/null)" ""
expect "what was asked for beside the file" sh -c "ip netns exec $A nft list ruleset | grep -q masquerade"

step "after a crash of all of it the host is not cut off, and the next start finds its way (C55)"
kill -KILL "$KEEPER"
wait "$KEEPER" 2>/dev/null || true
in_ns "$A" ip link del "$WA"
wait_until 10 "the engine's end" is_gone has_link
expect "the table is left" sh -c "ip netns exec $A nft list tables | grep -q nexusguard-$WA"
expect_ping "the other host is reached all the same" "$A" 192.0.2.2
rm -f "/run/nexusguard/$WA".*
start_keeper
wait_until 15 "the tunnel" is_up
expect_equal "what it lacks" "$(nexusguard plan --masquerade "$FILE" 2>/dev/null)" ""
expect_equal "tables of ours" "$(in_ns "$A" nft list tables | grep -c nexusguard-)" 1

step "a damaged file is told, never applied (C23)"
reboot
cp "$KEPT" "$WORK/kept"
head -c 200 "$WORK/kept" >"$KEPT"
start_keeper
expect "it waits" sh -c "ip netns exec $A $COMMAND status $WA | grep -q waiting"
expect "and says why" grep -q "cannot read what the last keeper" "$WORK/keep.log"
expect "nothing was made" is_gone has_link
ask up --persist "$FILE"
expect "a request writes it anew" sh -c "head -2 '$KEPT' | grep -q sum"
ask down --until-boot "$WA"
expect "it would come back" test -s "$KEPT"
wait "$KEEPER" || fail "the keeper ended with $?"
start_keeper
wait_until 15 "the tunnel" has_link
ask down "$WA"
expect "and now it would not" is_gone test -e "$KEPT"
wait "$KEEPER" || fail "the keeper ended with $?"
