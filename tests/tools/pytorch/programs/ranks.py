"""Four ranks of gloo, trained. usage: ranks.py ddp|fsdp2 FOLDER (of the dumps)

Matrix products without bias or activation: the graphs call what is compiled already, so that no rank waits for a C++ compiler.
"""
import sys

import forked
import recorder
import torch
import torch.distributed as dist
import truth

torch.manual_seed(0)
torch.set_num_threads(1)


class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width, bias=False) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def ddp():
    # Each layer is larger than the first bucket (1 MB): DDP's optimizer splits the graph.
    return torch.nn.parallel.DistributedDataParallel(Net(576), bucket_cap_mb=1), 576


def fsdp2():
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        from torch.distributed._composable.fsdp import fully_shard
    net = Net(64)
    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in net.layers:
        fully_shard(layer, mesh=mesh)
    return fully_shard(net, mesh=mesh), 64


def graph_order():
    """Logs the order in which graphs run, where the version can."""
    import contextlib

    import torch._inductor.config as inductor_config
    import torch._inductor.debug as debug

    if hasattr(inductor_config, "log_tlparse"):
        inductor_config.log_tlparse = True
    if hasattr(debug, "record_and_log_graph_execution_order"):
        return debug.record_and_log_graph_execution_order()
    truth.lacks("record_and_log_graph_execution_order")
    return contextlib.nullcontext()


def gathered(width):
    """A collective inside a graph, by PyTorch's functional ones."""
    import torch.distributed._functional_collectives as functional

    def gather(x, w):
        return functional.all_gather_tensor(x @ w, 0, dist.group.WORLD)

    torch.compile(gather)(torch.randn(4, width), torch.randn(width, width))


def main(mode, folder):
    dist.init_process_group("gloo")
    with graph_order():
        net, width = {"ddp": ddp, "fsdp2": fsdp2}[mode]()
        compiled = torch.compile(net)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            truth.run("step", lambda: compiled(torch.randn(4, width)).sum().backward())
            truth.run("optimizer", optimizer.step)
            optimizer.zero_grad()
        truth.run("gather", lambda: gathered(64))
    dist.barrier()
    truth.write(dumps=recorder.dump(folder))
    dist.barrier()
    dist.destroy_process_group()


forked.run(lambda: main(sys.argv[1], sys.argv[2]))
