# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For the tests of a fleet under faults, which source it in place of lib.sh: hosts as tools/fleet.sh
# makes them, with programs that are killed and started again, and a flow of packets that must lose none.
#
# COMMAND: the command under test; default: .build/release/nexusguard
#
# shellcheck source-path=SCRIPTDIR
PEER=true
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=../../tools/fleet.sh
source "$ROOT/tools/fleet.sh"

needs_command

show_logs() {
    local log
    for log in "$WORK"/*.log; do
        say "-- $(basename "$log")"
        tail -n 15 "$log" | cut -c 1-400
    done
}
# cleanup looks at the exit code.
# shellcheck disable=SC2154 # assigned there
trap 'code=$?; set +e; [[ $code -eq 0 ]] || show_logs; hosts_end; (exit "$code"); cleanup' EXIT

nexus() { # HOST ARGUMENT…
    local host=$1
    shift
    on "$host" "$COMMAND" "$@"
}
status_of() { nexus "$1" status --json >"$WORK/$1.json" 2>/dev/null; }
# The member of a host's status that a Python expression of `d` names.
member() { status_of "$1" && json "$WORK/$1.json" "$2"; }
# The expression is true.
holds() { [[ $(member "$1" "$2" 2>/dev/null) == True ]]; }

# ---- processes ---------------------------------------------------------------------------------

# pid_of HOST WORDS: the process there whose command line has these words.
pid_of() {
    ip netns pids "$HOSTS$1" | xargs -r ps -o pid=,args= -p |
        awk -v words="$2" 'index($0, words) { print $1; found = 1; exit } END { exit !found }'
}
# What the functions below start, by words of the command line.
# shellcheck disable=SC2034 # read by tests
AGENT='nexusguard agent' HUB='nexusguard hub run' KEEPER='nexusguard keep'
# end_process HOST WORDS SIGNAL: returns when it is gone.
end_process() {
    local pid
    pid=$(pid_of "$1" "$2") || fail "no process '$2' on $1"
    kill "-$3" "$pid"
    # Ours by descent or not: /proc knows either; one that only waits to be reaped has ended.
    wait_until 10 "the end of '$2' on $1" has_ended "$pid"
    wait "$pid" 2>/dev/null || true
}
has_ended() {
    local threads=("/proc/$1/task"/*)
    [[ -r /proc/$1/stat ]] || return 0
    # A zombie has ended when its last thread has: until then its sockets answer (exit_files of the
    # kernel's kernel/exit.c is each thread's).
    [[ $(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) == Z && ${#threads[@]} -eq 1 ]]
}
agent_start() { on "$1" "$COMMAND" agent </dev/null >>"$WORK/$1.log" 2>&1 & }
hub_start() {
    on hub "$COMMAND" hub run --name "$FLEET_HUB" "${FLEET_HUB_OPTIONS[@]}" </dev/null >>"$WORK/hub.log" 2>&1 &
    wait_until 20 "the hub answers" nexus hub hub status
}
# Goes to the background when it answers.
keeper_start() { # HOST INTERFACE
    nexus "$1" keep "$2" </dev/null >>"$WORK/$1.log" 2>&1 || fail "no keeper of $2 on $1"
}
engine_pid() { pid_of "$1" nexusguard-engine; }

# beat HOST: its agent sends a heartbeat now, as often as COUNT says, one after the other.
beat() { # HOST [COUNT]
    on "$1" python3 "$HERE/agent_beat.py" "${2:-1}" >/dev/null 2>&1
}

# ---- packets -----------------------------------------------------------------------------------

# flow_begin HOST ADDRESS: pings, twenty a second, until flow_end says how many were lost.
FLOW='' FLOW_HOST=''
flow_begin() {
    FLOW_HOST=$1
    # A shell's background jobs ignore SIGINT, at which ping prints its count.
    on "$1" env --default-signal=INT ping -n -i 0.05 -W 2 "$2" >"$WORK/flow.log" 2>&1 &
    FLOW=$!
    wait_until 10 "packets flow from $1 to $2" grep -q 'icmp_seq=3 ' "$WORK/flow.log"
}
flow_end() { # WHAT
    local sent lost
    flow_goes_on "$WORK/flow.log"
    kill -INT "$(pid_of "$FLOW_HOST" "ping -n")"
    wait "$FLOW" 2>/dev/null || true
    read -r sent lost < <(flow_count "$WORK/flow.log")
    say "  $1: $sent packets sent, $((sent - lost)) came back"
    expect_equal "$1 costs no packet" "$lost" 0
}

# ---- disks -------------------------------------------------------------------------------------

# The files of a host as they are seen from here.
files_of() { echo "/proc/${HOST_PID[$1]}/root"; }

# database_is_sound FILE: of a copy, so that the log beside it is recovered there and nowhere else.
database_is_sound() {
    rm -f "$WORK"/copy.db*
    cp "$1" "$WORK/copy.db"
    [[ ! -e $1-wal ]] || cp "$1-wal" "$WORK/copy.db-wal"
    [[ $(database_query 'PRAGMA integrity_check') == ok ]] &&
        [[ -z $(database_query 'PRAGMA foreign_key_check') ]]
}
# database_query SQL: of the copy that was made last.
database_query() {
    python3 - "$WORK/copy.db" "$1" <<'PYTHON'
import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]):
    print(*row)
PYTHON
}
