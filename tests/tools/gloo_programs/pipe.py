"""Pipeline of four stages, 1F1B, loss averaged each step."""

import time
import torch
import torch.nn as nn
import torch.distributed as dist
import rig
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
rank, world = rig.start()
stage_module = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
stage = PipelineStage(stage_module, rank, world, torch.device('cpu'))
sched = Schedule1F1B(stage, n_microbatches=4, loss_fn=nn.MSELoss())
opt = torch.optim.SGD(stage_module.parameters(), lr=0.01)
if rig.FAULT:
    rig.dump_after(45)

def next_batch(step):
    if rig.FAULT == 'hang' and rank == 2 and (step == 3):
        while True:
            time.sleep(1)
    return torch.randn(16, 64)

for step in range(6):
    batch = next_batch(step)
    losses = []
    if rank == 0:
        sched.step(batch)
    elif rank == world - 1:
        sched.step(target=torch.randn(16, 64), losses=losses)
    else:
        sched.step()
    opt.step()
    opt.zero_grad()
    total = torch.tensor([float(sum((float(l) for l in losses)))])
    dist.all_reduce(total)
rig.dump()
dist.barrier()
rig.end()
