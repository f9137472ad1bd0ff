#!/usr/bin/env python3
"""Dumps alone of ranks that are inside calls: together, each in another group, behind an earlier call of their stream; of jobs that
hang and of jobs that run. In the form of PyTorch's recorder: an entry that is not retired has the time at which the dump was written."""

import json
import os
import pickle
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from recorder import RecorderTest  # noqa: E402

BASE = 1_764_000_000_000_000_000
SECOND = 1_000_000_000
WORLD, TP, DP = ("0", "default_pg"), ("1", "tp"), ("2", "dp")


def entry(number, sequence, group=WORLD, state="completed", at=None, dumped=None, timing=True, line=40):
    at = BASE + number * SECOND // 10 if at is None else at
    ended = state == "completed"
    found = at + SECOND // 20 if ended else dumped
    return {"frames": [{"name": "step", "filename": "/app/train.py", "line": line}], "record_id": number, "pg_id": int(group[0]), "process_group": group,
            "collective_seq_id": sequence, "p2p_seq_id": 0, "op_id": number, "profiling_name": "nccl:all_reduce", "time_created_ns": at, "duration_ms": None,
            "input_sizes": [[8]], "input_dtypes": ["Float"], "output_sizes": [[8]], "output_dtypes": ["Float"], "state": state,
            "time_discovered_started_ns": found if timing and state != "scheduled" else None, "time_discovered_completed_ns": found if ended else None,
            "retired": ended, "timeout_ms": 600_000, "is_p2p": False, "thread_id": "1", "thread_name": "python3"}


class OpenCalls(RecorderTest):
    def found(self, dumps, groups=((WORLD, None),), status=None, beside=None):
        folder = self.path(f"dumps{len(os.listdir(self.folder))}")
        os.mkdir(folder)
        world = list(range(len(dumps)))
        for rank, entries in enumerate(dumps):
            if entries is None:
                continue
            config = {group[0]: {"name": group[0], "desc": group[1], "ranks": str(members or world)} for group, members in groups}
            with open(os.path.join(folder, f"nccl_trace_rank_{rank}"), "wb") as file:
                pickle.dump({"version": "2.10", "pg_config": config, "pg_status": status[rank] if status else {}, "entries": entries}, file, protocol=2)
        for name, text in (beside or {}).items():
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        self.database = self.ingest(folder, name=os.path.basename(folder) + ".db")
        return self.answer("findings", self.database)["findings"]

    def together(self, state, waited_s, ahead=lambda rank: 0):
        """Four ranks in #10, behind which each has more in its queue."""
        dumps = []
        for rank in range(4):
            at = BASE + SECOND + rank * 20_000
            dumps.append([entry(i, i + 1, timing=state == "started") for i in range(9)] + [
                entry(9 + k, 10 + k, state="scheduled" if k else state, at=at + k * 1_000_000, dumped=at + int(waited_s * SECOND)) for k in range(1 + ahead(rank))])
        return self.found(dumps)

    def test_a_circle_behind_calls_that_differ_is_no_cause_of_its_own(self):
        """Rank 2 leaves out an all_reduce: its broadcast meets that of the others, and each is then in another group."""
        usual = [entry(i, i + 1) for i in range(3)]
        late = BASE + 700 * SECOND
        of_others = [*usual, entry(3, 4, state="started", at=BASE + SECOND, dumped=late)]
        of_odd = [*usual[:2], {**usual[2], "profiling_name": "nccl:broadcast"}, entry(3, 1, DP, "started", at=BASE + SECOND - 1000, dumped=late)]
        finding, = self.found([of_others, of_others, of_odd], ((WORLD, None), (DP, [1, 2])))
        self.assertEqual(("collective_divergence", [2]), (finding["kind"], finding["ranks"]))
        self.assertEqual("Rank 2 issued broadcast where ranks 0,1 issued all_reduce: #3 of group default_pg (0)", finding["title"])

    def test_all_ranks_are_in_one_call(self):
        for ahead in (lambda rank: 0, lambda rank: 3 - rank % 2):
            one, = self.together("started", 600, ahead)
            self.assertEqual(("stuck", "error", []), (one["kind"], one["severity"], one["ranks"]))
            self.assertEqual("Ranks 0-3 wait in all_reduce #10 of group default_pg (0): for 600.0 s at least", one["title"])
            self.assertEqual("all_reduce [8] Float from train.py:40. Its timeout: 600 s", one["detail"])

    def test_a_moment_of_a_job_that_runs_is_a_note(self):
        for state, title, time in (("started", "Ranks 0-3 wait in", r": for 0\.00\d s when the dumps were written"),
                                   ("scheduled", "Ranks 0-3 have enqueued", "; for how long is not in the dumps")):
            for ahead in (lambda rank: 0, lambda rank: 3 - rank % 2):
                one, = self.together(state, 0.002, ahead)
                self.assertEqual(("stuck", "note", []), (one["kind"], one["severity"], one["ranks"]))
                self.assertRegex(one["title"], rf"^{title} all_reduce #10 of group default_pg \(0\){time}$")
                self.assertIn("A dump of a job that runs can look the same", one["detail"])
                self.assertIn("NCCL's watchdog", one["try"])
        # At its end.
        self.assertEqual([], self.found([[entry(i, i + 1) for i in range(10)] for _ in range(4)]))
        # One rank has ended it.
        self.assertEqual([], self.found([[entry(i, i + 1, state="started" if i == 9 and rank != 1 else "completed", dumped=BASE + SECOND) for i in range(10)]
                                         for rank in range(4)]))

    def test_where_the_ranks_were_when_it_hung(self):
        """Ctrl-C ended the ranks; the launcher ended with exit code 1 then."""
        def dumps_of(state):
            return [[entry(i, i + 1, state=state if i == 9 else "completed", dumped=BASE + 60 * SECOND) for i in range(10 - rank)] for rank in range(2)]
        us = BASE // 1000
        taken = ["pid 10 is at /bin/torchrun:8 in <module>", "rank 0 (pid 11) is at /app/train.py:40 in step", "rank 1 (pid 12) is at /app/train.py:33 in load"]
        # A call that has not started tells nothing of when the dump was written.
        for signals, state, is_said, severity in (((15, 2), "started", True, "error"), ((15, None), "started", False, "error"),
                                                  ((15, 2), "scheduled", True, "error"), ((15, None), "scheduled", False, "warning")):
            with self.subTest(signals=signals, state=state):
                processes = [{"pid": 10, "parent_pid": 1, "rank": None, "exit_code": 1, "signal": None, "started_us": us, "ended_us": us + 90_000_000}]
                processes += [{"pid": 11 + rank, "parent_pid": 10, "rank": rank, "exit_code": None if signal else 0, "signal": signal, "started_us": us,
                               "ended_us": us + 89_000_000} for rank, signal in enumerate(signals)]
                first = self.found(dumps_of(state), beside={"run.json": json.dumps({
                    "version": 1, "command": ["torchrun", "train.py"], "directory": "/app", "started_us": us, "ended_us": us + 90_000_000, "exit_code": 1,
                    "processes": processes, "hangs": [{"time_us": us + 50_000_000, "why": "no process used the CPU", "taken": taken, "was_ended": False}]})})[0]
                self.assertEqual(("collective_not_reached", severity, [1]), (first["kind"], first["severity"], first["ranks"]))
                said = "When it hung, rank 0 was at /app/train.py:40 in step; rank 1 was at /app/train.py:33 in load."
                (self.assertIn if is_said else self.assertNotIn)(said, first["detail"])
                self.assertEqual(33 if is_said else 40, first["place"]["line"])
                if is_said:
                    self.assertIn("look at what kept rank 1 at /app/train.py:33 in load", first["try"])
                    hang, = json.loads(self.text("findings", self.database, "--evidence", "--json"))["findings"][0]["evidence"]
                    self.assertEqual([line["text"] for line in hang["log_lines"]], taken)
                # Other answers say the same, and whether it went on.
                text = " ".join(self.text("collectives", self.database).split())
                self.assertIn(f"{severity}: {first['title']}", text)
                self.assertIn(f"try: {first['try']}", text)
                self.assertIn("\nhang: at ", self.text("status", self.database))
                self.assertEqual([False], [one["has_gone_on"] for one in self.answer("status", self.database)["hangs"]])

    def test_where_a_rank_was_when_the_only_other_gave_up_waiting(self):
        """Two of its threads wait for each other's lock."""
        us = BASE // 1000
        error = ("Traceback (most recent call last):\n  File \"/app/train.py\", line 40, in step\n    dist.all_reduce(served)\n"
                 "RuntimeError: [gloo/unbound_buffer.cc:78] Timed out waiting 50000ms for recv operation to complete\n")
        taken = ["rank 0 (pid 11) is at /app/train.py:40 in step, which called all_reduce", "2 other threads of rank 0 (pid 11) are at /app/train.py:19 in requests",
                 "rank 1 (pid 12) is at /app/train.py:31 in reload", "1 other thread of rank 1 (pid 12) is at /app/train.py:22 in answer"]
        processes = [{"pid": 10, "parent_pid": 1, "exit_code": 1, "started_us": us, "ended_us": us + 90_000_000},
                     {"pid": 11, "parent_pid": 10, "rank": 0, "exit_code": 1, "started_us": us, "ended_us": us + 70_000_000, "raised_us": us + 60_000_000, "traceback": error},
                     {"pid": 12, "parent_pid": 10, "rank": 1, "signal": 15, "started_us": us, "ended_us": us + 80_000_000, "at": "/app/train.py:31 in reload"}]
        dumps = [[entry(i, i + 1, state="started" if i == 9 else "completed", dumped=BASE + 60 * SECOND) for i in range(10 - rank)] for rank in range(2)]
        first = self.found(dumps, beside={"run.json": json.dumps({
            "version": 1, "command": ["torchrun", "train.py"], "directory": "/app", "started_us": us, "ended_us": us + 90_000_000, "exit_code": 1, "processes": processes,
            "hangs": [{"time_us": us + 50_000_000, "why": "rank 0 alone used the CPU for 40 s", "taken": taken, "was_ended": False, "busy": [0]}]})})[0]
        self.assertEqual(("crashed", [1], 31), (first["kind"], first["ranks"], first["place"]["line"]))
        self.assertEqual("Rank 1 was at train.py:31 when rank 0 gave up waiting at train.py:40", first["title"])
        self.assertIn("it was there as well, and 1 other thread of rank 1 (pid 12) was at /app/train.py:22 in answer.", first["detail"])
        self.assertNotIn("requests", first["detail"])
        self.assertEqual(["collective_not_reached"], [one["kind"] for one in first["evidence"]])

    def test_a_rank_that_left_with_an_exit_code(self):
        """A launcher by multiprocessing, which ends with 0: the others wait for the rank; where it left says more than what it did not reach."""
        us = BASE // 1000
        error = ("Traceback (most recent call last):\n  File \"/app/train.py\", line 40, in work\n    dist.all_reduce(grad)\n"
                 "RuntimeError: [gloo/pair.cc:561] Connection closed by peer [127.0.0.1]:51845\n")
        processes = [{"pid": 10, "parent_pid": 1, "exit_code": 0, "started_us": us, "ended_us": us + 90_000_000},
                     {"pid": 11, "parent_pid": 10, "rank": 0, "exit_code": 1, "started_us": us, "ended_us": us + 70_000_000, "raised_us": us + 60_000_500, "traceback": error},
                     {"pid": 12, "parent_pid": 10, "rank": 1, "exit_code": 3, "started_us": us, "ended_us": us + 60_000_000, "at": "/app/train.py:15 in check, which called exit"}]
        dumps = [[entry(i, i + 1, state="started" if i == 9 else "completed", dumped=BASE + 60 * SECOND) for i in range(10 - rank)] for rank in range(2)]
        first = self.found(dumps, beside={"run.json": json.dumps({
            "version": 1, "command": ["python", "train.py"], "directory": "/app", "started_us": us, "ended_us": us + 90_000_000, "exit_code": 0, "processes": processes})})[0]
        self.assertEqual(("crashed", [1], 15), (first["kind"], first["ranks"], first["place"]["line"]))
        self.assertEqual("Rank 1 ended with exit code 3 at train.py:15", first["title"])
        self.assertEqual(["collective_not_reached"], [one["kind"] for one in first["evidence"]])

    def test_a_rank_elsewhere_when_one_gave_up_waiting_and_another_found_it_gone(self):
        us = BASE // 1000
        begin = "Traceback (most recent call last):\n  File \"/app/train.py\", line 48, in main\n    dist.all_reduce(score)\nRuntimeError: [gloo/"
        ends = ("pair.cc:561] Connection closed by peer [127.0.0.1]:21900\n", "unbound_buffer.cc:78] Timed out waiting 25000ms for recv operation to complete\n")
        for later_us, ranks in ((-6_000, [2]), (20_000_000, [0])):  # one that came much later did not wait there
            processes = [{"pid": 10, "parent_pid": 1, "exit_code": 1, "started_us": us, "ended_us": us + 90_000_000}]
            processes += [{"pid": 11 + rank, "parent_pid": 10, "rank": rank, "started_us": us, "ended_us": us + 70_000_000 - rank, **end} for rank, end in enumerate((
                {"signal": 15, "raised_us": us + 60_000_000 + later_us, "traceback": begin + ends[0]}, {"exit_code": 1, "raised_us": us + 60_000_000, "traceback": begin + ends[1]},
                {"signal": 15, "at": "/app/train.py:21 in rerank"}))]
            first = self.found([None] * 3, beside={"run.json": json.dumps({
                "version": 1, "command": ["torchrun", "train.py"], "directory": "/app", "started_us": us, "ended_us": us + 90_000_000, "exit_code": 1, "processes": processes})})[0]
            self.assertEqual(ranks, first["ranks"], first)
            if ranks == [2]:
                self.assertEqual("Rank 2 was at train.py:21 when rank 1 gave up waiting at train.py:48, where rank 0 waited too", first["title"])
                self.assertEqual(21, first["place"]["line"])

    def test_ranks_that_went_on(self):
        us = BASE // 1000
        processes = [{"pid": 11 + rank, "rank": rank, "exit_code": 0, "started_us": us, "ended_us": us + 89_000_000} for rank in range(2)]
        found = self.found([[entry(i, i + 1) for i in range(10)]] * 2, beside={"run.json": json.dumps({
            "command": ["a"], "directory": "/app", "started_us": us, "ended_us": us + 90_000_000, "exit_code": 0, "processes": processes,
            "hangs": [{"time_us": us + 50_000_000, "why": "rank 1 alone used the CPU for 30 s", "taken": [], "was_ended": False}]})})
        self.assertEqual(found, [])
        text = " ".join(self.text("status", self.database).split())
        self.assertIn("seemed to hang: at ", text)
        self.assertIn("rank 1 alone used the CPU for 30 s (run.json); it went on", text)
        self.assertEqual([True], [one["has_gone_on"] for one in self.answer("status", self.database)["hangs"]])

    def test_a_rank_that_did_not_come_since_another_has_not_sent(self):
        dumps = [[entry(i, i + 1, state="started" if i == 9 else "completed", dumped=BASE + 60 * SECOND) for i in range(10 - rank)] for rank in range(2)]
        us = BASE // 1000
        taken = ["rank 0 (pid 11) is at /app/train.py:40 in step, which called all_reduce", "rank 1 (pid 12) is at /app/train.py:33 in load, which called recv from rank 0"]
        processes = [{"pid": 11 + rank, "rank": rank, "signal": 15, "started_us": us, "ended_us": us + 89_000_000} for rank in range(2)]
        first = self.found(dumps, beside={"run.json": json.dumps({
            "command": ["a"], "directory": "/app", "started_us": us, "exit_code": 143, "processes": processes,
            "hangs": [{"time_us": us + 50_000_000, "why": "idle", "taken": taken, "was_ended": True}]})})[0]
        self.assertEqual((first["kind"], first["severity"], first["ranks"], first["title"]),
                         ("stuck", "error", [0], "Rank 0 was in all_reduce at train.py:40; rank 1 in recv from rank 0 at train.py:33"))
        self.assertEqual([(one["kind"], one["ranks"]) for one in first["evidence"]], [("collective_not_reached", [1])])

    def test_a_rank_that_has_not_come_yet(self):
        """Only what a job that runs does not show is an error: a long wait, or what ended it."""
        def waiting(state, waited_s, behind=(), beside=None):
            dumps = []
            for rank in range(4):
                at = BASE + SECOND + rank * 20_000
                dumps.append([entry(i, i + 1, timing=state == "started") for i in range(9)] + ([] if rank == 2 else [
                    entry(9, 10, state=state, at=at, dumped=at + int(waited_s * SECOND))] + [entry(10, 11, state="scheduled", at=at + int(s * SECOND)) for s in behind]))
            one, = self.found(dumps, beside=beside)
            self.assertEqual(("collective_not_reached", [2]), (one["kind"], one["ranks"]))
            self.assertEqual(one["severity"] != "error" or bool(beside), "A dump of a job that runs can look the same" in one["detail"])
            return one
        self.assertEqual("error", waiting("started", 600)["severity"])
        young = waiting("started", 0.002)
        self.assertEqual("note", young["severity"])
        self.assertIn("they had waited 0.002 s when the dumps were written", young["detail"])
        # How long is not known; the others went on for long; the processes failed; the watchdog ended them.
        self.assertEqual("warning", waiting("scheduled", 0)["severity"])
        self.assertEqual("error", waiting("scheduled", 0, behind=(30,))["severity"])
        for signal, severity in ((6, "error"), (15, "warning")):
            ends = [{"pid": 100 + rank, "parent_pid": 99, "rank": rank, "exit_code": None, "signal": signal, "started_us": 1, "ended_us": 2} for rank in range(4)]
            run = {"version": 1, "tool": "tlparse run", "command": ["torchrun"], "directory": "/", "host": "h", "started_us": 1, "ended_us": 2, "exit_code": 1, "processes": ends}
            found = self.found([[entry(i, i + 1, timing=False) for i in range(9)] + ([] if rank == 2 else [entry(9, 10, state="scheduled")]) for rank in range(4)],
                               beside={"run.json": json.dumps(run)})
            self.assertEqual([severity], [one["severity"] for one in found if one["kind"] == "collective_not_reached"])
        text = ("[rank0]:[E1129 06:50:01.000000 ProcessGroupNCCL.cpp:684] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=10, OpType=ALLREDUCE, "
                "NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600027 milliseconds before timing out.\n"
                "[rank0]:[E1129 06:50:01.000000 ProcessGroupNCCL.cpp:2254] [PG ID 0 PG GUID 0(default_pg) Rank 0]  failure detected by watchdog at work sequence id: 10 "
                "PG status: last enqueued work: 10, last completed work: 9\n")
        one = waiting("scheduled", 0, beside={"stderr.txt": text})
        self.assertEqual(("error", ["stuck"]), (one["severity"], [each["kind"] for each in one["evidence"]]))

    def test_who_waits_for_ranks_inside_a_call_of_their_own_group(self):
        groups, dumps = ((WORLD, [0, 1, 2, 3]), (TP, [0, 1]), (DP, [2, 3])), []
        for rank in range(4):
            own, at = TP if rank < 2 else DP, BASE + SECOND + rank
            dump = [entry(2 * i + k, i + 1, group=group) for i in range(4) for k, group in enumerate((own, WORLD))]
            dumps.append(dump + ([entry(8, 5, own, "started", at, at + 600 * SECOND, line=30)] if rank < 2 else
                                 [entry(8, 5, own, line=30), entry(9, 5, WORLD, "started", at, at + 600 * SECOND)]))
        one, = self.found(dumps, groups)
        self.assertEqual("Ranks 0,1 wait in all_reduce #5 of group tp (1): for 600.0 s at least", one["title"])

    def crossed(self, states, timing=True):
        dumps = []
        for rank, order in enumerate(((TP, DP), (DP, TP))):
            at = BASE + SECOND + rank
            dumps.append([entry(2 * i + k, i + 1, group, timing=timing) for i in range(3) for k, group in enumerate((TP, DP))] + [
                entry(6 + k, 4, group, state, at + k * 1_000_000, at + 600 * SECOND, line=30 + int(group[0])) for k, (group, state) in enumerate(zip(order, states))])
        return self.found(dumps, ((WORLD, None), (TP, None), (DP, None)))

    def test_two_groups_wait_for_each_other(self):
        one, = self.crossed(["started"])
        self.assertEqual(("collective_divergence", "error", [0, 1]), (one["kind"], one["severity"], one["ranks"]))
        self.assertEqual("Rank 0 waits in all_reduce #4 of group tp (1) for rank 1, rank 1 waits in all_reduce #4 of group dp (2) for rank 0", one["title"])
        # Both calls are in the queues of both.
        one, = self.crossed(["started", "scheduled"])
        self.assertEqual(("collective_divergence", "error"), (one["kind"], one["severity"]))
        self.assertEqual("Rank 0 waits in all_reduce #4 of group tp (1) for rank 1, whose device has not started it, "
                         "rank 1 waits in all_reduce #4 of group dp (2) for rank 0, whose device has not started it", one["title"])
        # When calls start is not recorded.
        one, = self.crossed(["scheduled", "scheduled"], timing=False)
        self.assertEqual(("collective_divergence", "error"), (one["kind"], one["severity"]))
        self.assertEqual("Rank 0 issued #4 of group tp (1) before #4 of group dp (2), rank 1 the other way round; neither has ended on either rank", one["title"])
        one, = self.crossed(["completed", "completed"])
        self.assertEqual("warning", one["severity"])

    def test_dumps_without_entries(self):
        def status(enqueued, completed):
            return {"0": {"last_enqueued_collective": enqueued, "last_started_collective": -1, "last_completed_collective": completed}}
        nothing = [[]] * 4
        one, = self.found(nothing, status=[status(41 if rank == 2 else 42, 41) for rank in range(4)])
        self.assertEqual(("collective_not_reached", "warning", [2], 4), (one["kind"], one["severity"], one["ranks"], one["row_count"]))
        self.assertEqual("Rank 2 had enqueued nothing on group default_pg (0) after #41 when the recorder was dumped; "
                         "ranks 0,1,3 had enqueued more and completed no more", one["title"])
        self.assertIn("Last enqueued and last completed: rank 2: #41, #41; ranks 0,1,3: #42, #41, by pg_status", one["detail"])
        one, = self.found(nothing, status=[status(42, 41)] * 4)
        self.assertEqual(("stuck", "note"), (one["kind"], one["severity"]))
        self.assertEqual("Ranks 0-3 have enqueued #42 of group default_pg (0) and not completed it", one["title"])
        # Done, and ranks that are inside calls at different places.
        for counts in ([(42, 42)] * 4, [(44, 43), (43, 42), (45, 43), (44, 43)], [(42, 41), (43, 42), (42, 41), (42, 41)]):
            self.assertEqual([], self.found(nothing, status=[status(*one) for one in counts]))

    def paced(self, pauses_s, waited_s, timeout_s=600):
        """Calls with these pauses between them; rank 2 has not come to the last one, and the others wait in it."""
        dumps = []
        for rank in range(4):
            at, entries = BASE, []
            for number, pause in enumerate((*pauses_s, None)):
                is_last = pause is None
                one = entry(number, number + 1, at=at + rank * 20_000, state="started" if is_last else "completed", dumped=at + int(waited_s * SECOND))
                entries += [] if is_last and rank == 2 else [{**one, "timeout_ms": timeout_s * 1000}]
                at += int((pause or 0) * SECOND)
            dumps.append(entries)
        one, = [one for one in self.found(dumps) if one["kind"] == "collective_not_reached"]
        self.assertEqual([2], one["ranks"])
        return one["severity"]

    def test_a_wait_is_judged_by_the_pauses_of_the_job(self):
        """And by its timeout."""
        fast, saves = (0.01,) * 40, (0.2,) * 9 + (30,) + (0.2,) * 9 + (30,) + (0.2,) * 9
        self.assertEqual("note", self.paced(fast, 0.05))
        self.assertEqual("error", self.paced(fast, 3))
        self.assertEqual("error", self.paced((0.01,) * 2000, 4, timeout_s=4))
        self.assertEqual("note", self.paced((0.01,) * 2000, 4))
        self.assertEqual("warning", self.paced(saves, 12))
        self.assertEqual("error", self.paced(saves, 100))
        # The longest pause of each rank may have been a compile.
        self.assertEqual("error", self.paced((60,) + (0.2,) * 20, 12))
        # Nothing is known of the pauses.
        self.assertEqual("error", self.paced((30, 0.2), 12))

    def test_numbers_of_groups_that_ranks_do_not_share(self):
        """pg_status numbers the groups of a rank: its second is tp 1 on ranks 0,1 and tp 2 on ranks 2,3."""
        def counts(enqueued, completed):
            return {"last_enqueued_collective": enqueued, "last_started_collective": -1, "last_completed_collective": completed}
        folder = self.path("local")
        os.mkdir(folder)
        for rank in range(4):
            name = "1" if rank < 2 else "2"
            config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}, name: {"name": name, "desc": "tp", "ranks": "[0, 1]" if rank < 2 else "[2, 3]"}}
            status = {"0": counts(7, 7), "1": counts(5, 5) if rank == 3 else counts(6, 5) if rank == 2 else counts(9, 9)}
            with open(os.path.join(folder, f"nccl_trace_rank_{rank}"), "wb") as file:
                pickle.dump({"version": "2.10", "pg_config": config, "pg_status": status, "entries": []}, file, protocol=2)
        one, = self.answer("findings", self.ingest(folder, name="local.db"))["findings"]
        self.assertEqual(("collective_not_reached", [3]), (one["kind"], one["ranks"]))
        self.assertIn("on group tp (2) after #5", one["title"])


class Consequences(RecorderTest):
    found = OpenCalls.found

    def test_what_a_device_cannot_start_is_no_finding_of_its_own(self):
        """Rank 3 does not come to tp; so rank 2 waits there, and has not started dp, in which rank 0 waits."""
        groups = ((WORLD, None), (("1", "tp"), [2, 3]), (DP, [0, 2]))
        dumped, dumps = BASE + 610 * SECOND, []
        for rank in range(4):
            own = [(group, members) for group, members in groups[1:] if rank in members]
            entries = [entry(2 * i + k, i + 1, group) for i in range(5) for k, (group, _) in enumerate(own)]
            if rank == 2:
                entries += [entry(20, 6, TP, "started", dumped=dumped), entry(21, 6, DP, "scheduled", dumped=dumped)]
            if rank == 0:
                entries.append(entry(20, 6, DP, "started", dumped=dumped))
            dumps.append(entries)
        titles = [one["title"] for one in self.found(dumps, groups)]
        self.assertEqual(["Rank 3 had not reached all_reduce #6 of group tp (1) at train.py:40 when the recorder was dumped; rank 2 waits in it"], titles)

    def test_a_cpu_that_is_far_ahead_of_its_device_is_no_hang(self):
        """All calls are issued in 0.1 s; the device has ended 20 of them after 10 s, and goes on."""
        dumped = BASE + 20 * SECOND
        dumps = [[{**entry(i, i + 1, at=BASE + i * SECOND // 1000, state="completed" if i < 20 else "scheduled", dumped=dumped),
                   **({"time_discovered_started_ns": BASE + (i + 1) * SECOND, "time_discovered_completed_ns": BASE + (i + 1) * SECOND} if i < 20 else {})} for i in range(100)]
                 for _ in range(2)]
        self.assertEqual(["note"], [one["severity"] for one in self.found(dumps)])

    def test_a_device_that_has_not_come_to_a_call_awaits_nobody(self):
        """Rank 0 has not issued #11, which rank 1 has enqueued behind kernels: dumps of a job that runs."""
        dumped = BASE + 2 * SECOND
        dumps = [[entry(i, i + 1) for i in range(10)] + ([entry(10, 11, state="scheduled", at=BASE + SECOND, dumped=dumped)] if rank else []) for rank in range(2)]
        for one in dumps[1][9:10]:
            one.update(time_discovered_started_ns=dumped, time_discovered_completed_ns=dumped)
        one, = self.found(dumps)
        self.assertEqual(("collective_not_reached", "note", [0]), (one["kind"], one["severity"], one["ranks"]))

    def test_types_and_sizes_of_shards_must_be_equal(self):
        def shards(name, change):
            dumps = [[entry(i, i + 1) for i in range(9)] for _ in range(4)]
            for rank, entries in enumerate(dumps):
                for one in entries:
                    one["profiling_name"] = name
                    if rank == 3 and one["collective_seq_id"] == 6:
                        one.update(change)
            return [one["title"] for one in self.found(dumps)]
        half = {"input_dtypes": ["Half"], "output_dtypes": ["Half"]}
        for name, change, part in (("nccl:_reduce_scatter_base", half, "type"), ("nccl:all_gather", half, "type"), ("nccl:_all_gather_base", {"input_sizes": [[9]]}, "size"),
                                   ("gloo:gather", {"input_sizes": [[9]]}, "size")):
            self.assertEqual([f"Rank 3 issued {name.split(':')[1]} with another {part} than ranks 0-2: #6 of group default_pg (0)"], shards(name, change))
        # Lists may be uneven.
        self.assertEqual([], shards("nccl:all_gather", {"input_sizes": [[9]]}))

    def test_the_rank_that_gathers_waits_for_one_that_ended(self):
        """The others send to it and go on."""
        dumps = []
        for rank in range(4):
            names = ["gather", "broadcast"] * 8 + {0: ["gather"], 1: []}.get(rank, ["gather", "broadcast"])
            dumps.append([{**entry(i, i + 1), "profiling_name": "gloo:" + name, "state": "scheduled", "time_discovered_started_ns": None, "time_discovered_completed_ns": None}
                          for i, name in enumerate(names)])
        one, = self.found(dumps)
        self.assertEqual("Rank 1's dump ends before gather #17 of group default_pg (0), the last call of rank 0", one["title"])

    def test_a_gap_in_the_ranks_is_a_rank_without_a_dump(self):
        """Gloo's dumps do not name the members of a group."""
        dumps = [[entry(i, i + 1) for i in range(9)] if rank != 2 else None for rank in range(4)]
        one, = self.found(dumps, ())
        self.assertEqual(("missing_rank", "note", [2]), (one["kind"], one["severity"], one["ranks"]))
        self.assertEqual([], self.found(dumps[:2], ()))


if __name__ == "__main__":
    unittest.main()
