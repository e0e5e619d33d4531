# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Shared by the network tests, which source it first. Needs root. Everything lives in network
# namespaces of the test's own; every name carries the process id, so that tests run side by side.
#
#   netns $A                                             netns $B
#  ┌───────────────────────────────┐              ┌───────────────────────────────┐
#  │ $WA  10.77.0.1  fd77::1       │              │ $WB  10.77.0.2  fd77::2       │
#  │   │                           │              │   │                           │
#  │ engine ── veth $VA ───────────┼──────────────┼── veth $VB ── engine          │
#  │        192.0.2.1  2001:db8::1 │              │        192.0.2.2  2001:db8::2 │
#  └───────────────────────────────┘              └───────────────────────────────┘
#
# Parameters (environment):
#   ENGINE  the program under test         default: .build/release/nexusguard-engine
#   PEER    the other end of the tunnel    default: wireguard-go
# The pseudo-program "kernel" is the kernel's own WireGuard (tools/kernel-vm has one).
#
# A test ends with 0 (passed), 77 (skipped, with the reason on its last line) or anything else.
# It never waits a fixed time: wait_until polls a condition and gives up after a bound.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
ENGINE=${ENGINE:-$ROOT/.build/release/nexusguard-engine}
PEER=${PEER:-wireguard-go}
SOCKETS=/var/run/wireguard
# shellcheck source-path=SCRIPTDIR
source "$HERE/flow_lib.sh"

P=n$$
A=${P}A B=${P}B
VA=${P}va VB=${P}vb
WA=${P}wa WB=${P}wb
WORK=$(mktemp -d "/tmp/$P.XXXXXX")

# The state the trap undoes, in the order it was made.
NAMESPACES=()
declare -A ENGINE_PID=() # interface → process
BACKGROUND=()
CHECKS=0

say() { printf '%s\n' "$*"; }
step() { printf '\n== %s\n' "$*"; }
# Echoes a command, then runs it. Keys never stand on a command line, so none is printed.
run() {
    printf '  $ %s\n' "$*"
    "$@"
}
in_ns() {
    local ns=$1
    shift
    ip netns exec "$ns" "$@"
}
skip() {
    say "SKIP: $*"
    exit 77
}
fail() {
    say "FAIL: $*"
    local interface ns
    for interface in "${!ENGINE_PID[@]}"; do
        if [[ -s $WORK/$interface.log ]]; then
            say "-- last lines of $interface"
            tail -n "${LOG_LINES:-20}" "$WORK/$interface.log"
        fi
        if [[ -S /run/nexusguard/$interface.engine ]]; then
            say "-- counters of $interface"
            python3 "$HERE/traffic.py" counters "/run/nexusguard/$interface.engine" || true
        fi
    done
    for ns in "${NAMESPACES[@]}"; do
        say "-- UDP errors in $ns: $(net_counter "$ns" Udp InErrors) in, of which" \
            "$(net_counter "$ns" Udp RcvbufErrors) buffer full; $(net_counter "$ns" Udp SndbufErrors) out"
    done
    exit 1
}
# expect DESCRIPTION COMMAND…: the command succeeds.
expect() {
    local description=$1
    shift
    "$@" >"$WORK/expect.out" 2>&1 || {
        cat "$WORK/expect.out"
        fail "$description"
    }
    CHECKS=$((CHECKS + 1))
    say "  ok: $description"
}
expect_equal() {
    [[ $2 == "$3" ]] || fail "$1: got '$2', expected '$3'"
    CHECKS=$((CHECKS + 1))
    say "  ok: $1: $2"
}
# expect_at_least DESCRIPTION ACTUAL MINIMUM
expect_at_least() {
    (($2 >= $3)) || fail "$1: got $2, expected at least $3"
    CHECKS=$((CHECKS + 1))
    say "  ok: $1: $2 (at least $3)"
}
# An emulated machine (tools/kernel-vm) gets ten times as long.
PATIENCE=${KERNEL_VM:+10}
PATIENCE=${PATIENCE:-1}
# wait_until SECONDS DESCRIPTION COMMAND…: SECONDS is what it may take where there is a processor for it;
# three times as much on one that others want as well. Only failures wait so long.
wait_until() {
    local deadline=$((SECONDS + $1 * PATIENCE * 3)) description=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < deadline)) || fail "waited in vain for: $description"
        sleep 0.05 # between two looks at the condition
    done
}
is_gone() { ! "$@"; }

# needs_command: sets COMMAND, unless it is set, and for what it starts NEXUSGUARD_ENGINE; a test is
# skipped where either is not built.
needs_command() {
    COMMAND=${COMMAND:-$ROOT/.build/release/nexusguard}
    command -v "$COMMAND" >/dev/null || skip "no command at $COMMAND (build it, or set COMMAND)"
    NEXUSGUARD_ENGINE=$(command -v "$ENGINE") || skip "no engine at $ENGINE (build it, or set ENGINE)"
    export NEXUSGUARD_ENGINE
}
# The command under test on host A, and the keeper of $WA there.
nexusguard() { in_ns "$A" "${OWN_ETC[@]}" "$COMMAND" "$@"; }
# etc_create: from then on the command has an /etc of the test's own, $WORK/etc, with a resolv.conf, and a
# place for what was in it, $WORK/lib.
OWN_ETC=()
etc_create() {
    local file
    mkdir -p "$WORK/etc" "$WORK/lib" /var/lib/nexusguard
    for file in hosts passwd group ld.so.cache ld.so.conf ld.so.conf.d iproute2; do
        [[ ! -e /etc/$file ]] || cp -a "/etc/$file" "$WORK/etc/"
    done
    printf 'hosts: files dns\n' >"$WORK/etc/nsswitch.conf"
    printf 'nameserver 192.0.2.53\n' >"$WORK/etc/resolv.conf"
    # ip-netns(8) has given the command a mount namespace of its own. Its process id stays the same.
    printf '#!/bin/sh\nmount --bind %s /etc && mount --bind %s /var/lib/nexusguard && exec "$@"\n' \
        "$WORK/etc" "$WORK/lib" >"$WORK/own_etc"
    chmod 755 "$WORK/own_etc"
    OWN_ETC=("$WORK/own_etc")
}
# Whether a tunnel's DNS settings go into the file.
has_resolver_file() { [[ ! -e /usr/sbin/resolvconf && ! -d /run/systemd/system ]]; }
ask() {
    say "  $ ($A) nexusguard $*"
    nexusguard "$@" >"$WORK/ask.log" 2>&1 || {
        cat "$WORK/ask.log"
        fail "nexusguard $*"
    }
}
# Ours, or nobody's: a process id may have been given to somebody else.
keeper_pid() {
    local pid
    pid=$(cat "/run/nexusguard/$WA.lock" 2>/dev/null) || return 1
    ip netns pids "$A" | grep -qx "$pid" && echo "$pid"
}
# keeper_killed_within MILLISECONDS ARGUMENT…: `nexusguard ARGUMENT…`, whose keeper is killed (-9) at a random
# point of the time after its start; the load of the machine makes it more random. KILLED counts the
# keepers that were there to be killed.
KILLED=0
keeper_killed_within() {
    local limit=$1 client pid
    shift
    nexusguard "$@" >"$WORK/killed.log" 2>&1 &
    client=$!
    sleep "0.$(printf %03d $((RANDOM % limit)))"
    if pid=$(keeper_pid); then
        kill -KILL "$pid" 2>/dev/null && KILLED=$((KILLED + 1))
    fi
    wait "$client" || true
}

cleanup() {
    local status=$? pid ns
    trap '' INT TERM
    for pid in "${BACKGROUND[@]}" "${ENGINE_PID[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${BACKGROUND[@]}" "${ENGINE_PID[@]}"; do wait "$pid" 2>/dev/null || true; done
    for ns in "${NAMESPACES[@]}"; do
        # What a daemon or ip-netns left in the namespace: only processes of our own namespaces.
        for pid in $(ip netns pids "$ns" 2>/dev/null); do kill -KILL "$pid" 2>/dev/null || true; done
        # What a keeper that was ended noted about settings of the namespace.
        rm -f /run/nexusguard/*."$(stat -Lc %i "/run/netns/$ns" 2>/dev/null || echo none)".setting
        ip netns del "$ns" 2>/dev/null || true
    done
    # Names go on with a letter: n12 must not remove what belongs to n123.
    rm -f "$SOCKETS/$P"[!0-9]*.sock "/run/nexusguard/$P"[!0-9]*
    rm -rf "$WORK"
    if [[ $status -eq 0 && $CHECKS -eq 0 ]]; then
        say "FAIL: no check ran"
        status=1
    fi
    [[ $status -ne 0 ]] || say "PASS: $CHECKS checks"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

[[ $(id -u) -eq 0 ]] || skip "needs root"
# Whether a program, or the kernel's WireGuard, is there.
program_exists() {
    if [[ $1 == kernel ]]; then
        ip link add "${P}probe" type wireguard 2>/dev/null && ip link del "${P}probe"
    else
        command -v "$1" >/dev/null
    fi
}
program_exists "$ENGINE" || skip "no engine at $ENGINE (build it, or set ENGINE)"
program_exists "$PEER" || skip "no peer program '$PEER' (tools/setup installs wireguard-go)"

# ---- topology ----------------------------------------------------------------------------------

netns_create() {
    ip netns add "$1"
    NAMESPACES+=("$1")
    # Without duplicate address detection an address is usable at once.
    in_ns "$1" sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
    in_ns "$1" ip link set lo up
}

# veth_create NAMESPACE LINK NAMESPACE LINK
veth_create() {
    ip link add "$2" netns "$1" type veth peer name "$4" netns "$3"
    in_ns "$1" ip link set "$2" up
    in_ns "$3" ip link set "$4" up
}

topology_pair() {
    step "topology: $A ($VA) === ($VB) $B"
    netns_create "$A"
    netns_create "$B"
    veth_create "$A" "$VA" "$B" "$VB"
    in_ns "$A" ip addr add 192.0.2.1/24 dev "$VA"
    in_ns "$A" ip addr add 2001:db8::1/64 dev "$VA" nodad
    in_ns "$B" ip addr add 192.0.2.2/24 dev "$VB"
    in_ns "$B" ip addr add 2001:db8::2/64 dev "$VB" nodad
}

# ---- engines -----------------------------------------------------------------------------------

# wg removes a socket that refuses it, as one does that is bound and does not listen yet: so it is
# asked only once the socket listens.
engine_answers() {
    in_ns "$1" ss -H -x -l | grep -qF "/$2.sock" && in_ns "$1" wg show "$2" listen-port
}

# engine_start NAMESPACE INTERFACE PROGRAM [ARGUMENT…]: returns when its socket answers.
engine_start() {
    local ns=$1 interface=$2 program=$3
    shift 3
    if [[ $program == kernel ]]; then
        # Made there: its sockets stay in the namespace in which it was made.
        run ip -n "$ns" link add "$interface" type wireguard
        ENGINE_PID[$interface]=kernel:$ns
        return
    fi
    say "  $ ($ns) ${program##*/} -f $* $interface"
    # ip netns exec replaces itself: the process id is the engine's own.
    WG_PROCESS_FOREGROUND=1 LOG_LEVEL=${LOG_LEVEL:-error} \
        ip netns exec "$ns" "$program" -f "$@" "$interface" >"$WORK/$interface.log" 2>&1 &
    ENGINE_PID[$interface]=$!
    wait_until 10 "${program##*/} to answer on $interface" engine_answers "$ns" "$interface"
}
engine_runs() {
    local end=${ENGINE_PID[$1]}
    if [[ $end == kernel:* ]]; then
        in_ns "${end#kernel:}" ip link show "$1" >/dev/null 2>&1
    else
        kill -0 "$end" 2>/dev/null
    fi
}
# engine_ended INTERFACE: true when the process is gone or only waits to be reaped.
engine_ended() {
    [[ ! -r /proc/${ENGINE_PID[$1]}/stat ]] || [[ $(cut -d' ' -f3 "/proc/${ENGINE_PID[$1]}/stat") == Z ]]
}
# engine_stop INTERFACE: ends it and reaps it. Its exit code is in ENGINE_STATUS.
# shellcheck disable=SC2034 # read by tests
ENGINE_STATUS=0
engine_stop() {
    if [[ ${ENGINE_PID[$1]} == kernel:* ]]; then
        in_ns "${ENGINE_PID[$1]#kernel:}" ip link del "$1"
        ENGINE_STATUS=0
        unset "ENGINE_PID[$1]"
        return
    fi
    kill -TERM "${ENGINE_PID[$1]}" 2>/dev/null || true
    engine_reap "$1"
}
engine_reap() {
    ENGINE_STATUS=0
    # shellcheck disable=SC2034
    wait "${ENGINE_PID[$1]}" 2>/dev/null || ENGINE_STATUS=$?
    unset "ENGINE_PID[$1]"
}
engine_accepts_option() {
    in_ns "$A" "$ENGINE" --help 2>/dev/null | grep -q -- "$1"
}

keys_create() {
    local name
    for name in "$@"; do
        (umask 077 && wg genkey >"$WORK/$name.key")
        wg pubkey <"$WORK/$name.key" >"$WORK/$name.pub"
    done
}
key_of() { cat "$WORK/$1.pub"; }

# tunnel_configure NAMESPACE INTERFACE OWN-KEY PEER-KEY NUMBER [wg set peer arguments…]
# NUMBER 1 or 2 picks the inner addresses.
tunnel_configure() {
    local ns=$1 interface=$2 own=$3 peer=$4 number=$5
    shift 5
    in_ns "$ns" wg set "$interface" listen-port 51820 private-key "$WORK/$own.key"
    say "  $ ($ns) wg set $interface peer $peer allowed-ips 10.77.0.$((3 - number)),… $*"
    in_ns "$ns" wg set "$interface" peer "$(key_of "$peer")" \
        allowed-ips "10.77.0.$((3 - number))/32,fd77::$((3 - number))/128" "$@"
    in_ns "$ns" ip addr add "10.77.0.$number/24" dev "$interface"
    in_ns "$ns" ip addr add "fd77::$number/64" dev "$interface" nodad
    in_ns "$ns" ip link set "$interface" up
}

# tunnel_pair PROGRAM-A PROGRAM-B: both engines, fresh keys, both know the other's endpoint.
# ARGS_A and ARGS_B are arrays of further arguments of the engines.
ARGS_A=() ARGS_B=()
tunnel_pair() {
    keys_create a b
    engine_start "$A" "$WA" "$1" "${ARGS_A[@]}"
    engine_start "$B" "$WB" "$2" "${ARGS_B[@]}"
    tunnel_configure "$A" "$WA" a b 1 endpoint 192.0.2.2:51820
    tunnel_configure "$B" "$WB" b a 2 endpoint 192.0.2.1:51820
}
tunnel_pair_stop() {
    engine_stop "$WA"
    engine_stop "$WB"
}

# ---- observations ------------------------------------------------------------------------------

# wg_field NAMESPACE INTERFACE FIELD: what `wg show` says about the only peer, without its key.
wg_field() { in_ns "$1" wg show "$2" "$3" | cut -f2-; }
has_handshake() { [[ $(wg_field "$1" "$2" latest-handshakes) -gt 0 ]]; }

# net_counter NAMESPACE PREFIX NAME: a counter of /proc/net/netstat or /proc/net/snmp.
net_counter() {
    # shellcheck disable=SC2016 # awk's own fields
    in_ns "$1" awk -v prefix="$2:" -v name="$3" '
        $1 == prefix && !header { split($0, names); header = 1; next }
        $1 == prefix { for (i in names) if (names[i] == name) print $i; header = 0 }
    ' /proc/net/netstat /proc/net/snmp
}

# nft_count NAMESPACE COUNTER: packets counted by a named counter of table inet t.
nft_count() {
    in_ns "$1" nft -j list counter inet t "$2" |
        python3 -c 'import json, sys
print(next(o["counter"]["packets"] for o in json.load(sys.stdin)["nftables"] if "counter" in o))'
}

# ---- traffic -----------------------------------------------------------------------------------

traffic() {
    local ns=$1
    shift
    timeout $((60 * PATIENCE)) ip netns exec "$ns" python3 "$HERE/traffic.py" "$@"
}
listens() { [[ -n $(in_ns "$1" ss -H -l "-$2" -n "sport = :$3") ]]; }
# background NAMESPACE COMMAND…: ended by the trap. Its id is in BACKGROUND_PID.
background() {
    local ns=$1
    shift
    ip netns exec "$ns" "$@" >"$WORK/background.log" 2>&1 &
    BACKGROUND_PID=$!
    BACKGROUND+=("$BACKGROUND_PID")
}
servers_start() {
    local ns=$1
    background "$ns" python3 "$HERE/traffic.py" serve 7000
    wait_until 10 "the TCP server" listens "$ns" t 7000
    wait_until 10 "the UDP echo" listens "$ns" u 7000
}
# expect_ping DESCRIPTION NAMESPACE ADDRESS [ping arguments…]
expect_ping() {
    local description=$1 ns=$2 address=$3
    shift 3
    # A handshake whose initiation found the other end not up yet is begun again after 5.3 s.
    expect "$description" in_ns "$ns" ping -n -q -c 3 -i 0.05 -W $((8 * PATIENCE)) "$@" "$address"
}
# expect_traffic NAMESPACE ADDRESS MEGABYTES: exact bytes by TCP both ways, UDP of awkward sizes.
expect_traffic() {
    expect "TCP to $2, $3 MB each way, same bytes" traffic "$1" tcp "$2" 7000 "$3"
    expect "UDP to $2, 0 to 65,000 bytes, same bytes" traffic "$1" udp "$2" 7000
}

# iperf NAMESPACE ADDRESS SERVER-NAMESPACE FILE [ARGUMENT…]: JSON result into FILE.
iperf() {
    local ns=$1 address=$2 server=$3 file=$4
    shift 4
    background "$server" iperf3 -s -1 -p 5201
    wait_until 10 "iperf3 to listen" listens "$server" t 5201
    say "  $ ($ns) iperf3 -c $address $*"
    timeout 300 ip netns exec "$ns" iperf3 -J -c "$address" -p 5201 "$@" >"$file" || {
        tail -n 5 "$file"
        fail "iperf3 to $address $*"
    }
    wait "$BACKGROUND_PID" 2>/dev/null || true
}
# json FILE EXPRESSION: EXPRESSION is Python about `d`, the document.
json() { python3 -c "import json, sys; d = json.load(open(sys.argv[1])); print($2)" "$1"; }
