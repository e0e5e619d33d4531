# SPDX-License-Identifier: Apache-2.0
"""Serves random devices on a configuration socket and compares what two programs print of them.

  show_random.py INTERFACE SEED COUNT COMMAND REFERENCE    (COMMAND is nexusguard, REFERENCE wg)

Every value that the protocol can hold is likely, the edges of units and times more than others.
The last line says how many outputs were the same; the exit code is 1 when one differs.
"""
import ipaddress
import os
import random
import socket
import subprocess
import sys
import threading
import time

FIELDS = ["", "public-key", "private-key", "listen-port", "fwmark", "peers", "preshared-keys",
          "endpoints", "allowed-ips", "latest-handshakes", "transfer", "persistent-keepalive",
          "dump"]


def amount(draw):
    """Bytes, near the edges of units and where two decimals are a tie."""
    edge = 1024 ** draw.randrange(6)
    choices = [0, draw.randrange(2048), edge, edge - 1, edge + edge // 8, edge * 3 // 8,
               draw.randrange(edge + 1), draw.randrange(2 ** 40), draw.randrange(2 ** 64)]
    return min(draw.choice(choices), 2 ** 64 - 1)


def handshake(draw, now):
    unit = draw.choice([1, 60, 3600, 86400, 365 * 86400])
    age = unit * draw.randrange(4) + draw.choice([0, 0, 1, 59, 3599, draw.randrange(unit + 1)])
    return draw.choice([0, now - age, now - age, now + draw.randrange(1, 9999), 1])


def address(draw):
    if draw.randrange(2):
        return ".".join(str(draw.randrange(256)) for _ in range(4)), 32
    groups = [draw.choice(["0", f"{draw.randrange(65536):x}"]) for _ in range(8)]
    if not any(int(group, 16) for group in groups[:6]):
        groups[0] = "fd00"  # wg spells ::/96 with dots: docs/cli.md
    return socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, ":".join(groups))), 128


def peer(draw, now):
    yield f"public_key={draw.randbytes(32).hex()}"
    yield f"preshared_key={(draw.randbytes(32) if draw.randrange(2) else bytes(32)).hex()}"
    yield "protocol_version=1"
    if draw.randrange(2):
        text, bits = address(draw)
        host = text if bits == 32 else f"[{text}]"
        yield f"endpoint={host}:{draw.randrange(1, 65536)}"
    seconds = handshake(draw, now)
    yield f"last_handshake_time_sec={seconds}"
    yield f"last_handshake_time_nsec={draw.randrange(10 ** 9) if seconds else 0}"
    yield f"tx_bytes={amount(draw)}"
    yield f"rx_bytes={amount(draw)}"
    keepalive = draw.choice([0, 1, 25, 60, 61, 3600, 65535, draw.randrange(65536)])
    yield f"persistent_keepalive_interval={keepalive}"
    for _ in range(draw.choice([0, 1, 1, 3, 20])):
        text, bits = address(draw)
        prefix = ipaddress.ip_network((text, draw.randrange(bits + 1)), strict=False)  # as servers do
        yield f"allowed_ip={prefix}"


def device(draw, now):
    if draw.randrange(4):
        yield f"private_key={draw.randbytes(32).hex()}"
    if draw.randrange(4):
        yield f"listen_port={draw.randrange(1, 65536)}"
    if draw.randrange(2):
        yield f"fwmark={draw.choice([1, 0xca6c, 2 ** 32 - 1])}"
    for _ in range(draw.choice([0, 1, 2, 5])):
        yield from peer(draw, now)


class Server:
    def __init__(self, path):
        self.answer = b""
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path + ".new")
        self.listener.listen(8)
        os.rename(path + ".new", path)  # wg removes the socket of a server that does not listen yet
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.listener.accept()
            with connection:
                request = b""
                while not request.endswith(b"\n\n"):
                    data = connection.recv(100)
                    if not data:
                        break
                    request += data
                if request:
                    connection.sendall(self.answer)


def output(command, arguments, colour):
    environment = {"PATH": os.environ["PATH"], **colour}
    result = subprocess.run([command, *arguments], env=environment, capture_output=True, timeout=60,
                            check=False)
    return result.returncode, result.stdout


def compare(server, draw, name, command, reference):
    """How many outputs were the same, and what differs: those of one device."""
    same, differences = 0, []
    colour = {"WG_COLOR_MODE": draw.choice(["always", "never", "auto", "other"])}
    if draw.randrange(2):
        colour["WG_HIDE_KEYS"] = draw.choice(["never", "always"])
    for field in FIELDS:
        arguments = ["show", name] + ([field] if field else [])
        for _ in range(4):  # the clock may tick between the two
            before = int(time.time())
            ours, theirs = (output(program, arguments, colour) for program in (command, reference))
            if before == int(time.time()):
                break
        if ours == theirs and ours[0] == 0:
            same += 1
        else:
            differences.append((arguments, colour, ours, theirs))
    return same, differences


def main():
    name, seed, count, command, reference = sys.argv[1:]
    path = f"/var/run/wireguard/{name}.sock"
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)  # where no engine ever ran
    server = Server(path)
    draw = random.Random(int(seed))
    same = 0
    try:
        for number in range(int(count)):
            text = "".join(line + "\n" for line in device(draw, int(time.time())))
            server.answer = (text + "errno=0\n\n").encode()
            equal, differences = compare(server, draw, name, command, reference)
            same += equal
            for arguments, colour, ours, theirs in differences:
                print(f"device {number}, {arguments}, {colour}:\n{ours}\nbut {reference}:\n{theirs}")
            if differences:
                return 1
    finally:
        os.unlink(path)
    print(f"{same} outputs of {count} devices are the same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
