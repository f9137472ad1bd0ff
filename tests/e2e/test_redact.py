#!/usr/bin/env python3
"""tlparse redact: what is in the copies, and what their answers say."""

import glob
import json
import os
import pickle
import re
import resource
import shutil
import subprocess
import sys
import unittest
import zipfile

import harness

sys.path[:0] = [os.path.join(harness.ROOT, "tests", folder) for folder in ("tools", "inputs")]
import memory_snapshot  # noqa: E402
import test_nccl_ras  # noqa: E402

WORDS, NAMES = [set(part.split()) for part in open(os.path.join(harness.ROOT, "tlparse", "src", "redact", "public_words.txt"), encoding="utf-8").read().split("\n\n")]
USER_PATH = re.compile(r"^(?!.*(?:site-packages|dist-packages|/lib/python|torchinductor|<)).*/(\w+)\.py$")


def identifiers(log):
    """The names of the user's functions, variables and files that a log has, by its frames: not as redact finds them."""
    interned, found = {}, set()
    for line in log.splitlines():
        header = re.search(r"\] (\{.*)$", line)
        try:
            envelope = json.loads(header.group(1)) if header and not line.startswith("\t") else {}
        except ValueError:
            continue
        if "str" in envelope:
            interned[envelope["str"][1]] = envelope["str"][0]
        for value in envelope.values():
            for stack in [value] + list(value.values() if isinstance(value, dict) else []):
                for frame in stack if isinstance(stack, list) else []:
                    path = interned.get(frame.get("filename"), "") if isinstance(frame, dict) else ""
                    user = USER_PATH.match(path)
                    if user:
                        found.update([user.group(1) + ".py", frame["name"]], re.findall(r"[A-Za-z_]\w+", frame.get("loc") or ""), path.split("/")[1:-1])
    return {name for name in found if len(name) > 2 and name.strip("_").lower() not in NAMES and name not in ("<module>", "<lambda>", "tmp", "usr", "lib", "home")}


class Redact(harness.EndToEnd):
    def job(self, scenario, ranks=4):
        for rank in range(ranks):
            self.write(f"logs/dedicated_log_torch_trace_rank_{rank}_abcdefgh.log", harness.log_bytes(harness.bundled(scenario, rank)))

    def text(self, folder):
        return "".join(harness.log_bytes(path).decode() for path in sorted(glob.glob(self.path(folder, "**", "*"), recursive=True)) if os.path.isfile(path))

    def findings(self, folder):
        self.tlparse(folder, "-o", folder + "_out")
        return json.loads(self.tlparse("findings", folder + "_out", "--json").stdout)["findings"]

    def test_a_log_longer_than_a_piece(self):
        """Records of a log are read piece by piece of 1 MiB; where the pieces end changes nothing."""
        data = harness.log_bytes(harness.bundled("simple"))
        for name, log in (("short", data), ("long", data * (1 + (3 << 20) // len(data)))):
            self.write(f"{name}/dedicated_log_torch_trace_abcdefgh.log", log)
            self.tlparse("redact", name, "-o", name + "_copy", "--key", "key")
        short, long = self.text("short_copy"), self.text("long_copy")
        self.assertGreater(len(long), 3 << 20)
        self.assertTrue(long == short * (len(long) // len(short)))

    def check(self, scenario):
        self.job(scenario)
        self.tlparse("redact", "logs", "-o", "copies", "--key", "key")
        # Names of PyTorch's own may hold a word of the user's.
        copies = re.sub(r"[A-Za-z]\w*_\w+", lambda name: "" if name.group().lower() in NAMES else name.group(), self.text("copies"))
        names = identifiers(self.text("logs"))
        self.assertGreaterEqual(len(names), 3)
        for name in names:
            self.assertIsNone(re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", copies), name)
        # What the answers say, with the names again. The id is made of names.
        before, after = self.findings("logs"), self.findings("copies")
        self.assertTrue(before)
        self.write("after.json", json.dumps(after).encode())
        back = json.loads(self.tlparse("unredact", "after.json", "--key", "key").stdout)
        say = [[[finding[key] for key in ("kind", "severity", "ranks", "compiles", "since_us", "title")] for finding in findings] for findings in (before, back)]
        self.assertEqual(say[1], say[0])
        # No payload lost its MD5, and no record was lost.
        counts = "SELECT (SELECT count(*) FROM record), (SELECT count(*) FROM record WHERE payload_state = 'mismatch'), (SELECT count(*) FROM kernel), (SELECT count(*) FROM guard)"
        self.assertEqual(harness.rows(self.path("copies_out", "trace.db"), counts), harness.rows(self.path("logs_out", "trace.db"), counts))

    def test_config_divergence(self):
        self.check("diverge_config_2_6")

    def test_crash(self):
        self.check("crash_in_compile")

    def test_order_of_collectives(self):
        self.check("diverge_order")

    def test_straggler(self):
        self.check("straggler_late")

    def test_names_of_pytorch_hold_words_of_the_user(self):
        """A component of a key stays fx_kwargs[…] although the user's code has kwargs: answers know it by its name."""
        log = harness.log_bytes(harness.bundled("diverge_config_2_6", 0))
        self.assertEqual(log.count(b"kwargs = "), 0)
        self.write("logs/dedicated_log_torch_trace_rank_0_abcdefgh.log", log.replace(b'"loc": "', b'"loc": "kwargs = '))
        self.tlparse("redact", "logs", "-o", "copies", "--key", "key")
        copies = self.text("copies")
        self.assertEqual(len(re.findall(r"\bfx_kwargs\b", copies)), len(re.findall(rb"\bfx_kwargs\b", log)))
        self.assertIsNone(re.search(r"\bkwargs\b", copies))

    def test_a_key_makes_the_same_pseudonyms(self):
        self.job("diverge_config_2_6")
        for copies in ("one", "two"):
            self.tlparse("redact", "logs", "-o", copies, "--key", "key")
        self.assertEqual(self.text("one"), self.text("two"))
        self.assertEqual(os.stat(self.path("key")).st_mode & 0o777, 0o600)
        self.assertEqual(self.tlparse("redact", "logs", "-o", "one", expect=2).stderr, "tlparse: the directory 'one' is not empty; give a new one\n")

    def test_dumps_and_profiles(self):
        entry = {"frames": [{"name": "fetch_secrets", "filename": "/home/u/someone/plan/vaults.py", "line": 12}], "record_id": 0, "pg_id": 0, "process_group": ("0", "zebra_pg"),
                 "collective_seq_id": 1, "p2p_seq_id": 0, "op_id": 1, "profiling_name": "nccl:all_reduce", "time_created_ns": 1795723969507274388,
                 "input_sizes": [[1445]], "input_dtypes": ["Float"], "output_sizes": [[1445]], "output_dtypes": ["Float"], "state": "scheduled", "retired": False, "timeout_ms": 300000, "is_p2p": False}
        self.write("in/nccl_trace_rank_1", pickle.dumps({"version": "2.10", "pg_config": {}, "pg_status": {}, "entries": [entry]}, protocol=2))
        self.write("in/profile.json", json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": 1}, "traceEvents": [
            {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "ts": 1.0, "dur": 2.5, "pid": 1, "tid": 1, "args": {"Input Dims": [[8, 24]]}},
            {"ph": "X", "cat": "python_function", "name": "plan/vaults.py(12): fetch_secrets", "ts": 0.5, "dur": 4, "pid": 1, "tid": 1, "args": {}}]}).encode())
        self.write("in/notes.txt", b"fetch_secrets")
        report = json.loads(self.tlparse("redact", "in", "-o", "copies", "--key", "key", "--json").stdout)
        copies = self.text("copies")
        for name in ("secrets", "zebra", "vaults", "someone", "home/"):
            self.assertNotIn(name, copies)
        for kept in ("aten::addmm", "1445", "nccl:all_reduce", "1795723969507274388", "[[8, 24]]", "(12): "):
            self.assertIn(kept, copies)
        self.assertEqual({os.path.basename(file["path"]): bool(file["written"]) for file in report["files"]}, {"nccl_trace_rank_1": True, "profile.json": True, "notes.txt": False})
        name = re.search(r"\(12\): (\w+)", copies).group(1)
        self.assertEqual(self.tlparse("unredact", "--key", "key", stdin=name.encode()).stdout, "fetch_secrets")
        self.assertEqual(copies.count(name), 2, "the same in both files")

    def test_sizes_are_hidden(self):
        """No number of a size is left, and what answers say is the same with the sizes again."""
        self.job("dynamic", 1)
        log = self.text("logs")
        sizes = set()
        for size in re.findall(r'"(?:size|stride|shape)": \[([\d, ]*)\]', log) + re.findall(r"\w\[([\d, ]+)\]", log):
            sizes.update(number for number in size.replace(" ", "").split(",") if len(number) >= 2)
        self.assertGreaterEqual(len(sizes), 3)
        self.tlparse("redact", "logs", "-o", "copies", "--key", "key", "--no-shapes")
        copies = self.text("copies")
        texts = "\n".join(line for line in copies.splitlines() if line.startswith("\t") and '":' not in line)
        for number in sizes:
            self.assertIsNone(re.search(rf"[\[( ]{number}[,\]) L]", texts), number)
            self.assertIsNone(re.search(rf'"(?:size|stride|shape)": \[[^\]]*\b{number}\b', copies), number)
        before, after = self.findings("logs"), self.findings("copies")
        self.write("after.json", json.dumps(after).encode())
        back = json.loads(self.tlparse("unredact", "after.json", "--key", "key").stdout)
        self.assertTrue(before)
        say = [[[finding[key] for key in ("kind", "severity", "ranks", "compiles", "since_us", "title")] for finding in findings] for findings in (before, back)]
        self.assertEqual(say[1], say[0])
        counts = "SELECT (SELECT count(*) FROM record), (SELECT count(*) FROM record WHERE payload_state = 'mismatch'), (SELECT count(*) FROM kernel), (SELECT count(*) FROM guard)"
        self.assertEqual(harness.rows(self.path("copies_out", "trace.db"), counts), harness.rows(self.path("logs_out", "trace.db"), counts))
        self.assert_one_line_of_complaint(self.tlparse("bundle", "logs", "-o", "report.zip", "--no-shapes", expect=2))

    def test_a_profile_takes_less_than_to_read_it(self):
        events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 1, "tid": 1, "ts": 100 + 10 * at, "dur": 5, "args": {"External id": at}}
                  for at in range(20000)]
        self.write("profile.json", json.dumps({"schemaVersion": 1, "traceEvents": events}).encode())
        spent = []
        for arguments in (["profile.json", "-o", "out"], ["redact", "profile.json", "-o", "copy", "--key", "key"]):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            self.tlparse(*arguments)
            spent.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
        self.assertLess(spent[1], 5 * spent[0])  # 0.5 to 0.7 times; what reads back from each name was a hundred times
        with open(self.path("profile.json"), "rb") as profile, open(self.path("copy", "profile.json"), "rb") as copy:
            self.assertEqual(profile.read(), copy.read())

    def test_what_cannot_be_parsed_is_dropped(self):
        log = harness.log_bytes(harness.bundled("diverge_config_2_6", 0))
        first = log.split(b"\n", 1)[0]
        self.write("logs/dedicated_log_torch_trace_rank_0_abcdefgh.log", b"hunter2 printed\n" + log + first.rsplit(b"}", 1)[0] + b"\n\thunter2\n")
        file = json.loads(self.tlparse("redact", "logs", "-o", "copies", "--json").stdout)["files"][0]
        self.assertEqual([file["dropped_records"], file["dropped_lines"]], [1, 1])
        self.assertNotIn("hunter", self.text("copies"))


class Outputs(harness.EndToEnd):
    """What programs printed: no name is left, and the findings are the same with the names again."""

    def check(self, names):
        for folder in ("copies", "copies_out", "in_out"):
            shutil.rmtree(self.path(folder), ignore_errors=True)
        self.tlparse("redact", "in", "-o", "copies", "--key", "key", "--json")
        copies = {os.path.basename(path): harness.log_bytes(path).decode() for path in glob.glob(self.path("copies", "*"))}
        said = []
        for folder in ("in", "copies"):
            self.tlparse(folder, "-o", folder + "_out", "--db-only")
            self.write("said.json", self.tlparse("findings", folder + "_out", "--json").stdout.encode())
            findings = json.loads(self.tlparse("unredact", "said.json", "--key", "key").stdout)["findings"]
            said.append([[finding[key] for key in ("kind", "severity", "ranks", "title")] for finding in findings])
        self.assertTrue(said[0])
        self.assertEqual(said[1], said[0])
        for text in copies.values():
            for name in names:
                self.assertFalse(name in text, name)  # the text is long
        return copies

    def test_traceback_of_a_program(self):
        """Python's own, of names that are made of PyTorch's words; the code of a frame names more. One frame lies across the pieces that are read."""
        self.write("walter/load_store.py", b"class GroupWriter:\n    def open_first_batch(self, rank_table):\n        return rank_table['first step']\n\n\nGroupWriter().open_first_batch({})\n")
        program = subprocess.run([sys.executable, self.path("walter/load_store.py")], capture_output=True, check=False)
        self.assertIn(b"open_first_batch", program.stderr)
        # What a file is, is read from its beginning. Launchers put the rank in front.
        printed = [b"".join(b"[rank0]: " + line for line in error.splitlines(keepends=True)) for error in (
            subprocess.run([sys.executable, "-c", "raise ValueError(3)"], capture_output=True, check=False).stderr, program.stderr)]
        filler = b"step 1\n" * ((1 << 20) // 7)
        for shift in (0, printed[1].index(b"    return rank_table") + 1):
            with self.subTest(shift=shift):
                self.write("in/stderr.txt", printed[0] + filler[: (1 << 20) - len(printed[0]) - shift - 1] + b"\n" + printed[1])
                copies = self.check(("walter", "load_store", "open_first_batch", "rank_table", "GroupWriter"))
                text, = copies.values()
                self.assertTrue(text.endswith("KeyError: 'first step'\n"))

    def test_report_of_nccl(self):
        self.write("in/ras.txt", test_nccl_ras.BEHIND.format(64, 60).replace("10.0.0.2", "walters-node").encode())
        text, = self.check(("walter", "node-")).values()
        self.assertIn("Rank 7 has launched up to operation 60", text)


class Snapshots(harness.EndToEnd):
    """Snapshots of the allocator: no name is left, and `memory` says the same with the names again."""

    def allocator(self):
        allocator = memory_snapshot.Allocator()
        torch = "/usr/lib/python3/dist-packages/torch"
        stacks = [[memory_snapshot.frame("forward", f"{torch}/nn/modules/linear.py", 125), memory_snapshot.frame(f"zebra_attention_{i}", f"/home/u/walter/acme_models/vaults_{i % 3}.py", 10 + i),
                   memory_snapshot.frame("train_acme", "/home/u/walter/launch_acme.py", 7)] for i in range(9)]
        for number in range(6):
            with allocator.step(number):
                kept = [allocator.alloc(1000 * (i + 1) + number, stack, "Torch-Compiled Region: 0/0" if i % 2 else None) for i, stack in enumerate(stacks)]
                for address in kept[:-1]:
                    allocator.free(address, stacks[0])
        allocator.annotate("START", "walter warms up")
        allocator.oom(1 << 30, 1 << 20, stacks[4])
        return allocator

    names = ("zebra", "attention_1", "walter", "acme", "vaults", "launch_acme", "train_acme", "home/")

    def answers(self, path, name):
        self.tlparse(path, "--db", name, "--db-only")
        for by in ("line", "graph", "node", "category", "stack"):
            for at in ("peak", "oom", "end", "2", "+20us"):
                yield json.loads(self.tlparse("memory", name, "--json", "--top", "1000", "--by", by, "--at", at).stdout)

    def check(self, form, **more):
        name = "in/memory_rank_3." + ("json" if form == "json" else "pickle")
        os.makedirs(self.path("in"))
        memory_snapshot.write(memory_snapshot.snapshot([self.allocator()]), self.path(name), form, **more)
        self.tlparse("redact", "in", "-o", "copies", "--key", "key")
        copy, = glob.glob(self.path("copies", "*"))
        with open(copy, "rb") as file:
            copied = file.read()
        for own in self.names:
            self.assertIn(own.encode(), open(self.path(name), "rb").read())
            self.assertNotIn(own.encode(), copied)
        before, after = list(self.answers("in", "a.db")), list(self.answers("copies", "b.db"))
        self.write("after.json", json.dumps(after).encode())
        back = json.loads(self.tlparse("unredact", "after.json", "--key", "key").stdout)

        def comparable(answers):
            text = []
            for answer in answers:
                for device in answer["devices"]:
                    device.pop("path")
                    for rows in [device["rows"], device["growth"], (device["freed"] or {"rows": []})["rows"]]:
                        rows.sort(key=lambda row: json.dumps(row, sort_keys=True))
                text.append(json.dumps(answer, sort_keys=True))
            return text
        self.assertEqual(comparable(back), comparable(before))
        self.assertTrue(all(answer["devices"] for answer in before))
        return copied

    def test_pickle(self):
        copied = self.check("pickle")
        # Other programs read it too.
        self.assertEqual(len(pickle.loads(copied)["device_traces"][0]), len(self.allocator().events))

    def test_protocols(self):
        for protocol in (2, 5):
            with self.subTest(protocol=protocol):
                self.setUp()
                self.check("pickle", protocol=protocol)

    def test_pickle_of_cpp(self):
        self.check("cpp")

    def test_json(self):
        self.check("json")

    def test_json_longer_than_a_piece(self):
        """Where the pieces of 1 MiB end changes nothing, and what is held does not grow with the file."""
        os.makedirs(self.path("in"))
        value = memory_snapshot.snapshot([self.allocator()])
        events = value["device_traces"][0]
        for name, times in (("short", 1), ("long", 1 + (3 << 20) // len(json.dumps(events)))):
            value["device_traces"] = [events * times]
            self.write(f"{name}/a.json", json.dumps(value).encode())
            self.tlparse("redact", name, "-o", name + "_copy", "--key", "key")
        short, long = [json.load(open(self.path(name + "_copy", "a.json"), encoding="utf-8")) for name in ("short", "long")]
        self.assertEqual(long["device_traces"][0], short["device_traces"][0] * times)
        self.assertEqual(long["segments"], short["segments"])

    def test_order_of_members(self):
        """A frame of which the file's name comes first."""
        frame = {"filename": "/home/u/walter/acme_models/vaults.py", "line": 3, "name": "forward_zebra_batch"}
        self.write("in/a.json", json.dumps({"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": 512, "stream": 0, "time_us": 5, "frames": [frame]}]]}).encode())
        self.tlparse("redact", "in", "-o", "copies")
        self.assertNotIn(b"forward_zebra_batch", open(self.path("copies", "a.json"), "rb").read())
        self.assertNotIn(b"zebra", open(self.path("copies", "a.json"), "rb").read())

    def test_what_is_no_snapshot_is_left_out(self):
        os.makedirs(self.path("in"))
        memory_snapshot.write(memory_snapshot.snapshot([self.allocator()]), self.path("in/m.pickle"))
        with open(self.path("in/m.pickle"), "r+b") as file:
            file.truncate(os.path.getsize(self.path("in/m.pickle")) // 2)
        report = json.loads(self.tlparse("redact", "in", "-o", "copies", "--json", expect=2).stdout)
        self.assertEqual([(file["written"], "the pickle ends" in file["reason"]) for file in report["files"]], [(None, True)])

    def test_sizes_cannot_be_hidden(self):
        os.makedirs(self.path("in"))
        memory_snapshot.write(memory_snapshot.snapshot([self.allocator()]), self.path("in/m.pickle"))
        report = json.loads(self.tlparse("redact", "in", "-o", "copies", "--no-shapes", "--json", expect=2).stdout)
        self.assertIn("sizes", report["files"][0]["reason"])

    def test_bundle(self):
        self.write("job/dedicated_log_torch_trace_rank_0_abcdefgh.log", harness.log_bytes(harness.bundled("diverge_config_2_6", 0)))
        memory_snapshot.write(memory_snapshot.snapshot([self.allocator()]), self.path("job/m.pickle"))
        self.tlparse("bundle", "job", "-o", "report.zip", "--redact")
        with zipfile.ZipFile(self.path("report.zip")) as file:
            names = [name for name in file.namelist() if name.endswith(".pickle")]
            self.assertEqual(len(names), 1)
            texts = b"".join(file.read(name) for name in file.namelist())
        for own in self.names:
            self.assertNotIn(own.encode(), texts)


class Bundle(harness.EndToEnd):
    def bundle(self, *options):
        for rank in range(2):
            self.write(f"job/dedicated_log_torch_trace_rank_{rank}_abcdefgh.log", harness.log_bytes(harness.bundled("diverge_config_2_6", rank)))
        said = self.tlparse("bundle", "job", "-o", "report.zip", *options).stdout
        with zipfile.ZipFile(self.path("report.zip")) as file:
            self.assertIsNone(file.testzip())
            return said, {name: file.read(name).decode() for name in file.namelist()}

    def test_what_is_in_it(self):
        said, files = self.bundle()
        self.assertEqual(sorted(files), ["MANIFEST.md", "files/dedicated_log_torch_trace_rank_0_abcdefgh.log", "files/dedicated_log_torch_trace_rank_1_abcdefgh.log",
                                         "findings.md", "versions.txt"])
        self.assertRegex(files["versions.txt"], r"^tlparse \d+\.\d+\.\d+\n")
        self.assertNotIn("left out", said + files["MANIFEST.md"])
        self.assertIn("exists", self.tlparse("bundle", "job", "-o", "report.zip", expect=2).stderr)

    def test_redacted(self):
        _, files = self.bundle("--redact", "--key", "key")
        names = identifiers("".join(text for text in map(bytes.decode, [harness.log_bytes(self.path("job", name)) for name in os.listdir(self.path("job"))])))
        self.assertGreaterEqual(len(names), 3)
        for name in names:
            self.assertIsNone(re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", "".join(files.values())), name)

    def test_what_is_too_large_is_left_out(self):
        self.write("job/profile.json", b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "' + os.urandom(1_500_000).hex().encode() + b'", "ts": 1, "dur": 1, "pid": 1, "tid": 1}]}')
        said, files = self.bundle("--max-mb", "1")
        self.assertIn("left out: files/profile.json", said)
        self.assertIn("`files/profile.json`, 3.0 MB: left out, too large", files["MANIFEST.md"])
        self.assertIn("files/dedicated_log_torch_trace_rank_0_abcdefgh.log", files)
        self.assertLess(os.path.getsize(self.path("report.zip")), 1_000_000)


if __name__ == "__main__":
    unittest.main()
