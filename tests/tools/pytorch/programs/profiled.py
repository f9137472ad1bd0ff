"""A profile with memory, shapes and stacks beside the log. usage: profiled.py FILE"""
import sys

import torch
import truth
from torch.profiler import ProfilerActivity, profile

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(64, 64)
        self.outer = torch.nn.Linear(64, 4)

    def forward(self, x):
        return self.outer(torch.relu(self.inner(x)))


def main(path):
    net = Net()
    compiled = torch.compile(net)
    steps = 0

    def step():
        compiled(torch.randn(32, 64)).sum().backward()

    truth.run("compile", step)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_stack=True) as profiler:
        for _ in range(3):
            truth.run("profiled step", step)
            steps += 1
            profiler.step()
    profiler.export_chrome_trace(path)
    truth.write(graph_calls=2 * steps)  # forward and backward


main(sys.argv[1])
