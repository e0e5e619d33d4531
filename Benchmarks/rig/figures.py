# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on results: medians, ratios, percentiles, the rate sweep. No I/O."""
import math
import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    median: float
    low: float
    high: float
    count: int


def summarise(values):
    """Median with the extremes, or None without values."""
    if not values:
        return None
    return Summary(statistics.median(values), min(values), max(values), len(values))


@dataclass(frozen=True)
class Ratio:
    of_medians: float
    of_pairs: Summary


def ratio(pairs):
    """How (mine, theirs) of the same runs compare; None where theirs is ever zero or absent.

    The ratio of medians is the headline. The ratios of the pairs, measured minutes apart at most,
    show whether drift of the machine made it.
    """
    if not pairs or any(theirs == 0 for _, theirs in pairs):
        return None
    mine, theirs = zip(*pairs)
    return Ratio(
        statistics.median(mine) / statistics.median(theirs),
        summarise([m / t for m, t in pairs]),
    )


def percentile(values, percent):
    """Nearest-rank percentile: always one of the values."""
    if not values or not 0 < percent <= 100:
        raise ValueError("percentile of nothing, or outside (0, 100]")
    ordered = sorted(values)
    return ordered[math.ceil(percent / 100 * len(ordered)) - 1]


@dataclass(frozen=True)
class Trial:
    """One paced (target > 0) or flooding (target 0) UDP load; rates in datagrams per second."""

    target: float
    offered: float
    delivered: float
    sent: int
    lost: int
    reordered: int = 0
    duplicates: int = 0
    socket_drops: int = 0
    cpu_sender: float | None = None
    cpu_receiver: float | None = None
    bytes: int = 0

    @property
    def loss(self):
        return self.lost / self.sent if self.sent else 1.0

    @property
    def reached_target(self):
        return self.offered >= 0.9 * self.target


LOSS_LIMITS = (0.01, 0.001)


def highest_clean(trials, limit):
    """The paced trial of the highest offered rate that lost less than `limit`, or None."""
    clean = [t for t in trials if t.target > 0 and t.loss < limit]
    return max(clean, key=lambda t: t.offered, default=None)


def sweep(probe, first, resolution=1.1, max_doublings=10, max_bisections=6):
    """Looks for the best delivered rate and the highest clean rates; returns the trials.

    Doubles the rate until two trials in a row brought nothing: more load was lost and no more was
    delivered, or the sender could not offer it (one alone may be a hiccup of the machine). Then
    bisects, for each loss limit, between the highest clean and the next failing rate.
    """
    trials = []
    rate = float(first)
    idle_steps = 0
    for _ in range(max_doublings):
        best = max((t.delivered for t in trials), default=0.0)
        trial = probe(rate)
        trials.append(trial)
        more = trial.loss < LOSS_LIMITS[0] or trial.delivered > 1.02 * best
        idle_steps = 0 if more and trial.reached_target else idle_steps + 1
        if idle_steps == 2:
            break
        rate *= 2
    for limit in LOSS_LIMITS:
        for _ in range(max_bisections):
            target = next_target(trials, limit, resolution)
            if target is None:
                break
            trials.append(probe(target))
    return trials


def next_target(trials, limit, resolution):
    """The geometric mean of the bracket around the clean rate; None when it is narrow enough."""
    clean = max((t.target for t in trials if t.loss < limit), default=None)
    if clean is None:
        return min(t.target for t in trials) / 2
    failing = min((t.target for t in trials if t.loss >= limit and t.target > clean), default=None)
    if failing is None or failing / clean <= resolution:
        return None
    return math.sqrt(clean * failing)
