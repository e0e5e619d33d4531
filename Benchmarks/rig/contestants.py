# SPDX-License-Identifier: Apache-2.0
"""What is compared: programs that speak the WireGuard UAPI, the kernel's own, plain veth."""
import contextlib
import os
import pathlib
import shlex
import shutil
import socket
import subprocess
from dataclasses import dataclass

from . import parse
from .network import RigError, output_of, wait_until

MTU = 1420
LISTEN_PORT = 51820
READY_SECONDS = 10
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

VETH, KERNEL, PROGRAM = "veth", "kernel", "program"


@dataclass(frozen=True)
class Contestant:
    name: str
    kind: str
    command: tuple = ()

    @property
    def has_process(self):
        return self.kind == PROGRAM

    def version(self):
        """The first line of `PROGRAM --version`, or why there is none."""
        if not self.has_process:
            return None
        try:
            done = subprocess.run([*self.command, "--version"], capture_output=True, text=True,
                                  timeout=5, start_new_session=True, check=False,
                                  stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return "does not answer --version"
        lines = (done.stdout or done.stderr).strip().splitlines()
        return lines[0] if done.returncode == 0 and lines else "does not answer --version"


def parse_contestant(text):
    """NAME=PROGRAM [ARGUMENTS], or the pseudo-programs `kernel` and `veth`."""
    name, separator, program = text.partition("=")
    program = program if separator else name
    if program in (KERNEL, VETH):
        return Contestant(name, program)
    command = shlex.split(program)
    if not separator or not name or not command:
        raise ValueError(f"'{text}' is not NAME=PROGRAM")
    found = shutil.which(command[0])
    if not found:
        raise ValueError(f"{name}: no program {command[0]}")
    return Contestant(name, PROGRAM, (str(pathlib.Path(found).absolute()), *command[1:]))


@dataclass(frozen=True)
class Link:
    """A path between the two sides, ready for traffic."""

    devices: tuple  # interface names on a and b
    addresses: tuple
    pids: tuple | None

    def cpu_seconds(self):
        """CPU time of the program at each end so far, or None."""
        if self.pids is None:
            return None
        return tuple(
            parse.cpu_ticks(pathlib.Path(f"/proc/{pid}/stat").read_text()) / TICKS_PER_SECOND
            for pid in self.pids
        )

    def memory_mb(self, field):
        """VmRSS or VmHWM of the larger end, in 10^6 bytes, or None."""
        if self.pids is None:
            return None
        return max(
            parse.status_kib(pathlib.Path(f"/proc/{pid}/status").read_text(), field)
            for pid in self.pids
        ) * 1024 / 1e6


@contextlib.contextmanager
def linked(rig, contestant):
    """Starts the contestant at both ends, configures it with fresh keys, waits for a session."""
    with contextlib.ExitStack() as stack:
        if contestant.kind == VETH:
            yield Link(("veth0", "veth0"), (rig.a.outer, rig.b.outer), None)
            return
        pids = None
        if contestant.kind == KERNEL:
            for side in rig.sides:
                _add_kernel_link(rig, side, stack)
        else:
            pids = tuple(_start(rig, side, contestant, stack) for side in rig.sides)
        _configure(rig)
        rig.run(rig.a, ["ping", "-n", "-q", "-c", "1", "-w", str(READY_SECONDS), rig.b.inner])
        yield Link((rig.a.tunnel, rig.b.tunnel), (rig.a.inner, rig.b.inner), pids)


def _add_kernel_link(rig, side, stack):
    rig.run(side, ["ip", "link", "add", side.tunnel, "type", "wireguard"])
    stack.callback(rig.run, side, ["ip", "link", "delete", side.tunnel])


def _start(rig, side, contestant, stack):
    path = rig.directory / f"{side.tunnel}.log"
    log = stack.enter_context(path.open("w"))
    process = stack.enter_context(rig.running(
        side, [*contestant.command, "-f", side.tunnel], {"WG_PROCESS_FOREGROUND": "1"},
        stdin=subprocess.DEVNULL, stdout=log, stderr=log))
    try:
        wait_until(lambda: _accepts(side.socket), READY_SECONDS,
                   f"{contestant.name}: {side.socket} to accept", process)
    except RigError as error:
        tail = path.read_text(errors="replace").strip()[-500:]
        raise RigError(f"{error}; it said: {tail or 'nothing'}") from error
    return process.pid


def _accepts(path):
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


def _configure(rig):
    """Keys exist only in memory and pipes: `wg setconf` reads its file from standard input."""
    private = [output_of(["wg", "genkey"]) for _ in rig.sides]
    public = [output_of(["wg", "pubkey"], text_in=key) for key in private]
    for index, side in enumerate(rig.sides):
        other = rig.sides[1 - index]
        text = (
            f"[Interface]\nPrivateKey = {private[index].strip()}\nListenPort = {LISTEN_PORT}\n"
            f"[Peer]\nPublicKey = {public[1 - index].strip()}\n"
            f"AllowedIPs = {other.inner}/32\nEndpoint = {other.outer}:{LISTEN_PORT}\n"
        )
        rig.run(side, ["wg", "setconf", side.tunnel, "/dev/stdin"], text_in=text)
        rig.run(side, ["ip", "address", "add", f"{side.inner}/30", "dev", side.tunnel])
        rig.run(side, ["ip", "link", "set", side.tunnel, "mtu", str(MTU), "up"])
