#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A gateway's keeper leads ports on to hosts behind a tunnel, hides what leaves the tunnel, and at the
# far end answers go back the way they came (C52); who asks from inside reaches the public address too,
# and what only passes by is not turned back (C53). All of it is one table, made once (C45), and down
# leaves what others had (C46).
#
#   netns O                netns A: keeper of $WA           netns B: keeper of $WB      netns L
#   198.51.100.9 ═════ .1      192.0.2.1 ═══ 192.0.2.2  default route: 10.99.0.5 ═══ 10.99.0.5
#                      tunnel  10.77.0.1 ─── 10.77.0.2            10.99.0.1
#
# shellcheck source-path=SCRIPTDIR
PEER=true
source "$(dirname "$0")/lib.sh"

needs_command
O=${P}O L=${P}L

topology_pair
keys_create a b
step "topology: $O === $A, $B === $L"
netns_create "$O"
netns_create "$L"
veth_create "$O" "${P}o" "$A" "${P}oa"
veth_create "$B" "${P}lb" "$L" "${P}l"
in_ns "$O" ip addr add 198.51.100.9/24 dev "${P}o"
in_ns "$O" ip addr add 2001:db8:51::9/64 dev "${P}o" nodad
in_ns "$A" ip addr add 198.51.100.1/24 dev "${P}oa"
in_ns "$A" ip addr add 2001:db8:51::1/64 dev "${P}oa" nodad
in_ns "$B" ip addr add 10.99.0.1/24 dev "${P}lb"
in_ns "$L" ip addr add 10.99.0.5/24 dev "${P}l"
in_ns "$L" ip route add default via 10.99.0.1
# Whoever B does not know is elsewhere: an answer that goes by its routes is lost.
in_ns "$B" ip route add default via 10.99.0.5
in_ns "$B" sysctl -qw net.ipv4.ip_forward=1

conf() { # FILE KEY PEER-KEY OWN-NUMBER ALLOWED-IPS FURTHER-LINES
    (
        umask 077
        cat >"$1" <<CONF
[Interface]
Address = 10.77.0.$4/24, fd77::$4/64
PrivateKey = $(cat "$WORK/$2.key")
ListenPort = 51820
MTU = 1420
$6
[Peer]
PublicKey = $(key_of "$3")
Endpoint = 192.0.2.$((3 - $4)):51820
AllowedIPs = $5
CONF
    )
}
conf "$WORK/$WA.conf" a b 1 "10.77.0.2/32, fd77::2/128, 10.99.0.0/24" ""
conf "$WORK/$WB.conf" b a 2 "0.0.0.0/0, ::/0" "Table = off"

ask() { # NAMESPACE VERB…
    local ns=$1
    shift
    say "  $ ($ns) nexusguard $*"
    in_ns "$ns" "$COMMAND" "$@" >"$WORK/ask.log" 2>&1 || {
        cat "$WORK/ask.log"
        fail "nexusguard $*"
    }
}
rules() { in_ns "$1" nft -s list ruleset; }
handle() { in_ns "$A" nft -a list table inet "nexusguard-$WA" | sed -n 's/^table .* # handle //p'; }
sysctls() { in_ns "$A" sysctl net.ipv4.ip_forward net.ipv6.conf.all.forwarding; }

# Tells each client which address it saw; then repeats what it hears.
cat >"$WORK/tell.py" <<'PYTHON'
import socket, sys, threading
role, port = sys.argv[1], int(sys.argv[2])
def talk(connection, peer):
    connection.sendall((peer[0].removeprefix("::ffff:") + "\n").encode())
    while data := connection.recv(100): connection.sendall(data)
if role == "serve":
    udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); udp.bind(("::", port))
    def answer():
        while True:
            _, peer = udp.recvfrom(100); udp.sendto(peer[0].removeprefix("::ffff:").encode(), peer)
    threading.Thread(target=answer, daemon=True).start()
    with socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True) as s:
        print("listening", flush=True)
        while True: threading.Thread(target=talk, args=s.accept(), daemon=True).start()
address = sys.argv[3]
if role == "udp":
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(10); s.sendto(b"?", (address, port)); print(s.recv(100).decode()); sys.exit()
s = socket.create_connection((address, port), 10)
print(s.makefile("r").readline().strip(), flush=True)
if role == "stay":
    for line in sys.stdin:
        s.sendall(line.encode()); print(s.recv(100).decode().strip(), flush=True)
PYTHON
serve() { # NAMESPACE PORT
    ip netns exec "$1" python3 "$WORK/tell.py" serve "$2" >"$WORK/serve.$1.$2" 2>&1 &
    BACKGROUND+=($!)
    wait_until 10 "the server in $1" grep -q listening "$WORK/serve.$1.$2"
}
seen() { in_ns "$1" timeout $((20 * PATIENCE)) python3 "$WORK/tell.py" "${4:-tcp}" "$3" "$2" 2>/dev/null || echo nothing; }
serve "$B" 7000
serve "$B" 7001
serve "$L" 7000
serve "$O" 9000
serve "$A" 8001

in_ns "$A" nft 'add table inet neighbour; add chain inet neighbour c { type nat hook postrouting priority 200; };
    add rule inet neighbour c oifname "nobody" masquerade'
rules "$A" >"$WORK/rules.before"
sysctls >"$WORK/sysctls.before"

step "a port of the gateway leads to a host behind the tunnel"
ask "$B" up "$WORK/$WB.conf" --answer-through-tunnel
FORWARDS=tcp:8443=10.77.0.2:7000,udp:8443=10.77.0.2:7000,tcp:8600-8601=10.99.0.5:7000
FORWARDS+=',tcp:8443=[fd77::2]:7000,tcp:7000-7001=10.77.0.2:7000'
ask "$A" plan "$WORK/$WA.conf" --forward tcp:8443=10.77.0.2:7000
expect "the plan names it" grep -qx "+ forward tcp 8443 → 10.77.0.2:7000" "$WORK/ask.log"
ask "$A" up "$WORK/$WA.conf" --forward "$FORWARDS"
expect_ping "the tunnel" "$A" 10.77.0.2
expect_equal "TCP: it sees the gateway's address in the tunnel" "$(seen "$O" 198.51.100.1 8443)" 10.77.0.1
expect_equal "UDP" "$(seen "$O" 198.51.100.1 8443 udp)" 10.77.0.1
expect_equal "IPv6" "$(seen "$O" 2001:db8:51::1 8443)" fd77::1
expect_equal "the first of a range" "$(seen "$O" 198.51.100.1 7000)" 10.77.0.1
expect_equal "the last of a range" "$(seen "$O" 198.51.100.1 7001)" 10.77.0.1
expect_equal "a port of a range led to others" "$(seen "$O" 198.51.100.1 8600)" 10.77.0.1
expect_equal "a port beside them reaches the host itself" "$(seen "$O" 198.51.100.1 8001)" 198.51.100.9
expect_equal "the settings" "$(sysctls | grep -c '= 1')" 2

step "the same again is the same table (C45)"
before=$(handle)
ask "$A" up "$WORK/$WA.conf" --forward "$FORWARDS"
expect_equal "its handle" "$(handle)" "$before"

step "a connection stays while forwards come and go"
mkfifo "$WORK/words"
in_ns "$O" timeout $((60 * PATIENCE)) python3 "$WORK/tell.py" stay 8443 198.51.100.1 <"$WORK/words" >"$WORK/stay.out" &
BACKGROUND+=($!)
exec 8>"$WORK/words"
wait_until 10 "the connection" grep -q 10.77.0.1 "$WORK/stay.out"
ask "$A" up "$WORK/$WA.conf" --forward tcp:9443=10.77.0.2:7001
expect "other table" test "$(handle)" != "$before"
echo still there >&8
wait_until 10 "its answer" grep -q "still there" "$WORK/stay.out"
CHECKS=$((CHECKS + 1))
exec 8>&-
expect_equal "the port is free again" "$(seen "$O" 198.51.100.1 8443)" nothing
expect_equal "the new one" "$(seen "$O" 198.51.100.1 9443)" 10.77.0.1

step "who asks from inside reaches the public address, and passing by is not turned back (C53)"
in_ns "$B" ip route add 198.51.100.0/24 dev "$WB"
ask "$A" up "$WORK/$WA.conf" --forward tcp:8443=10.77.0.2:7000,tcp:9000=10.77.0.2:7001,tcp:8001=10.77.0.2:7000
expect_equal "the public address from inside" "$(seen "$B" 198.51.100.1 8443)" 10.77.0.1
expect_equal "the gateway's address in the tunnel is the gateway" "$(seen "$B" 10.77.0.1 8001)" 10.77.0.2
in_ns "$O" ip route add 10.77.0.0/24 via 198.51.100.1
expect_equal "a forwarded port of somebody else, in passing" "$(seen "$B" 198.51.100.9 9000)" 10.77.0.2
in_ns "$O" ip route del 10.77.0.0/24

step "what leaves the tunnel does so as the gateway, where it is asked for"
# O knows no way to 10.77.0.2 now.
expect_equal "not yet" "$(in_ns "$B" ping -n -q -c1 -W1 198.51.100.9 >/dev/null && echo an answer || echo nothing)" nothing
ask "$A" up "$WORK/$WA.conf" --masquerade
expect_equal "seen by the server" "$(seen "$B" 198.51.100.9 9000)" 198.51.100.1
in_ns "$B" ip route del 198.51.100.0/24

step "the source is kept, and answers go back through the tunnel (C52)"
ask "$A" up "$WORK/$WA.conf" --forward 'tcp:8443=10.77.0.2:7000!,udp:8443=10.99.0.5:7000!,tcp:8600=10.99.0.5:7000!'
expect_equal "TCP: the far end sees who asks" "$(seen "$O" 198.51.100.1 8443)" 198.51.100.9
expect_equal "UDP" "$(seen "$O" 198.51.100.1 8443 udp)" 198.51.100.9
expect_equal "a host behind the far end" "$(seen "$O" 198.51.100.1 8600)" 198.51.100.9
in_ns "$B" ip -4 rule >"$WORK/rules.b"
MARK=$(sed -n 's/.*from all fwmark 0x[0-9a-f]* lookup \([0-9]*\).*/\1/p' "$WORK/rules.b")
say "  table of the answers: $MARK"
# Without the rule an answer goes by the routes, and is lost: the test above could have failed.
ask "$B" up "$WORK/$WB.conf"
expect_equal "without it" "$(in_ns "$B" ip -4 rule | grep -c fwmark || true)" 0
expect_equal "nobody hears an answer" "$(seen "$O" 198.51.100.1 8600)" nothing
ask "$B" up "$WORK/$WB.conf" --answer-through-tunnel
expect_equal "with it" "$(seen "$O" 198.51.100.1 8600)" 198.51.100.9

step "what others remove comes back"
is_forwarded() { [[ $(seen "$O" 198.51.100.1 8443) == 198.51.100.9 ]]; }
in_ns "$A" nft delete table inet "nexusguard-$WA"
wait_until 15 "the forward" is_forwarded
in_ns "$A" sysctl -qw net.ipv4.ip_forward=0
wait_until 15 "the leave to forward" is_forwarded
in_ns "$B" nft flush ruleset
in_ns "$B" sh -c 'ip rule flush; ip rule add pref 32766 table main'
wait_until 15 "the answers" is_forwarded
CHECKS=$((CHECKS + 3))

step "a keeper that is killed leaves all of it to the next"
for ns in "$A" "$B"; do
    interface=$([[ $ns == "$A" ]] && echo "$WA" || echo "$WB")
    pid=$(cat "/run/nexusguard/$interface.lock")
    ip netns pids "$ns" | grep -qx "$pid" || fail "no keeper of $interface"
    kill -KILL "$pid"
    wait_until 10 "the keeper to be gone" is_gone kill -0 "$pid"
done
expect_equal "the forward works without them" "$(seen "$O" 198.51.100.1 8443)" 198.51.100.9
before=$(handle)
ask "$A" up "$WORK/$WA.conf" --forward 'tcp:8443=10.77.0.2:7000!,udp:8443=10.99.0.5:7000!,tcp:8600=10.99.0.5:7000!'
ask "$B" up "$WORK/$WB.conf" --answer-through-tunnel
expect_equal "the table is adopted" "$(handle)" "$before"
expect_equal "and so is the rule" "$(in_ns "$B" ip -4 rule | grep fwmark)" "$(grep fwmark "$WORK/rules.b")"

step "down leaves nothing, and nothing of others is touched (C46)"
ask "$A" down "$WA"
ask "$B" down "$WB"
expect_equal "rules of nft" "$(rules "$A")" "$(cat "$WORK/rules.before")"
expect_equal "settings" "$(sysctls)" "$(cat "$WORK/sysctls.before")"
expect_equal "rules of routing" "$(in_ns "$B" ip -4 rule | wc -l) $(in_ns "$B" ip -6 rule | wc -l)" "2 2" # default is gone with the flush above
