#!/usr/bin/env python3
"""docs/compatibility.md, made from fixtures/versions: row.json of each version that was recorded (measure.py), hook.json of each with which the
hook was tried (hook.py), names.json of each whose sources were read (new_names.py); from fixtures/pythons (pythons.py) and fixtures/compatibility
(others.py), of which the tables in docs/measurements are made as well.

usage: compatibility.py --write|--check FILE

The parts of the files between two marks are written or compared; what stands around them stays.
"""
import glob
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import others  # noqa: E402
from hook import TOUCHED  # noqa: E402
from measure import ENDED_BY_FORCE  # noqa: E402
from others import number, table  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BEGIN = "<!-- begin: written by scripts/try-pytorch.sh -->"
END = "<!-- end: written by scripts/try-pytorch.sh -->"
# Kinds of names in the sources, and in recordings.
SOURCE_KINDS = [("record", "Records"), ("artifact", "Artifacts"), ("phase", "Timed events (`chromium_event`)"),
                ("metric", "Members of `compilation_metrics`"), ("component", "Components of cache keys"), ("recorder", "Members of recorder dumps")]
SEEN_KINDS = [("file", "Files"), ("version of the recorder", "Versions of recorder dumps"), ("member of a profile", "Members of profiles"),
              ("category of a profile's event", "Categories of a profile's events"),
              ("argument of a profile's event", "Arguments of a profile's events")]


def read(file_name):
    """{version: content} of the versions that have the file, oldest first."""
    return contents("versions", "*", file_name, name_of=os.path.dirname)


def pythons():
    """{version: content} of the Pythons that were tried (pythons.py)."""
    return contents("pythons", "*.json", name_of=lambda path: path[:-len(".json")])


def contents(*pattern, name_of):
    found = {}
    for path in glob.glob(os.path.join(ROOT, "fixtures", *pattern)):
        with open(path) as file:
            found[os.path.basename(name_of(path))] = json.load(file)
    return {version: found[version] for version in sorted(found, key=number)}


def total(row, member):
    return sum(program[member] for program in row["programs"].values())


def minutes(seconds):
    return f"{seconds / 60:.1f} min"


def builds(versions):
    def one(version, row):
        cost, build = row.get("cost", {}), row["build"]
        seconds = cost.get("install_s", 0) + sum(end["seconds"] for end in row.get("ends", {}).values()) + row.get("measure_s", 0)
        return [version, f"{build['torch']} `{build['git'][:8]}`", build["cuda"], build["python"], row["date"], minutes(seconds),
                f"{cost['disk_bytes'] / 1e9:.1f} GB" if cost else "–"]
    return table(["PyTorch", "build", "CUDA", "Python", "recorded", "time", "disk"], [one(*item) for item in versions.items()])


def equal_or_both(found, counted):
    return str(found) if found == counted else f"**{found} of {counted}**"


def percent(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "–"


def measured(versions):
    def one(version, row):
        programs = row["programs"]
        lookups = [pair for program in programs.values() for pair in program["caches"].values()]
        profile = programs.get("profiled", {}).get("profile")
        dumps = [program["dumps"] for program in programs.values()]
        findings = [program["finding"] for program in programs.values() if program["finding"]]
        return [version, *(f"{total(row, what):,}" for what in ("records", "artifacts", "metrics", "timed_events")),
                len(row["seen"]["component of a cache key"]), sum(len(program["unknown"]) for program in programs.values()),
                sum(len(program["problems"]) for name, program in programs.items() if name not in ENDED_BY_FORCE),
                equal_or_both(total(row, "compiles"), total(row, "compiles_counted")),
                equal_or_both(sum(pair[0] for pair in lookups), sum(pair[1] for pair in lookups)),
                f"{equal_or_both(profile['calls'], profile['calls_counted'])}; {percent(profile['joined_ns'], profile['calls_ns'])}"
                if profile else "not recorded",
                f"{sum(one['files'] for one in dumps)}; {sum(one['in_graphs'] for one in dumps)} of {sum(one['calls'] for one in dumps)}",
                f"{sum(one['equal'] for one in findings)} of {len(findings)}"]
    return table(["PyTorch", "records", "artifacts", "metrics", "timed events", "names of components", "unknown names", "damage, warnings",
                  "compiles", "cache lookups", "graph calls; their time joined", "dumps; calls joined with a graph", "findings right"],
                 [one(*item) for item in versions.items()])


def programs(versions):
    """The first finding of each program; versions that say the same share a line."""
    lines = []
    for name in dict.fromkeys(name for row in versions.values() for name in row["programs"]):
        said = {}
        for version, row in versions.items():
            if name in row["programs"]:
                finding = row["programs"][name]["finding"]
                if finding is None:
                    said.setdefault(("–", "cannot run with it"), []).append(version)
                    continue
                text = re.sub(r"\d+\.\d+ m?s", "… s", finding["first"].split(":")[0] + ("" if finding["equal"] else " ✗ " + finding["first"][:160]))
                said.setdefault((finding["key"], text), []).append(version)
        lines += [[name, key, text, spans(found, versions)] for (key, text), found in said.items()]
    return table(["program", "planted", "first finding", "PyTorch"], lines)


def exceptions(versions):
    """What did not go as the program planned, and what a version lacks."""
    lines = []
    for what, member in (("not in this version", "lacks"), ("did not run as planned", "unplanned")):
        said = {}
        for version, row in versions.items():
            for name, program in row["programs"].items():
                for text in dict.fromkeys(program[member]):
                    said.setdefault((name, text), []).append(version)
        lines += [[name, what, f"`{text}`", spans(found, versions)] for (name, text), found in said.items()]
    return table(["program", "", "", "PyTorch"], sorted(lines)) if lines else "Nothing of either."


def hooks(versions):
    """What the hook does, by what it touches: the versions with which it works, and what was seen where it does not."""
    lines = []
    for name, touched in TOUCHED.items():
        works = [version for version, row in versions.items() if row.get(name) is True]
        others = [f"{short(version)}: {row[name]}" for version, row in versions.items() if row.get(name, True) is not True]
        lines.append([name, touched, ", ".join(map(short, works)) or "–", "; ".join(others) or "none"])
    return table(["the hook's", "touches in PyTorch", "works with", "does not"], lines)


def wheels(tried):
    """The Pythons with which the wheel and the hook were tried."""
    def said(part):
        broken = [f"{name}: {seen}" for name, seen in part.items() if seen is not True]
        return f"{len(part) - len(broken)} of {len(part)}" + (": ✗ " + "; ".join(broken) if broken else "")
    return table(["Python", "PyTorch", "tried", "what the wheel does, works", "parts of the hook that work"],
                 [[row["python"], row["torch"], row["date"], said(row["wheel"]), said(row["hook"])] for row in tried.values()])


def short(version):
    return ".".join(version.split(".")[:2])


def spans(found, versions):
    """2.6, 2.8–2.10: runs of neighbours in the list of all versions."""
    every, parts, run = list(versions), [], []
    for version in [*every, None]:
        if version in found:
            run.append(version)
        elif run:
            parts.append(short(run[0]) if len(run) == 1 else f"{short(run[0])}–{short(run[-1])}")
            run = []
    return "all" if len(found) == len(every) else ", ".join(parts)


def names(versions, kinds):
    """Names that some versions have and others have not, by the versions that do. `versions`: {version: {kind: names}}."""
    parts = []
    for kind, heading in kinds:
        by_versions = {}
        for name in sorted({name for found in versions.values() for name in found.get(kind, [])}):
            with_it = [version for version, found in versions.items() if name in found.get(kind, [])]
            by_versions.setdefault(tuple(with_it), []).append(name)
        common = len(by_versions.pop(tuple(versions), []))
        lines = [[spans(with_it, versions), ", ".join(f"`{name}`" for name in some)] for with_it, some in
                 sorted(by_versions.items(), key=lambda item: [list(versions).index(version) for version in item[0]])]
        parts.append(f"### {heading}\n\nIn all versions: {common}." + ("\n\n" + table(["only in", "names"], lines) if lines else ""))
    return "\n\n".join(parts)


def page():
    versions, sources = read("row.json"), read("names.json")
    parts = [BEGIN]
    if versions:
        parts += ["## Builds", builds(versions), "## What tlparse makes of it", measured(versions), "## Programs and their first finding",
                  programs(versions), "## What a version lacks, and what went otherwise", exceptions(versions)]
    if others.summary():
        parts += ["## What else was run\n\nEach line is written by the program that it names, when it runs.", others.summary()]
    hooked = read("hook.json")
    if hooked:
        parts += [f"## The hook of `tlparse run`\n\nTried with {', '.join(hooked)} (`tests/tools/pytorch/hook.py`); snapshots of CUDA's allocator need a GPU "
                  "and were not.", hooks(hooked)]
    tried = pythons()
    if tried:
        parts += ["## Pythons\n\nThe wheel of tracekit, installed by pip beside the official build, and the hook of its `tlparse run` "
                  f"(`scripts/try-pythons.sh`). The wheel does: {', '.join(next(iter(tried.values()))['wheel'])}.", wheels(tried)]
    # A name is missing only where the program that leaves it was recorded.
    whole = {version: row["seen"] for version, row in versions.items() if {"profiled", "ddp", "fsdp2", "package"} <= set(row["programs"])}
    if len(whole) > 1:
        parts += [f"## What recordings hold that not all versions write\n\nOf {', '.join(whole)}.", names(whole, SEEN_KINDS)]
    parts += [f"## What the sources can write\n\nOf PyTorch {', '.join(sources)}; `*` stands for what the source computes. Names that all of them "
              "have are counted only.", names(sources, SOURCE_KINDS), END]
    return "\n\n".join(parts)


def pages(path):
    """{path: (text, text as it should be)} of the page and of those in docs/measurements."""
    found = {}
    for one in [path, *(os.path.join(ROOT, "docs", "measurements", name) for name in others.PAGES)]:
        with open(one) as file:
            text = file.read()
        if one == path:
            before, rest = text.split(BEGIN)
            found[one] = text, before + page() + rest.split(END)[1]
        else:
            found[one] = text, others.filled(os.path.basename(one), text)
    return found


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("--write", "--check"):
        sys.exit(__doc__)
    for path, (text, made) in pages(sys.argv[2]).items():
        if made == text:
            continue
        if sys.argv[1] == "--check":
            sys.exit(f"compatibility: {path} is not what the fixtures say: write it anew with compatibility.py --write")
        with open(path, "w") as file:
            file.write(made)


if __name__ == "__main__":
    main()
