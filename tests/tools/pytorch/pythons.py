#!/usr/bin/env python3
"""Whether the wheel of tracekit and the hook of `tlparse run` work with a Python: run by scripts/try-pythons.sh in an environment that has
official PyTorch, numpy and the wheel.

usage: PYTHON pythons.py ROW.json

ROW.json gets the versions, what the wheel does ({name: true or what was seen instead}) and the hook's row (hook.py).
Exit code 1: something does not work.
"""
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile

import hook

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
RECORDED = """
import sys, torch, tracekit
with tracekit.record(sys.argv[1]) as recording:
    torch.compile(lambda x: x.sin() + 1, backend="eager")(torch.ones(3))
print([(one.label, one.status) for one in recording.job().history("--all")])
"""


def said(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout.strip()


def wheel():
    import tracekit

    row = {}

    def say(name, works, seen):
        row[name] = True if works else str(seen)[-300:]
    inside = os.path.dirname(sys.executable)
    say("import", tracekit.__file__.startswith(sys.prefix + os.sep), tracekit.__file__)
    say("program", tracekit.program() == os.path.join(inside, "tlparse"), tracekit.program())
    version = said(tracekit.program(), "--version")
    say("tlparse --version", version.startswith("tlparse "), version)
    findings = [(one.kind, one.ranks) for one in tracekit.open(os.path.join(ROOT, "fixtures", "logs", "diverge_config_2_6")).findings("--severity", "warning")]
    say("findings", findings == [("config_divergence", [2])], findings)
    with tempfile.TemporaryDirectory() as folder:
        recorded = said(sys.executable, "-c", RECORDED, os.path.join(folder, "traces"))
        say("record", recorded.splitlines()[-1:] == ["[('0/0', 'ok')]"], recorded)
    return row


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    import torch

    os.environ.pop("TLPARSE", None)
    row = {"python": platform.python_version(), "torch": torch.__version__, "date": datetime.date.today().isoformat(), "wheel": wheel()}
    os.environ["TLPARSE"] = os.path.join(os.path.dirname(sys.executable), "tlparse")
    row["hook"] = hook.check(sys.executable)
    with open(sys.argv[1], "w") as file:
        json.dump(row, file, indent=1)
        file.write("\n")
    broken = {name: seen for part in ("wheel", "hook") for name, seen in row[part].items() if seen is not True}
    print(f"{row['python']}, torch {row['torch']}: " + (f"DOES NOT: {broken}" if broken else f"{len(row['wheel'])} + {len(row['hook'])} work"))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
