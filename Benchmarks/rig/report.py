# SPDX-License-Identifier: Apache-2.0
"""Summaries of the measurements, as a table and as JSON."""
from dataclasses import asdict

from .contestants import VETH
from .figures import ratio, summarise
from .scenarios import SCENARIOS

SCHEMA_VERSION = 1


def summary_rows(measurements, names, against):
    """One row per scenario and metric that has figures: a Summary and a Ratio per contestant.

    Veth is there for reference and gets no ratio: its figure says more about the host's TCP than
    about any tunnel. A measurement is {run, scenario, contestant, figures} or has `error` in place of `figures`.
    """
    values = {}  # (scenario, contestant, metric) -> {run: value}
    for entry in measurements:
        for key, value in entry.get("figures", {}).items():
            place = (entry["scenario"], entry["contestant"], key)
            values.setdefault(place, {})[entry["run"]] = value
    rows = []
    for scenario in SCENARIOS.values():
        for metric in scenario.metrics:
            row = {"scenario": scenario, "metric": metric, "summaries": {}, "ratios": {}}
            theirs = values.get((scenario.name, against, metric.key), {})
            for name in names:
                mine = values.get((scenario.name, name, metric.key), {})
                row["summaries"][name] = summarise(list(mine.values()))
                if name != against and name != VETH and metric.has_ratio:
                    common = [run for run in mine if run in theirs]
                    row["ratios"][name] = ratio([(mine[run], theirs[run]) for run in common])
            if any(row["summaries"].values()):
                rows.append(row)
    return rows


def failures(measurements):
    return [entry for entry in measurements if "error" in entry]


def _figure(value, digits):
    return f"{value:,.{digits}f}"


def summary_text(summary, digits):
    if summary is None:
        return "–"
    text = _figure(summary.median, digits)
    if summary.count > 1:
        text += f" ({_figure(summary.low, digits)}–{_figure(summary.high, digits)})"
    return text


def ratio_text(value):
    if value is None:
        return "–"
    text = f"{value.of_medians:.2f}"
    if value.of_pairs.count > 1:
        pairs = value.of_pairs
        text += f" [{pairs.median:.2f}: {pairs.low:.2f}–{pairs.high:.2f}]"
    return text


def table(rows, names, against):
    """The terminal's table: figures first, then ratios to `against`."""
    compared = [n for n in names if n not in (against, VETH)] if against in names else []
    lines = [["", *names, *(f"{name} ÷ {against}" for name in compared)]]
    title = None
    for row in rows:
        if row["scenario"].title != title:
            title = row["scenario"].title
            lines.append([title])
        metric = row["metric"]
        label = f"  {metric.label}{', ' + metric.unit if metric.unit else ''}"
        lines.append([
            label + (" ↓" if metric.lower_is_better else ""),
            *(summary_text(row["summaries"][name], metric.digits) for name in names),
            *(ratio_text(row["ratios"].get(name)) for name in compared),
        ])
    full = [line for line in lines if len(line) > 1]
    widths = [max(len(line[column]) for line in full) for column in range(len(full[0]))]

    def layout(line):
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]
        return "  ".join(cells).rstrip()

    return "\n".join(layout(line) for line in lines)


def document(environment, parameters, contestants, measurements, rows, against):
    """What --json writes. A change that breaks readers raises SCHEMA_VERSION."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "environment": environment,
        "parameters": parameters,
        "contestants": contestants,
        "against": against,
        "measurements": measurements,
        "summary": [
            {
                "scenario": row["scenario"].name,
                "metric": row["metric"].key,
                "label": row["metric"].label,
                "unit": row["metric"].unit,
                "lowerIsBetter": row["metric"].lower_is_better,
                "figures": {n: asdict(s) for n, s in row["summaries"].items() if s},
                "ratios": {n: asdict(r) for n, r in row["ratios"].items() if r},
            }
            for row in rows
        ],
    }
