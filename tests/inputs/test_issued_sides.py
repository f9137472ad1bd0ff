#!/usr/bin/env python3
"""Collectives where ranks are on different sides: waits across groups, sides of one size, dumps with and without frames."""

import glob
import json
import os
import pickle
import shutil
import unittest

import profiles
from recorder import RUNS, RecorderTest


def of_group(dump, name):
    return [entry for entry in dump["entries"] if entry["process_group"][0] == name]


def leave_open(entry):
    entry.update(retired=False, state="scheduled")


class WaitsAcrossGroups(RecorderTest):
    def cross(self, rank, dump):
        """Rank 3 issues #7 of the default group before #4 of dp, the others the other way round."""
        if rank < 3:
            leave_open(of_group(dump, "1")[-1])
            return
        last = of_group(dump, "1")[-1]
        dump["entries"].remove(last)
        dump["entries"].append(dict(of_group(dump, "0")[-1], collective_seq_id=7, time_created_ns=last["time_created_ns"] + 1000,
                                    record_id=last["record_id"], frames=[{"name": "f", "filename": "/w/other.py", "line": 7}]))
        leave_open(dump["entries"][-1])

    def test_ranks_that_wait_for_each_other(self):
        issued = self.planted(self.cross)
        finding, = issued["findings"]
        self.assertEqual(("collective_divergence", "error", "3", "0", 7, "/w/other.py", 7), (
            finding["kind"], finding["severity"], finding["ranks"]["ranks"], finding["group"], finding["sequence_number"], finding["file"], finding["line"]))
        self.assertEqual("Rank 3 waits in all_reduce #7 of group default_pg (0) for ranks 0-2, ranks 0-2 wait in all_reduce #4 of group dp (1) for rank 3",
                         finding["title"])
        self.assertRegex(finding["detail"], r"rank 3 issued all_reduce .*other\.py:7 first")
        self.assertRegex(finding["detail"], r"ranks 0-2 issued all_reduce .*fr_job\.py:45 first")
        self.assertIn("compare other.py:7 with fr_job.py:45", finding["try"])
        reported, = self.answer("findings", self.database)["findings"]
        self.assertEqual((finding["title"], [3]), (reported["title"], reported["ranks"]))

    def test_what_waits_in_a_circle_is_not_called_stuck_again(self):
        def change(rank, dump):
            self.cross(rank, dump)
            if rank == 0:
                dump["entries"] = []
        self.assertEqual(["collective_divergence"], [one["kind"] for one in self.planted(change)["findings"]])

    def test_in_queues_they_are_enqueued(self):
        def nccl(rank, dump):
            self.nccl(dump, True)
            self.cross(rank, dump)
            dump["pg_config"] = {}
            for entry in dump["entries"]:
                if not entry["retired"]:
                    entry["time_discovered_completed_ns"] = None
        finding, = self.planted(nccl)["findings"]
        self.assertEqual("Rank 3 has enqueued all_reduce #7 of group default_pg (0), which ranks 0-2 had not, "
                         "ranks 0-2 have enqueued all_reduce #4 of group dp (1), which rank 3 had not", finding["title"])

    def test_a_chain_ends_at_the_rank_that_does_not_wait(self):
        """Ranks 0 and 1 wait in dp for 3, which waits in tp for 2, which waits nowhere."""
        def chain(rank, dump):
            if rank < 2:
                leave_open(of_group(dump, "1")[-1])
                return
            dump["entries"].remove(of_group(dump, "1")[-1])
            if rank == 3:
                last = of_group(dump, "3")[-1]
                dump["entries"].append(dict(last, collective_seq_id=6, record_id=99, time_created_ns=dump["entries"][-1]["time_created_ns"] + 1000))
                leave_open(dump["entries"][-1])
        titles = [finding["title"] for finding in self.planted(chain)["findings"]]
        self.assertEqual(["Rank 2 had not reached all_reduce #4 of group dp (1) in second (fr_job.py:45) when the recorder was dumped; ranks 0,1 wait in it",
                          "Rank 2 had not reached all_reduce #6 of group tp (3) in block (fr_job.py:27) when the recorder was dumped; rank 3 waits in it"], sorted(titles))


class Ends(RecorderTest):
    """Rank 2's log is cut; its dump lacks what it would have issued after that, and the others wait in it."""

    def behind(self, rank, dump):
        own = of_group(dump, "1")
        dump["entries"].remove(own[3])
        if rank == 2:
            dump["entries"].remove(own[2])
        else:
            leave_open(own[2])

    def findings(self, is_end):
        """The log of rank 2 ends before the first record that `is_end` accepts."""
        self.planted(self.behind)
        folder, = glob.glob(self.path("planted*[0-9]"))
        path, = glob.glob(os.path.join(folder, "*_rank_2_*.log.zst"))
        with open(path[:-4], "wb") as file:
            file.write(profiles.data(path))
        os.unlink(path)
        end = next(record.byte_offset for record in profiles.records(path[:-4]) if is_end(record.envelope))
        os.truncate(path[:-4], end)
        findings = self.answer("findings", self.ingest(folder, name="cut.db"))["findings"]
        return [finding for finding in findings if finding["severity"] != "note"]

    def test_a_log_that_ends_inside_a_compile_explains_what_its_rank_did_not_reach(self):
        finding, = self.findings(lambda envelope: envelope.get("frame_id") == 1 and "inductor_output_code" in envelope)
        self.assertEqual(("stopped_first", [2], ["1/0"]), (finding["kind"], finding["ranks"], finding["compiles"]))
        evidence, = [one for one in finding["evidence"] if one["kind"] == "collective_not_reached"]
        self.assertEqual("Rank 2 had not reached all_reduce #3 of group dp (1) in second (fr_job.py:45) when the recorder was dumped; ranks 0,1,3 wait in it",
                         evidence["title"])

    def test_a_log_that_ends_between_compiles_does_not(self):
        finding, = self.findings(lambda envelope: envelope.get("frame_id") == 1)
        self.assertEqual(("collective_not_reached", [2], ["1/0"]), (finding["kind"], finding["ranks"], finding["compiles"]))
        self.assertEqual({"stopped_first"}, {one["kind"] for one in finding["evidence"]})
        self.assertEqual("Rank 2 did not compile or call second, in whose all_reduce #3 of group dp (1) ranks 0,1,3 wait", finding["title"])


class Sides(RecorderTest):
    def test_two_sides_of_one_size_have_no_odd_one(self):
        def size(rank, dump):
            if rank % 2:
                of_group(dump, "1")[1]["input_sizes"] = [[8, 32]]

        def dtype(rank, dump):
            if rank % 2:
                of_group(dump, "1")[1].update(input_dtypes=["Double"], output_dtypes=["Double"])

        def op(rank, dump):
            if rank % 2:
                of_group(dump, "1")[1]["profiling_name"] = "gloo:all_gather"
        for change, title in ((size, "Ranks 0-3 issued all_reduce with different sizes: #2 of group dp (1)"),
                              (dtype, "Ranks 0-3 issued all_reduce with different types: #2 of group dp (1)"),
                              (op, "Ranks 0,2 issued all_reduce, ranks 1,3 all_gather: #2 of group dp (1)")):
            issued = self.planted(change)
            finding, = issued["findings"]
            self.assertEqual((title, "0-3"), (finding["title"], finding["ranks"]["ranks"]))
            # Gloo retires failed calls too: whether such a call completed is not known.
            line, = [line for group in issued["groups"] if group["name"] == "1" for line in group["collectives"] if line["sequence_number"] == 2]
            self.assertEqual(("", "0-3"), (line["done"]["ranks"], line["ended"]["ranks"]))

    def test_another_reduction_behind_a_line_that_may_differ(self):
        def change(rank, dump):
            own = of_group(dump, "1")
            if rank != 1:
                return
            own[3]["frames"] = own[0]["frames"]
            own[1]["frames"] = [dict(frame, line=frame["line"] + 7) if frame["filename"].endswith("fr_job.py") else frame for frame in own[1]["frames"]]
        finding, = self.planted(change)["findings"]
        self.assertEqual(("Rank 1 silently paired another call with that of ranks 0,2,3: #4 of group dp (1)", "1"), (finding["title"], finding["ranks"]["ranks"]))

    def test_a_rank_with_a_log_and_no_dump_is_of_the_default_group(self):
        def eager(rank, dump):
            dump["entries"] = of_group(dump, "0")
        self.planted(eager, ranks=3, logs=False)
        folder, = glob.glob(self.path("planted*[0-9]"))
        for rank in range(4):
            with open(os.path.join(folder, f"dedicated_log_torch_trace_rank_{rank}_abcdefgh.log"), "w", encoding="utf-8") as file:
                file.write('V1122 20:46:23.000000 %d torch/_dynamo/convert_frame.py:1] {"dynamo_start": {"stack": []}, "rank": %d, "frame_id": 0, '
                           '"frame_compile_id": 0, "attempt": 0}\n' % (4000 + rank, rank))
        database = self.ingest(folder, name="logs.db")
        text = self.text("collectives", database)
        self.assertIn("group default_pg (0): ranks 0-2; unknown 3", text)
        # The last call may have failed because rank 3 did not issue it. The calls before it completed.
        self.assertEqual(1, text.count("ended 0-2, unknown 3"), text)
        self.assertIn("rank 3: no dump is among the input; what it issued is unknown", text)
        finding, = [one for one in self.answer("findings", database)["findings"] if one["kind"] == "missing_rank"]
        self.assertEqual(("No recorder dump from rank 3; ranks 0-2 have one", [3], "warning"), (finding["title"], finding["ranks"], finding["severity"]))

    def test_without_logs_the_dumps_name_the_ranks_of_the_job(self):
        """Gloo of 2.14 lists the ranks of the last group without its name."""
        def silent(rank, dump):
            dump["pg_config"] = {"": {"name": "", "desc": "", "ranks": "[0, 1, 2, 3]"}}
            dump["entries"] = of_group(dump, "0")[:1] if rank != 2 else []
            dump["pg_status"] = {}
            for entry in dump["entries"]:
                leave_open(entry)

        def off(rank, dump):
            silent(rank, dump)
            if rank == 2:
                dump["pg_config"] = {}
        def named(rank, dump):
            dump["pg_config"] = {"": {"name": "", "desc": "", "ranks": "[0, 1, 2, 3]"}}

        self.planted(named, ranks=3, logs=False)
        missing, = self.answer("findings", self.path("planted0.db"))["findings"]
        self.assertEqual(("missing_rank", "No recorder dump from rank 3; ranks 0-2 have one", [3], "warning"),
                         (missing["kind"], missing["title"], missing["ranks"], missing["severity"]))
        # Though no call of the group of all ranks is in them.
        def without_all(rank, dump):
            named(rank, dump)
            dump["entries"] = of_group(dump, "2" if rank < 2 else "3")[:1]
        self.planted(without_all, ranks=3, logs=False)
        missing, = self.answer("findings", sorted(glob.glob(self.path("planted*.db")))[-1])["findings"]
        self.assertEqual(("missing_rank", [3]), (missing["kind"], missing["ranks"]))
        finding, = self.planted(silent, logs=False)["findings"]
        self.assertIn("Rank 2 had issued nothing on group default_pg (0) when the recorder was dumped; ranks 0,1,3 wait", finding["title"])
        # A recorder that is off has no groups: nothing shows what rank 2 issued.
        finding, = self.planted(off, logs=False)["findings"]
        self.assertIn("how far rank 2 came is not known: its dump has no entries", finding["title"])

    def test_a_dump_that_ends_before_a_call_is_named_beside_one_that_is_missing(self):
        """Rank 3 uses another group and aborts; rank 1, which waited for it, does not reach the next call of its other group."""
        def change(rank, dump):
            tp = of_group(dump, "2" if rank < 2 else "3")
            dump["entries"] = [tp[0]] + ([tp[1]] if rank != 1 else [])
            if rank == 1:
                alone = dict(tp[0], process_group=("5", "dp"), collective_seq_id=1, time_created_ns=tp[0]["time_created_ns"] + 1000)
                dump["entries"].append(alone)
        self.planted(change, ranks=3, logs=False)
        folder, = glob.glob(self.path("planted*[0-9]"))
        for rank in range(4):
            with open(os.path.join(folder, f"dedicated_log_torch_trace_rank_{rank}_abcdefgh.log"), "w", encoding="utf-8") as file:
                file.write('V1122 20:46:23.000000 %d torch/_dynamo/convert_frame.py:1] {"dynamo_start": {"stack": []}, "rank": %d, "frame_id": 0, '
                           '"frame_compile_id": 0, "attempt": 0}\n' % (4000 + rank, rank))
        found = self.answer("findings", self.ingest(folder, name="logs.db"))["findings"]
        finding, = [one for one in found if one["kind"] == "missing_rank"]
        self.assertRegex(finding["title"], r"^No recorder dump from rank 3; ranks 0-2 have one, and that of rank 1 ends before all_gather #2 of group tp \(2\), which rank 0 issued$")
        self.assertRegex(finding["detail"], r"The last call in the dumps is that of rank [0-2]: #[0-9]+ [a-z_]+ .* of group ")
        self.assertRegex(finding["detail"], r"The last call of rank 1 in any group is #1 all_reduce .* of group dp \(5\), which no other dump has: rank 3 may be a member of that group")


    def raised(self, folder_of_ranks, place):
        """Rank 1 raises before #6 of the default group, in which the others fail; a launcher ends rank 0 before it writes a dump."""
        def change(rank, dump):
            dump["entries"] = of_group(dump, "0")[:5 if rank == 1 else 6]
            for entry in dump["entries"][5:]:
                entry["frames"] = [{"name": "step", "filename": "/w/train.py", "line": place}]
            dump["entries"][4]["frames"] = [{"name": "step", "filename": "/w/train.py", "line": 41}]
        self.planted(change)
        folder, = glob.glob(self.path("planted*[0-9]"))
        for rank in folder_of_ranks:
            os.unlink(os.path.join(folder, f"comm_lib_trace_rank_{rank}"))
        return [one for one in self.answer("findings", self.ingest(folder, name="raised.db"))["findings"] if one["severity"] != "note"]

    def test_the_rank_whose_dump_ends_early_comes_before_one_without_a_dump(self):
        finding, = self.raised([0], 47)
        self.assertEqual(("stopped_first", "warning", [1], "train.py"), (
            finding["kind"], finding["severity"], finding["ranks"], os.path.basename(finding["place"]["file"])))
        self.assertEqual("Rank 1's dump ends before all_reduce #6 of group default_pg (0), the last call of ranks 2,3; rank 0 left no dump", finding["title"])
        self.assertEqual([("missing_rank", [0])], [(one["kind"], one["ranks"]) for one in finding["evidence"]])

    def test_calls_of_one_line_do_not_show_who_ended_first(self):
        """Rank 0 may have ended first, and rank 1 failed before it issued the second of two calls of one line."""
        finding, = self.raised([0], 41)
        self.assertEqual(("missing_rank", [0]), (finding["kind"], finding["ranks"]))

    def test_one_dump_of_two_ranks(self):
        for absent, severity in (([0, 1], "warning"), ([0, 1, 2], "note")):
            found = self.raised_all(absent)
            self.assertEqual([severity], [one["severity"] for one in found if one["title"].startswith("No recorder dump")])

    def raised_all(self, absent):
        self.planted(lambda rank, dump: None)
        folder = sorted(glob.glob(self.path("planted*[0-9]")))[-1]
        for rank in absent:
            os.unlink(os.path.join(folder, f"comm_lib_trace_rank_{rank}"))
        return self.answer("findings", self.ingest(folder, name=f"all{len(absent)}.db"))["findings"]


class MixedForms(RecorderTest):
    """Ranks 0 and 1 have pickles, 2 and 3 JSON, which has no frames."""

    def mixed(self, change=lambda rank, dump: None):
        folder = self.path("mixed")
        os.mkdir(folder)
        for path in glob.glob(os.path.join(RUNS, "fr_healthy", "*.log.zst")):
            shutil.copy(path, folder)
        for rank in range(4):
            source = os.path.join(RUNS, "fr_healthy", f"fr_trace_rank_{rank}")
            if rank < 2:
                with open(source, "rb") as file:
                    dump = pickle.load(file)
            else:
                with open(source + ".json", encoding="utf-8") as file:
                    dump = json.load(file)
            change(rank, dump)
            name = os.path.join(folder, f"comm_lib_trace_rank_{rank}")
            if rank < 2:
                with open(name, "wb") as file:
                    pickle.dump(dump, file, protocol=2)
            else:
                with open(name + ".json", "w", encoding="utf-8") as file:
                    json.dump(dump, file)
        return self.issued(self.ingest(folder))

    def test_what_only_lacks_its_line_is_not_odd(self):
        issued = self.mixed()
        self.assertEqual([], issued["findings"])
        several = [one for group in issued["groups"] for one in group["collectives"] if len(one["issued"]) > 1]
        self.assertEqual([], several)
        self.assertEqual({"0-3"}, {one["ranks"]["ranks"] for one in issued["groups"][0]["collectives"][0]["issued"]})
        self.assertIn("alike on all ranks", self.text("collectives", self.database))

    def test_a_call_of_several_tensors_is_not_that_of_one(self):
        """An eager coalesced all_reduce follows the graphs' own on the same group."""
        def coalesce(rank, dump):
            last = of_group(dump, "1")[-1]
            dump["entries"].append(dict(of_group(dump, "0")[-1], process_group=last["process_group"], pg_id=last["pg_id"], collective_seq_id=5,
                                        record_id=99, time_created_ns=last["time_created_ns"] + 1000))
        issued = self.mixed(coalesce)
        self.assertEqual([], issued["findings"])
        self.assertEqual([[rank, None] for rank in range(4)], self.rows(
            self.database, "SELECT rank, join_key FROM collective_run WHERE group_name = '1' AND sequence_number = 5 ORDER BY rank"))
        self.assertEqual([["[[2],[3]]"]], self.rows(self.database, "SELECT DISTINCT input_shapes FROM collective_run WHERE sequence_number = 5 AND group_name = '1'"))

    def test_another_call_is_found_behind_calls_without_lines(self):
        def skip(rank, dump):
            if rank != 1:
                return
            own = of_group(dump, "1")
            dump["entries"].remove(own[0])
            dump["entries"].remove(own[1])
            for entry in own[2:]:
                entry["collective_seq_id"] -= 2
        finding, = self.mixed(skip)["findings"]
        self.assertEqual(("collective_divergence", "1", "1", 1), (finding["kind"], finding["ranks"]["ranks"], finding["group"], finding["sequence_number"]))
        self.assertEqual("compare fr_job.py:45 with fr_job.py:25: look for a branch that depends on the rank or on data", finding["try"])


class WhatADumpDoesNotHold(RecorderTest):
    def waiting(self, status, ranks=4):
        """Ranks 0, 1 and 3 are in #42 of all ranks; the dump of rank 2 has no entry."""
        def change(rank, dump):
            self.nccl(dump, False)
            dump["pg_config"] = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}}
            dump["entries"] = [] if rank == 2 else [dict(of_group(dump, "0")[0], profiling_name="nccl:all_reduce", collective_seq_id=42, state="started")]
            counts = {f"last_{what}_collective": status if rank == 2 else 42 for what in ("enqueued", "started", "completed")}
            dump["pg_status"] = {"0": counts}
        return self.planted(change, ranks, logs=False)

    def test_one_dump_of_several_ranks(self):
        """A rank of a healthy job is inside a call too: nothing shows that the others do not come."""
        finding, = self.waiting(42, ranks=1)["findings"]
        self.assertEqual(("stuck", "note"), (finding["kind"], finding["severity"]))
        self.assertIn("Rank 0 waits in all_reduce #42", finding["title"])

    def test_a_rank_whose_calls_are_only_counted(self):
        """With the active calls alone in its dump, or without a ring, a rank has issued what its pg_status counts."""
        finding, = self.waiting(41)["findings"]
        self.assertEqual("warning", finding["severity"])
        self.assertRegex(finding["title"], r"^Ranks 0,1,3 wait in all_reduce #42 .*; how far rank 2 came is not known: its dump has no entries, "
                                           r"but a pg_status whose last enqueued is #41$")
        text = " ".join(self.text("collectives", self.database).split())
        self.assertIn("rank 2: its dump counts 41 calls and has no entry of them", text)
        self.assertNotIn("what it issued is unknown", text)

    def test_a_rank_that_issued_nothing(self):
        finding, = self.waiting(-1)["findings"]
        self.assertEqual(("warning", "2"), (finding["severity"], finding["ranks"]["ranks"]))
        self.assertTrue(finding["title"].startswith("Rank 2 had issued nothing on group default_pg (0)"), finding["title"])

    def test_a_batch_with_fewer_members(self):
        def change(rank, dump):
            self.nccl(dump, False)
            dump["pg_config"] = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}}
            one = dict(of_group(dump, "0")[0], profiling_name="nccl:all_gather_into_tensor_coalesced", collective_seq_id=1, state="started")
            members = [dict(one, record_id=i, input_sizes=[[4 + i, 4]]) for i in range(2 if rank == 2 else 3)]
            dump["entries"] = members + [dict(one, profiling_name="nccl:coalesced", record_id=5, input_sizes=[], output_sizes=[])]
        finding, = self.planted(change, logs=False)["findings"]
        self.assertEqual("Rank 2 issued a batch of 2 calls, ranks 0,1,3 one of 3: #1 of group default_pg (0)", finding["title"])
        self.assertIn("[6, 4]", finding["detail"].split("; rank 2:")[0])
        self.assertNotIn("[6, 4]", finding["detail"].split("; rank 2:")[1])


if __name__ == "__main__":
    unittest.main()
