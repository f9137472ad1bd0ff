#!/usr/bin/env python3
"""How long it takes from the first command to the first true sentence: in a folder with a Debian that has PyTorch (record-jobs of the project's
references, or any root with python3-torch and python3-venv), without a compiler and without a network, the wheel is installed and a program that
hangs, one that crashes and one that is slow are run by `tlparse run`.

usage: sudo stopwatch.py FOLDER WHEEL

Prints each line with the seconds since the first command, and fails where an expected sentence does not come.
"""

import os
import shutil
import subprocess
import sys
import textwrap
import time

MODEL = """
import os, sys, time
import torch
import torch.distributed as dist

@torch.compile(backend="aot_eager")
def forward(x, scale=1):
    return (x.sin() * scale).sum()
"""
PROGRAMS = {
    "hangs": (MODEL + """
dist.init_process_group("gloo", init_method="file://" + os.path.abspath("rendezvous"), rank=int(os.environ["RANK"]), world_size=2)
for step in range(4):
    loss = forward(torch.randn(8))
    if step == 2 and dist.get_rank() == 1:
        time.sleep(1000)  # a loader that waits for ever
    dist.all_reduce(loss)
""", ("rank 1", "Rank 1", "seemed to hang")),  # PyTorch before 2.8 dumps no recorder of gloo: the stacks say where each rank is
    "crashes": (MODEL + """
@torch.compile(backend="aot_eager", fullgraph=True)
def checked(x):
    if x.sum() > 0:
        return x + 1
    return x - 1

forward(torch.randn(8))
checked(torch.randn(8))
""", ("checked",)),
    "is slow": (MODEL + """
for scale in range(1, 20):
    forward(torch.randn(8), scale + 0.5 if scale % 2 else str(scale).__len__() + scale)
    print(forward(torch.randn(8 + scale, scale)).item())
""", ("recompile", "Recompile", "compiled again", "is compiled")),
}
HIDDEN = ("g++", "gcc", "cc", "c++", "clang", "clang++")


def inside(folder, command):
    hide = "; ".join(f"[ ! -e {folder}/usr/bin/{name} ] || mount --bind /dev/null $(readlink -f {folder}/usr/bin/{name})" for name in HIDDEN)
    script = f"{hide}; exec chroot {folder} env -i PATH=/srv/stopwatch/v/bin:/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8 OMP_NUM_THREADS=1 sh -c '{command}'"
    return subprocess.Popen(["unshare", "--mount", "--net", "sh", "-c", "ip link set lo up; " + script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def follow(process, began, words, show):
    """The seconds at which a line with one of the words came."""
    found = None
    for line in process.stdout:
        seconds = time.monotonic() - began
        if show:
            print(f"{seconds:6.1f} s  {line.rstrip()}")
        if found is None and any(word in line for word in words) and line.startswith(("error:", "warning:", "note:")):
            found = seconds
    process.wait()
    return found


def main():
    folder, wheel = sys.argv[1:]
    place = os.path.join(folder, "srv", "stopwatch")
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    shutil.copy(wheel, place)
    missing = []
    for name, (text, words) in PROGRAMS.items():
        work = os.path.join(place, name.replace(" ", "_"))
        os.makedirs(work)
        with open(os.path.join(work, "train.py"), "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        started = "python train.py" if name != "hangs" else 'sh -c "RANK=0 WORLD_SIZE=2 python train.py & RANK=1 WORLD_SIZE=2 python train.py & wait"'
        print(f"\n== a program that {name}")
        began = time.monotonic()
        install = f"python3 -m venv --system-site-packages /srv/stopwatch/v && pip install -q --no-index --no-deps /srv/stopwatch/{os.path.basename(wheel)}"
        follow(inside(folder, install), began, (), True)
        print(f"{time.monotonic() - began:6.1f} s  installed: tlparse run -- {started}")
        options = "--on-hang kill --hang-after 30 " if name == "hangs" else ""
        found = follow(inside(folder, f"cd /srv/stopwatch/{os.path.basename(work)} && tlparse run {options}-- {started}"), began, words, True)
        print(f"first sentence about it: {found:.1f} s" if found else "no such sentence")
        if not found:
            missing.append(name)
        shutil.rmtree(os.path.join(place, "v"))
    sys.exit(f"no sentence about the program that {', '.join(missing)}" if missing else 0)


main()
