#!/usr/bin/env python3
"""The GPU check itself, where there is no GPU: against stand-ins of the driver and of CUPTI it succeeds, without a driver it is
skipped, and it reports errors.

usage: test_gpu_check.py PROGRAM STAND_IN SOURCE_DIRECTORY EXAMPLE
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROGRAM, STAND_IN, SOURCE, EXAMPLE = sys.argv[1:]


def run(command, **variables):
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TORCH_TRACE": folder, **variables}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


both = {"LIBTRACE_CUPTI": STAND_IN, "LIBTRACE_CUDA_DRIVER": STAND_IN}
code, said = run([PROGRAM], **both)
assert code == 0 and "WRONG" not in said, said
for line in ("| ok | kernels of aten::mm, node mm_3 | 2 of 2 |", "| ok | kernels of graph::launch | 6 of 6 |",
             "| ok | PtoP with op and size | 1 of 1 |", "| ok | and that client has its kernels | 2 of 2 |",
             "| ok | a client that comes later is noticed | buffers_taken |", "| ok | alone again it has all of its own | 1 of 1 |",
             "All as it should be."):
    assert line in said, (line, said)

code, said = run([PROGRAM], LIBTRACE_CUDA_DRIVER="/no/such/libcuda.so.1")
assert code == 77 and said.startswith("skipped: no driver"), (code, said)
code, said = run([PROGRAM], LIBTRACE_STAND_IN_NO_GPU="1", **both)
assert code == 77 and said.startswith("skipped: no GPU"), (code, said)
code, said = run([PROGRAM], LIBTRACE_CUDA_DRIVER=STAND_IN, LIBTRACE_CUPTI="/no/such/libcupti.so")
assert code == 1 and "| **WRONG** | CudaActivity watches |" in said, (code, said)

# From a folder that was carried along: the program and the script, nothing else.
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    shutil.copy(PROGRAM, folder / "libtrace_gpu_check")
    shutil.copy(os.path.join(SOURCE, "scripts/gpu-check.sh"), folder)
    code, said = run([str(folder / "gpu-check.sh")], **both)
    assert code == 0 and "Not tried: reading it back" in said, (code, said)
    code, said = run([str(folder / "gpu-check.sh")], LIBTRACE_CUDA_DRIVER="/no/such/libcuda.so.1")
    assert code == 77, (code, said)

# The example, whose records are those of its ops.
with tempfile.TemporaryDirectory() as trace:
    done = subprocess.run([EXAMPLE, STAND_IN], env={**os.environ, "TORCH_TRACE": trace, "LIBTRACE_CUPTI": STAND_IN}, capture_output=True,
                          text=True, check=True)
    assert done.stdout == ("memcpy HtoD: 4194304 bytes in 100 ns, for acme::upload\n"
                           "memcpy DtoH: 4194304 bytes in 100 ns, for acme::download\n"), done.stdout
    log = next(pathlib.Path(trace).glob("*.log")).read_text()
    assert '"libtrace_cuda_activity"' in log and '"numbers_1"' in log, log
code, said = run([EXAMPLE, "/no/such/libcuda.so.1"])
assert (code, said) == (77, "no GPU\n"), (code, said)
print("the check tells right from wrong")
