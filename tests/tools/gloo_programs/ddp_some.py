"""DDP; only rank 0 is profiled, two windows, files renamed."""

import os
import torch
import torch.nn as nn
import torch.distributed as dist
import contextlib
import rig
from torch.nn.parallel import DistributedDataParallel as DDP
rank, world = rig.start()
model = DDP(nn.Sequential(*[m for _ in range(3) for m in (nn.Linear(128, 128), nn.ReLU())]))
opt = torch.optim.AdamW(model.parameters())
names = iter(['warm.json.gz', 'later.json.gz', 'x.json.gz'])

def ready(p):
    p.export_chrome_trace(f'{rig.OUT}/{next(names)}')

options = {'record_shapes': True, 'with_stack': True, 'profile_memory': True}
ctx = rig.profiler(ready, repeat=2, **options) if rank == 0 else contextlib.nullcontext()

with ctx as prof:
    for step in range(11):
        model(torch.randn(16, 128)).square().mean().backward()
        opt.step()
        opt.zero_grad()
        if prof is not None:
            prof.step()
dist.barrier()
rig.end()
