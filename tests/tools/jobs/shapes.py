"""The shapes of jobs: templates in shapes/ and in other folders, each with a header.

#= about: a sentence
#= worlds: 2 3 4         numbers of ranks to choose from
#= role NAME: all        or ranks, `all but first`, `all but last`, `last`
#= victims: all          ranks that may be at fault; `victims POINT`: where the fault is there
#= group: EXPRESSION     the group of the compiled all_reduce
#= children: a sentence  it has other processes than its ranks
#= launches: 2           it is started twice with one directory; `shrinks: yes`: with one rank less
#= retries: yes          its first launch may fail, its second ends well
#= ranks of a node: 2    each node's logs are in a folder of its own
#= fresh: yes            its ranks are started anew, not forked
#= spawns: yes           its first process starts the ranks
#= file: model_file      what follows is this file; train_file is run
"""

import glob
import os
from dataclasses import dataclass

import template

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shapes")


def ranks_of(text, world):
    everyone = list(range(world))
    named = {
        "all": everyone,
        "all but first": everyone[1:],
        "all but last": everyone[:-1],
        "last": everyone[-1:],
    }
    return named[text] if text in named else [int(one) for one in text.split()]


@dataclass(frozen=True)
class Shape:
    name: str
    about: str
    worlds: tuple
    role_texts: dict  # {name: text}
    options: dict  # children, launches, shrinks, fresh, spawns
    files: dict  # {file key: template}

    @property
    def points(self):
        return set().union(*map(template.points_of, self.files.values()))

    def roles(self, world):
        return {name: ranks_of(text, world) for name, text in self.role_texts.items()}


def load(path):
    name = os.path.basename(path).removesuffix(".tmpl")
    header, roles, files, current = {}, {}, {}, None
    with open(path, encoding="utf-8") as file:
        for line in file.read().split("\n"):
            if not line.startswith("#= "):
                if current:
                    files[current].append(line)
                continue
            key, _, value = line[3:].partition(": ")
            if key == "file":
                current = value
                files[current] = []
            elif key.startswith("role "):
                roles[key[5:]] = value
            else:
                header[key] = value
    options = {key: value for key, value in header.items() if key not in ("about", "worlds")}
    worlds = tuple(map(int, header["worlds"].split()))
    return Shape(
        name, header["about"], worlds, roles, options, {key: "\n".join(lines) for key, lines in files.items()}
    )


def load_all(*folders):
    shapes = [
        load(path)
        for folder in (HERE, *folders)
        for path in sorted(glob.glob(os.path.join(folder, "*.tmpl")))
    ]
    return {shape.name: shape for shape in shapes}
