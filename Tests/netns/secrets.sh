#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Where secrets are, and where they are not: enrolment tokens, device tokens, envelope keys, private and
# preshared keys, looked for as text, bytes, base64 and hexadecimal in command lines, environments, logs,
# answers, files and the memory of programs that do not need them. Cases C93, C94, C95.
#
#   host hub   192.0.2.1   nghub0                       hub, keeper, engine
#   host site  192.0.2.2   ng0                          agent, keeper, engine; between agent and hub
#                                                       stands a recorder on 127.0.0.1:8000
#                          wgpsk: a file with a preshared key, keeper and engine
#
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/fleet_lib.sh"

# Who may dump core does it here: by the limit, everybody.
mkdir -m 777 "$WORK/cores"
cd "$WORK/cores"
ulimit -c unlimited
SECRETS=$WORK/secrets RECORD=$WORK/record
: >"$SECRETS"
chmod 600 "$SECRETS"
touch "$WORK/start"
search() { python3 -B "$HERE/secrets_search.py" "$SECRETS" "$@"; }
# learn NAME COMMAND…: what it prints is a secret.
learn() {
    local name=$1
    shift
    printf '%s %s\n' "$name" "$("$@")" >>"$SECRETS"
}
names() { cut -d' ' -f1 "$SECRETS" | grep -E "$1" | sort -u | xargs; }

step "a hub and a site, watched from the first command on"
hosts_begin "$P"
host_add hub "$FLEET_HUB/24"
host_add site 192.0.2.2/24
HWID=00112233445566778899aabbccddeeff
python3 -B "$HERE/secrets_search.py" "$SECRETS" watch "$WORK/watched" "${HOSTS}hub" "${HOSTS}site" &
WATCH=$!
BACKGROUND+=("$WATCH")
fleet_hub || fail "the hub does not come up"
nexus hub hub set heartbeatSeconds=5
fleet_token 1
learn enrolment-token cat "$FLEET_TOKEN"
on site python3 -B "$HERE/secrets_record.py" listen 8000 "$FLEET_HUB:8443" "$RECORD" &
BACKGROUND+=("$!")
wait_until 10 "the recorder" listens "${HOSTS}site" t 8000
on site env NEXUSGUARD_MACHINE_ID=$HWID "$COMMAND" enroll http://127.0.0.1:8000 \
    --token-file "$FLEET_TOKEN" --name site >"$WORK/enroll.out" 2>&1 || fail "site does not enrol"
on site env NEXUSGUARD_MACHINE_ID=$HWID "$COMMAND" agent </dev/null >>"$WORK/site.log" 2>&1 &
expect "site is connected" nexus site wait --timeout 30

# Private halves of keys that the tunnels have.
learn site-private-key on site wg show ng0 private-key
learn hub-private-key on hub wg show nghub0 private-key
preshared_key() { on site wg show ng0 preshared-keys | cut -f2; }
expect "the hub has given the site a preshared key" test "$(preshared_key)" != '(none)'
learn site-preshared-key preshared_key
python3 -B "$HERE/secrets_record.py" secrets "$RECORD" "$HWID" >>"$SECRETS"

step "a tunnel of a file, with a preshared key"
on site install -d -m 700 /etc/wireguard
(umask 077 && wg genkey >"$WORK/file.key" && wg genpsk >"$WORK/file.psk")
learn file-private-key cat "$WORK/file.key"
learn file-preshared-key cat "$WORK/file.psk"
(
    umask 077
    cat >"$WORK/wgpsk.conf" <<END
[Interface]
PrivateKey = $(cat "$WORK/file.key")
Address = 10.70.0.1/24
[Peer]
PublicKey = $(on hub wg show nghub0 public-key)
PresharedKey = $(cat "$WORK/file.psk")
AllowedIPs = 10.70.0.0/24
Endpoint = $FLEET_HUB:51820
END
)
on site install -m 600 "$WORK/wgpsk.conf" /etc/wireguard/wgpsk.conf
nexus site up wgpsk >"$WORK/up.out" 2>&1 || fail "wgpsk does not come up"

step "a change, a new key, a password, a backup, and a new token"
nexus hub hub device set site --networks 10.71.0.0/24
(umask 077 && head -c 18 /dev/urandom | base64 >"$WORK/password")
learn password cat "$WORK/password"
nexus hub hub operator add op --password-file "$WORK/password"
nexus hub hub backup /var/lib/nexusguard/hub/test.backup --passphrase-file "$WORK/password" ||
    fail "no backup"
KEY=$(member site 'd["tunnel"]["publicKey"]')
nexus hub hub device rotate site
has_a_new_key() {
    beat site
    [[ $(member site 'd["tunnel"]["publicKey"]') != "$KEY" ]]
}
wait_until 30 "site uses a new key" has_a_new_key
learn site-new-private-key on site wg show ng0 private-key
wait_until 40 "the new key is proved" grep -q 'the new key is in use' "$WORK/site.log"
python3 -B "$HERE/secrets_record.py" secrets "$RECORD" "$HWID" >>"$SECRETS"
sort -u -o "$SECRETS" "$SECRETS"
say "  looked for: $(names .)"
for kind in enrolment-token device-token envelope-key; do
    expect "the recorder has seen the $kind" grep -q "^$kind-0 " "$SECRETS"
done

step "answers and logs (C93)"
mkdir "$WORK/outputs"
number=0
output_of() { # HOST ARGUMENT…
    number=$((number + 1))
    nexus "$@" >"$WORK/outputs/$number" 2>&1 || true
}
for verb in "status" "status --json" "logs" "show" "show ng0" "status ng0" \
    "status ng0 --json" "plan wgpsk" "wait --timeout 0" "check /etc/wireguard/wgpsk.conf"; do
    # shellcheck disable=SC2086 # words
    output_of site $verb
done
for verb in "status" "status --json" "device list --json" "device show site --json" "token list --json" \
    "log --json" "settings" "operator list --json" "alarm list" "forward list"; do
    # shellcheck disable=SC2086
    output_of hub hub $verb
done
expect_at_least "answers" "$(find "$WORK/outputs" -type f -size +0 | wc -l)" 15
cp "$WORK"/{hub,site}.log "$WORK"/{enroll,up}.out "$WORK/outputs"
expect "no secret in answers and logs" search files "$WORK/outputs"

step "command lines and environments (C94)"
kill -TERM "$WATCH"
wait "$WATCH" || true
tail -n 1 "$WORK/watched"
expect_at_least "command lines looked at" "$(sed -n 's/^looked at \([0-9]*\) .*/\1/p' "$WORK/watched")" 10
expect "no secret in one" is_gone grep -q '^found' "$WORK/watched"

step "files (C94, C95)"
# What holds keys in the clear, by design: what a keeper applies, for root alone.
for host in hub site; do
    FILES=$(files_of $host)
    mapfile -t kept < <(find "$FILES/var/lib" "$FILES/run" "$FILES/etc" -xdev -type f -newer "$WORK/start" |
        grep -vE '/nexusguard/(tunnels/)?(ng0|nghub0|wgpsk)\.conf$|/etc/wireguard/wgpsk\.conf$')
    say "  $host: ${#kept[@]} files"
    expect "no secret in files of $host" search files "${kept[@]}"
    for file in "$FILES"/var/lib/nexusguard/tunnels/*.conf "$FILES"/run/nexusguard/*.conf; do
        expect_equal "${file#"$FILES"}" "$(stat -c '%a %U' "$file")" "600 root"
    done
    # Directories are closed where anything below is of its owner alone.
    for directory in "$FILES"/var/lib/nexusguard/{agent,hub,tunnels}; do
        [[ -d $directory ]] || continue
        expect_equal "${directory#"$FILES"}" "$(stat -c %a "$directory")" 700
        expect "what is in it is 0600" test -z "$(find "$directory" -type f -perm /0177)"
    done
done

step "memory"
# memory_of HOST WORDS ALLOWED: all other secrets are looked for in it.
memory_of() {
    local wanted
    # shellcheck disable=SC2046,SC2086 # names
    wanted=$(names . | tr ' ' '\n' | grep -vE "^($3)" | xargs)
    say "  $2 may hold: ${3//|/ }"
    # shellcheck disable=SC2086
    expect "$2 of $1 holds no $wanted" search memory "$(pid_of "$1" "$2")" $wanted
}
# found_in HOST WORDS NAME: a search that finds nothing anywhere would prove nothing.
found_in() { ! search memory "$(pid_of "$1" "$2")" "$3"; }
expect "the agent's own token is found in it" found_in site "$AGENT" device-token-0
expect "the keeper's key is found in it" found_in site 'nexusguard keep ng0' site-new-private-key
# A tunnel's programs hold the keys of the tunnel.
memory_of site 'nexusguard-engine ng0' 'site-new-private-key|site-preshared-key'
memory_of site 'nexusguard-engine wgpsk' 'file-'
memory_of hub 'nexusguard-engine nghub0' 'hub-private-key|site-preshared-key'
memory_of site 'nexusguard keep ng0' 'site-new-private-key|site-preshared-key'
memory_of site 'nexusguard keep --brief wgpsk' 'file-'
memory_of hub 'nexusguard keep nghub0' 'hub-private-key|site-preshared-key'
# The agent has to hand the key to the keeper, and to show its token to the hub.
memory_of site "$AGENT" 'site-new-private-key|site-preshared-key|device-token'
# The hub has a device's token for as long as its connection lasts.
end_process site "$AGENT" TERM
token_is_gone() { search memory "$(pid_of hub "$HUB")" device-token-0; }
wait_until 30 "the end of the connection at the hub" token_is_gone
memory_of hub "$HUB" 'hub-private-key|site-preshared-key'

step "core dumps"
# aborts HOST WORDS: as a crash would end it.
aborts() {
    end_process "$1" "$2" ABRT
    expect "$2 leaves no core" test -z "$(ls "$WORK/cores")"
}
sleep 60 &
kill -ABRT $!
wait $! 2>/dev/null || true
if [[ -z $(ls "$WORK/cores") ]]; then
    say "  not tried: the kernel writes no core files here (core_pattern: $(cat /proc/sys/kernel/core_pattern))"
    exit 0
fi
say "  one that may leaves $(ls "$WORK/cores")"
rm -f "$WORK"/cores/*
aborts hub "$HUB"
agent_start site
wait_until 20 "the agent runs" nexus site status
aborts site "$AGENT"
# Those in the background have another directory.
nexus site keep --foreground ngcore </dev/null >>"$WORK/site.log" 2>&1 &
wait_until 20 "the keeper runs" on site test -S /run/nexusguard/ngcore.keeper.sock
aborts site 'nexusguard keep --foreground ngcore'
