#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an engine says about itself and what the kernel says about its process.

  state IFNAME EXPRESSION       EXPRESSION is Python about `d`, the document of the state socket
  rss PID                       resident memory now, in KiB
  peak PID                      its highest since the start or the last `reset-peak`, in KiB
  reset-peak PID
  slices PID                    NAME=NANOSECONDS of each thread: how long the scheduler lets it run;
                                0 before Linux 6.12
  watch SECONDS IFNAME=PID…     what every thread of these engines does meanwhile, as JSON: by
                                interface, its voluntary context switches by thread, the wake-ups
                                of its timer thread and the packets it received, each kind with
                                the seconds it was counted over
"""
import ctypes
import json
import os
import pathlib
import platform
import socket
import struct
import sys
import time


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


def switches(pid):
    """By thread. Its number is kept with the name: one that ends and one that begins differ."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return {((task / "comm").read_text().strip(), task.name):
            status(task / "status", "voluntary_ctxt_switches") for task in tasks}


def slices(pid):
    """By sched_getattr(2), which libc does not have in every Debian."""
    numbers = {"x86_64": 315, "aarch64": 275}  # asm/unistd.h
    call = ctypes.CDLL(None, use_errno=True).syscall
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        attributes = ctypes.create_string_buffer(48)
        if call(numbers[platform.machine()], int(task.name), attributes, 48, 0):
            raise SystemExit(f"sched_getattr: {os.strerror(ctypes.get_errno())}")
        runtime = struct.unpack_from("Q", attributes, 24)[0]
        found[(task / "comm").read_text().strip()] = runtime
    return found


def await_sleep(pid):
    """Asking for the state wakes the program's main thread."""
    main_thread = pathlib.Path(f"/proc/{pid}/task/{pid}/status")
    for _ in range(100):
        before = status(main_thread, "voluntary_ctxt_switches")
        time.sleep(0.2)  # the shortest time that counts as sleeping
        if status(main_thread, "voluntary_ctxt_switches") == before:
            return
    raise SystemExit(f"process {pid} never sleeps")


def watch(seconds, engines):
    def told():
        documents = {name: state(name) for name in engines}
        return time.monotonic(), {
            name: (d["control_wakeups"], sum(w["rx"]["packets"] for w in d["workers"]))
            for name, d in documents.items()}

    told_at, told_first = told()
    for pid in engines.values():
        await_sleep(pid)
    counted_at, first = time.monotonic(), {n: switches(pid) for n, pid in engines.items()}
    time.sleep(seconds)
    counted_for, last = time.monotonic(), {n: switches(pid) for n, pid in engines.items()}
    counted_for -= counted_at
    told_again, told_last = told()
    for name in engines:
        if first[name].keys() != last[name].keys():
            raise SystemExit(f"{name}: a thread began or ended")
    return {name: {
        "threads": {thread: last[name][thread, number] - before
                    for (thread, number), before in first[name].items()},
        "seconds": counted_for,
        "wakeups": told_last[name][0] - told_first[name][0],
        "received": told_last[name][1] - told_first[name][1],
        "told_seconds": told_again - told_at} for name in engines}


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
        case ["slices", pid]:
            print(*(f"{name}={runtime}" for name, runtime in sorted(slices(pid).items())))
        case ["watch", seconds, *engines]:
            print(json.dumps(watch(float(seconds), dict(e.split("=") for e in engines))))
        case _:
            raise SystemExit(__doc__)


main(sys.argv[1:])
