"""Uneven inputs with Join."""

import torch
import torch.nn as nn
import torch.distributed as dist
import rig
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP
rank, world = rig.start()
model = DDP(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)))
opt = torch.optim.SGD(model.parameters(), lr=0.01)

with Join([model]):
    for i in range(5 + rank):
        model(torch.randn(8, 64)).square().mean().backward()
        opt.step()
        opt.zero_grad()
rig.dump()
dist.barrier()
rig.end()
