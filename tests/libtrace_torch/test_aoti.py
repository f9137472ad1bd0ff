#!/usr/bin/env python3
"""Runs the tests of AOTInductor with packages that PyTorch compiles for them; without PyTorch they are skipped (77).

usage: test_aoti.py TEST_PROGRAM SOURCE_DIRECTORY
"""
import os
import subprocess
import sys
import tempfile

PROGRAM, SOURCE = sys.argv[1:]
if subprocess.run(["python3", "-c", "import torch._inductor"], capture_output=True).returncode != 0:
    print("skipped: PyTorch, which compiles the packages, is not installed")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    def compiled(script, name):
        package = os.path.join(folder, name)
        run = subprocess.run(["python3", os.path.join(SOURCE, script), package], capture_output=True, text=True)
        assert run.returncode == 0, run.stdout + run.stderr
        return package

    packages = {"LIBTRACE_TEST_PACKAGE": compiled("libtrace/examples/aoti_export.py", "classifier.pt2"),
                "LIBTRACE_TEST_CUSTOM_OPS": compiled("tests/libtrace_torch/aoti_custom_ops.py", "custom_ops.pt2")}
    # Packages need libtorch.so, which a program of an official build need not have linked.
    where = subprocess.run(["python3", "-c", "import torch; print(torch.__path__[0])"], check=True, capture_output=True, text=True).stdout.strip()
    libraries = os.pathsep.join(filter(None, [os.path.join(where, "lib"), os.environ.get("LD_LIBRARY_PATH")]))
    environment = {**os.environ, **packages, "OMP_NUM_THREADS": "1", "LD_LIBRARY_PATH": libraries}
    sys.exit(subprocess.run([PROGRAM, "[.aoti]"], env=environment).returncode)
