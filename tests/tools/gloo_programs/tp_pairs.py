"""Two tensor-parallel pairs that meet in data parallel only at the end (local steps)."""

import time
import torch
import torch.nn as nn
import torch.distributed as dist
import rig
from torch.distributed.device_mesh import init_device_mesh
rank, world = rig.start()
mesh = init_device_mesh('cpu', (2, 2), mesh_dim_names=('dp', 'tp'))
tp, dp = (mesh['tp'].get_group(), mesh['dp'].get_group())
w1, w2 = (torch.randn(256, 512), torch.randn(512, 256))
frozen = torch.randn(600, 600)

def block(x):
    y = torch.relu(x @ w1) @ w2
    dist.all_reduce(y, group=tp)
    return y / 1000

def augment(x):
    if rig.FAULT and rank == 3:
        torch.linalg.svd(frozen)
    return x

def ready(p):
    p.export_chrome_trace(f'{rig.OUT}/prof_rank{rank}.json')

with rig.profiler(ready, record_shapes=rig.FAULT == 'shapes') as prof:
    for step in range(7):
        x = augment(torch.randn(64, 256))
        for _ in range(3):
            x = block(x)
        prof.step()
dist.all_reduce(x, group=dp)
dist.barrier()
rig.end()
