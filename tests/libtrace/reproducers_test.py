#!/usr/bin/env python3
"""Compiles the programs that once showed a defect, unchanged, runs them, and checks for the defect.

usage: reproducers_test.py BUILD_DIRECTORY SOURCE_DIRECTORY

The programs are next to the repository (../shared/defects/libtrace); without them the test is skipped (77).
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BUILD, SOURCE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
FOLDER = SOURCE.parent / "shared/defects/libtrace"
CCACHE = ["ccache"] if shutil.which("ccache") else []


def libraries():
    found = [next(BUILD.rglob(f"libtorchtrace{name}.a"), None) for name in ("_cache", "_cuda", "")]
    if None in found:
        print("skipped: the libraries are not built as static ones")
        sys.exit(77)
    return [*map(str, found), "-lssl", "-lcrypto", "-lpthread", "-ldl", "-lstdc++"]


def build(source, folder):
    compiler = ["cc", "-std=c99"] if source.suffix == ".c" else ["c++", "-std=c++20"]
    target = folder / source.stem
    subprocess.run([*CCACHE, *compiler, "-w", "-c", str(source), f"-I{SOURCE}/libtrace/include", "-o", f"{target}.o"], check=True)
    subprocess.run(["c++", f"{target}.o", *libraries(), "-o", str(target)], check=True)
    return target


def run(program, folder, *arguments, **variables):
    """Standard output, and the text of the logs that it wrote."""
    trace = pathlib.Path(tempfile.mkdtemp(dir=folder))
    said = subprocess.run([str(program), *arguments], env={**os.environ, "TORCH_TRACE": str(trace), **variables}, check=True,
                          capture_output=True, text=True).stdout
    return said, "".join(log.read_text() for log in sorted(trace.glob("*.log")))


def payloads(text):
    return [json.loads("".join(line[1:] for line in group.splitlines())) for group in
            re.findall(r'\{"chromium_event".*\n((?:\t.*\n)+)', text)]


if not FOLDER.is_dir():
    print(f"skipped: no {FOLDER}")
    sys.exit(77)
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    programs = {stem: build(next(FOLDER.glob(f"{stem}.c*")), folder) for stem in (
        "lazy_start_loss", "many", "compile_that_throws", "chromium_tid", "strict_bypass", "function_ref_plain_function",
        "compile_without_line", "artifact_encoding", "cuda_no_op_without_api_kind")}

    for _ in range(10):
        said, _text = run(programs["lazy_start_loss"], folder)
        assert "emitted 8000, written 8002 " in said, said
    said, _text = run(programs["many"], folder, "16", "1000")
    assert "records 16001 lost 0" in said, said

    _said, text = run(programs["compile_that_throws"], folder)
    ends = re.findall(r'"compilation_metrics": \{.*?"co_name": "(\w+)".*?"fail_type": (null|"[^"]*")', text)
    assert ("throws", '"exception"') in ends and ("a", "null") in ends, ends

    _said, text = run(programs["chromium_tid"], folder)
    events = payloads(text)
    assert len({event["tid"] for event in events}) == 2 and all(event["pid"] > 0 for event in events), events
    open_spans = {}
    for event in events:  # each thread's spans are nested
        spans = open_spans.setdefault(event["tid"], [])
        if event["ph"] == "B":
            spans.append(event["name"])
        else:
            assert spans.pop() == event["name"], events

    shutil.rmtree("/tmp/lt_strict", ignore_errors=True)  # the program keeps its caches there
    said, _text = run(programs["strict_bypass"], folder)
    shutil.rmtree("/tmp/lt_strict", ignore_errors=True)
    assert said.count("ok 0") == 4 and "status.ok 0" in said and "status.ok 1" not in said, said

    run(programs["function_ref_plain_function"], folder)
    _said, text = run(programs["compile_without_line"], folder)
    assert '"line": 0' in text and '"line": null' not in text, text
    _said, text = run(programs["artifact_encoding"], folder, "yaml")
    assert '{"name": "acme_ir", "encoding": "string"}' in text, text

    stand_in = folder / "libcupti_stand_in.so"
    subprocess.run([*CCACHE, "c++", "-std=c++20", "-w", "-fPIC", "-c", str(FOLDER / "cupti_stand_in_faithful.cc"), f"-I{SOURCE}/libtrace",
                    f"-I{SOURCE}/libtrace/include", "-o", f"{stand_in}.o"], check=True)
    driver = folder / "driver.c"
    driver.write_text("int cuInit(unsigned flags) { return 0; }\n")
    subprocess.run(["c++", "-x", "c", "-fPIC", "-shared", str(driver), "-x", "none", f"{stand_in}.o", "-o", str(stand_in)], check=True)
    said, _text = run(programs["cuda_no_op_without_api_kind"], folder, LIBTRACE_CUPTI=str(stand_in))
    assert said == "sgemm op aten::mm node mm_3\n", said
print("every defect is gone")
