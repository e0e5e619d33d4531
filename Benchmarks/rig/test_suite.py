#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of Benchmarks/run and Benchmarks/check; no root: python3 Benchmarks/rig/test_suite.py"""
import contextlib
import io
import json
import pathlib
import shutil
import sys
import tempfile
import unittest
import xml.dom.minidom

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from rig import collected, plots, report, scenarios, suite, thresholds  # noqa: E402
from rig.figures import Summary  # noqa: E402

NAMES = ("nexusguard", "wireguard-go", "veth")


def throughput():
    """A document as Benchmarks/throughput writes it; ours is ten times theirs in everything."""
    measurements = []
    for run in (1, 2, 3):
        for scenario in scenarios.SCENARIOS.values():
            for factor, name in ((10, "nexusguard"), (1, "wireguard-go"), (40, "veth")):
                values = {metric.key: factor * (run + 1.0) for metric in scenario.metrics}
                measurements.append({"run": run, "scenario": scenario.name, "contestant": name,
                                     "figures": values})
    rows = report.summary_rows(measurements, NAMES, "wireguard-go")
    contestants = [{"name": name, "kind": "veth" if name == "veth" else "program"}
                   for name in NAMES]
    return json.loads(json.dumps(report.document({}, {}, contestants, measurements, rows,
                                                 "wireguard-go")))


def aead_row(backend, length, value, batch=32, cache="hot", operation="seal"):
    return {"backend": backend, "length": length, "batch": batch, "cache": cache,
            "operation": operation, "ns_per_packet": value}


def document(**changes):
    micro = {
        "aead": {"benchmark": "aead", "results": [
            aead_row("avx2", 64, 100.0), aead_row("libcrypto", 64, 400.0),
            aead_row("avx2", 1424, 600.0), aead_row("libcrypto", 1424, 1200.0),
            aead_row("avx2", 1424, 9999.0, batch=1), aead_row("avx2", 1424, 8888.0, cache="cold"),
            aead_row("avx2", 1424, 610.0, operation="open"),
        ]},
        "path": {"path": [
            {"outNs": 1000.0, "sealNs": 900.0, "inNs": 2000.0, "openNs": 1600.0},
            {"outNs": 200.0, "sealNs": 100.0, "inNs": 200.0, "openNs": 50.0},
        ]},
        "handshakes": {"handshakes": {"initiatorPerSecond": 5000, "responderPerSecond": 6000}},
        "growth": {"growth": [
            {"shape": shape, "traffic": traffic, "outNs": 100, "inNs": 100,
             "outGrowth": growth, "inGrowth": growth}
            for shape in ("full", "small")
            for traffic, growth in (("1 peer", 1.0), ("one of 10,000", 1.1),
                                    ("any of 64", 1.0), ("any of 10,000", 4.0))]},
        "contention": {"contention": [
            {"mode": mode, "batch": "small", "workers": workers, "nsPerPacket": 100.0 + workers}
            for mode in ("own", "shared", "pair") for workers in (1, 2, 4, 8)]},
    }
    facts = {"cpu": "A CPU", "cores": 2, "kernel": "Linux 6.1", "revision": "abc",
             "time": "2026-01-02T03:04:05+00:00", "loadAverage": [0.0, 1.0, 2.0]}
    return {"schemaVersion": 1, "quick": False, "busy": False, "environment": facts,
            "throughput": throughput(), "micro": micro, **changes}


class Collected(unittest.TestCase):
    def setUp(self):
        self.found = collected.figures(document())

    def test_throughput_is_the_median_with_its_extremes(self):
        self.assertEqual(self.found["throughput/tcp1/gbps/nexusguard"], Summary(30, 20, 40, 3))

    def test_peak_memory_is_the_highest_of_any_round(self):
        self.assertEqual(self.found["throughput/peak_rss/nexusguard"].median, 40)
        self.assertNotIn("throughput/peak_rss/nobody", self.found)

    def test_aead_is_hot_and_in_batches(self):
        self.assertEqual(self.found["aead/avx2/1424/seal"].median, 600)
        self.assertEqual(self.found["aead/avx2/1424/open"].median, 610)

    def test_path_shares_are_those_of_the_aead(self):
        self.assertEqual(self.found["path/full/out_share"].median, 0.9)
        self.assertEqual(self.found["path/full/in_share"].median, 0.8)
        self.assertEqual(self.found["path/small/in_share"].median, 0.25)

    def test_growth_is_that_of_the_same_traffic(self):
        self.assertEqual(self.found["growth/full/out"].median, 1.1)
        self.assertEqual(self.found["growth/small/in"].median, 1.1)

    def test_contention_has_a_figure_for_every_number_of_workers(self):
        self.assertEqual(self.found["contention/own/small/8"].median, 108)
        self.assertEqual(self.found["contention/pair/small/1"].median, 101)

    def test_every_metric_of_every_scenario_has_a_name(self):
        for scenario in scenarios.SCENARIOS.values():
            for metric in scenario.metrics:
                self.assertIn(f"throughput/{scenario.name}/{metric.key}/nexusguard", self.found)

    def test_a_document_without_parts_has_no_figures(self):
        self.assertEqual(collected.figures({"throughput": None, "micro": {}}), {})


def threshold(**fields):
    entry = {"what": "x", "figure": "throughput/tcp1/gbps/nexusguard", **fields}
    return thresholds.parse({"schemaVersion": 1, "thresholds": [entry]})[0]


class Thresholds(unittest.TestCase):
    def setUp(self):
        self.found = collected.figures(document())

    def state(self, **fields):
        return thresholds.judge(threshold(**fields), self.found).state

    def test_limits_are_inclusive(self):
        over = "throughput/tcp1/gbps/wireguard-go"
        self.assertEqual(self.state(over=over, atLeast=10), "ok")
        self.assertEqual(self.state(over=over, atLeast=10.01), "OUTSIDE")
        self.assertEqual(self.state(over=over, atMost=10), "ok")
        self.assertEqual(self.state(over=over, atMost=9.99), "OUTSIDE")

    def test_without_over_the_figure_itself_counts(self):
        self.assertEqual(self.state(atMost=30), "ok")
        self.assertEqual(self.state(atMost=29), "OUTSIDE")

    def test_a_missing_figure_is_bad_unless_it_may_be_absent(self):
        gone = {"figure": "aead/none/64/seal", "atLeast": 1}
        verdict = thresholds.judge(threshold(**gone), self.found)
        self.assertEqual((verdict.state, verdict.is_good), ("MISSING", False))
        verdict = thresholds.judge(threshold(**gone, mayBeAbsent=True), self.found)
        self.assertEqual((verdict.state, verdict.is_good), ("absent", True))
        self.assertEqual(self.state(over="nothing", atLeast=0), "MISSING")

    def test_nothing_is_divided_by_zero(self):
        self.found["zero"] = Summary(0, 0, 0, 1)
        self.assertEqual(self.state(over="zero", atLeast=0), "MISSING")

    def test_nonsense_is_refused(self):
        good = {"what": "x", "figure": "y", "atLeast": 1}
        bad = [{**good, "atMost": 2}, {"what": "x", "figure": "y"}, {**good, "atleast": 3},
               {"what": "x", "atLeast": 1}, {"figure": "y", "atLeast": 1}]
        for entry in bad:
            with self.assertRaises(ValueError, msg=entry):
                thresholds.parse({"schemaVersion": 1, "thresholds": [entry]})
        for content in ([], {}, {"schemaVersion": 2, "thresholds": [good]},
                        {"schemaVersion": 1, "thresholds": []}):
            with self.assertRaises(ValueError, msg=content):
                thresholds.parse(content)

    def test_the_thresholds_of_the_repository_name_figures_that_exist(self):
        """A misspelt name with mayBeAbsent would never be noticed."""
        content = document()
        content["micro"]["aead"]["results"].append(
            aead_row("libcrypto", 1424, 1210.0, operation="open"))
        found = collected.figures(content)
        # docs/benchmarks.md says how to add this contestant.
        found |= {name.removesuffix("nexusguard") + "spin": value
                  for name, value in found.items() if name.endswith("/nexusguard")}
        for each in thresholds.parse(json.loads(thresholds.FILE.read_text())):
            self.assertIn(each.figure, found, each.what)
            if each.over:
                self.assertIn(each.over, found, each.what)


class Check(unittest.TestCase):
    """The command."""

    good = {"what": "fast", "figure": "throughput/tcp1/gbps/nexusguard", "atLeast": 1}
    bad = {"what": "tiny", "figure": "throughput/peak_rss/nexusguard", "atMost": 1}

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name)

    def check(self, content, entries):
        (self.path / "result.json").write_text(
            content if isinstance(content, str) else json.dumps(content))
        (self.path / "limits.json").write_text(
            json.dumps({"schemaVersion": 1, "thresholds": entries}))
        text = io.StringIO()
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            status = thresholds.main([str(self.path / "result.json"), "--thresholds",
                                      str(self.path / "limits.json")])
        return status, text.getvalue()

    def test_status_is_zero_only_when_all_are_within(self):
        status, text = self.check(document(), [self.good])
        self.assertEqual((status, text.splitlines()[-1]), (0, "1 of 1 within"))
        status, text = self.check(document(), [self.good, self.bad])
        self.assertEqual((status, text.splitlines()[-1]), (1, "1 of 2 within"))
        self.assertRegex(text, r"tiny +40 +≤ 1 +OUTSIDE")

    def test_what_may_not_be_quoted_says_so(self):
        self.assertNotIn("run", self.check(document(), [self.good])[1])
        self.assertIn("quick run", self.check(document(quick=True), [self.good])[1])
        self.assertIn("not publishable", self.check(document(busy=True), [self.good])[1])

    def test_a_file_that_is_no_result_is_a_usage_error(self):
        for content in ("no JSON", "[]", "1", "{}", json.dumps({"throughput": {"rows": []}}),
                        json.dumps({"schemaVersion": 1}), json.dumps(document(schemaVersion=2))):
            status, text = self.check(content, [self.good])
            self.assertEqual(status, 2, content)
            self.assertIn("result.json", text)

    def test_limits_that_are_none_are_a_usage_error(self):
        status, text = self.check(document(), [])
        self.assertEqual(status, 2)
        self.assertIn("limits.json", text)


class Plots(unittest.TestCase):
    def test_every_plot_has_its_groups_and_no_veth(self):
        made = {plot.name: plot for plot in plots.plots(document())}
        self.assertEqual(list(made), ["throughput", "packets", "latency", "cpu", "aead"])
        self.assertEqual(made["throughput"].series, ("nexusguard", "wireguard-go"))
        self.assertEqual(made["throughput"].cells["wireguard-go"][0], Summary(3, 2, 4, 3))
        self.assertEqual(made["aead"].groups, ("64 B", "1424 B"))
        self.assertEqual(made["aead"].cells["libcrypto"][1].median, 1200)

    def test_scenarios_that_were_not_run_leave_no_gap(self):
        content = document()
        content["throughput"]["summary"] = [
            row for row in content["throughput"]["summary"] if row["scenario"] == "tcp4"]
        made = {plot.name: plot for plot in plots.plots(content)}
        self.assertEqual(made["throughput"].groups, ("TCP, 4 streams",))
        self.assertEqual(list(made), ["throughput", "aead"])

    def test_strings_cannot_leave_their_quotes(self):
        self.assertEqual(plots.quoted("it's"), "'it''s'")
        self.assertEqual(plots.quoted("a\nset output"), "'a?set output'")

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_gnuplot_draws_them_with_missing_and_strange_cells(self):
        cell = Summary(5.0, 3.0, 8.0, 3)
        strange = plots.Plot("strange", "{a}_b 'c'", "µs", ("g \"1\"", "g2"), ("it's", "plain"),
                             {"it's": [cell, None], "plain": [cell, cell]}, True)
        with tempfile.TemporaryDirectory() as directory:
            for plot in [*plots.plots(document()), strange]:
                path = plots.draw(plot, suite.subtitle(document(quick=True)),
                                  pathlib.Path(directory))
                text = self.text_of(xml.dom.minidom.parse(str(path)))
                for series in plot.series:
                    self.assertIn(series, text)
                self.assertIn("QUICK RUN", text)

    def text_of(self, node):
        if node.nodeType == node.TEXT_NODE:
            return node.data
        return "".join(self.text_of(child) for child in node.childNodes)


class Run(unittest.TestCase):
    def test_options_reach_the_rig(self):
        options = suite.arguments(["--peer", "a=b", "--peer", "c=d", "--quick", "--runs", "5",
                                   "--without", "veth", "--scenarios", "tcp1"])
        self.assertEqual(
            suite.throughput_arguments(options, "x.json"),
            ["--json", "x.json", "--peer", "a=b", "--peer", "c=d", "--without", "veth",
             "--runs", "5", "--scenarios", "tcp1", "--quick"])

    def test_a_quick_run_never_replaces_the_published_figures(self):
        published = suite.REPOSITORY / "docs/benchmarks"
        self.assertEqual(suite.output_directory(suite.arguments([])), published)
        self.assertNotEqual(suite.output_directory(suite.arguments(["--quick"])), published)
        self.assertEqual(suite.output_directory(suite.arguments(["--quick", "--output", "/x"])),
                         pathlib.Path("/x"))

    def test_what_forbids_quoting_is_the_first_line_of_every_plot(self):
        self.assertEqual(suite.subtitle(document())[0], "A CPU, 2 cores, Linux 6.1")
        self.assertEqual(suite.subtitle(document(quick=True, busy=True))[0],
                         "QUICK RUN, NOT FOR COMPARISON, BUSY MACHINE, NOT FOR QUOTING")

    def test_a_machine_is_busy_by_its_last_minute(self):
        self.assertFalse(suite.is_busy({"loadAverage": [0.25, 9, 9]}))
        self.assertTrue(suite.is_busy({"loadAverage": [0.26, 0, 0]}))

    def test_the_flood_is_in_the_document_only_when_it_ran(self):
        options = suite.arguments([])
        facts = document()["environment"]
        self.assertNotIn("flood", suite.document(facts, options, {}, {}, {}, None))
        self.assertEqual(suite.document(facts, options, {}, {}, {}, ["a"])["flood"], ["a"])


if __name__ == "__main__":
    unittest.main()
