#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# 10,000 peers of three prefixes each. Pitfall 63: the same configuration again touches nothing of a
# live session. Pitfall 65: an idle peer costs at most 2 KiB, and what is removed is used again.
# Times are printed, never judged.
#
#   netns A: ENGINE $WA, 10,000 peers  ═══  netns B: ENGINE $WB, one of them
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

PEERS=10000
rss() { python3 "$HERE/observe.py" rss "${ENGINE_PID[$WA]}"; }
replace() { python3 -B "$HERE/scale.py" replace "$WA" "$1" "$(key_of b)" "${@:2}"; }
# replace_with DESCRIPTION COUNT [ENDPOINT]
replace_with() {
    local description=$1
    shift
    replace "$@" >"$WORK/replaced" 2>&1 || fail "$description: $(cat "$WORK/replaced")"
    say "  $description: $(cat "$WORK/replaced") ms"
}
live_peer() { in_ns "$A" wg show "$WA" dump | grep -F "$(key_of b)"; }
count_peers() { in_ns "$A" wg show "$WA" dump | tail -n +2 | wc -l; }

topology_pair
tunnel_pair "$ENGINE" "$ENGINE"
expect_ping "ping" "$A" 10.77.0.2
empty=$(rss)

step "$PEERS peers by one set"
replace_with "first time" $PEERS 192.0.2.2:51820
full=$(rss)
say "  memory: $empty kB with one peer, $full kB with $PEERS"
expect_at_least "bytes left of 2,048 for each peer" $((2048 - (full - empty) * 1024 / PEERS)) 0
expect_equal "peers in wg show dump" "$(count_peers)" $PEERS
expect_equal "prefixes in wg show allowed-ips" \
    "$(in_ns "$A" wg show "$WA" allowed-ips | cut -f2 | wc -w)" $((3 * PEERS))
expect_ping "the session goes on" "$A" 10.77.0.2

step "pitfall 63: the same again, under traffic"
# Fields: key, preshared key, endpoint, allowed IPs, handshake, received, sent, keepalive.
before=$(live_peer)
initiated() { python3 "$HERE/observe.py" state "$WA" 'd["handshakes"]["initiated"]'; }
handshakes=$(initiated)
in_ns "$A" ping -n -q -i 0.01 -c 400 -W 10 10.77.0.2 >"$WORK/ping" &
ping=$!
BACKGROUND+=("$ping")
times=0
while kill -0 $ping 2>/dev/null; do
    replace_with "the same again" $PEERS 192.0.2.2:51820
    replace_with "without an endpoint" $PEERS
    times=$((times + 2))
done
wait $ping || true
after=$(live_peer)
expect_at_least "replacements while pinging" $times 2
expect_equal "pings answered of 400" "$(sed -n 's/.* \([0-9]*\) received.*/\1/p' "$WORK/ping")" 400
expect_equal "endpoint" "$(cut -f3 <<<"$after")" "$(cut -f3 <<<"$before")"
expect_equal "allowed IPs" "$(cut -f4 <<<"$after" | tr , '\n' | sort | xargs)" \
    "$(cut -f4 <<<"$before" | tr , '\n' | sort | xargs)"
expect_equal "time of the handshake" "$(cut -f5 <<<"$after")" "$(cut -f5 <<<"$before")"
# 400 echoes of 84 bytes, padded to 96, and 32 more.
expect_at_least "bytes received" "$(cut -f6 <<<"$after")" $(($(cut -f6 <<<"$before") + 400 * 128))
expect_at_least "bytes sent" "$(cut -f7 <<<"$after")" $(($(cut -f7 <<<"$before") + 400 * 128))
expect_equal "further initiations" $(($(initiated) - handshakes)) 0
expect_equal "peers" "$(count_peers)" $PEERS

step "pitfall 65: removed and set again"
again=$(rss)
for _ in 1 2 3; do
    replace_with "all but one removed" 1
    expect_equal "peers" "$(count_peers)" 1
    say "  memory: $(rss) kB"
    replace_with "set again" $PEERS
    expect_equal "peers" "$(count_peers)" $PEERS
done
final=$(rss)
say "  memory: $again kB before, $final kB after"
expect_at_least "kB left of 5 % more" $((again * 105 / 100 - final)) 0
expect_ping "the session goes on" "$A" 10.77.0.2
expect_equal "time of the handshake" "$(live_peer | cut -f5)" "$(cut -f5 <<<"$before")"
