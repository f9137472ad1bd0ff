#!/usr/bin/env python3
"""Where logs come from: files, compressed files, standard input, directories, the latest one."""

import bz2
import gzip
import os
import re
import shutil
import subprocess
import unittest

import harness


def zstd(data):
    return subprocess.run(["zstd", "-qc"], input=data, capture_output=True, check=True).stdout


class Input(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        self.log = harness.bundled("simple")
        self.data = harness.log_bytes(self.log)

    def read(self, *arguments, **options):
        self.tlparse(*arguments, "-o", "out", "--overwrite", **options)
        return self.path("out", "trace.db")

    def test_compressed(self):
        half = len(self.data) // 2
        for name, data in (("a.log.gz", gzip.compress(self.data)),
                           ("two_members.gz",
                            gzip.compress(self.data[:half]) + gzip.compress(self.data[half:])),
                           ("b.log.zst", zstd(self.data)),
                           ("two_frames.zst", zstd(self.data[:half]) + zstd(self.data[half:])),
                           ("no_extension", gzip.compress(self.data)),
                           ("wrong.log", zstd(self.data))):
            with self.subTest(name):
                path = self.write(name, data)
                self.check(self.read(path), path)

    def test_cut_compressed_file_loses_only_its_end(self):
        for name, data in (("cut.log.gz", gzip.compress(self.data)),
                           ("cut.log.zst", zstd(self.data))):
            with self.subTest(name):
                database = self.read(self.write(name, data[:len(data) * 3 // 4]))
                records, = harness.rows(database, "SELECT count(*) FROM record")
                self.assertGreater(records[0], 50)
                self.assertGreater(harness.rows(
                    database, "SELECT count(*) FROM import_log WHERE severity = 'error'")[0][0], 0)

    def test_standard_input(self):
        for name, data in (("plain", self.data), ("gzip", gzip.compress(self.data)),
                           ("zstd", zstd(self.data))):
            with self.subTest(name):
                self.check(self.read("-", stdin=data), self.log)

    def test_several_files(self):
        logs = [harness.bundled("diverge_config_2_6", rank) for rank in range(4)]
        database = self.read(*logs)
        self.check(database, *logs)
        self.assertEqual(harness.rows(database, "SELECT count(*) FROM run"), [[1]])
        self.assertEqual(harness.rows(database, "SELECT DISTINCT rank FROM process ORDER BY 1"),
                         [[0], [1], [2], [3]])

    def test_rank_from_file_name(self):
        path = self.write("dedicated_log_torch_trace_rank_12_abcd_123.log", self.data)
        database = self.read(path)
        self.assertEqual(harness.rows(database, "SELECT DISTINCT rank FROM record"), [[12]])
        self.check(database, path)

    def test_directory(self):
        shutil.copytree(os.path.dirname(harness.bundled("cache_some_ranks")),
                        self.path("job", "ranks"))
        self.write("job/deep/er/odd name.txt", self.data)
        self.write("job/deep/er/packed.gz", gzip.compress(self.data))
        self.write("job/README.md", b"# Not a trace\n")
        self.write("job/core.bz2", bz2.compress(self.data))
        self.write("job/empty.log", b"")
        os.symlink(self.path("job"), self.path("job", "deep", "loop"))
        database = self.read("job")
        logs = [self.path("job", name) for name in harness.tree(self.path("job"))
                if "rank_" in name or "odd" in name or "packed" in name]
        self.assertEqual(len(logs), 6)
        self.check(database, *logs)
        self.assertEqual(harness.rows(
            database, "SELECT count(*) FROM log_file WHERE record_count > 0"), [[6]])
        skipped = harness.rows(database, "SELECT severity, coalesce(path, '') || message || coalesce(text, '') "
                               "FROM import_log WHERE severity = 'info'")
        for name in ("README.md", "core.bz2"):
            self.assertTrue(any(name in text for _, text in skipped), f"no word about {name}")

    def test_latest(self):
        for age, name in ((300, "old.log"), (100, "sub/new.log"), (200, "middle.log")):
            path = self.write("job/" + name, self.data)
            time = os.stat(path).st_mtime - age
            os.utime(path, (time, time))
        database = self.read("--latest", "job")
        self.assertEqual([os.path.basename(path) for path, in
                          harness.rows(database, "SELECT path FROM log_file")], ["new.log"])

    def test_latest_is_one_log_and_all_ranks_are_several(self):
        self.write("job/a.log", self.data)
        done = self.tlparse("--latest", "--all-ranks-html", "job", expect=2)
        self.assert_one_line_of_complaint(done)
        self.assertIn("--latest", done.stderr)

    def test_output_inside_the_input(self):
        self.write("job/a.log", self.data)
        for _ in range(2):
            self.tlparse("job", "-o", "job/out", "--overwrite")
        self.assertEqual(harness.rows(
            self.path("job", "out", "trace.db"),
            "SELECT count(*) FROM import_log WHERE code = 'skipped_file'"), [[1]])

    def test_unreadable(self):
        self.write("empty/README.md", b"nothing here\n")
        for arguments in (["no_such_file"], ["no_such_dir/"], ["empty"], ["--latest", "empty"],
                          ["--no-such-flag", self.log],
                          ["sql", "no.db", "SELECT 1"], ["history", "no.db"], ["history", "empty"]):
            with self.subTest(arguments):
                done = self.tlparse(*arguments, expect=2)
                self.assert_one_line_of_complaint(done)
                self.assertFalse(os.path.exists(self.path("tl_out")))

    def test_answers_of_logs_are_those_of_their_database(self):
        folder = os.path.dirname(harness.bundled("crash_in_compile"))
        self.tlparse(folder, "--db", "job.db", "--run", folder, "--db-only")
        for command in ("findings", "status", "ranks", "history", "cache", "check --no-failures"):
            with self.subTest(command):
                name, *options = command.split()
                of_database = self.tlparse(name, "job.db", *options, "--json", expect=None)
                of_logs = self.tlparse(name, folder, *options, "--json", expect=None)
                self.assertEqual((of_logs.returncode, of_logs.stdout), (of_database.returncode, of_database.stdout))
                self.assertRegex(of_logs.stderr, r"^tlparse: reading \d+ files? of '.*' for this answer; .*\n$")
        self.assertEqual(sorted(os.listdir(self.path("."))), ["job.db"])

    def test_one_unreadable_of_several_is_named(self):
        done = self.tlparse(self.log, "no_such_file", "-o", "out", expect=2)
        self.assertIn("no_such_file", done.stderr)
        self.assertFalse(os.path.exists(self.path("out", "trace.db")))


class Commands(harness.EndToEnd):
    def test_no_argument_is_called_like_an_option(self):
        # CLI11 2.6 refuses an option --db beside an argument db; that of Debian 12 takes both.
        commands = [[name] for name in re.findall(r"(?m)^  tlparse ([a-z-]+)", self.tlparse("--help").stdout) if name != "fleet"]
        commands += [["fleet", name] for name in re.findall(r"(?m)^  ([a-z]+) ", self.tlparse("fleet", "--help").stdout)]
        self.assertGreater(len(commands), 20)
        for command in commands:
            with self.subTest(command):
                said = self.tlparse(*command, "--help").stdout
                arguments, _, options = said.partition("\nOptions:\n")
                names = set(re.findall(r"(?m)^  ([a-z][\w-]*) ", arguments))
                options = {name for line in options.splitlines() if line.startswith("  -")
                           for name in re.findall(r"--([a-z][\w-]*)", line.split("  ")[1])}
                self.assertEqual(set(), names & options)
                self.assertIn("help", options)


if __name__ == "__main__":
    unittest.main()
