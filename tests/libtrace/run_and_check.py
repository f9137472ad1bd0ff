#!/usr/bin/env python3
"""Runs a program that traces, then checks its logs.

usage: run_and_check.py PROGRAM SOURCE_DIRECTORY [--directory-argument] [--all]

The logs must fit the JSON Schemas (check_schemas.py), count_records.py must find nothing damaged, and the prefix of every
record must name a file of the program, not of the library.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# Records that the library writes about itself.
OWN = re.compile(r'\{"str": |"(libtrace_version|libtrace_loss)"')
LIBRARY = re.compile(r"(^|/)libtrace/(core|cuda|include)/")
PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
with tempfile.TemporaryDirectory() as directory:
    command = [PROGRAM]
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("LIBTRACE_", "TORCH_", "RANK"))}
    if "--directory-argument" in sys.argv:
        command.append(directory)
    else:
        environment["TORCH_TRACE"] = directory
    environment["LIBTRACE_SOURCE_ROOT"] = str(SOURCE)
    subprocess.run(command, env=environment, check=True, stderr=subprocess.DEVNULL)
    logs = sorted(map(str, pathlib.Path(directory).glob("*.log")))
    assert logs, "the program left no log"
    schemas = [sys.executable, str(SOURCE / "tests/libtrace/check_schemas.py"),
               str(SOURCE / "schemas/json/libtrace"), directory]
    subprocess.run(schemas + (["--all"] if "--all" in sys.argv else []), check=True)
    counted = subprocess.run([sys.executable, str(SOURCE / "tests/tools/count_records.py"), "--json", *logs],
                             check=True, capture_output=True, text=True).stdout
    total = json.loads(counted)["total"]
    assert total["records"] > 0 and not total["lines"], total["lines"]  # lines: damaged or foreign ones
    assert total["payload_claimed_but_absent"] == 0
    assert set(total["payload_states"]) <= {"ok", "absent"}, total["payload_states"]
    for log in logs:
        for line in pathlib.Path(log).read_text().splitlines():
            if line.startswith("V") and LIBRARY.search(line.split(" ", 4)[3]):
                assert OWN.search(line), f"the place of the library instead of the program's: {line[:200]}"
    print(f"{total['records']} records, every payload verified")
