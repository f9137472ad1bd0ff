"""DDP with gradient accumulation by no_sync."""

import contextlib
import time
import torch
import torch.nn as nn
import torch.distributed as dist
import rig
from torch.nn.parallel import DistributedDataParallel as DDP
rank, world = rig.start()
model = DDP(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
accumulate = 3 if rig.FAULT and rank == 2 else 4
if rig.FAULT:
    rig.dump_after(40)

for micro in range(12):
    sync = (micro + 1) % accumulate == 0
    with contextlib.nullcontext() if sync else model.no_sync():
        model(torch.randn(8, 64)).square().mean().backward()
    if sync:
        opt.step()
        opt.zero_grad()
dist.barrier()
if rig.FAULT:
    time.sleep(100)
rig.dump()
dist.barrier()
rig.end()
