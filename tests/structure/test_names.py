#!/usr/bin/env python3
"""Names that two source files define: types of one namespace, and what an unnamed namespace holds where
sources are compiled as one."""

import os
import re
import unittest

from test_structure import ROOT, SOURCES, STAGES, below, read


class Names(unittest.TestCase):
    """Two types of one name in one namespace are one type to the linker, which mixes up their functions."""
    OPENS = re.compile(r"^(?:inline )?namespace(?: ([\w:]+))? \{")
    TYPE = re.compile(r"^(?:template <.*> )?(?:struct|class|enum class|enum|union) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?: :[^:].*)?(?: \{.*|)$")

    def types(self, text):
        """The types that a file defines in a namespace with a name, as namespace::Name."""
        spaces = []
        lines = text.splitlines()
        for number, line in enumerate(lines):
            opens = self.OPENS.match(line)
            if opens:
                if not line.rstrip().endswith("}"):
                    spaces.append(opens.group(1))
                continue
            if line.startswith("}") and "namespace" in line and spaces:
                spaces.pop()
                continue
            found = self.TYPE.match(line)
            if found and None not in spaces and ("{" in line or not line.rstrip().endswith(";")):
                head = line if "{" in line else line + " ".join(lines[number + 1:number + 3])
                if "{" in head.split(";")[0]:
                    yield "::".join(filter(None, spaces)) + "::" + found.group(1)

    def test_no_type_is_defined_twice(self):
        places = {}
        for folder in ("tlparse", "libtrace"):
            for path in below(os.path.join(ROOT, folder), ".h", ".cc"):
                for name in self.types(read(path)):
                    places.setdefault(name, set()).add(os.path.relpath(path, ROOT))
        self.assertGreater(len(places), 300)
        # Programs of their own: the generators that run at build time, examples.
        programs = re.compile(r"_main\.cc$|/examples/|/tools/")
        self.assertEqual({}, {name: sorted(paths) for name, paths in places.items()
                              if len([path for path in paths if not programs.search(path)]) > 1})

    def test_it_finds_them(self):
        text = "namespace a {\nstruct One {\n};\nclass Two final : public One {\n};\nstruct Three;\nnamespace {\nstruct Four {\n};\n}  // namespace\n" \
               "enum class Five : int { kA };\n}  // namespace a\nnamespace a::b {\nstruct One {};\n}  // namespace a::b\n"
        self.assertEqual(["a::One", "a::Two", "a::Five", "a::b::One"], list(self.types(text)))


class Unity(unittest.TestCase):
    maxDiff = None

    """Unity builds compile sources of a stage as one, in groups that change with every new file and with the preset.
    So no two sources of a stage define the same name in an unnamed namespace, whether they are in one group today or not,
    and none defines a name of a header that another one may include."""
    TYPE = re.compile(r"^(?:template <.*> )?(?:struct|class|enum class|enum|union) (\w+)(?: final)?(?: :[^:].*)?(?: \{.*)?$")
    ALIAS = re.compile(r"(?m)^using (\w+) =\s*([^;]+);")
    VARIABLE = re.compile(r"^(?:static |inline |thread_local |constinit |constexpr |const )[^(={]*?\b(\w+)(?:\[\w*\])*(?: =|\{|;)|^(?:static |inline )?const\w* [^(={]*?\b(k[A-Z]\w*)\(.*\);")
    FURTHER = re.compile(r", (k[A-Z]\w*)(?: =|\{|\()")  # of a list of constants
    HEADER_CONSTANT = re.compile(r"^(?:inline constexpr|extern const) [^(={]*?\b(\w+)(?:\[\w*\])*(?: =|\{|;)")
    LOCAL_CONSTANT = re.compile(r"^ +(?:static )?(?:constexpr|const) [^(={]*?\b(k[A-Z]\w*)(?:\[\w*\])*(?: =|\{|\()")
    FUNCTION = re.compile(r"^(?!return\b|using\b|namespace\b|static_assert\b|TLPARSE_|#)[\w:<>,&*\[\]\s]*?[\s&*](\w+)\(([^{;]*?)\)(?: const)?(?: noexcept)?\s*\{")

    def parameters(self, text):
        """The types of a list of parameters, without names and default values."""
        types, depth, current = [], 0, ""
        for letter in text + ",":
            depth += {"<": 1, "(": 1, "[": 1, ">": -1, ")": -1, "]": -1}.get(letter, 0)
            if letter == "," and depth == 0:
                types.append(re.sub(r"(?<=[\s&*>])\w+$", "", current.split(" = ")[0].strip()).strip())
                current = ""
            else:
                current += letter
        return tuple(filter(None, types))

    def names(self, text):
        """What a source defines in unnamed namespaces: types and variables by name, functions with their parameters."""
        lines, inside = text.splitlines(), False
        for number, line in enumerate(lines):
            if line == "namespace {":
                inside = True
            elif line == "}  // namespace":
                inside = False
            if not inside or not line or line[0] in " }/#":
                continue
            found = self.TYPE.match(line) or self.VARIABLE.match(line)
            if found:
                if not line.endswith(";") or re.search("[{=(]", line):
                    yield next(filter(None, found.groups()))
                    if line.startswith("const") and " = {" not in line:
                        yield from self.FURTHER.findall(line)
                continue
            head = []  # a head may take several lines; it ends with its brace, a declaration with a semicolon
            for part in lines[number:number + 8]:
                head.append(part.strip())
                if part.endswith((";", "{")) or "{ " in part:
                    break
            found = self.FUNCTION.match(" ".join(head) + ("{" if head[-1].endswith("}") else ""))
            if found:
                yield "%s(%s)" % (found.group(1), ", ".join(self.parameters(found.group(2))))

    @staticmethod
    def sources():
        """The sources that a unity build may put together: (stage or component of the library, path as told)."""
        for path in below(SOURCES, ".cc"):
            name = os.path.relpath(path, SOURCES)
            if not name.endswith("_main.cc"):
                yield name.split(os.sep)[0], name, path
        library = os.path.join(ROOT, "libtrace")
        for path in below(library, ".cc"):
            name = os.path.relpath(path, ROOT)
            component = name.split(os.sep)[1]
            if component != "examples":
                yield "libtrace " + ("cache" if "core/cache/" in name.replace(os.sep, "/") else component), name, path
        tests = os.path.join(ROOT, "tests")
        for path in (path for folder in sorted(os.listdir(tests)) for path in below(os.path.join(tests, folder), "CMakeLists.txt") if os.path.dirname(path) == os.path.join(tests, folder)):
            lists = read(path)
            for target, listed in re.findall(r"tracekit_add_test\((\w+)\s+SOURCES\s+([^)]*)", lists) + re.findall(r"add_executable\((\w+) ([^)]*)", lists):
                for source in re.findall(r"(?<![\w}./])[\w./]+\.cc\b", listed):
                    if source not in re.findall(r"set_source_files_properties\((\S+) PROPERTIES SKIP_UNITY", lists):
                        source = os.path.normpath(os.path.join(os.path.dirname(path), source))
                        yield "test " + target, os.path.relpath(source, ROOT), source

    def test_an_alias_is_of_one_type_in_a_stage(self):
        types = {}
        for stage, name, path in self.sources():
            for alias, type_of in self.ALIAS.findall(read(path)):
                types.setdefault((stage, alias), {}).setdefault(" ".join(type_of.split()), set()).add(name)
        self.assertGreater(len(types), 10)
        self.assertEqual({}, {"%s: %s" % key: sorted(map(sorted, of_alias.values())) for key, of_alias in types.items() if len(of_alias) > 1})
        of_headers = {}
        for path in below(SOURCES, ".h"):
            for name in self.names_of_header(read(path)):
                of_headers.setdefault(name, set()).add(os.path.relpath(path, SOURCES))
        self.assertEqual({}, {"%s: %s" % (stage, alias): sorted(of_headers[alias]) for stage, alias in types
                              if any(self.precedes(header, stage) for header in of_headers.get(alias, ()))})

    def test_sources_of_a_stage_define_each_name_once(self):
        places, found = {}, 0
        for stage, name, path in self.sources():
            for defined in self.names(read(path)):
                places.setdefault((stage, defined), set()).add(name)
                found += 1
        self.assertGreater(found, 1000)
        self.assertEqual({}, {"%s: %s" % key: sorted(paths) for key, paths in places.items() if len(paths) > 1})
        # A function and a type of one name; a name of a header which another source may include; a constant of a function
        # that hides one of another source.
        kinds, of_headers = {}, {}
        for (stage, defined), paths in places.items():
            kinds.setdefault((stage, defined.split("(")[0]), {}).setdefault("(" in defined, set()).update(paths)
        for path in below(SOURCES, ".h"):
            for name in self.names_of_header(read(path)):
                of_headers.setdefault(name, set()).add(os.path.relpath(path, SOURCES))
        self.assertEqual({}, {"%s: %s" % key: sorted(set().union(*of_kind.values())) for key, of_kind in kinds.items() if len(of_kind) > 1})
        self.assertEqual({}, {"%s: %s" % key: sorted(of_headers[key[1]].union(*of_kind.values())) for key, of_kind in kinds.items()
                              if any(self.precedes(header, key[0]) for header in of_headers.get(key[1], ()))})
        hidden = {}
        for path in below(SOURCES, ".cc"):
            name = os.path.relpath(path, SOURCES)
            stage = name.split(os.sep)[0]
            for local in (found.group(1) for found in map(self.LOCAL_CONSTANT.match, read(path).splitlines()) if found):
                others = {header for header in of_headers.get(local, ()) if self.precedes(header, stage)} | places.get((stage, local), set())
                if others:
                    hidden["%s: %s" % (name, local)] = sorted(others)
        self.assertEqual({}, hidden)

    @staticmethod
    def precedes(header, stage):
        return stage in STAGES and STAGES.index(header.split(os.sep)[0]) <= STAGES.index(stage)

    def names_of_header(self, text):
        """The types and constants that a header puts into the namespace of all."""
        for name in Names().types(text):
            if name.count("::") == 1:
                yield name.split("::")[1]
        for line in text.splitlines():
            found = self.HEADER_CONSTANT.match(line)
            if found:
                yield found.group(1)

    def test_it_finds_them(self):
        text = "namespace a {\nint Not();\nnamespace {\nstruct One {\n  int b;\n};\nstruct Two;\nconstexpr int kThree = 3;\nconstexpr seconds kSeven(7), kEight(8);\nint Four(const A& a,\n" \
               "         int b = 2) {\n  return 1;\n}\nint Declared(int a);\nusing Five = int;\nvoid Six() {}\n}  // namespace\nint Out() {\n}\n}\n"
        self.assertEqual(["One", "kThree", "kSeven", "kEight", "Four(const A&, int)", "Six()"], list(self.names(text)))


if __name__ == "__main__":
    unittest.main()
