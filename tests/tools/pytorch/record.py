#!/usr/bin/env python3
"""Records the fixed set of small programs with the PyTorch of the Python that runs this.

usage: PYTHON record.py FOLDER [PROGRAM …]

FOLDER/<program>/in holds what the program leaves (logs, profiles, dumps, packages), FOLDER/<program>/truth what it counted itself,
output.txt its output. FOLDER/programs.json says how each program ended and how long it took; wheel.json which packages were installed.
A C++ compiler and Python's headers must be there. Without TORCHINDUCTOR_VEC_ISA_OK in the environment, vector code is left out.

PyTorch is imported once: each program is a child of this process. Where its log goes is read at the import, so TORCH_TRACE is a link, which
is set anew for each program.
"""
import importlib.metadata
import json
import os
import runpy
import shutil
import signal
import sys
import tempfile
import time
import traceback

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
LIMIT_S = 3600
RANKS = 4
# Name, then the script and its arguments, one run after the other. {in}: folder of what is left, {keep}: a folder for this program's runs.
RUNS = {
    "train": [["train.py"]],
    "dynamic": [["dynamic.py"]],
    "cache_cold": [["caches.py", "cold"]],
    "cache_warm": [["caches.py", "warm"]],
    "cache_bypass": [["caches.py", "bypass"]],
    "cache_key": [["caches.py", "key"]],
    "exports": [["exports.py"]],
    "package": [["package.py", "{in}/net.pt2"]],
    "precompile": [["precompile.py", "first", "{keep}"], ["precompile.py", "second", "{keep}"]],
    "autograd": [["autograd.py"]],
    "profiled": [["profiled.py", "{in}/profile.json"]],
    "ddp": [["ranks.py", "ddp", "{in}"]],
    "fsdp2": [["ranks.py", "fsdp2", "{in}"]],
    "crash": [["job.py", "crash", "{in}"]],
    "hang": [["job.py", "hang", "{in}"]],
    "slow": [["job.py", "slow", "{in}"]],
}
SHARED_CACHE = {"cache_warm": "cache_cold", "cache_key": "cache_cold", "cache_bypass": "cache_cold"}
# A rank fails, or the job is ended: they end with an error.
ENDS_BADLY = {"crash", "hang"}


def start_over(scratch):
    """Replaces this process by one whose environment is as PyTorch shall find it at its import."""
    environment = {
        **os.environ, "TRACEKIT_RECORDING": scratch, "TORCH_TRACE": os.path.join(scratch, "trace"), "OMP_NUM_THREADS": "1",
        "TORCHINDUCTOR_VEC_ISA_OK": os.environ.get("TORCHINDUCTOR_VEC_ISA_OK", "0"), "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCH_FR_BUFFER_SIZE": "2000", "PYTHONHASHSEED": "0", "CUDA_VISIBLE_DEVICES": ""}
    os.execve(sys.executable, [sys.executable, os.path.abspath(__file__), *sys.argv[1:]], environment)


def in_child(name, script, arguments, folder, scratch):
    """What a program's process does; does not return."""
    code = 1
    try:
        with open(os.path.join(folder, "output.txt"), "ab") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        cache = os.path.join(scratch, "cache_" + SHARED_CACHE.get(name, name))
        os.environ.update(TRUTH=os.path.join(folder, "truth"), TORCHINDUCTOR_CACHE_DIR=cache, TRITON_CACHE_DIR=cache)
        os.chdir(folder)
        sys.argv = [script, *arguments]
        runpy.run_path(os.path.join(scratch, "programs", script), run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # whatever ends a program
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def remove_marks(folder):
    """Files by which the ranks of a job say how far they are."""
    for name in os.listdir(folder):
        if name == "dump" or name.startswith(("forward_", "hanging_", "dumped_")):
            os.remove(os.path.join(folder, name))


def is_over(pid):
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def end_when_hanging(pid, folder):
    """Lets all ranks of a hanging job dump, then ends it as a person would."""
    def wait_for(what, ranks):
        while not is_over(pid) and not all(os.path.exists(os.path.join(folder, f"{what}_{rank}")) for rank in ranks):
            time.sleep(0.5)
    wait_for("forward", range(RANKS))
    wait_for("hanging", [2])
    time.sleep(30)  # the others compile and wait in the collective
    with open(os.path.join(folder, "dump"), "w"):
        pass
    wait_for("dumped", range(RANKS))
    os.kill(pid, signal.SIGTERM)


def run(name, command, folder, scratch):
    """How the program ended: its exit code, minus the signal, or "time limit"."""
    places = {"in": os.path.join(folder, "in"), "keep": os.path.join(scratch, "keep_" + name)}
    script, *arguments = [part.format(**places) for part in command]
    link = os.path.join(scratch, "trace")
    if os.path.islink(link):
        os.remove(link)
    os.symlink(places["in"], link)
    pid = os.fork()
    if pid == 0:
        in_child(name, script, arguments, folder, scratch)
    if name == "hang":
        end_when_hanging(pid, places["in"])
    deadline = time.monotonic() + LIMIT_S
    while not is_over(pid):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
            return "time limit"
        time.sleep(0.2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def record(name, folder, scratch):
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("in", "truth"):
        os.makedirs(os.path.join(folder, part))
    start = time.monotonic()
    ends = [run(name, command, folder, scratch) for command in RUNS[name]]
    remove_marks(os.path.join(folder, "in"))
    as_planned = all((end != 0 and end != "time limit") if name in ENDS_BADLY else end == 0 for end in ends)
    return {"ends": ends, "as_planned": as_planned, "seconds": round(time.monotonic() - start, 1)}


def wheel():
    packages = {one.metadata["Name"]: one.version for one in importlib.metadata.distributions()}
    return {name: version for name, version in sorted(packages.items()) if name.startswith(("torch", "triton", "nvidia", "cuda"))}


def write(path, members):
    """Adds to what an earlier run with other programs wrote."""
    if os.path.exists(path):
        with open(path) as file:
            members = {**json.load(file), **members}
    with open(path, "w") as file:
        json.dump(members, file, indent=1, sort_keys=True)
        file.write("\n")


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-") or not set(sys.argv[2:]) <= set(RUNS):
        sys.exit(__doc__ + "\nprograms: " + " ".join(RUNS))
    if "TRACEKIT_RECORDING" not in os.environ:
        start_over(tempfile.mkdtemp())
    scratch = os.environ["TRACEKIT_RECORDING"]
    target = os.path.abspath(sys.argv[1])
    os.makedirs(target, exist_ok=True)
    # Logs name the programs' files: not by the place of this checkout.
    shutil.copytree(PROGRAMS, os.path.join(scratch, "programs"))
    sys.path.insert(0, os.path.join(scratch, "programs"))
    import torch._dynamo  # noqa: F401
    import torch._inductor.compile_fx  # noqa: F401

    all_as_planned = True
    try:
        for name in sys.argv[2:] or RUNS:
            end = record(name, os.path.join(target, name), scratch)
            write(os.path.join(target, "programs.json"), {name: end})
            state = "" if end["as_planned"] else f"   NOT AS PLANNED: {end['ends']}, see {target}/{name}/output.txt"
            print(f"  {name:14}{end['seconds']:7.1f} s{state}", flush=True)
            all_as_planned = all_as_planned and end["as_planned"]
        write(os.path.join(target, "wheel.json"), wheel())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0 if all_as_planned else 1


if __name__ == "__main__":
    sys.exit(main())
