"""Sharded embeddings as DTensors; the largest norm is logged now and then: by rank 3 alone."""
import datetime

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor


@torch.compile
def score(user, item):
    return (user * item).sum(-1).sigmoid()


def log_norm(table, step):
    if dist.get_rank() == 3:
        print("step", step, "largest norm", table.full_tensor().norm(dim=1).max().item())


def main():
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=75))
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(8)
    table = distribute_tensor(torch.randn(64, 16), mesh, [Shard(0)])
    for step in range(12):
        rows = table.redistribute(mesh, [Replicate()]).to_local()
        loss = score(rows[:32], rows[32:]).mean()
        dist.all_reduce(loss)
        table = table * (1.0 - 0.01 * loss.item())
        if step == 6:
            log_norm(table, step)
    dist.destroy_process_group()


main()
