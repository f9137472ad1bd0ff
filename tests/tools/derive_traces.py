#!/usr/bin/env python3
"""Derives traces for which there is no real sample from the bundled real traces.

Writes OUT/<name>.log and OUT/<name>.expected.json: counts by construction, and queries with the
rows they must answer on a database of that log. Covers several processes in one file, merged job
logs, older spellings of the format, and every kind of damage. The same seed gives the same bytes.
"""

import argparse
import os
import random

from derive_damage import damage
from derive_layouts import layouts
from derive_older import older


def derive(directory, seed=1, huge_bytes=0, only=None):
    """Writes the traces (whose name contains `only`) and returns their names."""
    os.makedirs(directory, exist_ok=True)
    names = []
    for group in (layouts(), older(), damage(random.Random(seed), huge_bytes)):
        for trace in group:
            if only is None or only in trace.name:
                trace.write(directory)
                names.append(trace.name)
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", metavar="OUT", help="directory, made if need be")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--huge-bytes", type=int, default=0, metavar="N",
                        help="also a trace with one line of N bytes (100000000: 100 MB)")
    parser.add_argument("--only", metavar="TEXT", help="only traces whose name contains TEXT")
    arguments = parser.parse_args()
    names = derive(arguments.out, arguments.seed, arguments.huge_bytes, arguments.only)
    print(f"{len(names)} traces in {arguments.out}")


if __name__ == "__main__":
    main()
