"""Recorded flight-recorder dumps as inputs of the tests."""

import glob
import os
import pickle
import shutil
import unittest.mock

import profiles
from profiles import RUNS


def output_codes(log):
    """The files of generated code that a log names, with their text by lines."""
    codes = {}
    for record in profiles.records(log):
        code = record.envelope.get("inductor_output_code")
        if code is not None:
            codes[code.get("file_path") or code["filename"]] = profiles.payload_text(record).split("\n")
    return codes


class RecorderTest(profiles.InputTest):
    def text(self, *arguments):
        with unittest.mock.patch.dict(os.environ, COLUMNS="100"):
            return self.tlparse(*arguments).stdout

    def issued(self, database):
        return self.answer("collectives", database)["issued"]

    def part(self, scenario, pattern, logs=True):
        """A folder with some of a scenario's dumps, and its logs."""
        folder = self.path("part" + str(len(os.listdir(self.folder))))
        os.mkdir(folder)
        names = glob.glob(os.path.join(RUNS, scenario, pattern)) + (glob.glob(os.path.join(RUNS, scenario, "*.log.zst")) if logs else [])
        self.assertTrue(names)
        for path in names:
            shutil.copy(path, folder)
        return folder

    def planted(self, change, ranks=4, logs=True):
        """Dumps made from the healthy ones by `change(rank, dump)`: planted."""
        folder = self.path("planted" + str(len(os.listdir(self.folder))))
        os.mkdir(folder)
        for rank in range(ranks):
            with open(os.path.join(RUNS, "fr_healthy", f"fr_trace_rank_{rank}"), "rb") as file:
                dump = pickle.load(file)
            change(rank, dump)
            with open(os.path.join(folder, f"comm_lib_trace_rank_{rank}"), "wb") as file:
                pickle.dump(dump, file, protocol=2)
        for path in glob.glob(os.path.join(RUNS, "fr_healthy", "*.log.zst")) if logs else []:
            shutil.copy(path, folder)
        return self.issued(self.ingest(folder, name=os.path.basename(folder) + ".db"))

    def nccl(self, dump, completed):
        dump["pg_config"] = {"1": {"name": "1", "desc": "dp", "ranks": "[0, 1, 2, 3]"}}
        for entry in dump["entries"]:
            entry["profiling_name"] = entry["profiling_name"].replace("gloo:", "nccl:")
            entry.update(state="completed" if completed else "started", retired=completed,
                         time_discovered_completed_ns=entry["time_created_ns"] + 900_000 if completed else None)
