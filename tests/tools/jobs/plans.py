"""Which combinations of shape, fault and inputs are recorded (plan.txt): those that make sense."""

import os
import re

import faults

INPUTS = {"l": "logs", "d": "dumps", "p": "profiles", "r": "run"}
HERE = os.path.dirname(os.path.abspath(__file__))


def rows(folders):
    for folder in folders:
        path = os.path.join(folder, "plan.txt")
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"(?m)^#.*\n", "", file.read())
        for row in re.sub(r"\n +", " ", text).strip().split("\n"):
            shape, first, rest = (part.strip() for part in row.split("|"))
            yield shape, first.split(), rest.split()


def combinations(shapes, part, folders=()):
    """(shape, fault, inputs); every shape's first ones before the rest. `folders`: more plans."""
    parts = [[], []]
    for shape, *columns in rows([HERE, *folders]):
        if shape in shapes:
            for wanted, column in zip(parts, columns):
                wanted += [(shape, *one.split(":")) for one in column]
    chosen = {"first": parts[0], "rest": parts[1], "all": parts[0] + parts[1]}[part]
    return [(shape, fault, INPUTS[letter]) for shape, fault, letter in chosen]


def faults_of(shape):
    """Faults for whose points the shape has code."""
    return [one.name for one in faults.FAULTS.values() if set(one.plant) <= shape.points]
