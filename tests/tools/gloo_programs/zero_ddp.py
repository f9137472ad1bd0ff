"""DDP with ZeroRedundancyOptimizer; traces of TensorBoard's handler."""

import time
import torch
import torch.nn as nn
import torch.distributed as dist
import rig
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP
rank, world = rig.start()
model = DDP(nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(256, 256), nn.ReLU())]))
opt = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=0.001)

def polish():
    g = torch.randn(400, 400)
    g = g / g.norm()
    for _ in range(25):
        a = g @ g.T
        g = 3.4 * g - 4.7 * (a @ g) + 2.0 * (a @ a @ g)
        g = g / g.norm()

prof = rig.profiler(torch.profiler.tensorboard_trace_handler(rig.OUT, f'w{rank}', use_gzip=True))

with prof:
    for step in range(7):
        loss = model(torch.randn(32, 256)).square().mean()
        loss.backward()
        if rig.FAULT and rank == 2:
            polish()
        opt.step()
        opt.zero_grad()
        prof.step()
dist.barrier()
rig.end()
