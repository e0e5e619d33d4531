# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Shared by the scripts of this directory, which source it first.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

require_root() {
    [[ $(id -u) -eq 0 ]] || die "needs root: sudo tools/$(basename "$0")"
}

# Who builds: the person behind sudo if this checkout is theirs to write, else the checkout's owner.
# So .build never ends up owned by root in somebody's home.
build_user() {
    local owner
    owner=$(stat -c %U "$ROOT")
    if [[ $(id -u) -ne 0 ]]; then
        id -un
    elif [[ ${SUDO_USER:-root} != root ]] && runuser -u "$SUDO_USER" -- test -w "$ROOT"; then
        printf '%s\n' "$SUDO_USER"
    elif [[ $owner == UNKNOWN ]]; then
        printf 'root\n'
    else
        printf '%s\n' "$owner"
    fi
}

# Sets BUILDER, the command prefix that makes the rest of a command line run as that user, with
# their home and the PATH of this process. Empty when that is us already.
builder_prefix() {
    local user
    user=$(build_user)
    BUILDER=()
    [[ $user == "$(id -un)" ]] ||
        BUILDER=(runuser -u "$user" -- env HOME="$(getent passwd "$user" | cut -d: -f6)" PATH="$PATH")
}
as_builder() {
    local BUILDER
    builder_prefix
    "${BUILDER[@]}" "$@"
}

swift_is_recent() { # swift-tools-version of Package.swift
    as_builder "$1" --version 2>/dev/null |
        grep -qE 'Swift version (6\.([2-9]|[1-9][0-9])|([7-9]|[1-9][0-9]+)\.)'
}

# Prints the path of a Swift compiler that can build this package. sudo resets PATH, so its usual
# places are tried too.
find_swift() {
    local home candidate
    if [[ -n ${NEXUSGUARD_SWIFT:-} ]]; then
        swift_is_recent "$NEXUSGUARD_SWIFT" || return 1
        printf '%s\n' "$NEXUSGUARD_SWIFT"
        return
    fi
    home=$(getent passwd "$(build_user)" | cut -d: -f6)
    for candidate in \
        "$(command -v swift || true)" \
        "$(as_builder bash -lc 'command -v swift' 2>/dev/null | tail -n 1 || true)" \
        "$home/.local/share/swiftly/bin/swift" "$home/.swiftly/bin/swift" \
        /opt/swift/usr/bin/swift /opt/swift*/usr/bin/swift \
        /usr/local/bin/swift /usr/local/swift*/usr/bin/swift \
        /usr/libexec/swift/bin/swift /usr/libexec/swift/*/bin/swift /usr/bin/swift; do
        if [[ -x $candidate ]] && swift_is_recent "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    return 1
}

# Puts the Swift toolchain first in PATH: its clang builds the C tests and the fuzz targets.
use_swift() {
    local swift toolchain
    swift=$(find_swift) || {
        cat >&2 <<'TEXT'
No Swift 6.2 or newer was found. Debian does not package it; any of these will do:
  - https://www.swift.org/install/linux/ : unpack a toolchain for Debian 12 to /opt/swift
  - swiftly (the same page) for your own user
  - Swift elsewhere already: NEXUSGUARD_SWIFT=/path/to/usr/bin/swift (also works through sudo:
    sudo NEXUSGUARD_SWIFT=… tools/demo)
TEXT
        return 1
    }
    # swiftly's command is a proxy; the resource path leads to the toolchain behind it.
    toolchain=$(as_builder "$swift" -print-target-info |
        sed -n 's|.*"runtimeResourcePath" *: *"\(.*\)/lib/swift".*|\1/bin|p')
    [[ -x $toolchain/clang ]] || toolchain=$(dirname "$swift")
    export PATH="$toolchain:$PATH"
}
