# SPDX-License-Identifier: Apache-2.0
"""Owner of everything that must be undone: namespaces, processes, UAPI sockets, temporary files.

    namespace ngbench-PID-a                 namespace ngbench-PID-b
      tunnel 198.19.0.1/30                    tunnel 198.19.0.2/30
      veth0  198.18.0.1/30  ────────────────  veth0  198.18.0.2/30

198.18.0.0/15 is reserved for benchmarks (RFC 6890, section 2.2.2). Nothing exists outside the two
namespaces but the UAPI sockets, because UNIX sockets belong to no network namespace: hence
interface names that are unique on the host.
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

UAPI_DIRECTORY = pathlib.Path("/var/run/wireguard")
CONGESTION_CONTROL = "cubic"
PREFIX = "ngbench"
COMMAND_SECONDS = 20


class RigError(Exception):
    """A step of the rig failed; the text says which and how."""


@dataclass(frozen=True)
class Side:
    """One end of the rig."""

    letter: str
    namespace: str
    tunnel: str  # the tunnel's interface name
    outer: str
    inner: str

    @property
    def socket(self):
        return UAPI_DIRECTORY / f"{self.tunnel}.sock"


def progress(text):
    print(text, file=sys.stderr, flush=True)


def output_of(command, seconds=COMMAND_SECONDS, text_in=None):
    """Runs a command to its end and returns its standard output."""
    try:
        done = subprocess.run(
            command, input=text_in, capture_output=True, text=True, timeout=seconds,
            start_new_session=True, check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RigError(f"{' '.join(command)}: no end within {seconds:.0f} s") from error
    except OSError as error:
        raise RigError(f"{command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        detail = (done.stderr.strip() or done.stdout.strip())[-500:]
        raise RigError(f"{' '.join(command)}: exit {done.returncode}: {detail}")
    return done.stdout


def stop_process(process, seconds=5):
    """SIGTERM, then SIGKILL: one process, by its id."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream:
            with contextlib.suppress(OSError):
                stream.close()


class Rig:
    """Two namespaces joined by veth. A context manager: leaving it undoes all of it."""

    def __init__(self):
        pid = os.getpid()
        self.a, self.b = (
            Side(letter, f"{PREFIX}-{pid}-{letter}", f"ngb{pid}{letter}",
                 f"198.18.0.{host}", f"198.19.0.{host}")
            for letter, host in (("a", 1), ("b", 2))
        )
        self.sides = (self.a, self.b)
        self._undo = contextlib.ExitStack()
        self._processes = []

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            self.directory = pathlib.Path(undo.enter_context(tempfile.TemporaryDirectory(
                prefix=f"{PREFIX}-{os.getpid()}-")))
            for side in self.sides:
                undo.callback(self._remove, side)  # first: a signal may arrive in between
                output_of(["ip", "netns", "add", side.namespace])
            undo.callback(self._stop_all)
            self._connect()
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_):
        self._undo.close()

    def _connect(self):
        output_of(["ip", "link", "add", "veth0", "netns", self.a.namespace, "type", "veth",
                   "peer", "name", "veth0", "netns", self.b.namespace])
        for side in self.sides:
            self.run(side, ["ip", "link", "set", "lo", "up"])
            self.run(side, ["ip", "address", "add", f"{side.outer}/30", "dev", "veth0"])
            self.run(side, ["ip", "link", "set", "veth0", "up"])
            # Per namespace; the host's own choice (BBR, say) would decide the figures otherwise.
            # Not permitted where the host does not allow it (net.ipv4.tcp_allowed_congestion_
            # control): iperf3 also asks per socket, and its report proves which one was in use.
            with contextlib.suppress(RigError):
                self.run(side, ["sysctl", "-qw",
                                f"net.ipv4.tcp_congestion_control={CONGESTION_CONTROL}"])
            # No run may inherit ssthresh or RTT from the run before it.
            self.run(side, ["sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1"])

    def run(self, side, command, seconds=COMMAND_SECONDS, text_in=None):
        return output_of(["ip", "netns", "exec", side.namespace, *command], seconds, text_in)

    def spawn(self, side, command, environment=None, **streams):
        """Starts a long-running process in a namespace; `ip netns exec` execs, so the pid stays."""
        process = subprocess.Popen(
            ["ip", "netns", "exec", side.namespace, *command],
            env={**os.environ, **(environment or {})}, start_new_session=True, **streams)
        self._processes.append(process)
        return process

    @contextlib.contextmanager
    def running(self, side, command, environment=None, **streams):
        """`spawn` that ends the process with the block."""
        process = self.spawn(side, command, environment, **streams)
        try:
            yield process
        finally:
            stop_process(process)
            self._processes.remove(process)

    def received_bytes(self, side, device):
        return int(self.run(side, ["cat", f"/sys/class/net/{device}/statistics/rx_bytes"]))

    def protocol_counters(self, side):
        return self.run(side, ["cat", "/proc/net/netstat"])

    def _stop_all(self):
        for process in self._processes:
            stop_process(process)

    def _remove(self, side):
        remove_namespace(side.namespace)
        side.socket.unlink(missing_ok=True)


def remove_namespace(name):
    """Ends what still runs in one of our namespaces (a fork that a signal interrupted), removes it.

    Only names this rig gives are ever passed here, and it puts nothing of others into them.
    """
    listed = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True,
                            start_new_session=True, check=False)
    for pid in listed.stdout.split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    subprocess.run(["ip", "netns", "delete", name], capture_output=True, start_new_session=True,
                   check=False)


def remove_leftovers():
    """Cleans up after rigs that were killed outright: their process is gone, their names remain."""
    pattern = re.compile(rf"^{PREFIX}-(\d+)-([ab])\b")
    for line in output_of(["ip", "netns", "list"]).splitlines():
        found = pattern.match(line)
        if found and not pathlib.Path("/proc", found[1]).exists():
            progress(f"removing {found[0]}, left by a rig that was killed")
            remove_namespace(found[0])
            (UAPI_DIRECTORY / f"ngb{found[1]}{found[2]}.sock").unlink(missing_ok=True)
            for directory in pathlib.Path(tempfile.gettempdir()).glob(f"{PREFIX}-{found[1]}-*"):
                shutil.rmtree(directory, ignore_errors=True)


def wait_until(condition, seconds, what, process=None):
    """Polls a condition; fails when it stays false or the process ends first."""
    deadline = time.monotonic() + seconds
    while not condition():
        if process is not None and process.poll() is not None:
            raise RigError(f"{what}: the program ended with {process.returncode}")
        if time.monotonic() > deadline:
            raise RigError(f"{what}: not within {seconds} s")
        time.sleep(0.01)
