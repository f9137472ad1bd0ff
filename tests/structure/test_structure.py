#!/usr/bin/env python3
"""Rules of the source tree: the direction of includes, headers that compile alone, lengths, a
schema that describes its columns, no paths of one machine, three files for every artifact family.

usage: test_structure.py [--compiler CXX]     without a compiler the headers are not compiled
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCES = os.path.join(ROOT, "tlparse", "src")
SQL = os.path.join(ROOT, "schemas", "sql")
GENERATED = {"rows": "store", "enums": "base", "queries": "store"}  # folders of the build tree, by the first stage that may use them
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"/]+)/', re.MULTILINE)
INCLUDED = re.compile(r'^#include [<"]([^>"]+)[>"]', re.MULTILINE)
COMPILER = None


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def drawn(folder):
    """The order of a folder's folders, as CONTRIBUTING.md draws it."""
    return re.search(r"(?m)^%s: (.*)$" % re.escape(folder), read(os.path.join(ROOT, "CONTRIBUTING.md"))).group(1).split(" ← ")


STAGES = drawn("tlparse/src")


def below(folder, *endings):
    for directory, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.join(directory, name)


def compile_headers(headers, flags):
    """What the compiler complains of: of each header in a unit of its own, so that what another one brings in cannot help
    (in the long form, TRACEKIT_LONG), else of all in one unit, the last first."""
    groups = [[header] for header in headers] if os.environ.get("TRACEKIT_LONG") else [headers[::-1]]
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        unit = os.path.join(folder, "headers.cc")
        for group in groups:
            with open(unit, "w", encoding="utf-8") as file:
                file.writelines('#include "%s"\n' % header for header in group)
            done = subprocess.run(COMPILER + flags + ["-fsyntax-only", unit], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                failures.append("%s\n%s" % (group[0], done.stderr[:1000]))
    return "\n".join(failures)


class Format(unittest.TestCase):
    def test_sources_are_as_clang_format_leaves_them(self):
        # Versions disagree about details; Debian 12's is the one that counts.
        program = shutil.which("clang-format-14") or shutil.which("clang-format")
        if program is None:
            self.skipTest("no clang-format")
        version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        if " 14." not in version:
            self.skipTest("clang-format 14 is wanted, here is " + version.strip())
        sources = [path for folder in ("libtrace", "tlparse", "tests")
                   for path in below(os.path.join(ROOT, folder), ".h", ".cc")]
        done = subprocess.run([program, "--dry-run", "-Werror", *sources], capture_output=True, text=True, check=False)
        wrong = sorted({line.split(":")[0] for line in done.stderr.splitlines() if "[-Wclang-format" in line})
        self.assertEqual([], [os.path.relpath(path, ROOT) for path in wrong], "run clang-format -i on these")

    # A literal that ends behind such a word and continues in the next line.
    TORN = re.compile(r'[ "(](?:FROM|JOIN|LEFT|WHERE|GROUP|ORDER|BY|ON|AS|IS|NOT|IN|THEN|AND|OR|UNION|INTO|BETWEEN|LIKE|=|<|>|\|\|) "\n\s*"')

    def test_queries_are_divided_before_a_clause(self):
        torn = ["%s:%d" % (os.path.relpath(path, ROOT), text.count("\n", 0, found.end()))
                for path in below(SOURCES, ".h", ".cc") for text in [read(path)] for found in self.TORN.finditer(text)]
        self.assertEqual([], torn, "SQL in C++ is read by its clauses: begin a line with the word")

    def test_it_finds_them(self):
        self.assertTrue(self.TORN.search('"SELECT id FROM "\n    "record"'))
        self.assertFalse(self.TORN.search('"SELECT id "\n    "FROM record WHERE id = "\n    + id'))


class Stages(unittest.TestCase):
    def test_a_stage_includes_itself_and_those_before_it(self):
        self.assertEqual(sorted(STAGES), sorted(os.listdir(SOURCES)), "a folder without a place in the order")
        wrong = []
        for path in below(SOURCES, ".h", ".cc"):
            name = os.path.relpath(path, SOURCES)
            stage = STAGES.index(name.split(os.sep)[0])
            for included in INCLUDE.findall(read(path)):
                included = GENERATED.get(included, included)
                if included not in STAGES or STAGES.index(included) > stage:
                    wrong.append("%s includes %s/" % (name, included))
        self.assertEqual([], wrong)

    def test_a_floor_of_facts_includes_those_below_it(self):
        floors = drawn("facts")
        facts = os.path.join(SOURCES, "facts")
        self.assertEqual(sorted(floors), sorted(name for name in os.listdir(facts) if os.path.isdir(os.path.join(facts, name))))
        wrong = []
        for path in below(facts, ".h", ".cc"):
            floor = os.path.relpath(path, facts).split(os.sep)[0]
            for included in re.findall(r'#include "facts/(\w+)/', read(path)):
                if floor in floors and floors.index(included) > floors.index(floor):
                    wrong.append("%s includes facts/%s/" % (os.path.relpath(path, SOURCES), included))
        self.assertEqual([], wrong)

    def test_headers_are_included_once(self):
        for path in below(SOURCES, ".h"):
            self.assertIn("#pragma once", read(path), path)

    def test_what_uses_join_includes_it(self):
        # Debian 12's fmt declares fmt::join in <fmt/format.h>, newer ones in <fmt/ranges.h> alone.
        self.assertEqual([], [os.path.relpath(path, ROOT) for folder in ("tlparse", "libtrace", "tests")
                              for path in below(os.path.join(ROOT, folder), ".h", ".cc")
                              if "fmt::join" in read(path) and "<fmt/ranges.h>" not in read(path)])

    def test_every_header_compiles_alone(self):
        if COMPILER is None:
            self.skipTest("no compiler was named")
        # A source file that begins with its own header is the proof for that one.
        headers = []
        for path in below(SOURCES, ".h"):
            source = path[:-len(".h")] + ".cc"
            first = INCLUDED.search(read(source)) if os.path.exists(source) else None
            if not first or first.group(1) != os.path.relpath(path, SOURCES):
                headers.append(os.path.relpath(path, SOURCES))
        self.assertEqual("", compile_headers(headers, ["-std=c++20", "-I" + SOURCES]))


class Libtrace(unittest.TestCase):
    """The library stands alone: it knows nothing of tlparse, and its headers compile by themselves."""
    FOLDER = os.path.join(ROOT, "libtrace")

    def test_it_includes_nothing_of_the_reader(self):
        self.assertEqual([], ["%s includes %s/" % (os.path.relpath(path, ROOT), included)
                              for path in below(self.FOLDER, ".h", ".cc") for included in INCLUDE.findall(read(path))
                              if included in STAGES or included == "tlparse"])

    def test_headers_are_included_once(self):
        for path in below(self.FOLDER, ".h"):
            self.assertRegex(read(path), r"(?m)^(#pragma once|#ifndef \w+\n#define \w+)$", path)

    def test_every_public_header_compiles_alone(self):
        if COMPILER is None:
            self.skipTest("no compiler was named")
        include = os.path.join(self.FOLDER, "include")
        headers = [os.path.relpath(path, include) for path in below(include, ".h")
                   if "torch/" not in read(path) and "/torch" not in path and "ATen/" not in read(path) and "spdlog/" not in read(path)]
        self.assertGreater(len(headers), 5)
        self.assertEqual("", compile_headers(headers, ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I" + include]))

    def test_what_every_function_costs_is_measured(self):
        # Not these: they switch tracing, do the same with it on or off, or are called with it on only.
        others = {"libtrace_abi_version", "libtrace_version", "libtrace_options_init", "libtrace_options_init_sized", "libtrace_start",
                  "libtrace_stop", "libtrace_component_line", "EmitRecord"}
        measured = read(os.path.join(ROOT, "tests", "bench", "libtrace_off_bench.cc"))
        header = read(os.path.join(self.FOLDER, "include", "libtrace", "libtrace.h"))
        declared = set(re.findall(r"(?m)^[a-z][\w* ]*\b(libtrace_\w+)\(", header))
        self.assertGreater(len(declared), 40)
        emitting = {name for path in below(os.path.join(self.FOLDER, "include"), ".h")
                    for name in re.findall(r"(?m)^(?:void|bool) (Emit\w*)\(", read(path))}
        self.assertGreater(len(emitting), 15)
        self.assertEqual([], sorted(name for name in (declared | emitting) - others if not re.search(r"\b%s\(" % name, measured)))


class Families(unittest.TestCase):
    def test_every_family_has_its_three_files(self):
        def stems(*parts, ending):
            folder = os.path.join(ROOT, *parts)
            return {name[:-len(ending)] for name in os.listdir(folder) if name.endswith(ending)}
        code = stems("tlparse", "src", "artifacts", ending=".cc")
        self.assertTrue(code)
        self.assertEqual(code, stems("schemas", "sql", "artifacts", ending=".sql"))
        self.assertEqual(set(), code - stems("fixtures", "artifacts", ending=".test"))


    def check_keys(self, *sources):
        cmake = shutil.which("cmake")
        if cmake is None:
            self.skipTest("no cmake")
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for number, text in enumerate(sources):
                paths.append(os.path.join(folder, "family_%d.cc" % number))
                with open(paths[-1], "w", encoding="utf-8") as file:
                    file.write(text)
            return subprocess.run([cmake, "-DSOURCES=" + ";".join(paths), "-P",
                                   os.path.join(ROOT, "tlparse", "cmake", "ArtifactKeys.cmake")], capture_output=True, text=True)

    def test_a_key_claimed_twice_is_a_configure_error(self):
        one = 'const char* kOther = "artifact/two";\nTLPARSE_ARTIFACT(one, One, "artifact/one",\n                 StandsAlone("kind"), "*_x")\n'
        done = self.check_keys(one, '\nTLPARSE_ARTIFACT(two, Two, "artifact/two", "artifact/kind")\n')
        self.assertEqual(done.returncode, 0, done.stderr)
        for other in ('"artifact/two", OpensStretch("kind")', '"*_x"', '"artifact/two", "artifact/two"'):
            done = self.check_keys(one, "\nTLPARSE_ARTIFACT(two, Two, %s)\n" % other)
            self.assertNotEqual(done.returncode, 0, other)
            self.assertIn("is claimed by", " ".join(done.stderr.split()))
        self.assertNotEqual(self.check_keys("// no keys\n").returncode, 0)


class Schema(unittest.TestCase):
    maxDiff = None

    # Names that say what they hold: keys, the members of the format itself, and units at the end.
    OBVIOUS = re.compile(r"^(id|ordinal|name|rank|pid|line|attempt|message|function|text|dtype|is_wait|"
                         r"subgraph_name|\w+_(id|us|ns|bytes|line|offset|ordinal|node|count))$")
    COLUMN = re.compile(r"^\s+(\w+)\s+(?:INTEGER|TEXT|REAL|BLOB|ANY)\b")

    def columns(self):
        """(file, table, column, whether a comment explains it) of every table: one beside it, one
        on the line above, the one above the table, if it names the column, or that of a lookup table."""
        for path in below(SQL, ".sql"):
            table, above, intro = None, False, ""
            for line in read(path).splitlines():
                begins = re.match(r"CREATE TABLE (\w+)", line)
                if begins:
                    table, above = begins.group(1), False
                    continue
                if table is None:
                    intro = intro + line if line.startswith("--") else ""
                    continue
                if line.startswith(")"):
                    table, intro = None, ""
                    continue
                column = self.COLUMN.match(line)
                if column:
                    yield os.path.relpath(path, ROOT), table, column.group(1), \
                        above or "--" in line or re.search(r"REFERENCES \w+(?<!_row)\(", line) or re.search(r"\b%s\b" % column.group(1), intro)
                above = line.strip().startswith("--")

    def test_every_column_says_what_it_holds(self):
        columns = list(self.columns())
        self.assertGreater(len(columns), 100)
        silent = ["%s: %s.%s" % (path, table, column) for path, table, column, is_explained in columns
                  if not is_explained and not self.OBVIOUS.match(column)]
        self.assertEqual([], silent)

    def test_names_say_what_is_storage(self):
        # A table whose name ends in _row is storage and may change. Everything else is a public name: a row of the
        # first table of schemas/README.md or of its table of views.
        named = {name for line in read(os.path.join(ROOT, "schemas", "README.md")).splitlines() if line.startswith("| `")
                 for name in re.findall(r"`(\w+)`", line.split("|")[1])}
        self.assertGreater(len(named), 50)
        made = {name for path in below(SQL, ".sql") for name in re.findall(r"^CREATE (?:TABLE|VIEW) (\w+)", read(path), re.MULTILINE)}
        self.assertEqual([], sorted(name for name in made - named if not name.endswith("_row")), "neither storage nor documented")
        self.assertEqual([], sorted(name for name in named if name.endswith("_row")), "storage, documented as public")
        self.assertEqual([], sorted(named - made), "documented, but not there")

    def test_tables_are_strict(self):
        for path in below(SQL, ".sql"):
            text = re.sub(r"--.*", "", read(path))
            for statement in re.findall(r"^CREATE TABLE [^;]*;", text, re.MULTILINE):
                self.assertRegex(statement, r"\)\s*(WITHOUT ROWID, *)?STRICT(, *WITHOUT ROWID)?;$", path)


class Lengths(unittest.TestCase):
    MOST_LINES = 400
    MOST_FUNCTION_LINES = 60
    # Above the limits. What is no longer too long has to leave these lists.
    LONG_FILES = ()
    LONG_FUNCTIONS = ()

    @staticmethod
    def functions(path):
        """Functions of a formatted source as (name of the first line, lines): a body ends at the brace of its column."""
        lines = read(path).split("\n")
        for indent in ("", "  "):
            start = None
            for number, line in enumerate(lines):
                if start is not None and line == indent + "}":
                    yield lines[start].strip(), number - start + 1
                    start = None
                elif start is None and line.endswith("{") and re.match(indent + r"\S", line) and "(" in line + lines[number - 1] \
                        and not re.match(r"\s*(namespace|class|struct|enum|union|extern|if|for|while|switch|\})\b", line):
                    start = number
                elif line.startswith(indent + "}"):
                    start = None

    def test_files_are_short_enough_to_read(self):
        long_files = [os.path.relpath(path, ROOT) for folder in ("tlparse", "libtrace", "viewer/src", "tests", "schemas/sql")
                      for path in below(os.path.join(ROOT, folder), ".h", ".cc", ".ts", ".tsx", ".py", ".sql", ".css")
                      if read(path).count("\n") > self.MOST_LINES]
        self.assertEqual(sorted(self.LONG_FILES), sorted(long_files))

    def test_functions_fit_on_a_screen(self):
        long_functions = [(os.path.relpath(path, ROOT), name) for folder in ("tlparse/src", "libtrace")
                          for path in below(os.path.join(ROOT, folder), ".h", ".cc")
                          for name, lines in self.functions(path) if lines > self.MOST_FUNCTION_LINES]
        self.assertEqual(sorted(self.LONG_FUNCTIONS), sorted(long_functions))

    def test_it_finds_them(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "long.cc")
            with open(path, "w", encoding="utf-8") as file:
                file.write("int F(int a) {\n" + "  a += 1;\n" * 58 + "  return a;\n}\n\nclass C {\n  int G() {\n" + "    H();\n" * 3 + "  }\n};\n")
            self.assertEqual([("int F(int a) {", 61), ("int G() {", 5)], list(self.functions(path)))


class Suites(unittest.TestCase):
    def test_every_suite_is_run(self):
        for path in below(os.path.join(ROOT, "tests"), ".py", ".mjs"):
            match = re.fullmatch(r"test_(\w+)\.py|(\w+)\.test\.mjs", os.path.basename(path))
            lists = os.path.join(os.path.dirname(path), "CMakeLists.txt")
            if match and os.path.isfile(lists):
                self.assertRegex(read(lists), rf"(?<!\w)(test_)?{match[1] or match[2]}(?!\w)", f"no test runs {os.path.relpath(path, ROOT)}")


class Tree(unittest.TestCase):
    # Recorded logs hold the paths of where they were recorded.
    RECORDED = ("fixtures/", "tests/fuzz/corpus/", "tests/report/expected/")
    # Where these were written, and where packages come from; /home/u is everybody's example.
    PLACES = re.compile(r"/" r"work/(?!dir)|/home/(?!u/)|/root/|registry\.npm|pypi\.org|deb\.debian\.org|"
                        r"download\.pytorch\.org")

    def test_no_place_of_one_machine_is_named(self):
        if shutil.which("git") is None:
            self.skipTest("no git to list the files with")
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True)
        if listed.returncode != 0:
            self.skipTest("not a git checkout")
        found = []
        for name in listed.stdout.decode().split("\0"):
            path = os.path.join(ROOT, name)
            if not name or name.startswith(self.RECORDED) or not os.path.isfile(path):
                continue
            if os.path.abspath(path) == os.path.abspath(__file__):
                continue
            with open(path, "rb") as file:
                data = file.read()
            if b"\0" in data[:8000]:
                continue
            for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
                if self.PLACES.search(line):
                    found.append("%s:%d: %s" % (name, number, line.strip()[:120]))
        self.assertEqual([], found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", help="a C++ compiler with its flags, one argument")
    arguments, rest = parser.parse_known_args()
    if arguments.compiler:
        COMPILER = shlex.split(arguments.compiler)
    program = unittest.main(argv=[sys.argv[0]] + rest, exit=False)
    for test, reason in program.result.skipped:
        print("skipped: %s: %s" % (test, reason))
    # 77: ctest reports the test as skipped.
    sys.exit(1 if not program.result.wasSuccessful() else 77 if program.result.skipped else 0)
