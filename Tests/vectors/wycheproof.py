#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes Project Wycheproof's cases of ChaCha20-Poly1305 as wycheproof.h.

  wycheproof.py testvectors/chacha20_poly1305_test.json > wycheproof.h

The file is https://github.com/C2SP/wycheproof's. Cases of other nonces than 96 bits are left out:
they are of the interface. The plaintext is left out too: what is tested is the authentication.
"""
import json
import sys

print("""/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * Project Wycheproof's cases of ChaCha20-Poly1305 (testvectors/chacha20_poly1305_test.json of
 * https://github.com/C2SP/wycheproof), hexadecimal, by wycheproof.py.
 */
#ifndef WYCHEPROOF_H
#define WYCHEPROOF_H

#include <stdbool.h>

struct wycheproof_case {
    int number;
    bool valid;
    const char *key, *nonce, *additional, *ciphertext, *tag;
};

static const struct wycheproof_case wycheproof[] = {""")
for group in json.load(open(sys.argv[1]))["testGroups"]:
    for case in group["tests"]:
        if len(case["iv"]) == 24:
            valid = str(case["result"] != "invalid").lower()
            texts = (case[key] for key in ("key", "iv", "aad", "ct", "tag"))
            print(f"    {{{case['tcId']}, {valid},", ", ".join(f'"{t}"' for t in texts) + "},")
print("""};

#endif""")
