"""DeviceMesh 2x2 (dp, tp): column- and row-wise linear layers, gradients averaged over dp."""

import os
import time
import torch
import torch.nn as nn
import torch.distributed as dist
import rig
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import parallelize_module, ColwiseParallel, RowwiseParallel
rank, world = rig.start()
mesh = init_device_mesh('cpu', (2, 2), mesh_dim_names=('dp', 'tp'))

class Block(nn.Module):

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(256, 1024)
        self.down = nn.Linear(1024, 256)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(x)))

model = nn.Sequential(Block(), Block())

for block in model:
    plan = {'up': ColwiseParallel(), 'down': RowwiseParallel()}
    parallelize_module(block, mesh['tp'], plan)
opt = torch.optim.AdamW(model.parameters(), lr=0.001, foreach=False)
dp = mesh['dp'].get_group()
shadow = torch.randn(700, 700)

def average_gradients():
    for p in model.parameters():
        g = p.grad
        local = g.to_local() if hasattr(g, 'to_local') else g
        dist.all_reduce(local, group=dp)
        local /= 2

def whiten():
    torch.linalg.svd(shadow)

def ready(prof):
    prof.export_chrome_trace(f'{rig.OUT}/rank{rank}.trace.json' + ('.gz' if rig.FAULT == '' else ''))

with rig.profiler(ready, record_shapes=True, with_stack=rig.FAULT == '') as prof:
    for step in range(7):
        x = torch.randn(32, 256)
        loss = model(x).square().mean()
        loss.backward()
        average_gradients()
        if rig.FAULT == 'svd' and rank == 3:
            whiten()
        opt.step()
        opt.zero_grad()
        prof.step()
if rig.FAULT == '':
    rig.dump()
dist.barrier()
rig.end()
