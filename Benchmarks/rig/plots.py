# SPDX-License-Identifier: Apache-2.0
"""Plots of one result file: SVG by gnuplot. Bars are medians, whiskers the lowest and highest."""
import subprocess
from dataclasses import dataclass

from . import collected
from .contestants import VETH
from .network import RigError

GNUPLOT_SECONDS = 60
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
# After M. Okabe and K. Ito, "Color Universal Design" (2008): distinct to colour-blind readers too.


@dataclass(frozen=True)
class Plot:
    """Clusters of bars: `cells[series][group]` is a Summary or None."""

    name: str
    title: str
    unit: str
    groups: tuple
    series: tuple
    cells: dict
    logarithmic: bool = False

    @property
    def is_empty(self):
        return not any(cell for row in self.cells.values() for cell in row)


# (group's label, scenario, metric); the series are the contestants
THROUGHPUT = (("TCP, 1 stream", "tcp1", "gbps"), ("TCP, 4 streams", "tcp4", "gbps"),
              ("TCP, both ways", "bidir", "gbps"), ("UDP 1400 B, best", "udp1400", "best"),
              ("UDP GSO, best", "udpgso", "best"))
PACKETS = (("best delivered", "udp64", "best"), ("offered, < 1 % loss", "udp64", "clean_1"),
           ("offered, < 0.1 % loss", "udp64", "clean_01"))
LATENCY = (("idle, p50", "ping_idle", "p50"), ("idle, p99", "ping_idle", "p99"),
           ("under TCP, p50", "ping_loaded", "p50"), ("under TCP, p99", "ping_loaded", "p99"))
CPU = (("TCP, sending", "tcp1", "cpu_sender"), ("TCP, receiving", "tcp1", "cpu_receiver"),
       ("UDP 1400 B, sending", "udp1400", "cpu_sender"),
       ("UDP 1400 B, receiving", "udp1400", "cpu_receiver"))


def plots(document):
    """All that the document has figures for. Plain veth is left out: it is no tunnel."""
    found = collected.figures(document)
    names = tuple(collected.contestants(document, without=(VETH,)))
    made = [
        _by_contestant(found, names, "throughput", "Throughput", "Gbit/s", THROUGHPUT),
        _by_contestant(found, names, "packets", "UDP, 64-byte payload", "1,000 packets/s", PACKETS),
        _by_contestant(found, names, "latency", "Round trip", "µs", LATENCY, logarithmic=True),
        _by_contestant(found, names, "cpu", "CPU time of the program", "s per GB", CPU,
                       logarithmic=True),
        _aead(document, found),
    ]
    return [plot for plot in made if not plot.is_empty]


def _by_contestant(found, names, name, title, unit, rows, logarithmic=False):
    cells = {series: [found.get(f"throughput/{scenario}/{metric}/{series}")
                      for _, scenario, metric in rows] for series in names}
    return _compact(Plot(name, title, unit, tuple(label for label, _, _ in rows), names, cells,
                         logarithmic))


def _aead(document, found):
    names, lengths = tuple(collected.backends(document)), collected.lengths(document)
    cells = {series: [found.get(f"aead/{series}/{length}/seal") for length in lengths]
             for series in names}
    return _compact(Plot("aead", "Sealing one packet, 32 to a call, in cache", "ns",
                         tuple(f"{length} B" for length in lengths), names, cells, True))


def _compact(plot):
    """Without groups that nobody has a figure for: of scenarios that were not run."""
    kept = [i for i in range(len(plot.groups)) if any(row[i] for row in plot.cells.values())]
    return Plot(plot.name, plot.title, plot.unit, tuple(plot.groups[i] for i in kept), plot.series,
                {name: [row[i] for i in kept] for name, row in plot.cells.items()},
                plot.logarithmic)


def quoted(text):
    """A gnuplot string: in single quotes nothing but the quote itself is special."""
    plain = "".join(c if c.isprintable() else "?" for c in text)
    return "'" + plain.replace("'", "''") + "'"


def script(plot, subtitle, path):
    """What gnuplot is told; `subtitle` is a list of lines."""
    lines = [
        "set encoding utf8",
        "set terminal svg size 960,520 noenhanced font 'sans-serif,13' background '#ffffff'",
        f"set output {quoted(str(path))}",
        # only double quotes know \n
        "set title " + ".\"\\n\".".join(map(quoted, [plot.title, *subtitle])),
        f"set ylabel {quoted(plot.unit)}",
        "set style data histograms",
        "set style histogram errorbars gap 1 lw 1",
        "set style fill solid 0.9 noborder",
        "set boxwidth 0.9",
        "set grid ytics lc '#dddddd'",
        "set key outside below samplen 1.5 maxcols 4",
        "set errorbars large lw 1.5 lc rgb '#222222'",
        "set datafile missing 'NaN'",
        "set logscale y" if plot.logarithmic else "set yrange [0:*]",
    ]
    for number, series in enumerate(plot.series):
        lines.append(f"$series{number} << END_OF_SERIES")
        for group, cell in zip(plot.groups, plot.cells[series]):
            values = f"{cell.median} {cell.low} {cell.high}" if cell else "NaN NaN NaN"
            lines.append(f"{_field(group)} {values}")
        lines.append("END_OF_SERIES")
    lines.append("plot " + ", ".join(
        f"$series{n} using 2:3:4:xtic(1) title {quoted(series)} lc rgb '{COLOURS[n % len(COLOURS)]}'"
        for n, series in enumerate(plot.series)))
    return "\n".join(lines) + "\n"


def _field(text):
    return '"' + text.replace('"', "") + '"'


def draw(plot, subtitle, directory):
    """Writes the SVG and returns its path."""
    path = directory / f"{plot.name}.svg"
    done = subprocess.run(["gnuplot"], input=script(plot, subtitle, path), text=True,
                          capture_output=True, timeout=GNUPLOT_SECONDS, check=False)
    if done.returncode != 0 or not path.is_file():
        raise RigError(f"gnuplot: {plot.name}: {done.stderr.strip()[-300:]}")
    return path
