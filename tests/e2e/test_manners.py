#!/usr/bin/env python3
"""What a shell and a person see of the command line: completion, the manual page, suggestions, versions."""

import os
import re
import shutil
import subprocess
import unittest

import harness


class Completion(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        for rank in range(3):
            self.write(f"logs/dedicated_log_torch_trace_rank_{rank}_abcdefgh.log", harness.log_bytes(harness.bundled("diverge_config_2_6", rank)))
        self.tlparse("logs", "-o", "out")

    def complete(self, *words):
        """What bash offers for the line."""
        line = " ".join(f"'{word}'" for word in words)
        script = (f"source <('{harness.TLPARSE}' completion bash)\nCOMP_WORDS=('{harness.TLPARSE}' {line}); COMP_CWORD={len(words)}\n"
                  'complete -p tlparse >&2; _tlparse; printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "--norc", "-c", script], cwd=self.folder, capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "complete -o bashdefault -o default -F _tlparse tlparse\n")
        return [line for line in done.stdout.split("\n") if line]

    def test_commands_and_options(self):
        self.assertEqual(self.complete("fin"), ["findings"])
        self.assertIn("serve", self.complete(""))
        self.assertEqual(self.complete("--db-o"), ["--db-only"])
        self.assertEqual(self.complete("findings", "out", "--sev"), ["--severity"])
        self.assertEqual(self.complete("fleet", "rec"), ["recompiles"])
        self.assertEqual(self.complete("fleet", "recompiles", "--jo"), ["--job"])
        self.assertEqual(self.complete("run", "--", "python", "--o"), [], "what follows -- is the command's")

    def test_values_of_the_database_on_the_line(self):
        self.assertEqual(self.complete("cache", "out", "--rank", ""), ["0", "1", "2"])
        self.assertEqual(self.complete("cache", "out", "--rank", "=", "2"), ["2"], "bash divides --rank=2")
        self.assertEqual(self.complete("findings", "out/trace.db", "--run", ""), ["logs"])
        self.assertEqual(self.complete("findings", "out", "--launch", ""), ["1"])
        kernels = {row[0] for row in harness.rows(self.path("out", "trace.db"), "SELECT DISTINCT name FROM kernel")}
        self.assertTrue(kernels)
        self.assertEqual(set(self.complete("provenance", "out", "--kernel", "")), kernels)
        self.assertEqual(self.complete("cache", "nothing", "--rank", ""), [], "then bash offers files")

    def test_values_with_a_choice(self):
        self.assertEqual(self.complete("completion", ""), ["bash", "zsh", "fish"])
        self.assertEqual(self.complete("findings", "out", "--severity", "w"), ["warning"])
        self.assertEqual(self.complete("explain", "cold"), ["cold_cache"])

    def test_scripts_are_valid(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.tlparse("completion", shell).stdout
            if shutil.which(shell):
                subprocess.run([shell, "-n"], input=script, text=True, check=True)

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish(self):
        script = f"'{harness.TLPARSE}' completion fish | source; complete -C '{harness.TLPARSE} cache out --rank '"
        offered = subprocess.run(["fish", "--no-config", "-c", script], cwd=self.folder, capture_output=True, text=True, check=True)
        self.assertEqual(offered.stdout, "0\n1\n2\n")


class Manual(harness.EndToEnd):
    def test_all_commands_and_options_are_in_it(self):
        page = self.tlparse("manual").stdout.replace("\\-", "-")
        commands = re.findall(r"^  tlparse (\S+)", self.tlparse("--help").stdout, re.MULTILINE)
        self.assertGreater(len(commands), 20)
        for command in commands:
            self.assertRegex(page, rf"(?m)^\.SS tlparse {command}\b")
            if command == "fleet":
                continue
            section = page.split(f".SS tlparse {command} ")[1].split(".SS ")[0]
            for option in re.findall(r"^  (?:-\w,)?(--[a-z-]+)", self.tlparse(command, "--help").stdout, re.MULTILINE):
                if option != "--help":
                    self.assertIn(f"\\fB{option}\\fR", section, command)

    @unittest.skipUnless(shutil.which("man"), "no man")
    def test_man_reads_it_without_warnings(self):
        page = self.write("tlparse.1", self.tlparse("manual").stdout.encode())
        shown = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, check=True, env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8"})
        self.assertEqual(shown.stderr, "")
        self.assertRegex(shown.stdout, r"tlparse findings <db>")


class Words(harness.EndToEnd):
    def test_mistyped_words(self):
        self.assertEqual(self.tlparse("findngs", "out", "--markdown", expect=2).stderr,
                         "tlparse: 'findngs' is neither a command nor a file; did you mean 'tlparse findings'?\n")
        self.assertIn("did you mean '--severity'?", self.tlparse("findings", "out", "--severty", "error", expect=2).stderr)
        self.assertIn("did you mean 'recompiles'?", self.tlparse("fleet", "recompile", expect=2).stderr)
        for far in ("zzz", "--zzz"):
            self.assertNotIn("did you mean", self.tlparse(far, expect=2).stderr)
        self.write("findngs", b"")
        self.assertNotIn("did you mean", self.tlparse("findngs", expect=None).stderr, "a file is a file")

    def test_alone(self):
        self.assertIn("no input; give a log", self.tlparse(expect=2).stderr)
        self.write("dedicated_log_torch_trace_rank_0_abcdefgh.log", harness.log_bytes(harness.bundled("diverge_config_2_6", 0)))
        self.assertEqual(self.tlparse(expect=2).stderr,
                         "tlparse: no input; this directory holds 1 log of PyTorch: 'tlparse .' ingests it and writes a report to tl_out\n")
        self.tlparse(".")
        self.assertIn("'tlparse findings tl_out' says what the report in it found", self.tlparse(expect=2).stderr)

    def test_version(self):
        with open(os.path.join(harness.ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
            version = re.search(r"project\(tracekit VERSION (\S+)", file.read()).group(1)
        self.assertEqual(self.tlparse("--version").stdout, f"tlparse {version}\n")
        self.assertRegex(self.tlparse("--version", "--verbose").stdout, rf"^tlparse {version}\nschema \d+ of the database\n(.*\n)*SQLite 3\.")
        with open(os.path.join(harness.ROOT, "CHANGELOG.md"), encoding="utf-8") as file:
            self.assertEqual(re.search(r"(?m)^## (\S+)", file.read()).group(1), version, "the newest heading of CHANGELOG.md")


if __name__ == "__main__":
    unittest.main()
