#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The program as a process: readiness, exit codes, rights, sockets, clients, and that nothing is
# left behind. Packets are not its subject. Needs root.
#
#   network namespace and mount namespace of its own; /run is a fresh tmpfs
#  ┌──────────────────────────────────────────────────┐
#  │ wg, python clients ── /run/wireguard/wg0.sock    │
#  │                       /run/nexusguard/wg0.engine │
#  │                              │                   │
#  │                       engine ── wg0              │
#  └──────────────────────────────────────────────────┘
#
# Parameters (environment):
#   ENGINE  the program under test    default: .build/release/nexusguard-engine
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ENGINE=$(readlink -f "${ENGINE:-$HERE/../../.build/release/nexusguard-engine}")

if [[ -z ${ENGINE_PROCESS_INSIDE:-} ]]; then
    [[ $EUID == 0 ]] || { echo "SKIP: needs root"; exit 77; }
    [[ -x $ENGINE ]] || { echo "SKIP: $ENGINE is not built"; exit 77; }
    export ENGINE ENGINE_PROCESS_INSIDE=1
    exec unshare --net --mount --propagation private -- "$0" "$@"
fi
unset ENGINE_PROCESS_INSIDE

CONTROL=/run/wireguard/wg0.sock
STATE=/run/nexusguard/wg0.engine
CHECKS=0
PID=

mount -t tmpfs none /run
mkdir -m 0700 /run/work
ip link set lo up

step() { printf '\n== %s\n' "$*"; }
fail() {
    echo "FAIL: $*"
    [[ ! -s /run/work/err ]] || { echo "-- standard error"; cat /run/work/err; }
    exit 1
}
ok() {
    CHECKS=$((CHECKS + 1))
    echo "  ok: $*"
}
expect_equal() { # DESCRIPTION ACTUAL EXPECTED
    [[ $2 == "$3" ]] || fail "$1: got '$2', expected '$3'"
    ok "$1"
}
expect_match() { # DESCRIPTION ACTUAL PATTERN
    [[ $2 =~ $3 ]] || fail "$1: '$2' does not match '$3'"
    ok "$1"
}
expect() { # DESCRIPTION COMMAND…
    local description=$1
    shift
    "$@" >/run/work/expect.out 2>&1 || {
        cat /run/work/expect.out
        fail "$description"
    }
    ok "$description"
}
not() { ! "$@"; }

# What the shell cannot do: ask a socket who listens, wait for a process, hold connections, hand over
# descriptors. Every wait is for an event.
cat >/run/work/helper.py <<'PYTHON'
import base64, fcntl, os, select, socket, struct, subprocess, sys, time

def connect(path):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(60)
    client.connect(path)
    return client

def ask(path, request, end=b"\n\n"):
    with connect(path) as client:
        client.sendall(request)
        answer = b""
        while not answer.endswith(end):
            part = client.recv(65536)
            if not part:
                break
            answer += part
        return answer.decode()

def owner(path):
    with connect(path) as client:
        credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        print(struct.unpack("3i", credentials)[0])

def ended(pid):
    """Waits until the process has ended; 1 when it has not after 30 s."""
    try:
        descriptor = os.pidfd_open(int(pid))
    except ProcessLookupError:
        return 0
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return 0 if poller.poll(30000) else 1

def peers(count):
    for number in range(int(count)):
        key = base64.b64encode(b"peer %-27d" % number).decode()
        print(f"[Peer]\nPublicKey = {key}\nAllowedIPs = 10.{number >> 8}.{number & 255}.0/24")

def idle_client(path, request):
    """Prints how the engine ends a client that falls silent, and after how many seconds."""
    with connect(path) as client:
        client.sendall(request.encode())
        start = time.monotonic()
        data = client.recv(1)
        print("closed" if data == b"" else "answered", round(time.monotonic() - start))

def limit(path):
    """64 clients are kept; a further one pushes out the one that is idle longest."""
    clients = []
    for number in range(65):
        client = connect(path)
        client.sendall(b"get=1\n\n")
        answer = b""
        while not answer.endswith(b"errno=0\n\n"):
            answer += client.recv(65536)
        clients.append(client)
    first = clients[0].recv(1)
    for client in clients[1:]:
        client.sendall(b"get=1\n\n")
        if not client.recv(65536):
            return 1
    print("first closed" if first == b"" else "first open", len(clients) - 1, "served")

def stall(path, ready, stop):
    """Half requests, and requests whose answers nobody reads; holds them until told to stop."""
    clients = [connect(path) for _ in range(40)]
    for client in clients[:20]:
        client.sendall(b"set=1\nlisten_po")
    for client in clients[20:]:
        client.setblocking(False)
        try:
            while True:
                client.send(b"get=1\n\n" * 64)
        except BlockingIOError:
            pass
    open(ready, "w").close()
    with open(stop):  # a FIFO
        pass

def tun():
    descriptor = os.open("/dev/net/tun", os.O_RDWR)
    # linux/if_tun.h: TUNSETIFF; IFF_TUN | IFF_NO_PI | IFF_VNET_HDR
    fcntl.ioctl(descriptor, 0x400454CA, struct.pack("16sH22x", b"given0", 0x0001 | 0x1000 | 0x4000))
    return descriptor

def listening(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(8)
    return server

def with_descriptors(*arguments):
    """Starts COMMAND… NAME with a TUN device and a socket listening on PATH."""
    *command, path = arguments
    device, server = tun(), listening(path)
    os.set_inheritable(device, True)
    server.set_inheritable(True)
    environment = dict(os.environ, WG_TUN_FD=str(device), WG_UAPI_FD=str(server.fileno()))
    return subprocess.call(command, env=environment, close_fds=False)

def wrong_descriptor(engine, variable):
    descriptor = os.open("/dev/null", os.O_RDWR)
    os.set_inheritable(descriptor, True)
    environment = dict(os.environ, **{variable: str(descriptor)})
    return subprocess.call([engine, "wg0"], env=environment, close_fds=False)

def notified(engine, name):
    """The states a service manager hears while the engine starts and ends."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    server.bind("/run/work/notify")
    server.settimeout(60)
    environment = dict(os.environ, NOTIFY_SOCKET="/run/work/notify", LOG_LEVEL="silent")
    process = subprocess.Popen([engine, "-f", name], env=environment)
    first = server.recv(100).decode()
    answer = ask(f"/run/wireguard/{name}.sock", b"get=1\n\n")
    process.terminate()
    print(first, "errno=0" in answer, server.recv(100).decode(), process.wait())

sys.exit(globals()[sys.argv[1]](*sys.argv[2:]))
PYTHON
helper() { python3 /run/work/helper.py "$@"; }
ask_state() {
    python3 -c 'import sys; sys.argv = ["", "owner", sys.argv[1]]
exec(open("/run/work/helper.py").read().rsplit("sys.exit(", 1)[0])
print(ask(sys.argv[2], b"get=1\n\n", b"\n"))' "$STATE"
}

start() { # To the background; sets PID.
    "$ENGINE" wg0 2>/run/work/err || fail "start: exit code $?"
    PID=$(helper owner "$CONTROL")
}
exit_code() { # COMMAND…: its standard error is kept
    local code=0
    "$@" >/run/work/out 2>/run/work/err || code=$?
    echo "$code"
}
# Waits for a foreground engine by what it promises: its socket accepts.
await_socket() {
    local _
    for _ in {1..3000}; do
        wg show wg0 >/dev/null 2>&1 && return
        kill -0 "$1" 2>/dev/null || fail "the engine ended during its start"
    done
    fail "no socket"
}
nothing_left() {
    [[ ! -e $CONTROL ]] || fail "$1: $CONTROL is left"
    [[ ! -e $STATE ]] || fail "$1: $STATE is left"
    not ip link show wg0 >/dev/null 2>&1 || fail "$1: wg0 is left"
    ok "$1: nothing is left behind"
}
stop() {
    kill -TERM "$PID"
    expect "$1: the process ends" helper ended "$PID"
    nothing_left "$1"
}
# Also one that a failed check did not expect to run: it ends with its socket (pitfall 62).
trap 'rm -f /run/wireguard/*.sock; [[ -z $PID ]] || kill -KILL "$PID" 2>/dev/null || true' EXIT

step "texts"
expect_equal "--help ends with 0" "$(exit_code "$ENGINE" --help)" 0
help=$(</run/work/out)
expect_equal "--help writes no error" "$(</run/work/err)" ""
for word in IFNAME --foreground --workers --mtu --aead --spin --no-vnet-hdr --no-tun-gso --no-tun-uso \
    --no-tun-merge --no-tun-udp-merge --no-udp-gso --no-udp-gro --no-sendmmsg --no-steering \
    --state-socket --version NEXUSGUARD_WORKERS NEXUSGUARD_NO_TUN_UDP_MERGE \
    WG_PROCESS_FOREGROUND WG_TUN_FD WG_UAPI_FD LOG_LEVEL; do
    [[ $help == *"$word"* ]] || fail "--help does not name $word"
done
ok "--help names every option and variable"
expect_match "--version" "$("$ENGINE" --version)" '^nexusguard-engine [0-9]+\.[0-9]+\.[0-9]+$'

step "usage errors: code 2, one line that names the thing"
usage() { # PATTERN COMMAND…
    local pattern=$1
    shift
    expect_equal "${*//$ENGINE/engine}: code" "$(exit_code "$@")" 2
    expect_match "  its line" "$(</run/work/err)" "$pattern"
    expect_equal "  one line" "$(wc -l </run/work/err)" 1
}
usage 'name is missing' "$ENGINE"
usage '"wg1"' "$ENGINE" wg0 wg1
usage 'not an interface name' "$ENGINE" sixteen-letters-
usage 'not an interface name' "$ENGINE" ..
usage 'not an interface name' "$ENGINE" a/b
usage 'not an interface name' "$ENGINE" ''
usage 'not an interface name' "$ENGINE" $'a\nb'
usage '"--bogus"' "$ENGINE" --bogus wg0
usage '"-x"' "$ENGINE" -fx wg0
usage '--workers' "$ENGINE" wg0 --workers
usage '--workers' "$ENGINE" --workers=65 wg0
usage '--workers' "$ENGINE" --workers +2 wg0
usage '--mtu' "$ENGINE" --mtu 67 wg0
usage '--aead' "$ENGINE" --aead rot13 wg0
usage '--no-udp-gso' "$ENGINE" --no-udp-gso=1 wg0
usage '--state-socket' "$ENGINE" --state-socket relative wg0
usage '--spin: "100001" is not a number from 0 to 100000' "$ENGINE" --spin 100001 wg0
usage 'NEXUSGUARD_WORKERS' env NEXUSGUARD_WORKERS=two "$ENGINE" wg0
usage 'NEXUSGUARD_NO_TUN_GSO' env NEXUSGUARD_NO_TUN_GSO=yes "$ENGINE" wg0
usage 'LOG_LEVEL' env LOG_LEVEL=loud "$ENGINE" wg0
usage 'WG_TUN_FD' env WG_TUN_FD=99 "$ENGINE" wg0
usage 'WG_UAPI_FD' env WG_UAPI_FD=x "$ENGINE" wg0
nothing_left "usage errors"

step "no permission: code 4"
expect_equal "without CAP_NET_ADMIN" \
    "$(exit_code setpriv --bounding-set -net_admin --inh-caps -net_admin "$ENGINE" wg0)" 4
expect_match "  its line" "$(</run/work/err)" 'wg0.*CAP_NET_ADMIN'
nothing_left "no permission"

step "failures: code 1"
expect_equal "WG_TUN_FD that is no TUN" "$(exit_code helper wrong_descriptor "$ENGINE" WG_TUN_FD)" 1
expect_equal "WG_UAPI_FD that is no socket" \
    "$(exit_code helper wrong_descriptor "$ENGINE" WG_UAPI_FD)" 1
nothing_left "wrong descriptors"
mount -t tmpfs none /dev/net
expect_equal "no /dev/net/tun" "$(exit_code "$ENGINE" wg0)" 1
expect_match "  its line" "$(</run/work/err)" '/dev/net/tun'
umount /dev/net
nothing_left "no /dev/net/tun"
# shellcheck disable=SC2016 # expanded by the inner shell
expect_equal "no /proc" \
    "$(exit_code unshare --mount sh -c 'umount -l /proc; exec "$0" wg0' "$ENGINE")" 1
expect_match "  its line" "$(</run/work/err)" '/proc'
nothing_left "no /proc"
expect_equal "a state socket that cannot be made" \
    "$(exit_code "$ENGINE" --state-socket /proc/none/wg0 wg0)" 1
expect_match "  its line" "$(</run/work/err)" '/proc/none'
nothing_left "no state socket"

step "busy: code 8"
ip link add wg0 type veth peer name other0
expect_equal "device name taken" "$(exit_code "$ENGINE" wg0)" 8
expect_match "  its line" "$(</run/work/err)" 'wg0'
expect "the other's device stays" ip link show wg0
ip link del wg0
nothing_left "device name taken"
mkdir -p /run/wireguard
echo mine >$CONTROL
expect_equal "a file in the socket's place" "$(exit_code "$ENGINE" wg0)" 8
expect_match "  its line" "$(</run/work/err)" "$CONTROL"
expect_equal "the file stays" "$(<$CONTROL)" mine
rm $CONTROL
nothing_left "a file in the way"
rmdir /run/wireguard /run/nexusguard 2>/dev/null || true
ip tuntap add wg0 mode tun
start
expect_equal "a TUN device nobody uses is taken over" "$(wg show)" "interface: wg0"
expect_equal "  but not by two" "$(exit_code "$ENGINE" --state-socket /run/work/second wg0)" 8
kill -TERM "$PID"
expect "  SIGTERM" helper ended "$PID"
expect "  and stays" ip link show wg0
ip link del wg0
nothing_left "device taken over"

step "ready when it returns"
for _ in {1..5}; do
    start
    wg show wg0 >/run/work/out || fail "wg show right after the start"
    expect_equal "wg show, at once" "$(<"/run/work/out")" "interface: wg0"
    stop "SIGTERM"
done
expect_equal "C85: directory made" "$(stat -c %a /run/wireguard /run/nexusguard | xargs)" "755 755"

step "a daemon with two rights"
exec 9</etc/passwd
start
exec 9<&-
expect_equal "already running: code" "$(exit_code "$ENGINE" wg0)" 8
expect_match "  its line" "$(</run/work/err)" 'already running'
expect "  the first one still answers" wg show wg0
expect_equal "own session" "$(ps -o sid= -p "$PID" | tr -d ' ')" "$PID"
expect_equal "working directory" "$(readlink "/proc/$PID/cwd")" /
expect_equal "umask" "$(awk '/^Umask/ {print $2}' "/proc/$PID/status")" 0077
for stream in 0 1 2; do
    expect_equal "stream $stream" "$(readlink "/proc/$PID/fd/$stream")" /dev/null
done
expect_equal "no inherited file" "$(find "/proc/$PID/fd" -lname '/etc/*' | wc -l)" 0
expect_equal "core limit" "$(awk '/core file/ {print $5, $6}' "/proc/$PID/limits")" "0 0"
expect_equal "sockets" "$(stat -c '%a %F' $CONTROL $STATE | xargs)" "600 socket 600 socket"
threads=0
for task in "/proc/$PID/task"/*; do
    # CAP_NET_BIND_SERVICE is bit 10, CAP_NET_ADMIN bit 12.
    for field in CapInh:0000000000000000 CapPrm:0000000000001400 CapEff:0000000000001400 \
        CapBnd:0000000000000000 CapAmb:0000000000000000 NoNewPrivs:1 Seccomp:2; do
        value=$(awk -v key="${field%:*}:" '$1 == key {print $2}' "$task/status")
        [[ $value == "${field#*:}" ]] || fail "thread ${task##*/}: ${field%:*} is $value"
    done
    threads=$((threads + 1))
done
expect "every one of $threads threads holds two capabilities and a filter" test "$threads" -gt 1
slices=$(python3 "$HERE/observe.py" slices "$PID")
if [[ $slices == *=[1-9]* ]]; then
    # Linux 6.12 and later; the others' slices are longer.
    expect_equal "slices of the data threads, ns" "$(xargs -n 1 <<<"$slices" | grep worker | sort -t = -k 2 -u)" \
        "worker-0-a=100000"
    expect_equal "  of others that are as short" "$(xargs -n 1 <<<"$slices" | grep -v worker | grep -c =100000)" 0
fi
expect_match "the state socket answers" "$(ask_state)" '^\{.*"name":"wg0".*\}$'

step "configured while confined"
(umask 077 && wg genkey >/run/work/key)
expect "pitfall 64: a port below 1024" wg set wg0 private-key /run/work/key listen-port 89 fwmark 7
expect_equal "wg show" "$(wg show wg0 listen-port) $(wg show wg0 fwmark)" "89 0x7"

step "no client holds up another"
helper peers 2000 >/run/work/peers.conf
expect "2,000 peers" wg addconf wg0 /run/work/peers.conf
mkfifo /run/work/stop
helper stall $CONTROL /run/work/stalled /run/work/stop &
STALLED=$!
while [[ ! -e /run/work/stalled ]]; do
    kill -0 $STALLED 2>/dev/null || fail "the stalling clients ended"
done
expect_equal "40 clients stall, wg show answers" "$(wg show wg0 peers | wc -l)" 2000
expect_match "the state socket too" "$(ask_state)" '"name":"wg0"'
memory=$(awk '/^VmRSS/ {print $2}' "/proc/$PID/status")
expect "what they do not read stays bounded ($memory kB)" test "$memory" -lt 200000
: >/run/work/stop
wait $STALLED
expect_equal "64 clients, the longest idle one makes room" "$(helper limit $CONTROL)" \
    "first closed 64 served"
helper idle_client $CONTROL '' >/run/work/idle1 &
IDLE1=$!
helper idle_client $CONTROL $'set=1\nreplace_peers=true\n' >/run/work/idle2 &
IDLE2=$!
wait $IDLE1 $IDLE2
for number in 1 2; do
    expect_match "C101: a silent client is closed" "$(</run/work/idle$number)" '^closed (29|[3-5].)$'
done
expect_equal "an unfinished replacement removed nobody" "$(wg show wg0 peers | wc -l)" 2000
switches() { awk '/^voluntary/ {print $2}' "/proc/$PID/task/$PID/status"; }
before=$(switches)
sleep 2 # the window that is measured
expect_equal "an idle program sleeps" "$(switches)" "$before"

step "ends"
kill -HUP "$PID"
expect "a daemon does not mind SIGHUP" wg show wg0
kill -INT "$PID"
expect "SIGINT" helper ended "$PID"
nothing_left "SIGINT"
start
ip link del wg0
expect "device deleted" helper ended "$PID"
nothing_left "device deleted"
start
rm $CONTROL
expect "pitfall 62: socket removed" helper ended "$PID"
nothing_left "socket removed"
start
rm $CONTROL
echo other >$CONTROL
expect "pitfall 62: name taken by another" helper ended "$PID"
expect_equal "what is not ours stays" "$(<$CONTROL)" other
rm $CONTROL
nothing_left "name taken"
start
kill -KILL "$PID"
expect "SIGKILL" helper ended "$PID"
expect "its socket is left" test -S $CONTROL
start
expect "and the next start replaces it" wg show wg0
stop "after a crash"

step "foreground"
foreground() { # CODE SIGNAL COMMAND…
    local code=0 expected=$1 signal=$2
    shift 2
    "$@" 2>/run/work/err &
    PID=$!
    await_socket $PID
    kill "-$signal" $PID
    wait $PID || code=$?
    expect_equal "$signal ends ${*//$ENGINE/engine}" "$code" "$expected"
    nothing_left "$signal"
}
foreground 0 TERM "$ENGINE" -f wg0
expect_match "it logs to standard error" "$(</run/work/err)" 'confined: seccomp'
foreground 0 HUP "$ENGINE" wg0 --foreground
foreground 0 INT env WG_PROCESS_FOREGROUND=1 LOG_LEVEL=silent "$ENGINE" --workers=1 -- wg0
expect_equal "LOG_LEVEL=silent" "$(</run/work/err)" ""
PID=
expect_equal "the service manager hears" "$(helper notified "$ENGINE" wg0)" \
    $'READY=1\nSTATUS=tunnel wg0 True STOPPING=1 0'
"$ENGINE" -f wg0 2>/run/work/err &
PID=$!
await_socket $PID
ip link del wg0
code=0
wait $PID || code=$?
expect_equal "device deleted: code" $code 0
nothing_left "device deleted"

step "descriptors handed in"
PID=
expect "WG_TUN_FD and WG_UAPI_FD" helper with_descriptors "$ENGINE" asked0 /run/wireguard/given0.sock
PID=$(pgrep -n -f "^$ENGINE asked0\$")
expect_equal "wg show" "$(wg show)" "interface: given0"
expect "the device is the given one" ip link show given0
expect "and names the state socket" test -S /run/nexusguard/given0.engine
rm /run/wireguard/given0.sock
expect "pitfall 62: its removal ends the engine" helper ended "$PID"
expect "and the device" not ip link show given0
PID=
# Without CAP_NET_ADMIN: nothing of the device is left to make.
RIGHTLESS=(setpriv --bounding-set -net_admin --inh-caps -net_admin --)
expect "without CAP_NET_ADMIN" helper with_descriptors "${RIGHTLESS[@]}" "$ENGINE" asked0 \
    /run/wireguard/given0.sock
PID=$(pgrep -n -f "^$ENGINE asked0\$")
expect "  a port can be set" wg set given0 private-key /run/work/key listen-port 5000
expect_equal "  and is" "$(wg show given0 listen-port)" 5000
expect_equal "  rights" "$(awk '/^CapPrm/ {print $2}' "/proc/$PID/status")" 0000000000000400
kill -TERM "$PID"
expect "  SIGTERM" helper ended "$PID"
rm /run/wireguard/given0.sock
PID=
expect "once more" helper with_descriptors "$ENGINE" asked0 /run/wireguard/given0.sock
PID=$(pgrep -n -f "^$ENGINE asked0\$")
kill -TERM "$PID"
expect "SIGTERM" helper ended "$PID"
expect "the socket's name belongs to who made it" test -S /run/wireguard/given0.sock
PID=

echo
echo "PASS: $CHECKS checks"
