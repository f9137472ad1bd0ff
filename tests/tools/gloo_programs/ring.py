"""Ring exchange by isend and irecv; each rank handles what came."""

import time
import torch
import torch.distributed as dist
import rig
rank, world = rig.start()

def ready(p):
    p.export_chrome_trace(f'{rig.OUT}/worker_{rank}.pt.trace.json.gz')

def prepare(step):
    if rig.FAULT == 'slow' and rank == 1:
        time.sleep(0.4)
    return torch.randn(128, 128)

def exchange(x):
    got = torch.empty_like(x)
    s = dist.isend(x, (rank + 1) % world)
    r = dist.irecv(got, (rank - 1) % world)
    s.wait()
    r.wait()
    return got

with rig.profiler(ready, record_shapes=rig.FAULT != '') as prof:
    for step in range(7):
        x = prepare(step)
        for _ in range(3):
            x = exchange(x) @ x
        prof.step()
rig.dump()
dist.barrier()
rig.end()
