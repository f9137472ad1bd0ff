"""torchrun --max-restarts 1: rank 1 raises in the first attempt."""

import os
import torch
import torch.nn as nn
import torch.distributed as dist
import rig
from torch.nn.parallel import DistributedDataParallel as DDP
rank, world = rig.start()
attempt = int(os.environ['TORCHELASTIC_RESTART_COUNT'])
model = DDP(nn.Linear(64, 64))
opt = torch.optim.SGD(model.parameters(), lr=0.01)

for step in range(6):
    if attempt == 0 and rank == 1 and (step == 3):
        rig.dump(f'attempt0_rank_')
        raise RuntimeError('bad sample')
    try:
        model(torch.randn(8, 64)).square().mean().backward()
        opt.step()
        opt.zero_grad()
    except RuntimeError:
        rig.dump('attempt0_rank_')
        raise
rig.dump(f'attempt{attempt}_rank_')
dist.barrier()
rig.end()
