#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The agent, its keeper, the hub and the hub's keeper are killed at random points of updates. What is
# found then is the old state or the new one; after a restart all have the new one, with the identity,
# the key and the engine that they had; databases are sound; no packet is lost. Cases C57, C62, C65, C75.
#
#   hub  192.0.2.1  nghub0      site1 192.0.2.2  ng0       site2 192.0.2.3  ng0
#                               agent, keeper killed       the network behind it changes
#
# KILLS: how many; 200 takes some minutes. SEED: of the order and the points.
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/fleet_lib.sh"
KILLS=${KILLS:-12}
SEED=${SEED:-$$}
RANDOM=$SEED

network() { echo "10.$((50 + $1 / 250)).$(($1 % 250)).0/24"; }
change() { nexus hub hub device set site2 --networks "$(network "$1")"; }
# What the routes of site1 and the peers of both ends have of the networks that change.
routes() { on site1 ip -4 -o route show dev ng0 | grep -o '^10\.5[0-9]\.[0-9]*\.0/24' | xargs; }
allowed() { on "$1" wg show "$2" allowed-ips | grep -o '10\.5[0-9]\.[0-9]*\.0/24' | xargs; }
# has_one_of "WHAT IS THERE" OLD NEW: the old, the new, or both: what is added comes before what goes.
has_one_of() {
    local found
    for found in $1; do [[ $found == "$2" || $found == "$3" ]] || return 1; done
    [[ -n $1 ]]
}
# All of the fleet has this network and no other.
in_step() {
    beat site1 || true
    [[ $(routes) == "$1" && $(allowed site1 ng0) == "$1" && $(allowed hub nghub0) == "$1" ]]
}

step "a hub and two sites"
hosts_begin "$P"
fleet_hub || fail "the hub does not come up"
fleet_token 2
fleet_site site1 192.0.2.2 || fail "site1"
fleet_site site2 192.0.2.3 || fail "site2"
for site in site1 site2; do expect "$site is connected" nexus "$site" wait --timeout 30; done
change 0
wait_until 20 "the first network is everywhere" in_step "$(network 0)"

identity() { member site1 '(d["device"]["deviceId"], d["tunnel"]["publicKey"])'; }
BEFORE=$(identity)
ENGINES="$(engine_pid hub) $(engine_pid site1) $(engine_pid site2)"
flow_begin site1 "$(fleet_address site2)"

step "$KILLS kills (SEED=$SEED)"
# What lies on disk while its owner is dead.
examine_hub() { # OLD NEW
    local state
    state=$(files_of hub)/var/lib/nexusguard/hub
    database_is_sound "$state/hub.db" || fail "the hub's database is damaged"
    has_one_of "$(database_query "SELECT networks FROM devices WHERE name = 'site2'")" "$1" "$2" ||
        fail "the hub's database has neither $1 nor $2"
}
examine_tunnel() { # HOST INTERFACE OLD NEW
    has_one_of "$(allowed "$1" "$2")" "$3" "$4" || fail "$2 has '$(allowed "$1" "$2")', not $3 or $4"
    [[ $1 == hub ]] || has_one_of "$(routes)" "$3" "$4" || fail "routes are '$(routes)', not $3 or $4"
}
# kill_at_random VICTIM NUMBER: once, at a random point of the change to network NUMBER.
kill_at_random() {
    local old new update applied=yes
    old=$(network $(($2 - 1))) new=$(network "$2")
    { change "$2" && beat site1; } >"$WORK/change.log" 2>&1 &
    update=$!
    sleep "0.$(printf '%03d' $((RANDOM % 450)))" # the random point
    case $1 in
    agent)
        end_process site1 "$AGENT" KILL
        examine_tunnel site1 ng0 "$old" "$new"
        agent_start site1
        ;;
    keeper)
        end_process site1 "$KEEPER" KILL
        examine_tunnel site1 ng0 "$old" "$new"
        keeper_start site1 ng0
        ;;
    hub)
        end_process hub "$HUB" KILL
        examine_hub "$old" "$new"
        hub_start
        ;;
    hubkeeper)
        end_process hub "$KEEPER" KILL
        examine_tunnel hub nghub0 "$old" "$new"
        keeper_start hub nghub0
        ;;
    esac
    wait "$update" || applied=no
    # What the hub did not answer for may be asked again.
    [[ $applied == yes ]] || await change "$2" || fail "the hub takes no change"
    wait_until 30 "$new is everywhere after the death of $1" in_step "$new"
}
VICTIMS=(agent keeper hub hubkeeper)
for ((number = 1; number <= KILLS; number++)); do
    # Each in turn at first; then at random.
    if ((number <= 8)); then victim=${VICTIMS[number % 4]}; else victim=${VICTIMS[RANDOM % 4]}; fi
    kill_at_random "$victim" "$number"
    CHECKS=$((CHECKS + 1))
    say "  $number: $victim"
done
flow_end "$KILLS kills"

step "afterwards"
expect "site1 is connected" nexus site1 wait --timeout 60
expect_equal "identity and key" "$(identity)" "$BEFORE"
expect_equal "engines" "$(engine_pid hub) $(engine_pid site1) $(engine_pid site2)" "$ENGINES"
for host in hub site1; do
    while read -r file; do
        expect "${file##*/nexusguard/} of $host is sound" database_is_sound "$file"
    done < <(find "$(files_of "$host")/var/lib/nexusguard" -name '*.db')
done
