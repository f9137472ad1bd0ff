#!/usr/bin/env python3
"""Runs the tests of AOTInductor with a package that PyTorch compiles for them; without PyTorch they are skipped (77).

usage: test_aoti.py TEST_PROGRAM SOURCE_DIRECTORY
"""
import os
import subprocess
import sys
import tempfile

PROGRAM, SOURCE = sys.argv[1:]
if subprocess.run(["python3", "-c", "import torch._inductor"], capture_output=True).returncode != 0:
    print("skipped: PyTorch, which compiles the package, is not installed")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    package = os.path.join(folder, "classifier.pt2")
    compiled = subprocess.run(["python3", os.path.join(SOURCE, "libtrace/examples/aoti_export.py"), package], capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stdout + compiled.stderr
    sys.exit(subprocess.run([PROGRAM, "[.aoti]"], env={**os.environ, "LIBTRACE_TEST_PACKAGE": package, "OMP_NUM_THREADS": "1"}).returncode)
