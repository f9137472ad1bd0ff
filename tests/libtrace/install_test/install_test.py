#!/usr/bin/env python3
"""Installs the build, builds a program against it, and looks at its first trace.

usage: install_test.py BUILD_DIRECTORY SOURCE_DIRECTORY [--torch]

The program is the README's, or with --torch the one in tests/libtrace_torch/install_test.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

build, source = sys.argv[1], pathlib.Path(sys.argv[2])


def run(*command, **options):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **options)


def prefix_path():
    """Where the build looked for its packages: libtorch may be that of a wheel."""
    cache = (pathlib.Path(build).parent / "CMakeCache.txt").read_text()
    found = re.search(r"^CMAKE_PREFIX_PATH:\w+=(.*)$", cache, re.M)
    return found[1] if found else ""


def write_readme_program(folder):
    readme = (source / "libtrace/README.md").read_text()
    program = re.search(r"```c\+\+\n(#include <libtrace/compile.h>.*?)```", readme, re.S)[1]
    assert len(program.strip().splitlines()) <= 12, "the README promises a short program"
    (folder / "first_trace.cc").write_text(program)
    shutil.copy(source / "tests/libtrace/install_test/CMakeLists.txt", folder)
    return "first_trace", ('"libtrace_version"', '"dynamo_start"', '"compilation_metrics"', "my_pass")


def copy_torch_program(folder):
    for file in (source / "tests/libtrace_torch/install_test").iterdir():
        shutil.copy(file, folder)
    return "first_model", ('"libtrace_version"', '"dynamo_start"', '"libtrace_torchscript_optimized"',
                           '"inductor_runtime_and_tensor_meta"', "aten::relu")


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    run("cmake", "--install", build, "--prefix", str(folder / "prefix"))
    program, expected = copy_torch_program(folder) if "--torch" in sys.argv else write_readme_program(folder)
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    run("cmake", "-S", name, "-B", str(folder / "build"), *generator, f"-DCMAKE_PREFIX_PATH={folder}/prefix;{prefix_path()}",
        f"-DCMAKE_CXX_FLAGS={os.environ.get('LIBTRACE_TEST_FLAGS', '')}")
    run("cmake", "--build", str(folder / "build"))
    trace = folder / "trace"
    environment = {**os.environ, "TORCH_TRACE": str(trace)}
    run(str(folder / "build" / program), env=environment)
    logs = list(trace.glob("dedicated_log_torch_trace_*.log"))
    assert len(logs) == 1, logs
    text = logs[0].read_text()
    for part in expected:
        assert part in text, f"{part} is not in the trace"
    environment.pop("TORCH_TRACE")
    run(str(folder / "build" / program), env=environment, cwd=name)
print("installed, found, built, traced")
