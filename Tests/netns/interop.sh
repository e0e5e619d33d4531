#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The engine speaks WireGuard with the reference implementation: as initiator and as responder, with
# and without a preshared key, over IPv4 and IPv6, carrying IPv4 and IPv6.
#
#   netns A: ENGINE  192.0.2.1 2001:db8::1 ═══ 192.0.2.2 2001:db8::2  netns B: PEER
#
# MEGABYTES: of each transfer by TCP; default 5 (less where the machine is emulated)
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

MEGABYTES=${MEGABYTES:-5}
topology_pair
(umask 077 && wg genpsk >"$WORK/psk")

# Only the initiator knows an endpoint, so only it can begin.
combination() {
    local outer=$1 psk=$2 role=$3 to_b=() to_a=()
    step "outside IPv$outer, preshared key: $psk, the engine is the $role"
    keys_create a b
    engine_start "$A" "$WA" "$ENGINE"
    engine_start "$B" "$WB" "$PEER"
    if [[ $psk == yes ]]; then
        to_b+=(preshared-key "$WORK/psk")
        to_a+=(preshared-key "$WORK/psk")
    fi
    case $role$outer in
    initiator4) to_b+=(endpoint 192.0.2.2:51820) ;;
    initiator6) to_b+=(endpoint '[2001:db8::2]:51820') ;;
    responder4) to_a+=(endpoint 192.0.2.1:51820) ;;
    responder6) to_a+=(endpoint '[2001:db8::1]:51820') ;;
    esac
    tunnel_configure "$A" "$WA" a b 1 "${to_b[@]}"
    tunnel_configure "$B" "$WB" b a 2 "${to_a[@]}"
    servers_start "$B"

    if [[ $role == initiator ]]; then
        expect_ping "first ping, IPv4 inside" "$A" 10.77.0.2
    else
        expect_ping "first ping, IPv4 inside" "$B" 10.77.0.1
    fi
    expect_ping "ping, IPv6 inside" "$A" fd77::2
    expect_ping "ping of 1,400 bytes, IPv4 inside" "$B" 10.77.0.1 -s 1372 -M "do"
    expect_traffic "$A" 10.77.0.2 "$MEGABYTES"
    expect_traffic "$A" fd77::2 "$MEGABYTES"
    expect "a handshake is on record here" has_handshake "$A" "$WA"
    expect "a handshake is on record there" has_handshake "$B" "$WB"
    # Two transfers each way, and what encloses them.
    expect_at_least "bytes received, as wg shows them" "$(wg_field "$A" "$WA" transfer | cut -f1)" $((2000000 * MEGABYTES))
    expect_at_least "bytes sent, as wg shows them" "$(wg_field "$A" "$WA" transfer | cut -f2)" $((2000000 * MEGABYTES))

    kill "$BACKGROUND_PID"
    wait "$BACKGROUND_PID" 2>/dev/null || true
    tunnel_pair_stop
    wait_until 10 "both links to be gone" links_gone
}
links_gone() {
    ! in_ns "$A" ip link show "$WA" && ! in_ns "$B" ip link show "$WB"
}

for outer in 4 6; do
    for psk in no yes; do
        for role in initiator responder; do
            combination $outer $psk $role
        done
    done
done

step "iperf3 carries its bytes each way"
tunnel_pair "$ENGINE" "$PEER"
iperf "$A" 10.77.0.2 "$B" "$WORK/forward.json" -n "$((10 * MEGABYTES))M" -C cubic
expect_at_least "bytes received by the peer" "$(json "$WORK/forward.json" 'd["end"]["sum_received"]["bytes"]')" \
    $((9600000 * MEGABYTES))
iperf "$A" fd77::2 "$B" "$WORK/reverse.json" -n "$((10 * MEGABYTES))M" -C cubic -R
expect_at_least "bytes received by the engine" "$(json "$WORK/reverse.json" 'd["end"]["sum_received"]["bytes"]')" \
    $((9600000 * MEGABYTES))

step "a wrong preshared key carries nothing"
(umask 077 && wg genpsk >"$WORK/other")
in_ns "$A" wg set "$WA" peer "$(key_of b)" remove
in_ns "$A" wg set "$WA" peer "$(key_of b)" preshared-key "$WORK/other" endpoint 192.0.2.2:51820 \
    allowed-ips 10.77.0.2/32
expect "no answer" is_gone in_ns "$A" ping -n -q -c 2 -i 0.2 -W 1 10.77.0.2
expect_equal "handshakes on record" "$(wg_field "$A" "$WA" latest-handshakes)" 0
