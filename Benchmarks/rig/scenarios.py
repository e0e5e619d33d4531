# SPDX-License-Identifier: Apache-2.0
"""The scenarios: each runs on a fresh link and returns named figures; METRICS says what they are."""
from dataclasses import asdict, dataclass

from . import loads, parse
from .figures import LOSS_LIMITS, highest_clean, percentile, sweep
from .network import RigError


@dataclass(frozen=True)
class Plan:
    """How long and how often; --quick makes all of it small."""

    tcp_seconds: int = 10
    udp_seconds: float = 1.0
    flood_seconds: float = 3.0
    pings: int = 1000
    max_bisections: int = 6
    resolution: float = 1.1


QUICK = Plan(tcp_seconds=2, udp_seconds=0.3, flood_seconds=0.5, pings=200, max_bisections=2,
             resolution=1.5)


@dataclass(frozen=True)
class Metric:
    key: str
    label: str
    unit: str
    lower_is_better: bool = False
    digits: int = 2
    has_ratio: bool = True  # a ratio of small counts says nothing


def _count(key, label):
    return Metric(key, label, "", lower_is_better=True, digits=0, has_ratio=False)


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    measure: object  # (rig, link, plan, udp_load) -> (figures, details)
    metrics: tuple


def _tcp(options):
    def measure(rig, link, plan, _udp_load):
        ends = rig.sides if "--bidir" in options else (rig.b,)
        reordered = [_out_of_order(rig, side) for side in ends]
        cpu = link.cpu_seconds()
        result = loads.tcp(rig, link, plan.tcp_seconds, options)
        cpu = loads.used(cpu, link.cpu_seconds())
        figures = {
            "gbps": result.bits_per_second / 1e9,
            "retransmits": result.retransmits,
            "out_of_order": sum(_out_of_order(rig, side) for side in ends) - sum(reordered),
            **_cpu_per_gb(cpu, result.bytes),
        }
        return figures, {"bytes": result.bytes, "cpu_seconds": cpu}

    return measure


def _out_of_order(rig, side):
    """Segments queued out of order so far: loss and reordering both count."""
    return parse.protocol_counter(rig.protocol_counters(side), "TcpExt", "TCPOFOQueue")


def _cpu_per_gb(cpu, carried):
    if cpu[0] is None or carried == 0:
        return {}
    return {"cpu_sender": cpu[0] / (carried / 1e9), "cpu_receiver": cpu[1] / (carried / 1e9)}


def _udp(size, first_rate, segments, scale):
    """A flood, then the sweep. `scale` turns datagrams per second into the scenario's unit."""

    def measure(rig, link, plan, udp_load):
        def probe(rate, seconds=plan.udp_seconds):
            return loads.udp(rig, link, udp_load, rate, seconds, size, segments)

        flood = probe(0, plan.flood_seconds)
        trials = sweep(probe, first_rate, plan.resolution, max_bisections=plan.max_bisections)
        figures = {
            "flood": flood.delivered * scale,
            "best": max(trial.delivered for trial in trials) * scale,
            "reordered": sum(trial.reordered for trial in [flood, *trials]),
            "duplicates": sum(trial.duplicates for trial in [flood, *trials]),
            "socket_drops": sum(trial.socket_drops for trial in trials),
        }
        for key, limit in zip(("clean_1", "clean_01"), LOSS_LIMITS):
            clean = highest_clean(trials, limit)
            if clean:
                figures[key] = clean.offered * scale
        clean = highest_clean(trials, LOSS_LIMITS[0])
        if clean:
            figures |= _cpu_per_gb((clean.cpu_sender, clean.cpu_receiver), clean.bytes)
        return figures, {"flood": asdict(flood), "trials": [asdict(trial) for trial in trials]}

    return measure


def _ping_figures(times, plan):
    if len(times) < plan.pings // 2:
        raise RigError(f"only {len(times)} of {plan.pings} pings were answered")
    return {"p50": percentile(times, 50), "p99": percentile(times, 99),
            "unanswered": plan.pings - len(times)}


def _ping_idle(rig, link, plan, _udp_load):
    times = loads.ping(rig, link, plan.pings)
    return _ping_figures(times, plan), {"microseconds": times}


def _ping_loaded(rig, link, plan, _udp_load):
    with loads.tcp_in_background(rig, link):
        bytes_before, begin = loads.timed_bytes(rig, rig.b, link.devices[1])
        times = loads.ping(rig, link, plan.pings)
        bytes_after, end = loads.timed_bytes(rig, rig.b, link.devices[1])
    figures = _ping_figures(times, plan)
    figures["gbps"] = (bytes_after - bytes_before) * 8 / (end - begin) / 1e9
    return figures, {"microseconds": times}


CPU = (
    Metric("cpu_sender", "CPU, sending end", "s/GB", lower_is_better=True),
    Metric("cpu_receiver", "CPU, receiving end", "s/GB", lower_is_better=True),
)
BIDIR_CPU = (
    Metric("cpu_sender", "CPU, end a", "s/GB", lower_is_better=True),
    Metric("cpu_receiver", "CPU, end b", "s/GB", lower_is_better=True),
)
MEMORY = (
    Metric("rss_idle", "RSS with a session, before load", "MB", lower_is_better=True, digits=1),
    Metric("rss_peak", "RSS, peak", "MB", lower_is_better=True, digits=1),
)


def _tcp_metrics(label, cpu=CPU):
    return (
        Metric("gbps", label, "Gbit/s"),
        _count("retransmits", "retransmits"),
        _count("out_of_order", "segments queued out of order"),
        *cpu, *MEMORY,
    )


def _udp_metrics(unit, digits):
    return (
        Metric("flood", "flood, delivered", unit, digits=digits),
        Metric("best", "paced, best delivered", unit, digits=digits),
        Metric("clean_1", "paced, offered with < 1 % loss", unit, digits=digits),
        Metric("clean_01", "paced, offered with < 0.1 % loss", unit, digits=digits),
        _count("reordered", "datagrams reordered"),
        _count("duplicates", "datagrams duplicated"),
        _count("socket_drops", "dropped by the receiving socket"),
        *CPU, *MEMORY,
    )


PING = (
    Metric("p50", "round trip, p50", "µs", lower_is_better=True, digits=0),
    Metric("p99", "round trip, p99", "µs", lower_is_better=True, digits=0),
    _count("unanswered", "unanswered"),
)

LARGE = 1372  # payload of a 1,400-byte IPv4 datagram
SMALL = 64
TRAIN = 44  # datagrams per GSO message: 60,368 bytes

SCENARIOS = {scenario.name: scenario for scenario in (
    Scenario("tcp1", "TCP, 1 stream", _tcp(()), _tcp_metrics("received")),
    Scenario("tcp4", "TCP, 4 streams", _tcp(("-P", "4")), _tcp_metrics("received")),
    Scenario("bidir", "TCP, both directions", _tcp(("--bidir",)),
             _tcp_metrics("received, both ends summed", BIDIR_CPU)),
    Scenario("udp1400", "UDP, 1,372-byte payload (1,400 with headers)",
             _udp(LARGE, 10_000, 1, LARGE * 8 / 1e9), _udp_metrics("Gbit/s", 2)),
    Scenario("udp64", "UDP, 64-byte payload (92 with headers)",
             _udp(SMALL, 20_000, 1, 1e-3), _udp_metrics("kpps", 1)),
    Scenario("udpgso", "UDP, 1,372-byte payload, application GSO",
             _udp(LARGE, 20_000, TRAIN, LARGE * 8 / 1e9), _udp_metrics("Gbit/s", 2)),
    Scenario("ping_idle", "ping, idle", _ping_idle, (*PING, *MEMORY)),
    Scenario("ping_loaded", "ping during one TCP stream", _ping_loaded,
             (*PING, Metric("gbps", "TCP stream meanwhile, with headers", "Gbit/s"), *MEMORY)),
)}


def measure(rig, link, scenario, plan, udp_load):
    """Runs one scenario on a fresh link; adds the memory figures every scenario has."""
    idle = link.memory_mb("VmRSS")
    figures, details = scenario.measure(rig, link, plan, udp_load)
    if idle is not None:
        # The peak since the program started: links are fresh for every scenario.
        figures |= {"rss_idle": idle, "rss_peak": link.memory_mb("VmHWM")}
    return figures, details
