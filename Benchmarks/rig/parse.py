# SPDX-License-Identifier: Apache-2.0
"""Texts of iperf3, ping, /proc and udp_load turned into numbers. No I/O."""
import json
import re
from dataclasses import dataclass


class ParseError(Exception):
    """What a tool printed is not what this rig understands."""


@dataclass(frozen=True)
class TCPResult:
    bits_per_second: float  # received, both directions summed
    bytes: int  # received, both directions summed
    retransmits: int
    congestion_controls: frozenset  # as the kernel reported them, for every sending end


def iperf3(text):
    """The client's `-J` report, one direction or --bidir."""
    try:
        report = json.loads(text)
    except ValueError as error:
        raise ParseError(f"iperf3 printed no JSON: {text[:200]!r}") from error
    if "error" in report:
        raise ParseError(f"iperf3: {report['error']}")
    end = report.get("end", {})
    try:
        received, sent = [end["sum_received"]], [end["sum_sent"]]
        if "sum_received_bidir_reverse" in end:
            received.append(end["sum_received_bidir_reverse"])
            sent.append(end["sum_sent_bidir_reverse"])
        return TCPResult(
            sum(r["bits_per_second"] for r in received),
            sum(r["bytes"] for r in received),
            sum(s.get("retransmits", 0) for s in sent),
            frozenset(v for k, v in end.items() if k.endswith("_tcp_congestion")),
        )
    except KeyError as error:
        raise ParseError(f"iperf3's report has no {error}") from error


def ping(text):
    """Round-trip times in microseconds, one per reply; duplicates are left out."""
    replies = re.findall(r"time=([0-9.]+) ms(?! \(DUP!\))", text)
    return [round(float(value) * 1000, 3) for value in replies]


def protocol_counter(text, group, name):
    """One counter of /proc/net/netstat or /proc/net/snmp: a line of names, a line of values."""
    lines = [line.split() for line in text.splitlines() if line.startswith(group + ":")]
    for names, values in zip(lines[::2], lines[1::2]):
        if name in names:
            return int(values[names.index(name)])
    raise ParseError(f"no counter {group}.{name}")


def cpu_ticks(text):
    """utime + stime of /proc/PID/stat (proc(5), fields 14 and 15); comm may hold anything."""
    fields = text[text.rindex(")") + 2 :].split()
    return int(fields[11]) + int(fields[12])


def status_kib(text, name):
    """A kB field of /proc/PID/status, such as VmRSS or VmHWM."""
    match = re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)
    if not match:
        raise ParseError(f"no {name} in the process status")
    return int(match.group(1))


def cpu_model(text):
    """One line from /proc/cpuinfo; family and model tell apart CPUs that share a name."""

    def field(name):
        match = re.search(rf"^{name}\s*:\s*(.+)$", text, re.MULTILINE)
        return match.group(1).strip() if match else "?"

    return f"{field('model name')} (family {field('cpu family')}, model {field('model')})"
