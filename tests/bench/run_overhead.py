#!/usr/bin/env python3
"""What `tlparse run` costs a step: a small compiled training loop is run plain and under `tlparse run`, and the time of a run's median
step is compared pair by pair. The median leaves out steps that another process interrupts. Both runs of a pair go at once, each on a processor
of its own that they exchange from pair to pair, so a host whose speed changes slows both alike. Needs PyTorch, taskset and two processors.

usage: run_overhead.py TLPARSE [--runs 20] [--python PYTHON] [--steps 2000] [-- options of tlparse run]
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

PROGRAM = """
import json, statistics, sys, time
import torch

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.Linear(256, 256), torch.nn.LayerNorm(256), torch.nn.Linear(256, 8))
optimizer = torch.optim.Adam(model.parameters())

@torch.compile
def loss_of(x, y):
    return torch.nn.functional.mse_loss(model(x), y)

def step():
    optimizer.zero_grad(set_to_none=True)
    loss_of(x, y).backward()
    optimizer.step()

x, y = torch.randn(64, 256), torch.randn(64, 8)
for _ in range(50):
    step()
cpu, wall = [], []
for _ in range(int(sys.argv[1])):
    start_cpu, start_wall = time.thread_time_ns(), time.perf_counter_ns()
    step()
    wall.append(time.perf_counter_ns() - start_wall)
    cpu.append(time.thread_time_ns() - start_cpu)
with open(sys.argv[2], "w") as file:
    json.dump({"cpu_us": statistics.median(cpu) / 1e3, "wall_us": statistics.median(wall) / 1e3}, file)
"""


def start(command, folder, steps, processor):
    result = os.path.join(folder, f"result.{processor}.json")
    variables = {name: value for name, value in os.environ.items() if not name.startswith("TORCH")}
    variables |= {"TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "cache"), "PYTHONHASHSEED": "0"}
    return subprocess.Popen(["taskset", "-c", str(processor), *command, str(steps), result], cwd=folder, env=variables,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), result


def finish(started):
    process, result = started
    if process.wait() != 0:
        sys.exit(f"{process.args} ended with {process.returncode}")
    with open(result, encoding="utf-8") as file:
        return json.load(file)


def main():
    own, _, of_run = " ".join(sys.argv[1:]).partition(" -- ")
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("tlparse")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--steps", type=int, default=2000)
    arguments = parser.parse_args(own.split())
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "train.py")
        with open(program, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        plain = [arguments.python, program]
        recorded = [os.path.abspath(arguments.tlparse), "run", "-q", *of_run.split(), "-o", "recorded", "--", *plain]
        finish(start(plain, folder, 1, 0))  # fills the compiler's cache for both
        for number in range(arguments.runs):
            started = [start(command, folder, arguments.steps, (number + place) % 2) for place, command in enumerate((plain, recorded))]
            pairs.append([finish(one) for one in started])
            shutil.rmtree(os.path.join(folder, "recorded"))
    for unit in ("cpu_us", "wall_us"):
        ratios = sorted(run[unit] / alone[unit] for alone, run in pairs)
        quarter = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        print(f"{unit} a step: {statistics.median(alone[unit] for alone, _ in pairs):.1f} plain, {statistics.median(run[unit] for _, run in pairs):.1f} under run; "
              f"run / plain of {len(pairs)} pairs: median {quarter[1]:.4f}, quartiles {quarter[0]:.4f} and {quarter[2]:.4f}, {ratios[0]:.3f} to {ratios[-1]:.3f}")


main()
