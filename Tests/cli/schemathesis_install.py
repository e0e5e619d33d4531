# SPDX-License-Identifier: Apache-2.0
"""Brings schemathesis from PyPI into an environment below .build; where that cannot be had, the exit
code is 77."""
import subprocess
import sys

from support import ROOT

VERSION = "4.32.5"
ENVIRONMENT = ROOT / ".build" / "schemathesis"
PROGRAM = ENVIRONMENT / "bin" / "schemathesis"


def install():
    """None, or why there is no schemathesis."""
    if PROGRAM.exists():
        return None
    for command in ([sys.executable, "-m", "venv", str(ENVIRONMENT)],
                    [str(ENVIRONMENT / "bin" / "pip"), "install", "--quiet", "--timeout", "10",
                     "--retries", "1", f"schemathesis=={VERSION}"]):
        try:
            result = subprocess.run(command, capture_output=True, timeout=400, check=False)
        except subprocess.TimeoutExpired:
            return f"{command[0]}: took too long"
        if result.returncode != 0:
            lines = (result.stderr or result.stdout).decode().strip().splitlines()
            return lines[-1] if lines else f"{command[0]} failed"
    return None


if __name__ == "__main__":
    reason = install()
    if reason:
        print(f"no schemathesis: {reason}")
        sys.exit(77)
