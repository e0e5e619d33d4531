#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an engine says about itself and what the kernel says about its process.

  state IFNAME EXPRESSION       EXPRESSION is Python about `d`, the document of the state socket
  rss PID                       resident memory now, in KiB
  peak PID                      its highest since the start or the last `reset-peak`, in KiB
  reset-peak PID
  switches PID                  voluntary context switches of every thread: NAME COUNT lines
"""
import json
import pathlib
import socket
import sys


def state(name):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(f"/run/nexusguard/{name}.engine")
        client.sendall(b"get=1\n\n")
        answer = b""
        while not answer.endswith(b"\n"):
            data = client.recv(1 << 16)
            if not data:
                raise SystemExit(f"{name}: the state socket closed early")
            answer += data
    return json.loads(answer)


def status(path, field):
    for line in path.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise SystemExit(f"{path} has no {field}")


def main(arguments):
    match arguments:
        case ["state", name, expression]:
            print(eval(expression, {"d": state(name)}))  # pylint: disable=eval-used
        case ["rss", pid]:
            print(status(pathlib.Path(f"/proc/{pid}/status"), "VmRSS"))
        case ["peak", pid]:
            print(status(pathlib.Path(f"/proc/{pid}/status"), "VmHWM"))
        case ["reset-peak", pid]:
            pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5\n")  # proc(5)
        case ["switches", pid]:
            for task in sorted(pathlib.Path(f"/proc/{pid}/task").iterdir()):
                name = (task / "comm").read_text().strip()
                print(name, status(task / "status", "voluntary_ctxt_switches"))
        case _:
            raise SystemExit(__doc__)


main(sys.argv[1:])
