# SPDX-License-Identifier: Apache-2.0
"""Benchmarks/check: is a result within what Benchmarks/thresholds.json demands?

Almost all thresholds are ratios of two figures of one run: what a machine can do cancels out.
"""
import argparse
import json
import pathlib
import sys
from dataclasses import dataclass

from . import collected

FILE = pathlib.Path(__file__).resolve().parents[1] / "thresholds.json"
SCHEMA_VERSION = 1
RESULT_VERSION = 1  # of Benchmarks/run
EXIT_OUTSIDE, EXIT_USAGE = 1, 2
KEYS = {"what", "figure", "over", "atLeast", "atMost", "mayBeAbsent"}

OK, OUTSIDE, MISSING, ABSENT = "ok", "OUTSIDE", "MISSING", "absent"


@dataclass(frozen=True)
class Threshold:
    what: str
    figure: str
    over: str | None
    at_least: float | None
    at_most: float | None
    may_be_absent: bool  # on machines or in runs that do not have it

    @property
    def limit_text(self):
        return f"≥ {self.at_least:g}" if self.at_least is not None else f"≤ {self.at_most:g}"


@dataclass(frozen=True)
class Verdict:
    threshold: Threshold
    value: float | None
    state: str

    @property
    def is_good(self):
        return self.state in (OK, ABSENT)


def parse(content):
    """The thresholds of a file's content; ValueError says what is wrong with it."""
    if not isinstance(content, dict) or content.get("schemaVersion") != SCHEMA_VERSION:
        raise ValueError(f"schemaVersion is not {SCHEMA_VERSION}")
    entries = content.get("thresholds")
    if not isinstance(entries, list) or not entries:
        raise ValueError("no thresholds")
    return [_parse_entry(entry) for entry in entries]


def _parse_entry(entry):
    what = entry.get("what", "?")
    unknown = set(entry) - KEYS
    if unknown:
        raise ValueError(f"{what}: unknown {', '.join(sorted(unknown))}")
    if not entry.get("what") or not entry.get("figure"):
        raise ValueError(f"{what}: needs what and figure")
    if ("atLeast" in entry) == ("atMost" in entry):
        raise ValueError(f"{what}: needs either atLeast or atMost")
    return Threshold(what, entry["figure"], entry.get("over"), entry.get("atLeast"),
                     entry.get("atMost"), bool(entry.get("mayBeAbsent", False)))


def judge(threshold, found):
    """`found` as collected.figures() returns it. A figure that is missing is not good: else a run
    without the interesting scenarios would pass."""
    names = [threshold.figure] + ([threshold.over] if threshold.over else [])
    if any(name not in found for name in names):
        return Verdict(threshold, None, ABSENT if threshold.may_be_absent else MISSING)
    value = found[threshold.figure].median
    if threshold.over:
        if found[threshold.over].median == 0:
            return Verdict(threshold, None, MISSING)
        value /= found[threshold.over].median
    within = value >= threshold.at_least if threshold.at_least is not None \
        else value <= threshold.at_most
    return Verdict(threshold, value, OK if within else OUTSIDE)


def table(verdicts):
    rows = [("", "measured", "limit", "")]
    rows += [(v.threshold.what, "–" if v.value is None else f"{v.value:.3g}",
              v.threshold.limit_text, v.state) for v in verdicts]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        f"{row[0].ljust(widths[0])}  {row[1].rjust(widths[1])}  {row[2].ljust(widths[2])}  {row[3]}"
        .rstrip() for row in rows)


def caveats(document):
    """What makes this result unfit to be quoted, in whole sentences."""
    found = []
    if document.get("quick"):
        found.append("This was a quick run: it shows that the rig works, not how fast anything is.")
    if document.get("busy"):
        found.append("The machine was busy when the run began: its figures are not publishable.")
    return found


def main(argv):
    parser = argparse.ArgumentParser(
        prog="check", description="Compares a result of Benchmarks/run with thresholds. Exit "
        "status: 0 all within, 1 one is outside or missing, 2 usage.")
    parser.add_argument("file", metavar="FILE.json", type=pathlib.Path)
    parser.add_argument("--thresholds", metavar="FILE", type=pathlib.Path, default=FILE,
                        help="default: %(default)s")
    options = parser.parse_args(argv)
    path = options.thresholds
    try:
        thresholds = parse(json.loads(path.read_text()))
        path = options.file
        document = json.loads(path.read_text())
        if document.get("schemaVersion") != RESULT_VERSION or "environment" not in document:
            raise ValueError(f"not a result of Benchmarks/run, schemaVersion {RESULT_VERSION}")
        found = collected.figures(document)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        print(f"check: {path}: {type(error).__name__}: {error}", file=sys.stderr)
        return EXIT_USAGE
    verdicts = [judge(threshold, found) for threshold in thresholds]
    print(table(verdicts))
    for sentence in caveats(document):
        print(sentence)
    good = sum(verdict.is_good for verdict in verdicts)
    print(f"{good} of {len(verdicts)} within")
    return 0 if good == len(verdicts) else EXIT_OUTSIDE
