#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The AVX-512 back-end in the processor's own instructions, on a machine that Bochs emulates: one
# with AVX-512 IFMA must compute what is right, one with AVX-512 but not IFMA must be refused. Exit
# code 77 and the reason where a package is missing.
set -euo pipefail
cd "$(dirname "$0")"
BUILD=$(cd ../.. && pwd)/.build/avx512

for file in /usr/bin/bochs /usr/share/bochs/BIOS-bochs-latest /usr/lib/ISOLINUX/isolinux.bin \
    /usr/lib/syslinux/modules/bios/mboot.c32 /usr/bin/xorriso; do
    [[ -e $file ]] || {
        printf '%s is not installed\n' "$file"
        exit 77
    }
done
make -s image BUILD="$BUILD"

configuration() { # MODEL DIRECTORY
    cat <<CONFIGURATION
cpu: model=$1, count=1, ips=50000000
clock: sync=none
memory: guest=32, host=32
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
display_library: term
ata0-master: type=cdrom, path=$BUILD/image.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$2/serial
log: $2/log
panic: action=fatal
CONFIGURATION
}

# Debian's Bochs has a debugger, which waits for "c", and no display that needs no terminal. It ends
# with 1 when the machine switches itself off.
emulate() { # MODEL: what the machine says
    local directory=$BUILD/$1
    rm -rf "$directory" && mkdir -p "$directory"
    configuration "$1" "$directory" >"$directory/bochsrc"
    echo c >"$directory/commands"
    TERM=vt100 timeout 240 script -qec \
        "stty rows 50 cols 132 && exec bochs -q -f '$directory/bochsrc' -rc '$directory/commands'" \
        /dev/null </dev/null >"$directory/screen" 2>&1 || true
    cat "$directory/serial" 2>/dev/null || tail -n 5 "$directory/log"
}

expect() { # MODEL LINE
    local said
    said=$(emulate "$1")
    printf '== %s\n%s\n' "$1" "$said"
    grep -qx "$2" <<<"$said" || {
        printf 'not ok: it does not say "%s"\n' "$2"
        exit 1
    }
}
expect corei7_icelake_u 'exit 0'
expect corei7_skylake_x 'not ok: a worker: the processor has no AVX-512 IFMA, batch 0'
