#!/usr/bin/env python3
"""Counts what a structured trace log holds, independently of tlparse.

Prints, per log and in total: records by record key and by artifact name, distinct verified
payloads, and everything that is damaged or foreign. See trace_lines.py for the rules.
"""

import argparse
import collections
import json
import sys

import trace_lines


def count(items):
    """Counts of an iterable of trace_lines.Record and Other."""
    result = {
        "records": 0,
        "kinds": collections.Counter(),        # record key -> records; "" for none or several
        "artifacts": collections.Counter(),    # artifact name -> records; "" for unnamed
        "payload_states": collections.Counter(),
        "payload_claimed_but_absent": 0,
        "lines": collections.Counter(),        # broken_header, foreign, blank, orphan_payload
        "hashes": set(),                       # MD5 of distinct payloads that verified
    }
    for item in items:
        if isinstance(item, trace_lines.Other):
            result["lines"][item.what] += 1
            continue
        result["records"] += 1
        result["kinds"][item.kind or ""] += 1
        if item.kind == "artifact":
            result["artifacts"][item.name or ""] += 1
        state, digest = item.verify()
        result["payload_states"][state] += 1
        if state in ("ok", "cr_removed"):
            result["hashes"].add(digest)
        elif state == "absent" and item.envelope.get("has_payload") is not None:
            result["payload_claimed_but_absent"] += 1
    return result


def merge(results):
    total = count([])
    for result in results:
        for key, value in result.items():
            if isinstance(value, set):
                total[key] |= value
            else:
                total[key] += value
    return total


def plain(result):
    """The counts as JSON-able values, the hashes as their number."""
    return {
        **{key: dict(sorted(value.items())) if isinstance(value, dict) else value
           for key, value in result.items() if key != "hashes"},
        "distinct_verified_payloads": len(result["hashes"]),
    }


def show(title, result):
    print(f"{title}: {result['records']} records, "
          f"{len(result['hashes'])} distinct verified payloads")
    for heading, key in (("record key", "kinds"), ("artifact", "artifacts"),
                         ("payload", "payload_states"), ("other line", "lines")):
        for name, number in sorted(result[key].items()):
            print(f"  {heading:<11} {name or '(none)':<60} {number:>8}")
    if result["payload_claimed_but_absent"]:
        print(f"  {'payload':<11} {'claimed but absent':<60} "
              f"{result['payload_claimed_but_absent']:>8}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="+", metavar="LOG", help="plain, .gz or .zst; - is stdin")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()

    results = {}
    for log in arguments.logs:
        try:
            results[log] = count(trace_lines.read_log(log))
        except OSError as error:
            sys.exit(f"count_records: {error}")
    total = merge(results.values())
    if arguments.json:
        print(json.dumps({"files": {log: plain(result) for log, result in results.items()},
                          "total": plain(total)}, indent=1))
        return
    for log, result in results.items():
        show(log, result)
    if len(results) > 1:
        show("total", total)


if __name__ == "__main__":
    main()
