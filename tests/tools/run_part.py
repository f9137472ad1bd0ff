#!/usr/bin/env python3
"""run_part.py FILE PART COUNT: runs every COUNT-th test of a unittest file, beginning with the PART-th (1 is the first).

A long suite becomes several tests of ctest, which run at the same time and each stay within the time that a test may take.
"""

import importlib.util
import os
import sys
import unittest


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def main(file, part, count):
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(file))[0], file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    tests = list(tests_of(unittest.defaultTestLoader.loadTestsFromModule(module)))
    own = tests[part - 1::count]
    if not own:
        print("no test in part %d of %d: %s has %d tests" % (part, count, file, len(tests)))
        return 1
    return 0 if unittest.TextTestRunner().run(unittest.TestSuite(own)).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
