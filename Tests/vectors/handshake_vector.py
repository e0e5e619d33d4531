#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes handshake_vector.h: one whole handshake and cookie exchange with fixed keys, computed from
the WireGuard paper (2020-06-01, §5.4.1-5.4.7) with Python's hashlib and hmac and the cryptography
package (made with 48.0.0). It shares no code with the engine, and neither library is the engine's
(hashlib's BLAKE2s is the reference code; X25519 and ChaCha20-Poly1305 are the package's own
OpenSSL). HChaCha20 is written out after draft-irtf-cfrg-xchacha-03 §2.2 and checked against its
vector.

    python3 handshake_vector.py > handshake_vector.h
"""

import hashlib
import hmac
import struct

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305


def HASH(data):
    return hashlib.blake2s(data).digest()


def MAC(key, data):
    return hashlib.blake2s(data, key=key, digest_size=16).digest()


def HMAC(key, data):
    return hmac.new(key, data, hashlib.blake2s).digest()


def KDF(count, key, data):
    secret = HMAC(key, data)
    out, block = [], b""
    for number in range(1, count + 1):
        block = HMAC(secret, block + bytes([number]))
        out.append(block)
    return out


def AEAD(key, counter, plaintext, data):
    return ChaCha20Poly1305(key).encrypt(struct.pack("<IQ", 0, counter), plaintext, data)


def DH(private, public):
    key = X25519PrivateKey.from_private_bytes(private)
    return key.exchange(X25519PublicKey.from_public_bytes(public))


def PUBLIC(private):
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def HCHACHA20(key, nonce):
    x = list(struct.unpack("<16I", b"expand 32-byte k" + key + nonce))

    def quarter(a, b, c, d):
        for to, add, rotated, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[to] = (x[to] + x[add]) & 0xFFFFFFFF
            word = x[rotated] ^ x[to]
            x[rotated] = ((word << by) | (word >> (32 - by))) & 0xFFFFFFFF

    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return struct.pack("<8I", *x[:4], *x[12:])


def XAEAD(key, nonce, plaintext, data):
    subkey = HCHACHA20(key, nonce[:16])
    return ChaCha20Poly1305(subkey).encrypt(bytes(4) + nonce[16:], plaintext, data)


def secret(label):
    key = bytearray(hashlib.sha256(b"handshake vector: " + label.encode()).digest())
    key[0] &= 248
    key[31] = (key[31] & 127) | 64
    return bytes(key)


assert HCHACHA20(
    bytes(range(32)), bytes.fromhex("000000090000004a0000000031415927")
) == bytes.fromhex("82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc")

initiator_static, responder_static = secret("initiator"), secret("responder")
initiator_ephemeral, responder_ephemeral = secret("ephemeral i"), secret("ephemeral r")
preshared_key = hashlib.sha256(b"handshake vector: psk").digest()
timestamp = struct.pack(">QI", 2**62 + 10 + 1700000000, 0x12000000)
initiator_index, responder_index = 0x11223344, 0xA1B2C3D4
si, sr, ei, er = map(
    PUBLIC, (initiator_static, responder_static, initiator_ephemeral, responder_ephemeral)
)

# §5.4.2, first message
C = HASH(b"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s")
H = HASH(C + b"WireGuard v1 zx2c4 Jason@zx2c4.com")
H = HASH(H + sr)
(C,) = KDF(1, C, ei)
H = HASH(H + ei)
C, k = KDF(2, C, DH(initiator_ephemeral, sr))
sealed_static = AEAD(k, 0, si, H)
H = HASH(H + sealed_static)
C, k = KDF(2, C, DH(initiator_static, sr))
sealed_timestamp = AEAD(k, 0, timestamp, H)
H = HASH(H + sealed_timestamp)
initiation = struct.pack("<II", 1, initiator_index) + ei + sealed_static + sealed_timestamp
initiation += MAC(HASH(b"mac1----" + sr), initiation)

# §5.4.7, a cookie in answer to it; the secret and the source are the responder's business
cookie = bytes(range(0x40, 0x50))
nonce = hashlib.sha256(b"handshake vector: cookie nonce").digest()[:24]
cookie_reply = struct.pack("<II", 3, initiator_index) + nonce
cookie_reply += XAEAD(HASH(b"cookie--" + sr), nonce, cookie, initiation[-16:])

initiation_with_cookie = initiation + MAC(cookie, initiation)
initiation += bytes(16)

# §5.4.3, second message
(C,) = KDF(1, C, er)
H = HASH(H + er)
(C,) = KDF(1, C, DH(responder_ephemeral, ei))
(C,) = KDF(1, C, DH(responder_ephemeral, si))
C, tau, k = KDF(3, C, preshared_key)
H = HASH(H + tau)
response = struct.pack("<III", 2, responder_index, initiator_index) + er + AEAD(k, 0, b"", H)
response += MAC(HASH(b"mac1----" + si), response)
response += bytes(16)

# §5.4.5
initiator_sends, responder_sends = KDF(2, C, b"")

assert (len(initiation), len(response), len(cookie_reply)) == (148, 92, 64)


def emit(name, data):
    print(f"\nstatic const uint8_t vector_{name}[{len(data)}] = {{")
    for start in range(0, len(data), 12):
        print("    " + ", ".join(f"0x{byte:02x}" for byte in data[start : start + 12]) + ",")
    print("};")


print("/* SPDX-License-Identifier: Apache-2.0 */")
print("/* Made by handshake_vector.py; see there for the source. Do not edit. */")
print("/* clang-format off */")
print("#ifndef HANDSHAKE_VECTOR_H\n#define HANDSHAKE_VECTOR_H\n\n#include <stdint.h>\n")
print(f"#define VECTOR_INITIATOR_INDEX 0x{initiator_index:08x}u")
print(f"#define VECTOR_RESPONDER_INDEX 0x{responder_index:08x}u")
for name in (
    "initiator_static responder_static initiator_ephemeral responder_ephemeral preshared_key "
    "timestamp initiation initiation_with_cookie response cookie cookie_reply "
    "initiator_sends responder_sends"
).split():
    emit(name, globals()[name])
print("\n#endif")
