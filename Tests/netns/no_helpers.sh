#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# No helper programs and no /dev/fd (C89): a full tunnel with forwards comes up, is changed and goes where
# there is no program but ours: not in PATH, not in /bin, /sbin, /usr/bin and /usr/sbin, and /dev has
# three devices.
#
#   netns A: keeper of $WA  192.0.2.1 ═══ 192.0.2.2  netns B: PEER $WB
#
# COMMAND: the command under test; default: .build/release/nexusguard
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

needs_command

topology_pair
keys_create a b
engine_start "$B" "$WB" "$PEER"
tunnel_configure "$B" "$WB" b a 2
in_ns "$B" ip addr add 198.51.100.1/32 dev lo

mkdir -p "$WORK/dev/net" "$WORK/none"
for device in null urandom net/tun; do
    : >"$WORK/dev/$device"
    mount --bind "/dev/$device" "$WORK/dev/$device"
done
unmount() { for device in null urandom net/tun; do umount "$WORK/dev/$device" || true; done; }
trap 'unmount; cleanup' EXIT

# In the mount namespace that ip-netns(8) makes; the last mount hides mount(8) itself.
# shellcheck disable=SC2016 # for the inner shell
BARE='
    mount --rbind "$1/dev" /dev
    for directory in /usr/local/bin /usr/local/sbin /usr/sbin /usr/bin; do
        mount --bind "$1/none" "$directory"
    done
    for directory in /sbin /bin; do
        [ -L "$directory" ] || mount --bind "$1/none" "$directory"
    done
    shift
    unset PATH
    exec "$@"'
bare() { in_ns "$A" /bin/sh -c "$BARE" sh "$WORK" "$@"; }
asks() {
    say "  $ ($A, nothing else there) nexusguard $*"
    bare "$COMMAND" "$@" >"$WORK/ask.log" 2>&1 || {
        cat "$WORK/ask.log"
        fail "nexusguard $*"
    }
    CHECKS=$((CHECKS + 1))
}

step "there is nothing"
bare /bin/true 2>/dev/null && fail "/bin/true is there"
bare /usr/bin/env 2>/dev/null && fail "/usr/bin/env is there"
expect "and three devices" test -c "$WORK/dev/null" -a -c "$WORK/dev/net/tun"

step "a full tunnel"
FILE=$WORK/$WA.conf
config() {
    (
        umask 077
        cat >"$FILE" <<CONF
[Interface]
Address = 10.77.0.1/24, fd77::1/64
PrivateKey = $(cat "$WORK/a.key")
ListenPort = 51820
MTU = $1
[Peer]
PublicKey = $(key_of b)
Endpoint = 192.0.2.2:51820
AllowedIPs = 0.0.0.0/0, ::/0
CONF
    )
}
state() {
    in_ns "$A" ip addr show
    in_ns "$A" ip rule
    in_ns "$A" ip -6 rule
    in_ns "$A" ip route show table all
    in_ns "$A" nft list ruleset
    in_ns "$A" sysctl net.ipv4.conf.all.src_valid_mark net.ipv4.ip_forward
} 2>/dev/null
state >"$WORK/before"
config 1420
asks up --masquerade --forward tcp:8443=10.77.0.2:443 "$FILE"
expect "nothing is missing" is_gone grep -qi "warning\|cannot" "$WORK/ask.log"
expect_ping "everything goes through it" "$A" 198.51.100.1
expect_equal "ip_forward" "$(in_ns "$A" sysctl -n net.ipv4.ip_forward)" 1
expect "rules" sh -c "ip netns exec $A ip rule | grep -q 'not from all fwmark'"
expect "the nft table" sh -c "ip netns exec $A nft list tables | grep -q nexusguard-$WA"
expect_equal "programs that run" "$(for pid in $(ip netns pids "$A"); do
    basename "$(readlink "/proc/$pid/exe")"
done | sort | tr '\n' ' ')" "$(printf '%s\n' "$(basename "$COMMAND")" "$(basename "$NEXUSGUARD_ENGINE")" |
    sort | tr '\n' ' ')"

step "changed, mended, taken down"
config 1380
asks sync "$FILE"
expect_equal "MTU" "$(in_ns "$A" cat "/sys/class/net/$WA/mtu")" 1380
in_ns "$A" nft flush ruleset
table_is_back() { in_ns "$A" nft list tables | grep -q "nexusguard-$WA"; }
wait_until 10 "the nft table" table_is_back
asks sync --renew "$FILE"
expect_ping "through the new link" "$A" 198.51.100.1
asks down "$WA"
expect "as before" diff <(state) "$WORK/before"
