#!/usr/bin/env python3
"""The decorator around a c10d backend passes on every virtual function of the installed c10d: one that a new libtorch adds fails here.

usage: test_forwarding.py SOURCE_DIRECTORY TORCH_VERSION COMPILER INCLUDE_DIRECTORY…
"""
import pathlib
import re
import subprocess
import sys

SOURCE, VERSION, COMPILER, *INCLUDES = sys.argv[1:]
NAME = "Backend" if int(VERSION.split(".")[0]) >= 2 else "ProcessGroup"


def body(text, head):
    """Of the class whose head ends before its opening brace, without what nested classes declare."""
    start = text.index("{", re.search(head, text).start())
    depth, kept = 0, []
    for character in text[start:]:
        depth -= character == "}"
        if depth == 1:
            kept.append(character)
        depth += character == "{"
        if depth == 0:
            return "".join(kept)
    raise ValueError("no end of the class")


header = next(path for folder in INCLUDES for path in [pathlib.Path(folder) / f"torch/csrc/distributed/c10d/{NAME}.hpp"] if path.exists())
declared = re.sub(r"//[^\n]*|/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
virtual = set(re.findall(r"\bvirtual\s[^;()]*?\b(\w+)\s*\(", body(declared, rf"class TORCH_API {NAME}\b[^;{{]*{{")))
virtual = {name for name in virtual if name != NAME}  # the destructor

flags = [flag for folder in INCLUDES if folder != "/usr/include" for flag in ("-isystem", folder)]
unit = f"{SOURCE}/libtrace/torch/traced_backend.cc"
text = subprocess.run([*COMPILER.split(), "-std=c++20", "-E", "-P", "-DNDEBUG", f"-I{SOURCE}/libtrace", f"-I{SOURCE}/libtrace/include", *flags, unit],
                      check=True, capture_output=True, text=True).stdout
ours = body(text, r"class TracedBackend final[^;{]*{")
passed_on = set(re.findall(r"\b(\w+)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*(?:const\s*)?override", ours))
print(f"{NAME} of {VERSION}: {len(virtual)} virtual functions, not passed on: {sorted(virtual - passed_on)}")
assert len(virtual) >= 20, virtual
assert virtual <= passed_on
