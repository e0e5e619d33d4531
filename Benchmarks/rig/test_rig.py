#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the rig computes. Needs no root: python3 Benchmarks/rig/test_rig.py"""
import json
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from rig import cli, loads, parse, report, scenarios  # noqa: E402  (the path comes first)
from rig.contestants import Contestant, parse_contestant  # noqa: E402
from rig.figures import (  # noqa: E402
    LOSS_LIMITS, Trial, highest_clean, percentile, ratio, summarise, sweep)
from rig.network import RigError, output_of, wait_until  # noqa: E402


def trial(target, loss, offered=None):
    offered = target if offered is None else offered
    sent = 1_000_000
    return Trial(target=target, offered=offered, delivered=offered * (1 - loss), sent=sent,
                 lost=round(sent * loss))


class Figures(unittest.TestCase):
    def test_summary_is_median_and_extremes(self):
        summary = summarise([3.0, 1.0, 10.0])
        self.assertEqual((summary.median, summary.low, summary.high, summary.count),
                         (3.0, 1.0, 10.0, 3))
        self.assertIsNone(summarise([]))

    def test_ratio_of_medians_differs_from_median_of_pairs(self):
        # medians 4 and 2; pairs 1/1, 4/8, 9/2
        value = ratio([(1, 1), (4, 8), (9, 2)])
        self.assertEqual(value.of_medians, 2.0)
        self.assertEqual((value.of_pairs.median, value.of_pairs.low, value.of_pairs.high),
                         (1.0, 0.5, 4.5))

    def test_ratio_to_nothing_or_zero_is_none(self):
        self.assertIsNone(ratio([]))
        self.assertIsNone(ratio([(1, 2), (1, 0)]))

    def test_percentile_is_nearest_rank(self):
        values = list(range(100, 0, -1))
        self.assertEqual(percentile(values, 50), 50)
        self.assertEqual(percentile(values, 99), 99)
        self.assertEqual(percentile(values, 100), 100)
        self.assertEqual(percentile([7], 1), 7)
        with self.assertRaises(ValueError):
            percentile([], 50)
        with self.assertRaises(ValueError):
            percentile([1], 0)


class Sweep(unittest.TestCase):
    """The search against a path of known capacity."""

    @staticmethod
    def path(capacity, sender_limit=float("inf")):
        probed = []

        def probe(rate):
            probed.append(rate)
            offered = min(rate, sender_limit)
            return trial(rate, max(0.0, 1 - capacity / offered), offered)

        return probe, probed

    def test_finds_the_capacity_within_the_resolution(self):
        for capacity in (15_000, 33_333, 250_000, 1_000_000):
            probe, _ = self.path(capacity)
            trials = sweep(probe, 20_000, resolution=1.1, max_bisections=10)
            for limit in LOSS_LIMITS:
                clean = highest_clean(trials, limit).offered
                self.assertLessEqual(clean, capacity / (1 - limit))
                self.assertGreaterEqual(clean, capacity / 1.1)
            best = max(t.delivered for t in trials)
            self.assertAlmostEqual(best, capacity, delta=1)

    def test_number_of_trials_is_bounded(self):
        for probe in (lambda rate: trial(rate, 0.0), lambda rate: trial(rate, 1.0)):
            self.assertLessEqual(len(sweep(probe, 1, max_doublings=5, max_bisections=3)), 11)

    def test_total_loss_has_no_clean_rate(self):
        trials = sweep(lambda rate: trial(rate, 1.0), 1000)
        self.assertIsNone(highest_clean(trials, 0.01))
        self.assertLess(min(t.target for t in trials), 1000)

    def test_one_lossy_trial_does_not_end_the_doubling(self):
        path, _ = self.path(100_000)
        hiccups = iter([0.2])
        trials = sweep(lambda rate: trial(rate, next(hiccups, 0)) if rate == 10_000
                       else path(rate), 10_000)
        self.assertGreater(highest_clean(trials, 0.01).offered, 80_000)

    def test_one_starved_trial_does_not_end_the_doubling(self):
        trials = sweep(lambda rate: trial(rate, 0.0, 12_000 if rate == 20_000 else rate), 20_000,
                       max_doublings=4)
        self.assertEqual([t.target for t in trials], [20_000, 40_000, 80_000, 160_000])

    def test_sender_at_its_limit_ends_the_doubling_and_counts_what_was_offered(self):
        probe, probed = self.path(1e9, sender_limit=50_000)
        trials = sweep(probe, 20_000)
        self.assertEqual(probed, [20_000, 40_000, 80_000, 160_000])
        self.assertEqual(highest_clean(trials, 0.001).offered, 50_000)

    def test_flood_is_never_a_clean_rate(self):
        self.assertIsNone(highest_clean([trial(0, 0.0, offered=1e6)], 0.01))

    def test_loss_limits_are_exclusive(self):
        self.assertIsNone(highest_clean([trial(10, 0.01)], 0.01))
        self.assertIsNotNone(highest_clean([trial(10, 0.009)], 0.01))

    def test_nothing_sent_is_total_loss(self):
        self.assertEqual(Trial(10, 0, 0, 0, 0).loss, 1.0)


IPERF = {
    "end": {
        "sum_sent": {"bits_per_second": 9e9, "bytes": 11, "retransmits": 7},
        "sum_received": {"bits_per_second": 8e9, "bytes": 10},
        "sender_tcp_congestion": "cubic",
        "receiver_tcp_congestion": "cubic",
    }
}


class Parsing(unittest.TestCase):
    def test_iperf3_counts_what_was_received(self):
        result = parse.iperf3(json.dumps(IPERF))
        self.assertEqual((result.bits_per_second, result.bytes, result.retransmits), (8e9, 10, 7))
        self.assertEqual(result.congestion_controls, {"cubic"})

    def test_iperf3_bidir_sums_both_directions(self):
        end = {
            **IPERF["end"],
            "sum_sent_bidir_reverse": {"bits_per_second": 2e9, "bytes": 3, "retransmits": 1},
            "sum_received_bidir_reverse": {"bits_per_second": 1e9, "bytes": 2},
            "receiver_tcp_congestion": "bbr",
        }
        result = parse.iperf3(json.dumps({"end": end}))
        self.assertEqual((result.bits_per_second, result.bytes, result.retransmits), (9e9, 12, 8))
        self.assertEqual(result.congestion_controls, {"cubic", "bbr"})

    def test_iperf3_failure_is_an_error(self):
        for text in ('{"error": "unable to connect"}', "not JSON", '{"end": {}}'):
            with self.assertRaises(parse.ParseError):
                parse.iperf3(text)

    def test_ping_takes_each_reply_once_in_microseconds(self):
        text = (
            "64 bytes from 198.19.0.2: icmp_seq=1 ttl=64 time=0.051 ms\n"
            "64 bytes from 198.19.0.2: icmp_seq=1 ttl=64 time=0.081 ms (DUP!)\n"
            "64 bytes from 198.19.0.2: icmp_seq=2 ttl=64 time=12 ms\n"
            "rtt min/avg/max/mdev = 0.051/6.0/12.0/0.1 ms\n"
        )
        self.assertEqual(parse.ping(text), [51, 12000])

    def test_protocol_counter_pairs_names_with_values(self):
        text = "TcpExt: A TCPOFOQueue B\nTcpExt: 1 22 3\nIpExt: A C\nIpExt: 4 5\n"
        self.assertEqual(parse.protocol_counter(text, "TcpExt", "TCPOFOQueue"), 22)
        self.assertEqual(parse.protocol_counter(text, "IpExt", "A"), 4)
        with self.assertRaises(parse.ParseError):
            parse.protocol_counter(text, "IpExt", "B")

    def test_cpu_ticks_survive_a_hostile_command_name(self):
        fields = " ".join(str(number) for number in range(4, 53))
        self.assertEqual(parse.cpu_ticks(f"1 (a) R 9 (b) S {fields}"), 14 + 15)

    def test_cpu_ticks_of_this_process_agree_with_the_kernel(self):
        ticks = parse.cpu_ticks(pathlib.Path("/proc/self/stat").read_text())
        times = os.times()
        self.assertAlmostEqual(ticks / os.sysconf("SC_CLK_TCK"), times.user + times.system,
                               delta=0.5)

    def test_status_field_is_matched_whole(self):
        text = "VmHWMx:\t1 kB\nVmHWM:\t   4711 kB\nVmRSS:\t 12 kB\n"
        self.assertEqual(parse.status_kib(text, "VmHWM"), 4711)
        with self.assertRaises(parse.ParseError):
            parse.status_kib(text, "VmPeak")  # also what a zombie's status looks like

    def test_cpu_model_names_family_and_model(self):
        text = "cpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC\n"
        self.assertEqual(parse.cpu_model(text), "AMD EPYC (family 25, model 1)")


def entry(run, contestant, value, scenario="tcp1"):
    return {"run": run, "scenario": scenario, "contestant": contestant,
            "figures": {"gbps": value, "retransmits": 3}}


class Reports(unittest.TestCase):
    def rows(self, measurements, names=("ours", "theirs", "veth")):
        return report.summary_rows(measurements, names, "theirs")

    def test_ratio_uses_only_runs_both_finished(self):
        rows = self.rows([
            entry(1, "ours", 4.0), entry(1, "theirs", 2.0),
            entry(2, "ours", 100.0),
            {"run": 2, "scenario": "tcp1", "contestant": "theirs", "error": "died"},
        ])
        gbps = next(row for row in rows if row["metric"].key == "gbps")
        self.assertEqual(gbps["ratios"]["ours"].of_medians, 2.0)
        self.assertEqual(gbps["summaries"]["ours"].count, 2)

    def test_counts_and_veth_get_no_ratio(self):
        rows = self.rows([entry(1, "ours", 4.0), entry(1, "theirs", 2.0), entry(1, "veth", 9.0)])
        by_key = {row["metric"].key: row for row in rows}
        self.assertEqual(list(by_key["gbps"]["ratios"]), ["ours"])
        self.assertEqual(by_key["retransmits"]["ratios"], {})

    def test_metrics_without_figures_get_no_row(self):
        rows = self.rows([entry(1, "ours", 4.0)])
        self.assertEqual([row["metric"].key for row in rows], ["gbps", "retransmits"])

    def test_table_aligns_and_marks_what_is_missing(self):
        names = ["ours", "theirs", "veth"]
        rows = self.rows([entry(1, "ours", 4.0), entry(2, "ours", 6.0), entry(1, "theirs", 2.0)])
        lines = report.table(rows, names, "theirs").splitlines()
        self.assertEqual(lines[0].split("  ")[-1], "ours ÷ theirs")
        self.assertEqual(lines[1], "TCP, 1 stream")
        self.assertRegex(lines[2], r"received, Gbit/s +5\.00 \(4\.00–6\.00\) +2\.00 +– +2\.00$")
        self.assertRegex(lines[3], r"retransmits ↓ ")

    def test_document_is_json_and_versioned(self):
        measurements = [entry(1, "ours", 4.0), entry(1, "theirs", 2.0)]
        content = json.loads(json.dumps(report.document(
            {}, {}, [], measurements, self.rows(measurements), "theirs")))
        self.assertEqual(content["schemaVersion"], report.SCHEMA_VERSION)
        summary = content["summary"][0]
        self.assertEqual(summary["figures"]["ours"]["median"], 4.0)
        self.assertEqual(summary["ratios"]["ours"]["of_medians"], 2.0)
        self.assertNotIn("veth", summary["figures"])

    def test_every_scenario_has_distinct_metrics(self):
        for scenario in scenarios.SCENARIOS.values():
            keys = [metric.key for metric in scenario.metrics]
            self.assertEqual(len(keys), len(set(keys)), scenario.name)


class Options(unittest.TestCase):
    def test_contestant_forms(self):
        self.assertEqual(parse_contestant("kernel"), Contestant("kernel", "kernel"))
        self.assertEqual(parse_contestant("k=kernel"), Contestant("k", "kernel"))
        shell = parse_contestant("s=sh -c 'a b'")
        self.assertEqual((shell.name, shell.kind, shell.command[1:]), ("s", "program",
                                                                       ("-c", "a b")))
        self.assertTrue(os.path.isabs(shell.command[0]))

    def test_a_result_file_does_not_tell_where_the_checkout_lies(self):
        inside = str(cli.REPOSITORY / ".build/release/nexusguard-engine")
        self.assertEqual(cli.published((inside, "--spin", "/elsewhere")),
                         [".build/release/nexusguard-engine", "--spin", "/elsewhere"])

    def test_contestant_nonsense_is_refused(self):
        for text in ("sh", "=sh", "x=", "x=/no/such/program"):
            with self.assertRaises(ValueError):
                parse_contestant(text)

    def test_two_contestants_of_one_name_are_refused(self):
        options = cli.arguments(["--engine", "sh", "--without", "wireguard-go",
                                 "--peer", "nexusguard=sh"])
        with self.assertRaises(ValueError):
            cli.contestants(options)

    def test_peer_may_replace_the_packaged_wireguard_go(self):
        options = cli.arguments(["--engine", "sh", "--peer", "wireguard-go=sh"])
        self.assertEqual([c.name for c in cli.contestants(options)],
                         ["nexusguard", "wireguard-go", "veth"])

    def test_ratio_to_an_unknown_contestant_is_refused(self):
        options = cli.arguments(["--engine", "sh", "--against", "nobody"])
        with self.assertRaisesRegex(ValueError, "nobody"):
            cli.contestants(options)

    def test_scenarios_keep_order_and_drop_repeats(self):
        options = cli.arguments(["--scenarios", "udp64,tcp1,udp64"])
        self.assertEqual(options.scenarios, ["udp64", "tcp1"])


class Waiting(unittest.TestCase):
    def test_ended_program_is_reported_before_the_time_limit(self):
        process = subprocess.Popen(["sh", "-c", "exit 7"])
        process.wait()
        with self.assertRaisesRegex(RigError, "ended with 7"):
            wait_until(lambda: False, 60, "a socket", process)

    def test_failed_command_names_itself_and_its_words(self):
        with self.assertRaisesRegex(RigError, "exit 5: no luck"):
            output_of(["sh", "-c", "echo no luck >&2; exit 5"])


class UDPLoad(unittest.TestCase):
    """The C program, over loopback."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.program = str(loads.build_udp_load(pathlib.Path(cls.directory.name)))

    def receiver(self, run_id, gro="0"):
        process = subprocess.Popen(
            [self.program, "receive", "127.0.0.1", "0", str(run_id), gro], bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        port = loads.read_until(process, b"\n", 10, "receive").split()[1]
        return process, int(port)

    def finish(self, process):
        process.stdin.close()
        tally = json.loads(loads.read_until(process, b"\n", 20, "receive"))
        process.stdout.close()
        self.assertEqual(process.wait(10), 0)
        return tally

    def send(self, port, run_id, size, rate, seconds, segments):
        return json.loads(output_of([self.program, "send", "127.0.0.1", str(port), str(run_id),
                                     str(size), str(rate), str(seconds), str(segments)]))

    def test_counts_losses_duplicates_and_reordering_exactly(self):
        # RFC 4737, section 3.3: a number below the next expected one is reordered.
        sequences = [0, 1, 3, 2, 2, 5, 9, 4, 0]
        process, port = self.receiver(77)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for sequence in sequences:
                sender.sendto(struct.pack("!4sIQ", b"NGUL", 77, sequence), ("127.0.0.1", port))
            sender.sendto(struct.pack("!4sIQ", b"NGUL", 78, 6), ("127.0.0.1", port))  # other run
            sender.sendto(struct.pack("!4sIQ", b"NGUL", 77, 1 << 32), ("127.0.0.1", port))
            sender.sendto(b"short", ("127.0.0.1", port))
        tally = self.finish(process)
        self.assertEqual(tally["delivered"], 7)
        self.assertEqual(tally["duplicates"], 2)
        self.assertEqual(tally["reordered"], 2)
        self.assertEqual(tally["foreign"], 3)
        self.assertEqual(tally["bytes"], 7 * 16)

    def test_random_permutation_matches_a_plain_count(self):
        order = random.Random(4737).sample(range(500), 400)
        process, port = self.receiver(5)
        expected, next_expected = 0, 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for sequence in order:
                sender.sendto(struct.pack("!4sIQ", b"NGUL", 5, sequence), ("127.0.0.1", port))
                expected += sequence < next_expected
                next_expected = max(next_expected, sequence + 1)
        tally = self.finish(process)
        self.assertEqual((tally["delivered"], tally["reordered"]), (400, expected))

    def test_paced_load_never_exceeds_its_rate_and_arrives(self):
        process, port = self.receiver(6)
        sent = self.send(port, 6, 64, 2000, 0.2, 1)
        tally = self.finish(process)
        self.assertLessEqual(sent["sent"], 2000 * sent["seconds"] + 1)
        self.assertGreater(sent["sent"], 0)
        self.assertEqual(sent["bytes"], sent["sent"] * 64)
        self.assertEqual(tally["delivered"] + tally["socket_drops"], sent["sent"])
        self.assertEqual((tally["reordered"], tally["duplicates"]), (0, 0))

    def test_gso_trains_count_as_datagrams_with_and_without_gro(self):
        for gro in ("0", "1"):
            process, port = self.receiver(8, gro)
            sent = self.send(port, 8, 1372, 4400, 0.1, 44)
            tally = self.finish(process)
            self.assertGreater(sent["sent"], 0)
            self.assertEqual(sent["sent"] % 44, 0)
            self.assertEqual(tally["delivered"] + tally["socket_drops"], sent["sent"])
            self.assertEqual(tally["bytes"], tally["delivered"] * 1372)

    def test_arguments_out_of_range_are_refused(self):
        for bad in (["send", "127.0.0.1", "1", "1", "15", "1", "0.1", "1"],
                    ["send", "127.0.0.1", "1", "1", "1500", "1", "0.1", "64"],
                    ["send", "nowhere", "1", "1", "64", "1", "0.1", "1"],
                    ["receive", "127.0.0.1", "65536", "1", "0"], ["receive"], []):
            done = subprocess.run([self.program, *bad], capture_output=True, check=False)
            self.assertEqual(done.returncode, 2, bad)


class Signals(unittest.TestCase):
    def test_only_the_first_signal_interrupts(self):
        caught = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = [signal.getsignal(number) for number in caught]
        try:
            cli.catch_signals()
            with self.assertRaisesRegex(cli.Interrupted, "SIGTERM"):
                os.kill(os.getpid(), signal.SIGTERM)
                signal.sigtimedwait([], 5)  # not reached: the handler raises at once
            for number in caught:
                os.kill(os.getpid(), number)  # would end the tests if it were not ignored
        finally:
            for number, handler in zip(caught, before):
                signal.signal(number, handler)


if __name__ == "__main__":
    unittest.main()
