"""An AOTInductor package with provenance, loaded and run."""
import os
import sys

import torch
import torch._inductor
import torch._inductor.config as inductor_config
import truth

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.linear(x).relu()


def trace_provenance():
    for owner, name, value in ((inductor_config.trace, "provenance_tracking_level", 1), (inductor_config.trace, "provenance_tracking", True),
                               (inductor_config.trace, "enabled", True)):
        if hasattr(owner, name):
            setattr(owner, name, value)
            return
    truth.lacks("provenance tracking")


def main(path):
    trace_provenance()
    if hasattr(inductor_config, "cpp_cache_precompile_headers"):  # compiling these takes longer than all the rest
        inductor_config.cpp_cache_precompile_headers = False
    example = torch.randn(4, 8)
    with torch.no_grad():
        rows = torch.export.Dim("rows", min=1, max=1024)
        program = torch.export.export(Net().eval(), (example,), dynamic_shapes=({0: rows},))
        package = truth.run("compile", lambda: torch._inductor.aoti_compile_and_package(program, package_path=path))
        truth.run("load and run", lambda: torch._inductor.aoti_load_package(package)(torch.randn(7, 8)))
    truth.write(packages=int(package is not None and os.path.getsize(path) > 0))


main(sys.argv[1])
