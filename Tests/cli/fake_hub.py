# SPDX-License-Identifier: Apache-2.0
"""A hub and a keeper that do what a test tells them, on loopback and in its directory."""
import base64
import hashlib
import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from keeper_socket import KeeperSocket

HUB_KEY = "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="


def envelope(config, hwid, salt, damage=False):
    """docs/control-api.md, "Envelope"."""
    key = hashlib.sha256((hwid + salt).encode()).digest()
    nonce = secrets.token_bytes(12)
    sealed = bytearray(nonce + AESGCM(key).encrypt(nonce, json.dumps(config).encode(), None))
    if damage:
        sealed[-1] ^= 1
    return base64.b64encode(bytes(sealed)).decode()


class Hub:
    """`answer` is called for each heartbeat and returns what to send; None: all is well."""

    def __init__(self, interval=5):
        self.token = "token-" + secrets.token_hex(8)
        self.device = "6b2d8f0c-6a0e-4c07-9a38-0a51a6f8e2c1"
        self.bearer = base64.urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode()
        self.config = {
            "deviceId": self.device, "internalIp": "10.172.21.2/32", "serverPub": HUB_KEY,
            "endpoint": "192.0.2.1:51820", "dns": "", "allowedIps": "10.172.21.0/24",
            "serverWgIp": "10.172.21.1"}
        self.hash, self.forwards_hash = "hash-1", "forwards-1"
        self.forwards = None
        self.interval = interval
        self.answer = None
        self.command = None
        self.lost_answers = 0
        self.provisions, self.heartbeats, self.calls = [], [], []
        self.changed = threading.Condition()
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                hub.serve(self, self.path, body)

            def do_GET(self):
                hub.serve(self, self.path, b"")

        class Server(ThreadingHTTPServer):
            def handle_error(self, request, client_address):
                """A client that stops reading is what some tests want."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    # ---- answers --------------------------------------------------------------------------------

    @staticmethod
    def send(handler, status, body=b"", content_type="application/json", length=None, headers=()):
        handler.send_response(status)
        handler.send_header("Content-Type", content_type)
        handler.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers:
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)
        if length is not None:
            handler.close_connection = True

    def problem(self, handler, status, code, device=None):
        body = {"type": "about:blank", "title": code, "status": status, "code": code}
        if device:
            body["deviceId"] = device
        self.send(handler, status, json.dumps(body).encode(), "application/problem+json")

    def sealed(self, hwid, damage=False):
        salt = secrets.token_hex(16)
        config = dict(self.config, configHash=self.hash, forwardsHash=self.forwards_hash)
        return {"salt": salt, "encrypted": envelope(config, hwid, salt, damage)}

    def good(self, handler, request, damage=False, extra=None):
        body = {
            "configHash": self.hash, "forwardsHash": self.forwards_hash,
            "serverTime": "2026-11-30T10:00:00Z", "heartbeatSeconds": self.interval}
        if damage or (request.get("configHash") != self.hash
                      and request.get("rejectedHash") != self.hash):
            body.update(self.sealed(self.hwid, damage))
        if self.forwards is not None and request.get("forwardsHash") != self.forwards_hash:
            body["forwards"] = self.forwards
        if self.command:
            body["command"], self.command = self.command, None
        body.update(extra or {})
        self.send(handler, 200, json.dumps(body).encode())

    def serve(self, handler, path, body):
        with self.changed:
            self.calls.append(path)
            self.changed.notify_all()
        try:
            if path == "/api/v1/provision":
                return self.provision(handler, json.loads(body))
            if handler.headers.get("Authorization") != f"Bearer {self.bearer}":
                return self.problem(handler, 401, "auth_expired")
            if path == "/api/v1/heartbeat":
                return self.heartbeat(handler, json.loads(body))
            if path == "/api/v1/unenroll":
                return self.send(handler, 204)
            if path == "/api/v1/device/rotate":
                self.rotated = json.loads(body)["publicKey"]
                return self.send(handler, 200, b"{}")
            return self.send(handler, 404, b"<html>no such page</html>", "text/html")
        except ConnectionError:
            return None

    def provision(self, handler, request):
        with self.changed:
            self.provisions.append(request)
            self.changed.notify_all()
        if request["token"] != self.token:
            return self.problem(handler, 403, "token_refused")
        self.hwid = request["hwid"]
        body = json.dumps({
            "deviceId": self.device, "deviceToken": self.bearer, "heartbeatSeconds": self.interval,
            **self.sealed(self.hwid)}).encode()
        if self.lost_answers > 0:
            self.lost_answers -= 1
            return self.send(handler, 200, body[:40], length=len(body))
        return self.send(handler, 200, body)

    def heartbeat(self, handler, request):
        answer = self.answer
        try:
            if answer:
                answer(self, handler, request)
            else:
                self.good(handler, request)
        finally:
            with self.changed:
                self.heartbeats.append(request)
                self.changed.notify_all()


class Keeper(KeeperSocket):
    """The tunnel is an object."""

    def __init__(self, directory, interface="ng0"):
        self.applied, self.requests, self.configuration = [], [], None
        self.failure = None
        self.handshake, self.received, self.sent = 0, 0, 0
        self.changed = threading.Condition()
        super().__init__(directory, interface)

    def answer(self, request):
        with self.changed:
            verb = request["verb"]
            self.requests.append(verb)
            try:
                if verb == "apply" and self.failure:
                    return {"ok": False, "error": self.failure}
                if verb == "apply":
                    self.configuration = request["configuration"]
                    self.applied.append(request)
                    return {"ok": True, "isPlan": False, "changes": [], "warnings": []}
                if verb == "down":
                    self.configuration = None
                if verb == "status":
                    return {"ok": True, "interface": "ng0", "process": 1, "mended": 0,
                            "phase": "up" if self.configuration else "waiting", "unresolved": []}
                if verb == "device":
                    return {"ok": True, "device": self.device()}
                return {"ok": True}
            finally:
                self.changed.notify_all()

    def device(self):
        if not self.configuration:
            return None
        return {
            "backend": "userspace", "listenPort": 0, "fwmark": 0, "mtu": 1420, "isUp": True,
            "peers": [{
                "publicKey": HUB_KEY, "endpoint": "192.0.2.1:51820",
                "latestHandshake": self.handshake, "receivedBytes": self.received,
                "sentBytes": self.sent, "persistentKeepalive": 0,
                "allowedIps": ["10.172.21.0/24"]}]}
