#!/usr/bin/env python3
"""Compiles an AOTInductor package that calls an op of the tests' own, acme::twice, in both branches of a condition too.

usage: aoti_custom_ops.py PACKAGE.pt2
"""
import os
import sys

os.environ.setdefault("TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE", "1")
os.environ.setdefault("INDUCTOR_PROVENANCE", "1")

import torch

library = torch.library.Library("acme", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
library.impl("twice", lambda x: torch.empty_like(x), "Meta")


class Net(torch.nn.Module):
    def forward(self, x):
        y = torch.ops.acme.twice(x)
        return torch.cond(x.sum() > 0, lambda a: torch.ops.acme.twice(a) + 1, lambda a: torch.ops.acme.twice(a) - 1, (y,))


with torch.no_grad():
    program = torch.export.export(Net().eval(), (torch.ones(4),))
    torch._inductor.aoti_compile_and_package(program, package_path=os.path.abspath(sys.argv[1]),
                                             inductor_configs={"cpp.enable_kernel_profile": True})
