"""Four ranks of gloo that go wrong. usage: job.py crash|hang|slow FOLDER (of dumps and of files that say how far a rank is)

crash  the compiler of rank 1 raises at the second function
hang   the compiler of rank 2 stops at the second function, two seconds before the others begin with it; the caller ends the job when
       all ranks have said where they are
slow   rank 3 begins to compile when the others wait for it
"""
import os
import sys
import threading
import time

import forked
import recorder
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import truth
from torch._inductor.compile_fx import compile_fx

ODD = {"crash": 1, "hang": 2, "slow": 3}
torch.manual_seed(0)
torch.set_num_threads(1)


def said(folder, what, rank):
    return os.path.exists(os.path.join(folder, f"{what}_{rank}"))


def say(folder, what):
    with open(os.path.join(folder, f"{what}_{truth.rank()}"), "w"):
        pass


def backend(mode, folder):
    """Inductor, but for the planted fault."""
    def compile_graph(module, inputs):
        if ODD.get(mode) == truth.rank() and mode == "crash":
            raise RuntimeError("planted: this pass cannot lower the graph")
        if ODD.get(mode) == truth.rank() and mode == "hang":
            say(folder, "hanging")
            time.sleep(600)
        return compile_fx(module, inputs)
    return compile_graph


def forward(x, w):
    return x @ w


def grad_sync(x):
    return functional.all_reduce(x @ x.t(), "sum", dist.group.WORLD)


def dump_when_all_wait(folder):
    def watch():
        while not os.path.exists(os.path.join(folder, "dump")):
            time.sleep(0.2)
        recorder.dump(folder)
        truth.write()
        say(folder, "dumped")
    threading.Thread(target=watch, daemon=True).start()


def main(mode, folder):
    dist.init_process_group("gloo")
    dump_when_all_wait(folder)
    if mode == "slow" and truth.rank() == ODD["slow"]:
        while not all(said(folder, "forward", rank) for rank in range(3)):
            time.sleep(0.2)
        time.sleep(15)
    w = torch.randn(8, 8, requires_grad=True)
    truth.run("forward", lambda: torch.compile(forward)(torch.randn(4, 8), w).sum().backward())
    say(folder, "forward")
    if mode == "hang" and truth.rank() != ODD["hang"]:
        # Logs that end together do not show which rank stopped first.
        while not said(folder, "hanging", ODD["hang"]):
            time.sleep(0.1)
        time.sleep(2)
    torch.compile(grad_sync, backend=backend(mode, folder))(torch.randn(4, 8))
    dist.barrier()
    truth.write(dumps=recorder.dump(folder))
    dist.barrier()
    dist.destroy_process_group()


forked.run(lambda: main(sys.argv[1], sys.argv[2]))
