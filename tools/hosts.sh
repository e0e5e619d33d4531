# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Several hosts on one machine, for tools/demo, tools/lab and Tests/netns, which source it. A host is a
# network namespace and a mount namespace: it has links, /etc, /run and /var/lib of its own, a machine
# id and a user nexusguard, and shares only the programs. All hosts hang on one switch:
#
#      host hub            host site-1          host site-2
#     192.0.2.1            192.0.2.2            192.0.2.3
#        cable ─────────────  cable ─────────────  cable
#                     bridge in namespace ${HOSTS}net
#
# Needs root, iproute2 and util-linux. Nothing outside the namespaces changes.
#
#   hosts_begin PREFIX     names of namespaces begin with PREFIX (at most 8 characters)
#   host_add NAME ADDRESS  a host on the switch; ADDRESS with prefix length
#   on NAME COMMAND…       runs it there, as root
#   hosts_end              ends what runs there and removes everything

HOSTS='' HOST_NAMES=()
declare -A HOST_PID=() # name → the process that holds its namespaces

hosts_begin() {
    HOSTS=$1
    ip netns add "${HOSTS}net"
    ip -n "${HOSTS}net" link add switch type bridge
    ip -n "${HOSTS}net" link set switch up
}

host_add() {
    local name=$1 address=$2 ns=$HOSTS$1 ready
    ip netns add "$ns"
    HOST_NAMES+=("$name")
    ip link add cable netns "$ns" type veth peer name "$name" netns "${HOSTS}net"
    ip -n "${HOSTS}net" link set "$name" master switch up
    ip -n "$ns" link set lo up
    ip -n "$ns" addr add "$address" dev cable
    ip -n "$ns" link set cable up
    ip netns exec "$ns" unshare --mount --uts --propagation private bash -c "$HOST_INIT" \
        host "$name" </dev/null >/dev/null &
    HOST_PID[$name]=$!
    ready=/proc/${HOST_PID[$name]}/root/run/host-is-ready
    until [[ -e $ready ]]; do
        kill -0 "${HOST_PID[$name]}" 2>/dev/null || return 1
        sleep 0.02 # between two looks
    done
}

# What a new host does before it waits for its end: directories of its own. /etc is a copy, so that a
# machine id, a user and a resolver can be its own.
# shellcheck disable=SC2016 # expanded there
HOST_INIT='
set -e
trap "exit 0" TERM
hostname "$1"
copy=$(mktemp -d)
mount -t tmpfs -o mode=755 etc "$copy"
cp -a /etc/. "$copy/" 2>/dev/null || true
mount --move "$copy" /etc
rmdir "$copy"
rm -f /etc/machine-id /etc/resolv.conf
tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id
: >/etc/resolv.conf
mount -t tmpfs -o mode=755 run /run
mount -t tmpfs -o mode=755 lib /var/lib
mkdir -p /run/lock
getent passwd nexusguard >/dev/null || useradd --system --no-create-home --shell /usr/sbin/nologin nexusguard
exec >/dev/null 2>&1
touch /run/host-is-ready
sleep infinity & wait
'

on() {
    local name=$1
    shift
    nsenter --target "${HOST_PID[$name]}" --net --mount --uts -- "$@"
}

hosts_end() {
    local name pid
    [[ -n $HOSTS ]] || return 0
    for name in "${HOST_NAMES[@]}"; do
        # Only processes of namespaces made here; the holder of the mounts is one of them.
        for pid in $(ip netns pids "$HOSTS$name" 2>/dev/null); do kill "$pid" 2>/dev/null || true; done
    done
    for name in "${HOST_NAMES[@]}"; do
        for _ in {1..50}; do
            [[ -n $(ip netns pids "$HOSTS$name" 2>/dev/null) ]] || break
            sleep 0.05 # between two looks: programs may undo what they made
        done
        for pid in $(ip netns pids "$HOSTS$name" 2>/dev/null); do kill -KILL "$pid" 2>/dev/null || true; done
        ip netns del "$HOSTS$name" 2>/dev/null || true
    done
    ip netns del "${HOSTS}net" 2>/dev/null || true
    HOSTS='' HOST_NAMES=()
}
