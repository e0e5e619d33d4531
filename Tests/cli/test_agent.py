# SPDX-License-Identifier: Apache-2.0
"""enroll, agent, status, wait, unenroll: against a hub that misbehaves and a keeper that records."""
import getpass
import json
import os
import signal
import socket
import subprocess
import time
import unittest

from fake_hub import Hub, Keeper
from support import COMMAND, CommandTest

PATIENCE = 40
MACHINE = "0123456789abcdef0123456789abcdef"


class AgentTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.hub = Hub()
        self.addCleanup(self.hub.close)
        self.keeper = Keeper(str(self.directory))
        self.addCleanup(self.keeper.close)
        self.machine = MACHINE
        self.variables = {}
        self.socket = str(self.directory / "agent.sock")
        self.state = self.directory / "state"
        self.where = ["--state", str(self.state), "--socket", self.socket,
                      "--user", getpass.getuser()]
        self.log = self.directory / "agent.log"
        self.agent = None

    def environment(self):
        return {"NEXUSGUARD_MACHINE_ID": self.machine, "PATH": os.environ["PATH"],
                **self.variables}

    def enroll(self, *more, token=None):
        path = self.write("token", token or self.hub.token)
        return self.run_command(
            "enroll", self.hub.url, "--token-file", path, *self.where, *more,
            env=self.environment())

    def enrolled(self):
        result = self.enroll()
        self.assertEqual(result.returncode, 0, result.error)

    def start(self, *more):
        with open(self.log, "ab") as log:
            self.agent = subprocess.Popen(
                [COMMAND, "agent", *self.where, "--keeper-directory", str(self.directory), *more],
                stderr=log, stdin=subprocess.DEVNULL, env=self.environment())
        self.addCleanup(self.stop)

    def stop(self, how=signal.SIGTERM):
        if self.agent and self.agent.poll() is None:
            self.agent.send_signal(how)
            self.agent.wait(20)

    def until(self, condition, what):
        """Waits for a condition, with a bound."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = condition()
            if found:
                return found
            time.sleep(0.02)
        self.fail(f"did not happen: {what}\n{self.log.read_text()[-3000:]}")
        return None

    def status(self):
        """What `nexusguard status --json` prints, without a process for each look."""
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(self.socket)
                client.sendall(b'{"schemaVersion":1,"verb":"status"}\n')
                with client.makefile() as stream:
                    return json.loads(stream.readline())["status"]
        except OSError:
            return None

    def until_status(self, condition, what):
        return self.until(lambda: (s := self.status()) and condition(s) and s, what)

    def ask_heartbeat(self):
        """As `AgentClient.requestHeartbeat`: one now, and returns what was sent."""
        before = len(self.hub.heartbeats)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.socket)
            client.sendall(b'{"schemaVersion":1,"verb":"heartbeat"}\n')
            self.assertIn(b'"ok":true', client.recv(4096))
        self.until(lambda: len(self.hub.heartbeats) > before, "a heartbeat")
        return self.hub.heartbeats[-1]

    def running(self):
        self.enrolled()
        self.start()
        self.until_status(lambda s: s["sync"].get("configHash") == "hash-1", "the tunnel is up")
        self.ask_heartbeat()
        self.until_status(lambda s: s["control"]["standing"] == "connected", "the hub answers")


class Enrolment(AgentTest):
    def test_case_C72_a_lost_answer_costs_nothing(self):
        self.hub.lost_answers = 2
        self.enrolled()
        keys = {request["publicKey"] for request in self.hub.provisions}
        self.assertEqual(len(self.hub.provisions), 3)
        self.assertEqual(len(keys), 1, "the hub sees one device")

    def test_the_private_key_stays_here(self):
        result = self.enroll("--json", "--name", "edge-1")
        report = json.loads(result.output)
        self.assertEqual(report["deviceId"], self.hub.device)
        self.assertEqual(report["ipAddress"], "10.172.21.2/32")
        self.assertFalse(report["agentRuns"])
        request = self.hub.provisions[0]
        self.assertNotIn("privateKey", request)
        self.assertEqual(request["hwid"], MACHINE)
        self.assertEqual(request["name"], "edge-1")

    def test_case_C94_nothing_secret_lies_open_on_disk(self):
        self.enrolled()
        self.assertEqual(os.stat(self.state).st_mode & 0o777, 0o700)
        secrets = [self.hub.token, self.hub.bearer, "10.172.21.2"]
        for path in self.state.rglob("*"):
            self.assertEqual(path.stat().st_mode & 0o077, 0, path)
            text = path.read_bytes()
            for secret in secrets:
                self.assertNotIn(secret.encode(), text, path)

    def test_case_C94_a_token_is_no_argument(self):
        self.fail_with(2, "enroll", self.hub.url, "--token", self.hub.token)
        self.fail_with(2, "enroll", self.hub.url, self.hub.token)
        self.fail_with(2, "enroll", self.hub.url, *self.where, env=self.environment())
        path = self.write("open-token", self.hub.token, mode=0o644)
        error = self.fail_with(
            4, "enroll", self.hub.url, "--token-file", path, *self.where,
            env=self.environment()).error
        self.assertIn("chmod 600", error)
        self.assertNotIn(self.hub.token, error)

    def test_a_token_comes_from_standard_input_or_a_descriptor(self):
        self.succeed("enroll", self.hub.url, "--token-file", "-", *self.where,
                     text=self.hub.token + "\n", env=self.environment())
        read, write = os.pipe()
        os.write(write, self.hub.token.encode())
        os.close(write)
        result = subprocess.run(
            [COMMAND, "enroll", self.hub.url, "--token-fd", str(read), "--replace", *self.where],
            pass_fds=[read], env=self.environment(), capture_output=True, check=False)
        os.close(read)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_refused_token_is_exit_code_6(self):
        result = self.enroll(token="wrong-token-0123")
        self.assertEqual(result.returncode, 6)
        self.assertNotIn("wrong-token-0123", result.error)

    def test_a_hub_that_is_away_is_exit_code_69(self):
        self.hub.close()
        self.hub.close = lambda: None
        result = self.enroll("--timeout", "0")
        self.assertEqual(result.returncode, 69)
        self.assertIn("cannot reach", result.error)

    def test_plain_http_leads_to_this_machine_only(self):
        path = self.write("token", self.hub.token)
        for url in ["http://192.0.2.1", "http://hub.example:8080", "ftp://hub.example",
                    "hub.example", "https://user@hub.example", "https://"]:
            with self.subTest(url):
                self.fail_with(2, "enroll", url, "--token-file", path, *self.where,
                               env=self.environment())
        self.assertEqual(self.hub.calls, [])

    def test_an_identity_is_replaced_on_demand_only(self):
        self.enrolled()
        self.assertEqual(self.enroll().returncode, 8)
        self.assertEqual(len(self.hub.provisions), 1)
        self.assertEqual(self.enroll("--replace").returncode, 0)

    def test_a_running_agent_takes_the_identity_up(self):
        self.start()
        status = self.until_status(lambda s: s["phase"] == "appRetry", "it waits")
        self.assertEqual(status["code"], "not_enrolled")
        result = self.enroll("--json")
        self.assertTrue(json.loads(result.output)["agentRuns"], result.error)
        self.until_status(lambda s: s["sync"].get("configHash") == "hash-1", "the tunnel is up")

    def test_beside_an_agent_that_cannot_be_told_nothing_is_enrolled(self):
        self.running()
        calls = len(self.hub.provisions)
        self.where[3] = str(self.directory / "no.sock")
        result = self.enroll("--replace")
        self.assertEqual(result.returncode, 8, result.error)
        self.assertIn(f"process {self.agent.pid}", result.error)
        self.assertIn("--socket", result.error)
        self.assertEqual(len(self.hub.provisions), calls)

    def test_an_agent_enrols_by_itself(self):
        path = self.write("token", self.hub.token)
        self.hub.lost_answers = 1
        self.start("--enroll", self.hub.url, "--token-file", path)
        self.until_status(lambda s: s["sync"].get("configHash") == "hash-1", "the tunnel is up")
        self.assertEqual(len({r["publicKey"] for r in self.hub.provisions}), 1)


class Running(AgentTest):
    def test_the_tunnel_is_applied_and_reported(self):
        self.running()
        request = self.keeper.applied[0]
        self.assertNotIn("Up =", request["configuration"])
        self.assertIn("AllowedIPs = 10.172.21.0/24", request["configuration"])
        self.assertTrue(request["options"]["persistent"])
        self.assertFalse(request["options"]["allowHooks"])
        self.keeper.handshake = int(time.time())
        self.keeper.received, self.keeper.sent = 1000, 2000
        self.until_status(lambda s: s["tunnel"]["connection"] == "connected", "liveness")
        beat = self.ask_heartbeat()
        self.assertEqual(beat["configHash"], "hash-1")
        self.assertEqual(beat["state"], "connected")
        self.assertEqual(beat["rxBytes"], 1000)
        self.assertEqual(beat["backend"], "userspace")
        self.assertEqual(self.run_command("wait", "--socket", self.socket).returncode, 0)
        shown = json.loads(self.succeed("status", "--json", "--socket", self.socket).output)
        self.assertEqual(shown["schemaVersion"], 1)
        self.assertEqual(shown["device"]["deviceId"], self.hub.device)
        text = self.succeed("status", "--socket", self.socket).output
        for field in ["IP Address", "Admin Web", "Device ID", "Handshake", "Allowed IPs",
                      "Transport", "Tunnel", "Control", "Storage"]:
            self.assertIn(field, text)
        self.assertIn(self.hub.device, text)
        for secret in [self.hub.bearer, self.hub.token]:
            self.assertNotIn(secret, text + self.log.read_text())

    def test_a_change_is_applied_and_another_name_for_the_same_is_not(self):
        self.running()
        self.hub.hash = "hash-2"
        self.ask_heartbeat()
        self.until_status(lambda s: s["sync"]["configHash"] == "hash-2", "the new name")
        self.assertEqual(len(self.keeper.applied), 1, "it means the same")
        self.hub.hash = "hash-3"
        self.hub.config["allowedIps"] = "10.172.21.0/24, 10.9.0.0/16"
        self.hub.forwards_hash = "forwards-2"
        self.hub.forwards = [{"id": "web", "protocol": "tcp", "publicPort": 8443,
                              "targetIp": "10.172.21.2", "targetPort": 443}]
        self.ask_heartbeat()
        status = self.until_status(lambda s: s["sync"]["configHash"] == "hash-3", "the change")
        self.assertIn("10.9.0.0/16", self.keeper.applied[-1]["configuration"])
        self.assertEqual(status["forwards"][0]["publicPort"], 8443)
        self.assertEqual(status["sync"]["forwardsHash"], "forwards-2")

    def test_what_cannot_be_applied_is_reported_and_the_old_one_stays(self):
        self.running()
        self.hub.hash = "hash-bad"
        self.hub.config["allowedIps"] = "10.172.21.0/24\nPostUp = touch /tmp/x"
        self.ask_heartbeat()
        status = self.until_status(lambda s: s["sync"].get("rejectedHash"), "the rejection")
        self.assertEqual(status["sync"]["rejectedCode"], "prefix_invalid")
        self.assertEqual(status["sync"]["configHash"], "hash-1")
        beat = self.ask_heartbeat()
        self.assertEqual(beat["rejectedHash"], "hash-bad")
        self.assertEqual(len(self.keeper.applied), 1)
        self.hub.hash, self.hub.config["allowedIps"] = "hash-good", "10.172.21.0/25"
        self.ask_heartbeat()
        status = self.until_status(lambda s: s["sync"]["configHash"] == "hash-good", "repair")
        self.assertNotIn("rejectedHash", status["sync"])

    def test_case_C65_c69_answers_that_are_none_cost_nothing_but_themselves(self):
        self.running()
        applied = len(self.keeper.applied)
        lines = len(self.log.read_text().splitlines())
        body = b"x" * 5000
        misbehaviours = {
            "status 500": lambda h, r, q: h.send(r, 500, body, "text/plain"),
            "portal": lambda h, r, q: h.send(r, 200, b"<html>log in</html>", "text/html"),
            "no json": lambda h, r, q: h.send(r, 200, b"{\"configHash\":"),
            "cut": lambda h, r, q: h.send(r, 200, b"{\"configHash\"", length=5000),
            "tag": lambda h, r, q: h.good(r, q, damage=True),
            "10 MB": lambda h, r, q: h.send(r, 200, b" " * (10 << 20)),
            "bare 401": lambda h, r, q: h.send(r, 401, body, "text/html"),
            "bare 404": lambda h, r, q: h.send(r, 404, body, "text/html"),
            "bare 410": lambda h, r, q: h.send(r, 410, body, "text/html"),
            "other's 410": lambda h, r, q: h.problem(r, 410, "revoked", "another-device"),
        }
        for name, misbehave in misbehaviours.items():
            with self.subTest(name):
                self.hub.answer = misbehave
                self.ask_heartbeat()
                status = self.until_status(
                    lambda s: s["control"]["standing"] == "retrying", name)
                self.assertNotEqual(status["control"]["reason"], "")
                self.assertEqual(status["tunnel"]["standing"], "up")
                self.assertIsNone(self.agent.poll())
                self.hub.answer = None
                self.ask_heartbeat()
                self.until_status(lambda s: s["control"]["standing"] == "connected", "good again")
        self.assertEqual(len(self.keeper.applied), applied, "the tunnel was not touched")
        self.assertNotIn("down", self.keeper.requests)
        lines = len(self.log.read_text().splitlines()) - lines
        self.assertLess(lines, 2 * len(misbehaviours) + 1, "one line for each, one for its end")

    def test_case_C109_a_hub_that_stays_away_is_said_once_or_twice(self):
        self.running()
        before = len(self.log.read_text().splitlines())
        self.hub.answer = lambda h, r, q: h.send(r, 502, b"bad gateway", "text/html")
        for _ in range(12):
            self.ask_heartbeat()
        status = self.until_status(lambda s: s["control"]["standing"] == "failed", "failed")
        self.assertEqual(status["tunnel"]["standing"], "up")
        self.assertIn("502", status["control"]["reason"])
        self.assertLess(len(self.log.read_text().splitlines()) - before, 5)

    def test_case_C75_c76_kill_and_restart_keep_the_identity(self):
        self.running()
        first = self.hub.heartbeats[-1]
        self.stop(signal.SIGKILL)
        # With the hub away, the last good configuration is in place all the same (C64).
        self.hub.answer = lambda h, r, q: h.send(r, 503, b"", "text/html")
        self.start()
        self.until_status(lambda s: s["sync"].get("configHash") == "hash-1", "the tunnel is up")
        second = self.ask_heartbeat()
        self.assertEqual(second["deviceId"], first["deviceId"])
        self.assertEqual(second["boot"], first["boot"] + 1)
        self.assertNotEqual(second["sessionId"], first["sessionId"])
        self.assertEqual(len(self.hub.provisions), 1)
        keys = {line for request in self.keeper.applied
                for line in request["configuration"].splitlines() if "PrivateKey" in line}
        self.assertEqual(len(keys), 1)

    def test_case_C68_a_revoked_device_takes_its_tunnel_down_for_good(self):
        self.running()
        self.hub.answer = lambda h, r, q: h.problem(r, 410, "revoked", h.device)
        self.ask_heartbeat()
        self.assertEqual(self.agent.wait(PATIENCE), 7)
        self.assertIn("down", self.keeper.requests)
        applied, beats = len(self.keeper.applied), len(self.hub.heartbeats)
        self.start()
        self.assertEqual(self.agent.wait(PATIENCE), 7)
        self.assertEqual(len(self.keeper.applied), applied)
        self.assertEqual(len(self.hub.heartbeats), beats)

    def test_case_C77_leaving_tells_the_hub_and_keeps_the_logs(self):
        self.running()
        self.succeed("unenroll", "--socket", self.socket)
        self.assertIn("/api/v1/unenroll", self.hub.calls)
        self.assertIsNone(self.keeper.configuration)
        status = self.status()
        self.assertFalse(status["isEnrolled"])
        self.assertEqual(status["code"], "not_enrolled")
        self.assertFalse(list(self.state.glob("identity*")))
        self.fail_with(3, "unenroll", "--socket", self.socket)

    def test_without_the_hub_leaving_needs_force(self):
        self.running()
        self.hub.bearer = "somebody else's"
        error = self.fail_with(69, "unenroll", "--socket", self.socket).error
        self.assertIn("--force", error)
        self.assertIsNotNone(self.keeper.configuration)
        self.succeed("unenroll", "--force", "--socket", self.socket)
        self.assertIsNone(self.keeper.configuration)

    def test_case_C72_a_new_key_is_used_once_the_hub_knows_it(self):
        self.running()
        self.keeper.handshake = int(time.time()) - 5
        self.until_status(lambda s: s["tunnel"].get("lastHandshake"), "a handshake")
        old = [line for line in self.keeper.configuration.splitlines() if "PrivateKey" in line]
        self.hub.command = {"type": "rotateKey"}
        self.ask_heartbeat()
        self.until(lambda: len(self.keeper.applied) > 1, "the switch")
        self.assertTrue(self.hub.rotated)
        new = [line for line in self.keeper.configuration.splitlines() if "PrivateKey" in line]
        self.assertNotEqual(old, new)
        self.keeper.handshake = int(time.time()) + 1
        self.until(lambda: "the new key is in use" in self.log.read_text(), "the proof")
        self.stop(signal.SIGKILL)
        self.start()
        self.until(lambda: len(self.keeper.applied) > 2, "the start")
        again = [line for line in self.keeper.configuration.splitlines() if "PrivateKey" in line]
        self.assertEqual(new, again)

    def test_case_C73_a_copy_of_the_state_is_no_second_device(self):
        self.running()
        self.stop()
        applied, beats = len(self.keeper.applied), len(self.hub.heartbeats)
        self.machine = "f" * 32
        self.start()
        status = self.until_status(lambda s: s["phase"] == "appRetry", "it refuses")
        self.assertEqual(status["code"], "other_machine")
        self.assertEqual(len(self.keeper.applied), applied)
        self.assertEqual(len(self.hub.heartbeats), beats)
        self.assertTrue(list(self.state.glob("identity*")), "the file is kept")
        self.assertEqual(self.enroll("--replace").returncode, 0)

    def test_case_C91_a_damaged_identity_is_kept_and_not_enrolled_anew(self):
        self.running()
        self.stop()
        path = next(self.state.glob("identity*"))
        damaged = path.read_bytes()[:-1] + b"\0"
        path.write_bytes(damaged)
        self.start("--enroll", self.hub.url, "--token-file", self.write("t", self.hub.token))
        status = self.until_status(lambda s: s["phase"] == "appRetry", "it refuses")
        self.assertEqual(status["code"], "cannot_unseal")
        self.assertEqual(path.read_bytes(), damaged)
        self.assertEqual(len(self.hub.provisions), 1)

    def test_a_keeper_that_is_away_is_waited_for(self):
        self.enrolled()
        self.keeper.failure = {"kind": "busy", "exitCode": 8, "message": "something else runs"}
        self.start()
        status = self.until_status(lambda s: s["tunnel"]["standing"] == "failed", "it fails")
        self.assertIn("something else runs", status["tunnel"]["reason"])
        beat = self.ask_heartbeat()
        self.assertFalse(beat["tunnelUp"])
        self.assertIn("tunnel_failed", beat["problems"])
        self.keeper.failure = None
        self.until_status(lambda s: s["tunnel"]["standing"] == "up", "it is up")

    def test_case_C112_both_planes_are_shown_apart(self):
        self.running()
        self.keeper.handshake = int(time.time())
        self.hub.answer = lambda h, r, q: h.send(r, 503, b"", "text/html")
        self.ask_heartbeat()
        self.until_status(
            lambda s: s["tunnel"]["connection"] == "connected"
            and s["control"]["standing"] == "retrying", "hub away, tunnel well")
        self.assertEqual(
            self.run_command("wait", "--for", "tunnel", "--socket", self.socket).returncode, 0)
        failed = self.run_command(
            "wait", "--for", "control", "--timeout", "0", "--socket", self.socket)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("503", failed.error)

    def test_a_hub_that_asks_for_a_newer_agent_is_shown_and_nothing_else_happens(self):
        self.running()
        self.assertEqual(self.hub.heartbeats[-1]["protocolVersion"], 1)
        self.hub.answer = lambda h, r, q: h.problem(r, 426, "upgrade_required", h.device)
        self.ask_heartbeat()
        status = self.until_status(
            lambda s: s["control"]["standing"] == "upgradeRequired", "it is told")
        self.assertEqual(status["tunnel"]["standing"], "up")
        text = self.succeed("status", "--socket", self.socket).output
        self.assertIn("upgrade nexusguard", text)
        self.assertIsNone(self.agent.poll())
        self.hub.answer = None
        self.ask_heartbeat()
        self.until_status(lambda s: s["control"]["standing"] == "connected", "upgraded")

    def test_case_C74_a_service_manager_hears_that_it_is_ready_well_and_how_it_is(self):
        self.enrolled()
        self.keeper.handshake = int(time.time())
        path = str(self.directory / "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(PATIENCE)
            self.variables = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"}
            self.start()
            said = []

            def hear(line):
                while line not in said:
                    said.extend(manager.recv(4096).decode().split("\n"))

            hear("READY=1")
            for _ in range(3):
                said.clear()
                hear("WATCHDOG=1")
            self.ask_heartbeat()
            hear("STATUS=tunnel: connected, hub: connected")
            self.hub.answer = lambda h, r, q: h.send(r, 503, b"", "text/html")
            self.ask_heartbeat()
            while not any(line.startswith("STATUS=tunnel: connected, hub: retrying (")
                          for line in said):
                said.extend(manager.recv(4096).decode().split("\n"))
            self.stop()
            hear("STOPPING=1")

    def test_one_agent_for_each_state(self):
        self.running()
        second = subprocess.run(
            [COMMAND, "agent", "--state", str(self.state), "--socket", self.socket + "2",
             "--user", getpass.getuser(), "--keeper-directory", str(self.directory)],
            env=self.environment(), capture_output=True, check=False)
        self.assertEqual(second.returncode, 8)
        self.assertEqual(
            self.run_command("status", "--socket", str(self.directory / "no")).returncode, 3)


if __name__ == "__main__":
    unittest.main()
