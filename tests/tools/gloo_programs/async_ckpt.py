"""FSDP2 with an asynchronous checkpoint in a thread with a group of its own."""

import os
import torch
import torch.nn as nn
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import rig
from torch.distributed.fsdp import fully_shard
from torch.distributed.device_mesh import init_device_mesh
rank, world = rig.start()
ckpt = dist.new_group(backend='gloo')
mesh = init_device_mesh('cpu', (world,))
model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(3)])

for m in model:
    fully_shard(m, mesh=mesh)
fully_shard(model, mesh=mesh)
opt = torch.optim.AdamW(model.parameters(), lr=0.001)
pending = None

for step in range(6):
    loss = model(torch.randn(8, 64)).square().mean()
    loss.backward()
    opt.step()
    opt.zero_grad()
    if step % 2 == 1:
        if pending is not None:
            pending.result()
        place = f'{rig.OUT}/../ckpt_{step}'
        pending = dcp.async_save({'model': model.state_dict()}, checkpoint_id=place, process_group=ckpt)
pending.result()
rig.dump()
dist.barrier()
rig.end()
