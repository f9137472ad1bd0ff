#!/usr/bin/env python3
"""Inputs that may not be opened, and files whose names say what they are."""

import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import profiles  # noqa: E402
from profiles import harness  # noqa: E402


class Unread(profiles.InputTest):
    def job(self):
        """A folder with the logs of four ranks."""
        folder = self.path("job")
        shutil.copytree(os.path.join(profiles.ROOT, "fixtures", "logs", "fsdp2"), folder)
        os.chmod(self.folder, 0o777)
        return folder

    def close(self, path):
        os.chmod(path, 0)
        self.addCleanup(os.chmod, path, 0o700)

    def refused(self, folder):
        """Ingests as a user who may not read all of it; the lines of standard error."""
        nobody = {"user": 65534, "group": 65534} if os.geteuid() == 0 else {}  # root may read everything
        self.database = self.path("t.db")
        done = subprocess.run([harness.TLPARSE, folder, "--db", self.database, "--run", "r", "--db-only"], capture_output=True, text=True, check=False,
                              cwd=self.folder, **nobody)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stderr

    def test_a_log_that_may_not_be_read(self):
        folder = self.job()
        log, = [name for name in os.listdir(folder) if "rank_2" in name]
        self.close(os.path.join(folder, log))
        said = self.refused(folder)
        self.assertIn(f"{log}: it cannot be read: Permission denied", said)
        self.assertEqual([[0], [1], [3]], self.rows(self.database, "SELECT rank FROM process ORDER BY rank"))
        kinds = {finding["kind"]: finding for finding in self.answer("findings", self.database)["findings"]}
        self.assertNotIn("missing_rank", kinds)
        self.assertEqual(("The log of rank 2 cannot be opened: Permission denied", [2]), tuple(kinds["import_errors"][key] for key in ("title", "ranks")))
        self.check_it_is_said(os.path.join(folder, log), "Permission denied")

    def check_it_is_said(self, path, reason):
        """Of rank 2."""
        row, = [one for one in self.answer("import-log", self.database)["rows"] if one["severity"] == "error"]
        self.assertEqual((path, "unread_input", f"it cannot be read: {reason}"), (row["path"], row["code"], row["message"]))
        self.assertNotIn("compressed", row["advice"])
        self.assertEqual([{"rank": 2, "path": path, "reason": reason}], self.answer("status", self.database)["inputs_not_read"])
        self.assertRegex(self.tlparse("status", self.database).stdout, r"(?m)^2 +not read")
        checked = json.loads(self.tlparse("check", self.database, "--no-divergence", "--json", expect=2).stdout)
        self.assertEqual([("no-divergence", True), ("inputs", False)], [(rule["name"], rule["is_ok"]) for rule in checked["rules"]])

    def test_a_directory_in_place_of_a_log(self):
        folder = self.job()
        log, = [name for name in os.listdir(folder) if "rank_2" in name]
        os.remove(os.path.join(folder, log))
        os.mkdir(os.path.join(folder, log))
        self.assertIn(f"{log}: it cannot be read: it is a directory", self.refused(folder))
        self.check_it_is_said(os.path.join(folder, log), "it is a directory")

    def test_a_file_and_a_folder_without_a_name_of_a_log(self):
        folder = self.job()
        os.mkdir(os.path.join(folder, "sub"))
        self.write("job/c.log", b"x")
        for name in ("sub", "c.log"):
            self.close(os.path.join(folder, name))
        said = self.refused(folder)
        for name in ("sub: it cannot be read: Permission denied", "c.log: it cannot be read: Permission denied"):
            self.assertIn(name, said)
        titles = [finding["title"] for finding in self.answer("findings", self.database)["findings"] if finding["kind"] == "import_errors"]
        self.assertEqual([f"{folder}/{name} cannot be opened: Permission denied" for name in ("c.log", "sub")], sorted(titles))

    def test_names_that_say_what_a_file_is(self):
        folder = self.job()
        self.write("job/nccl_trace_rank_3", b"\x80\x02cposix\nsystem\nX\x02\x00\x00\x00ls\x85R.")
        self.write("job/nccl_trace_rank_1", b"\x80\x02")
        self.write("job/nccl_trace_rank_0", b"")
        database = self.ingest(folder)
        rows = {rank: (code, message) for rank, code, message in self.rows(
            database, "SELECT p.rank, i.code, i.message FROM import_log i JOIN profile p ON p.id = i.profile_id WHERE i.severity = 'error'")}
        self.assertEqual({3: "refused_pickle", 1: "cut_profile", 0: "cut_profile"}, {rank: code for rank, (code, _) in rows.items()})
        self.assertEqual("the recorder dump is empty (0 bytes): rank 0 ended while it wrote it, or the disk was full", rows[0][1])
        self.assertEqual(["flight_recorder"] * 3, [kind for kind, in self.rows(database, "SELECT kind FROM profile")])
        self.assertIn("import_errors", [finding["kind"] for finding in self.answer("findings", database)["findings"]])

    def test_a_device_is_no_database(self):
        done = self.tlparse(harness.bundled("simple"), "--db", "/dev/full", "--db-only", expect=2)
        self.assert_one_line_of_complaint(done)
        self.assertIn("'/dev/full' is a device", done.stderr)


if __name__ == "__main__":
    unittest.main()
