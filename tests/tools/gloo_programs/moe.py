"""Experts on ranks, tokens by all_to_all_single with splits that depend on data."""

import time
import torch
import torch.nn as nn
import torch.distributed as dist
import rig
rank, world = rig.start()
wide = 4096 if rig.FAULT == 'heavy' and rank == 1 else 512
expert = nn.Sequential(nn.Linear(256, wide), nn.GELU(), nn.Linear(wide, 256))
gate = nn.Linear(256, world)
torch.manual_seed(rank)

def route(x):
    where = gate(x).argmax(-1)
    order = where.argsort()
    sent = torch.bincount(where, minlength=world)
    got = torch.empty_like(sent)
    dist.all_to_all_single(got, sent)
    buf = x.new_empty(int(got.sum()), 256)
    dist.all_to_all_single(buf, x[order].contiguous(), got.tolist(), sent.tolist())
    with torch.no_grad():
        y = expert(buf)
    back = torch.empty_like(x)
    dist.all_to_all_single(back, y, sent.tolist(), got.tolist())
    return back

def ready(p):
    p.export_chrome_trace(f'{rig.OUT}/trace_{rank}.json')

with rig.profiler(ready, record_shapes=True) as prof:
    for step in range(8):
        y = route(torch.randn(512, 256))
        s = y.mean().reshape(1)
        dist.all_reduce(s)
        prof.step()
if rig.FAULT == '':
    rig.dump()
dist.barrier()
rig.end()
