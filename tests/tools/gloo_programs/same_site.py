"""One all_reduce a step, at one line; rank 2 leaves one out."""

import time
import torch
import torch.nn as nn
import torch.distributed as dist
import rig
rank, world = rig.start()
model = nn.Linear(32, 32)
rig.dump_after(40)

def sync():
    flat = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
    dist.all_reduce(flat)

for step in range(12):
    x = torch.randn(16, 32)
    loss = model(x).square().mean()
    loss.backward()
    if rig.FAULT and rank == 2 and (step == 5) and (not loss.item() < 0):
        model.zero_grad()
        continue
    sync()
    model.zero_grad()
dist.barrier() if not rig.FAULT else None
print('rank', rank, 'done', flush=True)
time.sleep(100)
