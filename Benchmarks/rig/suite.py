# SPDX-License-Identifier: Apache-2.0
"""Benchmarks/run: the rig, every micro-benchmark, one result file, plots."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from . import cli, micro, plots, thresholds
from .network import RigError, output_of, progress

REPOSITORY = cli.REPOSITORY
SCHEMA_VERSION = thresholds.RESULT_VERSION
RESULT = "result.json"
BUSY_LOAD = 0.25  # of one-minute load average: something else was running
FLOOD_SECONDS = 1800


def arguments(argv):
    parser = argparse.ArgumentParser(
        prog="run", description="Runs Benchmarks/throughput and every micro-benchmark, and writes "
        "one JSON file and plots. Needs root. docs/benchmarks.md explains every figure.")
    parser.add_argument("--peer", metavar="NAME=PROGRAM", action="append", default=[],
                        help="one more contestant, as for Benchmarks/throughput")
    parser.add_argument("--quick", action="store_true",
                        help="short runs that only show that it works: not for comparison")
    parser.add_argument("--flood", action="store_true",
                        help="the handshake flood too; needs nftables")
    parser.add_argument("--no-plots", action="store_true", help="the JSON file only; no gnuplot")
    parser.add_argument("--output", metavar="DIRECTORY", type=pathlib.Path,
                        help="default: docs/benchmarks; with --quick .build/bench/quick, so that "
                        "no such figure takes the place of a real one")
    for name in ("--engine", "--runs", "--seconds", "--scenarios", "--without"):
        parser.add_argument(name, metavar="…", help="as for Benchmarks/throughput",
                            action="append" if name == "--without" else "store")
    return parser.parse_args(argv)


def throughput_arguments(options, json_path):
    """The command line of Benchmarks/throughput."""
    argv = ["--json", str(json_path)]
    for peer in options.peer:
        argv += ["--peer", peer]
    for name in options.without or []:
        argv += ["--without", name]
    for name in ("engine", "runs", "seconds", "scenarios"):
        if getattr(options, name) is not None:
            argv += [f"--{name}", getattr(options, name)]
    return argv + (["--quick"] if options.quick else [])


def output_directory(options):
    if options.output:
        return options.output
    return REPOSITORY / (".build/bench/quick" if options.quick else "docs/benchmarks")


def check_tools(options):
    if os.geteuid() != 0:
        raise ValueError("needs root, for network namespaces and TUN devices")
    for tool in cli.TOOLS + ("make",):
        if not shutil.which(tool):
            raise ValueError(f"{tool} is not installed: sudo tools/setup")
    if not options.no_plots and not shutil.which("gnuplot"):
        raise ValueError("gnuplot is not installed: sudo tools/setup --bench, or --no-plots")


def is_busy(facts):
    return facts["loadAverage"][0] > BUSY_LOAD


def versions(cc):
    """Of what the figures depend on besides the programs, which the rig names."""
    listed = {"compiler": output_of([*cc.split(), "--version"]).splitlines()[0]}
    for package in ("libsodium23", "libssl3", "libipsec-mb1"):
        done = subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], capture_output=True,
                              text=True, check=False) if shutil.which("dpkg-query") else None
        if done and done.returncode == 0 and done.stdout:
            listed[package] = done.stdout
    return listed


def flood(engine):
    """The table of Benchmarks/handshake_flood, as text."""
    progress("handshake flood")
    environment = {**os.environ, **({"ENGINE": engine} if engine else {})}
    done = subprocess.run([str(REPOSITORY / "Benchmarks/handshake_flood")], env=environment,
                          capture_output=True, text=True, timeout=FLOOD_SECONDS, check=False)
    if done.returncode != 0:
        raise RigError(f"handshake_flood: exit {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout.splitlines()


def subtitle(document):
    """Lines under every plot's title; what forbids quoting it comes first, on a line of its own."""
    facts = document["environment"]
    marks = ["QUICK RUN, NOT FOR COMPARISON"] if document["quick"] else []
    marks += ["BUSY MACHINE, NOT FOR QUOTING"] if document["busy"] else []
    machine = f"{facts['cpu']}, {facts['cores']} cores, {facts['kernel']}"
    run = f"{facts['time'][:10]}, revision {facts['revision'] or 'unknown'}"
    return [*([", ".join(marks)] if marks else []), machine, run]


def document(facts, options, listed, throughput, micros, flood_lines):
    """What `result.json` holds. A change that breaks readers raises SCHEMA_VERSION."""
    made = {
        "schemaVersion": SCHEMA_VERSION,
        "quick": options.quick,
        "busy": is_busy(facts),
        "environment": facts,
        "versions": listed,
        "throughput": throughput,
        "micro": micros,
    }
    return made if flood_lines is None else {**made, "flood": flood_lines}


def write_all(content, options):
    """The file and the plots, owned by whoever owns the checkout."""
    directory = output_directory(options)
    directory.mkdir(parents=True, exist_ok=True)
    written = [directory, directory / RESULT]
    (directory / RESULT).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    if not options.no_plots:
        for plot in plots.plots(content):
            written.append(plots.draw(plot, subtitle(content), directory))
    owner = REPOSITORY.stat()
    for path in written:
        os.chown(path, owner.st_uid, owner.st_gid)
        if path != directory:
            progress(f"written: {path}")


def warn_if_busy(facts):
    if is_busy(facts):
        progress(f"WARNING: the machine is busy (load average {facts['loadAverage'][0]:.2f} before "
                 "the first run): these figures are not for quoting")


def measure(options):
    """Returns (document, exit status); the document is None when there is nothing to keep."""
    cc = micro.compiler()
    build = REPOSITORY / ".build/bench/micro"
    facts = cli.environment()  # before the compiler makes the machine busy
    warn_if_busy(facts)
    micro.build(build, cc)
    with tempfile.TemporaryDirectory(prefix="ngbench-") as directory:
        path = pathlib.Path(directory) / "throughput.json"
        status = cli.main(throughput_arguments(options, path))
        if status in (cli.EXIT_USAGE, cli.EXIT_INTERRUPTED) or not path.exists():
            return None, status or cli.EXIT_FAILED
        throughput = json.loads(path.read_text())
    micros = micro.run(build)
    lines = flood(options.engine) if options.flood else None
    return document(facts, options, versions(cc), throughput, micros, lines), status


def main(argv):
    options = arguments(argv)
    try:
        check_tools(options)
    except ValueError as error:
        print(f"run: {error}", file=sys.stderr)
        return cli.EXIT_USAGE
    cli.catch_signals()
    try:
        content, status = measure(options)
        if content is None:
            return status
        write_all(content, options)
    except cli.Interrupted as name:
        progress(f"interrupted by {name}")
        return cli.EXIT_INTERRUPTED
    except (RigError, subprocess.TimeoutExpired) as error:
        print(f"run: {error}", file=sys.stderr)
        return cli.EXIT_FAILED
    for sentence in thresholds.caveats(content):
        print(sentence)
    return status
