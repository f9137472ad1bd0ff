#!/usr/bin/env python3
"""The documents of docs/ run: each command prints what stands there.

A block of ```console is commands ("$ tlparse …") and what they print, as far as "…"; one of ```pycon is a session of Python. Commands of ```sh blocks need
PyTorch, a cluster or a forge: of them tlparse's own commands and flags are looked up in --help.

usage: test_documents.py [--update]     with --update the screens are written into the documents: read the diff
"""

import glob
import json
import os
import re
import shlex
import subprocess
import sys
import unittest

import harness

os.environ.pop("COLUMNS", None)

BLOCK = re.compile(r"(?m)^```console\n(.*?)^```$", re.DOTALL)
SHELL_BLOCK = re.compile(r"(?m)^(?:```(?:sh|yaml))\n(.*?)^```$", re.DOTALL)
RECORDED_BY = re.compile(r"(?<=/home)/\w+/")
MOST_LINES = 12
MOST_COLUMNS = 140


def path_of(name):
    return os.path.join(harness.ROOT, "docs", name)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def commands(block):
    """Those of a block."""
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


class Screens(harness.EndToEnd):
    def run_command(self, command):
        words = shlex.split(command)
        self.assertEqual(words[0], "tlparse", command)
        done = self.tlparse(*words[1:], expect=None)
        self.assertEqual(done.stderr, "", command)
        lines = [line if len(line) <= MOST_COLUMNS else line[:MOST_COLUMNS] + "…" for line in map(str.rstrip, RECORDED_BY.sub("/u/", done.stdout).splitlines())]
        if "--db-only" in words:
            lines = lines[1:]  # where the database is
        if len(lines) > MOST_LINES:
            lines = lines[:MOST_LINES] + ["…"]
        return lines + ([f"exit {done.returncode}"] if done.returncode else [])

    def check(self, name, least):
        os.symlink(os.path.join(harness.ROOT, "fixtures"), self.path("fixtures"))
        text = read(path_of(name))
        blocks = BLOCK.findall(text)
        self.assertGreaterEqual(len(blocks), least)
        for block in blocks:
            shown = "".join(f"$ {command}\n" + "".join(line + "\n" for line in self.run_command(command)) for command in commands(block))
            if UPDATE:
                text = text.replace(f"```console\n{block}```", f"```console\n{shown}```", 1)
            else:
                self.assertEqual(shown, block)
        if UPDATE:
            write(path_of(name), text)

    def test_questions(self):
        self.check("questions.md", 13)

    def test_get_a_trace(self):
        self.check("get-a-trace.md", 6)

    def test_in_ci(self):
        self.check("in-ci.md", 3)


class FromPython(harness.EndToEnd):
    def test_session(self):
        path = path_of("from-python.md")
        self.assertGreaterEqual(read(path).count(">>> "), 5)
        # In another process: doctest loads readline, which sets COLUMNS.
        done = subprocess.run([sys.executable, "-m", "doctest", "-o", "ELLIPSIS", path], cwd=harness.ROOT, capture_output=True, text=True, check=False,
                              env={**os.environ, "TLPARSE": harness.TLPARSE, "PYTHONPATH": os.path.join(harness.ROOT, "python")})
        self.assertEqual([done.stdout, done.returncode], ["", 0], done.stderr)


class Reference(harness.EndToEnd):
    def test_it_is_what_help_says(self):
        text = self.tlparse("manual", "--markdown").stdout
        if UPDATE:
            write(path_of("reference.md"), text)
        self.assertEqual(read(path_of("reference.md")), text)


class Schemas(harness.EndToEnd):
    """schemas/json/answers: files of answers whose fields are declared are what the program makes of them."""

    def test_files_are_what_the_program_says(self):
        names = self.tlparse("schema").stdout.split()
        self.assertIn("diff", names)
        for name in names:
            said = self.tlparse("schema", name).stdout
            if '"$comment"' not in said:
                continue
            path = os.path.join(harness.ROOT, "schemas", "json", "answers", name + ".schema.json")
            text = json.dumps(json.loads(said), indent=2, ensure_ascii=False) + "\n"
            if UPDATE:
                write(path, text)
            self.assertEqual(read(path), text, "run this test with --update")
        self.assert_one_line_of_complaint(self.tlparse("schema", "nothing", expect=2))


class Flags(harness.EndToEnd):
    """Nothing stands in a document that the program does not take."""

    def calls(self, text):
        for block in SHELL_BLOCK.findall(text):
            for line in block.replace("\\\n", " ").splitlines():
                for part in re.split(r"[|;&]|\$\(|<\(", line.split(" #")[0]):
                    words = part.replace("'", " ").split()
                    if "tlparse" in words:
                        words = words[words.index("tlparse") + 1:]
                        yield words[:words.index("--")] if "--" in words else words

    def test_commands_and_flags_are_known(self):
        reference = self.tlparse("manual", "--markdown").stdout
        known = {}
        for section in re.split(r"(?m)^## ", reference)[1:]:
            name = section.split("\n", 1)[0]
            known["" if name == "tlparse without a command" else name] = set(re.findall(r"`(-[^` ]*)", section))
        count = 0
        for path in [os.path.join(harness.ROOT, "README.md"), *sorted(glob.glob(path_of("*.md")))]:
            for words in self.calls(read(path)):
                name = next((name for name in (" ".join(words[:2]), " ".join(words[:1])) if name and name in known), "")
                for word in words:
                    if word.startswith("-") and word not in ("-", "--help"):
                        self.assertIn(word.split("=")[0], known[name], f"{os.path.basename(path)}: tlparse {' '.join(words)}")
                        count += 1
        self.assertGreaterEqual(count, 20)


class Action(harness.EndToEnd):
    """The step of docs/ci/tlparse-check.yml, as a forge runs it."""

    def step(self, **inputs):
        script = re.search(r"(?m)^      run: \|\n((?:        .*\n)+)", read(path_of("ci/tlparse-check.yml"))).group(1)
        os.makedirs(self.path("bin"), exist_ok=True)
        if not os.path.exists(self.path("bin", "tlparse")):
            os.symlink(harness.TLPARSE, self.path("bin", "tlparse"))
        return subprocess.run(["sh", "-e", "-c", script], cwd=self.folder, capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": self.path("bin") + ":" + os.environ["PATH"], "GITHUB_STEP_SUMMARY": self.path("summary"), **inputs})

    def test_step(self):
        self.tlparse(os.path.join(harness.ROOT, "fixtures", "logs", "simple"), "-o", "run")
        done = self.step(DIRECTORY="run", BUDGET="--no-failures --max-recompiles 3", AGAINST="none/trace.db")
        self.assertEqual([done.returncode, done.stderr], [0, ""])
        self.assertIn("within its budget", read(self.path("summary")))
        self.assertIn("<testsuite name=", read(self.path("tlparse.xml")))
        self.tlparse(os.path.join(harness.ROOT, "fixtures", "logs", "recompiles_2_6"), "-o", "other")
        done = self.step(DIRECTORY="other", BUDGET="--no-failures", AGAINST="run/trace.db")
        self.assertEqual([done.returncode, done.stderr], [1, ""])
        self.assertIn("| **failed** |", read(self.path("tlparse.md")))
        self.assertIn("```text\n", read(self.path("tlparse.md")))


UPDATE = "--update" in sys.argv
if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--update"])
