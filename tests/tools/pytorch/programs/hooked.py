"""A process that the hook of `tlparse run` is in (../hook.py). Prints what of it took effect as a line of JSON, however it ends."""
import atexit
import json
import os
import sys
import time

import torch
import torch._dynamo
import torch._inductor.config
import torch.distributed as dist
from torch._dynamo.utils import counters

facts = {}
atexit.register(lambda: print("facts " + json.dumps(facts), flush=True))


def double(x):
    return x.relu() * 2


def breaks(x):
    y = x + 1
    print("a graph break")
    return y * 2


def steps(compiled, sizes):
    weight = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for size in sizes:
        compiled(torch.ones(size, 4) * weight).sum().backward()
        facts["steps"] = facts.get("steps", 0) + 1
        optimizer.step()
        optimizer.zero_grad()


def recorded():
    """What `tlparse run` records: the process, its steps' profile, its stacks, its recorder, digests, the exception that ends it."""
    names = ("TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE")
    facts["variables"] = [name for name in names if name in os.environ]
    dist.init_process_group("gloo", init_method="file://" + os.path.join(os.getcwd(), "store"), rank=0, world_size=1)
    steps(torch.compile(double), [8] * 6)
    dist.all_reduce(torch.ones(3))
    os.kill(os.getpid(), int(os.environ["TLPARSE_RUN_SIGNAL"]))
    pipe = os.path.join(os.environ["TLPARSE_RUN_PIPES"], f"pid_{os.getpid()}.pipe")
    if os.path.exists(pipe):
        with open(pipe, "w") as file:
            file.write("1")
        until = time.monotonic() + 20
        while time.monotonic() < until and not os.path.exists(os.path.join(os.environ["TLPARSE_RUN_RECORDED"], "comm_lib_trace_rank_0")):
            time.sleep(0.1)
    raise ValueError("ends here")


def changed():
    """An option of Dynamo, one of Inductor that torch.compile is given, a size that is marked, a variable, an end after three steps."""
    limit = "recompile_limit" if hasattr(torch._dynamo.config, "recompile_limit") else "cache_size_limit"  # before 2.7
    setattr(torch._dynamo.config, limit, 5)

    def look(graph):
        facts["fusion_size"] = torch._inductor.config.max_fusion_size
    torch._inductor.config.post_grad_custom_post_pass = look  # 2.6 leaves it out where it is an option of torch.compile
    compiled = torch.compile(double, options={"max_fusion_size": 13})
    atexit.register(lambda: facts.update(graphs=counters["stats"]["unique_graphs"], limit=getattr(torch._dynamo.config, limit),
                                         variable=os.environ.get("TLPARSE_TRIED")))
    steps(compiled, [8, 8, 12, 16, 20, 24])


def checked():
    """A backend in place of the program's, and fullgraph=True for one function."""
    def own(module, inputs):
        facts["own"] = True
        return module.forward
    facts["double"] = torch.compile(double, backend=own)(torch.ones(3)).tolist()
    try:
        torch.compile(breaks, backend=own)(torch.ones(3))
    except torch._dynamo.exc.Unsupported as error:
        facts["raised"] = str(error)[:80]


{"recorded": recorded, "changed": changed, "checked": checked}[sys.argv[1]]()
