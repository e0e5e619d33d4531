# SPDX-License-Identifier: Apache-2.0
"""The units of share/systemd are what systemd understands, and keep what they promise."""
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SHARE = Path(__file__).resolve().parents[2] / "share"
UNITS = sorted((SHARE / "systemd" / "system").glob("*.service"))
PROGRAM = re.compile(r"^ExecStart=(\S+)", re.MULTILINE)


def values(unit, key):
    text = (SHARE / "systemd" / "system" / unit).read_text()
    return re.findall(rf"^{key}=(.*)$", text, re.MULTILINE)


class UnitTest(unittest.TestCase):
    def run_systemd(self, *arguments):
        if shutil.which(arguments[0]) is None:
            self.skipTest(f"no {arguments[0]} here (Debian's package systemd)")
        result = subprocess.run(arguments, capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        return result.stdout

    def copies(self, directory):
        """With programs that are there, and names for the templates."""
        for unit in UNITS:
            path = Path(directory) / unit.name.replace("@.", "@wg0.")
            path.write_text(PROGRAM.sub("ExecStart=/bin/true", unit.read_text()))
            yield str(path)

    def test_there_are_units(self):
        self.assertEqual(
            [unit.name for unit in UNITS],
            ["nexusguard-agent.service", "nexusguard-engine@.service", "nexusguard-hub.service",
             "nexusguard-keep@.service"])

    def test_systemd_understands_them(self):
        with tempfile.TemporaryDirectory() as directory:
            self.run_systemd("systemd-analyze", "verify", "--man=no", *self.copies(directory))

    def test_none_is_more_exposed_than_it_must_be(self):
        limits = {"agent": 20, "hub": 20, "engine": 35, "keep": 35}
        with tempfile.TemporaryDirectory() as directory:
            for path in self.copies(directory):
                role = Path(path).name.split("-")[1].split("@")[0].split(".")[0]
                self.run_systemd("systemd-analyze", "security", "--offline=true", "--no-pager",
                                 f"--threshold={limits[role]}", path)

    def test_programs_are_ours(self):
        for unit in UNITS:
            for program in PROGRAM.findall(unit.read_text()):
                self.assertIn(program, ["/usr/bin/nexusguard", "/usr/bin/nexusguard-engine"])

    def test_case_C74_who_makes_no_progress_is_started_anew(self):
        for unit in ["nexusguard-agent.service", "nexusguard-hub.service"]:
            self.assertEqual(values(unit, "WatchdogSec"), ["60"])
            self.assertEqual(values(unit, "Restart"), ["always"])

    def test_case_C88_a_tunnel_outlives_the_stop_of_its_keeper(self):
        self.assertEqual(values("nexusguard-keep@.service", "KillMode"), ["process"])
        self.assertEqual(values("nexusguard-keep@.service", "ExecStop(?:Post)?"), [])
        # What one unit needs, a restart of it would take along.
        for key in ("PartOf", "BindsTo", "Requires"):
            for unit in UNITS:
                self.assertNotIn("nexusguard", " ".join(values(unit.name, key)))

    def test_case_C90_no_unit_waits_for_the_network(self):
        for unit in UNITS:
            self.assertNotIn("network-online", unit.read_text())

    def test_case_C68_what_the_operator_has_to_mend_is_not_tried_again(self):
        for unit, codes in {"nexusguard-keep@.service": {2, 4, 5},
                            "nexusguard-agent.service": {2, 4, 5, 6, 7},
                            "nexusguard-hub.service": {2, 4, 5}}.items():
            [text] = values(unit, "RestartPreventExitStatus")
            self.assertLessEqual(codes, {int(code) for code in text.split()})

    def test_case_C96_nobody_but_root_owns_the_keepers_directories(self):
        """RuntimeDirectory= gives the innermost directory to User= (systemd.exec(5))."""
        directories = {unit.name: values(unit.name, "RuntimeDirectory") for unit in UNITS}
        self.assertEqual({name: value for name, value in directories.items() if value}, {
            "nexusguard-agent.service": ["nexusguard/agent"],
            "nexusguard-hub.service": ["nexusguard/hub"]})
        lines = (SHARE / "tmpfiles.d" / "nexusguard.conf").read_text().splitlines()
        entries = {line.split()[1]: line.split()[2:5] for line in lines if line[:2] == "d "}
        self.assertEqual(entries["/run/nexusguard"], ["0755", "root", "root"])
        self.assertEqual(entries["/var/lib/nexusguard/tunnels"], ["0700", "root", "root"])
        for role in ("agent", "hub"):
            self.assertEqual(entries[f"/run/nexusguard/{role}"], ["0750", "nexusguard", "nexusguard"])
            self.assertEqual(entries[f"/var/lib/nexusguard/{role}"],
                             ["0700", "nexusguard", "nexusguard"])
            self.assertEqual(values(f"nexusguard-{role}.service", "User"), ["nexusguard"])
        self.assertEqual(values("nexusguard-agent.service", "CapabilityBoundingSet"), [""])

    def test_case_C96_who_shares_a_socket_with_its_group_may_do_so(self):
        """lchown(2) is in @chown, and that in @privileged (systemd-analyze syscall-filter)."""
        for unit in ("nexusguard-agent.service", "nexusguard-hub.service"):
            filters = values(unit, "SystemCallFilter")
            self.assertLess(filters.index("~@privileged @resources"), filters.index("lchown"))

    def test_the_engine_may_confine_itself(self):
        """None of these is in @system-service of systemd 252 (systemd-analyze syscall-filter)."""
        for unit in ("nexusguard-engine@.service", "nexusguard-keep@.service"):
            allowed = " ".join(values(unit, "SystemCallFilter")).split()
            self.assertLessEqual({"landlock_create_ruleset", "landlock_add_rule",
                                  "landlock_restrict_self", "seccomp"}, set(allowed))

    def test_case_C43_networkd_is_told_to_leave_what_is_not_its_own(self):
        text = (SHARE / "systemd" / "networkd.conf.d" / "nexusguard.conf").read_text()
        self.assertIn("ManageForeignRoutingPolicyRules=no", text)
        self.assertIn("ManageForeignRoutes=no", text)

    def test_the_users_file_is_understood(self):
        with tempfile.TemporaryDirectory() as root:
            (Path(root) / "etc").mkdir()
            if shutil.which("systemd-sysusers") is None:
                self.skipTest("no systemd-sysusers here (Debian's package systemd)")
            subprocess.run(["systemd-sysusers", f"--root={root}",
                            str(SHARE / "sysusers.d" / "nexusguard.conf")],
                           capture_output=True, check=True)
            self.assertIn("nexusguard", (Path(root) / "etc" / "passwd").read_text())


if __name__ == "__main__":
    unittest.main()
