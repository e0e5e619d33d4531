#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What LiveHost tells the plan about its host, and what links it makes: facts are compared with what
# ip(8) was told here (C37, C38, C41, C49, C54, C86), an address of a subnet outlives the one before
# it, the link makes room for one of the other kind, what the kernel makes is not the tunnel's.
#
#   netns $A                                                   netns $B
#   $WA by backend-probe, $WC of somebody else                 $WB: its port and mark are no matter
#   $VA 192.0.2.1 fe80::a ═══ mtu 1400 ═══ $VB
#   wide 198.51.100.1, mtu 1500
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"
PROBE=${PROBE:-$ROOT/.build/release/backend-probe}
WC=${P}wc
[[ -x $PROBE ]] || skip "no probe at $PROBE (build it, or set PROBE)"
ENGINE=$(command -v "$ENGINE")

probe() { # VERB
    timeout 120 ip netns exec "$A" "$PROBE" "$1" "$WA" "$ENGINE" "$WORK"
}
# The probe with names of hosts of its own: in a mount namespace, so /etc/hosts stays as it is.
probe_facts() {
    # shellcheck disable=SC2016 # for the inner shell
    timeout 120 ip netns exec "$A" unshare --mount sh -c '
        mount --bind "$1" /etc/hosts && shift && exec "$@"' \
        sh "$WORK/hosts" "$PROBE" facts "$WA" "$ENGINE" "$WORK" >"$WORK/facts" || fail "no facts"
}
is_fact() { expect "$1" grep -qxF "$1" "$WORK/facts"; }
# no_fact PATTERN: an extended regular expression for a whole line.
no_fact() { expect "no $1" is_gone grep -qxE "$1" "$WORK/facts"; }

step "topology and what others have"
netns_create "$A"
netns_create "$B"
veth_create "$A" "$VA" "$B" "$VB"
in_ns "$A" ip link set "$VA" mtu 1400
in_ns "$A" ip addr add 192.0.2.1/24 dev "$VA"
in_ns "$A" ip addr add fe80::a/64 dev "$VA" nodad
in_ns "$A" ip addr add 2001:db8::1/64 dev "$VA" nodad
in_ns "$A" ip link add wide type veth peer name far # not every kernel has dummy links
in_ns "$A" ip link set far up
in_ns "$A" ip link set wide mtu 1500 up
in_ns "$A" ip addr add 198.51.100.1/24 dev wide
in_ns "$A" ip route add default via 192.0.2.2 metric 50
in_ns "$A" ip route add default via 198.51.100.2 metric 100
in_ns "$A" ip route add 203.0.113.0/24 via 192.0.2.2 mtu 1380
in_ns "$A" ip route add 203.0.113.0/25 dev wide table 77
in_ns "$A" ip rule add fwmark 0x5 table 78 priority 900
in_ns "$A" ip -6 rule add from all lookup main priority 901
engine_start "$A" "$WC" "$ENGINE"
engine_start "$B" "$WB" "$ENGINE"
in_ns "$A" wg set "$WC" listen-port 41999 fwmark 51830
in_ns "$B" wg set "$WB" listen-port 42000 fwmark 51999
in_ns "$A" ip rule add not fwmark 51830 table 51830 priority 32000

keys_create own one two three
printf '192.0.2.2 wide.example\n203.0.113.9 narrow.example\n' >"$WORK/hosts"
: >"$WORK/resolv.conf"
(
    umask 077
    printf '[Interface]\nPrivateKey = %s\n' "$(cat "$WORK/own.key")"
    printf '[Peer]\nPublicKey = %s\nEndpoint = 203.0.113.9:51820\n' "$(key_of one)"
    printf '[Peer]\nPublicKey = %s\nEndpoint = narrow.example:51821\n' "$(key_of two)"
    printf '[Peer]\nPublicKey = %s\nEndpoint = [fe80::b%%%s]:51820\n' "$(key_of three)" "$VA"
) >"$WORK/$WA.conf"

# ---- facts -------------------------------------------------------------------------------------

step "facts before there is a tunnel"
probe_facts
is_fact "address 192.0.2.1/24 $VA"
is_fact "address 2001:db8::1/64 $VA"
is_fact "address 198.51.100.1/24 wide"
no_fact "address fe80:.*"
is_fact "route 0.0.0.0/0 254 $VA 50"
is_fact "route 0.0.0.0/0 254 wide 100"
is_fact "route 192.0.2.0/24 254 $VA 0"
is_fact "route 2001:db8::/64 254 $VA 256"
is_fact "route 203.0.113.0/25 77 wide 0"
is_fact "table 77"
is_fact "table 78"
is_fact "table 51830"
is_fact "mark 5"
is_fact "mark 51830"
no_fact "mark 51999"
is_fact "rule v4 900"
is_fact "rule v4 32000"
is_fact "rule v6 901"
no_fact "rule v6 900"
is_fact "port 41999 $WC"
no_fact "port 42000 .*"
is_fact "full $WC"
is_fact "key $(key_of own)"
is_fact "path 203.0.113.9:51820 1380"
is_fact "path 203.0.113.9:51821 1380" # narrow.example
is_fact "path [fe80::b%$VA]:51820 1400"
is_fact "default 1400" # of the lower metric
if grep -qsE '^254[[:space:]]+main' /{usr/lib,usr/share,etc}/iproute2/rt_tables; then
    is_fact "name main 254"
fi

# ---- links -------------------------------------------------------------------------------------

everything() {
    in_ns "$A" ip rule
    in_ns "$A" ip -6 rule
    in_ns "$A" ip route show table all
    in_ns "$A" ip addr show | sed 's/^[0-9]*: //'
    in_ns "$A" nft list ruleset
}
everything >"$WORK/before"

step "two addresses of one subnet, of which the first goes"
expect_equal "what the tunnel has" "$(probe subnet)" '["10.77.0.2/24"] [10.90.0.0/16]'
expect_equal "promote_secondaries of the link" \
    "$(in_ns "$A" cat "/proc/sys/net/ipv4/conf/$WA/promote_secondaries")" 1
expect "ip(8) sees the second" grep -q "inet 10.77.0.2/24" <(in_ns "$A" ip addr show "$WA")

step "what the kernel makes is not the tunnel's"
expect "the link has a link-local address" \
    grep -q "inet6 fe80::" <(in_ns "$A" ip addr show dev "$WA" scope link)
probe_facts
is_fact "own 10.77.0.2/24"
no_fact "own fe80:.*"
no_fact "address .* $WA" # nor others'
no_fact "route 10.90.0.0/16 .*"
expect "the tunnel is taken down" probe down
everything >"$WORK/after"
expect "nothing is left and nothing of others changed" diff -u "$WORK/before" "$WORK/after"

step "a link of the other kind takes the place"
probe adopt >"$WORK/out"
INDEX=$(in_ns "$A" cat "/sys/class/net/$WA/ifindex")
probe replace >"$WORK/out" || {
    cat "$WORK/out"
    fail "the replacement"
}
expect "the tunnel had DNS" grep -q "nameserver 192.0.2.53" "$WORK/out"
expect "one that is not there leaves the tunnel as it is" grep -qx "there is no kernel" "$WORK/out"
expect_equal "the other" "$(tail -n 1 "$WORK/out")" \
    "replaced: rules, firewall and settings stay, the rest is gone"
expect "it is another link" test "$INDEX" != "$(in_ns "$A" cat "/sys/class/net/$WA/ifindex")"
expect_equal "what the resolver's file says" "$(cat "$WORK/resolv.conf")" ""
expect_equal "promote_secondaries of the new link" \
    "$(in_ns "$A" cat "/proc/sys/net/ipv4/conf/$WA/promote_secondaries")" 1
expect "the tunnel is taken down" probe down
everything >"$WORK/after"
expect "nothing is left and nothing of others changed" diff -u "$WORK/before" "$WORK/after"
