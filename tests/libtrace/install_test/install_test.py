#!/usr/bin/env python3
"""Installs the build, builds the README's program against it, and looks at its first trace.

usage: install_test.py BUILD_DIRECTORY SOURCE_DIRECTORY
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

build, source = sys.argv[1], pathlib.Path(sys.argv[2])


def run(*command, **options):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **options)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    run("cmake", "--install", build, "--prefix", str(folder / "prefix"))
    readme = (source / "libtrace/README.md").read_text()
    program = re.search(r"```c\+\+\n(#include <libtrace/compile.h>.*?)```", readme, re.S)[1]
    assert len(program.strip().splitlines()) <= 12, "the README promises a short program"
    (folder / "first_trace.cc").write_text(program)
    (folder / "CMakeLists.txt").write_bytes(
        (source / "tests/libtrace/install_test/CMakeLists.txt").read_bytes())
    run("cmake", "-S", name, "-B", str(folder / "build"), f"-DCMAKE_PREFIX_PATH={folder}/prefix",
        f"-DCMAKE_CXX_FLAGS={os.environ.get('LIBTRACE_TEST_FLAGS', '')}")
    run("cmake", "--build", str(folder / "build"))
    trace = folder / "trace"
    environment = {**os.environ, "TORCH_TRACE": str(trace)}
    run(str(folder / "build/first_trace"), env=environment)
    logs = list(trace.glob("dedicated_log_torch_trace_*.log"))
    assert len(logs) == 1, logs
    text = logs[0].read_text()
    for expected in ('"libtrace_version"', '"dynamo_start"', '"compilation_metrics"', "my_pass"):
        assert expected in text, f"{expected} is not in the trace"
    environment.pop("TORCH_TRACE")
    run(str(folder / "build/first_trace"), env=environment, cwd=name)
print("installed, found, built, traced")
