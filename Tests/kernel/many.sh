#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Many peers of the kernel's WireGuard: ten times the peers cost at most twelve times the work, and one
# more among 10,000 costs one small message.
#
#   netns $A:  $WA (kernel), mon (nlmon: what is said over netlink)
#
# PEERS: default 10000
#
# shellcheck source-path=SCRIPTDIR/../netns
PEER=kernel
source "$(dirname "$0")/../netns/lib.sh"

COMMAND=${COMMAND:-$ROOT/.build/release/nexusguard}
PROBE=${PROBE:-$ROOT/.build/release/backend-probe}
PEERS=${PEERS:-10000}
for program in "$COMMAND" "$PROBE"; do
    [[ -x $program ]] || skip "no program at $program (build it, or set COMMAND and PROBE)"
done
netns_create "$A"

step "ten times the peers"
cost() { in_ns "$A" timeout 300 "$PROBE" cost "$WA" kernel "$WORK" "$1"; }
few=$(cost $((PEERS / 10)))
many=$(cost "$PEERS")
say "  CPU time: $few ms for $((PEERS / 10)) peers, $many ms for $PEERS"
expect_at_least "times the work, of at most 12.0: tenths left" \
    $(((120 * few - 10 * many) / (few > 0 ? few : 1))) 0

# configuration PEERS: two prefixes of IPv4 and one of IPv6 for each.
configuration() {
    python3 - "$1" <<'PYTHON'
import base64, os, sys
key = lambda: base64.b64encode(os.urandom(32)).decode()
print(f"[Interface]\nPrivateKey = {key()}\nAddress = 10.0.0.1/8\nListenPort = 51820\nTable = off")
for peer in range(int(sys.argv[1])):
    low = f"{peer >> 8 & 255}.{peer & 255}"
    print(f"[Peer]\nPublicKey = {key()}\nAllowedIPs = 10.{peer >> 16}.{low}/32, "
          f"172.{16 + (peer >> 16)}.{low}/32, fd00::{peer:x}/128")
PYTHON
}
count_peers() { in_ns "$A" wg show "$WA" peers | wc -l; }

step "one more among $PEERS"
FILE=$WORK/$WA.conf
(umask 077 && configuration "$PEERS" >"$FILE")
ask up --backend kernel "$FILE"
expect_equal "peers" "$(count_peers)" "$PEERS"
in_ns "$A" ip link add mon type nlmon
in_ns "$A" ip link set mon up
mkfifo "$WORK/hold"
ip netns exec "$A" python3 "$ROOT/Tests/kernel/messages.py" mon <"$WORK/hold" >"$WORK/messages" 2>&1 &
BACKGROUND+=($!)
listener=$!
exec {hold}>"$WORK/hold"
wait_until 10 "the listener" grep -q ready "$WORK/messages"
printf '[Peer]\nPublicKey = %s\nAllowedIPs = 10.255.0.9/32\n' \
    "$(head -c 32 /dev/urandom | base64)" >>"$FILE"
ask sync "$FILE"
expect_equal "peers" "$(count_peers)" $((PEERS + 1))
# What comes after the end of it: by then the listener has seen all of it.
in_ns "$A" wg set "$WA" fwmark 7
two_were_seen() { [[ $(grep -c '^[0-9]' "$WORK/messages") -ge 2 ]]; }
wait_until 10 "the mark of the end" two_were_seen
exec {hold}>&-
wait "$listener"
expect_equal "messages to the device, with the one of the mark" \
    "$(grep -c '^[0-9]' "$WORK/messages")" 2
expect_at_least "bytes left of 256" $((256 - $(sed -n 2p "$WORK/messages"))) 0

step "down"
ask down "$WA"
expect "the link is gone" is_gone in_ns "$A" ip link show "$WA"
