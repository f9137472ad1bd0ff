"""Subgroups: pairs, then all; rank 1 waits for a lock of a thread that never gives it back."""

import threading
import time
import torch
import torch.distributed as dist
import rig
rank, world = rig.start()
pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
mine = pairs[rank // 2]
cache = threading.Lock()
rig.dump_after(40)

def lookup(step):
    if rig.FAULT and rank == 1 and (step == 4):
        cache.acquire()
    with cache:
        return torch.full((32,), float(step))

for step in range(10):
    x = lookup(step)
    dist.all_reduce(x, group=mine)
    dist.all_reduce(x)
time.sleep(100)
