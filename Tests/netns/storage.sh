#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What agent and hub keep, on a file system that is full, and their records in a journal. There is
# no network in it: mount namespaces of its own hold a small tmpfs, and a /run with a socket where
# the journal's is; a TPM in software serves on the loopback of a namespace. The host's journal, TPM
# and file systems are not touched.
#
# shellcheck source-path=SCRIPTDIR
ENGINE=true PEER=true
source "$(dirname "$0")/lib.sh"
PROBE=${PROBE:-$ROOT/.build/release/storage-probe}
[[ -x $PROBE ]] || skip "no probe at $PROBE (build it, or set PROBE)"

# contains FILE TEXT
contains() { grep -qF -- "$2" "$1" || { cat "$1"; return 1; }; }

step "a full file system leaves what was there"
mkdir "$WORK/small"
# shellcheck disable=SC2016
unshare --mount --propagation private sh -c '
    mount -t tmpfs -o size=4m,mode=700 none "$1" && exec "$2" full "$1/state"
' sh "$WORK/small" "$PROBE" >"$WORK/full.out"
cut -c 1-160 "$WORK/full.out"
expect "nothing fails in another way" [ "$(grep -c WRONG "$WORK/full.out")" = 0 ]
expect "the first of each is there" contains "$WORK/full.out" \
    "first: document 1, secret 1, table 1 sound true"
for what in document secret table; do
    expect "the $what's error says what to do" grep -q "^$what: .*make room" "$WORK/full.out"
done
expect "the full disk keeps the old ones" contains "$WORK/full.out" \
    "full: document 1, secret 1, table 1 sound true"
expect "no draft is left" contains "$WORK/full.out" "full: drafts 0"
expect "with room the next ones are kept" contains "$WORK/full.out" \
    "room: document 41, secret 41, table 1,41 sound true"
expect "and the log has all of them in their order, with one complaint" contains \
    "$WORK/full.out" "room: log 1,2,cannot,$(seq -s, 3 41)"

step "records reach a journal by its own protocol"
cat >"$WORK/journal.py" <<'PYTHON'
"""Takes datagrams at PATH as systemd-journald does, and prints each entry's fields."""
import os, socket, struct, sys
path, count = sys.argv[1], int(sys.argv[2])
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(path)
s.settimeout(20)
print("listening", flush=True)
def fields(data):
    while data:
        line, data = data.split(b"\n", 1)
        if b"=" in line:
            yield line.split(b"=", 1)
        else:  # NAME, length as 64 bits, value, line end: "Native Journal Protocol" of systemd.io
            size = struct.unpack("<Q", data[:8])[0]
            yield line, data[8:8 + size]
            data = data[9 + size:]
for _ in range(count):
    entry = {k.decode(): v.decode() for k, v in fields(s.recv(65536))}
    print({k: v for k, v in sorted(entry.items()) if not k.startswith(("CODE_", "_"))}, flush=True)
PYTHON
# shellcheck disable=SC2016
unshare --mount --propagation private bash -c '
    mount -t tmpfs none /run && mkdir -p /run/systemd/journal
    python3 "$1/journal.py" /run/systemd/journal/socket 2 >"$1/journal.out" &
    until grep -q listening "$1/journal.out" 2>/dev/null; do kill -0 $! || exit 1; done
    "$2" output 2>/dev/null >"$1/output.null"
    "$2" output 2>"$1/error.file" >"$1/output.file"
    JOURNAL_STREAM=$(stat -c %d:%i "$1/error.file") "$2" output 2>"$1/error.file" >"$1/output.stream"
    JOURNAL_STREAM=1:1 "$2" output 2>"$1/error.file" >"$1/output.other"
    "$2" journal
    wait
' bash "$WORK" "$PROBE"
cat "$WORK/journal.out"
expect "the first entry is whole" contains "$WORK/journal.out" "'MESSAGE': 'two lines\\nof text'"
expect "with its priority" contains "$WORK/journal.out" "'PRIORITY': '4'"
expect "the program's name" contains "$WORK/journal.out" "'SYSLOG_IDENTIFIER': 'storage-probe'"
expect "and its fields" contains "$WORK/journal.out" "'NEXUSGUARD_CONFIG_HASH': 'abc'"
expect "the second too" contains "$WORK/journal.out" "'MESSAGE': 'second'"
expect "standard error to nowhere: the journal" contains "$WORK/output.null" journal
expect "standard error in a file: lines there" contains "$WORK/output.file" jsonLines
expect "standard error is the journal: the journal" contains "$WORK/output.stream" journal
expect "somebody else's JOURNAL_STREAM: lines" contains "$WORK/output.other" jsonLines

step "the machine's id"
if [[ -s /etc/machine-id ]]; then
    first=$("$PROBE" machine)
    expect "is 32 digits" grep -qE '^[0-9a-f]{32}$' <<<"$first"
    expect "stays the same" [ "$("$PROBE" machine)" = "$first" ]
    expect "is not the one in /etc" [ "$(cat /etc/machine-id)" != "$first" ]
    # shellcheck disable=SC2016
    other=$(unshare --mount --propagation private sh -c '
        echo 00112233445566778899aabbccddeeff >"$1/id" && mount --bind "$1/id" /etc/machine-id &&
        exec "$2" machine' sh "$WORK" "$PROBE")
    expect "is another one on another machine" [ "$other" != "$first" ]
fi

step "a key of a TPM (C91)"
if ! command -v swtpm >/dev/null; then
    say "  no swtpm: not tried"
    exit 0
fi
SEALED=sealed TCTI=swtpm:host=127.0.0.1,port=2321
netns_create "$A"
# tpm_start NAME: a TPM with the seeds of that name.
tpm_start() {
    mkdir -p "$WORK/tpm-$1"
    background "$A" swtpm socket --tpm2 --tpmstate "dir=$WORK/tpm-$1" --flags startup-clear \
        --server type=tcp,bindaddr=127.0.0.1,port=2321 --ctrl type=tcp,bindaddr=127.0.0.1,port=2322
    wait_until 10 "the TPM $1" listens "$A" t 2322
}
tpm_stop() {
    kill "$BACKGROUND_PID"
    wait "$BACKGROUND_PID" 2>/dev/null || true
}
# with_tpm ADDRESS [SECRET]: output and error into $WORK/tpm.out
with_tpm() { in_ns "$A" "$PROBE" tpm "$WORK/$SEALED" "$@" >"$WORK/tpm.out" 2>&1; }
refuses() { ! with_tpm "$@"; }

tpm_start one
expect "the first secret is sealed by it" with_tpm "$TCTI" hush
expect "and opens" contains "$WORK/tpm.out" "secret: hush"
expect "status would say so" contains "$WORK/tpm.out" "protection: tpm"
expect "no key file is made" [ ! -e "$WORK/sealed/storage.key" ]
tpm_stop
tpm_start one
expect "it opens after the TPM was started again" with_tpm "$TCTI"
expect "with the same content" contains "$WORK/tpm.out" "secret: hush"
cp -a "$WORK/sealed" "$WORK/damaged"
printf x >>"$WORK/damaged/storage.tpm"
SEALED=damaged
expect "a file with damage does not" refuses "$TCTI"
expect "and is told from another TPM's" contains "$WORK/tpm.out" "not what a TPM has sealed"
SEALED=sealed
tpm_stop
before=$(sha256sum "$WORK"/sealed/*)
tpm_start two
expect "another TPM does not open it" refuses "$TCTI"
cut -c 1-200 "$WORK/tpm.out"
expect "and says to keep the file" grep -q "cannot unseal .*another TPM.*keep the file" \
    "$WORK/tpm.out"
tpm_stop
expect "a TPM that is gone is an error" refuses "$TCTI"
expect "that says what is kept" grep -q "no TPM answers at .*keep the file" "$WORK/tpm.out"
expect "no TPM at all is one too" refuses ""
expect "that names the device" contains "$WORK/tpm.out" "/dev/tpmrm0"
expect "nothing was changed or made" [ "$(sha256sum "$WORK"/sealed/*)" = "$before" ]
rm -r "$WORK/sealed"
expect "a TPM that cannot be used makes way for a key file" with_tpm "$TCTI" hush
expect "which is said" contains "$WORK/tpm.out" "using a key file instead"
expect "in the protection as well" contains "$WORK/tpm.out" "protection: file"
tpm_start one
expect "a key file that is there is gone on with" with_tpm "$TCTI"
expect "also where there is a TPM now" contains "$WORK/tpm.out" "protection: file"
tpm_stop
