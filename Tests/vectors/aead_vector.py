#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the ciphertext and the tag of RFC 8439 A.5's input without its associated data, after
checking the vector itself. Source of aead_vector_tag in CSources/CTunnel/crypto/aead_vectors.h."""

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

key = bytes.fromhex("1c9240a5eb55d38af333888604f6b5f0473917c1402b80099dca5cbc207075c0")
nonce = bytes.fromhex("000000000102030405060708")
associated_data = bytes.fromhex("f33388860000000000004e91")
plaintext = (
    "Internet-Drafts are draft documents valid for a maximum of six months and may be updated, "
    "replaced, or obsoleted by other documents at any time. It is inappropriate to use "
    "Internet-Drafts as reference material or to cite them other than as "
    "/\u201cwork in progress./\u201d"
).encode()

aead = ChaCha20Poly1305(key)
assert aead.encrypt(nonce, plaintext, associated_data)[-16:].hex() == "eead9d67890cbb22392336fea1851f38"
sealed = aead.encrypt(nonce, plaintext, None)
print("ciphertext", sealed[:-16].hex())
print("tag", sealed[-16:].hex())
