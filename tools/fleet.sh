# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# A hub and its sites on the hosts of tools/hosts.sh, for tools/demo, tools/lab and Tests/netns, which
# source it.
#
#   host hub  192.0.2.1     nexusguard hub run       nghub0  10.88.0.1
#   host site-N  192.0.2.…  nexusguard agent         ng0     10.88.0.…
#
#   COMMAND            the program nexusguard; the engine lies beside it
#   WORK               a directory for logs and tokens (0700)
#
#   FLEET_HUB_OPTIONS  further options of `hub run`, an array
#
#   fleet_hub          starts the hub and sets its network up; sets FLEET_PIN and FLEET_TRUST,
#                      by which sites know it
#   fleet_token USES   makes an enrolment token; sets FLEET_TOKEN, the name of its file
#   fleet_site NAME ADDRESS
#                      starts an agent there that enrols with FLEET_TOKEN
# Either makes its host unless there is one of that name.
#   fleet_address NAME prints the address of a site within the tunnel
#
# Functions return 1 when something does not come up; the logs are $WORK/HOST.log.
# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"

FLEET_HUB=192.0.2.1
FLEET_URL=https://$FLEET_HUB:8443
FLEET_PIN='' FLEET_TOKEN='' FLEET_TRUST=() FLEET_HUB_OPTIONS=()

# await COMMAND…: until it succeeds, for at most 20 s.
await() {
    local deadline=$((SECONDS + 20))
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < deadline)) || return 1
        sleep 0.05 # between two looks at the condition
    done
}

fleet_hub() {
    [[ -n ${HOST_PID[hub]:-} ]] || host_add hub "$FLEET_HUB/24" || return 1
    on hub "$COMMAND" hub run --name "$FLEET_HUB" "${FLEET_HUB_OPTIONS[@]}" \
        </dev/null >"$WORK/hub.log" 2>&1 &
    await on hub "$COMMAND" hub status || return 1
    on hub "$COMMAND" hub set "endpoint=$FLEET_HUB:51820" pools=10.88.0.0/16,fd88::/64 || return 1
    FLEET_PIN=$(on hub "$COMMAND" hub status | sed -n 's/^pin: //p')
    FLEET_TRUST=(--pin "$FLEET_PIN")
    # A site that asks a tunnel which is not there yet asks again after five seconds (REKEY_TIMEOUT).
    await fleet_hub_has_address || return 1
    [[ -n $FLEET_PIN ]]
}
fleet_hub_has_address() { on hub ip -4 -o addr show dev nghub0 | grep -q ' 10\.88\.0\.1/'; }

fleet_token() { # USES
    FLEET_TOKEN=$WORK/token
    rm -f "$FLEET_TOKEN"
    (umask 077 && on hub "$COMMAND" hub token create --uses "$1" --quiet >"$FLEET_TOKEN")
}

fleet_site() { # NAME ADDRESS
    [[ -n ${HOST_PID[$1]:-} ]] || host_add "$1" "$2/24" || return 1
    on "$1" "$COMMAND" agent --enroll "$FLEET_URL" "${FLEET_TRUST[@]}" --token-file "$FLEET_TOKEN" \
        --name "$1" </dev/null >"$WORK/$1.log" 2>&1 &
}

fleet_address() { # NAME
    on "$1" ip -4 -o addr show dev ng0 | sed -n 's|.* inet \([0-9.]*\)/.*|\1|p' | grep .
}
