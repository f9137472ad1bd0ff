"""Renders the programs of a shape: names are drawn by a seed, a fault stands at its points.

$name, ${name}   a name or number of names.POOLS, or a value that the fault sets
#: point         a line of its own: here the fault's snippet for that point stands, or nothing
code  #! mark    the place of this line is remembered as `mark`
#~               a line of its own: a few lines that do nothing
#= key: value    a line of the shape's header (shapes.py)
"""

import re
import textwrap

NAME = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
POINT = re.compile(r"^( *)#: (\w+)$")
MARK = re.compile(r"^(.*?) *#! (\w+)$")


def points_of(text):
    return {match[2] for match in map(POINT.match, text.split("\n")) if match}


def fill(text, names):
    return NAME.sub(lambda match: str(names[match[1] or match[2]]), text)


def render(text, names, snippets, file):
    """(text of the program, {mark: [[file, line], ...]}); `snippets`: {point: text}."""
    lines = []
    for line in text.split("\n"):
        point = POINT.match(line)
        if line.startswith("#= "):
            continue
        if line.strip() == "#~":
            lines.extend(names.filler())
        elif point:
            snippet = textwrap.dedent(snippets.get(point[2], "")).strip("\n")
            lines.extend(point[1] + one if one else one for one in snippet.split("\n") if snippet)
        else:
            lines.append(line)
    marks, out = {}, []
    for line in fill("\n".join(lines), names).split("\n"):
        match = MARK.match(line)
        if match:
            marks.setdefault(match[2], []).append([file, len(out) + 1])
            line = match[1]
        out.append(line)
    return "\n".join(out).rstrip("\n") + "\n", marks
