#!/usr/bin/env python3
"""Makes tlparse/src/redact/public_words.txt: what `tlparse redact` leaves as it is, because it is PyTorch's, Python's or tlparse's own.

usage: scripts/public-words.py FOLDER     the installed package torch, e.g. /usr/lib/python3/dist-packages/torch

First the words (letters alone, lower case) that names and texts are made of, then, behind an empty line, whole names of PyTorch's interface:
a user's name that equals one of them stays, any other name of a user is replaced even if it is made of known words."""

import builtins
import collections
import io
import keyword
import os
import re
import sys
import tokenize

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PARTS = ["_dynamo", "_inductor", "_functorch", "fx", "_guards.py", "_logging", "_subclasses", "distributed", "profiler", "export", "nn", "optim", "autograd",
         "_higher_order_ops", "_decomp", "_prims", "_refs", "_export", "_library", "utils/data", "utils/_sympy", "utils/_triton.py", "utils/checkpoint.py", "cuda",
         "amp", "__init__.py", "_tensor.py", "functional.py", "_ops.py", "library.py", "compiler", "serialization.py", "_compile.py", "_C"]
INTERFACE = ["nn/", "optim/", "distributed/__init__", "distributed/distributed_c10d", "distributed/_functional_collectives", "utils/data", "amp/", "autograd/",
             "functional.py", "_inductor/config", "_dynamo/config", "cuda/__init__", "cuda/streams", "_tensor.py", "__init__.py", "utils/checkpoint.py"]
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
SEEN_OFTEN = 5     # of a word: rarer ones may be somebody's name
NAME_OFTEN = 60    # of a name of several words: PyTorch's code speaks of it as of its interface
# What PyTorch calls things in examples and tests, and people do in their programs.
NOT_PUBLIC = {"alice", "bob", "foo", "bar", "baz", "acme"}
OTHERS = ["mb", "kb", "gb", "ms", "us", "ns", "cpu", "gpu", "nccl", "gloo", "ucc", "mpi", "np", "numpy", "dist", "fcol", "optim", "nn", "py", "usr", "lib", "tmp",
          "github", "https", "http", "org", "pytorch", "python", "pickle", "json", "frozen", "runpy", "main", "ac", "cu", "cpp", "ptx", "cubin", "fp", "bf", "str", "cmath", "ivdep", "simdlen", "vjp", "lu", "presets", "cxx", "respecialize",
          "bundling", "unmap", "roundup", "divisions", "awaiting"]


def sources(folder):
    for part in PARTS:
        path = os.path.join(folder, part)
        if path.endswith(".py"):
            yield path
        for directory, _, names in os.walk(path):
            for name in sorted(names):
                if name.endswith((".py", ".pyi")):
                    yield os.path.join(directory, name)


def main():
    folder = sys.argv[1]
    words, names, interface = collections.Counter(), collections.Counter(), set(keyword.kwlist) | set(dir(builtins)) | set(dir(str)) | set(dir(dict)) | set(dir(list))
    for path in sources(folder):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.NAME, tokenize.STRING):
                for name in NAME.findall(token.string):
                    names[name] += 1
                    words.update(word.lower() for word in WORD.findall(name))
        relative = os.path.relpath(path, folder)
        if path.endswith(".pyi") or relative.startswith(tuple(INTERFACE)):
            interface.update(re.findall(r"^ *(?:def|class) (\w+)", text, re.MULTILINE))
            if "config" in relative or path.endswith(".pyi"):
                interface.update(name for name in re.findall(r"^ *(\w+) *[:=]", text, re.MULTILINE) if "_" in name.strip("_"))
    own = set()
    for directory, _, files in os.walk(os.path.join(ROOT, "tlparse", "src")):
        for name in files:
            if name.endswith((".cc", ".h", ".sql")):
                with open(os.path.join(directory, name), encoding="utf-8") as file:
                    for literal in re.findall(r'"((?:[^"\\\n]|\\.)*)"' if not name.endswith(".sql") else r"'([^'\n]*)'", file.read()):
                        own.update(NAME.findall(literal))
    interface |= {name for name, count in names.items() if count >= NAME_OFTEN and "_" in name.strip("_")} | own
    known = {word for word, count in words.items() if count >= SEEN_OFTEN}
    known |= {word.lower() for name in interface for word in WORD.findall(name)} | set(OTHERS)
    known = {word for word in known - NOT_PUBLIC if 2 <= len(word) <= 24}
    interface = {name for name in interface - NOT_PUBLIC if len(name) > 2 and ("_" in name.strip("_") or name.strip("_").isalnum())}
    with open(os.path.join(ROOT, "tlparse", "src", "redact", "public_words.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(sorted(known)) + "\n\n" + "\n".join(sorted({name.strip("_").lower() for name in interface} - {""})) + "\n")


if __name__ == "__main__":
    main()
