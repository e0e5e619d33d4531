#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# nexusguard show prints what wg show prints, byte for byte: for the engine and for wireguard-go
# under traffic, in every field, and for random devices of a server that says anything. nexusguard
# set does what wg set does.
#
#   netns A: ENGINE $WA  192.0.2.1 ═══ 192.0.2.2  netns B: PEER $WB
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

COMMAND=${COMMAND:-$ROOT/.build/release/nexusguard}
command -v "$COMMAND" >/dev/null || skip "no command at $COMMAND (build it, or set COMMAND)"
FIELDS=(public-key private-key listen-port fwmark peers preshared-keys endpoints allowed-ips
    latest-handshakes transfer persistent-keepalive dump)

topology_pair
tunnel_pair "$ENGINE" "$PEER"
in_ns "$A" wg set "$WA" fwmark 0xca6c
in_ns "$A" wg set "$WA" peer "$(head -c 32 /dev/urandom | base64)" persistent-keepalive 25
expect_ping "ping through the tunnel" "$A" 10.77.0.2

# same DESCRIPTION NAMESPACE ARGUMENT…: both print the same bytes and end alike. The clock may tick
# and packets may count between the two: one of a few tries must agree (of more in an emulated machine,
# where the two are seconds apart).
same_once() {
    local ns=$1 ours=0 theirs=0
    shift
    in_ns "$ns" "$COMMAND" "$@" >"$WORK/ours" || ours=$?
    in_ns "$ns" wg "$@" >"$WORK/theirs" || theirs=$?
    [[ $ours == "$theirs" ]] && cmp -s "$WORK/ours" "$WORK/theirs"
}
same() {
    local description=$1 try
    shift
    for ((try = 1; try <= 5 * PATIENCE; try++)); do
        if same_once "$@"; then
            CHECKS=$((CHECKS + 1))
            say "  ok: $description ($(wc -c <"$WORK/ours") bytes)"
            return
        fi
    done
    diff "$WORK/theirs" "$WORK/ours" || true
    fail "$description: different after $((try - 1)) tries"
}

for end in "$A $WA" "$B $WB"; do
    read -r ns interface <<<"$end"
    step "wg show of $interface"
    for field in "${FIELDS[@]}"; do same "$field" "$ns" show "$interface" "$field"; done
    same "for people" "$ns" show "$interface"
    for colour in always never auto; do
        export WG_COLOR_MODE=$colour
        same "for people, colours: $colour" "$ns" show "$interface"
    done
    unset WG_COLOR_MODE
    for hide in never always; do
        export WG_HIDE_KEYS=$hide
        same "for people, keys hidden: $hide" "$ns" show "$interface"
    done
    unset WG_HIDE_KEYS
done

step "all interfaces"
# Sockets are not namespaced: other tests' interfaces come and go, so only ours are compared.
all_same() { # FIELD
    in_ns "$A" "$COMMAND" show all "$1" 2>/dev/null | grep -E "^($WA|$WB)	" >"$WORK/ours" || true
    in_ns "$A" wg show all "$1" 2>/dev/null | grep -E "^($WA|$WB)	" >"$WORK/theirs" || true
    [[ -s $WORK/ours ]] && cmp "$WORK/ours" "$WORK/theirs"
}
for field in "${FIELDS[@]}"; do
    # wg names the interface on the first line of its endpoints only: docs/cli.md.
    [[ $field != endpoints ]] || continue
    wait_until 10 "show all $field to be the same" all_same "$field"
done
expect "show all dump is the same" test -s "$WORK/ours"
expect_equal "lines of show all endpoints with the interface" \
    "$(in_ns "$A" "$COMMAND" show all endpoints | grep -cE "^$WA	")" 2
# Links of the kernel are seen in their own namespace only.
named() { in_ns "$A" "$@" show interfaces | tr ' ' '\n' | grep -xE "$WA|$WB" | sort | tr '\n' ' '; }
expect_equal "show interfaces names" "$(named "$COMMAND")" "$(named wg)"
expect "  the tunnel among them" grep -q "$WA " <(named "$COMMAND")

step "a terminal"
terminal() { # ENVIRONMENT… : what show prints to a terminal
    in_ns "$A" env "$@" script -qec "$COMMAND show $WA" /dev/null </dev/null
}
if command -v script >/dev/null; then
    has_colour() { grep -q $'\033\[' <(terminal "$@"); }
    expect "colours on a terminal" has_colour A=b
    expect "NO_COLOR is respected" is_gone has_colour NO_COLOR=1
    expect "WG_COLOR_MODE=never is respected" is_gone has_colour WG_COLOR_MODE=never
fi

step "JSON"
in_ns "$A" "$COMMAND" show "$WA" --json >"$WORK/show.json"
expect_equal "port" "$(json "$WORK/show.json" "d['interfaces']['$WA']['listenPort']")" \
    "$(in_ns "$A" wg show "$WA" listen-port)"
expect_equal "endpoint of the peer" \
    "$(json "$WORK/show.json" "d['interfaces']['$WA']['peers']['$(key_of b)']['endpoint']")" \
    192.0.2.2:51820
expect "no key is in it" is_gone grep -qF "$(cat "$WORK/a.key")" "$WORK/show.json"

step "random devices"
# Of a server of the test's own, whichever the kernel is: in an emulated machine a few will do.
DEVICES=${KERNEL_VM:+4}
expect "${DEVICES:=40} random devices look the same" \
    python3 "$HERE/show_random.py" "${P}r" "${SEED:-1}" "$DEVICES" "$COMMAND" wg
say "  $(tail -n 1 "$WORK/expect.out")"

step "set"
set_and_compare() { # DESCRIPTION SETTING…: nexusguard on A's interface, wg on B's
    local description=$1
    shift
    in_ns "$A" "$COMMAND" set "$WA" "$@"
    in_ns "$B" wg set "$WB" "$@"
    expect_equal "$description" \
        "$(in_ns "$A" wg show "$WA" dump | cut -f 3-5,8- | sort)" \
        "$(in_ns "$B" wg show "$WB" dump | cut -f 3-5,8- | sort)"
}
wg genkey >"$WORK/new.key"
(umask 077 && wg genpsk >"$WORK/psk")
THIRD=$(wg genkey | wg pubkey)
for end in "$A $WA" "$B $WB"; do
    read -r ns interface <<<"$end"
    for peer in $(in_ns "$ns" wg show "$interface" peers); do
        in_ns "$ns" wg set "$interface" peer "$peer" remove
    done
    in_ns "$ns" wg set "$interface" private-key "$WORK/new.key" listen-port 51900 fwmark 0
done
set_and_compare "a mark" fwmark 0xCA6C
set_and_compare "a peer with everything" peer "$THIRD" preshared-key "$WORK/psk" \
    endpoint 192.0.2.77:7 persistent-keepalive 21 allowed-ips 10.1.2.3/16,fd01::/64
set_and_compare "another list of prefixes" peer "$THIRD" allowed-ips 10.9.0.0/16
set_and_compare "no prefixes" peer "$THIRD" allowed-ips ""
set_and_compare "no keepalive, no preshared key" peer "$THIRD" persistent-keepalive off \
    preshared-key /dev/null
set_and_compare "no mark" fwmark off
set_and_compare "no peer" peer "$THIRD" remove
in_ns "$A" "$COMMAND" set "$WA" peer "$THIRD" allowed-ips 10.1.0.0/16,10.2.0.0/16
in_ns "$A" "$COMMAND" set "$WA" peer "$THIRD" allowed-ips -10.1.0.0/16
in_ns "$A" "$COMMAND" set "$WA" peer "$THIRD" allowed-ips +10.3.0.0/16
expect_equal "signed prefixes" "$(in_ns "$A" wg show "$WA" allowed-ips)" \
    "$THIRD	10.2.0.0/16 10.3.0.0/16"

step "failures"
status=0
in_ns "$A" "$COMMAND" show "${P}no" >"$WORK/out" 2>&1 || status=$?
expect_equal "exit code for an interface that is not there" "$status" 3
expect "it is named" grep -qF "${P}no" "$WORK/out"
status=0
in_ns "$A" "$COMMAND" set "$WA" listen-port 99999 >"$WORK/out" 2>&1 || status=$?
expect_equal "exit code for a bad port" "$status" 2
