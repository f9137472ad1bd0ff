#!/usr/bin/env python3
"""Compiles a small classifier into an AOTInductor package, for libtrace_example_aoti.

usage: aoti_export.py PACKAGE.pt2

Needs PyTorch >= 2.6 of the same version as the libtorch that loads the package, and a C++ compiler.
"""
import os
import sys

# Kernels tell the profiler when they run, and (2.8 and newer) the package says which nodes they come from.
os.environ.setdefault("TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE", "1")
os.environ.setdefault("INDUCTOR_PROVENANCE", "1")

import torch


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Linear(16, 32)
        self.output = torch.nn.Linear(32, 8)

    def forward(self, x):
        h = torch.relu(self.hidden(x))
        h = h * torch.sigmoid(h) + 1.0
        return torch.softmax(torch.tanh(self.output(h)) * 2.0, dim=-1)


def main(path):
    torch.manual_seed(0)
    model = Classifier().eval()
    with torch.no_grad():
        program = torch.export.export(model, (torch.randn(4, 16),))
        torch._inductor.aoti_compile_and_package(
            program, package_path=path, inductor_configs={"cpp.enable_kernel_profile": True})


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(os.path.abspath(sys.argv[1]))
