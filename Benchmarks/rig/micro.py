# SPDX-License-Identifier: Apache-2.0
"""The micro-benchmarks of Benchmarks/micro: built, run, and their JSON taken in."""
import json
import os
import pathlib
import shlex
import shutil
import subprocess

from .network import RigError, output_of, progress

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("aead", "path", "allowedips", "handshakes", "contention", "growth")
BUILD_SECONDS = 600
RUN_SECONDS = 900


def compiler():
    """$CC, else clang of the Swift toolchain, which builds the engine too, else the system's."""
    if os.environ.get("CC"):
        return os.environ["CC"]
    found = subprocess.run(
        ["bash", "-c", f"source {shlex.quote(str(REPOSITORY / 'tools/lib.sh'))} && use_swift "
         ">/dev/null 2>&1 && command -v clang"], capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL)
    path = found.stdout.strip()
    path = path or next(filter(None, map(shutil.which, ("clang", "gcc", "cc"))), None)
    if not path:
        raise RigError("no C compiler; tools/setup installs one, CC names another")
    return path


def build(directory, cc):
    """Builds all programs into `directory`."""
    progress(f"building the micro-benchmarks with {cc}")
    output_of(["make", "-s", "-C", str(REPOSITORY / "Benchmarks/micro"), f"-j{os.cpu_count()}",
               "all", f"BUILD={directory}", f"CC={cc}"], seconds=BUILD_SECONDS)


def run(directory):
    """What each program measured, by its name."""
    results = {}
    for name in PROGRAMS:
        progress(f"micro  {name}")
        text = output_of([str(directory / name), "--json"], seconds=RUN_SECONDS)
        try:
            results[name] = json.loads(text)
        except ValueError as error:
            raise RigError(f"{name} printed no JSON: {error}") from error
    return results
