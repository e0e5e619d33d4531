# SPDX-License-Identifier: Apache-2.0
"""Runs the command as people do: as a process, with files in a directory of the test's own."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMAND = os.environ.get("NEXUSGUARD", str(ROOT / ".build" / "release" / "nexusguard"))

# Of RFC 7748 section 6.1, in base64: a key that is nobody's secret.
PRIVATE = "XasIfmJKikt54X+Lg4AO5m87sSkmGLb9HC+LJ/+I4Os="
PUBLIC = "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="
PRESHARED = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA="

FILE = f"""[Interface]
PrivateKey = {PRIVATE}
ListenPort = 51820
Address = 10.77.0.1/24, fd77::1/64

[Peer]
PublicKey = {PUBLIC}
PresharedKey = {PRESHARED}
AllowedIPs = 10.77.0.2/32, fd77::2/128
Endpoint = 192.0.2.2:51820
PersistentKeepalive = 25
"""


class CommandTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="nexusguard-cli.")
        self.addCleanup(holder.cleanup)
        self.directory = Path(holder.name)

    def run_command(self, *arguments, text=None, env=None):
        data = text if isinstance(text, bytes) else (text or "").encode()
        result = subprocess.run(
            [COMMAND, *arguments], input=data, capture_output=True, cwd=self.directory,
            env={"PATH": os.environ["PATH"], **(env or {})}, timeout=60, check=False)
        result.output = result.stdout.decode()
        result.error = result.stderr.decode()
        return result

    def succeed(self, *arguments, **options):
        result = self.run_command(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.error)
        return result

    def fail_with(self, code, *arguments, **options):
        result = self.run_command(*arguments, **options)
        self.assertEqual(result.returncode, code, result.output + result.error)
        self.assertEqual(result.output, "")
        self.assertNotEqual(result.error, "")
        return result

    def write(self, name, text, mode=0o600):
        path = self.directory / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return str(path)
