#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The units of share/systemd under a systemd that runs them: a machine of namespaces, with this one's
# files beneath its own and systemd as its first process. The keeper starts the engine as a unit of its
# own and confined (C88), dies, is stopped and restarted without the packets noticing, makes the link
# anew with an engine in another unit, whose log and status tell the tunnel's name, and brings the
# tunnel up when the machine begins anew (C64), as one without rights to the network namespace of
# process 1 can tell.
#
#   namespaces $A: systemd ─ nexusguard-keep@wg0, nexusguard-engine@wg0 (wg0)
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

COMMAND=${COMMAND:-$ROOT/.build/release/nexusguard}
command -v "$COMMAND" >/dev/null || skip "no command at $COMMAND (build it, or set COMMAND)"
command -v "$ENGINE" >/dev/null || skip "no engine at $ENGINE (build it, or set ENGINE)"
SYSTEMD=/lib/systemd/systemd
[[ -x $SYSTEMD ]] || skip "no systemd here"
grep -qw overlay /proc/filesystems || skip "this kernel has no overlay file system"
CGROUPS=$(findmnt -t cgroup2 -n -o TARGET | head -n 1)
[[ -n $CGROUPS && -w $CGROUPS ]] || skip "no control groups of version 2 to use"
CGROUPS=$CGROUPS/$P
MACHINE=''

# What was written survives in $WORK/upper: a machine that is started again is the same one.
machine_end() {
    [[ -n $MACHINE ]] || return 0
    kill -KILL "$MACHINE" 2>/dev/null || true # with it goes all that it started (pid_namespaces(7))
    wait "$STARTER" 2>/dev/null || true
    MACHINE=''
}
# cleanup looks at the exit code.
machine_remove() {
    local code=$?
    set +e
    if [[ $code -ne 0 && $code -ne 77 && -n $MACHINE ]]; then
        on journalctl --no-pager -n 20 -u 'nexusguard-*'
        on systemctl --no-pager --failed
    fi
    machine_end
    umount "$WORK/disk" 2>/dev/null
    find "$CGROUPS" -depth -type d -exec rmdir {} \; 2>/dev/null
    (exit "$code")
    cleanup
}
trap machine_remove EXIT

# shellcheck disable=SC2016 # expanded there
MACHINE_INIT='
set -e
mkdir -p "$1/work" "$1/upper" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
cd "$1/root"
[[ -e .before ]] || rm -rf etc/systemd/system/*.wants # what else this machine starts
for place in run tmp dev; do mount -t tmpfs -o mode=755 "$place" "$place"; done
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mkdir -p dev/net dev/shm .before
for device in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 net/tun:10:200; do
    IFS=: read -r name major minor <<<"$device"
    mknod -m 666 "dev/$name" c "$major" "$minor"
done
ln -s /proc/self/fd dev/fd
pivot_root . .before
exec env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . \
    sh -c "umount -l /.before && exec /lib/systemd/systemd --unit=basic.target"
'
machine_begin() {
    (
        echo "$BASHPID" >"$CGROUPS/cgroup.procs"
        exec ip netns exec "$A" unshare --mount --uts --ipc --pid --cgroup --fork --kill-child \
            --propagation private bash -c "$MACHINE_INIT" machine "$WORK/disk"
    ) </dev/null >>"$WORK/machine.log" 2>&1 &
    STARTER=$!
    wait_until 30 "systemd is the first process" machine_found
    wait_until 60 "the machine is up" on systemctl is-active basic.target
}
machine_found() {
    MACHINE=$(pgrep -P "$STARTER") && [[ $(cat "/proc/$MACHINE/comm") == systemd ]]
}
on() {
    nsenter --target "$MACHINE" --mount --uts --net --pid --ipc --cgroup --root --wdns=/ -- \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
property() { on systemctl show -P "$1" "$2"; }

# As a package would: programs where the units look for them, with the libraries they were built with.
install_there() {
    local upper=$WORK/disk/upper library
    mkdir -p "$upper"/{usr/bin,usr/lib,etc/systemd/system,etc/nexusguard,var/lib}
    install "$COMMAND" "$upper/usr/bin/nexusguard"
    install "$(command -v "$ENGINE")" "$upper/usr/bin/nexusguard-engine"
    for library in $(ldd "$COMMAND" "$ENGINE" | sed -n 's|.* => \(/.*/lib\(swift\|dispatch\|Foundation\|Blocks\).*\) (.*|\1|p' | sort -u); do
        install -D -t "$upper/usr/lib/$(uname -m)-linux-gnu" "$library"
    done
    cp "$ROOT"/share/systemd/system/* "$upper/etc/systemd/system/"
    install -D -m 644 -t "$upper/etc/tmpfiles.d" "$ROOT/share/tmpfiles.d/nexusguard.conf"
    for unit in systemd-udevd systemd-udev-trigger systemd-modules-load systemd-networkd systemd-timesyncd; do
        ln -s /dev/null "$upper/etc/systemd/system/$unit.service"
    done
    : >"$upper/etc/fstab"
    (umask 077 && cat >"$upper/etc/nexusguard/wg0.conf") <<CONF
[Interface]
PrivateKey = $(wg genkey)
Address = 10.77.0.1/24
ListenPort = 51820

[Peer]
PublicKey = $(wg genkey | wg pubkey)
AllowedIPs = 10.77.0.2/32
CONF
}

step "a machine with the units"
mkdir "$WORK/disk" "$CGROUPS"
mount -t tmpfs -o mode=755 disk "$WORK/disk" # an overlay's files are never beneath the other's
netns_create "$A"
install_there
machine_begin
on systemd-sysusers - <"$ROOT/share/sysusers.d/nexusguard.conf"
on systemd-tmpfiles --create nexusguard.conf # at its first start there was no such user

step "up starts the keeper's unit, and that the engine's"
expect "up" on nexusguard up --backend userspace --persist wg0
expect "the keeper runs as a unit" on systemctl is-active nexusguard-keep@wg0
expect "the engine runs as another one (C88)" on systemctl is-active nexusguard-engine@wg0
# Its number varies where links were made anew.
engine_units() {
    on systemctl list-units --plain --no-legend --state=active 'nexusguard-engine@*' | cut -d' ' -f1
}
engine() { property MainPID "$(engine_units)"; }
first=$(engine)
expect "it is confined" on grep -q 'Seccomp:.*2' "/proc/$first/status"
capabilities() { on sed -n 's/^CapEff:\t//p' "/proc/$first/status"; }
expect_equal "its rights: CAP_NET_ADMIN, CAP_NET_BIND_SERVICE" "$(capabilities)" 0000000000001400

# renewed UNIT: the link is made anew, and this is its engine's unit afterwards.
renewed() {
    local unit=$1 before
    before=$(engine)
    expect "up --renew" on nexusguard up --renew wg0
    expect_equal "the only engine's unit" "$(engine_units)" "$unit"
    expect "another engine" test "$before" != "$(engine)"
    says_its_tunnel() { on systemctl status "$unit" | grep -q "Status: \"tunnel wg0, begun as wg0_"; }
    wait_until 10 "systemctl status names its tunnel" says_its_tunnel
    expect_equal "failed units" "$(on systemctl list-units --plain --no-legend --state=failed 'nexusguard-*')" ""
    expect_equal "sockets" "$(on sh -c 'cd /run && ls wireguard nexusguard/*.engine')" "nexusguard/wg0.engine

wireguard:
wg0.sock"
    expect_equal "the state socket says" "$(on python3 - <<<'
import json, socket
connection = socket.socket(socket.AF_UNIX)
connection.connect("/run/nexusguard/wg0.engine")
connection.sendall(b"get=1\n\n")
print(json.loads(connection.makefile().readline())["name"])')" wg0
    expect "its log says whose engine it is" \
        grep -q "wg0: the engine that began as wg0_. has this tunnel now" \
        <(on journalctl --no-pager -o cat -u "$unit")
}
step "the link is made anew, twice: the engine's unit is another one"
renewed nexusguard-engine@wg0_2.service
renewed nexusguard-engine@wg0_3.service
first=$(engine)

step "the keeper dies, is restarted and stopped"
keeper() { property MainPID nexusguard-keep@wg0; }
died=$(keeper)
on kill -KILL "$died"
answers() { [[ $(keeper) != "$died" && $(keeper) != 0 ]] && on nexusguard status wg0; }
wait_until 20 "another keeper" answers
run on systemctl restart nexusguard-keep@wg0
wait_until 20 "a third one" on nexusguard status wg0
run on systemctl stop nexusguard-keep@wg0
expect_equal "the engine" "$(engine)" "$first"
expect "the tunnel stays" on ip link show wg0

step "the machine begins anew (C64)"
expect "enabled" on systemctl enable nexusguard-keep@wg0
machine_end
machine_begin
run on systemctl start multi-user.target --no-block
is_up() { on nexusguard show interfaces | grep -qw wg0; }
wait_until 30 "the tunnel is there" is_up
expect "by a unit of its own" on systemctl is-active nexusguard-engine@wg0

step "an engine that took another's place is stopped"
renewed nexusguard-engine@wg0_2.service
run on systemctl stop nexusguard-keep@wg0
run on systemctl stop nexusguard-engine@wg0_2
expect_equal "engines" "$(engine_units)" ""
expect "the link is gone" is_gone on ip link show wg0
expect_equal "sockets" "$(on sh -c 'ls /run/wireguard; ls /run/nexusguard | grep engine')" ""
run on systemctl start nexusguard-keep@wg0
wait_until 30 "the tunnel is back" is_up
expect "by the unit of its name" on systemctl is-active nexusguard-engine@wg0

step "down"
expect "down" on nexusguard down wg0
expect "nothing is left" is_gone on ip link show wg0
keeper_is_gone() { [[ $(property ActiveState nexusguard-keep@wg0) == inactive ]]; }
wait_until 20 "the keeper's unit ends" keeper_is_gone
