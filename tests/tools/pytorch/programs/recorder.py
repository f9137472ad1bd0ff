"""Dumps of the flight recorder of c10d, as far as a version has it."""
import os

import torch
import truth


def dump(folder):
    """Writes this rank's dump, pickle and JSON; returns how many files."""
    c10d = torch._C._distributed_c10d
    count = 0
    for name, suffix in (("_dump_fr_trace", ""), ("_dump_fr_trace_json", ".json")):
        if not hasattr(c10d, name):
            truth.lacks(name)
            continue
        data = getattr(c10d, name)()
        with open(os.path.join(folder, f"fr_trace_rank_{truth.rank()}{suffix}"), "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        count += 1
    return count
