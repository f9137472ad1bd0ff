#!/usr/bin/env python3
"""Holds libtrace's declarations of CUPTI against the headers and the library of each CUDA version that PyPI has.

usage: cupti_versions.py [--folder DIR] [--test PROGRAM] [--keep] [VERSION …]      VERSION: 11.8, 12.1 … 13.5; default: all below

For each version it compiles libtrace/cuda/cupti_layout.cc with the headers of its package, prints where each record has the members that
libtrace reads, and opens libcupti.so without a driver: its version, the functions that libtrace calls, and what it says.
With --test build/bin/libtrace_cuda_test the same library is given to libtrace, which must say that there is no driver.
Prints a line for each; --keep writes fixtures/compatibility/cupti.json and the tables of docs/measurements/cupti-versions.md.
Needs pip and PyPI, g++, 100 MB a version; --folder keeps the packages. Exit code 1: a layout differs, or libtrace says something else.
"""
import argparse
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import zipfile

import kept

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Version of CUDA: package of CUPTI, its version, package of the runtime (it has cuda.h), its version.
PACKAGES = {
    "11.7": ("nvidia-cuda-cupti-cu11", "11.7.101", "nvidia-cuda-runtime-cu11", "11.8.89"),
    "11.8": ("nvidia-cuda-cupti-cu11", "11.8.87", "nvidia-cuda-runtime-cu11", "11.8.89"),
    "12.0": ("nvidia-cuda-cupti-cu12", "12.0.146", "nvidia-cuda-runtime-cu12", "12.9.79"),
    "12.1": ("nvidia-cuda-cupti-cu12", "12.1.105", "nvidia-cuda-runtime-cu12", "12.9.79"),
    "12.2": ("nvidia-cuda-cupti-cu12", "12.2.142", "nvidia-cuda-runtime-cu12", "12.9.79"),
    "12.3": ("nvidia-cuda-cupti-cu12", "12.3.101", "nvidia-cuda-runtime-cu12", "12.9.79"),
    "12.4": ("nvidia-cuda-cupti-cu12", "12.4.127", "nvidia-cuda-runtime-cu12", "12.9.79"),
    "12.5": ("nvidia-cuda-cupti-cu12", "12.5.82", "nvidia-cuda-runtime-cu12", "12.9.79"),
    "12.6": ("nvidia-cuda-cupti-cu12", "12.6.80", "nvidia-cuda-runtime-cu12", "12.9.79"),
    "12.8": ("nvidia-cuda-cupti-cu12", "12.8.90", "nvidia-cuda-runtime-cu12", "12.9.79"),
    "12.9": ("nvidia-cuda-cupti-cu12", "12.9.79", "nvidia-cuda-runtime-cu12", "12.9.79"),
    "13.0": ("nvidia-cuda-cupti", "13.0.85", "nvidia-cuda-runtime", "13.5.37"),
    "13.1": ("nvidia-cuda-cupti", "13.1.115", "nvidia-cuda-runtime", "13.5.37"),
    "13.2": ("nvidia-cuda-cupti", "13.2.86", "nvidia-cuda-runtime", "13.5.37"),
    "13.3": ("nvidia-cuda-cupti", "13.3.75", "nvidia-cuda-runtime", "13.5.37"),
    "13.4": ("nvidia-cuda-cupti", "13.4.92", "nvidia-cuda-runtime", "13.5.37"),
    "13.5": ("nvidia-cuda-cupti", "13.5.25", "nvidia-cuda-runtime", "13.5.37"),
}
# Headers that cuda.h's neighbours include; one version serves all.
COMMON = ("nvidia-cuda-crt", "13.5.37")
# The members that libtrace reads of each family of records (libtrace/cuda/cupti.h).
MEMBERS = {
    "Kernel": ["start", "end", "completed", "deviceId", "contextId", "streamId", "correlationId", "name", "graphNodeId", "graphId"],
    "Memcpy": ["copyKind", "bytes", "start", "end", "deviceId", "contextId", "streamId", "correlationId", "graphNodeId", "graphId"],
    "MemcpyPtoP": ["copyKind", "bytes", "start", "end", "deviceId", "contextId", "streamId", "srcDeviceId", "dstDeviceId", "correlationId",
                   "graphNodeId", "graphId"],
    "Memset": ["bytes", "start", "end", "deviceId", "contextId", "streamId", "correlationId", "graphNodeId", "graphId"],
    "ExternalCorrelation": ["externalKind", "externalId", "correlationId"],
}
FUNCTIONS = re.compile(r'Find(?:Optional)?\(handle, "(cupti\w+)"')
CONCURRENT_KERNEL = 10


def fetch(package, version, folder):
    """The unpacked wheel."""
    target = os.path.join(folder, f"{package}-{version}")
    if not os.path.isdir(target):
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-cache-dir", "--only-binary", ":all:", "-d", scratch,
                            f"{package}=={version}"], check=True)
            with zipfile.ZipFile(glob.glob(os.path.join(scratch, "*.whl"))[0]) as wheel:
                wheel.extractall(target)
    return target


def folder_of(name, *places):
    for place in places:
        for path in glob.glob(os.path.join(place, "**", name), recursive=True):
            return os.path.dirname(path)
    sys.exit(f"cupti_versions: no {name} in {', '.join(places)}")


def families(include):
    """{family: its records in this version's headers, by their number}."""
    text = ""
    for path in glob.glob(os.path.join(include, "cupti_activity*.h")):
        with open(path) as file:
            text += file.read()
    found = {}
    for family in MEMBERS:
        numbers = {int(number or 1) for number in re.findall(rf"\}} ?(?:CUpti_Activity{family})(\d*);", text)}
        found[family] = sorted(numbers)
    return found


def probe_source(found):
    """Prints, for each record, its size and the offset of each member; of a member that it lacks -1."""
    lines = ["#include <cupti.h>", "#include <cstddef>", "#include <cstdio>"]
    members = sorted({member for names in MEMBERS.values() for member in names})
    for member in members:
        lines.append(f"template <class T> constexpr auto At_{member}(int) -> decltype(sizeof(T::{member}), 0L) "
                     f"{{ return offsetof(T, {member}); }}\ntemplate <class T> constexpr long At_{member}(long) {{ return -1; }}")
    lines.append("int main() {\n  printf(\"version %u\\n\", (unsigned)CUPTI_API_VERSION);")
    for family, numbers in found.items():
        for number in numbers:
            record = f"CUpti_Activity{family}{'' if number == 1 else number}"
            lines.append(f'  printf("{family} {number} %zu", sizeof({record}));')
            lines += [f'  printf(" %ld", (long)At_{member}<{record}>(0));' for member in MEMBERS[family]]
            lines.append('  printf("\\n");')
    return "\n".join([*lines, "}", ""])


def system(includes):
    return [argument for include in includes for argument in ("-isystem", include)]


def layouts(includes, scratch):
    """(version of the headers, {(family, number): (size, offsets)})."""
    source, program = os.path.join(scratch, "probe.cc"), os.path.join(scratch, "probe")
    with open(source, "w") as file:
        file.write(probe_source(families(includes[0])))
    subprocess.run(["g++", "-std=c++20", "-w", *system(includes), source, "-o", program], check=True)
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    records = {}
    for line in lines[1:]:
        family, number, size, *offsets = line.split()
        records[family, int(number)] = (int(size), [int(offset) for offset in offsets])
    return int(lines[0].split()[1]), records


def check_declarations(includes):
    """Compiles cupti_layout.cc, whose static_asserts compare; returns the first that fails, or nothing."""
    done = subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-I", os.path.join(ROOT, "libtrace"), "-I", os.path.join(ROOT, "libtrace", "include"),
                           *system(includes), os.path.join(ROOT, "libtrace", "cuda", "cupti_layout.cc")],
                          capture_output=True, text=True)
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    return "" if done.returncode == 0 else errors[0]


def functions():
    with open(os.path.join(ROOT, "libtrace", "cuda", "cupti.cc")) as file:
        return FUNCTIONS.findall(file.read())


def open_library(path):
    """What the library says without a driver, in a process of its own: it may take the process down."""
    code = f"""
import ctypes, json
library = ctypes.CDLL({path!r})
print(json.dumps([name for name in {functions()!r} if not hasattr(library, name)]), flush=True)
version = ctypes.c_uint32()
text = ctypes.c_char_p()
library.cuptiGetVersion(ctypes.byref(version))
result = library.cuptiActivityEnable({CONCURRENT_KERNEL})
library.cuptiGetResultString(result, ctypes.byref(text))
print(json.dumps([version.value, result, text.value.decode() if text.value else "no text"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode < 0:
        return None, lines[0], f"opens; any call ends the process ({signal.Signals(-done.returncode).name})"
    version, result, text = lines[1]
    return version, lines[0], f"{result}: {text}"


def say_in_libtrace(program, path):
    """What CudaActivity says with this library: its own test compares."""
    done = subprocess.run([program, "[.driverless]"], capture_output=True, text=True, env={**os.environ, "LIBTRACE_CUPTI": path})
    return {0: "no NVIDIA driver", 77: "skipped, there is a driver"}.get(done.returncode, f"FAILED, {done.returncode}")


def distinct(records):
    """{family: [(first number, last number, offsets)]}: neighbours with the same places share one."""
    result = {}
    for (family, number), (_, offsets) in sorted(records.items()):
        runs = result.setdefault(family, [])
        if runs and runs[-1][2] == offsets:
            runs[-1][1] = number
        else:
            runs.append([number, number, offsets])
    return result


def try_version(version, folder, common, test, scratch):
    """(row of the table, records as layouts() gives them)."""
    package, number, runtime, runtime_number = PACKAGES[version]
    cupti, cuda = fetch(package, number, folder), fetch(runtime, runtime_number, folder)
    includes = [folder_of("cupti.h", cupti), folder_of("cuda.h", cuda), os.path.dirname(folder_of("host_defines.h", common))]
    header_version, records = layouts(includes, scratch)
    library = glob.glob(os.path.join(cupti, "**", "libcupti.so*"), recursive=True)[0]
    said, missing, text = open_library(library)
    newest = {family: max(numbers) for family, numbers in families(includes[0]).items() if numbers}
    current = ", ".join(f"{family}{newest[family] if newest[family] > 1 else ''}" for family in ("Kernel", "Memcpy", "MemcpyPtoP", "Memset"))
    return [f"{version} ({number})", f"{header_version}{'' if said == header_version else f', library: {said}'}", current,
            check_declarations(includes) or "the same", ", ".join(missing) or "none", text,
            say_in_libtrace(test, library) if test else "not asked"], records


def layout_tables(places):
    """{family: {"members": names, "rows": [[numbers of records, offset …]]}}."""
    tables = {}
    for (family, offsets), numbers in sorted(places.items(), key=lambda item: min(item[1])):
        cells = [str(offset) if offset >= 0 else "–" for offset in offsets]
        table = tables.setdefault(family, {"members": MEMBERS[family], "rows": []})
        table["rows"].append([str(min(numbers)) + (f"–{max(numbers)}" if len(numbers) > 1 else ""), *cells])
    return tables


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder")
    parser.add_argument("--test")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("versions", nargs="*", metavar="VERSION")
    arguments = parser.parse_args()
    unknown = set(arguments.versions) - set(PACKAGES)
    if unknown:
        parser.error(f"no {', '.join(sorted(unknown))}; there is: {', '.join(PACKAGES)}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or scratch
        places, rows, common = {}, [], fetch(*COMMON, folder)
        for version in arguments.versions or PACKAGES:
            row, records = try_version(version, folder, common, arguments.test, scratch)
            rows.append(row)
            print("| " + " | ".join(row) + " |", flush=True)
            for family, runs in distinct(records).items():
                for first, last, offsets in runs:
                    places.setdefault((family, tuple(offsets)), set()).update(range(first, last + 1))
    if arguments.keep:
        kept.keep("cupti", {"rows": rows, "layouts": layout_tables(places)})
    return 1 if any(row[3] != "the same" or "FAILED" in row[6] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
