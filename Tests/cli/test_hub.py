# SPDX-License-Identifier: Apache-2.0
"""The hub end to end: its commands, its HTTP, its keeper, its files."""
import json
import os
import sqlite3
import stat
import subprocess
import threading
import unittest

from hub_support import BOUND, HubTest, key, wait_for


class Enrolment(HubTest):
    def test_a_device_comes_and_goes(self):
        device = self.enrol()
        listed = self.view("device", "list")
        self.assertEqual([item["name"] for item in listed["items"]], ["gate-1"])
        shown = self.view("device", "show", "gate-1")
        self.assertEqual((shown["control"], shown["tunnel"]["state"]), ("reporting", "connected"))
        self.hub("device", "revoke", "gate-1")
        status, answer = self.heartbeat(device, 2)
        self.assertEqual((status, answer["code"]), (410, "revoked"))
        self.assertEqual(answer["deviceId"], device["deviceId"])
        self.hub("device", "forget", device["deviceId"])
        status, answer = self.heartbeat(device, 3)
        self.assertEqual((status, answer["code"]), (404, "unknown_device"))

    def test_parallel_requests_with_one_token_make_one_device(self):
        token, answers = self.token(), []
        threads = [threading.Thread(
            target=lambda number=number: answers.append(self.provision(token, number % 4)))
            for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(BOUND)
        self.assertEqual(len(answers), 16)
        self.assertEqual({status for status, _ in answers}, {200, 403})
        self.assertEqual(len({a["deviceId"] for status, a in answers if status == 200}), 1)
        self.assertEqual(self.view("device", "list")["total"], 1)

    def test_case_C94_a_token_is_shown_once_and_only_its_digest_is_kept(self):
        token = self.token()
        _, answer = self.provision(token)
        self.assertNotIn(token, json.dumps(self.view("token", "list")))
        self.stop_hub()
        for path in (self.directory / "state").iterdir():
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600, path)
            for secret in (token, answer["deviceToken"]):
                self.assertNotIn(secret.encode(), path.read_bytes(), path)
        self.assertNotIn(token, self.log_text())
        self.assertEqual(stat.S_IMODE((self.directory / "state").stat().st_mode), 0o700)

    def test_case_C65_a_killed_hub_knows_its_devices(self):
        device = self.enrol()
        self.stop_hub(kill=True)
        self.start_hub()
        status, _ = self.heartbeat(device, 2)
        self.assertEqual(status, 200)
        self.assertEqual(self.view("device", "list")["total"], 1)
        self.assertEqual(self.stop_hub(), 0)


class Tunnel(HubTest):
    def peers(self):
        latest = self.keeper.latest()
        text = latest["configuration"] if latest else ""
        return [line.split("= ")[1] for line in text.splitlines() if line.startswith("PublicKey")]

    def test_peers_and_forwards_reach_the_keeper(self):
        self.enrol(1)
        self.enrol(2)
        wait_for(lambda: sorted(self.peers()) == sorted([key(1), key(2)]), "two peers")
        self.hub("forward", "add", "gate-1", "tcp:9443", ":443", "--id", "web")
        forwards = wait_for(lambda: self.keeper.latest()["options"].get("forwards"), "a forward")
        self.assertEqual(len(forwards), 1)
        self.assertEqual((forwards[0]["publicPort"], forwards[0]["targetPort"]), (9443, 443))
        self.assertTrue(self.keeper.latest()["options"]["forwardsBetweenPeers"])
        self.hub("device", "revoke", "gate-1")
        wait_for(lambda: self.peers() == [key(2)], "one peer")
        self.assertNotIn("forwards", self.keeper.latest()["options"])
        wait_for(lambda: "good" in self.hub("status").output, "the status says so")

    def test_a_refusal_of_the_keeper_is_shown_and_tried_again(self):
        self.keeper.refusal = "no link for you"
        self.enrol()
        wait_for(lambda: "no link for you" in self.hub("status").output, "the reason")
        wait_for(lambda: self.view("alarm", "list")["items"], "an alarm")
        self.keeper.refusal = None
        wait_for(lambda: self.peers() == [key(1)], "the peer")
        wait_for(lambda: not self.view("alarm", "list")["items"], "no alarm")

    def test_a_rotation_follows_the_handshake(self):
        device = self.enrol()
        status, _ = self.ask("POST", "/api/v1/device/rotate", {"publicKey": key(99)},
                             token=device["deviceToken"])
        self.assertEqual(status, 200)
        wait_for(lambda: self.peers() == [key(1), key(99)], "the new key beside the old")
        peer = {"publicKey": key(99), "endpoint": "127.0.0.1:9", "latestHandshake": 1_800_000_000,
                "receivedBytes": 180, "sentBytes": 0, "persistentKeepalive": 0, "allowedIps": []}
        self.keeper.peers = [peer]
        wait_for(lambda: self.peers() == [key(99), key(1)], "the prefixes moved")
        self.keeper.peers = [{**peer, "receivedBytes": 5000}]
        wait_for(lambda: self.peers() == [key(99)], "the old key gone")


class Events(HubTest):
    def test_a_device_hears_of_changes(self):
        device = self.enrol()
        connection = self.connection()
        connection.request("GET", "/api/v1/device/events",
                           headers={"Authorization": f"Bearer {device['deviceToken']}"})
        answer = connection.getresponse()
        self.assertEqual((answer.status, answer.getheader("Content-Type")),
                         (200, "text/event-stream"))
        self.hub("set", "mtu=1400")
        self.assertEqual(self.event(answer), "config")
        self.hub("forward", "add", "gate-1", "udp:5000-5010")
        self.assertEqual(self.event(answer), "forwards")
        self.hub("device", "reset", "gate-1")
        self.assertEqual(self.event(answer), "command")
        self.assertEqual(self.stop_hub(), 0)  # streams do not keep it
        connection.close()

    def event(self, stream):
        while True:
            line = stream.readline()
            self.assertTrue(line, "the stream has ended")
            if line.startswith(b"event: "):
                return line[7:].strip().decode()


class Commands(HubTest):
    def test_forwards_are_refused_by_name(self):
        self.enrol()
        for words in (["gate-1", f"tcp:{self.port}"], ["gate-1", "udp:51820"], ["gate-1", "tcp:22"],
                      ["gate-1", "tcp:80", "192.0.2.1:80"], ["nobody", "tcp:80"]):
            self.fail_with(1, "hub", *self.placed(["forward", "add", *words]))
        for words in (["gate-1", "80"], ["gate-1", "tcp:x"], ["gate-1"]):
            self.fail_with(2, "hub", *self.placed(["forward", "add", *words]))

    def test_forwards_are_shown_by_device(self):
        self.enrol(1)
        self.enrol(2)
        self.hub("forward", "add", "gate-1", "tcp:8443", ":443", "--id", "web")
        self.hub("forward", "add", "gate-2", "udp:5000-5010", "--id", "voice")
        for words in (["--device", "gate-2"], ["gate-2"]):
            text = self.hub("forward", "list", *words).output
            self.assertIn("voice  udp 5000-5010", text)
            self.assertNotIn("web", text)
        self.assertIn("forward: web, tcp 8443 to 10.99.0.2 port 443\n",
                      self.hub("device", "show", "gate-1").output)
        self.assertEqual([rule["id"] for rule in self.view("device", "show", "gate-1")["forwards"]],
                         ["web"])
        self.hub("device", "revoke", "gate-1")
        self.assertNotIn("forward:", self.hub("device", "show", "gate-1").output)
        self.fail_with(1, "hub", *self.placed(["forward", "list", "--device", "nobody"]))

    def test_what_is_no_command_is_a_usage_error(self):
        for words in (["nonsense"], ["token"], ["token", "nonsense"], ["token", "create", "x"],
                      ["device", "show"], ["--listen", "1", "token", "list"]):
            self.fail_with(2, "hub", *words)
        self.assertIn("token create", self.succeed("hub", "--help").output)
        self.assertIn("Usage: nexusguard hub token create",
                      self.succeed("hub", "token", "create", "--help").output)

    def test_without_a_hub_the_code_is_3(self):
        self.stop_hub()
        self.fail_with(3, "hub", *self.placed(["status"]))

    def test_two_hubs_do_not_share_a_state(self):
        result = self.fail_with(
            8, "hub", "run", "--plain-loopback", "0", "--state", str(self.directory / "state"),
            "--socket", self.socket + "2", "--keeper-directory", str(self.directory / "keep"),
            *(["--user", "root"] if os.geteuid() == 0 else []),
            env={"NEXUSGUARD_MACHINE_ID": "1" * 32})
        self.assertIn("already running", result.error)

    def test_plain_http_is_for_loopback_only(self):
        self.fail_with(2, "hub", "run", "--plain-loopback", "0", "--listen", "80")

    def test_operators_log_in(self):
        self.write("password", "a password of some length\n")
        self.hub("operator", "add", "ada", "--password-file", "password")
        status, answer = self.ask("POST", "/api/v1/admin/login",
                                  {"name": "ada", "password": "a password of some length"})
        self.assertEqual(status, 200, answer)
        status, page = self.ask("GET", "/api/v1/admin/devices", token=answer["session"])
        self.assertEqual((status, page["total"]), (200, 0))
        status, _ = self.ask("GET", "/api/v1/admin/devices")
        self.assertEqual(status, 401)


class Moving(HubTest):
    def test_a_backup_goes_on_on_another_machine(self):
        device = self.enrol()
        self.hub("forward", "add", "gate-1", "tcp:9443", "--id", "web")
        public = self.view("status")["publicKey"]
        self.write("passphrase", "a passphrase of some length\n")
        self.write("wrong", "another passphrase of length\n")
        self.hub("backup", "hub.backup", "--passphrase-file", "passphrase")
        self.assertEqual(stat.S_IMODE((self.directory / "hub.backup").stat().st_mode), 0o600)
        self.assertNotIn(b"gate-1", (self.directory / "hub.backup").read_bytes())
        self.stop_hub()
        other = {"NEXUSGUARD_MACHINE_ID": "1" * 32}
        user = ["--user", "root"] if os.geteuid() == 0 else []
        self.fail_with(1, "hub", "restore", "hub.backup", "--passphrase-file", "wrong",
                       "--state", "moved", *user, env=other)
        self.succeed("hub", "restore", "hub.backup", "--passphrase-file", "passphrase",
                     "--state", "moved", *user, env=other)
        # Not over a hub that is there.
        self.fail_with(1, "hub", "restore", "hub.backup", "--passphrase-file", "passphrase",
                       "--state", "moved", *user, env=other)
        self.start_hub("moved")
        self.assertEqual(self.view("status")["publicKey"], public)
        status, _ = self.heartbeat(device, 2)
        self.assertEqual(status, 200)
        self.assertEqual([item["id"] for item in self.view("forward", "list")["items"]], ["web"])

    def test_case_C73_a_copied_state_does_not_run_elsewhere(self):
        self.stop_hub()
        result = self.fail_with(
            1, "hub", "run", "--plain-loopback", "0", "--state", str(self.directory / "state"),
            "--socket", self.socket, "--keeper-directory", str(self.directory / "keep"),
            *(["--user", "root"] if os.geteuid() == 0 else []),
            env={"NEXUSGUARD_MACHINE_ID": "2" * 32})
        self.assertIn("another machine", result.error)


class Encrypted(HubTest):
    options = ["--listen", "127.0.0.1:0"]

    def test_its_own_certificate_is_known_by_its_pin(self):
        self.assertRegex(self.pin, r"^sha256//[A-Za-z0-9+/]{43}=$")
        url = f"https://127.0.0.1:{self.port}/api/v1/openapi.json"

        def curl(pin, *options):
            return subprocess.run(
                ["curl", "--silent", "--insecure", "--pinnedpubkey", pin, *options, url],
                capture_output=True, timeout=BOUND, check=False)
        self.assertEqual(curl(self.pin).returncode, 0)
        self.assertEqual(curl("sha256//" + "A" * 43 + "=").returncode, 90)  # CURLE_SSL_PINNEDPUBKEYNOTMATCH
        self.assertNotEqual(curl(self.pin, "--tls-max", "1.1").returncode, 0)
        device = self.enrol()
        pin = self.pin
        self.stop_hub()
        self.start_hub()
        self.assertEqual(self.pin, pin)
        self.assertEqual(self.heartbeat(device, 2)[0], 200)


class Attacks(HubTest):
    def test_an_oversized_body_is_cut(self):
        try:
            status, _ = self.ask("POST", "/api/v1/provision", b"x" * (2 << 20))
            self.assertEqual(status, 413)
        except (BrokenPipeError, ConnectionResetError):
            pass  # answered before all was sent
        self.assertEqual(self.ask("GET", "/api/v1/openapi.json")[0], 200)

    def test_paths_with_tricks_lead_nowhere(self):
        for path in ("/api/v1/admin/../admin/counts", "//api/v1/openapi.json", "/%2e%2e/etc/passwd",
                     "/api/v1/openapi.json%00", "/api/v1/openapi.json/"):
            self.assertEqual(self.ask("GET", path)[0], 404, path)
        self.assertEqual(self.ask("DELETE", "/api/v1/heartbeat")[0], 405)

    def test_a_name_of_an_older_hub_steers_no_terminal(self):
        self.enrol()
        self.hub("device", "reset", "gate-1")
        self.stop_hub()
        name = "gate\x1b[2J\u202e1"
        database = sqlite3.connect(self.directory / "state" / "hub.db")
        with database:
            database.execute("UPDATE devices SET name = ?", (name,))
            database.execute("UPDATE log SET message = ?", (f"{name} enrolled",))
        database.close()
        self.start_hub()
        shown = [self.hub("device", "list"), self.hub("device", "show", name), self.hub("log"),
                 self.run_command("hub", *self.placed(["device", "forget", name]))]
        for result in shown:
            text = result.output + result.error
            self.assertIn("gate", text)
            self.assertNotIn("\x1b", text)
            self.assertNotIn("\u202e", text)

    def test_wrong_tokens_lock_nobody_out(self):
        device = self.enrol()
        good = self.token()
        statuses = [self.provision("x" * 43, 9)[0] for _ in range(15)]
        self.assertIn(429, statuses)
        self.assertEqual(self.heartbeat(device, 2)[0], 200)
        self.assertEqual(self.provision(good, 2)[0], 200)


if __name__ == "__main__":
    unittest.main()
