#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Known answers for docs/control-api.md, computed without any code of Sources/ControlAPI: AES-GCM by
the cryptography package, addresses by ipaddress, canonical JSON by json.dumps with keys in the order
of UTF-16 (RFC 8785 section 3.2.3).

  make_control_vectors.py            writes envelope.json, confighash.json, forwardshash.json and
                                     canonicaljson.json beside itself
  make_control_vectors.py --check    exit code 1 if a file is not what it would write
"""
import base64
import hashlib
import ipaddress
import json
import sys
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

HERE = Path(__file__).resolve().parent
HWID = "9f0c2d4e6a8b1c3d5e7f90a1b2c3d4e5"
HUB_KEY = base64.b64encode(bytes(range(32))).decode()
# `/` and `+` in their base64, one early and one late in the alphabet.
KEY_A = base64.b64encode(b"\xfb\xff" * 16).decode()
KEY_B = base64.b64encode(b"\x00\xff\xbe\xef" * 8).decode()
PSK = base64.b64encode(hashlib.sha256(b"preshared").digest()).decode()


# ---- canonical JSON ----------------------------------------------------------------------------

def ordered(value):
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return {name: ordered(value[name]) for name in names}
    return [ordered(element) for element in value] if isinstance(value, list) else value


def canonical(value):
    return json.dumps(ordered(value), separators=(",", ":"), ensure_ascii=False)


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


# ---- what a configuration means ----------------------------------------------------------------

def elements(text):
    return [part.strip(" \t") for part in text.split(",")] if text.strip(" \t") else []


def networks(text):
    return ", ".join(sorted({str(ipaddress.ip_network(e, strict=False)) for e in elements(text)}))


def interfaces(text):
    return ", ".join(sorted({str(ipaddress.ip_interface(e)) for e in elements(text)}))


def is_address(text):
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def resolvers(text):
    servers = [str(ipaddress.ip_address(e)) for e in elements(text) if is_address(e)]
    return ", ".join(servers + [e.lower() for e in elements(text) if not is_address(e)])


def endpoint(text):
    host, _, port = text.rpartition(":")
    if host.startswith("["):
        return f"[{ipaddress.ip_address(host[1:-1])}]:{int(port)}"
    return f"{host.lower()}:{int(port)}"


def shaped(value, rules):
    """The members that are there and not empty, each in its one spelling."""
    shaped_value = {}
    for name, rule in rules.items():
        member = value.get(name)
        if member not in (None, "", []):
            member = rule(member)
        if member not in (None, "", []):
            shaped_value[name] = member
    return shaped_value


def same(value):
    return value


def preshared(text):
    return None if base64.b64decode(text) == bytes(32) else text


def peers(values):
    rules = {
        "publicKey": same, "presharedKey": preshared, "endpoint": endpoint,
        "allowedIps": networks, "persistentKeepalive": same, "name": lambda text: text.strip(" \t"),
    }
    return sorted((shaped(value, rules) for value in values), key=lambda peer: peer["publicKey"])


CONFIG = {
    "deviceId": same, "internalIp": interfaces, "serverPub": same, "endpoint": endpoint,
    "presharedKey": preshared, "allowedIps": networks, "persistentKeepalive": same,
    "dns": resolvers, "serverWgIp": lambda text: str(ipaddress.ip_address(text)), "mtu": same,
    "listenPort": same, "peers": peers,
}


def forward(value):
    value = shaped(value, {
        "id": same, "protocol": same, "publicPort": same, "publicPortEnd": same,
        "targetIp": lambda text: str(ipaddress.ip_address(text)), "targetPort": same,
        "description": lambda text: text.strip(" \t"),
    })
    if value.get("publicPortEnd") == value["publicPort"]:
        del value["publicPortEnd"]
    return value


def forwards_text(values):
    return "[" + ",".join(sorted((canonical(forward(value)) for value in values),
                                 key=str.encode)) + "]"


# ---- the vectors -------------------------------------------------------------------------------

SMALL = {
    "deviceId": "0d9f1c2e-3b4a-4c5d-8e6f-708192a3b4c5",
    "internalIp": "10.172.21.2/32, fd00::2/128",
    "serverPub": HUB_KEY,
    "endpoint": "hub.example.com:51820",
    "dns": "10.172.21.1",
    "allowedIps": "10.172.21.0/24, fd00::/64",
    "serverWgIp": "10.172.21.1",
}
LARGE = dict(SMALL, presharedKey=PSK, mtu=1380, persistentKeepalive=25, listenPort=0,
             dns="10.172.21.1, fd00::1, corp.example", peers=[
                 {"publicKey": KEY_A, "allowedIps": "10.9.0.0/16", "name": "depôt ÷ \"2\""},
                 {"publicKey": KEY_B, "allowedIps": "10.8.0.0/16, 10.8.4.0/24",
                  "endpoint": "[2001:db8::7]:51820", "presharedKey": PSK,
                  "persistentKeepalive": 0},
             ])


def plain(value):
    return json.dumps(value, ensure_ascii=False)


def config_vectors():
    zero = base64.b64encode(bytes(32)).decode()
    backwards = dict(reversed(LARGE.items()), peers=[
        dict(reversed(peer.items())) for peer in reversed(LARGE["peers"])])
    groups = [
        ("the smallest", SMALL, [
            ("as it is", plain(SMALL)),
            ("what is empty is absent", plain(dict(
                SMALL, presharedKey="", peers=[], mtu=None, listenPort=None))),
            ("a preshared key of zeros is none", plain(dict(SMALL, presharedKey=zero))),
            ("hashes and the private key are not part of it", plain(dict(
                SMALL, configHash="x", forwardsHash="y", privateKey=KEY_A))),
            ("unknown fields are not part of it", plain(dict(
                SMALL, PostUp="rm -rf /", comment=[1.5, {}]))),
            ("host bits of prefixes are cleared", plain(dict(
                SMALL, allowedIps="10.172.21.77/24,fd00::1:2:3/64"))),
            ("order, spelling and blanks of lists", plain(dict(
                SMALL, allowedIps="FD00:0:0::/64 ,  10.172.21.0/24,10.172.21.0/24",
                internalIp="fd00:0::2/128,10.172.21.2"))),
            ("names of hosts in any case", plain(dict(SMALL, endpoint="HUB.Example.com:51820"))),
            ("white space", json.dumps(SMALL, indent=3)),
            ("escaped slashes and letters",
             plain(SMALL).replace("/", "\\/").replace("hub", "\\u0068u\\u0062")),
        ]),
        ("other host bits of the interface's own address", dict(SMALL, internalIp="10.172.21.2/24"),
         [("as it is", plain(dict(SMALL, internalIp="10.172.21.2/24")))]),
        ("everything", LARGE, [
            ("as it is", plain(LARGE)),
            ("backwards", plain(backwards)),
            ("no letter beyond ASCII", json.dumps(LARGE)),
        ]),
        ("a keepalive of 0 is not none", dict(SMALL, persistentKeepalive=0),
         [("as it is", plain(dict(SMALL, persistentKeepalive=0)))]),
        ("the order of resolvers counts", dict(SMALL, dns="10.172.21.2, 10.172.21.1"),
         [("as it is", plain(dict(SMALL, dns="10.172.21.2, 10.172.21.1"))),
          ("a domain between them does not count where it stands",
           plain(dict(SMALL, dns="10.172.21.2,10.172.21.1")))]),
    ]
    result = []
    for title, config, texts in groups:
        text = canonical(shaped(config, CONFIG))
        for name, variant in texts:
            assert canonical(shaped(json.loads(variant), CONFIG)) == text, (title, name)
        result.append({
            "title": title, "canonical": text, "hash": digest(text),
            "texts": [{"title": name, "json": variant} for name, variant in texts],
        })
    return result


def forward_vectors():
    web = {"id": "a1", "protocol": "tcp", "publicPort": 443, "targetIp": "10.172.21.2",
           "targetPort": 8443, "description": "web / \u00fc"}
    games = {"id": "b2", "protocol": "udp", "publicPort": 27000, "publicPortEnd": 27010,
             "targetIp": "fd00::2", "targetPort": 27000}
    cases = [
        ("none", [], []),
        ("two", [web, games], [
            ("in another order", [games, web]),
            ("another spelling", [
                dict(web, publicPortEnd=443, description=" web / \u00fc "),
                dict(games, targetIp="FD00:0::2", description="")]),
        ]),
    ]
    result = []
    for title, values, variants in cases:
        text = forwards_text(values)
        texts = [("as it is", values)] + variants
        for name, variant in texts:
            assert forwards_text(variant) == text, (title, name)
        result.append({
            "title": title, "canonical": text, "hash": digest(text),
            "texts": [{"title": name, "json": plain(variant)} for name, variant in texts],
        })
    return result


def sealed(plaintext, hwid, salt, nonce):
    key = hashlib.sha256(hwid.encode() + salt.encode()).digest()
    return nonce + AESGCM(key).encrypt(nonce, plaintext.encode(), None)


def envelope_vectors():
    good = []
    for index, (title, plaintext) in enumerate([
            ("a small configuration", plain(SMALL)), ("a large configuration", plain(LARGE)),
            ("nothing", ""), ("one byte", "x")]):
        salt = hashlib.sha256(b"salt %d" % index).hexdigest()[:32]
        nonce = hashlib.sha256(b"nonce %d" % index).digest()[:12]
        good.append({
            "title": title, "hwid": HWID, "salt": salt, "nonce": nonce.hex(),
            "plaintext": plaintext,
            "encrypted": base64.b64encode(sealed(plaintext, HWID, salt, nonce)).decode(),
        })
    first = good[0]
    raw = base64.b64decode(first["encrypted"])

    def bad(title, data=raw, text=None, hwid=HWID, salt=first["salt"]):
        return {"title": title, "hwid": hwid, "salt": salt,
                "encrypted": base64.b64encode(data).decode() if text is None else text}

    def flipped(position):
        return raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1:]

    text = first["encrypted"]
    refused = [
        bad("another device", hwid=HWID[:-1] + "0"), bad("another salt", salt="0" * 32),
        bad("hwid in upper case", hwid=HWID.upper()),
        bad("nonce changed", flipped(0)), bad("ciphertext changed", flipped(12)),
        bad("tag changed", flipped(len(raw) - 1)), bad("cut", raw[:-1]), bad("longer", raw + b"\0"),
        bad("no ciphertext and no tag", raw[:12]), bad("empty", text=""),
        bad("a line end", text=text + "\n"), bad("a blank inside", text=text[:8] + " " + text[8:]),
        bad("base64url", text=text.replace("+", "-").replace("/", "_")),
        bad("no base64", text="*" + text[1:]), bad("cut in a group", text=text[:-1]),
    ]
    assert "-" in refused[12]["encrypted"] or "_" in refused[12]["encrypted"]
    return {"good": good, "refused": refused}


def canonical_vectors():
    values = [
        None, True, False, 0, -1, 9007199254740991, -9007199254740991, "", "/", "\u007f\u0080",
        "".join(chr(code) for code in range(0x20)) + "\"\\", "\u2028\u2029\ufeff\ufffd\U0001f511",
        [], {}, [[[]], {"": {}}], {"b": 1, "a": [2, {"d": 3, "c": 4}]},
        {"\U0001f600": 1, "\ufb33": 2, "z": 3, "\u00f6": 4, "aa": 5, "a": 6, "A": 7},
    ]
    return [{"json": json.dumps(value, indent=1), "canonical": canonical(value)}
            for value in values]


FILES = {
    "envelope.json": envelope_vectors, "confighash.json": config_vectors,
    "forwardshash.json": forward_vectors, "canonicaljson.json": canonical_vectors,
}


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(__doc__)
        return 0 if arguments == ["--help"] else 2
    stale = 0
    for name, make in FILES.items():
        text = json.dumps(make(), indent=1, ensure_ascii=True) + "\n"
        path = HERE / name
        if not arguments:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{name} is not what {Path(__file__).name} writes")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
