# SPDX-License-Identifier: Apache-2.0
"""Looks for secrets where they must not be. Each line of SECRETS is a name, a blank and a secret: text,
or 32 bytes in base64 or hexadecimal. One is found as it stands, as its bytes, and as those in base64
(of either alphabet) and hexadecimal.

  secrets_search.py SECRETS files PATH…           names what is found; exit code 1 if there is any
  secrets_search.py SECRETS memory PID NAME…      the same in what a process has mapped, for these names
  secrets_search.py SECRETS watch FILE NAMESPACE… until SIGTERM: what /proc/PID/cmdline and environ of
                                                  processes of these network namespaces show goes to FILE
"""
import base64
import binascii
import os
import re
import signal
import sys
import time


def raw(text):
    """The bytes that a text of base64 or hexadecimal stands for; None: it is just a text."""
    if re.fullmatch(r"[0-9a-f]{64}", text):
        return bytes.fromhex(text)
    try:
        data = base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4),
                                validate=True)
    except binascii.Error:
        return None
    return data if len(data) == 32 else None


def forms(text):
    """What a secret looks like, by the name of the form."""
    data = raw(text)
    found = {"text": text.encode()}
    for form, value in [("raw", data)] if data else []:
        # The last characters depend on the padding.
        found |= {form: value, "base64": base64.b64encode(value)[:42],
                  "base64url": base64.urlsafe_b64encode(value)[:42]}
    whole = data or text.encode()
    return found | {"hex": whole.hex().encode(), "HEX": whole.hex().upper().encode()}


def read_secrets(path):
    with open(path, encoding="utf-8") as lines:
        # One that is being written is read next time.
        words = [line.split() for line in lines if line.endswith("\n")]
    return {word[0]: forms(word[1]) for word in words if len(word) == 2}


def hits(secrets, data):
    for name, looks in secrets.items():
        for form, look in looks.items():
            if look in data:
                yield name, form
                break  # one form is enough


def files(secrets, paths):
    """Each regular file below the paths once."""
    found = 0
    for top in paths:
        names = [top] if os.path.isfile(top) else (
            os.path.join(where, name) for where, _, inside in os.walk(top) for name in inside)
        for path in names:
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                data = file.read()
            for name, form in hits(secrets, data):
                print(f"{name} ({form}) in {path}")
                found += 1
    return 1 if found else 0


def memory(secrets, pid, names):
    found = 0
    looked = 0
    wanted = {name: secrets[name] for name in names}
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            fields = line.split(maxsplit=5)
            start, end = (int(value, 16) for value in fields[0].split("-"))
            what = fields[5].strip() if len(fields) > 5 else "anonymous"
            # What nobody can write is as it is in its file.
            if not fields[1].startswith("rw"):
                continue
            try:
                mem.seek(start)
                data = mem.read(end - start)
            except OSError:
                continue
            looked += len(data)
            for name, looks in wanted.items():
                for form, look in looks.items():
                    count = data.count(look)
                    if count:
                        print(f"{name} ({form}, {count} times) in {what}")
                        found += 1
    if not looked:
        print(f"process {pid} could not be looked at")
        return 2
    return 1 if found else 0


def watch(secrets, file, namespaces):
    places = {os.stat(f"/run/netns/{name}").st_ino for name in namespaces}
    running = True

    def stop(*_):
        nonlocal running
        running = False
    signal.signal(signal.SIGTERM, stop)
    processes = set()
    with open(file, "w", encoding="utf-8") as out:
        while running:
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    if os.stat(f"/proc/{pid}/ns/net").st_ino not in places:
                        continue
                    for kind in ("cmdline", "environ"):
                        with open(f"/proc/{pid}/{kind}", "rb") as source:
                            data = source.read()
                        for name, form in hits(secrets(), data):
                            print(f"found: {name} ({form}) in {kind} of {data[:60]!r}", file=out)
                        if kind == "cmdline":
                            processes.add(data)
                except OSError:
                    continue
            out.flush()
            time.sleep(0.005)  # between two looks
        print(f"looked at {len(processes)} command lines", file=out)
    return 0


def main(path, verb, *arguments):
    if verb == "files":
        return files(read_secrets(path), arguments)
    if verb == "memory":
        return memory(read_secrets(path), arguments[0], arguments[1:])
    # What becomes known while it watches counts too.
    return watch(lambda: read_secrets(path), arguments[0], arguments[1:])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
