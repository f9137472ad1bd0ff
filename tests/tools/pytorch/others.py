"""Tables of what the checks beside the recordings saw (fixtures/compatibility, tests/tools/kept.py): for docs/compatibility.md one line each, for the
pages of docs/measurements the whole."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import kept  # noqa: E402


def table(heading, lines):
    def line(cells):
        return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
    return "\n".join([line(heading), "|" + "---|" * len(heading), *map(line, lines)])


def number(version):
    return [int(part) for part in re.findall(r"\d+", version)]


def entries(name):
    """[(key, entry)] by version."""
    found = (kept.read(name) or {}).get("entries", {})
    return sorted(found.items(), key=lambda item: number(item[0]))


def dates(found):
    return ", ".join(sorted({entry["date"] for _, entry in found}))


def libtorch():
    """The table of libtrace-versions.md."""
    return table(["build", "Python", "warnings", "tests passed", "", "run"],
                 [[entry["build"], entry["python"], entry["warnings"], f"{entry['passed']} of {entry['tests']}",
                   "; ".join(filter(None, [entry["broken"] and "failed: " + entry["broken"], entry["skipped"] and "skipped: " + entry["skipped"]])),
                   entry["date"]] for _, entry in reversed(entries("libtorch"))])


def cupti():
    found = kept.read("cupti")
    parts = [f"Run on {found['date']}.", table(["CUDA", "CUPTI's version", "current kernel, copy, peer copy, memset", "our declarations", "functions missing",
                                               "without a driver", "libtrace then says"], found["rows"])]
    return "\n\n".join(parts)


def cupti_layouts():
    order = ["Kernel", "Memcpy", "MemcpyPtoP", "Memset", "ExternalCorrelation"]
    tables = kept.read("cupti")["layouts"]
    return "\n\n".join(table([family, *tables[family]["members"]], tables[family]["rows"]) for family in order)


def clickhouse():
    found = kept.read("clickhouse")
    old, new = found["engines"]
    filled = [row for row in found["tables"] if row[1] or row[2] or not row[3]]
    return "\n\n".join([
        f"Run on {found['date']}: {old} and {new}. Statements that tlparse sent, their distinct texts (numbers and strings left out), and those refused:",
        table(["statement", f"texts, {old}", f"texts, {new}", f"sent, {old}", f"sent, {new}"], found["statements"])
        + f"\n\nRefused by {old}: {len(found['refused'][0])}, by {new}: {len(found['refused'][1])}. Obsolete settings that differ from their defaults: "
          f"{', '.join(found['obsolete settings']) or 'none'}. Warnings of the server: {'; '.join(found['warnings']) or 'none'}.",
        table(["answer", "the same"], [[f"`{name}`", says(same)] for name, same in found["answers"]]),
        table(["table", f"rows, {old}", f"rows, {new}", "the same"], [[*row[:3], says(row[3])] for row in filled])
        + f"\n\n{len(found['tables']) - len(filled)} more tables have the same columns and no rows on both."])


def says(same):
    return "yes" if same else "**no**"


def peers():
    found = kept.read("peers")
    rows = [[profile, row, *values] for profile, sums in found["profiles"].items() for row, values in sums.items()]
    return f"Run on {found['date']}.\n\n" + table(["profile", "", "count", "tlparse", "HTA", "TB"], rows)


def joins():
    found = kept.read("joins")
    return (f"`tests/tools/profile_joins.py`, {found['date']}: `{found['profile']}` of the public profiles, {found['times']} times in a row, "
            f"{found['bytes'] / 1e6:.0f} MB; CPU seconds of one query.\n\n"
            + table(["join", "rows", "one index, of the profile", "with the schema's indexes"],
                    [[name, "–" if count is None else f"{count:,}", *(f"> {found['limit']:.0f}" if value is None else value for value in (before, now))]
                     for name, count, before, now in found["rows"]]))


# Page of docs/measurements: its parts, by the name in the marks.
PAGES = {"libtrace-versions.md": {"libtorch": libtorch}, "cupti-versions.md": {"cupti": cupti, "cupti_layouts": cupti_layouts},
         "clickhouse-versions.md": {"clickhouse": clickhouse}, "profile-peers.md": {"peers": peers}, "profiles.md": {"joins": joins}}
NEEDS = {"libtorch": "libtorch", "cupti": "cupti", "cupti_layouts": "cupti", "clickhouse": "clickhouse", "peers": "peers", "joins": "joins"}


def filled(page, text):
    """The page with its parts as they are kept."""
    for name, made in PAGES[page].items():
        if kept.read(NEEDS[name]) is not None:
            begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
            before, rest = text.split(begin)
            text = f"{before}{begin}\n\n{made()}\n\n{end}{rest.split(end)[1]}"
    return text


def all_or_what(passed, whole, what):
    return f"all {whole:,} {what}" if passed == whole else f"**{passed:,} of {whole:,}** {what}"


def lines():
    """Of the table in compatibility.md: what, against what, what was seen, when, by which program."""
    found = []
    if entries("libtorch"):
        builds = entries("libtorch")
        right = [entry for _, entry in builds if entry["passed"] == entry["tests"]]
        wrong = "".join(f"; with {entry['build']} {entry['passed']} of {entry['tests']}" for _, entry in builds if entry not in right)
        found.append(["libtrace", "official libtorch " + ", ".join(entry["build"] for _, entry in builds),
                      f"builds with {sum(entry['warnings'] for _, entry in builds)} warnings; {all_or_what(len(right), len(builds), 'builds')} pass all of "
                      f"{builds[-1][1]['tests']} tests{wrong}", dates(builds), "`scripts/try-libtorch.sh`"])
    cupti_kept, clickhouse_kept = kept.read("cupti"), kept.read("clickhouse")
    if cupti_kept:
        rows = cupti_kept["rows"]
        found.append(["libtrace", f"CUPTI of CUDA {rows[0][0]} to {rows[-1][0]}",
                      f"layouts of {all_or_what(sum(row[3] == 'the same' for row in rows), len(rows), 'versions')} as declared; without a driver "
                      f"{all_or_what(sum(row[6] == 'no NVIDIA driver' for row in rows), len(rows), 'libraries')} give one line of the status",
                      cupti_kept["date"], "`tests/tools/cupti_versions.py`"])
    if clickhouse_kept:
        refused = sum(len(one) for one in clickhouse_kept["refused"])
        sent = [sum(row[column] for row in clickhouse_kept["statements"]) for column in (3, 4)]
        found.append(["fleet", "ClickHouse " + " and ".join(clickhouse_kept["engines"]),
                      "; ".join([all_or_what(sum(row[3] for row in clickhouse_kept["tables"]), len(clickhouse_kept["tables"]), "tables") + ", "
                                 + all_or_what(sum(row[1] for row in clickhouse_kept["answers"]), len(clickhouse_kept["answers"]), "answers") + " the same",
                                 f"{sent[0]:,} and {sent[1]:,} statements, {refused} refused"]),
                      clickhouse_kept["date"], "`tests/tools/fleet_engines.py`"])
    return found + more_lines()


def more_lines():
    found = []
    if peers_kept := kept.read("peers"):
        sums = [values for of_profile in peers_kept["profiles"].values() for values in of_profile.values()]
        found.append(["sums of profiles", ", ".join(peers_kept["packages"][:2]),
                      f"{all_or_what(len(sums) - peers_kept['differ'], len(sums), 'sums')} of {len(peers_kept['profiles'])} profiles equal an independent count",
                      peers_kept["date"], "`tests/tools/profile_peers.py`"])
    if timelines := kept.read("timelines"):
        seen = timelines["all"]
        found.append(["timelines", f"a strict reader of the format; {seen['inputs']} inputs",
                      f"{seen['slices']:,} slices, {seen['flows']:,} flows, {seen['faults']} faults; each count equals the database's", timelines["date"],
                      "`tests/tools/test_timeline.py`"])
    if joins_kept := kept.read("joins"):
        slowest = max((row[3] if row[3] is not None else joins_kept["limit"]) for row in joins_kept["rows"])
        found.append(["joins of a profile", f"{joins_kept['bytes'] / 1e6:.0f} MB, {len(joins_kept['rows'])} queries",
                      f"the slowest takes {slowest} CPU seconds", joins_kept["date"], "`tests/tools/profile_joins.py`"])
    for key, entry in entries("names"):
        newest = "the newest" if entry["newest"] == key.split()[1] else f"the newest is {entry['newest']}"
        found.append(["names in the sources", f"{key}, {newest}", f"{entry['unknown']} of {entry['names']} not declared", entry["date"],
                      "`scripts/new-names.sh`"])
    for key, entry in entries("wheel"):
        found.append(["wheel", f"auditwheel {entry['auditwheel']}", f"`{key}`: {entry['says']}", entry["date"], "`scripts/try-pythons.sh`"])
    return found


def summary():
    rows = lines()
    return table(["of tlparse", "against", "seen", "run", "by"], rows) if rows else ""
