# SPDX-License-Identifier: Apache-2.0
"""The completion scripts in share/ are those the command makes, and shells can read them."""
import shutil
import subprocess
import unittest

from support import ROOT, CommandTest

SCRIPTS = {
    "bash": ROOT / "share/bash-completion/completions/nexusguard",
    "zsh": ROOT / "share/zsh/site-functions/_nexusguard",
    "fish": ROOT / "share/fish/vendor_completions.d/nexusguard.fish",
}


class Completion(CommandTest):
    def test_scripts_are_up_to_date(self):
        for shell, path in SCRIPTS.items():
            with self.subTest(shell):
                self.assertEqual(self.succeed("completion", shell).output, path.read_text(),
                                 f"run: nexusguard completion {shell} > {path}")

    def test_shells_read_them(self):
        for shell, path in SCRIPTS.items():
            if shutil.which(shell):
                with self.subTest(shell):
                    result = subprocess.run(
                        [shell, "-n", str(path)], capture_output=True, check=False)
                    self.assertEqual((result.returncode, result.stderr), (0, b""))

    def complete(self, line):
        """What bash offers at the end of `line`."""
        words = line.split(" ")
        script = f"""
            nexusguard() {{ echo one two; }}
            source {SCRIPTS['bash']}
            COMP_WORDS=({line} {'""' if not words[-1] else ''}) COMP_CWORD={len(words) - 1}
            _nexusguard
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True,
                                cwd=self.directory)
        return set(result.stdout.split())

    def test_verbs_options_names_and_files(self):
        self.write("wg0.conf", "")
        self.assertEqual(self.complete("nexusguard ch"), {"check"})
        self.assertEqual(self.complete("nexusguard check --j"), {"--json"})
        self.assertIn("wg0.conf", self.complete("nexusguard check w"))
        self.assertLessEqual({"one", "two", "all"}, self.complete("nexusguard show "))
        self.assertNotIn("wg0.conf", self.complete("nexusguard show "))

    def test_the_commands_of_the_hub_are_completed_word_by_word(self):
        first = self.complete("nexusguard hub ")
        self.assertLessEqual({"run", "status", "token", "device", "--listen"}, first)
        self.assertNotIn("create", first)
        self.assertEqual(self.complete("nexusguard hub token "), {"create", "list", "revoke"})
        self.assertEqual(self.complete("nexusguard hub device rev"), {"revoke"})
        self.assertEqual(self.complete("nexusguard hub device list --se"), {"--search"})
        self.assertNotIn("--listen", self.complete("nexusguard hub token create --"))
        self.write("hub.backup", "")
        self.assertIn("hub.backup", self.complete("nexusguard hub restore h"))

    def test_an_unknown_shell_is_refused(self):
        self.fail_with(2, "completion", "csh")


if __name__ == "__main__":
    unittest.main()
