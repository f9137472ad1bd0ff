#!/usr/bin/env python3
"""Checks the sentences of findings of recorded jobs against the raw logs, dumps and profiles.

usage: check_sentences.py TLPARSE DIR… [--json FILE] [--unchecked]

The reader of the raw files shares nothing with tlparse (rawlogs.py). What the files refute is
printed, with the sentence. Some sentences have no form that is known here: of them, only that the
ranks, compiles and lines that they name exist is checked; --unchecked prints them.
"""

import argparse
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import claims  # noqa: E402
import rawlogs  # noqa: E402
import score  # noqa: E402


def sentences(text):
    return [one.strip() for one in re.split(r"(?<=[.…])\s+(?=[A-Z])", text or "") if one.strip()]


def flatten(findings, depth=0):
    for finding in findings:
        yield finding, depth
        yield from flatten(finding["evidence"], depth + 1)


def check_place(facts, finding):
    place = finding["place"]
    if not place or not place["line"]:
        return []
    ranks = [rank for rank in finding["ranks"] if facts.logs(rank)]
    found = [claims.at_line(facts, place["file"], place["line"], ranks)]
    if place["code"]:
        code = json.dumps(place["code"].strip())[1:-1]
        found.append(
            (
                f"the line reads {place['code'].strip()[:60]}",
                (
                    any(place["code"].strip() in log.text or code in log.text for log in facts.job.logs)
                    if facts.job.logs
                    else None
                ),
            )
        )
    return found


def check_finding(facts, finding):
    """One row a sentence: {"sentence", "known", "claims": [[claim, verdict]]}."""
    rows = []
    for sentence in [finding["title"], *sentences(finding["detail"])]:
        found, is_known = claims.check(facts, sentence, finding)
        rows.append({"sentence": sentence, "known": is_known, "claims": found})
    members = [
        (f"there is a rank {rank}", rank in facts.job.ranks() or rank in range(facts.world_size or 0))
        for rank in finding["ranks"]
    ]
    rows.append(
        {
            "sentence": f"(ranks and place of: {finding['title'][:80]})",
            "known": True,
            "claims": members + check_place(facts, finding),
        }
    )
    return rows


def check_job(folder, findings, world_size):
    facts = claims.Facts(rawlogs.Job(folder), world_size)
    result = []
    for finding, depth in flatten(findings):
        for row in check_finding(facts, finding):
            result.append({**row, "kind": finding["kind"], "severity": finding["severity"], "depth": depth})
    return result


def refuted(row):
    return [claim for claim, verdict in row["claims"] if verdict is False]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tlparse")
    parser.add_argument("directories", nargs="+")
    parser.add_argument("--json", dest="json_file")
    parser.add_argument("--unchecked", action="store_true")
    arguments = parser.parse_args()
    everything, counts = [], {"sentences": 0, "known": 0, "refuted": 0, "claims": 0, "true": 0, "not said": 0}
    unchecked, by_kind = {}, {}
    for folder in score.recordings(arguments.directories):
        meta = score.load(folder)
        meta.setdefault("name", os.path.basename(folder))
        answer = score.ask(arguments.tlparse, folder)
        if answer["error"]:
            print(f"{meta['name']}: {answer['error']}")
            continue
        for row in check_job(folder, answer["findings"], meta.get("world_size")):
            row["job"] = meta["name"]
            everything.append(row)
            is_sentence = not row["sentence"].startswith("(ranks and place")
            counts["sentences"] += is_sentence
            counts["known"] += is_sentence and row["known"]
            counts["claims"] += len(row["claims"])
            counts["true"] += sum(verdict is True for _, verdict in row["claims"])
            counts["not said"] += sum(verdict is None for _, verdict in row["claims"])
            wrong = refuted(row)
            if wrong:
                counts["refuted"] += 1
                by_kind.setdefault(row["kind"], []).append(row)
                print(
                    f"{meta['name']} [{row['severity']} {row['kind']}{', evidence' if row['depth'] else ''}]: {row['sentence'][:240]}\n    refuted: {'; '.join(wrong[:4])}"
                )
            if is_sentence and not row["known"]:
                form = re.sub(r"\d+(\.\d+)?", "0", row["sentence"])[:90]
                unchecked.setdefault(form, []).append(row)
    print("\n" + ", ".join(f"{name}: {value}" for name, value in counts.items()))
    print(
        "refuted by kind: "
        + (
            ", ".join(
                f"{kind} {len(rows)}"
                for kind, rows in sorted(by_kind.items(), key=lambda item: -len(item[1]))
            )
            or "none"
        )
    )
    if arguments.unchecked:
        for form, rows in sorted(unchecked.items(), key=lambda item: -len(item[1])):
            print(f"{len(rows):4} × {rows[0]['sentence'][:200]}")
    if arguments.json_file:
        with open(arguments.json_file, "w", encoding="utf-8") as file:
            json.dump({"counts": counts, "rows": everything}, file, indent=1)
    return 1 if counts["refuted"] else 0


if __name__ == "__main__":
    sys.exit(main())
