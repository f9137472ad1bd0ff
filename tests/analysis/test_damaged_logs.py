"""Logs that are damaged, or hold nothing: what is said of them, and what is not."""

import contextlib
import glob
import json
import os
import random as random_module
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, AnswerTest, ask, first_log, record, run  # noqa: E402


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    return subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=True).stdout if path.endswith(".zst") else data


def line_of(data, text):
    """The first line with the text: where it begins, and where the next one does."""
    at = data.index(text)
    return data.rindex(b"\n", 0, at) + 1, data.index(b"\n", at) + 1


def without_line(data, text):
    begin, end = line_of(data, text)
    return data[:begin] + data[end:]


class Damaged(AnswerTest):
    def damage(self, change, scenario="straggler_late", rank=1, change_file=None, name=None):
        """The job with the log of one rank (or of this name) changed; `change_file`: its compressed file."""
        name = name or f"_rank_{rank}_"
        folder = os.path.join(self.scratch, f"damaged_{len(os.listdir(self.scratch))}")
        os.mkdir(folder)
        for path in sorted(glob.glob(os.path.join(LOGS, scenario, "*.log*"))):
            data = read(path)
            if name in path and change_file:
                data = change_file(subprocess.run(["zstd", "-qc", "--check"], input=data, capture_output=True, check=True).stdout)
                with open(os.path.join(folder, os.path.basename(path).removesuffix(".zst") + ".zst"), "wb") as file:
                    file.write(data)
                continue
            if name in path:
                changed = change(data)
                self.assertNotEqual(data, changed)
                data = changed
            with open(os.path.join(folder, os.path.basename(path).removesuffix(".zst")), "wb") as file:
                file.write(data)
        return self.ingest(folder, name=os.path.basename(folder))

    def logged(self, database):
        """The codes of errors and warnings."""
        return [one["code"] for one in json.loads(run("import-log", database, "--json"))["rows"] if one["severity"] != "info"]

    def check_nothing_else_is_found(self, database, others=(("late_rank", [3]),)):
        findings = [one for one in ask("findings", database)["findings"] if one["severity"] != "note"]
        self.assertEqual(list(others), [(one["kind"], one["ranks"]) for one in findings if one["kind"] != "import_errors"])
        answer = ask("ranks", database)
        self.assertTrue(all(one["is_damaged"] for one in answer["classes"][1:]), answer["classes"])
        self.assertFalse(answer["has_divergence"])
        for name in ("cache", "collectives", "execution"):
            self.assertFalse(ask(name, database)["has_divergence"], name)
        with contextlib.closing(sqlite3.connect(database)) as connection:
            damaged = {str(rank) for rank, in connection.execute("SELECT p.rank FROM log_damage d JOIN process p ON p.id = d.process_id")}
            self.assertTrue(damaged)
            for view in ("cache_divergence", "collective_divergence", "execution_divergence"):
                for ranks, in connection.execute(f"SELECT ranks FROM {view}"):
                    self.assertFalse(damaged & set(ranks.split(",")), view)

    def test_damage_of_one_log_is_no_difference_between_ranks(self):
        database = self.damage(lambda data: data.replace(b"\n\tfrom torch import device", b"\n\tFrom torch import device", 1))
        findings = ask("findings", database)["findings"]
        self.assertEqual([("late_rank", [3]), ("import_errors", [])],
                         [(one["kind"], one["ranks"]) for one in findings if one["severity"] != "note"])
        self.assertIn("What sets rank 1 apart from the others may be the damage", findings[1]["detail"])

    def test_a_compile_whose_metrics_are_lost_is_done(self):
        changes = {"broken_header": lambda data: data.replace(b'{"compilation_metrics": ', b'{"compilation_metrics", ', 1),
                   "missing_metrics": lambda data: without_line(data, b'{"compilation_metrics": ')}
        for code, change in changes.items():
            with self.subTest(code):
                database = self.damage(change)
                self.assertEqual(self.logged(database), sorted({code, "missing_metrics"}))
                rows = ask("status", database)["rows"]
                self.assertEqual({row["state"] for row in rows}, {"between_compiles"})
                self.assertEqual(len({row["compiles_done"] for row in rows}), 1, rows)
                self.check_nothing_else_is_found(database)

    def test_a_changed_byte_of_a_header_makes_no_compile_and_no_rank(self):
        changes = {
            "broken_header": (b'] {"dynamo_output_graph"', b'] z"dynamo_output_graph"'),
            "damaged_header": (b'{"dynamo_output_graph"', b'{"dynamo_outpet_graph"'),
            "a member": (b'"frame_id": 0, "frame_compile_id": 0', b'"frame_id": 0, "frame_compile_jd": 0'),
            "a frame": (b'{"aot_forward_graph": {}, "rank": 1, "frame_id": 0,', b'{"aot_forward_graph": {}, "rank": 1, "frame_id": 7,'),
            "a rank": (b'{"aot_forward_graph": {}, "rank": 1,', b'{"aot_forward_graph": {}, "rank": 8,'),
        }
        for name, (old, new) in changes.items():
            with self.subTest(name):
                database = self.damage(lambda data: data.replace(old, new, 1))
                self.assertTrue(self.logged(database))
                self.check_nothing_else_is_found(database)

    def test_strict_accepts_no_damage(self):
        name = sorted(glob.glob(os.path.join(LOGS, "straggler_late", "*_rank_1_*")))[0]
        data = read(name)
        for number, (old, new, code) in enumerate([(b"", b"", 0), (b'] {"dynamo_output_graph"', b'] z"dynamo_output_graph"', 1),
                                                   (b'{"dynamo_output_graph"', b'{"dynamo_outpet_graph"', 1),
                                                   (b'{"dynamo_output_graph"', b'{"a_new_kind_of_record"', 0)]):
            path = os.path.join(self.scratch, f"{number}.log")
            with open(path, "wb") as file:
                file.write(data.replace(old, new, 1) if old else data)
            with self.subTest(new):
                run(path, "--db-only", "--strict", "--db", path + ".db", code=code)

    def test_a_log_that_is_cut_off_is_said_to_be(self):
        def cut(data):
            begin, end = line_of(data, b'"inductor_output_code"')
            return data[:end + 200]
        findings = ask("findings", self.damage(cut))["findings"]
        stopped = next(one for one in findings if one["kind"] == "stopped_first")
        self.assertEqual((stopped["ranks"], stopped["severity"]), ([1], "warning"))
        self.assertRegex(stopped["title"], r"^Rank 1's log is cut off inside ")
        self.assertIn("What the process did after that is not known: it may have ended there or gone on.", stopped["detail"])
        self.assertIn("The log's last record is incomplete: it is cut off, or damaged.", stopped["detail"])

    def test_a_log_that_begins_late_sets_its_rank_not_apart(self):
        """As of a log that was rotated away: its stacks name strings that it does not define."""
        for rank, share in ((0, 0.3), (1, 0.3), (1, 0.6)):
            with self.subTest(rank=rank, share=share):
                database = self.damage(lambda data: data[data.index(b"\nV", int(len(data) * share)) + 1:], rank=rank)
                self.assertIn("unresolved_string", self.logged(database))
                self.check_nothing_else_is_found(database)

    def test_logs_that_are_cut_off_in_other_compiles_did_not_end_there(self):
        for rank in range(2):
            text = self.compiled(0, "forward", "add", rank=rank) + self.compiled(1, "loss", "mul", rank=rank)
            at = text.rindex("l_x_ + 1") if rank else text.index("l_x_ + 1")
            self.save(f"cut/dedicated_log_torch_trace_rank_{rank}_abcd{rank}.log", text[:at])
        first = ask("findings", self.ingest(os.path.join(self.scratch, "cut"), name="cut"))["findings"][0]
        self.assertEqual(("stopped_first", "warning", "The logs of both ranks are cut off inside compiles"), (first["kind"], first["severity"], first["title"]))
        self.assertIn("What the processes did after that is not known: they may have ended there or gone on.", first["detail"])

    def test_a_compressed_log_that_is_cut_shows_nothing_of_what_came_after(self):
        changes = {"cut": lambda data: data[:len(data) // 3],
                   "a byte": lambda data: data[:len(data) // 3] + bytes([data[len(data) // 3] ^ 0x40]) + data[len(data) // 3 + 1:]}
        for name, change_file in changes.items():
            with self.subTest(name):
                database = self.damage(None, change_file=change_file)
                self.assertIn("damaged_input", self.logged(database))
                self.check_nothing_else_is_found(database)
                unread = [one for one in ask("findings", database)["findings"] if one["kind"] == "import_errors" and one["ranks"] == [1]]
                self.assertEqual(len(unread), 1)
                row = next(one for one in ask("status", database)["rows"] if one["rank"] == 1)
                self.assertTrue(unread[0]["title"].startswith(f"Rank 1's log can be read only up to byte {row['readable_bytes']}, "), unread[0])
                self.assertEqual(unread[0]["severity"], "warning")
                self.assertIn("What its process did after that is not known.", unread[0]["detail"])
                self.assertEqual({one["readable_bytes"] for one in ask("status", database)["rows"] if one["rank"] != 1}, {None})
                self.assertIn("log damaged", run("status", database))
                for answer in ("findings", "ranks", "collectives", "cache"):
                    text = " ".join(run(answer, database, "--all").split() if answer != "findings" else run(answer, database).split())
                    for claim in ("did not compile", "not compiled here", "the process died"):
                        self.assertNotIn(claim, text, answer)

    def test_how_an_earlier_launch_ended_is_not_told_from_logs_that_cannot_be_read(self):
        def of_launch(data):
            return data[:len(data) // 3]
        database = self.damage(None, "restart_manual_other_config", change_file=of_launch, name="rank_1_cvj0lawi")
        self.assertNotIn("restarted", [one["kind"] for one in ask("findings", database)["findings"]])
        restarted = [one for one in ask("findings", self.damage(None, "restart_elastic", change_file=of_launch, name="rank_2_"))["findings"]
                     if one["kind"] == "restarted"]
        for one in restarted:
            self.assertNotIn("inside a compile", one["title"])
            self.assertNotEqual(one["ranks"], [2])

    def test_what_a_cut_log_lacks_is_no_compile_that_was_left_out(self):
        database = self.damage(lambda data: data[:line_of(data, b'"inductor_output_code"')[1] + 200])
        answer = ask("findings", database)["findings"]
        stopped = next(one for one in answer if one["kind"] == "stopped_first")
        missing = [one for one in stopped["evidence"] if one["kind"] == "missing_compile"]
        self.assertEqual([one["severity"] for one in missing], ["note"])
        self.assertIn("not in the log of rank 1, which is cut off or damaged", missing[0]["title"])
        self.assertNotIn("missing_compile", [one["kind"] for one in answer])
        self.assertEqual([(one["ranks"]["ranks"], one["is_cut"], one["is_damaged"]) for one in ask("ranks", database)["classes"] if one["is_cut"]],
                         [("1", True, False)])
        self.assertNotIn("not compiled here", run("ranks", database) + run("cache", database) + run("collectives", database))

    def test_a_changed_letter_of_a_cache_layer_is_damage(self):
        database = self.damage(lambda data: data.replace(b'{"artifact": {"name": "fx_graph_cache_miss"', b'{"artifact": {"name": "fx_fraph_cache_miss"', 1))
        self.assertEqual(self.logged(database), ["damaged_header"])
        self.assertIn("'fx_fraph_cache_miss' occurs once and differs in one character from 'fx_graph_cache_miss'",
                      [one["message"] for one in json.loads(run("import-log", database, "--json"))["rows"]])
        self.assertRegex(run("import-log", database, "--unknown"), r"artifact +fx_fraph_cache_miss")
        self.check_nothing_else_is_found(database)

    def test_a_damaged_payload_gives_no_component_of_a_key_its_text(self):
        """Components are stored once a hash: noise in one log would be told of every rank with the same hash."""
        def noise(data):
            begin = line_of(data, b'{"artifact": {"name": "fx_graph_cache_miss"')[1]
            end = data.index(b"\n", begin)
            self.assertIn(b"inductor_config", data[begin:end])
            return data[:begin] + data[begin:end].replace(b": False", b": Fals\xee") + data[end:]
        database = self.damage(noise, rank=0)
        self.assertIn("payload_mismatch", self.logged(database))
        with contextlib.closing(sqlite3.connect(database)) as connection:
            values = [value for value, in connection.execute("SELECT DISTINCT value FROM cache_component WHERE name LIKE 'inductor_config%'")]
            self.assertIn("False", values)
            self.assertNotIn("Fals\ufffd", values)
            self.assertEqual([(0, 1)], connection.execute("SELECT rank, count(*) FROM cache_event WHERE components_state = 'unparsed' GROUP BY rank").fetchall())
        self.check_nothing_else_is_found(database)

    def test_options_that_are_no_object_any_more_are_none(self):
        for rank, options in enumerate(('{"max_fusion_size": 64}', '{"max_fusion_size": 64}', '{"max_fusion_size" 64}')):
            ids = {"rank": rank, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}
            metrics = {"co_name": "f", "co_filename": "/u/m.py", "co_firstlineno": 10, "compile_id": "0/0", "inductor_config": options}
            self.save(f"job/dedicated_log_torch_trace_rank_{rank}_abcd{rank}.log",
                      record({"dynamo_start": {"stack": [{"line": 10, "name": "f", "filename": 1, "loc": "x"}]}, **ids})
                      + record({"compilation_metrics": metrics, **ids}))
        database = self.ingest(os.path.join(self.scratch, "job"))
        self.assertEqual([one["kind"] for one in ask("findings", database)["findings"]], [])
        self.assertEqual([one["aspects"] for one in ask("ranks", database)["classes"][1:]], [[]])

    def test_the_total_of_a_compile_without_metrics_is_unknown(self):
        database = self.damage(lambda data: without_line(data, b'{"compilation_metrics": '))
        lost = [one for one in json.loads(run("history", database, "--json"))["compiles"] if one["duration_us"] is None]
        self.assertEqual([(one["rank"], one["label"], one["total_us"]) for one in lost], [(1, "0/0", None)])
        line = next(one for one in run("history", database, "--all").splitlines() if one.split()[:2] == ["1", "0/0"])
        healthy = next(one for one in run("history", database, "--all").splitlines() if one.split()[:2] == ["0", "0/0"])
        self.assertGreater(healthy.count(" s ") + healthy.count(" ms "), line.count(" s ") + line.count(" ms "))
        alone = self.ingest(*glob.glob(os.path.join(self.scratch, "damaged_*", "*_rank_1_*")), name="alone")
        self.assertEqual([one["median_compile_s"] for one in ask("ranks", alone)["classes"]], [None])
        self.assertIn("compile time at least ", run("ranks", alone))

    def test_no_sum_takes_an_unknown_time_for_none(self):
        """The compile's own time is lost; the log has that of its backward."""
        database = self.damage(lambda data: without_line(data, b'{"compilation_metrics": '))
        rest = sum(one["total_us"] for one in json.loads(run("history", database, "--json"))["compiles"] if one["rank"] == 1 and one["total_us"])
        with contextlib.closing(sqlite3.connect(database)) as connection:
            of_rank = dict((rank, values) for rank, *values in connection.execute("SELECT rank, compile_us, known_compile_us FROM rank_summary"))
        self.assertEqual(of_rank[1], [None, rest])
        self.assertEqual(of_rank[0][0], of_rank[0][1])
        checked, inputs = ask("check", database, "--max-compile-seconds", "1000", code=2)["rules"]
        self.assertTrue(checked["is_ok"])
        self.assertIn("missing_metrics", inputs["rows"][0])
        self.assertRegex(checked["actual"], r"^at least [0-9.]+ \(rank [0-9]\); 1 compile without a time in the log$")
        alone = self.ingest(*glob.glob(os.path.join(self.scratch, "damaged_*", "*_rank_1_*")), name="alone")
        checked = ask("check", alone, "--max-compile-seconds", "0.01", code=1)["rules"][0]
        self.assertEqual(checked["actual"], f"at least {rest / 1e6:.3f}; 1 compile without a time in the log")
        self.assertIn("time not in the log", " ".join(checked["rows"]))
        compared = ask("diff", database, "--rank", "0", "--rank", "1")["comparisons"][0]
        timed = [one for one in compared["compiles"] if {phase["phase"]: phase["b_us"] for phase in one["phases"]}["total"] is not None]
        self.assertEqual(compared["finished_count"], len(timed))
        self.assertEqual(len(compared["compiles"]) - 1, len(timed))
        self.assertEqual(next(phase["b_us"] for phase in compared["phases"] if phase["phase"] == "total"), rest)
        self.assertIn("and both logs have the times of", " ".join(run("diff", database, "--rank", "0", "--rank", "1").split()))

    def test_lost_and_changed_records_are_counted(self):
        database = self.damage(lambda data: data.replace(b'{"dynamo_output_graph"', b'{"dynamo_outpet_graph"', 1))
        errors = [one for one in ask("findings", database)["findings"] if one["kind"] == "import_errors"]
        self.assertEqual(len(errors), 1)
        name = next(name for name in os.listdir(database.removesuffix(".db")) if "_rank_1_" in name)
        self.assertEqual(errors[0]["title"], f"Records are lost or changed in 1 place of {name}: damaged_header ×1")
        self.assertEqual(errors[0]["try"], "compare with the original, or copy it again; 'tlparse import-log' lists where")
        self.assertIn("The header can be read, but a byte of it was changed", errors[0]["detail"])

    def test_what_damage_may_have_caused_says_so(self):
        """The last compile's metrics and the event that ends it are lost: the log seems to end inside it."""
        def change(data):
            end = data.rindex(b'\t"name": "dynamo",')
            metrics = data.rindex(b'{"compilation_metrics": ')
            begin = data.rindex(b"\n", 0, metrics) + 1
            changed = data[:begin] + data[data.index(b"\n", metrics) + 1:end] + data[end:].replace(b"dynamo", b"dxnamo", 1)
            return changed.replace(b"\n\tfrom torch import device", b"\n\tFrom torch import device", 1)
        database = self.damage(change)
        stopped = [one for one in ask("findings", database)["findings"] if one["kind"] == "stopped_first"]
        self.assertEqual([one["ranks"] for one in stopped], [[1]])
        self.assertIn("The log is damaged: records of it are lost or changed, which may be the cause of this.", stopped[0]["detail"])
        self.assertIn("the log of rank 1 is damaged (tlparse import-log): what sets it apart may be due to that", " ".join(run("ranks", database).split()))
        for text in self.aspects(database).get("1", []):
            self.assertNotIn("unfinished", text)
            self.assertFalse(text.startswith("collectives:"), text)


    def test_noise_in_the_middle_of_a_log_is_damage(self):
        """Plain lines that a program printed there are none, whatever their letters."""
        random = random_module.Random(5)
        for number in range(4):
            def noise(data):
                begin, end = line_of(data, b'"inductor_output_code"')[0], line_of(data, b'{"compilation_metrics": ')[0]
                return data[:begin] + random.randbytes(end - begin - 1).replace(b"\n\t", b"\n.") + b"\n" + data[end:]
            with self.subTest(number):
                database = self.damage(noise)
                self.assertIn("binary_noise", self.logged(database))
                errors, = [one for one in ask("findings", database)["findings"] if one["kind"] == "import_errors"]
                self.assertRegex(errors["title"], r"^The input is damaged in \d+ places? \(\d+ lines\) of .*binary_noise ×")
                self.assertIn("their number is not known", errors["detail"])
                self.check_nothing_else_is_found(database)
                inputs, = [one for one in ask("check", database, "--no-divergence", code=2)["rules"] if not one["is_ok"]]
                self.assertEqual(inputs["name"], "inputs")
        lines = ("step 3: loss 0.5\n\x1b[32mgreen\x1b[0m\r 50%|###  |\r100%|#####|\n\tindented\nпривет, größe\n".encode()
                 + "привет, мир".encode("cp1251") + b"\n" + "größe".encode("latin-1") + b"\n")
        database = self.damage(lambda data: data.replace(b"\nV", b"\n" + lines + b"V", 40))
        self.assertEqual(self.logged(database), [])
        self.assertNotIn("import_errors", [one["kind"] for one in ask("findings", database)["findings"]])
        ask("check", database, "--no-divergence")


class EmptyLogs(AnswerTest):
    def test_logs_of_nothing_beside_a_good_one_are_said(self):
        """Their names have no rank."""
        random = random_module.Random(5)
        whole = read(first_log("simple"))
        folder = os.path.join(self.scratch, "logs")
        os.mkdir(folder)
        good = os.path.join(folder, "good.log")
        with open(good, "wb") as file:
            file.write(whole)
        self.assertEqual(len(ask("check", self.ingest(folder, name="good"), "--no-divergence")["rules"]), 1)
        for name, data, why in (("noise", random.randbytes(20000), r"no record begins in its \d+ lines"), ("empty", b"", "the log is empty")):
            path = os.path.join(folder, "dedicated_log_torch_trace_abcdefgh.log")
            with open(path, "wb") as file:
                file.write(data)
            for inputs in ([folder], [good, path]):
                with self.subTest(name, inputs=inputs):
                    database = self.ingest(*inputs, name=f"{name}_{len(inputs)}")
                    found, = [one for one in ask("findings", database)["findings"] if one["kind"] == "import_errors"]
                    self.assertRegex(found["title"], f"^{path} holds no record: {why}$")
                    for limit in (["--no-divergence"], ["--max-recompiles", "1000"]):
                        rule, = [one for one in ask("check", database, *limit, code=2)["rules"] if not one["is_ok"]]
                        self.assertEqual((rule["name"], rule["actual"]), ("inputs", "1 file is not"))
                        self.assertIn(path, " ".join(rule["rows"]))

    def test_a_log_without_records_is_said(self):
        folder = os.path.join(self.scratch, "logs")
        os.mkdir(folder)
        for rank in (0, 2):
            with open(os.path.join(folder, f"dedicated_log_torch_trace_rank_{rank}_abcdefgh.log"), "w") as file:
                if rank == 0:
                    file.write(record({"dynamo_start": {"stack": []}, "rank": 0, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}))
        database = self.ingest(folder)
        self.assertEqual([one["rank"] for one in ask("status", database)["logs_without_records"]], [2])
        self.assertRegex(run("status", database), r"(?m)^2 +no r")
        self.assertIn("The log of rank 2 holds no record: the log is empty", [one["title"] for one in ask("findings", database)["findings"]])
        logged = [(one["severity"], one["code"], os.path.basename(one["path"])) for one in json.loads(run("import-log", database, "--json"))["rows"] if one["severity"] != "info"]
        self.assertEqual(logged, [("warning", "log_without_records", "dedicated_log_torch_trace_rank_2_abcdefgh.log")])
        self.assertIn("log_without_records: The log holds no record", run("import-log", database))


if __name__ == "__main__":
    unittest.main()
