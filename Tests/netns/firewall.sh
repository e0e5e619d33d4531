#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The tunnel's nft table on a gateway: segment sizes clamped both ways (C50), the full tunnel's drop
# and mark rules at work, tables of others untouched (C46), every change by others seen and mended.
# A veth of a smaller MTU stands for the tunnel: the table knows a link's name only.
#
#   netns A                  netns R, the gateway               netns B
#   192.0.2.1 $VA ═══ $VR 192.0.2.254   $T 10.77.0.254 ═══ $VB 10.77.0.1
#   2001:db8::1                1500          1420             (9000 offered)
#
# shellcheck source-path=SCRIPTDIR
ENGINE=true PEER=true
source "$(dirname "$0")/lib.sh"
PROBE=${PROBE:-$ROOT/.build/release/host-probe}
[[ -x $PROBE ]] || skip "no probe at $PROBE (build it, or set PROBE)"
command -v tcpdump >/dev/null || skip "no tcpdump (tools/setup installs it)"

R=${P}R VR=${P}vr T=${P}t
firewall() { in_ns "$R" "$PROBE" firewall "$@"; }
rules() { in_ns "$R" nft list ruleset; }

step "topology: $A === $R === $B"
for ns in "$A" "$R" "$B"; do netns_create "$ns"; done
veth_create "$A" "$VA" "$R" "$VR"
veth_create "$R" "$T" "$B" "$VB"
in_ns "$A" ip addr add 192.0.2.1/24 dev "$VA"
in_ns "$A" ip addr add 2001:db8::1/64 dev "$VA" nodad
in_ns "$R" ip addr add 192.0.2.254/24 dev "$VR"
in_ns "$R" ip addr add 2001:db8::254/64 dev "$VR" nodad
in_ns "$R" ip addr add 10.77.0.254/24 dev "$T"
in_ns "$R" ip addr add fd77::254/64 dev "$T" nodad
in_ns "$B" ip addr add 10.77.0.1/24 dev "$VB"
in_ns "$B" ip addr add fd77::1/64 dev "$VB" nodad
in_ns "$R" ip link set "$T" mtu 1420
in_ns "$R" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
in_ns "$A" ip route add default via 192.0.2.254
in_ns "$A" ip route add default via 2001:db8::254
in_ns "$B" ip route add default via 10.77.0.254
in_ns "$B" ip route add default via fd77::254

# ---- segment size ------------------------------------------------------------------------------

# Says "answer segment size, that of the question" as the two ends saw each other's SYN.
cat >"$WORK/mss.py" <<'PYTHON'
import socket, sys
role, address = sys.argv[1], sys.argv[2]
family = socket.AF_INET6 if ":" in address else socket.AF_INET
s = socket.socket(family)
if role == "listen":
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, 5001)); s.listen(); print("listening", flush=True)
    s.accept()[0].close()
    sys.exit()
s.settimeout(10); s.connect((address, 5001)); s.recv(1)
PYTHON

# sizes FROM-NS TO-NS TO-ADDRESS TO-LINK FROM-LINK: the MSS of the SYN as it arrives, and of its answer.
sizes() {
    local from=$1 to=$2 address=$3 arrival=$4 departure=$5 out="$WORK/dump"
    local protocol='tcp[tcpflags] & tcp-syn != 0'
    [[ $address != *:* ]] || protocol='ip6 and ip6[6] = 6 and ip6[53] & 2 != 0'
    in_ns "$to" python3 "$WORK/mss.py" listen "$address" >"$WORK/listen.out" &
    local listener=$!
    in_ns "$to" tcpdump -Z root -nvlc 1 -i "$arrival" "$protocol and dst host $address" >"$out.syn" 2>"$out.syn.err" &
    local first=$!
    in_ns "$from" tcpdump -Z root -nvlc 1 -i "$departure" "$protocol and src host $address" >"$out.ack" 2>"$out.ack.err" &
    local second=$!
    BACKGROUND+=("$listener" "$first" "$second")
    wait_until 10 "the listener" grep -q listening "$WORK/listen.out"
    wait_until 10 "tcpdump" grep -q "listening on" "$out.syn.err"
    wait_until 10 "tcpdump" grep -q "listening on" "$out.ack.err"
    in_ns "$from" python3 "$WORK/mss.py" connect "$address" || fail "no connection to $address"
    wait "$first" "$second" "$listener" || fail "tcpdump or the listener"
    sed -n 's/.*mss \([0-9]*\).*/\1/p' "$out.syn" "$out.ack" | xargs
}

step "without the table the ends offer what their links carry"
expect_equal "IPv4 from A" "$(sizes "$A" "$B" 10.77.0.1 "$VB" "$VA")" "1460 1460"

step "with it, what the smaller link carries: 1420 less 40, less 60 (C50)"
rules_before=$(rules)
run firewall apply "$T" clamp
expect_equal "table" "$(firewall current "$T")" "intact clamp"
expect_equal "IPv4 towards the tunnel" "$(sizes "$A" "$B" 10.77.0.1 "$VB" "$VA")" "1380 1380"
expect_equal "IPv4 from the tunnel" "$(sizes "$B" "$A" 192.0.2.1 "$VA" "$VB")" "1380 1380"
expect_equal "IPv6 towards the tunnel" "$(sizes "$A" "$B" fd77::1 "$VB" "$VA")" "1360 1360"
expect_equal "IPv6 from the tunnel" "$(sizes "$B" "$A" 2001:db8::1 "$VA" "$VB")" "1360 1360"
run firewall remove "$T"
expect_equal "rules afterwards" "$(rules)" "$rules_before"

# ---- full tunnel -------------------------------------------------------------------------------

step "packets to the tunnel's address that come past it are dropped"
# A would reach 10.77.0.254 through R's other link.
expect "reachable before" in_ns "$A" ping -c1 -W5 10.77.0.254
expect "IPv6 as well" in_ns "$A" ping -c1 -W5 fd77::254
run firewall apply "$T" mark=51820 protect=10.77.0.254/24 protect=fd77::254/64
expect "not past the tunnel" is_gone in_ns "$A" ping -c1 -W1 10.77.0.254
expect "nor with IPv6" is_gone in_ns "$A" ping -c1 -W1 fd77::254
expect "through the tunnel" in_ns "$B" ping -c1 -W5 10.77.0.254
expect "through the tunnel with IPv6" in_ns "$B" ping -c1 -W5 fd77::254
expect "from the host itself" in_ns "$R" ping -c1 -W5 10.77.0.254
expect "and its other address" in_ns "$A" ping -c1 -W5 192.0.2.254

step "answers to marked datagrams carry the mark"
# A table of the test's own counts them after ours; another's mark must not be restored.
in_ns "$R" nft -f - <<'NFT'
table inet watch {
    chain input {
        type filter hook input priority filter; policy accept;
        udp sport 5002 meta mark 51820 counter name ours
        udp sport 5002 meta mark 7 counter name theirs
        udp sport 5002 meta mark 0 counter name none
    }
    chain output {
        type filter hook output priority filter; policy accept;
        udp dport 5002 meta mark 7 ct mark set 7
    }
    counter ours {
    }
    counter theirs {
    }
    counter none {
    }
}
NFT
cat >"$WORK/echo.py" <<'PYTHON'
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if sys.argv[1] == "serve":
    s.bind(("192.0.2.1", 5002)); print("listening", flush=True)
    while True: s.sendto(*s.recvfrom(100))
s.setsockopt(socket.SOL_SOCKET, 36, int(sys.argv[2]))  # SO_MARK
s.settimeout(10); s.sendto(b"x", ("192.0.2.1", 5002)); s.recv(100)
PYTHON
in_ns "$A" python3 "$WORK/echo.py" serve >"$WORK/echo.out" &
BACKGROUND+=($!)
wait_until 10 "the echo server" grep -q listening "$WORK/echo.out"
count() { in_ns "$R" nft list counter inet watch "$1" | sed -n 's/.*packets \([0-9]*\).*/\1/p'; }
for mark in 51820 51820 7 0; do
    expect "answer to mark $mark" in_ns "$R" python3 "$WORK/echo.py" ask "$mark"
done
expect_equal "answers with our mark" "$(count ours)" 2
expect_equal "answers with another's mark" "$(count theirs)" 0
expect_equal "answers without" "$(count none)" 2

# ---- what nft(8) says of it --------------------------------------------------------------------

step "nft lists what was meant"
run firewall apply "$T" clamp mark=51820 protect=10.77.0.254/24
in_ns "$R" nft -j list table inet "nexusguard-$T" >"$WORK/table.json"
expect "JSON" python3 - "$WORK/table.json" "$T" <<'PYTHON'
import json, sys
items, link = json.load(open(sys.argv[1]))["nftables"], sys.argv[2]
chains = {c["chain"]["name"]: c["chain"] for c in items if "chain" in c}
rules = [(r["rule"]["chain"], r["rule"]["comment"], r["rule"]["expr"]) for r in items if "rule" in r]
assert {n: (c["hook"], c["prio"], c["policy"]) for n, c in chains.items()} == {
    "forward": ("forward", -150, "accept"), "protect": ("prerouting", -300, "accept"),
    "restore": ("prerouting", -150, "accept"), "save": ("postrouting", -150, "accept")}, chains
assert [r[:2] for r in rules] == [
    ("forward", "clamp"), ("forward", "clamp"), ("protect", "protect 10.77.0.254/24"),
    ("restore", "restore 51820"), ("save", "save 51820")], rules
def match(left, right, op="=="): return {"match": {"op": op, "left": left, "right": right}}
def meta(key): return {"meta": {"key": key}}
clamp = {"mangle": {"key": {"tcp option": {"name": "maxseg", "field": "size"}}, "value": {"rt": {"key": "mtu"}}}}
for rule, key in zip(rules, ["oifname", "iifname"]):
    assert rule[2][0] == match(meta(key), link) and rule[2][-1] == clamp and len(rule[2]) == 3, rule
assert rules[2][2] == [
    match(meta("iifname"), link, "!="),
    match({"payload": {"protocol": "ip", "field": "daddr"}}, "10.77.0.254"),
    match({"fib": {"result": "type", "flags": ["saddr"]}}, "local", "!="), {"drop": None}], rules[2]
assert rules[3][2][1:] == [match({"ct": {"key": "mark"}}, 51820), {"mangle": {"key": meta("mark"), "value": 51820}}]
assert rules[4][2][1:] == [match(meta("mark"), 51820), {"mangle": {"key": {"ct": {"key": "mark"}}, "value": meta("mark")}}]
PYTHON

# ---- others ------------------------------------------------------------------------------------

step "changes by others are seen and mended; their own tables stay byte for byte"
meant="intact clamp mark=51820 protect=10.77.0.254/24"
others() {
    in_ns "$R" nft -s list table inet watch
    in_ns "$R" nft list table ip "wg-quick-$T"
    in_ns "$R" nft list table ip6 "nexusguard-$T"
}
in_ns "$R" nft -f - <<NFT
table ip wg-quick-$T { chain c { type filter hook input priority 0; iifname "$T" accept; }; }
table ip6 nexusguard-$T { chain c { type filter hook forward priority 0; }; set s { type ipv6_addr; elements = { fd00::1 }; }; }
NFT
others_before=$(others)
mend() { firewall apply "$T" clamp mark=51820 protect=10.77.0.254/24; }
spoil() { # DESCRIPTION NFT-COMMAND…
    local description=$1
    shift
    in_ns "$R" nft "$@"
    expect "$description is seen" test "$(firewall current "$T")" != "$meant"
    mend
    expect_equal "$description is mended" "$(firewall current "$T")" "$meant"
}
table="inet nexusguard-$T"
# shellcheck disable=SC2086 # words for nft
{
    spoil "a chain flushed" flush chain $table save
    spoil "the table flushed" flush table $table
    spoil "a rule inserted" insert rule $table protect accept
    spoil "a chain more" add chain $table more
    spoil "a dropping policy" chain $table forward '{ policy drop; }'
    spoil "a table that sleeps" add table $table '{ flags dormant; }'
    spoil "the table deleted" delete table $table
}
handle() { in_ns "$R" nft -a list table inet "nexusguard-$T" | sed -n 's/^table .* # handle //p'; }
before=$(handle)
mend
expect_equal "an intact table is left alone: its handle" "$(handle)" "$before"
expect "tables of others" test "$(others)" = "$others_before"

step "the monitor tells of our table, and of it only"
mkfifo "$WORK/end"
in_ns "$R" "$PROBE" firewall watch "$T" <"$WORK/end" >"$WORK/watch.out" &
watcher=$!
BACKGROUND+=("$watcher")
exec 9>"$WORK/end"
wait_until 10 "the monitor" grep -q watching "$WORK/watch.out"
in_ns "$R" nft add chain inet watch more
wait_until 10 "the other table's event" grep -q other "$WORK/watch.out"
expect_equal "events of our table" "$(grep -c touched "$WORK/watch.out" || true)" 0
in_ns "$R" nft flush ruleset
wait_until 10 "our table's event" grep -q touched "$WORK/watch.out"
exec 9>&-
wait "$watcher" || fail "the monitor ended with $?"
expect_equal "the table is gone" "$(firewall current "$T")" "absent"

step "a table of our name that is not ours is refused and left as it is"
in_ns "$R" nft -f - <<NFT
table $table { chain mine { type filter hook input priority 0; policy accept; counter; }; }
NFT
foreign=$(in_ns "$R" nft -s list ruleset)
expect_equal "it is" "$(firewall current "$T")" "foreign"
expect "apply fails" is_gone firewall apply "$T" clamp
expect "remove fails" is_gone firewall remove "$T"
expect_equal "afterwards" "$(in_ns "$R" nft -s list ruleset)" "$foreign"

step "every character that a tunnel's name may have"
in_ns "$R" nft flush ruleset
run firewall apply 'a=b+c.d-e_f' clamp mark=1 protect=10.0.0.1/32
expect_equal "table" "$(firewall current 'a=b+c.d-e_f')" "intact clamp mark=1 protect=10.0.0.1/32"
run firewall remove 'a=b+c.d-e_f'
run firewall remove 'a=b+c.d-e_f'
expect_equal "rules left" "$(rules)" ""
