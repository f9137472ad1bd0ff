#!/usr/bin/env python3
"""Ranks that come late to a collective: planted in the dumps of a healthy job."""

import os
import pickle
import unittest

from profiles import ROOT
from recorder import RecorderTest
from test_messages import entry

SECOND = 1_000_000_000


class LateArrivals(RecorderTest):
    def findings(self, change, logs=True):
        self.planted(change, logs=logs)
        return self.answer("findings", self.database)["findings"]

    def late(self, of, group, sequence, seconds):
        """Makes the ranks of `of` come late to a collective; all later calls of all ranks are then as much later."""
        def change(rank, dump):
            is_after = False
            for entry in dump["entries"]:
                is_it = (entry["process_group"][0], entry["collective_seq_id"]) == (group, sequence)
                if is_after or (is_it and rank in of):
                    entry["time_created_ns"] += int(seconds * SECOND)
                is_after |= is_it
        return change

    def test_the_late_rank_and_its_delay_are_named(self):
        for logs in (True, False):
            finding, = self.findings(self.late([2], "1", 2, 18), logs)
            self.assertEqual(("late_rank", "warning", [2]), (finding["kind"], finding["severity"], finding["ranks"]))
            self.assertRegex(finding["title"], r"^Rank 2 came to all_reduce #2 of group dp \(1\) 18\.0 s after ranks 0,1,3$")
            self.assertRegex(finding["detail"], r"The others could not complete it before that\. Rank 2 had issued #3 all_reduce \[16, 16\] Float .* of group tp \(3\) 18\.0 s earlier")
            self.assertEqual(["0/0"] if logs else [], finding["compiles"])
            self.assertEqual(logs, "its log has " in finding["detail"])
            rows = self.rows(self.database, finding["query"])
            self.assertEqual(4, len(rows))
            shown, = self.issued(self.database)["findings"]
            self.assertEqual((finding["kind"], finding["title"], "2", "1", 2), tuple(shown[k] for k in ("kind", "title")) + (shown["ranks"]["ranks"], shown["group"], shown["sequence_number"]))

    def test_two_ranks_of_four_are_named_together(self):
        finding, = self.findings(self.late([1, 2], "1", 2, 7), logs=False)
        self.assertEqual([1, 2], finding["ranks"])
        self.assertRegex(finding["title"], r"^Ranks 1,2 came to .* 7\.0 s after ranks 0,3$")

    def test_what_the_log_has_of_that_time_is_named(self):
        # Rank 2 compiles 1/0 between #2 and #3 of dp; here it takes longer than the others'.
        def change(rank, dump):
            for entry in dump["entries"]:
                if entry["process_group"][0] == "1" and entry["collective_seq_id"] >= 3:
                    entry["time_created_ns"] -= 0 if rank == 2 or entry["collective_seq_id"] > 3 else 6 * SECOND
        finding, = self.findings(change)
        self.assertEqual([2], finding["ranks"])
        self.assertIn("; its log has records of that time for the compile 1/0", finding["detail"])

    def test_a_clock_that_differs_is_no_delay(self):
        def clock(rank, dump):
            for entry in dump["entries"]:
                entry["time_created_ns"] += 60 * SECOND if rank == 2 else 0
        self.assertEqual([], [one["title"] for one in self.findings(clock, logs=False)])
        late = self.late([2], "1", 2, 18)

        def both(rank, dump):
            late(rank, dump)
            clock(rank, dump)
        finding, = self.findings(both, logs=False)
        self.assertRegex(finding["title"], r"^Rank 2 came to all_reduce #2 of group dp \(1\) 1[78]\.\d s after ranks 0,1,3$")
        self.assertRegex(finding["detail"], r"differ by (59|60)\.\d s more: so much does rank 2 differ")

    def test_a_rank_that_waits_in_most_collectives_is_not_late_in_the_others(self):
        """Rank 0 is early in all calls of dp but the first, as where the others compile: its clock is not behind."""
        def change(rank, dump):
            for entry in dump["entries"]:
                is_later = entry["process_group"][0] == "1" and entry["collective_seq_id"] > 1
                entry["time_created_ns"] -= 6 * SECOND if is_later and rank == 0 else 0
        self.assertEqual([], [one["title"] for one in self.findings(change, logs=False) if one["kind"] == "late_rank" and one["ranks"] == [0]])

    def test_a_short_delay_and_one_of_most_ranks_are_none(self):
        self.assertEqual([], self.findings(self.late([2], "1", 2, 0.01), logs=False))
        self.assertEqual([], self.findings(self.late([0, 1, 2], "1", 2, 18), logs=False))

    def paced(self, delays_s):
        """Steps of 0.1 s, to which one rank after another comes by 5 ms later; and then by delays_s[step] rank 1."""
        def change(rank, dump):
            usual, entries, at = [one for one in dump["entries"] if one["process_group"][0] == "1"][0], [], 1_763_000_000 * SECOND
            for step in range(60):
                at += SECOND // 10
                delay = int(delays_s.get(step, 0) * SECOND)
                own = delay if rank == 1 else 5_000_000 * (rank == step % 4)
                entries.append(dict(usual, record_id=step, collective_seq_id=step + 1, time_created_ns=at + own))
                at += delay
            dump["entries"] = entries
        return [(one["kind"], one["severity"], one["ranks"]) for one in self.findings(change, logs=False)]

    def test_a_pause_is_judged_by_the_job(self):
        """By the delays that it has besides, and by its length."""
        self.assertEqual([("late_rank", "note", [1])], self.paced({30: 0.5}))
        self.assertEqual([("late_rank", "warning", [1])], self.paced({30: 4}))
        self.assertEqual([], self.paced({30: 0.04}))
        self.assertEqual([], self.paced({30: 0.2}))

    def test_waiting_in_a_barrier_is_a_note(self):
        finding, = self.findings(self.late([1], "0", 3, 30), logs=False)
        self.assertEqual(("late_rank", "note", [1]), (finding["kind"], finding["severity"], finding["ranks"]))
        self.assertIn("came to barrier #3", finding["title"])

    def test_a_broadcast_makes_those_wait_that_issue_nothing_more(self):
        late = self.late([1], "0", 2, 30)

        def going_on(*ranks):
            """These ranks issue their next call of the group in time; all others, and all that follows, are late with rank 1."""
            def change(rank, dump):
                late(rank, dump)
                for one in dump["entries"]:
                    if rank in ranks and (one["process_group"][0], one["collective_seq_id"]) == ("0", 3):
                        one["time_created_ns"] -= 30 * SECOND
            return [one for one in self.findings(change, logs=False) if "broadcast" in one["title"]]
        finding, = going_on(0)
        self.assertEqual(("late_rank", [1]), (finding["kind"], finding["ranks"]))
        self.assertRegex(finding["title"], r"^Rank 1 came to broadcast #2 of group default_pg \(0\) 30\.0 s after ranks 0,2,3$")
        self.assertIn("All others but its source issued no other call of the group before that", finding["detail"])
        # Where all wait it may be for the source; where two go on they wait for nobody.
        self.assertEqual([], going_on())
        self.assertEqual([], going_on(0, 2))

    def test_delays_are_alike_although_the_others_compiled_during_one(self):
        """Rank 1 works for 0.6 s on each batch; in the first of three such times the others still compiled for 0.2 s."""
        folder = os.path.join(ROOT, "fixtures", "inputs", "slow_batches")
        finding, = self.answer("findings", self.ingest(folder, name="slow_batches.db"))["findings"]
        self.assertEqual(("straggler", "warning", [1]), (finding["kind"], finding["severity"], finding["ranks"]))
        self.assertTrue(finding["title"].startswith("Ranks 0,2 wait for rank 1: it came last to 4 of 9 collectives "), finding["title"])
        self.assertEqual(("finetune.py", 36), (os.path.basename(finding["place"]["file"]), finding["place"]["line"]))

    def test_a_barrier_at_two_lines_shows_that_a_clock_is_not_ahead(self):
        """Rank 1 is 0.6 s late to each all_reduce, as one whose clock is ahead; but rank 0, which prepared first, came to the barrier after it."""
        for rank_0_at, said in ((8000, True), (-1, False)):
            folder = self.path(f"barrier{said}")
            os.mkdir(folder)
            for rank in range(3):
                late = 600 if rank == 1 else rank
                entries = [entry(0, "barrier", 1, "completed", p2p=False, at=rank_0_at if rank == 0 else late, line=20 + 10 * (rank > 0))] + [
                    entry(number, "all_reduce", number + 1, "completed", p2p=False, at=10_000 + 1000 * number + late, line=40) for number in (1, 2, 3)]
                for one in entries:
                    one["time_discovered_completed_ns"] = None
                with open(os.path.join(folder, f"nccl_trace_rank_{rank}"), "wb") as file:
                    pickle.dump({"version": "2.10", "pg_config": {"1": {"name": "1", "desc": "pp", "ranks": "[0, 1, 2]"}}, "pg_status": {}, "entries": entries}, file, protocol=2)
            found = self.answer("findings", self.ingest(folder, name=f"barrier{said}.db"))["findings"]
            self.assertEqual([("straggler", [1])] if said else [], [(one["kind"], one["ranks"]) for one in found])


if __name__ == "__main__":
    unittest.main()
