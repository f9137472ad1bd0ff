"""A model that is trained, with a recompile, a graph break and a failure."""
import torch
import truth

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(16, 16)
        self.outer = torch.nn.Linear(16, 4)

    def forward(self, x):
        return self.outer(torch.relu(self.inner(x)))


@torch.compile
def speaks(x):
    y = x * 2
    print("graph break")
    return y + 1


@torch.compile(fullgraph=True)
def branches(x):
    return x + 1 if x.sum() > 0 else x - 1


def main():
    net = Net()
    compiled = torch.compile(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for size in (8, 8, 12):  # the third is a recompile with dynamic sizes
        truth.run(f"step of {size}", lambda size=size: compiled(torch.randn(size, 16)).sum().backward())
        optimizer.step()
        optimizer.zero_grad()
    truth.run("graph break", lambda: speaks(torch.randn(8)))
    truth.run("branch on data, fullgraph", lambda: branches(torch.randn(8)), fails=True)
    truth.write()


main()
