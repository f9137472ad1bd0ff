#!/usr/bin/env python3
"""Keeps a small part of what record.py recorded as a fixture, and unpacks it.

usage: keep.py FOLDER ARCHIVE.tar.zst [PROGRAM…]      these, then as many of PROGRAMS, in their order, as fit into LIMIT_BYTES

One archive for all programs of a version, as their logs share most of their text.
"""
import io
import os
import subprocess
import sys
import tarfile

LIMIT_BYTES = 200_000
# The most telling first.
PROGRAMS = ["train", "cache_cold", "cache_warm", "profiled", "ddp", "crash", "slow", "hang", "precompile", "exports", "autograd", "package",
            "dynamic", "fsdp2", "cache_bypass", "cache_key"]


def _clean(member):
    """What depends on the machine; times stay: a log's year may come from its file."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.isdir() else 0o644
    return member


def pack(folder, programs):
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        for name in programs:
            for part in ("in", "truth"):
                archive.add(os.path.join(folder, name, part), f"{name}/{part}", filter=_clean)
    return subprocess.run(["zstd", "-19", "--long=27", "-c", "-q"], input=tar.getvalue(), stdout=subprocess.PIPE, check=True).stdout


def unpack(archive, folder):
    data = subprocess.run(["zstd", "-d", "--long=27", "-c", "-q", archive], stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        tar.extractall(folder)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    kept, data = [], b""
    for name in dict.fromkeys([*sys.argv[3:], *PROGRAMS]):
        if os.path.isdir(os.path.join(sys.argv[1], name)):
            more = pack(sys.argv[1], [*kept, name])
            if len(more) <= LIMIT_BYTES:
                kept, data = [*kept, name], more
    with open(sys.argv[2], "wb") as file:
        file.write(data)
    print(f"{sys.argv[2]}: {len(data)} bytes: {' '.join(kept)}")


if __name__ == "__main__":
    main()
