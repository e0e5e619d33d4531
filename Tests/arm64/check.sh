#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make check, or exit code 77 and the reason where a package is missing.
set -euo pipefail
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v "$tool" >/dev/null || {
        printf '%s is not installed\n' "$tool"
        exit 77
    }
done
[[ -f /usr/aarch64-linux-gnu/include/stdio.h ]] || {
    printf 'libc6-dev-arm64-cross is not installed\n'
    exit 77
}
exec make -C "$(dirname "$0")" check
