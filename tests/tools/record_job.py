#!/usr/bin/env python3
"""Records the jobs of several ranks that tests of the answers need, with a real PyTorch (2.9 or later).

usage: record_job.py train|guard_miss DIRECTORY [WORLD_SIZE]

train       every rank trains six functions (matrix products around a collective, so that no C++ compiler is needed), forward and
            backward, under record_and_log_graph_execution_order(); rank 2 runs the last two in the other order.
guard_miss  one process fills a cache; then every rank compiles the same dynamic function with that cache, rank 2 for a size that the
            guards of the stored entry do not cover.
The logs are DIRECTORY/dedicated_log_torch_trace_rank_<N>_*.log.
"""
import os
import subprocess
import sys
import tempfile

ODD_RANK = 2


def init(rank, world_size, rendezvous):
    import torch.distributed as dist

    store = dist.FileStore(rendezvous, world_size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)


def train(rank, world_size):
    import torch
    import torch.distributed as dist
    import torch.distributed._functional_collectives as funcol
    import torch._inductor.config as inductor_config
    from torch._inductor.debug import record_and_log_graph_execution_order

    inductor_config.log_tlparse = True
    torch.manual_seed(7)
    group = dist.group.WORLD

    def layer_0(x, w):
        return funcol.all_gather_tensor_autograd(x @ w, 0, group)

    def layer_1(x, w):
        return funcol.all_gather_tensor_autograd(x @ w, 0, group) @ w

    def layer_2(x, w):
        return funcol.reduce_scatter_tensor_autograd(x @ w, "sum", 0, group)

    def layer_3(x, w):
        return funcol.reduce_scatter_tensor_autograd(x @ w @ w, "sum", 0, group)

    def layer_4(x, w):
        return funcol.all_gather_tensor_autograd(x, 0, group) @ w

    def layer_5(x, w):
        return (x @ w).t() @ x

    layers = [layer_0, layer_1, layer_2, layer_3, layer_4, layer_5]
    compiled = [torch.compile(layer) for layer in layers]

    def step(layer):
        x = torch.randn(8 * world_size, 16, requires_grad=True)
        w = torch.randn(16, 16, requires_grad=True)
        compiled[layer](x, w).sum().backward()

    order = [0, 1, 2, 3, 4, 5]
    with record_and_log_graph_execution_order():
        for layer in order:
            step(layer)
        # The last two hold one collective and none, so nobody waits for ever.
        if rank == ODD_RANK:
            order[4], order[5] = order[5], order[4]
        for layer in order:
            step(layer)
    dist.barrier()


def guard_miss(rank, world_size):
    import torch

    def pool(x):
        return torch.nn.functional.adaptive_avg_pool2d(x, [5, 7])

    size = (9, 10) if rank == ODD_RANK else (8, 9)
    torch.compile(pool, dynamic=True)(torch.randn(1, 64, *size))


def run_rank(mode, rank, world_size, rendezvous):
    import torch

    torch.set_num_threads(1)
    init(rank, world_size, rendezvous)
    {"train": train, "guard_miss": guard_miss}[mode](rank, world_size)
    import torch.distributed as dist

    dist.destroy_process_group()


def spawn(mode, rank, world_size, rendezvous, environment):
    return subprocess.Popen([sys.executable, __file__, "--rank", mode, str(rank), str(world_size), rendezvous],
                            env={**os.environ, **environment, "RANK": str(rank), "WORLD_SIZE": str(world_size)})


def main():
    if sys.argv[1:2] == ["--rank"]:
        run_rank(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
        return 0
    if len(sys.argv) < 3 or sys.argv[1] not in ("train", "guard_miss"):
        sys.exit(__doc__)
    mode, directory = sys.argv[1], os.path.abspath(sys.argv[2])
    world_size = int(sys.argv[3]) if len(sys.argv) > 3 else 4
    os.makedirs(directory, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        environment = {"TORCH_TRACE": directory, "TORCHINDUCTOR_CACHE_DIR": scratch + "/cache"}
        if mode == "guard_miss":
            warm = {**environment, "TORCH_TRACE": scratch + "/warm"}
            if spawn(mode, 0, 1, scratch + "/rendezvous_warm", warm).wait() != 0:
                sys.exit("record_job: filling the cache failed")
        ranks = []
        for rank in range(world_size):
            # Stores of their own: else it depends on the moment which rank finds what another has just stored.
            own = {} if mode == "guard_miss" else {"TORCHINDUCTOR_CACHE_DIR": f"{scratch}/cache_{rank}"}
            ranks.append(spawn(mode, rank, world_size, scratch + "/rendezvous", {**environment, **own}))
        if any([rank.wait() != 0 for rank in ranks]):
            sys.exit("record_job: a rank failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
