#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A hub and two sites, each a host of its own with programs that have no rights: enrol, reach each
# other, take a change, a new key, the death of the hub and of an agent while packets flow; then one is
# revoked and one leaves. Cases C57, C64, C65, C68, C72, C75, C77, C112.
#
#      host hub            host site1           host site2
#   192.0.2.1:8443         192.0.2.2            192.0.2.3
#   nghub0 10.99.0.1       ng0 10.99.0.2        ng0 10.99.0.3
#        └──────────────── a switch ────────────────┘
#
# COMMAND: the command under test; default: .build/release/nexusguard
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"
# shellcheck source=../../tools/hosts.sh
source "$ROOT/tools/hosts.sh"

needs_command
URL=https://192.0.2.1:8443

# cleanup looks at the exit code.
show_logs() {
    local log
    for log in "$WORK"/{hub,site1,site2}.log; do
        say "-- $(basename "$log")"
        tail -n 15 "$log"
    done
}
trap 'code=$?; set +e; [[ $code -eq 0 ]] || show_logs; hosts_end; (exit "$code"); cleanup' EXIT
hosts_begin "$P"
host_add hub 192.0.2.1/24
host_add site1 192.0.2.2/24
host_add site2 192.0.2.3/24

fleet() { # HOST ARGUMENT…
    local host=$1
    shift
    on "$host" "$COMMAND" "$@"
}
status() { fleet "$1" status --json >"$WORK/$1.json" 2>/dev/null; }
# The member of a host's status that a Python expression of `d` names.
member() { status "$1" && json "$WORK/$1.json" "$2"; }
is() { [[ $(member "$1" "$2" 2>/dev/null) == "$3" ]]; }
hub_answers() { fleet hub hub status >/dev/null 2>&1; }

declare -A AGENT=()
hub_start() {
    fleet hub hub run --listen 192.0.2.1:8443 --name 192.0.2.1 >>"$WORK/hub.log" 2>&1 &
    HUB=$!
    BACKGROUND+=("$HUB")
    wait_until 20 "the hub answers" hub_answers
}
agent_start() {
    fleet "$1" agent >>"$WORK/$1.log" 2>&1 &
    AGENT[$1]=$!
    BACKGROUND+=("${AGENT[$1]}")
}
enrol() {
    (umask 077 && fleet hub hub token create -q >"$WORK/$1.token")
    run fleet "$1" enroll "$URL" --token-file "$WORK/$1.token" --pin "$PIN" --name "$1"
}
# The process on a host whose command line has these words.
process_of() { # HOST WORDS
    ip netns pids "$P$1" | xargs -r ps -o pid=,args= -p | awk -v words="$2" 'index($0, words) { print $1; exit }'
}
# Pings of site2 from site1, ten a second, until flow_end, which counts what was lost.
flow_begin() { # [INTERVAL]
    # A shell's background jobs ignore SIGINT, at which ping prints its count.
    on site1 env --default-signal=INT ping -i "${1:-0.1}" -W 2 "$SITE2" >"$WORK/flow.log" 2>&1 &
    FLOW=$!
    wait_until 10 "packets flow" grep -q 'icmp_seq=3 ' "$WORK/flow.log"
}
flow_report() { # WHAT; sets sent and lost
    flow_goes_on "$WORK/flow.log"
    kill -INT "$(process_of site1 "ping -i")"
    wait "$FLOW" || true
    read -r sent lost < <(flow_count "$WORK/flow.log")
    say "  $1: $sent sent, $((sent - lost)) came back"
}
flow_end() { # ALLOWED LOSS, WHAT
    flow_report "$2"
    expect_at_least "$2 costs at most $1 packets" "$1" "$lost"
}

step "a hub, and two sites that enrol"
hub_start
run fleet hub hub set endpoint=192.0.2.1:51820 pools=10.99.0.0/24 heartbeatSeconds=5
PIN=$(fleet hub hub status | sed -n 's/^pin: //p')
enrol site1
enrol site2
agent_start site1
agent_start site2
for site in site1 site2; do
    expect "$site is connected" fleet "$site" wait --timeout 30
done
ADDRESS='d["device"]["ipAddress"].split("/")[0]'
SITE2=$(member site2 "$ADDRESS")
ID1=$(member site1 'd["device"]["deviceId"]')
expect "site1 reaches the hub" on site1 ping -c 2 -W 5 10.99.0.1
expect "site1 reaches site2" on site1 ping -c 2 -W 5 "$SITE2"

step "from site to site is no detour"
# icmpOutRedirects of RFC 2011: names in one line, values in the next.
# shellcheck disable=SC2016 # those of awk
redirects() {
    on hub awk '$1 == "Icmp:" {
        if (column) print $column
        for (i = 2; i <= NF; i++) if ($i == "OutRedirects") column = i
    }' /proc/net/snmp
}
expect_equal "redirects that the hub has sent" "$(redirects)" 0

step "what faces the network has no rights"
agent_pid() { member "$1" 'd["process"]'; }
for task in /proc/"$(agent_pid site1)"/task/*/status; do
    expect_equal "capabilities" "$(sed -n 's/^CapEff:\t//p' "$task")" 0000000000000000
    expect_equal "no new privileges" "$(sed -n 's/^NoNewPrivs:\t//p' "$task")" 1
    expect "not root" test "$(awk '/^Uid:/ { print $2 }' "$task")" -ne 0
done

step "a change is pushed while packets flow (C57)"
HASH=$(member site1 'd["sync"]["configHash"]')
flow_begin
run fleet hub hub device set site2 --networks 10.50.0.0/24
START=${EPOCHREALTIME/./}
routes_it() { on site1 ip route show dev ng0 | grep -q '^10.50.0.0/24 '; }
wait_until 30 "it routes the new network" routes_it
say "  $(((${EPOCHREALTIME/./} - START) / 1000)) ms after the hub's answer"
changed() { ! is site1 'd["sync"]["configHash"]' "$HASH"; }
wait_until 30 "site1 has the change" changed
flow_end 0 "a change"

step "a new key while packets flow (C72)"
KEY=$(member site1 'd["tunnel"]["publicKey"]')
new_key() { ! is site1 'd["tunnel"]["publicKey"]' "$KEY" && is site1 'd["tunnel"]["liveness"]' alive; }
key_is_kept() { grep -q 'the new key is in use' "$WORK/site1.log"; }
old_key_is_gone() { [[ $(on hub wg show nghub0 peers | wc -l) -eq 2 ]]; }
flow_begin 0.01
run fleet hub hub device rotate site1
wait_until 30 "site1 uses a new key" new_key
wait_until 30 "the new key is proved" key_is_kept
expect "packets flow under the new key" on site1 ping -c 1 -W 2 "$SITE2"
wait_until 30 "the hub has done with the old key" old_key_is_gone
flow_end 0 "a rotation"

step "the hub dies and returns while packets flow (C65, C112)"
flow_begin
kill -KILL "$(process_of hub 'nexusguard hub run')"
wait "$HUB" || true
control_is() { is site1 'd["control"]["standing"]' "$1"; }
wait_until 60 "site1 says that the hub is away" is site1 'd["control"]["failures"] > 0' True
expect_equal "the tunnel is well all the same" "$(member site1 'd["tunnel"]["connection"]')" connected
expect "and the reason is shown" test -n "$(member site1 'd["control"]["reason"]')"
hub_start
wait_until 90 "site1 finds the hub again" control_is connected
flow_end 0 "the hub's death"

step "an agent is killed and returns while packets flow (C64, C75)"
flow_begin
kill -KILL "$(agent_pid site1)"
wait "${AGENT[site1]}" || true
agent_start site1
expect "site1 is connected" fleet site1 wait --timeout 30
expect_equal "it is the same device" "$(member site1 'd["device"]["deviceId"]')" "$ID1"
flow_end 0 "an agent's death"

step "one is revoked (C68)"
run fleet hub hub device revoke site2
ended() { ! kill -0 "${AGENT[site2]}" 2>/dev/null; }
wait_until 30 "the agent of site2 ends" ended
code=0
wait "${AGENT[site2]}" || code=$?
expect_equal "exit code" "$code" 7
expect "its tunnel is gone" is_gone on site2 ip link show ng0

step "one leaves (C77)"
expect "site1 leaves" fleet site1 unenroll
expect "its tunnel is gone" is_gone on site1 ip link show ng0
expect_equal "it waits to be enrolled" "$(member site1 'd["code"]')" not_enrolled

step "and comes back"
enrol site1
expect "site1 is connected" fleet site1 wait --timeout 30
down_code() {
    local code=0
    fleet "$1" down "$2" 2>/dev/null || code=$?
    printf '%d\n' "$code"
}
expect_equal "down is refused while the agent wants it up" "$(down_code site1 ng0)" 8
expect_equal "and that of the hub as well" "$(down_code hub nghub0)" 8
expect "the tunnel is still there" fleet site1 wait --timeout 0

step "the hub's tunnel leaves its host as it was"
sysctls() { on hub sysctl -n net.ipv4.ip_forward net.ipv4.conf.all.send_redirects | xargs; }
expect_equal "forwarding, redirects" "$(sysctls)" "1 0"
expect_equal "redirects of another link" "$(on hub sysctl -n net.ipv4.conf.lo.send_redirects)" 1
kill "$(process_of hub 'nexusguard hub run')"
wait "$HUB" || true
run fleet hub down nghub0
expect_equal "forwarding, redirects" "$(sysctls)" "0 1"
