# SPDX-License-Identifier: Apache-2.0
"""The command: options, the order of runs, clean endings."""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import signal
import sys
from dataclasses import asdict

from . import loads, parse, report, scenarios
from .contestants import Contestant, VETH, linked, parse_contestant
from .network import (CONGESTION_CONTROL, Rig, RigError, output_of, progress, remove_leftovers)

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
OURS = "nexusguard"
DEFAULT_AGAINST = "wireguard-go"
TOOLS = ("ip", "wg", "iperf3", "ping", "sysctl")
EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130


class Interrupted(BaseException):
    """A signal asked to end. Not an Exception: no handler for failures may swallow it."""


def arguments(argv):
    parser = argparse.ArgumentParser(
        prog="throughput", description="Compares userspace WireGuard programs on this host, in "
        "two network namespaces of its own. Needs root. docs/benchmarks.md explains every row.")
    parser.add_argument("--engine", metavar="PATH",
                        default=str(REPOSITORY / ".build/release/nexusguard-engine"),
                        help=f"the program called {OURS} (default: %(default)s)")
    parser.add_argument("--peer", metavar="NAME=PROGRAM", action="append", default=[],
                        help="one more contestant, started as PROGRAM -f IFNAME; the pseudo-"
                        "program 'kernel' is the kernel's own WireGuard")
    parser.add_argument("--without", metavar="NAME", action="append", default=[],
                        help=f"leave out a contestant: {OURS}, wireguard-go, veth")
    parser.add_argument("--against", metavar="NAME", default=DEFAULT_AGAINST,
                        help="ratios are to this one (default: %(default)s)")
    parser.add_argument("--runs", type=_bounded(1, 50), default=None,
                        help="rounds, A B A B … (default: 3; 1 with --quick)")
    parser.add_argument("--scenarios", metavar="LIST", type=_scenarios,
                        default=list(scenarios.SCENARIOS),
                        help="comma-separated, of " + ",".join(scenarios.SCENARIOS))
    parser.add_argument("--seconds", type=_bounded(1, 600), help="length of each TCP run")
    parser.add_argument("--json", metavar="FILE", help="write everything measured to FILE")
    parser.add_argument("--quick", action="store_true",
                        help="short runs that only show that it works: not for comparison")
    return parser.parse_args(argv)


def _bounded(low, high):
    def number(text):
        value = int(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text} is not in {low} to {high}")
        return value

    return number


def _scenarios(text):
    names = list(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in scenarios.SCENARIOS:
            raise argparse.ArgumentTypeError(f"no scenario '{name}'")
    return names


def contestants(options):
    """Ours first, then those to compare with, plain veth last as the reference."""
    listed = []
    if OURS not in options.without:
        listed.append(parse_contestant(f"{OURS}={options.engine}"))
    named = [parse_contestant(text) for text in options.peer]
    if "wireguard-go" not in options.without + [c.name for c in named]:
        if shutil.which("wireguard-go"):
            listed.append(parse_contestant("wireguard-go=wireguard-go"))
        else:
            progress("wireguard-go is not installed; comparing without it")
    listed += named
    if VETH not in options.without:
        listed.append(Contestant(VETH, VETH))
    names = [contestant.name for contestant in listed]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two contestants are called {name}")
    if not listed:
        raise ValueError("no contestant is left")
    if options.against not in names:
        if options.against != DEFAULT_AGAINST:
            raise ValueError(f"--against {options.against}: no such contestant")
        progress(f"without {DEFAULT_AGAINST} there are no ratios; --against names another")
    return listed


def published(command):
    """A command as a result file shows it: where the checkout lies is nobody's business."""
    return [word.removeprefix(f"{REPOSITORY}/") for word in command]


def environment():
    """What decides the figures besides the programs."""
    uname = os.uname()
    return {
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "kernel": f"{uname.sysname} {uname.release} {uname.machine}",
        "cpu": parse.cpu_model(pathlib.Path("/proc/cpuinfo").read_text()),
        "cores": len(os.sched_getaffinity(0)),
        "loadAverage": list(os.getloadavg()),
        "congestionControl": CONGESTION_CONTROL,
        "iperf3": output_of(["iperf3", "--version"]).splitlines()[0],
        "ping": output_of(["ping", "-V"]).splitlines()[0],
        "wg": output_of(["wg", "--version"]).strip(),
        "revision": _revision(),
    }


def _revision():
    try:
        git = ["git", "-c", f"safe.directory={REPOSITORY}", "-C", str(REPOSITORY)]
        return output_of([*git, "describe", "--always", "--dirty"]).strip()
    except RigError:
        return None  # not a checkout


def print_environment(facts, listed):
    progress(f"{facts['kernel']}; {facts['cpu']}, {facts['cores']} cores; load average "
             f"{facts['loadAverage'][0]:.2f} before the first run")
    progress(f"congestion control {facts['congestionControl']}; {facts['iperf3']}; "
             f"{facts['wg']}; revision {facts['revision'] or 'unknown'}")
    for contestant in listed:
        if contestant.has_process:
            progress(f"{contestant.name}: {' '.join(contestant.command)} "
                     f"({contestant.version()})")
        else:
            progress(f"{contestant.name}: {contestant.kind} of this kernel")


def run_all(options, listed, plan, runs, measurements):
    """Every round visits each scenario, and within it each contestant on a fresh link."""
    udp_load = loads.build_udp_load(REPOSITORY / ".build" / "bench")
    with Rig() as rig:
        for run in range(1, runs + 1):
            for name in options.scenarios:
                for contestant in listed:
                    progress(f"run {run}/{runs}  {name}  {contestant.name}")
                    measurements.append(
                        measured(rig, run, scenarios.SCENARIOS[name], contestant, plan, udp_load))


def measured(rig, run, scenario, contestant, plan, udp_load):
    """One measurement. A program that fails is a result of its own, not the end of the rig."""
    entry = {"run": run, "scenario": scenario.name, "contestant": contestant.name}
    try:
        with linked(rig, contestant) as link:
            figures, details = scenarios.measure(rig, link, scenario, plan, udp_load)
        return {**entry, "figures": figures, "details": details}
    except (RigError, parse.ParseError, OSError) as error:
        progress(f"  failed: {error}")
        return {**entry, "error": str(error)}


def catch_signals():
    """The first signal unwinds; further ones may not interrupt the cleaning up."""
    caught = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(number, _frame):
        for each in caught:
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(signal.Signals(number).name)

    for each in caught:
        signal.signal(each, interrupt)


def main(argv):
    options = arguments(argv)
    if os.geteuid() != 0:
        print("throughput: needs root, for network namespaces and TUN devices", file=sys.stderr)
        return EXIT_USAGE
    try:
        for tool in TOOLS:
            if not shutil.which(tool):
                raise ValueError(f"{tool} is not installed")
        listed = contestants(options)
        if options.json and not pathlib.Path(options.json).absolute().parent.is_dir():
            raise ValueError(f"--json {options.json}: no such directory")
    except ValueError as error:
        print(f"throughput: {error}", file=sys.stderr)
        return EXIT_USAGE

    plan = scenarios.QUICK if options.quick else scenarios.Plan()
    if options.seconds:
        plan = scenarios.Plan(**{**asdict(plan), "tcp_seconds": options.seconds})
    runs = options.runs or (1 if options.quick else 3)
    catch_signals()
    measurements, status = [], 0
    try:
        facts = environment()
        print_environment(facts, listed)
        remove_leftovers()
        run_all(options, listed, plan, runs, measurements)
    except Interrupted as signal_name:
        progress(f"interrupted by {signal_name}; everything made is removed")
        status = EXIT_INTERRUPTED
    except RigError as error:
        print(f"throughput: {error}", file=sys.stderr)
        status = EXIT_FAILED
    if measurements:
        finish(options, listed, facts, {**asdict(plan), "runs": runs, "quick": options.quick,
                                        "interrupted": status == EXIT_INTERRUPTED}, measurements)
    return status or (EXIT_FAILED if report.failures(measurements) else 0)


def finish(options, listed, facts, parameters, measurements):
    names = [contestant.name for contestant in listed]
    rows = report.summary_rows(measurements, names, options.against)
    if rows:
        print(report.table(rows, names, options.against))
        print("\nMedian (lowest–highest) of the runs; ratio of medians [median of the pairs' "
              "ratios: lowest–highest]; ↓ lower is better.")
    if parameters["quick"]:
        print("Quick run: shows that the rig works, figures are not for comparison.")
    for entry in report.failures(measurements):
        print(f"FAILED: run {entry['run']} {entry['scenario']} {entry['contestant']}: "
              f"{entry['error']}")
    if options.json:
        described = [{"name": c.name, "kind": c.kind, "command": published(c.command),
                      "version": c.version()} for c in listed]
        content = report.document(facts, parameters, described, measurements, rows,
                                  options.against)
        pathlib.Path(options.json).write_text(json.dumps(content, indent=1) + "\n")
        progress(f"written: {options.json}")
