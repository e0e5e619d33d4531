# SPDX-License-Identifier: Apache-2.0
"""Machines without a tunnel, for the size of a hub: fleet_devices.py URL FILE COUNT HEARTBEATS, an
enrolment token on standard input. FILE keeps who has enrolled; each sends heartbeats."""
import base64
import hashlib
import http.client
import json
import os
import ssl
import sys
import urllib.parse


def main(url, file, count, heartbeats):
    place = urllib.parse.urlsplit(url)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # other tests look at the certificate
    hub = http.client.HTTPSConnection(place.hostname, place.port, context=context, timeout=30)

    def ask(call, body, bearer=None):
        fields = {"Content-Type": "application/json"}
        if bearer:
            fields["Authorization"] = f"Bearer {bearer}"
        hub.request("POST", f"/api/v1/{call}", json.dumps(body), fields)
        answer = hub.getresponse()
        text = answer.read()
        if answer.status != 200:
            sys.exit(f"{call}: {answer.status} {text[:300]}")
        return json.loads(text)

    def enrol(token, number):
        key = base64.b64encode(hashlib.sha256(b"%d" % number).digest()).decode()
        return ask("provision", {
            "token": token, "hwid": f"{number + 1:032x}", "publicKey": key,
            "name": f"machine-{number}", "platform": "linux", "agentVersion": "0.1.0"})

    if not os.path.exists(file):
        token = sys.stdin.readline().strip()
        devices = [enrol(token, number) for number in range(int(count))]
        with open(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as out:
            json.dump(devices, out)
    with open(file, encoding="utf-8") as source:
        devices = json.load(source)
    for sequence in range(int(heartbeats)):
        for device in devices:
            ask("heartbeat", {
                "deviceId": device["deviceId"], "boot": 1, "sessionId": "s",
                "sequence": sequence, "agentVersion": "0.1.0", "uptimeSeconds": 1,
                "state": "connected", "tunnelUp": True, "rxBytes": 1, "txBytes": 1},
                device["deviceToken"])


if __name__ == "__main__":
    main(*sys.argv[1:])
