"""A barrier in the loader: rank 0 reads first, then all go on."""

import time
import torch
import torch.nn as nn
import torch.distributed as dist
import rig
from torch.nn.parallel import DistributedDataParallel as DDP
rank, world = rig.start()
model = DDP(nn.Linear(64, 64))
opt = torch.optim.SGD(model.parameters(), lr=0.01)

def batches(n):
    for _ in range(n):
        if rig.FAULT and rank == 0:
            time.sleep(0.4)
        dist.barrier()
        yield torch.randn(8, 64)

for x in batches(10):
    model(x).square().mean().backward()
    opt.step()
    opt.zero_grad()
rig.dump_json() if rig.FAULT == 'json' else rig.dump()
dist.barrier()
rig.end()
