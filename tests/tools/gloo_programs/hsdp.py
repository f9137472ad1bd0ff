"""HSDP: fully_shard over a 2x2 mesh; one rank's loader is slow."""

import time
import torch
import torch.nn as nn
import torch.distributed as dist
import rig
from torch.distributed.fsdp import fully_shard
from torch.distributed.device_mesh import init_device_mesh
rank, world = rig.start()
mesh = init_device_mesh('cpu', (2, 2), mesh_dim_names=('replicate', 'shard'))
model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(3)])

for m in model:
    fully_shard(m, mesh=mesh)
fully_shard(model, mesh=mesh)
opt = torch.optim.AdamW(model.parameters(), lr=0.001)

def load():
    if rig.FAULT and rank == 1:
        time.sleep(0.4)
    return torch.randn(16, 256)

def ready(p):
    p.export_chrome_trace(f'{rig.OUT}/node0_{rank}.json')

with rig.profiler(ready) as prof:
    for step in range(7):
        model(load()).square().mean().backward()
        opt.step()
        opt.zero_grad()
        prof.step()
dist.barrier()
rig.end()
