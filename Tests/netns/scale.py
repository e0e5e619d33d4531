#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Configures an engine with many peers by one set operation of its configuration socket.

  replace IFNAME COUNT LIVE-KEY [ENDPOINT]    COUNT peers of three prefixes each take the place of
                                              all; the one in the middle is LIVE-KEY (base64), at
                                              ENDPOINT if given, with 10.77.0.2 and fd77::2. Prints
                                              the milliseconds until the answer.
"""
import base64
import hashlib
import socket
import sys
import time


def stranger(number):
    key = hashlib.sha256(b"peer %d" % number).hexdigest()
    high, low = number >> 8, number & 255
    return (f"public_key={key}\nreplace_allowed_ips=true\n"
            f"allowed_ip=10.{128 + (high >> 8)}.{high & 255}.{low}/32\n"
            f"allowed_ip=fd00::{high:x}:{low:x}/128\n"
            f"allowed_ip=172.{16 + (number >> 14)}.{number >> 6 & 255}.{(number & 63) * 4}/30\n")


def live(key, endpoint):
    text = f"public_key={base64.b64decode(key).hex()}\nreplace_allowed_ips=true\n"
    if endpoint:
        text += f"endpoint={endpoint}\n"
    return text + "allowed_ip=10.77.0.2/32\nallowed_ip=fd77::2/128\nallowed_ip=192.168.77.0/24\n"


def replace(name, count, key, endpoint=None):
    peers = [stranger(number) for number in range(count - 1)]
    peers.insert(count // 2, live(key, endpoint))
    request = ("set=1\nreplace_peers=true\n" + "".join(peers) + "\n").encode()
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        client.connect(f"/var/run/wireguard/{name}.sock")
        start = time.monotonic()
        client.sendall(request)
        answer = b""
        while not answer.endswith(b"\n\n"):
            data = client.recv(4096)
            if not data:
                break
            answer += data
    if answer != b"errno=0\n\n":
        raise SystemExit(f"answered {answer!r}")
    print(round((time.monotonic() - start) * 1000))


def main(arguments):
    match arguments:
        case ["replace", name, count, *rest]:
            replace(name, int(count), *rest)
        case _:
            raise SystemExit(__doc__)


main(sys.argv[1:])
