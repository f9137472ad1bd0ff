"""Dynamic sizes: declared, found by recompiling, from data, and one that the program contradicts."""
import torch
import truth

torch._dynamo.config.capture_scalar_outputs = True
torch._dynamo.config.capture_dynamic_output_shape_ops = True


@torch.compile(dynamic=True)
def scaled(x, y):
    return (x @ y) * x.shape[0]


@torch.compile
def automatic(x):
    return x.t() @ x


@torch.compile(fullgraph=True)
def from_data(x, n):
    size = n.item()
    torch._check(size >= 2)
    torch._check(size <= 64)
    return x.new_ones(size, 4) @ x


@torch.compile
def fixed(x):
    return x @ x.new_ones(5, 2) if x.shape[1] == 5 else x


def main():
    truth.run("dynamic=True", lambda: scaled(torch.randn(4, 6), torch.randn(6, 3)))
    for size in (5, 6, 7):
        truth.run(f"automatic {size}", lambda size=size: automatic(torch.randn(size, 4)))
    truth.run("size from data", lambda: from_data(torch.randn(4, 4), torch.tensor(9)))
    marked = torch.randn(3, 5)
    torch._dynamo.mark_dynamic(marked, 1)
    truth.run("marked dynamic, but specialized", lambda: fixed(marked), fails=True)
    truth.write()


main()
