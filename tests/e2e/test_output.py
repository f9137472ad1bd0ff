#!/usr/bin/env python3
"""What is written where: the output directory, what may be deleted, what is printed."""

import json
import os
import pty
import subprocess
import unittest

import harness
import derive_traces


class Output(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        self.log = harness.bundled("simple")

    def test_pipe_gets_the_path_and_nothing_else(self):
        done = self.tlparse(self.log)
        self.assertEqual(done.stderr, "")
        line, = done.stdout.splitlines()
        self.assertIn("tl_out", line)
        self.assertNotIn("\x1b", line)
        self.assertEqual(harness.tree(self.folder)[0].split(os.sep)[0], "tl_out")

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_answer_that_cannot_be_written(self):
        self.tlparse(self.log, "-o", "out")
        for arguments in (["history"], ["sql", "SELECT * FROM record", "--json"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([harness.TLPARSE, arguments[0], "out", *arguments[1:]],
                                      cwd=self.folder, stdout=full, stderr=subprocess.PIPE,
                                      check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(b"standard output", done.stderr)

    def test_json_on_a_terminal(self):
        self.write("odd.log", b'V1121 08:30:01.000000 7 a.py:1] {"graph_dump": '
                              b'{"name": "\\u009b31m \\u007f \\u202eabc \\u00e9"}}\n')
        self.tlparse("odd.log", "-o", "out")
        command = ["sql", "out", "SELECT metadata ->> '$.name' AS name FROM record", "--json"]
        piped = self.tlparse(*command).stdout
        try:
            ours, theirs = pty.openpty()
        except OSError as error:  # a folder of debootstrap without /dev/pts
            self.skipTest(f"no terminal here: {error}")
        done = subprocess.run([harness.TLPARSE, *command], cwd=self.folder, stdout=theirs, check=False)
        os.close(theirs)
        shown = os.read(ours, 65536).decode("utf-8")
        os.close(ours)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(json.loads(shown), json.loads(piped))
        for character in "\x9b\x7f\u202e":
            self.assertNotIn(character, shown)

    def test_db_only(self):
        self.tlparse(self.log, "-o", "out", "--db-only")
        # Besides, a hidden mark by which --overwrite knows the directory as ours.
        files = [name for name in harness.tree(self.path("out")) if not name.startswith(".")]
        self.assertEqual(files, ["trace.db"])

    def test_nothing_but_the_output_directory_is_touched(self):
        self.tlparse(self.log, "-o", "out")
        self.assertEqual(os.listdir(self.folder), ["out"])

    def test_directories_above_are_made(self):
        self.tlparse(self.log, "-o", "runs/today/out")
        self.assertEqual(os.listdir(self.path("runs", "today")), ["out"])
        self.tlparse(self.log, "--db", "all/jobs.db", "--db-only")
        self.assertEqual(os.listdir(self.path("all")), ["jobs.db"])
        done = self.tlparse(self.log, "-o", "all/jobs.db/below", expect=2)
        self.assertIn("all/jobs.db", done.stderr)
        self.assert_one_line_of_complaint(done)

    def test_peer_files(self):
        self.tlparse(harness.bundled("tlparse_meta"), "-o", "out")
        with open(self.path("out", "compile_directory.json"), encoding="utf-8") as file:
            directory = json.load(file)
        listed = [artifact["url"] for entry in directory.values()
                  for artifact in entry["artifacts"]]
        self.assertGreater(len(listed), 50)
        for url in listed:
            self.assertTrue(os.path.exists(self.path("out", url)), url)
        with open(self.path("out", "chromium_events.json"), encoding="utf-8") as file:
            self.assertEqual(len(json.load(file)), 843)
        with open(self.path("out", "raw.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual(list(lines[0]), ["string_table"])
        self.assertEqual(len(lines) - 1, 1334 - 843 - 47)  # without chromium events and str

    def test_custom_header(self):
        header = "<p class='ours'>job 7 &amp; its ranks</p>"
        for arguments in ([], ["--all-ranks-html"]):
            self.tlparse(self.log, "-o", "out", "--overwrite", "--custom-header-html", header,
                         *arguments)
            for page in ("index.html", "files.html"):
                if os.path.exists(self.path("out", page)):  # files.html: only with the viewer
                    self.assertIn(header.encode(), self.content(os.path.join("out", page)), page)

    def test_existing_directory_needs_overwrite(self):
        self.tlparse(self.log, "-o", "out")
        before = os.stat(self.path("out", "trace.db")).st_mtime_ns
        self.assert_one_line_of_complaint(self.tlparse(self.log, "-o", "out", expect=2))
        self.assertEqual(os.stat(self.path("out", "trace.db")).st_mtime_ns, before)
        self.tlparse(harness.bundled("mlp_train"), "-o", "out", "--overwrite")
        self.check(self.path("out", "trace.db"), harness.bundled("mlp_train"))

    def test_overwrite_leaves_no_file_of_the_old_report(self):
        self.tlparse(harness.bundled("failures_2_6"), "-o", "out")
        self.tlparse(self.log, "-o", "out", "--overwrite")
        self.tlparse(self.log, "-o", "fresh")
        self.assertEqual(harness.tree(self.path("out")), harness.tree(self.path("fresh")))

    def test_overwrite_refuses_what_is_not_ours(self):
        self.write("foreign/precious.txt", b"keep me")
        self.write("looks_alike/index.html", b"a page of mine")
        self.write("looks_alike/trace.db", b"not a database of ours")
        self.write("file", b"keep me too")
        os.symlink(self.path("foreign"), self.path("link"))
        before = {name: self.content(name) for name in harness.tree(self.folder)}
        for target in ("foreign", "looks_alike", "file", "link", "."):
            with self.subTest(target):
                done = self.tlparse(self.log, "-o", target, "--overwrite", expect=2)
                self.assert_one_line_of_complaint(done)
                after = {name: self.content(name) for name in harness.tree(self.folder)}
                self.assertEqual(before, after)

    def content(self, name):
        path = self.path(name)
        if os.path.isdir(path):
            return "directory"
        with open(path, "rb") as file:
            return file.read()

    def test_overwrite_does_not_follow_links_out(self):
        self.tlparse(self.log, "-o", "out")
        self.write("outside/precious.txt", b"keep me")
        os.symlink(self.path("outside"), self.path("out", "payloads_link"))
        self.tlparse(self.log, "-o", "out", "--overwrite", expect=None)
        self.assertEqual(self.content("outside/precious.txt"), b"keep me")

    def test_hostile_names_write_nothing_outside(self):
        derive_traces.derive(self.path("logs"), only="hostile_names")
        log = self.path("logs", "hostile_names.log")
        os.makedirs(self.path("a", "b", "c"))
        out = self.path("a", "b", "c", "out")
        self.tlparse(log, "-o", out)
        self.assertFalse(os.path.exists("/tmp/tracekit_escape"))
        self.assertEqual([name for name in harness.tree(self.folder)
                          if not name.startswith("a/b/c/out/")],
                         ["logs/hostile_names.expected.json", "logs/hostile_names.log"])
        for name in harness.tree(out):
            path = os.path.join(out, name)
            self.assertFalse(os.path.islink(path), name)
            self.assertTrue(os.path.realpath(path).startswith(os.path.realpath(out) + os.sep))
            self.assertFalse(any(ord(character) < 32 for character in name), repr(name))
        # The names are kept where they are data.
        names = {name for name, in harness.rows(
            os.path.join(out, "trace.db"), "SELECT DISTINCT name FROM record")}
        self.assertIn("../../../../tmp/tracekit_escape", names)
        self.assertIn("nul\0byte", names)
        self.assertIn("x" * 4096, names)
        self.check(os.path.join(out, "trace.db"), log)
        # Nothing of the log is markup: the pages hold no script of its making.
        for name in harness.tree(out):
            if name.endswith(".html"):
                with open(os.path.join(out, name), "rb") as file:
                    self.assertNotIn(b"<script>alert(1)</script>", file.read(), name)


if __name__ == "__main__":
    unittest.main()
