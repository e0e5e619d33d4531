# SPDX-License-Identifier: Apache-2.0
"""The Debian package holds what an operator needs, where Debian has it, and its scripts do what they
say. The programs in it are stand-ins: that the real ones run is said by other tests."""
import gzip
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "package-deb"


def run(*arguments, **options):
    return subprocess.run(arguments, capture_output=True, text=True, check=False, **options)


@unittest.skipIf(shutil.which("dpkg-deb") is None, "no dpkg-deb here")
class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        work = Path(cls.directory.name)
        for program in ("nexusguard", "nexusguard-engine"):
            shutil.copy("/bin/true", work / program)
        result = run(TOOL, work, env=dict(os.environ, NEXUSGUARD_PROGRAMS=str(work)))
        cls.output = result.stdout + result.stderr
        cls.packages = list(work.glob("nexusguard_*.deb"))
        cls.tree = work / "tree"
        for package in cls.packages:
            subprocess.run(["dpkg-deb", "-R", package, cls.tree], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def control(self):
        lines = (self.tree / "DEBIAN" / "control").read_text().splitlines()
        return dict(line.split(": ", 1) for line in lines if not line.startswith(" "))

    def test_it_prints_the_path_of_the_one_package_that_it_makes(self):
        self.assertEqual([str(package) + "\n" for package in self.packages], [self.output])

    def test_it_installs_what_the_units_start(self):
        for unit in (ROOT / "share/systemd/system").iterdir():
            packed = self.tree / "lib/systemd/system" / unit.name
            self.assertEqual(packed.read_text(), unit.read_text())
            for line in unit.read_text().splitlines():
                if line.startswith("ExecStart="):
                    program = self.tree / line.split("=", 1)[1].split()[0].lstrip("/")
                    self.assertTrue(os.access(program, os.X_OK), program)

    def test_it_has_manual_pages_completions_users_and_directories(self):
        for page in (ROOT / "docs/man").iterdir():
            packed = self.tree / f"usr/share/man/man{page.suffix[1:]}/{page.name}.gz"
            self.assertEqual(gzip.decompress(packed.read_bytes()), page.read_bytes())
        for name in ("usr/share/bash-completion/completions/nexusguard",
                     "usr/share/zsh/vendor-completions/_nexusguard",
                     "usr/share/fish/vendor_completions.d/nexusguard.fish",
                     "usr/lib/sysusers.d/nexusguard.conf", "usr/lib/tmpfiles.d/nexusguard.conf",
                     "usr/lib/systemd/networkd.conf.d/nexusguard.conf",
                     "usr/share/doc/nexusguard/docs/operations.md",
                     "usr/share/doc/nexusguard/copyright"):
            self.assertTrue((self.tree / name).is_file(), name)

    def test_nobody_but_root_can_write_any_of_it(self):
        listing = run("dpkg-deb", "-c", self.packages[0]).stdout
        for line in listing.splitlines():
            mode, owner = line.split()[:2]
            self.assertEqual((mode[5], mode[8], owner), ("-", "-", "root/root"), line)

    def test_its_dependencies_are_those_of_the_programs(self):
        self.assertRegex(self.control()["Depends"], r"^libc6 \(>= [0-9.]+\)$")

    def test_a_library_that_no_package_has_is_said_and_nothing_is_made(self):
        """As when Swift's libraries are not linked in: it would not start where no Swift is."""
        with tempfile.TemporaryDirectory() as name:
            work = Path(name)
            for program in ("nexusguard", "nexusguard-engine"):
                text = bytearray(Path("/bin/true").read_bytes())
                at = text.index(b"libc.so.6\0")
                text[at:at + 9] = b"libx.so.6"
                (work / program).write_bytes(text)
                (work / program).chmod(0o755)
            result = run(TOOL, work, env=dict(os.environ, NEXUSGUARD_PROGRAMS=name))
            self.assertEqual(result.returncode, 1)
            self.assertIn("no package of Debian has the library libx.so.6", result.stderr)
            self.assertEqual(list(work.glob("*.deb")), [])

    def test_a_later_commit_is_an_upgrade(self):
        version = self.control()["Version"]
        self.assertRegex(version, r"^\d+\.\d+\.\d+(\+\d+\.[0-9a-f]{8})?$")
        if "+" in version:
            base, rest = version.split("+")
            later = f"{base}+{int(rest.split('.')[0]) + 1}.00000000"
            self.assertEqual(run("dpkg", "--compare-versions", later, "gt", version).returncode, 0)

    def script(self, name, *arguments):
        """Runs a maintainer script with commands that only write down how they were called."""
        with tempfile.TemporaryDirectory() as directory:
            log = Path(directory) / "log"
            for command in ("systemctl", "systemd-sysusers", "systemd-tmpfiles", "nexusguard",
                            "useradd", "rm", "rmdir"):
                path = Path(directory) / command
                path.write_text(f'#!/bin/sh\necho "{command} $*" >>{log}\n')
                path.chmod(0o755)
            result = run("sh", "-eu", self.tree / "DEBIAN" / name, *arguments,
                         env={"PATH": f"{directory}:/usr/bin:/bin"})
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            return log.read_text().splitlines() if log.exists() else []

    def test_configuring_makes_the_user_and_the_directories_and_enables_nothing(self):
        calls = self.script("postinst", "configure", "")
        self.assertEqual(calls[:2], ["systemd-sysusers nexusguard.conf",
                                     "systemd-tmpfiles --create nexusguard.conf"])
        self.assertEqual([call for call in calls if "enable" in call or "restart" in call], [])

    def test_an_upgrade_stops_nothing(self):
        self.assertEqual(self.script("prerm", "upgrade", "9.9"), [])

    def test_only_a_purge_removes_identities(self):
        self.assertEqual([call for call in self.script("postrm", "remove") if "rm" in call], [])
        calls = self.script("postrm", "purge")
        self.assertEqual(calls[0], "rm -rf /var/lib/nexusguard /run/nexusguard")
        self.assertNotIn("rm -rf /etc", "\n".join(calls))


if __name__ == "__main__":
    unittest.main()
