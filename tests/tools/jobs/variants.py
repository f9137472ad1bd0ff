#!/usr/bin/env python3
"""Asks tlparse about parts of recorded jobs: what was right of the whole is right of a part.

usage: variants.py TLPARSE DIR…

DIR: a recording, or a folder of recordings. Of each healthy one the files of one rank are taken
away, and all but those of one rank: above a note nothing may come but that this rank has none, and
what the whole says too. Then the logs of a healthy recording and of another one of its shape are
given as one folder, as of two runs that wrote into one: what is said of the other stays.
"""

import argparse
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import score  # noqa: E402


def rank_of(path):
    """The rank in a file's name; None: it names none."""
    name = os.path.basename(path)
    found = re.search(r"rank[_ ]?(\d+)", name) or re.fullmatch(r"\D*_(\d+)", name)
    return int(found[1]) if found else None


def parts(paths):
    """(what was taken, which ranks are gone, what is left) for each part of a job of several ranks."""
    ranks = sorted({rank_of(path) for path in paths} - {None})
    if len(ranks) < 2:
        return
    for rank in ranks:
        yield f"without rank {rank}", {rank}, [path for path in paths if rank_of(path) != rank]
    for rank in ranks:
        gone = set(ranks) - {rank}
        yield f"rank {rank} alone", gone, [path for path in paths if rank_of(path) in (rank, None)]


def alarms(answer):
    return [one for one in answer["findings"] if one["severity"] != "note"]


def unexpected(whole, part, gone):
    """Titles of a part's alarms that neither the whole has nor the absence of ranks explains."""
    known = {one["title"] for one in alarms(whole)}
    return [
        one["title"]
        for one in alarms(part)
        if one["title"] not in known
        and not (one["kind"] == "missing_rank" and set(one["ranks"]) <= gone)
    ]


def ask_parts(tlparse, folder):
    paths = score.inputs_of(folder)
    whole = score.ask(tlparse, folder)
    for what, gone, left in parts(paths):
        part = score.ask(tlparse, folder, left)
        yield what, [part["error"]] if part["error"] else unexpected(whole, part, gone)


def logs_alone(folder):
    return [path for path in score.inputs_of(folder) if f"{os.sep}logs{os.sep}" in path]


def ask_together(tlparse, healthy, other):
    """What is said of `other` alone, and no longer beside the logs of `healthy`; or only then."""
    alone = score.ask(tlparse, other, logs_alone(other))
    folder = os.path.commonpath([healthy, other])
    both = score.ask(tlparse, folder, logs_alone(healthy) + logs_alone(other))
    if both["error"] or alone["error"]:
        return [both["error"] or alone["error"]]
    titles = [{one["title"] for one in alarms(answer)} for answer in (alone, both)]
    return sorted(titles[0] ^ titles[1])


def pairs(folders):
    """A healthy recording of each shape, with each other one of it."""
    by_shape = {}
    for folder in folders:
        if logs_alone(folder):
            by_shape.setdefault(score.load(folder)["shape"], []).append(folder)
    for of_shape in by_shape.values():
        healthy = next((one for one in of_shape if score.load(one)["healthy"]), None)
        if healthy:
            yield from ((healthy, other) for other in of_shape if other != healthy)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tlparse")
    parser.add_argument("directories", nargs="+")
    options = parser.parse_args()
    folders = [one for one in score.recordings(options.directories) if not score.why_not_scored(one)]
    asked = wrong = 0
    for folder in folders:
        if not score.load(folder)["healthy"]:
            continue
        for what, titles in ask_parts(options.tlparse, folder):
            asked += 1
            wrong += bool(titles)
            for title in titles:
                print(f"{os.path.basename(folder)}, {what}: {title}", flush=True)
    print(f"parts of healthy jobs: {asked}, with an alarm of their own: {wrong}")
    asked = wrong = 0
    for healthy, other in pairs(folders):
        asked += 1
        titles = ask_together(options.tlparse, healthy, other)
        wrong += bool(titles)
        for title in titles:
            print(f"{os.path.basename(other)} beside {os.path.basename(healthy)}: {title}", flush=True)
    print(f"two runs in one folder: {asked}, with another answer: {wrong}")


if __name__ == "__main__":
    main()
