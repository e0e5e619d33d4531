# SPDX-License-Identifier: Apache-2.0
"""`nexusguard logs`: what it shows of a history, how it follows one, and how it clears it."""
import json
import os
import pty
import sqlite3
import subprocess
import time
import unittest

from support import COMMAND, CommandTest

TABLE = """CREATE TABLE record (sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    milliseconds INTEGER NOT NULL, level INTEGER NOT NULL, tag TEXT NOT NULL,
    message TEXT NOT NULL, fields TEXT) STRICT"""
RECORDS = [
    (1_000_000_000_000, 0, "sync", "detail", None),
    (1_000_000_000_001, 1, "sync", "applied", '{"changes":3,"ok":true}'),
    (1_700_000_000_002, 2, "heartbeat", "no answer\x1b[2J\nfake", '{"status":503}'),
    (1_700_000_000_003, 3, "key", "bad", None),
]
LINES = [
    "2001-09-09T01:46:40.001Z info   sync  applied  changes=3  ok=true",
    "2023-11-14T22:13:20.002Z warn   heartbeat  no answer\\u{1B}[2J\\nfake  status=503",
    "2023-11-14T22:13:20.003Z error  key  bad",
]


class Logs(CommandTest):
    def setUp(self):
        super().setUp()
        self.state = self.directory / "state"
        self.state.mkdir(mode=0o700)

    def open(self):
        database = sqlite3.connect(self.state / "log.db", isolation_level=None)
        self.addCleanup(database.close)
        return database

    def fill(self):
        database = self.open()
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(TABLE)
        database.execute("PRAGMA user_version = 1")
        for record in RECORDS:
            self.add(database, record)
        return database

    @staticmethod
    def add(database, record):
        database.execute("INSERT INTO record (milliseconds, level, tag, message, fields) "
                         "VALUES (?, ?, ?, ?, ?)", record)

    def logs(self, *arguments, **options):
        return self.succeed("logs", "--state", str(self.state), *arguments, **options).output

    def test_records_are_lines_that_steer_no_terminal(self):
        self.fill()
        self.assertEqual(self.logs().splitlines(), LINES)

    def test_level_time_and_number_choose(self):
        self.fill()
        debug = "2001-09-09T01:46:40.000Z debug  sync  detail"
        self.assertEqual(self.logs("--level", "debug").splitlines(), [debug, *LINES])
        self.assertEqual(self.logs("-l", "error").splitlines(), LINES[2:])
        self.assertEqual(self.logs("--since", "2023-11-14").splitlines(), LINES[1:])
        self.assertEqual(self.logs("-s", "2023-11-14T22:13:20.003Z").splitlines(), LINES[2:])
        self.assertEqual(self.logs("--since", "1d"), "")
        self.assertEqual(self.logs("-n", "1").splitlines(), LINES[2:])

    def test_json_has_a_document_a_line(self):
        self.fill()
        records = [json.loads(line) for line in self.logs("--json").splitlines()]
        self.assertEqual(records[0], {
            "ts": "2001-09-09T01:46:40.001Z", "level": "info", "tag": "sync", "msg": "applied",
            "changes": 3, "ok": True})
        self.assertEqual(records[1]["msg"], "no answer\x1b[2J\nfake")
        self.assertEqual(len(records), 3)

    def test_a_slip_is_a_usage_error(self):
        self.fill()
        for words in (["--level", "loud"], ["--since", "yesterday"], ["--since", "m"], ["-n", "x"],
                      ["-s", "-5m"], ["remove"], ["clear", "--json"], ["clear", "now"]):
            with self.subTest(words):
                self.fail_with(2, "logs", "--state", str(self.state), *words)

    def test_what_is_not_there_is_said(self):
        error = self.fail_with(1, "logs", "--state", str(self.state)).error
        self.assertIn("there is no log in", error)
        error = self.fail_with(1, "logs", "--state", str(self.directory / "none")).error
        self.assertIn("name the right one with --state", error)
        self.assertEqual(os.listdir(self.state), [])

    def test_clear_removes_and_overwrites(self):
        database = self.fill()
        database.execute("INSERT INTO record (milliseconds, level, tag, message) "
                         "VALUES (0, 1, 't', 'needle')")
        self.assertEqual(self.logs("clear"), "")
        self.assertEqual(self.logs("--level", "debug"), "")
        for name in os.listdir(self.state):
            self.assertNotIn(b"needle", (self.state / name).read_bytes(), name)
        self.add(database, RECORDS[3])
        self.assertEqual(self.logs().splitlines(), LINES[2:])

    def test_following_shows_what_comes_until_it_is_ended(self):
        database = self.fill()
        with subprocess.Popen(
                [COMMAND, "logs", "--state", str(self.state), "-f", "-n", "1"],
                stdout=subprocess.PIPE, text=True) as process:
            self.assertEqual(process.stdout.readline().rstrip("\n"), LINES[2])
            self.wait_for(lambda: (self.state / "log.follow").exists())
            self.add(database, RECORDS[0])  # debug: not asked for
            self.add(database, RECORDS[1])
            self.assertEqual(process.stdout.readline().rstrip("\n"), LINES[0])
            process.terminate()
            self.assertEqual(process.wait(20), 0)
        self.assertFalse((self.state / "log.follow").exists())

    def test_c92_following_into_a_closed_pipe_ends(self):
        self.fill()
        with subprocess.Popen([COMMAND, "logs", "--state", str(self.state), "-f"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.readline()
            process.stdout.close()
            self.assertEqual(process.wait(20), 0)
            self.assertEqual(process.stderr.read(), b"")

    def test_colours_are_for_terminals_that_want_them(self):
        self.fill()
        for variables, is_coloured in (({}, True), ({"NO_COLOR": "1"}, False),
                                       ({"TERM": "dumb"}, False)):
            with self.subTest(variables):
                self.assertEqual("\x1b[33mwarn" in self.on_terminal(variables), is_coloured)

    def on_terminal(self, variables):
        ours, theirs = pty.openpty()
        try:
            subprocess.run(
                [COMMAND, "logs", "--state", str(self.state)], stdout=theirs, check=True,
                env={"PATH": os.environ["PATH"], "TERM": "xterm", **variables}, timeout=60)
            return os.read(ours, 65536).decode()
        finally:
            os.close(ours)
            os.close(theirs)

    def wait_for(self, condition):
        for _ in range(2000):
            if condition():
                return
            time.sleep(0.01)
        self.fail("the condition did not come true")


if __name__ == "__main__":
    unittest.main()
