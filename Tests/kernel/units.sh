#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The units of share/systemd on a machine that systemd boots, with the kernel's WireGuard. In the
# machine's first life a tunnel comes up with `up --persist`, then the power goes. In its second life
# the tunnel is back before the network, without agent and hub (C64, C90); then hub and agent run as
# units, and packets flow while they, and the keeper, are killed (C65, C88).
#
#   host (units)                                          netns hub (units with a drop-in)
#   wg0 10.77.0.1, from its file                          nghub0 10.99.0.1, hub 192.0.2.1:8443
#   ng0 10.99.0.2, the agent's
#   out 192.0.2.2 ══════════════════════════════════════  in 192.0.2.1
#
#   tools/kernel-vm --systemd --before "Tests/kernel/units.sh first-life" Tests/kernel/units.sh
#
# BUILD: where the programs are; default .build/release
set -euo pipefail
cd "$(dirname "$0")/../.."
[[ -n ${KERNEL_VM:-} ]] || {
    printf 'SKIP: this belongs into tools/kernel-vm\n'
    exit 77
}
BUILD=${BUILD:-.build/release}
URL=https://192.0.2.1:8443
KEPT=/var/lib/nexusguard/tunnels/wg0.conf

CHECKS=0
say() { printf '%s\n' "$*"; }
step() { printf '\n== %s\n' "$*"; }
fail() {
    say "FAIL: $*"
    systemctl --no-pager --failed 2>/dev/null || true
    journalctl --no-pager -b -n 60 -o short-monotonic 2>/dev/null || true
    exit 1
}
expect() { # DESCRIPTION COMMAND…
    local description=$1
    shift
    "$@" >/tmp/expect.out 2>&1 || {
        cat /tmp/expect.out
        fail "$description"
    }
    CHECKS=$((CHECKS + 1))
    say "  ok: $description"
}
expect_equal() { # DESCRIPTION ACTUAL EXPECTED
    [[ $2 == "$3" ]] || fail "$1: got '$2', expected '$3'"
    CHECKS=$((CHECKS + 1))
    say "  ok: $1: $2"
}
wait_until() { # SECONDS DESCRIPTION COMMAND…
    # The machine is emulated, and its host may be busy.
    local deadline=$((SECONDS + 5 * $1)) description=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < deadline)) || fail "waited in vain for: $description"
        sleep 0.1 # between two looks at the condition
    done
    CHECKS=$((CHECKS + 1))
    say "  ok: $description"
}
is_gone() { ! "$@"; }
# shellcheck source-path=SCRIPTDIR/../netns
source Tests/netns/flow_lib.sh

# ---- what a package does, and a tunnel that is to come back ------------------------------------

install_files() {
    install -m 755 "$BUILD/nexusguard" "$BUILD/nexusguard-engine" /usr/bin/
    install -m 644 share/systemd/system/*.service /usr/lib/systemd/system/
    install -m 644 share/sysusers.d/nexusguard.conf /usr/lib/sysusers.d/
    install -m 644 share/tmpfiles.d/nexusguard.conf /usr/lib/tmpfiles.d/
    systemd-sysusers
    systemd-tmpfiles --create nexusguard.conf
}
first_life() {
    rm -rf /var/lib/nexusguard /etc/nexusguard
    install_files
    (umask 077 && {
        printf '[Interface]\nPrivateKey = %s\nAddress = 10.77.0.1/24\nListenPort = 51821\n' "$(wg genkey)"
        printf '[Peer]\nPublicKey = %s\nAllowedIPs = 10.78.0.0/16\nEndpoint = 192.0.2.1:51821\n' \
            "$(wg genkey | wg pubkey)"
    } >/etc/nexusguard/wg0.conf)
    nexusguard up --persist wg0
    nexusguard status wg0
    SYSTEMD_OFFLINE=1 systemctl enable nexusguard-keep@wg0.service
    # The power goes.
    kill -KILL "$(cat /run/nexusguard/wg0.lock)"
    ip link del wg0
    nft flush ruleset
    rm -rf /run/nexusguard /run/wireguard
}
case ${1:-} in
first-life)
    first_life
    exit
    ;;
esac

# ---- the second life ---------------------------------------------------------------------------

state() { systemctl show -P "$2" "$1"; }
is_active() { [[ $(state "$1" ActiveState) == active ]]; }
pid_of() { state "$1" MainPID; }
owner() { stat -c '%a %U %G' "$1"; }

step "users and directories (systemd-sysusers, systemd-tmpfiles)"
expect "the user nexusguard" getent passwd nexusguard
expect "the group nexusguard" getent group nexusguard
expect_equal "/run/nexusguard" "$(owner /run/nexusguard)" "755 root root"
expect_equal "/run/wireguard" "$(owner /run/wireguard)" "755 root root"
expect_equal "/etc/nexusguard" "$(owner /etc/nexusguard)" "750 root nexusguard"
expect_equal "/var/lib/nexusguard" "$(owner /var/lib/nexusguard)" "755 root root"
expect_equal "/var/lib/nexusguard/tunnels" "$(owner /var/lib/nexusguard/tunnels)" "700 root root"
for role in agent hub; do
    expect_equal "/run/nexusguard/$role" "$(owner "/run/nexusguard/$role")" "750 nexusguard nexusguard"
done

step "the tunnel came back at boot, alone (C64, C90)"
wait_until 60 "the keeper is active" is_active nexusguard-keep@wg0.service
expect_equal "kind of the link" "$(ip -j -d link show wg0 |
    python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["linkinfo"]["info_kind"])')" wireguard
expect_equal "its port" "$(wg show wg0 listen-port)" 51821
expect_equal "its peer" "$(wg show wg0 allowed-ips | cut -f2)" 10.78.0.0/16
expect "its address" grep -q "10.77.0.1/24" <(ip addr show wg0)
expect "its route" grep -q "10.78.0.0/16 dev wg0" <(ip route)
keeper_at=$(state nexusguard-keep@wg0.service ActiveEnterTimestampMonotonic)
network_at=$(state network-pre.target ActiveEnterTimestampMonotonic)
say "  the keeper was ready at $((keeper_at / 1000)) ms, network-pre.target was reached at $((network_at / 1000)) ms"
expect "it was ready before the network" test "$network_at" -ge "$keeper_at"
journalctl --no-pager -b -o short-monotonic -u nexusguard-keep@wg0.service | sed 's/^/  | /'
for unit in nexusguard-agent nexusguard-hub; do
    expect_equal "$unit" "$(state $unit ActiveState)" inactive
done
expect "what is kept is root's alone" test "$(owner $KEPT)" = "600 root root"

step "systemd-analyze"
for unit in nexusguard-agent.service nexusguard-hub.service nexusguard-keep@wg0.service \
    nexusguard-engine@wg0.service; do
    expect "verify $unit" systemd-analyze verify --man=no "$unit"
    expect_equal "  words of it" "$(grep -c nexusguard /tmp/expect.out || true)" 0
    say "  $(systemd-analyze security --no-pager "$unit" | tail -n 1)"
done

step "a hub, its units in a network namespace"
ip netns add hub
ip link add out type veth peer name in netns hub
ip link set out up
ip addr add 192.0.2.2/24 dev out
ip -n hub link set lo up
ip -n hub link set in up
ip -n hub addr add 192.0.2.1/24 dev in
for unit in nexusguard-hub.service nexusguard-keep@nghub0.service; do
    mkdir -p "/run/systemd/system/$unit.d"
    printf '[Service]\nNetworkNamespacePath=/run/netns/hub\n' >"/run/systemd/system/$unit.d/namespace.conf"
done
printf '[Service]\nExecStart=\nExecStart=/usr/bin/nexusguard hub run --listen 192.0.2.1:8443 --name 192.0.2.1\n' \
    >/run/systemd/system/nexusguard-hub.service.d/address.conf
systemctl daemon-reload
expect "the hub starts" systemctl start nexusguard-hub.service
expect "with it its keeper" is_active nexusguard-keep@nghub0.service
hub() { ip netns exec hub nexusguard hub "$@"; }
expect "settings" hub set endpoint=192.0.2.1:51820 pools=10.99.0.0/24 heartbeatSeconds=5
PIN=$(hub status | sed -n 's/^pin: //p')

step "an agent as a unit"
expect "the agent starts, with nobody to ask" systemctl start nexusguard-agent.service
(umask 077 && hub token create -q >/tmp/token)
nexusguard enroll "$URL" --token-file /tmp/token --pin "$PIN" --name device --timeout 300 >/tmp/enroll.out 2>&1 || {
    cat /tmp/enroll.out
    fail "enroll"
}
expect "it is connected" nexusguard wait --timeout 600
expect_equal "kind of its link" "$(ip -j -d link show ng0 |
    python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["linkinfo"]["info_kind"])')" wireguard
expect "ping the hub through the tunnel" ping -n -q -c 3 -i 0.2 -W 20 10.99.0.1
expect_equal "user of the agent" "$(stat -c %U "/proc/$(pid_of nexusguard-agent)")" nexusguard
expect_equal "its capabilities" "$(sed -n 's/^CapEff:\t//p' "/proc/$(pid_of nexusguard-agent)/status")" \
    0000000000000000

# Pings of the hub, five a second, until flow_end, which says how many were lost.
flow_begin() {
    env --default-signal=INT ping -n -i 0.2 -W 20 10.99.0.1 >/tmp/flow.log 2>&1 &
    FLOW=$!
    wait_until 60 "packets flow" has_answers /tmp/flow.log 3
}
flow_end() { # DESCRIPTION
    local sent lost
    flow_goes_on /tmp/flow.log
    kill -INT "$FLOW"
    wait "$FLOW" || true
    read -r sent lost < <(flow_count /tmp/flow.log)
    expect_equal "$1, $sent packets: lost" "$lost" 0
}
is_another() { # UNIT PID
    is_active "$1" && [[ $(pid_of "$1") != 0 && $(pid_of "$1") != "$2" ]]
}
# killed UNIT: kill -9 while packets flow, until systemd has it back.
killed() {
    local unit=$1 pid
    pid=$(pid_of "$unit")
    step "kill -9 of $unit"
    flow_begin
    kill -KILL "$pid"
    wait_until 120 "systemd starts it again" is_another "$unit" "$pid"
    [[ $unit != nexusguard-agent.service ]] || expect "it is connected" nexusguard wait --timeout 600
    flow_end "the death of $unit"
}
killed nexusguard-agent.service
killed nexusguard-keep@ng0.service
killed nexusguard-hub.service
killed nexusguard-keep@nghub0.service

step "restart and stop"
flow_begin
pid=$(pid_of nexusguard-agent.service)
expect "restart of the agent" systemctl restart nexusguard-agent.service
expect "it is another" is_another nexusguard-agent.service "$pid"
expect "stop of the agent" systemctl stop nexusguard-agent.service
expect "stop of its keeper" systemctl stop nexusguard-keep@ng0.service
expect "the tunnel is there" ip link show ng0
flow_end "agent and keeper stopped"
expect "start of the agent, which wants its keeper" systemctl start nexusguard-agent.service
wait_until 60 "its keeper is active" is_active nexusguard-keep@ng0.service

step "the engine is a unit of its own"
nexusguard down --until-boot wg0 >/tmp/down.out 2>&1 || fail "down: $(cat /tmp/down.out)"
nexusguard up --backend userspace wg0 >/tmp/up.out 2>&1 || fail "up: $(cat /tmp/up.out)"
# The keeper's unit has brought the kernel's link up again, whose place the engine took: under that name.
ENGINE_UNIT=$(systemctl list-units --plain --no-legend --state=active 'nexusguard-engine@*' | cut -d' ' -f1)
expect_equal "its unit" "$ENGINE_UNIT" nexusguard-engine@wg0_2.service
expect_equal "kind of the link" "$(ip -j -d link show wg0 |
    python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["linkinfo"]["info_kind"])')" tun
engine=$(pid_of "$ENGINE_UNIT")
pid=$(pid_of nexusguard-keep@wg0.service)
expect "its control group is not the keeper's" test \
    "$(cat "/proc/$engine/cgroup")" != "$(cat "/proc/$pid/cgroup")"
kill -KILL "$pid"
wait_until 60 "the killed keeper is started again" is_another nexusguard-keep@wg0.service "$pid"
expect "restart of the keeper" systemctl restart nexusguard-keep@wg0.service
expect_equal "the engine" "$(pid_of "$ENGINE_UNIT")" "$engine"
expect "down" nexusguard down wg0
expect "the link is gone" is_gone ip link show wg0
expect "what was kept is gone" test ! -e $KEPT
stopped() { [[ $(state "$ENGINE_UNIT" ActiveState) == inactive ]]; }
wait_until 30 "the engine has ended well" stopped

step "a device that is revoked is not started again (C68)"
expect "revoke" hub device revoke device
ended() { [[ $(state nexusguard-agent.service ActiveState) =~ ^(failed|inactive)$ ]]; }
wait_until 120 "the agent ends" ended
expect_equal "exit code" "$(state nexusguard-agent.service ExecMainStatus)" 7
expect "its tunnel is gone" is_gone ip link show ng0

step "nothing else failed"
expect_equal "failed units of ours" \
    "$(systemctl --no-pager --plain --no-legend --failed | awk '/nexusguard/ && !/agent/ {print $1}')" ""
say "PASS: $CHECKS checks"
