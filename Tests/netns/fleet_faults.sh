#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A hub that cannot be reached or trusted, disks that are full or read-only, and an upgrade in place,
# while packets flow between the sites: none is lost, `status` says why and since when, the log stays
# short, and what was kept from a disk is on it when there is room again. Cases C65, C69, C88, C109.
#
#   hub  192.0.2.1  a certificate of its own CA, which expires
#   site1  192.0.2.2  knows the hub by its pin; its way to the hub becomes a black hole
#   site2  192.0.2.3  knows the hub by the CA; its disk fills
#
# What hubs and proxies may answer instead is in Tests/cli/test_agent.py.
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/fleet_lib.sh"

# Of its own, so that it can be replaced.
mkdir "$WORK/bin"
chmod 755 "$WORK" "$WORK/bin"
cp "$COMMAND" "$WORK/bin/nexusguard"
COMMAND=$WORK/bin/nexusguard

step "a hub with a certificate, and two sites"
hosts_begin "$P"
host_add hub "$FLEET_HUB/24"
host_add site2 192.0.2.3/24
python3 -B "$HERE/fleet_certificates.py" "$WORK" "$FLEET_HUB"
KEPT=/etc/nexusguard
on hub install -d -o nexusguard "$KEPT"
on site2 install -D -m 644 "$WORK/ca.pem" "$KEPT/ca.pem"
certificate() { on hub install -o nexusguard -m 600 "$WORK/$1.pem" "$WORK/hub.key" "$KEPT"; }
certificate good
certificate expired
FLEET_HUB_OPTIONS=(--certificate "$KEPT/good.pem" --key "$KEPT/hub.key")
fleet_hub || fail "the hub does not come up"
nexus hub hub set heartbeatSeconds=5
fleet_token 2
fleet_site site1 192.0.2.2 || fail "site1"
FLEET_TRUST=(--ca "$KEPT/ca.pem")
fleet_site site2 192.0.2.3 || fail "site2"
for site in site1 site2; do expect "$site is connected" nexus "$site" wait --timeout 30; done
identity() { member site2 '(d["device"]["deviceId"], d["tunnel"]["publicKey"])'; }
BEFORE=$(identity)
ENGINE_BEFORE=$(engine_pid site2)
flow_begin site2 "$(fleet_address site1)"

is_connected() { holds "$1" 'd["control"]["standing"] == "connected"'; }
reconnects() { beat "$1" && is_connected "$1"; }
tunnel_is_up() { holds "$1" 'd["tunnel"]["standing"] == "up" and not d["tunnel"].get("reason")'; }
lines_of() { wc -l <"$WORK/$1.log"; }
declare -A LINES_BEFORE=()

step "the way to the hub is a black hole (C65), from here on for site1"
LINES_BEFORE[site1]=$(lines_of site1)
on site1 nft 'add table inet hole; add chain inet hole out { type filter hook output priority 0; };
    add rule inet hole out tcp dport 8443 drop'
HOLE_SINCE=$SECONDS
beat site1 60 & # as many as five minutes have, as fast as they fail
BEATING=$!

step "the hub's certificate has expired"
end_process hub "$HUB" TERM
FLEET_HUB_OPTIONS=(--certificate "$KEPT/expired.pem" --key "$KEPT/hub.key")
hub_start
refuses_the_certificate() {
    beat site2
    holds site2 'd["control"].get("code") == "hub_untrusted"'
}
wait_until 20 "site2 refuses the hub" refuses_the_certificate
member site2 'd["control"]["reason"]'
expect "and says that it has expired" holds site2 '"expired" in d["control"]["reason"]'
expect "and since when" holds site2 'd["control"]["since"] >= d["phaseSince"]'
expect "its tunnel is up" tunnel_is_up site2
end_process hub "$HUB" TERM
FLEET_HUB_OPTIONS=(--certificate "$KEPT/good.pem" --key "$KEPT/hub.key")
hub_start
wait_until 20 "site2 is back with another certificate" reconnects site2

# fill HOST, make_room HOST: the file system of its state.
fill() {
    on "$1" mount -o remount,size=12m /var/lib
    on "$1" dd if=/dev/zero of=/var/lib/filler bs=4096 status=none 2>/dev/null || true
}
make_room() { on "$1" rm -f /var/lib/filler; }
push() { nexus hub hub device set site1 --networks "$1"; }
# The change has reached the routes of site2.
has_route() {
    beat site2
    on site2 ip -4 -o route show dev ng0 | grep -q "^$1 "
}
sealed() { sha256sum <"$(files_of site2)/var/lib/nexusguard/agent/configuration.sealed"; }
boots_with() { grep -q "$1" "$(files_of site2)/var/lib/nexusguard/tunnels/ng0.conf"; }
says() { nexus site2 status | grep -q "$1"; }
is_written() { holds site2 '"storageProblem" not in d and not d["problems"]'; }
was_refused_to_keeper() { nexus site2 status ng0 | grep 'latest warning' | grep -q "$1"; }
keeper_is_content() { ! was_refused_to_keeper cannot; }
# on_a_bad_disk NETWORK CODE REASON: site2 takes a change that it cannot keep.
on_a_bad_disk() {
    SEALED=$(sealed)
    push "$1"
    wait_until 20 "the change is in the tunnel" has_route "$1"
    wait_until 20 "status says what is not written" holds site2 'bool(d.get("storageProblem"))'
    member site2 'd["storageProblem"]'
    expect "with the reason, what to do and since when" holds site2 \
        "'$3' in d['storageProblem'] and d['storageProblemSince'] >= d['phaseSince']"
    expect "and a word for programs" holds site2 "'$2' in d['problems']"
    expect "in the text as well" says 'Disk  *not written since'
    expect_equal "what was kept before is there" "$(sealed)" "$SEALED"
    expect "the keeper says it too" was_refused_to_keeper cannot
    expect "its tunnel is up" tunnel_is_up site2
}
on_a_good_disk() { # NETWORK
    wait_until 30 "what was refused is written" is_written
    wait_until 30 "the keeper has written it too" keeper_is_content
    expect "the last good configuration is another one" test "$(sealed)" != "$SEALED"
    expect "the machine would begin with it" boots_with "$1"
}

step "the disk of site2 is full"
LINES_BEFORE[site2]=$(lines_of site2)
fill site2
on_a_bad_disk 10.60.1.0/24 disk_full 'make room'
make_room site2
on_a_good_disk 10.60.1.0/24

step "the disk of site2 is read-only"
STATE=/var/lib/nexusguard
on site2 mount --bind "$STATE" "$STATE"
on site2 mount -o remount,bind,ro "$STATE"
on_a_bad_disk 10.60.2.0/24 storage_failed 'Read-only'
on site2 umount "$STATE"
on_a_good_disk 10.60.2.0/24

step "the disk of the hub is full"
LINES_BEFORE[hub]=$(lines_of hub)
fill hub
takes_no_change() { ! push "10.61.$((RANDOM % 250)).0/24" >"$WORK/push.out" 2>&1; }
wait_until 20 "the hub takes no change" takes_no_change
cat "$WORK/push.out"
expect "and says what to do" grep -q 'make room' "$WORK/push.out"
expect "heartbeats go on" reconnects site2
hub_complains() { nexus hub hub status | grep '^storage: ' | grep -q 'make room'; }
wait_until 20 "its status says it" hub_complains
make_room hub
wait_until 20 "the hub takes changes again" push 10.60.3.0/24
wait_until 20 "and site2 has them" has_route 10.60.3.0/24
hub_is_content() { nexus hub hub status | grep -q '^storage: good'; }
wait_until 20 "its status says that it is good" hub_is_content

step "upgraded in place (C88)"
RECEIVED=$(member site2 'd["tunnel"]["receivedBytes"]')
cp "$COMMAND" "$WORK/bin/new"
printf 'another build' >>"$WORK/bin/new"
mv "$WORK/bin/new" "$COMMAND"
for words in "$KEEPER" "$AGENT"; do end_process site2 "$words" TERM; done
keeper_start site2 ng0
agent_start site2
expect "site2 is connected" nexus site2 wait --timeout 30
for words in "$KEEPER" "$AGENT"; do
    expect "${words#* } is the new program" test "$(readlink "/proc/$(pid_of site2 "$words")/exe")" = "$COMMAND"
done
expect_equal "identity and key" "$(identity)" "$BEFORE"
expect_equal "the engine" "$(engine_pid site2)" "$ENGINE_BEFORE"
expect_at_least "bytes received" "$(member site2 'd["tunnel"]["receivedBytes"]')" "$RECEIVED"

step "site1 has been cut off all the while"
wait_until 60 "site1 says that the hub is away" holds site1 'd["control"]["failures"] > 0'
say "  for $((SECONDS - HOLE_SINCE)) s: $(member site1 'd["control"]["reason"]')"
expect "with a reason" holds site1 'd["control"]["code"] in ("hub_timeout", "hub_unreachable")'
expect "and since when" holds site1 'd["control"]["since"] > d["control"]["connectedAt"]'
expect "its tunnel is connected" holds site1 'd["tunnel"]["connection"] == "connected"'
kill "$BEATING" 2>/dev/null || true
on site1 nft delete table inet hole
wait_until 60 "site1 is back" reconnects site1
flow_end "all of it"

step "nothing has filled a log"
for host in site1 site2 hub; do
    count=$(($(lines_of $host) - LINES_BEFORE[$host]))
    expect "$host has written $count lines, fewer than 20" test "$count" -lt 20
done

step "memory"
# resident HOST WORDS: KiB.
resident() { sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$(pid_of "$1" "$2")/status"; }
# Growth over as much work as before: what work needs once is there after the first time.
beat site1 100
FIRST=$(resident site1 "$AGENT")
beat site1 100
SECOND=$(resident site1 "$AGENT")
say "  agent: $FIRST KiB after 100 heartbeats, $SECOND KiB after 200"
expect "100 heartbeats more need less than 1 MiB" test "$((SECOND - FIRST))" -lt 1024
fleet_token 0
devices() { on hub python3 -B "$HERE/fleet_devices.py" "$FLEET_URL" "$WORK/devices" 100 3 <"$FLEET_TOKEN"; }
EMPTY=$(resident hub "$HUB")
devices
FIRST=$(resident hub "$HUB")
devices
SECOND=$(resident hub "$HUB")
say "  hub: $EMPTY KiB with 2 devices, $FIRST KiB with 102, $SECOND KiB when they came again"
expect "100 devices need less than 20 MiB" test "$((FIRST - EMPTY))" -lt 20480
expect "and that they come again less than 2 MiB" test "$((SECOND - FIRST))" -lt 2048
