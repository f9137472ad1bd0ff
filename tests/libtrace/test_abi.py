#!/usr/bin/env python3
"""The C API keeps its ABI (libtrace.h): abidiff compares a library with the functions of today's header and one with those of
abi/libtrace_<LIBTRACE_ABI_VERSION>.h. Functions, and members at the end of a struct, may be added; then LIBTRACE_ABI_VERSION grows and its
header is added there.

usage: test_abi.py C_COMPILER [unittest arguments]     exit code 77: abidiff (package abigail-tools) is not installed
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

COMPILER = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = os.path.join(HERE, "..", "..", "libtrace", "include", "libtrace", "libtrace.h")
VERSION = re.compile(r"#define LIBTRACE_ABI_VERSION (\d+)")
# What abidiff says of a struct that has grown at its end; the offsets are bits.
GREW = re.compile(r"type size changed from (\d+) to \d+ \(in bits\)\n\s*(?:\d+ data member insertions?:\n(?:\s*'[^\n]*', at offset (\d+) \(in bits\)[^\n]*\n)+)")


def declarations(text):
    """The statements of a preprocessed header, those of its extern "C" block too."""
    depth = start = 0
    for at, character in enumerate(text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == ";" and depth == 0:
            yield text[start:at].strip()
            start = at + 1


def library(header, folder):
    """A shared library that defines each function of a header."""
    name = os.path.splitext(os.path.basename(header))[0]
    text = subprocess.run([COMPILER, "-E", "-P", header], capture_output=True, text=True, check=True).stdout
    functions = [one for one in declarations(text) if re.match(r"[\w\s*]*?\blibtrace_\w+\s*\(", one) and not one.startswith("typedef")]
    source, out = os.path.join(folder, name + ".c"), os.path.join(folder, f"lib{name}.so")
    with open(source, "w") as file:
        file.write('#include <stdlib.h>\n#include "%s"\n#undef libtrace_options_init\n' % os.path.abspath(header))
        file.writelines(one + " { abort(); }\n" for one in functions)
    subprocess.run([COMPILER, "-g", "-shared", "-fPIC", "-w", source, "-o", out], check=True)
    return out, len(functions)


def breaks(old, new):
    """What abidiff says of a change that a program would not survive; "" if there is none."""
    done = subprocess.run(["abidiff", "--no-added-syms", "--redundant", "--leaf-changes-only", old, new], capture_output=True, text=True)
    said = done.stdout + done.stderr
    if done.returncode == 0:
        return ""
    is_growth = done.returncode == 4 and not re.search(r"data member (changes?|deletions?):|parameter|return type", said)
    return "" if is_growth and all(int(one[2]) >= int(one[1]) for one in GREW.finditer(said)) and GREW.search(said) else said


class Abi(unittest.TestCase):
    def changed(self, text, *replacements):
        for before, after in replacements:
            self.assertIn(before, text)
            text = text.replace(before, after, 1)
        return text

    def compare(self, text):
        """What the header of this version and one of that text differ in."""
        with tempfile.TemporaryDirectory() as folder:
            changed = os.path.join(folder, "changed.h")
            with open(changed, "w") as file:
                file.write(text)
            old, count = library(kept(), folder)
            self.assertGreater(count, 40)
            return breaks(old, library(changed, folder)[0])

    def test_todays_header_breaks_no_program(self):
        with open(HEADER) as file:
            self.assertEqual(self.compare(file.read()), "")

    def test_what_a_program_would_not_survive_is_found(self):
        with open(HEADER) as file:
            text = file.read()
        for before, after in (("  const char* directory; ", "  int64_t more; const char* directory; "), ("int libtrace_start(const libtrace_options* options);", ""),
                              ("void libtrace_stop(void);", "void libtrace_stop(int how);"), ("uint64_t rotate_size_bytes;", "uint32_t rotate_size_bytes;")):
            self.assertNotEqual(self.compare(self.changed(text, (before, after))), "", after)

    def test_what_is_added_breaks_nothing(self):
        with open(HEADER) as file:
            text = file.read()
        added = self.changed(text, ("  void* on_error_user;\n", "  void* on_error_user;\n  int64_t more;\n"),
                             ("void libtrace_stop(void);", "void libtrace_stop(void); void libtrace_more(void);"))
        self.assertEqual(self.compare(added), "")


def kept():
    """The kept header of the version that today's header names."""
    with open(HEADER) as file:
        version = VERSION.search(file.read())[1]
    found = glob.glob(os.path.join(HERE, "abi", f"libtrace_{version}.h"))
    assert found, f"tests/libtrace/abi/libtrace_{version}.h is missing"
    return found[0]


if not shutil.which("abidiff"):
    print("skipped: abidiff (package abigail-tools) is not installed")
    sys.exit(77)
unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
