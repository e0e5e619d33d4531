# SPDX-License-Identifier: Apache-2.0
"""Enrols devices that exist as keys only, over one connection.

  hub_peers.py ADDRESS PORT TOKEN-FILE FIRST < KEYS

A public key on each line; FIRST is the number of the first one. Prints for each what its tunnel needs:
its inner address, the hub's, and the preshared key or a dash."""
import base64
import hashlib
import http.client
import json
import ssl
import sys

from cryptography.hazmat.primitives.ciphers.aead import AESGCM


def opened(answer, hwid):
    """docs/control-api.md, "Envelope"."""
    key = hashlib.sha256((hwid + answer["salt"]).encode()).digest()
    sealed = base64.b64decode(answer["encrypted"])
    return json.loads(AESGCM(key).decrypt(sealed[:12], sealed[12:], None))


def main(address, port, token_file, first):
    with open(token_file, encoding="ascii") as file:
        token = file.read().strip()
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # who the hub is, is not the subject
    hub = http.client.HTTPSConnection(address, int(port), context=context, timeout=60)
    for number, key in enumerate(sys.stdin.read().split(), int(first)):
        hwid = f"{number:032x}"
        hub.request("POST", "/api/v1/provision", json.dumps({
            "token": token, "hwid": hwid, "publicKey": key, "name": f"peer-{number}",
            "platform": "none", "agentVersion": "0.1.0"}), {"Content-Type": "application/json"})
        answer = hub.getresponse()
        text = answer.read()
        if answer.status != 200:
            sys.exit(f"peer {number}: {answer.status} {text.decode()}")
        config = opened(json.loads(text), hwid)
        inner = config["internalIp"].split(",")[0].split("/")[0]
        print(inner, config["serverWgIp"], config.get("presharedKey") or "-")


main(*sys.argv[1:])
