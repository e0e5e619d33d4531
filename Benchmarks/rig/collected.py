# SPDX-License-Identifier: Apache-2.0
"""The figures of one result file under flat names, which plots and thresholds use.

    throughput/SCENARIO/METRIC/CONTESTANT    median of the rounds
    throughput/peak_rss/CONTESTANT           the highest of all scenarios and rounds, MB
    aead/BACKEND/LENGTH/seal|open            ns per packet, batches of 32, hot
    path/full|small/out_share|in_share       AEAD alone ÷ the engine's whole path
    handshakes/initiator|responder           per second and core
    contention/MODE/BATCH/WORKERS            ns of CPU time per packet
    growth/full|small/out|in                 one of 10,000 peers ÷ the only one, same traffic
"""
from .figures import Summary

AEAD_BATCH, AEAD_CACHE = 32, "hot"
GROWN = "one of 10,000"
SHAPES = ("full", "small")  # in the order in which `path` prints them


def figures(document):
    """{name: Summary}; a figure without rounds is its own low and high."""
    found = {}
    if document.get("throughput"):
        found |= _throughput(document["throughput"])
    micro = document.get("micro", {})
    for row in micro.get("aead", {}).get("results", []):
        if row["batch"] == AEAD_BATCH and row["cache"] == AEAD_CACHE:
            key = f"aead/{row['backend']}/{row['length']}/{row['operation']}"
            found[key] = _single(row["ns_per_packet"])
    for name, row in zip(SHAPES, micro.get("path", {}).get("path", [])):
        found[f"path/{name}/out_share"] = _single(row["sealNs"] / row["outNs"])
        found[f"path/{name}/in_share"] = _single(row["openNs"] / row["inNs"])
    rates = micro.get("handshakes", {}).get("handshakes", {})
    for role in ("initiator", "responder"):
        if f"{role}PerSecond" in rates:
            found[f"handshakes/{role}"] = _single(rates[f"{role}PerSecond"])
    for row in micro.get("contention", {}).get("contention", []):
        name = f"contention/{row['mode']}/{row['batch']}/{row['workers']}"
        found[name] = _single(row["nsPerPacket"])
    for row in micro.get("growth", {}).get("growth", []):
        if row["traffic"] == GROWN:
            for direction in ("out", "in"):
                found[f"growth/{row['shape']}/{direction}"] = _single(row[f"{direction}Growth"])
    return found


def _single(value):
    return Summary(value, value, value, 1)


def _throughput(document):
    found, peaks = {}, {}
    for row in document["summary"]:
        for contestant, figure in row["figures"].items():
            summary = Summary(**figure)
            found[f"throughput/{row['scenario']}/{row['metric']}/{contestant}"] = summary
            if row["metric"] == "rss_peak":
                peaks.setdefault(contestant, []).append(summary.high)
    for contestant, values in peaks.items():
        found[f"throughput/peak_rss/{contestant}"] = _single(max(values))
    return found


def contestants(document, without=()):
    """Names in the order of the run."""
    listed = (document.get("throughput") or {}).get("contestants", [])
    return [entry["name"] for entry in listed if entry["kind"] not in without]


def backends(document):
    """AEAD back-ends in the order of the run."""
    rows = document.get("micro", {}).get("aead", {}).get("results", [])
    return list(dict.fromkeys(row["backend"] for row in rows))


def lengths(document):
    rows = document.get("micro", {}).get("aead", {}).get("results", [])
    return list(dict.fromkeys(row["length"] for row in rows))
