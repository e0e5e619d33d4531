# SPDX-License-Identifier: Apache-2.0
"""The load generators: iperf3, ping and udp_load, run across a link."""
import contextlib
import json
import os
import pathlib
import secrets
import select
import shlex
import subprocess
import time

from . import parse
from .figures import Trial
from .network import CONGESTION_CONTROL, RigError, output_of, wait_until

PORT = 5201
GRACE_SECONDS = 20  # beyond the planned time of a load: a stuck one is a failure
SOURCE = pathlib.Path(__file__).with_name("udp_load.c")


def build_udp_load(directory):
    """Compiles udp_load where its source is newer than its program; returns the program."""
    program = directory / "udp_load"
    if program.exists() and program.stat().st_mtime >= SOURCE.stat().st_mtime:
        return program
    directory.mkdir(parents=True, exist_ok=True)
    fresh = directory / f"udp_load.{os.getpid()}"
    output_of([*shlex.split(os.environ.get("CC", "cc")), "-std=gnu17", "-O2", "-Wall", "-Wextra",
               "-o", str(fresh), str(SOURCE)], seconds=60)
    fresh.replace(program)
    return program


def read_until(process, text, seconds, what):
    """Standard output (unbuffered) up to a read that completes `text`, within a time limit."""
    deadline = time.monotonic() + seconds
    got = b""
    while text not in got:
        remaining = max(0.0, deadline - time.monotonic())
        readable, _, _ = select.select([process.stdout], [], [], remaining)
        chunk = os.read(process.stdout.fileno(), 65536) if readable else b""
        if not chunk:
            raise RigError(f"{what}: printed {got[-200:]!r} and no {text!r} within {seconds} s")
        got += chunk
    return got.decode()


@contextlib.contextmanager
def iperf3_server(rig, link):
    """A server for one client on side b, ready for it."""
    command = ["iperf3", "-s", "-1", "-B", link.addresses[1], "-p", str(PORT), "--forceflush"]
    with rig.running(rig.b, command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                     bufsize=0) as server:
        read_until(server, b"listening", 10, "iperf3 -s")
        yield


def iperf3_client(link, seconds, options):
    return ["iperf3", "-c", link.addresses[1], "-p", str(PORT), "-t", str(seconds), "-J",
            "-C", CONGESTION_CONTROL, *options]


def tcp(rig, link, seconds, options=()):
    with iperf3_server(rig, link):
        text = rig.run(rig.a, iperf3_client(link, seconds, options), seconds + GRACE_SECONDS)
    result = parse.iperf3(text)
    if result.congestion_controls != {CONGESTION_CONTROL}:
        raise RigError(f"congestion control was {', '.join(result.congestion_controls)}, "
                       f"not {CONGESTION_CONTROL}")
    return result


def ping(rig, link, count, interval=0.002):
    """Round-trip times in microseconds and the number of requests sent."""
    limit = int(count * interval) + GRACE_SECONDS
    text = rig.run(rig.a, ["ping", "-n", "-c", str(count), "-i", str(interval), "-w", str(limit),
                           link.addresses[1]], limit + 5)
    return parse.ping(text)


@contextlib.contextmanager
def tcp_in_background(rig, link):
    """One TCP stream from a to b for as long as the block runs; it flows when the block starts."""
    flowing = 4 << 20
    before = rig.received_bytes(rig.b, link.devices[1])
    with iperf3_server(rig, link), rig.running(
            rig.a, iperf3_client(link, 120, ()), stdout=subprocess.DEVNULL) as client:
        wait_until(lambda: rig.received_bytes(rig.b, link.devices[1]) - before > flowing,
                   GRACE_SECONDS, "the TCP stream to flow", client)
        yield
        if client.poll() is not None:
            raise RigError("the TCP stream ended before the ping did")


def udp(rig, link, program, rate, seconds, size, segments=1):
    """One UDP load from a to b at `rate` datagrams per second (0: flood) as a Trial."""
    run_id = str(secrets.randbits(32))
    address = [link.addresses[1], str(PORT), run_id]
    gro = "1" if segments > 1 else "0"
    cpu_before = link.cpu_seconds()
    with rig.running(rig.b, [str(program), "receive", *address, gro], stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE, bufsize=0) as receiver:
        read_until(receiver, b"\n", 10, "udp_load receive")
        sent = json.loads(rig.run(
            rig.a, [str(program), "send", *address, str(size), str(round(rate)), str(seconds),
                    str(segments)], seconds + GRACE_SECONDS))
        receiver.stdin.close()
        got = json.loads(read_until(receiver, b"\n", GRACE_SECONDS, "udp_load receive"))
    cpu = used(cpu_before, link.cpu_seconds())
    # What queues held back arrives after the sender stopped: count the longer of both times, or
    # buffers would pass for throughput.
    elapsed = max(sent["seconds"], got["seconds"])
    return Trial(
        target=rate, offered=sent["sent"] / sent["seconds"], delivered=got["delivered"] / elapsed,
        sent=sent["sent"], lost=sent["sent"] - got["delivered"], reordered=got["reordered"],
        duplicates=got["duplicates"], socket_drops=got["socket_drops"], bytes=got["bytes"],
        cpu_sender=cpu[0], cpu_receiver=cpu[1])


def used(before, after):
    """CPU seconds per end between two readings; (None, None) without processes."""
    if before is None or after is None:
        return (None, None)
    return tuple(late - early for early, late in zip(before, after))


def timed_bytes(rig, side, device):
    """A reading for rates: bytes received so far and the time."""
    return rig.received_bytes(side, device), time.monotonic()
