#!/usr/bin/env python3
"""Lists what the source of a wheel can write and tlparse has no declaration of.

usage: new_names.py FOLDER [NAMES.json]      the unpacked wheel, or the folder of a package (site-packages/torch)

Prints a line for each name: its kind, the name ('*' stands for what the source computes), file and line; then the places where a name
cannot be told from the source. Exit code 1 if there is any name. NAMES.json gets all names that the source can write, by kind.
"""
import fnmatch
import glob
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import emitters  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
LISTS = {"phase": "kPhases", "component": "kComponents", "metric": "kMetrics"}


def source(*parts):
    with open(os.path.join(ROOT, "tlparse", "src", *parts)) as file:
        return re.sub(r"^\s*//.*$|'\\?\"'", "", file.read(), flags=re.M)


def declared():
    """{kind: patterns} of tlparse: TLPARSE_ARTIFACT of the artifact families, pytorch_names.cc, the sources that read recorder dumps."""
    known = {"artifact": set(), "record": set()}
    for path in glob.glob(os.path.join(ROOT, "tlparse", "src", "artifacts", "*.cc")):
        text = source("artifacts", os.path.basename(path))
        for block in re.findall(r"TLPARSE_ARTIFACT\((.*?)\)\n\n", text, flags=re.S):
            for key in STRING.findall(block):
                kind, name = ("artifact", key.removeprefix("artifact/")) if key.startswith("artifact/") else ("record", key)
                known[kind].add(name)
    names = source("log", "pytorch_names.cc")
    for kind, variable in LISTS.items():
        block = names[names.index(f"{variable}[] = {{"):]
        known[kind] = set(re.findall(r'\{"([^"]+)"', block[:block.index("};")]))
    # The reader keeps the members of a dump whatever their names are; recognize.cc knows dumps by them.
    known["recorder"] = set(STRING.findall(source("inputs", "recorder", "reader.cc") + source("inputs", "recognize.cc")))
    return known


def is_known(name, patterns):
    """Whether a declaration matches. A name that the source computes is a pattern itself: known if it is declared, or covers a declared name."""
    def covers(pattern, other):
        return pattern == other or fnmatch.fnmatchcase(other, pattern.replace("[", "[[]"))
    return any(covers(pattern, name) or "*" in name and covers(name, pattern) for pattern in patterns)


def main():
    if len(sys.argv) not in (2, 3) or not os.path.isdir(sys.argv[1]):
        sys.exit(__doc__)
    found, computed = emitters.find(sys.argv[1])
    if len(sys.argv) == 3:
        with open(sys.argv[2], "w") as file:
            json.dump({kind: sorted({name for other, name, _, _ in found if other == kind}) for kind in sorted({one[0] for one in found})}, file,
                      indent=1)
            file.write("\n")
    known = declared()
    places = {}
    for kind, name, path, line in found:
        if not is_known(name, known[kind]):
            places.setdefault((kind, name), []).append(f"{path}:{line}")
    for (kind, name), where in sorted(places.items()):
        print(f"{kind:10} {name:60} {', '.join(where[:3])}{' …' if len(where) > 3 else ''}")
    for kind, path, line in computed:
        print(f"{kind:10} {'(computed)':60} {path}:{line}")
    counts = {kind: len({name for other, name, _, _ in found if other == kind}) for kind in known}
    print(f"{len(places)} names are not declared, of " + ", ".join(f"{count} {kind}" for kind, count in counts.items()), file=sys.stderr)
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main())
