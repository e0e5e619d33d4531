#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Pitfall 65: whatever comes, an engine with one worker pair stays within 48 MB: TCP both ways, a
# flood of small datagrams, floods to peers that cannot be reached, clients of the configuration
# socket that do not read. Those that do are all served.
#
#   netns A: ENGINE $WA --workers 1  ═══  netns B: ENGINE $WB --workers 1
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

LIMIT=$((48 * 1024)) # kB
STAGED_LIMIT=$((16 * 1024 * 1024))
DEAD=200 # peers that cannot be reached: 128 packets for each would be 35 MB
observe() { python3 "$HERE/observe.py" "$@"; }
state() { observe state "$WA" "$1"; }

cat >"$WORK/load.py" <<'PYTHON'
import concurrent.futures, socket, sys

def spray(prefix, networks, rounds):
    """Full packets to PREFIX.0.1, PREFIX.1.1, … in turn, as fast as it goes."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    payload = bytes(1372)
    for _ in range(int(rounds)):
        for number in range(int(networks)):
            sender.sendto(payload, (f"{prefix}.{number}.1", 9))

def stall(path, clients, ready, stop):
    """Requests whose answers nobody reads, until told to stop."""
    connections = []
    for _ in range(int(clients)):
        client = socket.socket(socket.AF_UNIX)
        client.connect(path)
        client.setblocking(False)
        try:
            while True:
                client.send(b"get=1\n\n" * 64)
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            pass
        connections.append(client)
    for client in connections:  # every one has begun to be answered, or was cut off
        client.settimeout(30)
        try:
            client.recv(1, socket.MSG_PEEK)
        except ConnectionResetError:
            pass
    open(ready, "w").close()
    with open(stop):  # a FIFO
        pass

def ask_together(path, clients):
    """All ask before anybody reads; prints how many got a whole answer."""
    def read(client):
        answer = b""
        try:
            while not answer.endswith(b"errno=0\n\n"):
                data = client.recv(1 << 16)
                if not data:
                    return False
                answer = answer[-16:] + data
        except ConnectionResetError:
            return False
        return True

    connections = []
    for _ in range(int(clients)):
        client = socket.socket(socket.AF_UNIX)
        client.connect(path)
        client.sendall(b"get=1\n\n")
        connections.append(client)
    for client in connections:  # until all are answered, or no more are before those are read
        client.settimeout(0.2)
        try:
            client.recv(1, socket.MSG_PEEK)
        except (TimeoutError, ConnectionResetError):
            break
    for client in connections:
        client.settimeout(30)
    with concurrent.futures.ThreadPoolExecutor(len(connections)) as pool:
        print(sum(pool.map(read, connections)))

globals()[sys.argv[1]](*sys.argv[2:])
PYTHON

under() { # DESCRIPTION COMMAND…: neither engine's memory passes the limit meanwhile
    local description=$1 interface peak
    shift
    step "$description"
    for interface in "$WA" "$WB"; do observe reset-peak "${ENGINE_PID[$interface]}"; done
    "$@"
    for interface in "$WA" "$WB"; do
        peak=$(observe peak "${ENGINE_PID[$interface]}")
        say "  $interface: at most $peak kB, now $(observe rss "${ENGINE_PID[$interface]}") kB"
        expect_at_least "kB left of $LIMIT" $((LIMIT - peak)) 0
    done
}

tcp_both_ways() {
    iperf "$A" 10.77.0.2 "$B" "$WORK/tcp.json" -t 4 -P 4 --bidir -C cubic
    expect_at_least "bytes received" "$(json "$WORK/tcp.json" 'd["end"]["sum_received"]["bytes"]')" \
        50000000
}
small_datagrams() {
    iperf "$A" 10.77.0.2 "$B" "$WORK/udp.json" -u -b 0 -l 64 -t 4 "$@"
    expect_at_least "datagrams" "$(json "$WORK/udp.json" 'd["end"]["sum"]["packets"]')" 10000
}
full_datagrams() {
    iperf "$A" 10.77.0.2 "$B" "$WORK/udp.json" -u -b 0 -l 1368 -t 3 --bidir
    expect_at_least "datagrams" "$(json "$WORK/udp.json" 'd["end"]["sum"]["packets"]')" 10000
}
spray() { in_ns "$A" python3 "$WORK/load.py" spray "$1" "$2" "$3"; }
# Peers with keys of nobody, each with a network of its own: 10.$1.0.0/24, 10.$1.1.0/24, …
dead_peers() { # NETWORK COUNT [ENDPOINT]
    local number
    for ((number = 0; number < $2; number++)); do
        printf '[Peer]\nPublicKey = %s\nAllowedIPs = 10.%d.%d.0/24\n' \
            "$(printf 'peer %3d of %-20d' $number "$1" | head -c 32 | base64)" "$1" $number
        [[ -z ${3:-} ]] || printf 'Endpoint = %s\n' "$3"
    done >"$WORK/dead.conf"
    in_ns "$A" wg addconf "$WA" "$WORK/dead.conf"
    in_ns "$A" ip route replace "10.$1.0.0/16" dev "$WA"
}
no_endpoint() {
    dead_peers 80 $DEAD
    spray 10.80 $DEAD 200
    expect_equal "bytes kept for them" "$(state 'd["staged_bytes"]')" 0
    expect_at_least "dropped" "$(state 'd["drops"]["no_endpoint"]')" 5000
}
past_the_caps() { state 'd["drops"]["staged_memory"] + d["drops"]["staged_overflow"]'; }
dead_endpoint() { # ENDPOINT
    local staged before
    before=$(past_the_caps)
    dead_peers 81 $DEAD "$1"
    spray 10.81 $DEAD 500
    staged=$(state 'd["staged_bytes"]')
    expect_at_least "bytes kept for them" "$staged" 8000000
    expect_at_least "bytes left of the cap" $((STAGED_LIMIT - staged)) 0
    expect_at_least "dropped past the caps" $(($(past_the_caps) - before)) 1000
    expect_ping "others are served meanwhile" "$A" 10.77.0.2
    sed -n 's/^PublicKey = //p' "$WORK/dead.conf" | while read -r key; do
        printf 'peer %s remove ' "$key"
    done | xargs ip netns exec "$A" wg set "$WA"
    expect_equal "bytes kept once they are removed" "$(state 'd["staged_bytes"]')" 0
}
stalled_clients() {
    python3 -B "$HERE/scale.py" replace "$WA" 2000 "$(key_of b)" 192.0.2.2:51820 >/dev/null
    mkfifo "$WORK/stop"
    in_ns "$A" python3 "$WORK/load.py" stall "$SOCKETS/$WA.sock" 40 "$WORK/ready" "$WORK/stop" &
    BACKGROUND+=("$!")
    wait_until 60 "forty clients to stall" test -e "$WORK/ready"
    expect_equal "peers, as another client sees them" \
        "$(in_ns "$A" wg show "$WA" peers | wc -l)" 2000
    : >"$WORK/stop"
}
clients_together() {
    expect_equal "whole answers" "$(in_ns "$A" python3 "$WORK/load.py" ask_together "$SOCKETS/$WA.sock" 30)" 30
}

topology_pair
ARGS_A=(--workers 1) ARGS_B=(--workers 1)
tunnel_pair "$ENGINE" "$ENGINE"
expect_ping "ping" "$A" 10.77.0.2
under "TCP both ways" tcp_both_ways
under "64-byte datagrams, sending" small_datagrams
under "64-byte datagrams, receiving" small_datagrams -R
under "full datagrams both ways" full_datagrams
under "full packets to peers without an endpoint" no_endpoint
# Nobody has that address: the kernel finds no neighbour.
under "full packets to peers at an address of nobody" dead_endpoint 192.0.2.99:51820
# Somebody is there, but does not answer.
under "full packets to peers that do not answer" dead_endpoint 192.0.2.2:9
under "40 clients that do not read, 2,000 peers" stalled_clients
under "30 clients that ask at once and read, 2,000 peers" clients_together
expect_ping "ping" "$A" 10.77.0.2
