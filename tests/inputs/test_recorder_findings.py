#!/usr/bin/env python3
"""What is said of the collectives that ranks issued: findings of recorded jobs (healthy, another op, a late rank) and of planted dumps."""

import json
import os
import pickle
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from recorder import RUNS, RecorderTest  # noqa: E402
from test_printed_failures import REPORT  # noqa: E402


class Findings(RecorderTest):
    def test_a_healthy_job_has_none(self):
        for pattern in ("fr_trace_rank_?", "fr_trace_rank_?.json", "fr_trace_rank_*"):
            issued = self.issued(self.ingest(self.part("fr_healthy", pattern), name=f"h{len(pattern)}.db"))
            self.assertEqual([], issued["findings"])
            self.assertEqual(["0", "1", "2", "3"], [group["name"] for group in issued["groups"]])
            # Ranks of another group have another group name in their graph: expected.
            self.assertEqual([], [f["title"] for f in self.answer("findings", self.database)["findings"]])
            self.assertEqual(["0-3"], [one["ranks"]["ranks"] for one in self.answer("ranks", self.database)["classes"]])
            self.assertIn("cache keys differ in expected ways only", self.text("cache", self.database))

    def test_another_op(self):
        issued = self.issued(self.ingest(self.part("fr_wrong_op", "fr_hang_trace_rank_?")))
        self.assertEqual(1, len(issued["findings"]), issued["findings"])
        finding = issued["findings"][0]
        self.assertEqual(("collective_divergence", "error", "2", "1", 3, "1/0"), tuple(
            finding[k] for k in ("kind", "severity")) + (finding["ranks"]["ranks"], finding["group"], finding["sequence_number"], finding["graph"]))
        self.assertTrue(finding["file"].endswith("/fr_job.py"))
        self.assertEqual(44, finding["line"])
        self.assertEqual("Rank 2 issued all_gather where ranks 0,1,3 issued all_reduce: #3 of group dp (1)", finding["title"])
        reported = self.answer("findings", self.database)["findings"][0]
        self.assertEqual(("collective_divergence", [2], ["1/0"], 44), (reported["kind"], reported["ranks"], reported["compiles"], reported["place"]["line"]))
        # Ranks 0,1 and rank 3 call another group by another name: they agree all the same, and are the majority.
        self.assertEqual(["Rank 2 schedules other collectives than the others: in 1/0 second [inference]: another collective: all_reduce_('max') [8, 16] float32 group 1 → "
                          "all_gather_into_tensor(4) [8, 16] float32 group 1; 2 differences in all"], [one["title"] for one in reported["evidence"]])
        self.assertNotIn("majority", reported["detail"])
        self.assertIn("Rank 2 compiled it for G['RANK'] == 2, rank 0 for G['RANK'] == 0, which"
                      ' fr_job.py:43 tests: if mode == "wrong_op" and RANK == 2:', reported["detail"])

    def test_the_exit_codes_of_ranks_that_waited_follow(self):
        """A watchdog ended all ranks; torchrun saw rank 1 first."""
        folder = self.part("fr_wrong_op", "fr_hang_trace_rank_?")
        for code, expected in ((7, ["collective_divergence"]), (-11, ["crashed", "collective_divergence"])):
            with open(os.path.join(folder, "stdout.txt"), "w") as file:
                file.write(REPORT.format(rank=1, code=code))
            first, *others = [one for one in self.answer("findings", self.ingest(folder, name=f"exit_{code}.db"))["findings"] if one["severity"] != "note"]
            self.assertEqual([first["kind"]] + [one["kind"] for one in others], expected)
            self.assertEqual("Rank 1 ended with exit code 7" in [one["title"] for one in first["evidence"]], code == 7)

    def test_what_a_cut_dump_does_not_hold_is_unknown(self):
        folder = self.part("fr_wrong_op", "fr_hang_trace_rank_?")
        path = os.path.join(folder, "fr_hang_trace_rank_2")
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) * 6 // 10)
        database = self.ingest(folder)
        issued = self.issued(database)
        self.assertEqual([("2", path)], [(dump["rank"], dump["path"]) for dump in issued["cut_dumps"]])
        groups = {group["name"]: group for group in issued["groups"]}
        self.assertEqual(("0,1,3", "2"), (groups["1"]["ranks"]["ranks"], groups["1"]["unknown"]["ranks"]))
        self.assertEqual(["2"] * 3, [one["unknown"]["ranks"] for one in groups["1"]["collectives"]])
        # The last call may have failed because rank 2 did not issue it.
        self.assertEqual([("2,3", "")] + [("3", "2")] * 3 + [("", "2")], [(one["done"]["ranks"], one["unknown"]["ranks"]) for one in groups["3"]["collectives"]])
        self.assertEqual({""}, {one["not_reached"]["ranks"] for group in issued["groups"] for one in group["collectives"]})
        finding, = issued["findings"]
        self.assertEqual(("stuck", "warning", "0,1,3", 3), (finding["kind"], finding["severity"], finding["ranks"]["ranks"], finding["sequence_number"]))
        self.assertIn("; how far rank 2 came is not known: its dump is not whole: the pickle ends before its end mark; 7 entries before it were kept", finding["title"])
        text = self.text("collectives", database)
        self.assertNotIn("NOT REACHED", text)
        self.assertIn("group dp (1): ranks 0,1,3; unknown 2", text)
        self.assertRegex(" ".join(text.split()), r"rank 2: its dump is not whole: \S+fr_hang_trace_rank_2, byte \d+: the pickle ends before its end mark; \d+ entries before it were kept; what it does not hold is unknown")
        # The whole copy in the other form has all of it.
        shutil.copy(os.path.join(RUNS, "fr_wrong_op", "fr_hang_trace_rank_2.json"), folder)
        issued = self.issued(self.ingest(folder, name="copy.db"))
        self.assertEqual(([], [""] * 4), (issued["cut_dumps"], [group["unknown"]["ranks"] for group in issued["groups"]]))

    def test_a_rank_without_a_dump_is_unknown(self):
        database = self.ingest(self.part("fr_wrong_op", "fr_hang_trace_rank_[013]"))
        issued = self.issued(database)
        self.assertEqual({"0": ("0,1,3", "2"), "1": ("0,1,3", "2"), "2": ("0,1", ""), "3": ("3", "2")}, {
            group["name"]: (group["ranks"]["ranks"], group["unknown"]["ranks"]) for group in issued["groups"]})
        text = self.text("collectives", database)
        self.assertIn("issued, by the dumps of 3 ranks, joined with their logs", text)
        self.assertIn("rank 2: no dump is among the input", text)

    def test_completed_and_not_reached_are_never_said_of_one_collective(self):
        for completed in (True, False):
            def older(rank, dump):
                if completed:
                    self.nccl(dump, True)
                if rank == 3:
                    dump["entries"] = [e for e in dump["entries"] if e["process_group"][0] != "1" or e["collective_seq_id"] < 3]
            group, = [group for group in self.planted(older)["groups"] if group["name"] == "1"]
            line, = [one for one in group["collectives"] if one["sequence_number"] == 3]
            self.assertEqual(("0-2", "", "", "3") if completed else ("", "0-2", "3", ""), tuple(
                line[state]["ranks"] for state in ("done", "ended", "not_reached", "unknown")))

    def test_nobody_has_waited_for_what_has_not_ended(self):
        database = self.ingest(self.part("fr_wrong_op", "fr_hang_trace_rank_?"))
        group, = [group for group in self.issued(database)["groups"] if group["name"] == "1"]
        self.assertEqual([(1, False), (2, False), (3, True)], [(one["sequence_number"], one["wait_us"] is None) for one in group["collectives"]])
        self.assertEqual([[1, 0, 0], [2, 0, 0], [3, 1, 1]], self.rows(database, "SELECT DISTINCT sequence_number, wait_us IS NULL, is_open FROM "
                                                                      "collective_wait WHERE group_name = '1' ORDER BY 1"))
        text = self.text("collectives", database)
        self.assertRegex(text, r"in it 0-3 +not ended")
        self.assertIn("ranks 0,1,3: 4 collectives, 4 waits (the majority)", text)

    def test_a_late_rank_while_the_others_wait(self):
        for logs in (True, False):
            issued = self.issued(self.ingest(self.part("fr_late", "fr_hang_trace_rank_?", logs), name=f"late{logs}.db"))
            self.assertEqual(1, len(issued["findings"]), issued["findings"])
            finding = issued["findings"][0]
            self.assertEqual(("collective_not_reached", "warning", "3", "1", 3), (finding["kind"], finding["severity"], finding["ranks"]["ranks"],
                                                                                finding["group"], finding["sequence_number"]))
            self.assertEqual(("fr_job.py", 46), (os.path.basename(finding["file"]), finding["line"]))
            self.assertEqual("1/0" if logs else None, finding["graph"])
            self.assertTrue(finding["title"].startswith("Rank 3 had not reached all_reduce #3 "), finding["title"])
            if logs:
                self.assertIn("began to compile second (1/0)", finding["cause"])

    def test_a_wait_that_was_over(self):
        """The job went on after the dumps: each rank that waited ended with exit code 0, by the run.json of
        `tlparse run`. The others may have been ended from outside."""
        for name, ends, is_over in (("all", {}, True), ("stopped", {3: (None, 15)}, True), ("failed", {1: (1, None)}, False)):
            severity = "note" if is_over else "error"
            folder = self.part("fr_late", "fr_hang_trace_rank_?")
            with open(os.path.join(folder, "run.json"), "w") as file:
                json.dump({"version": 1, "tool": "tlparse run", "command": ["torchrun"], "directory": "/", "host": "h", "started_us": 1, "ended_us": 2, "exit_code": int(name != "all"), "processes": [
                    {"pid": 100 + rank, "parent_pid": 99, "rank": rank, "exit_code": ends.get(rank, (0, None))[0], "signal": ends.get(rank, (0, None))[1], "started_us": 1, "ended_us": 2} for rank in range(4)]}, file)
            finding, = self.issued(self.ingest(folder, name=f"over_{name}.db"))["findings"]
            self.assertEqual(("collective_not_reached", severity), (finding["kind"], finding["severity"]))
            reported = [one for one in self.answer("findings", self.database)["findings"] if one["kind"] == "collective_not_reached"]
            self.assertEqual([severity], [one["severity"] for one in reported])
            self.assertEqual(is_over, reported[0]["detail"].endswith("All ranks that waited ended with exit code 0 afterwards: the wait was over."), reported[0])

    def test_a_late_rank_after_the_timeout(self):
        issued = self.issued(self.ingest(self.part("fr_late", "fr_trace_rank_?")))
        self.assertEqual(["collective_not_reached"], [finding["kind"] for finding in issued["findings"]])
        self.assertEqual(("3", "1", 3, "1/0"), (issued["findings"][0]["ranks"]["ranks"], issued["findings"][0]["group"],
                                                issued["findings"][0]["sequence_number"], issued["findings"][0]["graph"]))
        begun = {rank: start for rank, start in self.rows(self.database, "SELECT rank, start_time_us FROM compile WHERE label = '1/0'")}
        late = (begun[3] - max(begun[rank] for rank in range(3))) / 1e6
        self.assertGreater(late, 40)
        ended, = self.rows(self.database, "SELECT max(r.time_us) FROM record r JOIN compile c ON c.process_id = r.process_id AND c.label = '1/0' "
                           "WHERE c.rank = 3 AND r.time_us < c.start_time_us - 100000")[0]
        self.assertGreater(begun[3] - ended, 40e6)
        cause = (f"rank 3 began to compile second (1/0) {late:.1f} s after ranks 0-2; its log has no record for {(begun[3] - ended) / 1e6:.1f} s "
                 "before that")
        self.assertEqual(cause, issued["findings"][0]["cause"])
        self.assertTrue(issued["findings"][0]["title"].endswith(" beyond the timeout of 25 s: " + cause), issued["findings"][0]["title"])

    def test_waits_name_the_last_rank(self):
        database = self.ingest(self.part("fr_late", "fr_trace_rank_?"))
        rows = self.rows(database, "SELECT rank, wait_us, last_rank, rank_count FROM collective_wait WHERE group_name = '1' AND sequence_number = 3 ORDER BY rank")
        self.assertEqual([3] * 4, [row[2] for row in rows])
        created = {}
        for rank in range(4):
            with open(os.path.join(RUNS, "fr_late", f"fr_trace_rank_{rank}"), "rb") as file:
                created[rank] = next(e["time_created_ns"] for e in pickle.load(file)["entries"]
                                     if e["process_group"][0] == "1" and e["collective_seq_id"] == 3)
        for rank, wait_us, _, count in rows:
            self.assertEqual(4, count)
            # Rank 3 came after the timeout of 25 s: the others waited no longer.
            self.assertAlmostEqual(min((max(created.values()) - created[rank]) / 1e3, 25e6), wait_us, delta=1)
        self.assertEqual([[0, 1], [1, 1], [2, 1], [3, 0]], self.rows(database, "SELECT rank, is_timed_out FROM collective_wait WHERE group_name = "
                                                                     "'1' AND sequence_number = 3 ORDER BY rank"))
        group, = [group for group in self.issued(database)["groups"] if group["name"] == "1"]
        self.assertEqual([(3, True, 25e6)], [(one["sequence_number"], one["is_timed_out"], one["wait_us"]) for one in group["collectives"]
                                             if one["is_timed_out"]])
        # Gloo retires failed calls too: neither the timed out one nor what followed is called done.
        states = {one["sequence_number"]: tuple(one[state]["ranks"] for state in ("done", "timed_out", "ended")) for one in group["collectives"]}
        self.assertEqual({1: ("0-3", "", ""), 2: ("0-3", "", ""), 3: ("", "0-2", "3"), 4: ("", "", "0-3")}, states)
        text = self.text("collectives", database)
        self.assertIn("TIMED OUT 0-2, ended 3", text)
        self.assertIn("ended: the dump does not show whether a call in or after one that timed out", text)

    def test_a_rank_that_leaves_one_out_pairs_silently(self):
        def skip(rank, dump):
            if rank != 1:
                return
            kept, seen = [], 0
            for entry in dump["entries"]:
                if entry["process_group"][0] == "1":
                    seen += 1
                    if seen <= 2:
                        continue
                    entry["collective_seq_id"] -= 2
                kept.append(entry)
            dump["entries"] = kept
        finding = self.planted(skip)["findings"][0]
        self.assertEqual(("collective_divergence", "error", "1", "1", 1), (finding["kind"], finding["severity"], finding["ranks"]["ranks"],
                                                                          finding["group"], finding["sequence_number"]))
        self.assertEqual("Rank 1 silently paired another call with that of ranks 0,2,3: #1 of group dp (1)", finding["title"])
        self.assertIn("'max' from graph 1/0", finding["detail"])
        self.assertIn("'sum' from graph 0/0", finding["detail"])

    def test_what_differs_at_one_line_is_named(self):
        def larger(rank, dump):
            for entry in dump["entries"]:
                if rank == 2 and entry["process_group"][0] == "1" and entry["collective_seq_id"] == 2:
                    entry["input_sizes"] = [[8, 32]]

        def other(rank, dump):
            for entry in dump["entries"]:
                if rank == 2 and entry["process_group"][0] == "1" and entry["collective_seq_id"] == 2:
                    entry["profiling_name"] = "gloo:all_gather"
        self.assertEqual("both calls are at fr_job.py:25: look at the size and type of what it is given on each rank", self.planted(larger)["findings"][0]["try"])
        self.assertEqual("both calls are at fr_job.py:25: look at what is called there on each rank, and at the calls before it",
                         self.planted(other)["findings"][0]["try"])

    def test_lines_that_differ_by_rank_are_no_finding(self):
        def branch(rank, dump):
            for entry in dump["entries"]:
                if entry["profiling_name"] == "gloo:broadcast" and rank == 0:
                    for frame in entry["frames"]:
                        frame["line"] += 7
        self.assertEqual([], self.planted(branch)["findings"])

    def test_a_member_that_issued_nothing_on_the_group(self):
        def nothing(rank, dump):
            self.nccl(dump, True)
            first = [e for e in dump["entries"] if e["process_group"][0] == "1"][:1]
            dump["entries"] = [e for e in dump["entries"] if e["process_group"][0] == "0"] + (first if rank != 3 else [])
            for entry in first:
                entry.update(state="started", retired=False, time_discovered_completed_ns=None)
        finding, = self.planted(nothing)["findings"]
        self.assertEqual(("collective_not_reached", "3", "1", 1), (finding["kind"], finding["ranks"]["ranks"], finding["group"],
                                                                  finding["sequence_number"]))
        self.assertIn("Rank 3 had issued nothing on group dp (1)", finding["title"])
        self.assertIn("ranks 0-2 wait", finding["title"])

    def test_all_that_have_a_dump_wait_in_one_collective(self):
        def wait(rank, dump):
            self.nccl(dump, True)
            last = [e for e in dump["entries"] if e["process_group"][0] == "1"][-1]
            last.update(state="started", retired=False, time_discovered_completed_ns=None)
            dump["entries"][0]["time_discovered_completed_ns"] = last["time_created_ns"] + 60_000_000_000

        def unnamed(rank, dump):
            wait(rank, dump)
            dump["pg_config"] = {}
        finding, = self.planted(wait)["findings"]
        self.assertEqual("stuck", finding["kind"])
        self.assertIn("all members issued it: look at the network", finding["try"])
        # Without the members of the group a rank without dump may not have.
        finding, = self.planted(unnamed)["findings"]
        self.assertTrue(finding["try"].startswith("if the group has other members, get their dumps; else look at"), finding["try"])

    def test_the_order_across_groups(self):
        def swap(rank, dump):
            self.nccl(dump, True)
            times = sorted(e["time_created_ns"] for e in dump["entries"])
            mine = [next(e for e in dump["entries"] if e["process_group"][0] == name) for name in ("1", "3" if rank > 1 else "2")]
            dump["entries"] = mine if rank != 3 else mine[::-1]
            for number, entry in enumerate(dump["entries"]):
                entry.update(time_created_ns=times[number], record_id=number, thread_id="1")
        finding, = self.planted(swap)["findings"]
        self.assertEqual(("collective_divergence", "warning", "2,3"), (finding["kind"], finding["severity"], finding["ranks"]["ranks"]))
        self.assertIn("the other way round", finding["title"])
        self.assertIn("With NCCL", finding["detail"])

    def test_dumps_without_logs_have_findings(self):
        database = self.ingest(self.part("fr_late", "fr_trace_rank_?", logs=False))
        finding, = self.answer("findings", database)["findings"]
        self.assertEqual(("collective_not_reached", [3]), (finding["kind"], finding["ranks"]))
        self.assertEqual([[0]], self.rows(database, "SELECT count(*) FROM collective_run WHERE join_key IS NULL AND join_note IS NULL"))

    def test_dumps_that_wrapped_or_were_taken_earlier_are_no_finding(self):
        def wrap(rank, dump):
            if rank == 3:
                dump["entries"] = dump["entries"][6:]
            if rank == 1:
                dump["entries"] = dump["entries"][:-1]  # and the others are through
            for entry in dump["entries"]:
                entry["retired"] = True
        self.assertEqual([], self.planted(wrap)["findings"])

    def test_the_hook_beside_the_backend_counts_once(self):
        def hook(rank, dump):
            twice = []
            for entry in dump["entries"]:
                copy = dict(entry, profiling_name="c10d:" + entry["profiling_name"].split(":")[1].replace("_", ""),
                            time_created_ns=entry["time_created_ns"] - 20_000)
                twice += [copy, entry]
            for number, entry in enumerate(twice):
                entry["record_id"] = number
            dump["entries"] = twice
        issued = self.planted(hook)
        self.assertEqual([], issued["findings"])
        self.assertEqual([6, 4, 5, 5], [len(group["collectives"]) for group in issued["groups"]])

    def test_nccl_members_come_from_pg_config_and_states_from_entries(self):
        def nccl(rank, dump):
            dump["pg_config"] = {"1": {"name": "1", "desc": "dp", "ranks": "[0, 1, 2, 3]"}}
            for entry in dump["entries"]:
                entry["profiling_name"] = entry["profiling_name"].replace("gloo:", "nccl:")
                entry["state"] = "completed"
                entry["duration_ms"] = 0.25
                entry["time_discovered_started_ns"] = entry["time_created_ns"] + 1000
                entry["time_discovered_completed_ns"] = entry["time_created_ns"] + 10_000_000_000
            if rank == 2:
                dump["entries"] = [e for e in dump["entries"] if e["process_group"][0] != "1" or e["collective_seq_id"] < 4]
            elif dump["entries"][-1]["collective_seq_id"] == 4:
                dump["entries"][-1].update(state="started", retired=False, time_discovered_completed_ns=None)
        issued = self.planted(nccl)
        finding, = issued["findings"]
        self.assertEqual(("collective_not_reached", "2", 4), (finding["kind"], finding["ranks"]["ranks"], finding["sequence_number"]))
        # Rank 2 may come last in what it had not reached.
        waits = self.rows(self.database, "SELECT DISTINCT sequence_number, last_rank IS NULL, rank_count, member_count FROM collective_wait "
                          "WHERE group_name = '1' ORDER BY 1")
        self.assertEqual([[1, 0, 4, 4], [2, 0, 4, 4], [3, 0, 4, 4], [4, 1, 3, 4]], waits)
        group, = [one for one in issued["groups"] if one["name"] == "1"]
        self.assertEqual([False, False, False, True], [one["last_rank"] is None for one in group["collectives"]])

        def odd_time(rank, dump):
            nccl(rank, dump)
            dump["entries"][0]["time_discovered_completed_ns"] = 1
        finding, = self.planted(odd_time)["findings"]
        self.assertEqual(("collective_not_reached", "2", 4), (finding["kind"], finding["ranks"]["ranks"], finding["sequence_number"]))


if __name__ == "__main__":
    unittest.main()
