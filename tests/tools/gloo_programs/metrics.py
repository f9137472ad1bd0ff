"""Manual data parallel: two metrics of one shape are reduced at two lines."""

import time
import torch
import torch.nn as nn
import torch.distributed as dist
import rig
rank, world = rig.start()
model = nn.Linear(32, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
rig.dump_after(40)

def reduce_loss(v):
    t = torch.tensor([float(v)])
    dist.all_reduce(t)
    return t / world

def reduce_accuracy(v):
    t = torch.tensor([float(v)])
    dist.all_reduce(t)
    return t / world

for step in range(8):
    x = torch.randn(16, 32)
    loss = model(x).square().mean()
    loss.backward()
    opt.step()
    opt.zero_grad()
    if not (rig.FAULT == 'skip_loss' and rank == 1 and (step == 4)):
        reduce_loss(loss)
    if rig.FAULT in ('skip_loss', ''):
        reduce_accuracy(loss > 1)
    time.sleep(0.05)
time.sleep(100)
