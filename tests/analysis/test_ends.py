"""Where logs end: copies of recorded jobs whose logs are cut off at chosen records."""

import contextlib
import glob
import os
import re
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, ROOT, AnswerTest, ask, record, trace_lines  # noqa: E402


def after_time(clock):
    """The first record later than this time of the day."""
    return lambda found: found.prefix.split()[1].decode() > clock


def event(name, phase, frame=0):
    """The first record of this event."""
    return lambda found: (found.kind == "chromium_event" and found.envelope.get("frame_id") == frame
                          and f'"name": "{name}"'.encode() in (found.payload or b"") and f'"ph": "{phase}"'.encode() in found.payload)


WAIT = os.path.join(ROOT, "fixtures", "tuning", "wait")


class Waiting(AnswerTest):
    """Ranks 0 and 2 wait in a collective of the compiler for rank 1, which hangs in Inductor: its last record is the latest."""

    def test_the_rank_that_did_not_come(self):
        database = self.ingest(WAIT)
        finding = ask("findings", database, "--kind", "stopped_first")["findings"][0]
        self.assertEqual(([1], ["0/0"]), (finding["ranks"], finding["compiles"]))
        self.assertEqual("Rank 1's log ends inside 0/0 warm_up, in pass.post_grad_passes.post_grad_custom_post_pass; ranks 0,2 finished that compile",
                         finding["title"])
        waiting, = finding["evidence"]
        self.assertEqual(("Ranks 0,2 wait in compiler_collective of 1/0 step for rank 1", [1]), (waiting["title"], waiting["ranks"]))
        ends = [row["end"] for row in ask("status", database)["rows"]]
        self.assertEqual([("silent", True), ("silent", False), ("silent", True)], [(end["kind"], end["is_bystander"]) for end in ends])
        self.assertEqual("its log ends inside 1/0 step, in compiler_collective; it waited there for rank 1", ends[0]["evidence"])

    def test_the_one_that_did_not_come_has_no_log(self):
        """Those that have one came to the same collective: none of them was first."""
        database = self.ingest(*(glob.glob(os.path.join(WAIT, f"*rank_{rank}_*"))[0] for rank in (0, 2)))
        finding, = ask("findings", database)["findings"]
        self.assertEqual("No log from rank 1; the logs of ranks 0,2 end inside 1/0 step, in compiler_collective", finding["title"])
        self.assertEqual(["The logs of ranks 0,2 end inside 1/0 step, in compiler_collective"], [one["title"] for one in finding["evidence"]])


    def test_a_rank_that_does_not_call_compiled_code_again(self):
        """Outside of compiles: ranks 0 and 2 wait in a guard collective."""
        finding, = ask("findings", self.ingest(os.path.join(os.path.dirname(WAIT), "guard")))["findings"]
        self.assertEqual(("collective_not_reached", "warning", [1]), (finding["kind"], finding["severity"], finding["ranks"]))
        self.assertEqual("Ranks 0,2 wait in guard_collective for rank 1", finding["title"])
        self.assertEqual(2, finding["row_count"])


class Backwards(AnswerTest):
    def test_a_backward_comes_after_all_forwards(self):
        """Rank 0 is inside the backward of 0/0, which comes after the backward of 1/0 that rank 1 lacks."""
        database = self.ingest(os.path.join(ROOT, "fixtures", "runs", "bptt_raises"))
        finding, = ask("findings", database)["findings"]
        self.assertEqual(["Rank 0's log ends inside the backward of 0/0 forward, in compile_file"], [one["title"] for one in finding["evidence"]])
        self.assertEqual([("silent", True), ("silent", False)],
                         [(row["end"]["kind"], row["end"]["is_bystander"]) for row in ask("status", database)["rows"]])


class OtherPrograms(AnswerTest):
    """A program that a rank started has functions of its own under the ids of the ranks' compiles."""

    def log(self, name, function, is_done, time, **rank):
        ids = {**rank, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        records = [record({"str": ["/u/m.py", 1]}, time=time), record({"dynamo_start": {"stack": [{"line": 10, "name": function, "filename": 1, "loc": "x"}]}, **ids}, time=time)]
        if is_done:
            records.append(record({"compilation_metrics": {"co_name": function, "co_filename": "/u/m.py", "co_firstlineno": 10, "compile_id": "0/0"}, **ids}, time=time))
        self.save("job/" + name, *records)

    def test_ranks_did_not_finish_what_another_program_compiles(self):
        for function, title in (("distance", "Log a ends inside 0/0 distance"), ("forward", "Log a ends inside 0/0 forward; ranks 0,1 finished that compile")):
            for rank in range(2):
                self.log(f"dedicated_log_torch_trace_rank_{rank}_abcd{rank}.log", "forward", True, "08:30:01.000000", rank=rank)
            self.log("a.log", function, False, "08:31:30.000000")
            titles = [one["title"] for one in ask("findings", self.ingest(os.path.join(self.scratch, "job"), name=function))["findings"]]
            self.assertIn(title, titles)


class Ends(AnswerTest):
    def cut(self, scenario, ends, drop=(), change=None, also=()):
        """The job with logs cut before the first record that `ends[rank]` (or `ends`, of all) accepts, without those of `drop`."""
        folder = os.path.join(self.scratch, f"cut_{len(os.listdir(self.scratch))}")
        os.mkdir(folder)
        for path in sorted(glob.glob(os.path.join(LOGS, scenario, "*_rank_*"))):
            rank = int(re.search(r"_rank_(\d+)_", path)[1])
            if rank in drop:
                continue
            with trace_lines.open_log(path) as file:
                data = file.read()
            end = ends.get(rank) if isinstance(ends, dict) else ends
            if end is not None:
                found = next(one for one in trace_lines.read_log(path) if isinstance(one, trace_lines.Record) and end(one))
                self.assertLess(0, found.byte_offset)
                data = data[:found.byte_offset]
            with open(os.path.join(folder, os.path.basename(path).removesuffix(".zst").removesuffix(".gz")), "wb") as file:
                file.write(change(data) if change else data)
        return self.ingest(folder, *also, name=os.path.basename(folder))

    def first(self, database, *arguments):
        return ask("findings", database, *arguments)["findings"][0]

    def test_a_backward_that_a_log_does_not_reach_has_no_other_collectives(self):
        """Rank 2 ends between forward and backward: its schedule is no other one, it is not there."""
        def end(found):
            is_metrics = found.kind == "compilation_metrics" and found.envelope.get("frame_id") == 4
            is_behind, behind[0] = behind[0], behind[0] or is_metrics
            return is_behind
        for drop in ((), (1, 3), (0, 1)):
            behind = [False]
            database = self.cut("train_order", {2: end}, drop=drop)
            found = [one for one in ask("findings", database)["findings"] if one["kind"] != "missing_rank"]
            self.assertEqual([(one["kind"], one["ranks"]) for one in found], [("stopped_first", [2])])
            self.assertIn("log ends after the forward of 4/0 layer_4; ", found[0]["title"])
            if drop != (0, 1):  # there rank 2 is what rank 3 is compared with
                self.assertIn("No schedule or code with the collectives of 4/0 layer_4 [backward] is in the log of rank 2",
                              [one["title"] for one in found[0]["evidence"]])

    def test_a_job_that_is_killed_as_a_whole_names_no_rank(self):
        """The last records lie apart, but no rank was silent while the others wrote."""
        one = self.first(self.cut("crash_segv_in_inductor", after_time("19:56:55.300000")))
        self.assertEqual((one["kind"], one["severity"], one["ranks"], one["rank_count"]), ("stopped_first", "error", [], 4))
        self.assertRegex(one["title"], r"^The logs of all 4 ranks end inside 2/0 update$")
        self.assertRegex(one["detail"], r"Their last records are of 19:56:55\.250 UTC to 19:56:55\.298 UTC")
        self.assertIn("Which rank was the first to stop is not in the logs.", one["detail"])
        self.assertTrue(one["evidence"])
        for place in one["evidence"]:
            self.assertNotIn("first", place["title"])

    def test_a_log_that_is_cut_off_beside_whole_ones_is_named(self):
        self.cut("crash_segv_in_inductor", after_time("19:56:55.300000"))
        path, = glob.glob(os.path.join(self.scratch, "cut_*", "*_rank_1_*"))
        os.truncate(path, os.path.getsize(path) - 20)
        one = self.first(self.ingest(os.path.dirname(path), name="cut_off"))
        self.assertEqual("The logs of all 4 ranks end inside 2/0 update; rank 1's log is cut off", one["title"])
        self.assertIn(" The last record of rank 1's log is incomplete: it is cut off, or damaged. Which rank was the first", one["detail"])

    def test_an_exception_that_names_its_rank_comes_before_where_all_logs_end(self):
        text = self.save("stdout.txt", "[rank2]: Traceback (most recent call last):\n[rank2]:   File \"/job/job.py\", line 70, in main\n"
                         "[rank2]:     check(batch)\n[rank2]: RuntimeError: {}\n")
        for said, first in (("label out of range: 99", "crashed"), ("[gloo/transport/tcp/pair.cc:525] Connection closed by peer [10.0.0.1]:4096", "stopped_first")):
            with open(text) as file:
                printed = self.save(f"{first}/stdout.txt", file.read().format(said))
            database = self.cut("crash_segv_in_inductor", after_time("19:56:55.300000"), also=[printed])
            one = self.first(database)
            self.assertEqual(one["kind"], first)
            if first == "crashed":
                self.assertEqual((one["ranks"], [place["title"] for place in one["evidence"]]), ([2], ["The logs of all 4 ranks end inside 2/0 update"]))

    def test_a_job_that_is_killed_in_several_compiles(self):
        one = self.first(self.cut("crash_segv_in_inductor", after_time("19:56:54.450000"), drop=(2, 3)))
        self.assertEqual((one["kind"], one["ranks"], one["compiles"]), ("stopped_first", [], ["0/0", "1/0"]))
        self.assertEqual(one["title"], "The logs of both ranks end inside compiles")
        self.assertIn("Which rank was the first to stop is not in the logs.", one["detail"])
        self.assertEqual([place["title"].split(",")[0] for place in one["evidence"]][:2],
                         ["Rank 0's log ends inside the backward of 0/0 forward", "Rank 1's log ends inside 1/0 grad_sync"])

    def test_of_two_ranks_the_other_is_named(self):
        one = self.first(self.cut("crash_segv_in_inductor", {}, drop=(2, 3)))
        self.assertEqual("Rank 0's log ends first, inside 2/0 update, in code_gen, 0.21 s before rank 1", one["title"])

    def test_of_two_ranks_one_goes_on_to_the_backward(self):
        """Neither log ends inside a compile. A forward that both compiled, and whose backward only one did, shows the end."""
        database = self.cut("fsdp2", {1: lambda found: found.envelope.get("frame_id") == 1 and b"backward" in (found.payload or b"")
                                      and found.kind == "chromium_event" and b'"ph": "B"' in found.payload}, drop=(2, 3))
        self.assertEqual({row["rank"]: row["state"] for row in ask("status", database)["rows"]}[1], "between_compiles")
        one = self.first(database)
        self.assertEqual((one["kind"], one["severity"], one["ranks"]), ("stopped_first", "warning", [1]))
        self.assertRegex(one["title"], r"^Rank 1's log ends after the forward of 1/1 \w+; rank 0 went on to its backward$")
        whole = self.ingest(*[path for path in sorted(glob.glob(os.path.join(LOGS, "fsdp2", "*_rank_[01]_*"))) if path], name="whole")
        self.assertEqual([], [one for one in ask("findings", whole)["findings"] if one["kind"] == "stopped_first"])

    def test_of_two_ranks_the_later_one_lacks_what_needs_both(self):
        """Rank 1, which began later, wrote the last record of all, and did not go on; rank 0 waits for it in an all_reduce."""
        for group, said in ((b"'0'", True), (b"'1'", False)):
            self.cut("straggler_late", {0: lambda found: found.envelope.get("frame_id") == 2, 1: event("entire_backward_compile", "B")}, drop=(2, 3),
                     change=lambda data, group=group: data.replace(b"'sum', '1'", b"'sum', " + group))
            path = max(glob.glob(os.path.join(self.scratch, "cut_*", "*_rank_1_*")), key=os.path.getmtime)
            with open(path, "rb") as file:
                data = file.read()
            with open(path, "wb") as file:
                file.write(data.replace(b" 19:54:", b" 19:55:"))
            found = [one for one in ask("findings", self.ingest(os.path.dirname(path), name=f"later_{said}"))["findings"] if one["kind"] == "stopped_first"]
            self.assertEqual([("error", [1])] if said else [], [(one["severity"], one["ranks"]) for one in found])
            if said:
                self.assertEqual("Rank 1's log ends after the forward of 0/0 forward; rank 0 went on to its backward", found[0]["title"])
                self.assertIn(", the last of all logs.", found[0]["detail"])

    def test_a_log_that_ends_inside_a_backward(self):
        one = self.first(self.cut("crash_segv_in_inductor", {2: event("entire_backward_compile", "E")}))
        self.assertEqual(one["ranks"], [2])
        self.assertRegex(one["title"], r"^Rank 2's log ends first, inside the backward of 0/0 forward, in .*; ranks 0,1,3 finished that backward$")
        database = self.cut("crash_segv_in_inductor", {2: event("entire_backward_compile", "E")})
        states = {row["rank"]: (row["state"], row["is_backward"], row["compile"]) for row in ask("status", database)["rows"]}
        self.assertEqual(states[2], ("compiling", True, "0/0"))
        self.assertEqual(states[0], ("compiling", False, "2/0"))

    def test_no_rank_ends_inside_what_it_finished(self):
        """Two ranks end inside one backward, at different events of it."""
        backward = event("entire_backward_compile", "E")
        database = self.cut("crash_segv_in_inductor", {1: event("code_gen", "B"), 2: backward, 3: backward})
        one = self.first(database)
        ended = set(one["ranks"])
        for finding in [one, *one["evidence"]]:
            finished = re.search(r"ranks? ([\d,-]+) finished", finding["title"])
            if finished and "-" not in finished[1]:
                self.assertFalse(set(map(int, finished[1].split(","))) & set(finding["ranks"]), finding["title"])
        forward = self.first(self.cut("crash_segv_in_inductor", {1: event("code_gen", "B"), 2: backward}))
        self.assertEqual((forward["ranks"], ended), ([1], {1}))
        self.assertRegex(forward["title"], "inside 0/0 forward, in .*; ranks 0,2,3 finished that compile")

    def test_a_rank_that_failed_later_had_finished(self):
        findings = ask("findings", self.cut("crash_in_compile", {2: event("code_gen", "B")}))["findings"]
        ends = [one for finding in findings for one in [finding, *finding["evidence"]] if one["kind"] == "stopped_first"]
        self.assertEqual([one["ranks"] for one in ends], [[2]])
        self.assertRegex(ends[0]["title"], "; ranks 0,1,3 finished that compile$")

    def test_a_compile_of_one_unreadable_event_has_begun(self):
        """The last record is the first event of 2/0, with a payload that is no JSON."""
        second = event("dynamo", "B", frame=2)
        database = self.cut("crash_segv_in_inductor", {1: lambda found: found.envelope.get("frame_id") == 2 and found.kind != "chromium_event"})
        self.assertEqual({row["rank"]: row["state"] for row in ask("status", database)["rows"]}[1], "compiling")

        def break_last(data):
            return data.replace(b'"name": "dynamo"', b'"name" "dynamo"') if data.count(b'"frame_id": 2') == 1 else data
        at = [found for found in trace_lines.read_log(glob.glob(os.path.join(LOGS, "crash_segv_in_inductor", "*_rank_1_*"))[0])
              if isinstance(found, trace_lines.Record) and found.envelope.get("frame_id") == 2]
        self.assertTrue(second(at[0]))
        database = self.cut("crash_segv_in_inductor", {1: lambda found: found.byte_offset == at[1].byte_offset}, change=break_last)
        row = {row["rank"]: row for row in ask("status", database)["rows"]}[1]
        self.assertEqual((row["state"], row["compile"]), ("compiling", "2/0"))

    def test_one_rank_alone_is_restarted(self):
        """The last launch has the log of rank 2 only; the others' are in an earlier one."""
        folder = os.path.join(LOGS, "restart_elastic")
        logs = sorted(glob.glob(os.path.join(folder, "*_rank_*")))
        last = ask("status", self.ingest(folder, name="all"))["rows"]
        names = {os.path.basename(row["log"]) for row in last if row["rank"] != 2}
        database = self.ingest(*[path for path in logs if os.path.basename(path) not in names], name="one")
        missing = [one for one in ask("findings", database)["findings"] if one["kind"] == "missing_rank"]
        self.assertEqual([one["ranks"] for one in missing], [[0, 1, 3]])
        self.assertTrue(missing[0]["title"].startswith("No log from ranks 0,1,3 in launch 3"), missing[0]["title"])
        self.assertIn("They have logs in launch 2.", missing[0]["detail"])

    def test_slow_ranks_are_named_together(self):
        findings = ask("findings", self.job("cache_some_ranks"))["findings"]
        slow = [one for finding in findings for one in [finding, *finding["evidence"]] if one["kind"] == "slow_rank"]
        self.assertEqual([one["ranks"] for one in slow], [[2, 3]])
        self.assertRegex(slow[0]["title"], r"^Ranks 2,3 compiled for 27\.2 to 27\.3 s, 2 others for 2\.6 to 3\.0 s$")
        with contextlib.closing(sqlite3.connect(self.job("cache_some_ranks"))) as connection:
            seconds = sorted(row[0] / 1e6 for row in connection.execute("SELECT compile_us FROM rank_summary"))
        self.assertAlmostEqual(ask("ranks", self.job("cache_some_ranks"))["slowest"]["median_s"], (seconds[1] + seconds[2]) / 2, 5)

    def test_ends_come_before_other_warnings(self):
        first = ask("findings", self.job("restart_elastic"), "--launch", "1")["findings"]
        self.assertEqual(first[0]["kind"], "stopped_first")


if __name__ == "__main__":
    unittest.main()
