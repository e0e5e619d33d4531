#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Many peers of the kernel's WireGuard: ten times the peers cost at most twelve times the messages, and
# one more among 10,000 costs one small one. Times are printed, never judged: an emulated machine does
# not know when it stands still.
#
#   netns $A:  $WA (kernel), mon (nlmon: what is said over netlink), mark (kernel)
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

# What the device is told, between listen_begin and listen_end: in $WORK/messages, a line for each.
in_ns "$A" ip link add mon type nlmon
in_ns "$A" ip link set mon up
in_ns "$A" ip link add mark type wireguard
mkfifo "$WORK/hold"
listen_begin() {
    ip netns exec "$A" python3 "$ROOT/Tests/kernel/messages.py" mon <"$WORK/hold" >"$WORK/messages" 2>&1 &
    listener=$!
    BACKGROUND+=("$listener")
    exec {hold}>"$WORK/hold"
    wait_until 20 "the listener" grep -q ready "$WORK/messages"
}
listen_end() {
    # What comes last: with it the listener has seen all that came before.
    in_ns "$A" wg set mark fwmark 7
    wait_until 60 "the mark of the end" grep -q '^mark ' "$WORK/messages"
    exec {hold}>&-
    wait "$listener"
}
# cost PEERS: sets milliseconds, messages and bytes.
cost() {
    listen_begin
    milliseconds=$(in_ns "$A" timeout 600 "$PROBE" cost "$WA" kernel "$WORK" "$1")
    listen_end
    messages=$(grep -c "^$WA " "$WORK/messages")
    bytes=$(awk -v name="$WA" '$1 == name { sum += $2 } END { print sum }' "$WORK/messages")
    say "  $1 peers: $messages messages, $bytes bytes, $milliseconds ms of CPU with reading them"
}

step "ten times the peers"
cost $((PEERS / 10))
few_messages=$messages few_bytes=$bytes
cost "$PEERS"
expect_at_least "messages left of twelve times as many" $((12 * few_messages - messages)) 0
expect_at_least "bytes left of twelve times as many" $((12 * few_bytes - bytes)) 0
expect_at_least "bytes of a message, for the most part" $((bytes / messages)) 2000

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
listen_begin
printf '[Peer]\nPublicKey = %s\nAllowedIPs = 10.255.0.9/32\n' \
    "$(head -c 32 /dev/urandom | base64)" >>"$FILE"
ask sync "$FILE"
expect_equal "peers" "$(count_peers)" $((PEERS + 1))
listen_end
expect_equal "messages to the device" "$(grep -c "^$WA " "$WORK/messages")" 1
expect_at_least "bytes left of 256" $((256 - $(sed -n "s/^$WA //p" "$WORK/messages"))) 0

step "down"
ask down "$WA"
expect "the link is gone" is_gone in_ns "$A" ip link show "$WA"
