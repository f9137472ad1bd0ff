"""Recorded flight-recorder dumps as inputs of the tests."""

import glob
import os
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
