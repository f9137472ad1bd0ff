#!/usr/bin/env python3
"""Makes the wheel of tracekit: the Python package and the program, as a script that pip puts on PATH. Equal input gives equal bytes.

usage: make-wheel.py VERSION PROGRAM PACKAGE_FOLDER OUTPUT_FOLDER
"""

import base64
import hashlib
import os
import sys
import zipfile

TAG = "py3-none-manylinux2014_x86_64"
METADATA = """Metadata-Version: 2.1
Name: tracekit-tlparse
Version: {version}
Summary: Structured traces of PyTorch's compiler: recorded, read, explained
Requires-Python: >=3.8
Provides-Extra: pandas
Requires-Dist: pandas; extra == "pandas"
"""
WHEEL = f"Wheel-Version: 1.0\nGenerator: tracekit\nRoot-Is-Purelib: false\nTag: {TAG}\n"


def main(version, program, package, output):
    name = "tracekit_tlparse-" + version
    files = [("tracekit/" + file, open(os.path.join(package, file), "rb").read(), 0o644)
             for file in sorted(os.listdir(package)) if file.endswith(".py")]
    files.append((f"{name}.data/scripts/tlparse", open(program, "rb").read(), 0o755))
    files.append((f"{name}.dist-info/METADATA", METADATA.format(version=version).encode(), 0o644))
    files.append((f"{name}.dist-info/WHEEL", WHEEL.encode(), 0o644))
    record = f"{name}.dist-info/RECORD"
    lines = []
    for path, data, _ in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(data)}\n")
    files.append((record, "".join([*lines, record + ",,\n"]).encode(), 0o644))
    wheel = os.path.join(output, f"{name}-{TAG}.whl")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data, mode in files:
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data, compresslevel=9)
    print(f"{wheel}, {os.path.getsize(wheel)} bytes")


main(*sys.argv[1:])
