#!/usr/bin/env python3
"""Scores what tlparse says first of recorded jobs, by their keys.

usage: score.py TLPARSE DIR… [--versus OTHER] [--json FILE] [--markdown]

DIR: a recording, or a folder of recordings. Logs, dumps, profiles and run.json of each are ingested
in a temporary folder; stdout.txt and meta.json are not given to tlparse.
  cause    the first finding names the cause: its kind, its ranks, its place, its words
  unseen   no input shows the cause: nothing is claimed, or the right rank is
  healthy  nothing was planted: nothing above a note
"Blamed": a finding above a note names a rank that is not at fault.
"""

import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import key  # noqa: E402

EXPECTED = ("cause", "unseen", "healthy")


def recordings(directories):
    for directory in directories:
        if os.path.exists(os.path.join(directory, "meta.json")):
            yield directory
        else:
            yield from sorted(
                os.path.dirname(path) for path in glob.glob(os.path.join(directory, "*", "meta.json"))
            )


def load(folder):
    with open(os.path.join(folder, "meta.json"), encoding="utf-8") as file:
        return json.load(file)


def run(command):
    """(exit code, standard output, standard error, seconds, MB at most)."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        begun = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=error)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (out, error):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    return process.returncode, *texts, seconds, usage.ru_maxrss / 1024


def inputs_of(folder):
    return sorted(
        glob.glob(os.path.join(folder, "logs", "**", "*.log*"), recursive=True)
        + glob.glob(os.path.join(folder, "fr", "*"))
        + glob.glob(os.path.join(folder, "profile*.json*"))
        + glob.glob(os.path.join(folder, "run.json"))
    )


def why_not_scored(folder):
    """A job that ended before any process wrote a log leaves nothing to read."""
    return load(folder)["problems"] or ([] if inputs_of(folder) else ["no input was written"])


def ask(tlparse, folder, paths=None):
    """What tlparse answers of a recording, or of some of its files, with its time and memory; "error": it did not."""
    with tempfile.TemporaryDirectory() as scratch:
        for path in inputs_of(folder) if paths is None else paths:
            target = os.path.join(scratch, "in", os.path.relpath(path, folder))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.symlink(os.path.abspath(path), target)
        database = os.path.join(scratch, "job.db")
        code, _, error, ingest_s, memory = run(
            [tlparse, os.path.join(scratch, "in"), "--db-only", "--db", database]
        )
        answer = {
            "ingest_s": round(ingest_s, 3),
            "memory_mb": round(memory, 1),
            "error": None,
            "findings": [],
            "status": [],
        }
        if code != 0:
            answer["error"] = f"ingest ended with {code}: {error.strip()[-300:]}"
            return answer
        code, out, error, answer["answer_s"], memory = run([tlparse, "findings", database, "--json"])
        answer["answer_s"] = round(answer["answer_s"], 3)
        answer["memory_mb"] = round(max(memory, answer["memory_mb"]), 1)
        if code != 0:
            answer["error"] = f"findings ended with {code}: {error.strip()[-300:]}"
            return answer
        answer.update(json.loads(out))
        code, out, error, *_ = run([tlparse, "status", database, "--json"])
        if code != 0:
            answer["error"] = f"status ended with {code}: {error.strip()[-300:]}"
        else:
            answer["status"] = json.loads(out)["rows"]
    return answer


def has(text, alternatives):
    return any(one.lower() in text.lower() for one in alternatives)


def says_ranks(text, rank):
    """Whether a text names a rank: `rank 2`, `ranks 0,2`, `ranks 1 to 3`."""
    for match in re.finditer(r"\b[Rr]anks? ([0-9][0-9, and]*)", text):
        if rank in map(int, re.findall(r"\d+", match[1])):
            return True
    return False


def is_everyone(ranks, meta):
    return ranks == [] or ranks == list(range(meta["world_size"]))


def names_ranks(finding, cause, meta):
    if cause["ranks"] == [] or (cause.get("either") and is_everyone(finding["ranks"], meta)):
        return is_everyone(finding["ranks"], meta)
    return finding["ranks"] == cause["ranks"]


def is_at(finding, places):
    place = finding["place"]
    text = finding["title"] + " " + (finding["detail"] or "")
    return any(
        (place and os.path.basename(place["file"]) == file and place["line"] == line)
        or re.search(rf"\b{re.escape(file)}:{line}\b", text)
        for file, line in places
    )


def judge_cause(findings, meta):
    """Why the first finding is not the cause; empty: it is."""
    cause = meta["cause"]
    kinds = key.CLASSES.get(cause["class"], cause.get("kinds", []))
    if not findings:
        return ["no finding"]
    first = findings[0]
    why = []
    if first["severity"] == "note" and cause["class"] not in key.ANY_SEVERITY:
        why.append("only notes")
    if first["kind"] not in kinds:
        why.append(f"kind {first['kind']}")
    if not names_ranks(first, cause, meta):
        why.append(f"ranks {first['ranks']} instead of {cause['ranks']}")
    why += [
        f"the title lacks {'/'.join(group)}" for group in cause["words"] if not has(first["title"], group)
    ]
    why += [
        f"title and detail lack {'/'.join(group)}"
        for group in cause["says"]
        if not has(first["title"] + " " + (first["detail"] or ""), group)
    ]
    if cause["place"] and not is_at(first, cause["place"]):
        why.append(f"not at {cause['place'][0][0]}:{cause['place'][0][1]}")
    return why


def is_of_all_ends(finding, meta):
    """All logs end there, but for those of ranks that wait; which rank was the first is not known."""
    logged = sorted({log["rank"] for log in meta["logs"] if log["rank"] is not None})
    is_of_all = is_everyone(finding["ranks"], meta) or finding["ranks"] == logged
    is_of_all |= meta["victim"] in finding["ranks"] and " end within " in finding["title"]
    return is_of_all and finding["kind"] in key.ENDS and not meta["ended_well"]


def judge_unseen(findings, meta):
    loud = [one for one in findings if one["severity"] != "note"]
    if not loud:
        return []
    first, cause = loud[0], meta["cause"]
    if first["ranks"] == cause["ranks"] and cause["ranks"]:
        return []
    if is_of_all_ends(first, meta):
        return []
    return [f"claims {first['kind']} of ranks {first['ranks']}"]


def judge_restarted(findings, meta):
    why = [f"{one['severity']} {one['kind']}" for one in findings if one["severity"] != "note"]
    texts = [
        one["title"] + " " + (one["detail"] or "")
        for one in findings
        if one["kind"] in key.CLASSES["restarted"]
    ]
    if not any(says_ranks(text, meta["victim"]) for text in texts):
        why.append(f"no note names rank {meta['victim']} of the first launch")
    return why


def judge(answer, meta):
    """{"expected", "right", "why", "blamed"} of one recording."""
    findings, cause = answer["findings"], meta["cause"]
    loud = [one for one in findings if one["severity"] != "note"]
    expected = (
        "healthy"
        if cause is None
        else "cause" if cause["visible"] and cause["class"] != "preempted" else "unseen"
    )
    if answer["error"]:
        return {"expected": expected, "right": False, "why": [answer["error"]], "blamed": []}
    if cause is None:
        why = [f"{one['severity']} {one['kind']}: {one['title'][:100]}" for one in loud]
    elif cause["class"] == "restarted":
        why = judge_restarted(findings, meta)
    else:
        why = judge_cause(findings, meta) if expected == "cause" else judge_unseen(findings, meta)
    at_fault = set(cause["ranks"] or []) if cause else set()
    if cause and cause["class"] == "restarted":
        at_fault = {meta["victim"]}
    if cause and cause["class"] == "preempted":
        loud = [one for one in loud if not is_of_all_ends(one, meta)]
    blamed = (
        sorted({rank for one in loud for rank in one["ranks"]} - at_fault)
        if cause and (at_fault or cause["class"] == "preempted")
        else []
    )
    return {"expected": expected, "right": not why, "why": why, "blamed": blamed}


def judge_processes(answer, meta):
    """Why the processes are not told apart; empty: each launch is one, and the last one's ranks are shown."""
    if "launched" not in meta or answer["error"]:
        return []
    why = []
    if answer["launch_count"] != max(1, len(meta["launched"])):
        why.append(f"{answer['launch_count']} launches instead of {len(meta['launched'])}")
    shown = {row["pid"] for row in answer["status"]}
    if meta["launched"] and not set(meta["launched"][-1]) <= shown:
        why.append("ranks are not in the status of the last launch")
    return why


def score(tlparse, folder):
    meta = load(folder)
    answer = ask(tlparse, folder)
    row = {
        "job": meta["name"],
        "shape": meta["shape"],
        "fault": meta["fault"],
        "inputs": meta["inputs"],
        **judge(answer, meta),
        "processes": judge_processes(answer, meta),
        "findings": [
            {name: one[name] for name in ("severity", "kind", "ranks", "title")} for one in answer["findings"]
        ],
        "first": answer["findings"][0] if answer["findings"] else None,
        "ingest_s": answer["ingest_s"],
        "answer_s": answer.get("answer_s"),
        "memory_mb": answer["memory_mb"],
        "input_bytes": sum(map(os.path.getsize, inputs_of(folder))),
    }
    return row


def totals(rows):
    counts = {}
    for one in EXPECTED:
        of_kind = [row for row in rows if row["expected"] == one]
        counts[one] = {"right": sum(row["right"] for row in of_kind), "of": len(of_kind)}
    counts["all"] = {"right": sum(row["right"] for row in rows), "of": len(rows)}
    counts["processes"] = {"right": sum(not row["processes"] for row in rows), "of": len(rows)}
    counts["blamed"] = sum(bool(row["blamed"]) for row in rows)
    counts["false_alarms"] = sum(row["expected"] == "healthy" and not row["right"] for row in rows)
    return counts


def cell(part):
    return f"{part['right']}/{part['of']}" if part["of"] else "–"


def table(rows, column):
    lines = [f"| {column} | cause | unseen | healthy | all | blamed |", "|---|---|---|---|---|---|"]
    for name in sorted({row[column] for row in rows}):
        part = totals([row for row in rows if row[column] == name])
        lines.append(
            f"| {name} | "
            + " | ".join(cell(part[one]) for one in (*EXPECTED, "all"))
            + f" | {part['blamed']} |"
        )
    return lines


def summary(rows):
    part = totals(rows)
    share = 100 * part["cause"]["right"] / part["cause"]["of"] if part["cause"]["of"] else 0
    lines = [
        f"* first finding = cause: {cell(part['cause'])} ({share:.0f} %)",
        f"* unseen causes left unclaimed: {cell(part['unseen'])}",
        f"* healthy jobs without an alarm: {cell(part['healthy'])}",
        f"* all: {cell(part['all'])}",
        f"* jobs in which a bystander is blamed: {part['blamed']}",
        f"* launches and their ranks told from children: {cell(part['processes'])}",
    ]
    if rows:
        ingest_s = [row["ingest_s"] for row in rows]
        answer_s = [row["answer_s"] or 0 for row in rows]
        memory_mb = max(row["memory_mb"] for row in rows)
        lines.append(
            f"* ingest {sum(ingest_s):.1f} s in all, {max(ingest_s):.2f} s at most; findings "
            f"{max(answer_s):.2f} s at most; memory {memory_mb:.0f} MB at most"
        )
    return lines


def report(rows, markdown):
    lines = summary(rows)
    for column in ("shape", "fault", "inputs"):
        lines += ["", *table(rows, column)]
    lines += ["", "Wrong:" if not markdown else "## Wrong", ""]
    for row in rows:
        if not row["right"]:
            first = row["first"]
            said = f"{first['severity']}: {first['title'][:160]}" if first else "no finding"
            lines.append(f"* `{row['job']}`: {'; '.join(row['why'])[:220]}. Said: {said}")
        if row["processes"]:
            lines.append(f"* `{row['job']}` (processes): {'; '.join(row['processes'])}")
    return "\n".join(lines)


def compare(before, after):
    old = {row["job"]: row for row in before}
    lines = []
    for word, is_better in (("Better", True), ("Worse", False)):
        changed = [
            (old[row["job"]], row)
            for row in after
            if row["job"] in old and row["right"] != old[row["job"]]["right"] and row["right"] == is_better
        ]
        lines += ["", f"{word}: {len(changed)}"]
        for was, now in changed:
            lines.append(f"* `{now['job']}`: {'; '.join((was if is_better else now)['why'])[:160]}")
            lines += [
                f"    {word}: {row['first']['title'][:160] if row['first'] else 'no finding'}"
                for word, row in (("was", was), ("now", now))
            ]
    others = [
        (old[row["job"]], row)
        for row in after
        if row["job"] in old
        and row["right"] == old[row["job"]]["right"]
        and [one["title"] for one in row["findings"]] != [one["title"] for one in old[row["job"]]["findings"]]
    ]
    return "\n".join([*lines, "", f"As right or wrong as before, but with other findings: {len(others)}"])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tlparse")
    parser.add_argument("directories", nargs="+")
    parser.add_argument(
        "--versus", help="another tlparse, or a file that --json wrote: what this one has changed against it"
    )
    parser.add_argument("--json", dest="json_file")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    folders = [folder for folder in recordings(arguments.directories)]
    bad = [folder for folder in folders if why_not_scored(folder)]
    folders = [folder for folder in folders if folder not in bad]
    rows = [score(arguments.tlparse, folder) for folder in folders]
    print(report(rows, arguments.markdown))
    for folder in bad:
        print(
            f"not scored, the recording is not what was planned: {os.path.basename(folder)}: {why_not_scored(folder)}"
        )
    if arguments.json_file:
        with open(arguments.json_file, "w", encoding="utf-8") as file:
            json.dump({"totals": totals(rows), "jobs": rows}, file, indent=1)
    if arguments.versus:
        if arguments.versus.endswith(".json"):
            with open(arguments.versus, encoding="utf-8") as file:
                before = json.load(file)["jobs"]
        else:
            before = [score(arguments.versus, folder) for folder in folders]
        print(
            "\nAgainst", arguments.versus, "\n".join(["", *summary(before)]), compare(before, rows), sep="\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
