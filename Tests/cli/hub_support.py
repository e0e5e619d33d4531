# SPDX-License-Identifier: Apache-2.0
"""A hub on loopback, a keeper that only remembers what it was asked, and devices without a tunnel."""
import base64
import hashlib
import http.client
import json
import os
import pwd
import re
import ssl
import subprocess
import time

from keeper_socket import KeeperSocket
from support import COMMAND, CommandTest

BOUND = 30  # seconds after which a condition is taken for never


def wait_for(condition, what):
    """Returns what the condition returns as soon as it is true."""
    end = time.monotonic() + BOUND
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"never: {what}")


def user_option():
    """Whom a hub becomes that root starts; others cannot become anybody."""
    return ["--user", pwd.getpwuid(os.geteuid()).pw_name] if os.geteuid() == 0 else []


class FakeKeeper(KeeperSocket):
    """Remembers what it was asked; the tunnel is not there."""

    def __init__(self, directory):
        self.requests, self.peers, self.refusal = [], [], None
        super().__init__(directory, "nghub0")

    def answer(self, request):
        if request["verb"] == "device":
            return {"ok": True, "device": {
                "backend": "kernel", "listenPort": 51820, "fwmark": 0, "mtu": 1420, "isUp": True,
                "peers": self.peers}}
        if self.refusal:
            return {"ok": False, "error": {
                "kind": "failed", "exitCode": 1, "message": self.refusal}}
        self.requests.append(request)
        return {"ok": True, "changes": [], "warnings": []}

    def latest(self):
        return self.requests[-1] if self.requests else None


class HubTest(CommandTest):
    """One hub for each test, in the test's directory."""
    options = ["--plain-loopback", "0"]

    def setUp(self):
        super().setUp()
        self.socket = str(self.directory / "hub.sock")
        (self.directory / "keep").mkdir()
        self.keeper = FakeKeeper(self.directory / "keep")
        self.addCleanup(self.keeper.close)
        self.process = None
        self.start_hub()
        self.hub("set", "endpoint=127.0.0.1:51820", "pools=10.99.0.0/24,fd99::/64")

    def start_hub(self, state="state"):
        log = open(self.directory / "hub.log", "ab")
        start = log.tell()
        environment = {"PATH": os.environ["PATH"], "NEXUSGUARD_MACHINE_ID": "1" * 32}
        self.process = subprocess.Popen(
            [COMMAND, "hub", "run", *self.options, "--state", str(self.directory / state),
             "--socket", self.socket, "--keeper-directory", str(self.directory / "keep"),
             *user_option()], stderr=log, cwd=self.directory, env=environment)
        log.close()
        self.addCleanup(self.stop_hub)

        def greeting():
            self.assertIsNone(self.process.poll(), self.log_text())
            text = (self.directory / "hub.log").read_bytes()[start:].decode()
            return re.search(r"listening: (?:http://127\.0\.0\.1:|https, port )(\d+)(?:, pin (\S+?);)?",
                             text)
        found = wait_for(greeting, "the hub listens")
        self.port, self.pin = int(found[1]), found[2]

    def stop_hub(self, kill=False):
        process, self.process = self.process, None
        if process is None:
            return 0
        if kill:
            process.kill()
        else:
            process.terminate()
        return process.wait(BOUND)

    def log_text(self):
        return (self.directory / "hub.log").read_text()

    # Operators.

    def hub(self, *arguments, **options):
        return self.succeed("hub", *self.placed(arguments), **options)

    def placed(self, arguments):
        return [*arguments, "--socket", self.socket]

    def view(self, *arguments):
        return json.loads(self.hub(*arguments, "--json").output)

    def token(self, *options):
        return self.hub("token", "create", "--quiet", *options).output.strip()

    # Devices.

    def connection(self):
        if self.pin:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE  # a test of its own looks at the certificate
            return http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=BOUND)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=BOUND)

    def ask(self, method, path, body=None, token=None, headers=None):
        connection = self.connection()
        fields = {"Content-Type": "application/json", **(headers or {})}
        if token:
            fields["Authorization"] = f"Bearer {token}"
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.request(method, path, data, fields)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if text.startswith(b"{") else text

    def provision(self, token, number=1):
        return self.ask("POST", "/api/v1/provision", {
            "token": token, "hwid": f"{number:032x}", "publicKey": key(number),
            "name": f"gate-{number}", "platform": "linux/amd64", "agentVersion": "0.1.0"})

    def enrol(self, number=1):
        status, answer = self.provision(self.token(), number)
        self.assertEqual(status, 200, answer)
        status, _ = self.heartbeat(answer)
        self.assertEqual(status, 200)
        return answer

    def heartbeat(self, device, sequence=1, **fields):
        return self.ask("POST", "/api/v1/heartbeat", {
            "deviceId": device["deviceId"], "boot": 1, "sessionId": "s", "sequence": sequence,
            "agentVersion": "0.1.0", "uptimeSeconds": 1, "state": "connected", "tunnelUp": True,
            "rxBytes": 1, "txBytes": 1, **fields}, token=device["deviceToken"])


def key(number):
    """A public key for machine `number`."""
    return base64.b64encode(hashlib.sha256(f"machine {number}".encode()).digest()).decode()
