# SPDX-License-Identifier: Apache-2.0
"""tools/check-layers passes a good tree and names file, line and rule of every breach."""
import subprocess
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check-layers"

GOOD = {
    "Sources/WireGuard/Key.swift": "// import Foundation, unsafe\nlet text = \"unsafe import\"\n",
    "Sources/ControlAPI/Wire.swift": "import FoundationEssentials\nimport Crypto\n",
    "Sources/TunnelEngine/Engine.swift":
        "internal import CTunnel\nimport WireGuard\nimport Glibc\nfunc f() { unsafe g() }\n",
    "Sources/HostProcess/Host.swift": "private import CHostProcess\nimport Synchronization\n",
    "Sources/nexusguard-engine/main.swift":
        "import TunnelEngine\nimport HostProcess\nimport WireGuard\n",
    "CSources/CTunnel/include/tunnel.h": "#include <stdint.h>\n",
    "CSources/CTunnel/counters.h": "#include \"include/tunnel.h\"\n",
    "CSources/CTunnel/crypto/aead.h": "#include <stdint.h>\n",
    "CSources/CTunnel/crypto/aead.c": "#include \"crypto/aead.h\"\n#include \"../counters.h\"\n",
    "CSources/CHostProcess/include/host_process.h": "#include <stdbool.h>\n",
    "CSources/CHostProcess/host.c": "/* #include \"tunnel.h\" */\n#include \"host_process.h\"\n",
}

# One breach each: path, text, line expected, words of the rule expected.
BREACHES = [
    ("Sources/WireGuard/Bad.swift", "let a = 1\nimport Foundation\n", 2, "Foundation"),
    ("Sources/WireGuard/Bad.swift", "import FoundationEssentials\n", 1, "FoundationEssentials"),
    ("Sources/ControlAPI/Bad.swift", "import Foundation\n", 1, "Foundation"),
    ("Sources/ControlAPI/Bad.swift", "import CCrypto\n", 1, "not CCrypto"),
    ("Sources/WireGuard/Bad.swift", "import Glibc\n", 1, "import Glibc"),
    ("Sources/WireGuard/Bad.swift", "@preconcurrency import CTunnel\n", 1, "not CTunnel"),
    ("Sources/WireGuard/Bad.swift", "public import TunnelEngine\n", 1, "not TunnelEngine"),
    ("Sources/WireGuard/Bad.swift", "import struct HostProcess.Signal\n", 1, "not HostProcess"),
    ("Sources/WireGuard/Bad.swift", "/* a\n b */ let p: UnsafePointer<Int>\n", 2, "UnsafePointer"),
    ("Sources/nexusguard-engine/Bad.swift", "import CTunnel\n", 1, "not CTunnel"),
    ("Sources/nexusguard-engine/Bad.swift", "\n\nlet x = unsafe y\n", 3, "unsafe code"),
    ("Sources/nexusguard-engine/Bad.swift", "a.withUnsafeBytes { _ in }\n", 1, "unsafe code"),
    ("Sources/TunnelEngine/Bad.swift", "import HostProcess\n", 1, "not HostProcess"),
    ("Sources/TunnelEngine/Bad.swift", "import Foundation\n", 1, "Foundation"),
    ("Sources/TunnelEngine/Bad.swift", "import Dispatch\n", 1, "unknown"),
    ("Sources/HostProcess/Bad.swift", "import CTunnel\n", 1, "not CTunnel"),
    ("Sources/HostProcess/Bad.swift", "import WireGuard\n", 1, "not WireGuard"),
    ("Sources/HostProcess/bad.c", "int a;\n", 1, "CSources"),
    ("Sources/Stranger/Bad.swift", "let a = 1\n", 1, "no entry"),
    ("CSources/CStranger/bad.c", "int a;\n", 1, "no entry"),
    ("CSources/CTunnel/bad.c", "int a;\n#include \"host_process.h\"\n", 2, "its own headers"),
    ("CSources/CTunnel/bad.c", "#include \"../CHostProcess/include/host_process.h\"\n", 1, "its own"),
    ("CSources/CTunnel/bad.c", "#include <host_process.h>\n", 1, "quotation marks"),
    ("CSources/CHostProcess/bad.c", "#include \"../CTunnel/counters.h\"\n", 1, "its own headers"),
    ("CSources/CTunnel/include/peer.h", "int a;\n", 1, "public header"),
    ("CSources/CTunnel/include/tunnel.h", "#include \"../counters.h\"\n", 1, "internal"),
]


def run(tree):
    return subprocess.run([TOOL, tree], capture_output=True, text=True, check=False)


class CheckLayers(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.tree = Path(directory.name)
        for path, text in GOOD.items():
            self.write(path, text)

    def write(self, path, text):
        (self.tree / path).parent.mkdir(parents=True, exist_ok=True)
        (self.tree / path).write_text(text, encoding="utf-8")

    def test_good_tree_passes(self):
        result = run(self.tree)
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)

    def test_every_breach_fails_with_file_line_and_rule(self):
        for path, text, line, words in BREACHES:
            with self.subTest(path=path, text=text):
                original = GOOD.get(path)
                self.write(path, text)
                result = run(self.tree)
                self.assertEqual(result.returncode, 1)
                first = result.stdout.splitlines()[0]
                where = path if "no entry" not in words else str(Path(path).parent)
                self.assertTrue(first.startswith(f"{where}:{line}: "), first)
                self.assertIn(words, first)
                self.assertEqual(len(result.stdout.splitlines()), 1, result.stdout)
                (self.tree / path).unlink()
                if "no entry" in words:
                    (self.tree / path).parent.rmdir()
                if original is not None:
                    self.write(path, original)

    def test_a_tree_without_sources_is_an_error_not_a_pass(self):
        with tempfile.TemporaryDirectory() as empty:
            self.assertEqual(run(empty).returncode, 2)


if __name__ == "__main__":
    unittest.main()
