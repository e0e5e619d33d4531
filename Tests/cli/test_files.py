# SPDX-License-Identifier: Apache-2.0
"""nexusguard check, strip, import, export, genkey, genpsk, pubkey, and the command line itself."""
import base64
import json
import os
import shutil
import subprocess
import unittest
from pathlib import Path

from support import COMMAND, FILE, PRESHARED, PRIVATE, PUBLIC, CommandTest

HOOKS = FILE.replace("[Peer]", 'PostUp = iptables -A FORWARD -i %i  -j ACCEPT; echo "#1"\n[Peer]', 1)


class CommandLine(CommandTest):
    def test_help_goes_to_standard_output(self):
        verbs = [line.split()[0] for line in self.succeed("--help").output.splitlines()
                 if line.startswith("  ") and not line.startswith("  nexusguard")
                 and not line.startswith("          ")]
        self.assertIn("check", verbs)
        self.assertEqual(self.succeed("-h").output, self.succeed("help").output)
        for verb in verbs:
            result = self.succeed(verb, "--help")
            self.assertTrue(result.output.startswith(f"Usage: nexusguard {verb} "))
            self.assertEqual(result.error, "")
            self.assertEqual(self.succeed("help", verb).output, result.output)

    def test_version(self):
        self.assertRegex(self.succeed("--version").output, r"^nexusguard \d+\.\d+\.\d+\n$")

    def test_usage_errors_say_where_the_help_is(self):
        for arguments, hint in [
            ([], None), (["frobnicate"], "try nexusguard --help"),
            (["--frobnicate"], "try nexusguard --help"),
            (["check"], "try nexusguard check --help"),
            (["genkey", "more"], "try nexusguard genkey --help"),
            (["check", "--frobnicate", "a.conf"], "try nexusguard check --help"),
            (["check", "-x", "a.conf"], "try nexusguard check --help"),
            (["check", "--json=yes", "a.conf"], "try nexusguard check --help"),
            (["import", "a.conf", "--name"], "try nexusguard import --help"),
            (["import", "a.conf", "--name", "a/b"], "try nexusguard import --help"),
            (["check", "no such name"], "try nexusguard check --help"),
        ]:
            with self.subTest(arguments):
                error = self.fail_with(2, *arguments).error
                if hint:
                    self.assertEqual(error.splitlines()[-1], hint)

    def test_options_as_getopt_long_reads_them(self):
        path = self.write("a.conf", HOOKS)
        plain = self.succeed("import", path, "--no-hooks", "--output", "-", "--quiet").output
        for arguments in [
            ["import", "-q", "--no-h", "-o", "-", path], ["import", "-qo-", path, "--no-hooks"],
            ["import", "--output=-", "--no-hooks", "-q", "--", path],
        ]:
            with self.subTest(arguments):
                result = self.succeed(*arguments)
                self.assertEqual(result.output, plain)
                self.assertEqual(result.error, "")
        self.write("-dash.conf", FILE)
        self.assertIn("-dash.conf: ok", self.succeed("check", "--", "-dash.conf").output)

    def test_an_ambiguous_abbreviation_is_refused(self):
        self.assertIn("could be", self.fail_with(2, "import", "--n", "x.conf").error)

    def test_case_C92_a_closed_pipe_is_quiet(self):
        peers = "".join(
            f"[Peer]\nPublicKey = {base64.b64encode(bytes([1] * 28) + i.to_bytes(4, 'big')).decode()}\n"
            for i in range(20_000))
        path = self.write("many.conf", FILE + peers)
        read, write = os.pipe()
        process = subprocess.Popen(
            [COMMAND, "export", path], stdout=write, stderr=subprocess.PIPE)
        os.close(write)
        self.assertEqual(os.read(read, 11), b"[Interface]")
        os.close(read)  # far more is to come than a pipe holds
        self.assertEqual(process.communicate(timeout=60)[1], b"")
        self.assertEqual(process.returncode, 0)

    def test_a_full_disk_is_an_error(self):
        path = self.write("a.conf", FILE)
        with open("/dev/full", "wb") as full:
            result = subprocess.run(
                [COMMAND, "export", path], stdout=full, stderr=subprocess.PIPE, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"standard output", result.stderr)


class Bench(CommandTest):
    def engine(self, script):
        path = self.write("nexusguard-engine", "#!/bin/sh\n" + script, 0o755)
        return {"NEXUSGUARD_ENGINE": path}

    def test_arguments_output_and_exit_code_are_the_engines(self):
        env = self.engine('echo "$@"; echo no >&2; exit 7\n')
        for options in ([], ["--json"]):
            result = self.run_command("bench", *options, env=env)
            self.assertEqual(result.output, " ".join(["--bench", *options]) + "\n")
            self.assertEqual((result.error, result.returncode), ("no\n", 7))

    def test_a_missing_engine_is_named(self):
        error = self.fail_with(1, "bench", env={"NEXUSGUARD_ENGINE": "/nowhere/engine"}).error
        self.assertIn("/nowhere/engine", error)


class Keys(CommandTest):
    def test_pubkey_of_rfc7748(self):
        self.assertEqual(self.succeed("pubkey", text=PRIVATE + "\n").output, PUBLIC + "\n")
        self.assertEqual(self.succeed("pubkey", text=PRIVATE).output, PUBLIC + "\n")
        self.assertEqual(self.succeed("pubkey", text=PRIVATE + " \r\n\n").output, PUBLIC + "\n")

    def test_genkey_makes_clamped_keys_of_wg(self):
        for _ in range(8):
            text = self.succeed("genkey").output
            key = base64.b64decode(text.strip(), validate=True)
            self.assertEqual(len(text), 45)
            self.assertEqual((key[0] & 7, key[31] & 0xC0), (0, 0x40))

    @unittest.skipUnless(shutil.which("wg"), "no wg to compare with")
    def test_pubkey_prints_what_wg_prints(self):
        for _ in range(8):
            for maker in ([COMMAND, "genkey"], ["wg", "genkey"], ["wg", "genpsk"]):
                key = subprocess.run(maker, capture_output=True, check=True).stdout
                wg = subprocess.run(["wg", "pubkey"], input=key, capture_output=True, check=True)
                self.assertEqual(self.succeed("pubkey", text=key).stdout, wg.stdout)

    def test_genpsk_makes_different_keys(self):
        keys = {self.succeed("genpsk").output for _ in range(8)}
        self.assertEqual(len(keys), 8)
        self.assertTrue(all(len(base64.b64decode(key)) == 32 for key in keys))

    def test_a_key_in_a_file_for_everybody_is_warned_of(self):
        for mode, warns in ((0o644, True), (0o600, False)):
            path = self.write("key", "", mode)
            with open(path, "wb") as output:
                result = subprocess.run(
                    [COMMAND, "genkey"], stdout=output, stderr=subprocess.PIPE, check=True)
            self.assertEqual(b"everybody" in result.stderr, warns)
            self.assertEqual(Path(path).stat().st_size, 45)

    def test_case_C14_C93_what_is_no_key_is_not_printed(self):
        for text in [PRIVATE[:-2], PRIVATE[:-2] + "t=", PRIVATE + "A", "!" + PRIVATE[1:],
                     " " + PRIVATE, PRIVATE + "\n" + PRIVATE, "", "A" * 5000]:
            with self.subTest(text):
                result = self.fail_with(1, "pubkey", text=text)
                self.assertNotIn(PRIVATE[2:12], result.error)


class Check(CommandTest):
    def check(self, text, *options):
        path = self.write("a.conf", text)
        return self.run_command("check", *options, path)

    def test_good_files_are_told_on_standard_output(self):
        result = self.check(FILE)
        self.assertEqual((result.returncode, result.error), (0, ""))
        self.assertTrue(result.output.endswith("a.conf: ok, 1 peer\n"))
        self.assertEqual(self.check(FILE, "-q").output, "")

    def test_standard_input(self):
        self.assertEqual(self.succeed("check", "-", text=FILE).output, "<stdin>: ok, 1 peer\n")

    def test_every_error_has_its_place(self):
        text = FILE.replace("51820\nAddress", "518200\nAddress").replace("25", "25s")
        result = self.check(text)
        self.assertEqual(result.returncode, 5)
        lines = result.error.splitlines()
        self.assertEqual(len(lines), 2, result.error)
        self.assertIn("a.conf:3:14: error: ", lines[0])
        self.assertIn("a.conf:11:23: error: ", lines[1])
        self.assertIn('"25s"', lines[1])

    def test_several_files_are_all_checked(self):
        self.write("a.conf", FILE.replace("25", "x"))
        self.write("b.conf", FILE)
        result = self.run_command("check", "a.conf", "b.conf")
        self.assertEqual(result.returncode, 5)
        self.assertIn("a.conf:11:", result.error)
        self.assertEqual(result.output, "b.conf: ok, 1 peer\n")

    def test_json_says_the_same(self):
        self.write("a.conf", FILE.replace("25", "25s"))
        self.write("b.conf", FILE.replace("10.77.0.2/32", "10.77.0.2/24"))
        result = self.run_command("check", "--json", "a.conf", "b.conf")
        self.assertEqual((result.returncode, result.error), (5, ""))
        document = json.loads(result.output)
        self.assertEqual(document["schemaVersion"], 1)
        bad, good = document["files"]
        self.assertEqual((bad["file"], bad["valid"], good["valid"]), ("a.conf", False, True))
        self.assertEqual([bad["findings"][0][k] for k in ("severity", "line", "column", "text")],
                         ["error", 11, 23, "25s"])
        self.assertEqual([f["severity"] for f in good["findings"]], ["warning"])

    def test_a_missing_file_says_what_to_do(self):
        self.assertIn("check the name", self.fail_with(1, "check", "./none.conf").error)
        error = self.fail_with(1, "check", "nosuchtunnel0").error
        self.assertIn("/etc/nexusguard/nosuchtunnel0.conf", error)
        self.assertIn("/etc/wireguard/nosuchtunnel0.conf", error)

    def test_case_C01_C02_windows_files_are_read(self):
        text = b"\xef\xbb\xbf" + FILE.replace("\n", "\r\n").encode()
        self.assertEqual(self.check(text).returncode, 0)
        self.assertNotIn("\r", self.succeed("export", "a.conf", "-q").output)

    def test_case_C03_a_comma_too_many_has_its_place(self):
        for text in ("10.0.0.2/32,", "10.0.0.2/32,,10.0.0.3"):
            result = self.check(FILE.replace("10.77.0.2/32, fd77::2/128", text))
            self.assertEqual(result.returncode, 5)
            self.assertRegex(result.error, r"a\.conf:9:\d+: error: nothing between commas")

    def test_case_C04_empty_values(self):
        self.assertEqual(self.check(FILE.replace("10.77.0.2/32, fd77::2/128", "")).returncode, 0)
        self.assertNotIn("AllowedIPs", self.succeed("export", "a.conf", "-q").output)
        result = self.check(FILE.replace(PUBLIC, ""))
        self.assertEqual(result.returncode, 5)
        self.assertIn("PublicKey has no value", result.error)

    def test_case_C05_C06_names_in_any_case_and_no_blanks(self):
        text = FILE.replace("PublicKey = ", "publickey=").replace("[Peer]", "[ pEER ]")
        self.assertEqual(self.check(text).returncode, 0)

    def test_case_C08_a_peer_in_comments_is_none(self):
        commented = "".join("#" + line + "\n" for line in FILE.split("[Peer]")[1].splitlines())
        result = self.check(FILE + "#[Peer]" + commented)
        self.assertIn("1 peer", result.output)

    def test_case_C09_a_semicolon_is_no_comment(self):
        result = self.check("; hello\n" + FILE)
        self.assertEqual(result.returncode, 5)
        self.assertIn('a.conf:1:1: error: ";" does not start a comment', result.error)
        self.assertIn('use "#"', result.error)

    def test_case_C12_C13_duplicates_name_both_lines(self):
        twice = self.check(FILE.replace("Address", "ListenPort = 1\nAddress"))
        self.assertEqual(twice.returncode, 5)
        self.assertRegex(twice.error, r"a\.conf:4:\d+: error: ListenPort again, first on line 3")
        peers = self.check(FILE + f"[Peer]\nPublicKey = {PUBLIC}\n")
        self.assertEqual(peers.returncode, 5)
        self.assertRegex(peers.error, r"a\.conf:12:1: error: .*the peer on line 6")
        self.assertEqual(
            self.check(FILE.replace("Address", "ListenPort = 1\nAddress"), "--lenient").returncode, 0)

    def test_case_C14_C93_a_damaged_key_is_never_shown(self):
        for key in (PRIVATE[:-2] + "=", PRIVATE[:-2] + "t=", PRIVATE + "A", "$" + PRIVATE[1:]):
            for option in ([], ["--json"]):
                result = self.check(FILE.replace(PRIVATE, key), *option)
                self.assertEqual(result.returncode, 5)
                self.assertNotIn(PRIVATE[4:14], result.output + result.error)

    def test_case_C23_an_empty_or_cut_file_is_refused(self):
        for text in ("", "\n# nothing\n", FILE.split("PrivateKey")[0], "[Peer]\n"):
            with self.subTest(text):
                self.assertEqual(self.check(text).returncode, 5)

    def test_case_C94_keys_are_no_arguments(self):
        """No verb takes a key as an argument: an operand is a path or a name, and not repeated."""
        self.assertEqual(self.run_command("pubkey", PRIVATE).returncode, 2)

    def test_case_C95_a_file_with_keys_for_everybody_is_refused(self):
        for verb in ("check", "strip", "export"):
            for mode in (0o604, 0o644, 0o602, 0o666):
                with self.subTest(verb=verb, mode=oct(mode)):
                    path = self.write("a b.conf", FILE, mode)
                    result = self.fail_with(5, verb, path)
                    self.assertIn(f"chmod 600 '{path}'", result.error)
                    self.assertNotIn(PRIVATE, result.error)
                    self.succeed(verb, "--insecure-permissions", path)
        for mode in (0o600, 0o400, 0o640):
            self.succeed("strip", self.write("a.conf", FILE, mode))
        keyless = f"[Interface]\n[Peer]\nPublicKey = {PUBLIC}\n"
        self.succeed("check", "--lenient", self.write("a.conf", keyless, 0o644))


class Copies(CommandTest):
    def test_case_C10_strip_leaves_what_wg_takes(self):
        path = self.write("wg0.conf", HOOKS.replace("[Peer]", "MTU = 1400\nX = y\n[Peer]", 1))
        text = self.succeed("strip", "-q", path).output
        for name in ("Address", "MTU", "PostUp", "X ="):
            self.assertNotIn(name, text)
        for name in ("PrivateKey", "ListenPort", "PresharedKey", "Endpoint", "PersistentKeepalive"):
            self.assertIn(name, text)

    @unittest.skipUnless(shutil.which("wg-quick"), "no wg-quick to compare with")
    def test_strip_has_the_settings_of_wg_quick_strip(self):
        path = self.write("wg0.conf", HOOKS.replace("[Peer]", "MTU = 1400\n[Peer]", 1))
        wg_quick = subprocess.run(["wg-quick", "strip", path], capture_output=True, check=True)

        def settings(text):
            return [line.replace(" ", "") for line in text.splitlines() if line.strip()]
        self.assertEqual(settings(self.succeed("strip", path).output),
                         settings(wg_quick.stdout.decode()))

    def test_export_again_is_the_same(self):
        once = self.succeed("export", "-", text=FILE).output
        self.assertEqual(self.succeed("export", "-", text=once).output, once)
        self.assertIn(PRIVATE, once)

    def test_case_C16_C19_import_spells_uniformly(self):
        text = FILE.replace("192.0.2.2:51820", "2001:DB8:0::1:51820")
        text = text.replace("10.77.0.2/32", "10.77.9.2/24").replace("PublicKey", "PUBLICKEY")
        output = self.succeed("import", "-", "-o", "-", text=text).output
        self.assertIn("Endpoint = [2001:db8::1]:51820\n", output)
        self.assertIn("AllowedIPs = 10.77.9.0/24, fd77::2/128\n", output)
        self.assertIn("\nPublicKey = ", output)

    def test_case_C26_hooks_need_a_decision(self):
        path = self.write("wg0.conf", HOOKS)
        result = self.fail_with(5, "import", path, "-o", "out.conf")
        self.assertIn('PostUp = iptables -A FORWARD -i %i  -j ACCEPT; echo "#1"', result.error)
        self.assertIn("--allow-hooks", result.error)
        self.assertFalse((self.directory / "out.conf").exists())
        left_out = self.succeed("import", path, "-o", "-", "--no-hooks")
        self.assertNotIn("PostUp", left_out.output)
        self.assertIn("PostUp", left_out.error)
        self.fail_with(2, "import", path, "-o", "-", "--no-hooks", "--allow-hooks")

    def test_case_C25_allowed_hooks_stay_word_for_word(self):
        path = self.write("wg0.conf", HOOKS)
        self.assertIn('PostUp = iptables -A FORWARD -i %i  -j ACCEPT; echo "#1"\n',
                      self.succeed("import", path, "-o", "-", "--allow-hooks").output)

    def test_case_C61_unknown_settings_stay(self):
        text = self.succeed("import", "-", "-o", "-", "-q", text=FILE + "X-Tool = 7 # seven\n").output
        self.assertIn("X-Tool = 7", text)

    def test_case_C94_copies_are_for_their_owner_alone(self):
        os.umask(0o022)
        result = self.succeed("import", "-", "-o", "out.conf", text=FILE)
        self.assertEqual(result.output, "out.conf\n")
        self.assertEqual((self.directory / "out.conf").stat().st_mode & 0o7777, 0o600)
        self.assertEqual(os.listdir(self.directory), ["out.conf"])

    def test_a_file_that_is_there_stays(self):
        path = self.write("out.conf", "precious")
        for verb in ("import", "export"):
            self.assertIn("--force", self.fail_with(1, verb, "-", "-o", path, text=FILE).error)
            self.assertEqual(Path(path).read_text(), "precious")
        self.succeed("export", "-", "--force", "-o", path, text=FILE)
        self.assertIn(PRIVATE, Path(path).read_text())

    def test_a_refused_file_is_not_copied(self):
        self.fail_with(5, "import", "-", "-o", "out.conf", text=FILE.replace(PUBLIC, "AAAA"))
        self.assertEqual(os.listdir(self.directory), [])

    def test_standard_input_has_no_name(self):
        self.assertIn("--name", self.fail_with(2, "import", "-", text=FILE).error)

    def test_keys_survive(self):
        text = self.succeed("export", "-", text=FILE).output
        for key in (PRIVATE, PUBLIC, PRESHARED):
            self.assertIn(key, text)


if __name__ == "__main__":
    unittest.main()
