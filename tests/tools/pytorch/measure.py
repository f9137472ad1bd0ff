#!/usr/bin/env python3
"""Ingests what record.py recorded with one version of PyTorch and measures what tlparse makes of it.

usage: measure.py FOLDER ROW.json          (TLPARSE names the program)

ROW.json: the row of docs/compatibility.md, with the names that the version wrote. See `measure` for its members.
"""
import collections
import glob
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import seen  # noqa: E402

TLPARSE = os.environ.get("TLPARSE", os.path.join(ROOT, "build", "bin", "tlparse"))
# What must be found first, and of which ranks (None: of the one process). Of all others nothing above a note.
KEYS = {
    "train": ("compile_failed", None),
    "dynamic": ("compile_failed", None),
    "exports": ("compile_failed", None),
    "crash": ("compile_failed", [1]),
    "hang": ("stopped_first", [2]),
    "slow": ("late_rank", [3]),
}
# Their processes are ended in the middle of what their logs began.
ENDED_BY_FORCE = {"crash", "hang"}
# Said rightly of programs without a fault: PyTorch does not cache some graphs, and breaks them at the hooks of FSDP.
ALLOWED = {"cache_bypassed", "graph_break"}


def ask(*arguments):
    done = subprocess.run([TLPARSE, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"measure: tlparse {' '.join(arguments)}: {done.stderr.strip()}")
    return json.loads(done.stdout) if "--json" in arguments else done.stdout


def truths(folder):
    """What the program counted itself, by the process."""
    found = {}
    for path in glob.glob(os.path.join(folder, "truth", "*.json")):
        with open(path) as file:
            one = json.load(file)
        found[one["pid"]] = one
    return found


def compiles(database, truth):
    """(found, counted) of the processes that counted to their end."""
    found = dict(database.execute("SELECT p.pid, count(*) FROM compile c JOIN process p ON p.id = c.process_id "
                                  "WHERE NOT c.is_synthetic GROUP BY p.pid"))
    return sum(found.get(pid, 0) for pid in truth), sum(one["frame_compiles"] + one["autograd_compiles"] for one in truth.values())


LOOKUPS = {"fx_graph": ("inductor", "fxgraph_cache"), "aotautograd": ("aot_autograd", "autograd_cache")}


def lookups(database, truth):
    """{layer and state: [found, counted]} of cache lookups, where they differ or are more than none."""
    result = {}
    for layer, (owner, prefix) in LOOKUPS.items():
        for state in ("hit", "miss", "bypass"):
            marks = ",".join("?" * len(truth))
            found = database.execute(
                "SELECT count(*) FROM cache_event e JOIN record r ON r.id = e.record_id JOIN process p ON p.id = r.process_id "
                f"WHERE e.layer = ? AND e.state IN (?, CASE ? WHEN 'miss' THEN 'guard_miss' END) AND p.pid IN ({marks})",
                (layer, state, state, *truth)).fetchone()[0]
            counted = sum(one["caches"].get(f"{owner}.{prefix}_{state}", 0) for one in truth.values())
            if found or counted:
                result[f"{layer} {state}"] = [found, counted]
    return result


def profile(database, truth):
    """Slices of compiled code: how many, their time, and the part of it that is joined with a graph or a compile."""
    calls = database.execute("SELECT count(*), coalesce(sum(duration_ns), 0), coalesce(sum(duration_ns) FILTER (WHERE compile_id IS NOT NULL), 0) "
                             "FROM graph_call").fetchone()
    kernels = database.execute("SELECT count(*), count(kernel_id) FROM kernel_run").fetchone()
    return {"calls": calls[0], "calls_counted": sum(one.get("graph_calls", 0) for one in truth.values()), "calls_ns": calls[1],
            "joined_ns": calls[2], "kernel_runs": kernels[0], "kernel_runs_joined": kernels[1]}


def dumps(database, truth):
    files = database.execute("SELECT count(*) FROM profile WHERE kind = 'flight_recorder'").fetchone()[0]
    written = sum(one.get("dumps", 0) for one in truth.values())
    entries = database.execute("SELECT count(*) FROM recorder_entry").fetchone()[0]
    graphs = database.execute("SELECT count(*), count(graph_id), count(DISTINCT graph_id) FROM collective_run WHERE entry_id IS NOT NULL").fetchone()
    return {"files": files, "written": written, "entries": entries, "calls": graphs[0], "in_graphs": graphs[1]}


def finding(path, name):
    """(what must be found, what is found first, is it that?)."""
    found = ask("findings", path, "--json")["findings"]
    key = KEYS.get(name)
    if key is None:
        alarms = [one for one in found if one["severity"] != "note" and one["kind"] not in ALLOWED]
        return {"key": "none above a note", "first": f"{alarms[0]['kind']}: {alarms[0]['title']}" if alarms else "none", "equal": not alarms}
    first = found[0] if found else None
    equal = first is not None and first["kind"] == key[0] and (key[1] is None or first["ranks"] == key[1])
    ranks = "" if key[1] is None else f" of rank {key[1][0]}"
    return {"key": key[0] + ranks, "first": f"{first['kind']}: {first['title']}" if first else "none", "equal": equal}


def problems(database):
    return [{"severity": severity, "code": code, "message": message, "path": os.path.basename(path or ""), "line": line}
            for severity, code, message, path, line in database.execute(
                "SELECT i.severity, i.code, i.message, f.path, i.line FROM import_log i LEFT JOIN log_file f ON f.id = i.log_file_id "
                "WHERE i.severity IN ('error', 'warning')")]


COUNTS = {
    "records": "SELECT count(*) FROM record",
    "artifacts": "SELECT count(*) FROM record WHERE kind = 'artifact'",
    "metrics": "SELECT count(*) FROM compilation_metric",
    "timed_events": "SELECT count(*) FROM chromium_event",
    "lookups": "SELECT count(*) FROM cache_event",
}


# Of a program that cannot run with a version, which lacks all that it is about: it left nothing.
NOTHING = {**dict.fromkeys([*COUNTS, "processes", "compiles", "compiles_counted"], 0), "caches": {}, "problems": [], "finding": None,
           "unknown": [], "unplanned": [], "outcomes": {}, "profile": None,
           "dumps": {"files": 0, "written": 0, "entries": 0, "calls": 0, "in_graphs": 0}}


def lacking(truth):
    return sorted({feature for one in truth.values() for feature in one["lacks"]})


def measure_program(folder, name, scratch):
    path = os.path.join(scratch, name)
    truth = truths(folder)
    if not os.listdir(os.path.join(folder, "in")) and lacking(truth) and not any(one["outcomes"] for one in truth.values()):
        return {**NOTHING, "lacks": lacking(truth)}, {}
    ask(os.path.join(folder, "in"), "-o", path, "--db-only")
    database = sqlite3.connect(f"file:{path}/trace.db?mode=ro", uri=True)
    database.text_factory = lambda data: data.decode("utf-8", "replace")
    row = {what: database.execute(sql).fetchone()[0] for what, sql in COUNTS.items()}
    found, counted = compiles(database, truth)
    row.update(processes=len(truth), compiles=found, compiles_counted=counted, caches=lookups(database, truth),
               problems=problems(database), finding=finding(path, name),
               unknown=[[one["kind"], one["name"], one["count"]] for one in ask("import-log", path, "--unknown", "--json")["unknown"]],
               lacks=lacking(truth),
               unplanned=sorted(f"{label}: {end['raised']}" for one in truth.values() for label, end in one["outcomes"].items()
                                if (end["raised"] is not None) != end["fails"]))
    row["outcomes"] = {label: end["raised"] for one in truth.values() for label, end in one["outcomes"].items()}
    row["profile"] = profile(database, truth) if name == "profiled" else None
    row["dumps"] = dumps(database, truth)
    names = seen.in_database(database)
    for kind, more in seen.in_files(os.path.join(folder, "in")).items():
        names[kind] |= more
    database.close()
    return row, names


def build(folder):
    """The build as its own processes say it."""
    for path in sorted(glob.glob(os.path.join(folder, "*", "truth", "*.json"))):
        with open(path) as file:
            one = json.load(file)
        return {name: one[name] for name in ("torch", "git", "cuda", "python")}
    sys.exit(f"measure: no program in {folder} wrote what it counted")


def recorded_on(folder):
    """The day of the first log, by its name's file time."""
    import datetime

    times = [os.path.getmtime(path) for path in glob.glob(os.path.join(folder, "*", "in", "*"))]
    return datetime.datetime.fromtimestamp(min(times), datetime.timezone.utc).strftime("%Y-%m-%d")


def measure(folder):
    """Members of the row: `build`, `date`, `programs` (of each: counts, what was found and what the program counted, problems, unknown
    names, the first finding beside what was planted, what the version lacks), `seen` (names by kind)."""
    start = time.monotonic()
    programs, names = {}, collections.defaultdict(set)
    with tempfile.TemporaryDirectory() as scratch:
        for path in sorted(glob.glob(os.path.join(folder, "*", "in"))):
            name = os.path.basename(os.path.dirname(path))
            programs[name], more = measure_program(os.path.dirname(path), name, scratch)
            for kind, found in more.items():
                names[kind] |= found
    row = {"build": build(folder), "date": recorded_on(folder), "programs": programs,
           "seen": {kind: sorted(found) for kind, found in sorted(names.items())}}
    for file_name, member in (("programs", "ends"), ("wheel", "wheel"), ("cost", "cost")):
        path = os.path.join(folder, file_name + ".json")
        if os.path.exists(path):
            with open(path) as file:
                row[member] = json.load(file)
    row["measure_s"] = round(time.monotonic() - start, 1)
    return row


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    row = measure(sys.argv[1])
    os.makedirs(os.path.dirname(os.path.abspath(sys.argv[2])), exist_ok=True)
    with open(sys.argv[2], "w") as file:
        json.dump(row, file, indent=1, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main()
