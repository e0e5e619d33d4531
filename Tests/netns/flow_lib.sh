# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Packets that no change may lose: a ping that runs beside it, and what of it had no answer. Sourced by
# lib.sh and by tests in a machine of their own; both have a wait_until.

# Of a ping that runs, without -q, into FILE: what has no answer at its end may be on its way, on a busy
# machine several. So nobody ends it before answers still come, and loss is a gap among them.
answered() { grep -c 'icmp_seq=[0-9]* ttl' "$1" || true; } # FILE
has_answers() { (($(answered "$1") >= $2)); }              # FILE COUNT
flow_goes_on() { # FILE
    wait_until 10 "packets still flow" has_answers "$1" $(($(answered "$1") + 2))
}
# flow_count FILE: requests up to the last that was answered, and how many of them were not.
flow_count() {
    sed -nE 's/.*icmp_seq=([0-9]+) ttl.*/\1/p' "$1" | sort -nu | awk '{ last = $1 } END { print last + 0, last - NR }'
}
