#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A real systemd-resolved, on a bus of its own, is told a tunnel's servers and asks them (C33): all
# names, or only those of a domain. The host's own resolver, bus and /etc are not touched.
#
#   netns A: resolved, host-probe  $T 10.77.0.2 ═══ $VB 10.77.0.1  netns B: a name server
#
#   RESOLVED  systemd-resolved         default: the installed one, or the package's, not installed
#
# shellcheck source-path=SCRIPTDIR
ENGINE=true PEER=true
source "$(dirname "$0")/lib.sh"
PROBE=${PROBE:-$ROOT/.build/release/host-probe}
[[ -x $PROBE ]] || skip "no probe at $PROBE (build it, or set PROBE)"
command -v dbus-daemon >/dev/null || skip "no dbus-daemon"
RESOLVED=${RESOLVED:-/lib/systemd/systemd-resolved}
if [[ ! -x $RESOLVED ]]; then
    # To install it would change the host's resolver.
    (cd "$WORK" && apt-get download -qq systemd-resolved && dpkg -x systemd-resolved_*.deb package) \
        >"$WORK/apt.log" 2>&1 || skip "no systemd-resolved, and its package cannot be fetched"
    RESOLVED=$WORK/package/lib/systemd/systemd-resolved
fi

T=${P}t DIRECTORY=$WORK/host BUS=unix:path=$WORK/bus
mkdir "$DIRECTORY"
chmod 755 "$WORK"
host_before=$(stat -c '%i %Y %N' /etc/resolv.conf; cat /etc/resolv.conf)

step "topology: $A ($T) === ($VB) $B"
netns_create "$A"
netns_create "$B"
veth_create "$A" "$T" "$B" "$VB"
in_ns "$A" ip addr add 10.77.0.2/24 dev "$T"
in_ns "$B" ip addr add 10.77.0.1/24 dev "$VB"
INDEX=$(in_ns "$A" cat "/sys/class/net/$T/ifindex")

cat >"$WORK/names.py" <<'PYTHON'
"""serve: answers every question of type A with 192.0.2.77. ask NAME: asks resolved's stub."""
import socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def question(name):
    return b"".join(bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\0\0\1\0\1"
if sys.argv[1] == "serve":
    s.bind(("10.77.0.1", 53)); print("listening", flush=True)
    while True:
        data, peer = s.recvfrom(2000)
        end = data.index(b"\0", 12) + 5
        is_a = data[end - 4:end - 2] == b"\0\1"
        print("asked", flush=True)
        answer = b"\xc0\x0c\0\1\0\1" + struct.pack("!IH", 60, 4) + bytes([192, 0, 2, 77])
        s.sendto(data[:2] + b"\x85\x80\0\1" + (b"\0\1" if is_a else b"\0\0") + b"\0\0\0\0"
                 + data[12:end] + (answer if is_a else b""), peer)
s.settimeout(20)
s.sendto(b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + question(sys.argv[2]), ("127.0.0.53", 53))
data = s.recv(2000)
code, answers = data[3] & 15, struct.unpack("!H", data[6:8])[0]
print(".".join(map(str, data[-4:])) if code == 0 and answers else "no answer")
PYTHON
in_ns "$B" python3 "$WORK/names.py" serve >"$WORK/serve.out" &
BACKGROUND+=($!)
wait_until 10 "the name server" grep -q listening "$WORK/serve.out"

cat >"$WORK/bus.conf" <<CONF
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>$BUS</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
  </policy>
</busconfig>
CONF
in_ns "$A" dbus-daemon --config-file="$WORK/bus.conf" --nofork --nopidfile >"$WORK/bus.log" 2>&1 &
BACKGROUND+=($!)
wait_until 10 "the bus" test -S "$WORK/bus"

probe() { in_ns "$A" "$PROBE" resolver "$DIRECTORY" "$BUS" "$@"; }
ask() { in_ns "$A" python3 "$WORK/names.py" ask "$1"; }

step "without resolved on the bus the file is written"
printf 'nameserver 127.0.0.53\n' >"$DIRECTORY/resolv.conf"
expect_equal "told" "$(probe apply "$T" "$INDEX" 10.77.0.1)" "$DIRECTORY/resolv.conf"
run probe revert "$T" "$INDEX"
expect_equal "the file" "$(cat "$DIRECTORY/resolv.conf")" "nameserver 127.0.0.53"

# As nobody: as root it would look for a user of its own. It takes the host's servers from an empty
# file, seen by it alone.
: >"$WORK/empty"
# shellcheck disable=SC2016 # expanded by the inner shell
in_ns "$A" unshare -m bash -c 'mount -t tmpfs -o mode=755 tmpfs /run/systemd &&
    mount --bind "$3" /etc/resolv.conf &&
    mkdir /run/systemd/resolve && chown nobody /run/systemd/resolve &&
    DBUS_SYSTEM_BUS_ADDRESS=$1 SYSTEMD_LOG_TARGET=console exec setpriv --reuid nobody --clear-groups \
    --inh-caps=+net_bind_service,+net_raw,+setpcap \
    --ambient-caps=+net_bind_service,+net_raw,+setpcap "$2"' \
    - "$BUS" "$RESOLVED" "$WORK/empty" >"$WORK/resolved.log" 2>&1 &
BACKGROUND+=($!)
resolved_is_there() {
    in_ns "$A" dbus-send --bus="$BUS" --print-reply --dest=org.freedesktop.DBus \
        /org/freedesktop/DBus org.freedesktop.DBus.NameHasOwner string:org.freedesktop.resolve1 |
        grep -q "boolean true"
}
wait_until 20 "systemd-resolved on its bus" resolved_is_there
stub_is_there() { in_ns "$A" ss -Hlun | grep -qF 127.0.0.53; }
wait_until 20 "its stub" stub_is_there

step "all names go to the tunnel's server"
expect_equal "before" "$(ask one.example)" "no answer"
expect_equal "told" "$(probe apply "$T" "$INDEX" 10.77.0.1 corp.example)" systemd-resolved
expect_equal "it has" "$(probe current "$T" "$INDEX")" "10.77.0.1 corp.example"
expect_equal "a name" "$(ask one.example)" 192.0.2.77
expect_equal "resolv.conf" "$(cat "$DIRECTORY/resolv.conf")" "nameserver 127.0.0.53"

step "only one domain's names go there"
run probe apply "$T" "$INDEX" 10.77.0.1 fd77::1 '~corp.example'
expect_equal "it has" "$(probe current "$T" "$INDEX")" "10.77.0.1 fd77::1 ~corp.example"
asked() { grep -c asked "$WORK/serve.out"; }
expect_equal "a name of the domain" "$(ask two.corp.example)" 192.0.2.77
before=$(asked)
expect_equal "another name" "$(ask three.example)" "no answer"
expect_equal "questions to the tunnel for it" "$(($(asked) - before))" 0

step "a change by others is seen, and all is taken back"
in_ns "$A" dbus-send --bus="$BUS" --print-reply --dest=org.freedesktop.resolve1 \
    /org/freedesktop/resolve1 org.freedesktop.resolve1.Manager.RevertLink "int32:$INDEX" >/dev/null
expect_equal "after RevertLink" "$(probe current "$T" "$INDEX")" nothing
run probe apply "$T" "$INDEX" 10.77.0.1
expect_equal "again" "$(probe current "$T" "$INDEX")" 10.77.0.1
run probe revert "$T" "$INDEX"
expect_equal "afterwards" "$(probe current "$T" "$INDEX")" nothing
expect_equal "a name" "$(ask four.example)" "no answer"
expect "again is no error" probe revert "$T" "$INDEX"

step "a link that is not there"
reason=$(probe apply "$T" 4000 10.77.0.1 2>&1) && fail "a link that is not there was told"
expect "is refused with a reason" grep -q "cannot tell systemd-resolved .*: Link 4000 not known" <<<"$reason"
expect "is taken back without an error" probe revert "$T" 4000

host_after=$(stat -c '%i %Y %N' /etc/resolv.conf; cat /etc/resolv.conf)
expect "the host's own file" test "$host_after" = "$host_before"
