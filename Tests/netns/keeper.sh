#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The keeper of a tunnel that takes the default route: what others remove comes back, what others own
# is left alone, its death costs no packet, a change that nobody confirms is taken back, and whatever
# it or who asks it is killed in, up and down leave the host as it was.
#
#   netns A: keeper of $WA  192.0.2.1 ═══ 192.0.2.2  netns B: PEER $WB, 198.51.100.1 on lo
#            neighbour: a link of its own, table 4242, rule 4242, nft table inet neighbour
#
# COMMAND: the command under test; default: .build/release/nexusguard
# ROUNDS: of up and down, of kill -9 of up, and of the keeper; default 10
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

needs_command
ROUNDS=${ROUNDS:-10}
etc_create
DNS=
! has_resolver_file || DNS="DNS = 10.77.0.53, example.net"

topology_pair
keys_create a b
engine_start "$B" "$WB" "$PEER"
tunnel_configure "$B" "$WB" b a 2
in_ns "$B" ip addr add 198.51.100.1/32 dev lo

neighbour_create() {
    veth_create "$A" "${P}d" "$B" "${P}e"
    in_ns "$A" ip addr add 203.0.113.1/24 dev "${P}d"
    in_ns "$A" ip route add 203.0.114.0/24 dev "${P}d" table 4242
    in_ns "$A" ip rule add pref 4242 from 203.0.113.0/24 table 4242
    in_ns "$A" nft 'add table inet neighbour; add chain inet neighbour c { type filter hook forward priority 0; };
        add rule inet neighbour c counter accept'
}

config() { # ALLOWED-IPS MTU
    cat <<CONF
[Interface]
Address = 10.77.0.1/24, fd77::1/64
PrivateKey = $(cat "$WORK/a.key")
ListenPort = 51820
MTU = $2
$DNS
[Peer]
PublicKey = $(key_of b)
Endpoint = 192.0.2.2:51820
AllowedIPs = $1
PersistentKeepalive = 1
CONF
}
FILE=$WORK/$WA.conf
use_full() { (umask 077 && config "0.0.0.0/0, ::/0" 1420 >"$FILE"); }
use_small() { (umask 077 && config "10.77.0.2/32" 1380 >"$FILE"); }

kill_keeper() {
    local pid
    pid=$(keeper_pid) || return 0
    kill -KILL "$pid" 2>/dev/null || true
    wait_until 10 "the keeper to be gone" is_gone kill -0 "$pid"
}

# The kernel's WireGuard sets this to 0 when a link of it comes up, and never back (wg_open).
UNSEEN=^$
[[ -z ${KERNEL_VM:-} ]] || UNSEEN=/all/send_redirects:

# All that a tunnel can leave: links, addresses, tables, rules, nft, settings, resolver, sockets, files, also
# half-written ones, whose names begin with a dot. The number of a link and what counts down are no state.
normal() {
    sed -E 's/^[0-9]+: //; s/ (expires|valid_lft|preferred_lft) [^ ]+//g; s/fe80::[0-9a-f:]+/fe80::x/
        s/counter packets [0-9]+ bytes [0-9]+/counter/; s/ +[0-9]+ +\* 0 *$//'
}
host_state() {
    {
        in_ns "$A" ip -d link
        in_ns "$A" ip addr
        in_ns "$A" ip -4 rule
        in_ns "$A" ip -6 rule
        in_ns "$A" nft list ruleset
        # One that nobody has set cannot be read.
        in_ns "$A" grep -rs . /proc/sys/net/ipv4/conf/all /proc/sys/net/ipv6/conf/all /proc/sys/net/ipv4/ip_forward |
            grep -v "$UNSEEN" || true
        cat "$WORK/etc/resolv.conf"
    } | normal
    {
        in_ns "$A" ip -4 route show table all
        in_ns "$A" ip -6 route show table all
        # A socket's name goes on with the process that made it.
        in_ns "$A" ss -H -l -n -u -x | { grep -F "$P" || true; } | sed -E 's/\.(sock|engine)\.[0-9]+/.\1/; s/ +/ /g'
        find /run/nexusguard /var/run/wireguard -name "*$P*" -not -name "*.lock" -not -name "$WB*" || true
        # The time of the latest handshake stays: the next tunnel with this key needs it.
        find "$WORK/etc" "$WORK/lib" -type f -not -name "*.clock"
    } | normal | sort
} 2>/dev/null
neighbours() {
    in_ns "$A" ip addr show "${P}d" | grep -v valid_lft
    in_ns "$A" ip route show table 4242
    in_ns "$A" ip rule show pref 4242
    in_ns "$A" nft list table inet neighbour
}
is_state() { diff <(host_state) "$1" >"$WORK/diff"; }
wait_for_state() { # DESCRIPTION FILE
    local deadline=$((SECONDS + 11 * PATIENCE))
    until is_state "$2"; do
        ((SECONDS < deadline)) || {
            cat "$WORK/diff"
            fail "$1"
        }
        sleep 0.05 # between two looks at the condition
    done
}
expect_state() { # DESCRIPTION FILE
    wait_for_state "$1" "$2"
    CHECKS=$((CHECKS + 1))
    say "  ok: $1"
}
processes() { ip netns pids "$A" | wc -l; }
is_alone() { [[ $(processes) -eq 0 ]]; }
mended() { nexusguard status "$WA" --json >"$WORK/status" && json "$WORK/status" "d['mended']"; }

neighbour_create
host_state >"$WORK/before"
neighbours >"$WORK/neighbours"

step "up: everything through the tunnel"
use_full
ask up "$FILE"
expect_ping "ping through the tunnel" "$A" 198.51.100.1
host_state >"$WORK/up"
[[ -z $DNS ]] || expect "the tunnel's resolver is in the file" grep -q 10.77.0.53 "$WORK/etc/resolv.conf"
expect "the tunnel's rules are there" grep -q "not from all fwmark" "$WORK/up"
expect_equal "mode of the socket" "$(stat -c %a "/run/nexusguard/$WA.keeper.sock")" \
    "$(getent group nexusguard >/dev/null && echo 660 || echo 600)"
expect_equal "mode of the last good configuration" "$(stat -c %a "/run/nexusguard/$WA.conf")" 600
ask up "$FILE"
expect_state "the same again changes nothing" "$WORK/up"

step "what others remove comes back"
steal() { # DESCRIPTION COMMAND…: in namespace A
    local description=$1 before
    shift
    before=$(mended)
    say "  $ ($A) $*"
    in_ns "$A" sh -c "$*"
    expect_state "healed: $description" "$WORK/up"
    expect_at_least "  told" "$(($(mended) - before))" 1
}
# The rules of the kernel and of the neighbour go too: they are put back by whoever owns them, here us.
OTHERS_RULES="ip rule add pref 32766 table main; ip rule add pref 32767 table default;
    ip rule add pref 4242 from 203.0.113.0/24 table 4242"
steal "rules" "ip rule flush; $OTHERS_RULES"
steal "IPv6 rules" "ip -6 rule flush; ip -6 rule add pref 32766 table main"
NFT_TABLES=$(in_ns "$A" nft list tables | grep -vc neighbour) || true
expect_at_least "tables of nft beside the neighbour's" "$NFT_TABLES" 1
# One transaction: on a slow machine the keeper would come between the two, and tables stand in the order
# in which they were made.
{ echo "flush ruleset" && in_ns "$A" nft list table inet neighbour; } >"$WORK/neighbour.nft"
steal "the nft table" "nft -f $WORK/neighbour.nft"
TABLE=$(in_ns "$A" ip rule | sed -n 's/.*not from all fwmark.*lookup \([0-9]*\).*/\1/p')
steal "the default route of table $TABLE" "ip route flush table $TABLE"
steal "addresses" "ip addr flush dev $WA scope global"
steal "the MTU" "ip link set $WA mtu 1500"
steal "the link, taken down" "ip link set $WA down"
steal "the link, removed" "ip link del $WA"
expect_ping "ping after all of it" "$A" 198.51.100.1
expect "the neighbour is as it was" diff <(neighbours) "$WORK/neighbours"

step "kill -9 of the keeper under traffic"
background "$A" ping -n -q -i 0.02 -c 200 -W 5 198.51.100.1
FIRST=$(keeper_pid) || fail "no keeper runs"
kill_keeper
expect "the tunnel is there without it" in_ns "$A" ip link show "$WA"
ask sync "$FILE"
SECOND=$(keeper_pid) || fail "no keeper took over"
expect "another process" test "$FIRST" != "$SECOND"
expect_equal "what the new one changed" "$(nexusguard plan "$FILE" 2>/dev/null)" ""
wait "$BACKGROUND_PID" || true
expect "no packet was lost: $(grep -o '[0-9]* received' "$WORK/background.log")" \
    grep -q "200 received" "$WORK/background.log"
expect_state "adopted as it was" "$WORK/up"
ip -n "$A" rule del pref "$(in_ns "$A" ip rule | sed -n 's/^\([0-9]*\):.*not from all fwmark.*/\1/p')"
expect_state "the new keeper mends too" "$WORK/up"

step "a change that nobody confirms"
use_small
ask sync --confirm 2 "$FILE"
expect_equal "MTU of the change" "$(in_ns "$A" cat "/sys/class/net/$WA/mtu")" 1380
expect_state "the former state is back" "$WORK/up"
ask sync --confirm 600 "$FILE"
ask confirm "$WA"
host_state >"$WORK/small"
kill_keeper
expect_equal "what the next keeper has to change" "$(nexusguard plan "$FILE" 2>/dev/null)" ""
expect_state "confirmed, it outlives the keeper" "$WORK/small"

step "down"
ask down "$WA"
expect_state "as before" "$WORK/before"
wait_until 10 "no process of ours to be left" is_alone

step "what a keeper leaves that is killed while it writes"
for file in conf pending creating replacing barriers; do
    (umask 077 && echo half >"/run/nexusguard/.$WA.$file.1a2b")
done
ask up "$FILE"
expect_equal "drafts that the next one leaves" "$(find /run/nexusguard -name ".$WA.*")" ""
ask down "$WA"
expect_state "as before" "$WORK/before"

step "$ROUNDS times up and down"
use_full
for ((round = 1; round <= ROUNDS; round++)); do
    nexusguard up -q "$FILE" >"$WORK/ask.log" 2>&1 || fail "up $round: $(cat "$WORK/ask.log")"
    nexusguard down -q "$WA" >"$WORK/ask.log" 2>&1 || fail "down $round: $(cat "$WORK/ask.log")"
    wait_for_state "as before after round $round" "$WORK/before"
done
expect_state "as before after $ROUNDS rounds" "$WORK/before"
wait_until 10 "no process of ours to be left" is_alone

step "$ROUNDS times kill -9 of up itself, at a random point"
RANDOM=5
KILLED=0
for ((round = 1; round <= ROUNDS; round++)); do
    # Not in_ns: the process id is to be that of up.
    ip netns exec "$A" "${OWN_ETC[@]}" "$COMMAND" up -q "$FILE" >"$WORK/killed.log" 2>&1 &
    client=$!
    # The point is random, and the load of the machine makes it more so.
    sleep "0.$(printf %03d $((RANDOM % 200)))"
    kill -KILL "$client" 2>/dev/null && KILLED=$((KILLED + 1))
    wait "$client" 2>/dev/null || true
    nexusguard up -q "$FILE" >"$WORK/ask.log" 2>&1 || fail "up after kill $round: $(cat "$WORK/ask.log")"
    nexusguard down -q "$WA" >"$WORK/ask.log" 2>&1 || fail "down after kill $round: $(cat "$WORK/ask.log")"
    wait_for_state "as before after kill $round of up" "$WORK/before"
done
expect_at_least "killed" "$KILLED" 1
expect_state "as before after $ROUNDS kills" "$WORK/before"
wait_until 10 "no process of ours to be left" is_alone

step "$ROUNDS times the keeper killed at a random point of up or down"
RANDOM=7
KILLED=0
# At some of these points there is no keeper yet, or none any more.
for ((round = 1; KILLED < ROUNDS && round <= 4 * ROUNDS; round++)); do
    [[ $((round % 2)) -eq 1 ]] || nexusguard up -q "$FILE" >"$WORK/ask.log" 2>&1 || fail "up: $(cat "$WORK/ask.log")"
    verb=up operand=$FILE
    [[ $((round % 2)) -eq 1 ]] || verb=down operand=$WA
    keeper_killed_within 400 "$verb" -q "$operand"
    nexusguard up -q "$FILE" >"$WORK/ask.log" 2>&1 || fail "up after kill $round: $(cat "$WORK/ask.log")"
    nexusguard down -q "$WA" >"$WORK/ask.log" 2>&1 || fail "down after kill $round: $(cat "$WORK/ask.log")"
    wait_for_state "as before after kill $round in $verb" "$WORK/before"
done
expect_equal "keepers killed" "$KILLED" "$ROUNDS"
expect_state "as before after $ROUNDS kills" "$WORK/before"
wait_until 10 "no process of ours to be left" is_alone
expect "the neighbour is as it was" diff <(neighbours) "$WORK/neighbours"
