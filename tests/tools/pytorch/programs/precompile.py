"""Compiled code that is kept for another process. usage: precompile.py first|second FOLDER

Three ways, as far as the version has them: the bundle of torch.compiler.save_cache_artifacts, entries of dynamo's own cache
(caching_precompile), and a function compiled ahead of time (aot_compile).
"""
import os
import sys

import torch
import truth

torch.manual_seed(0)


def project(x, w):
    return (x @ w).sin()


def bundle(mode, folder):
    path = os.path.join(folder, "bundle")
    if mode == "second" and os.path.exists(path):
        with open(path, "rb") as file:
            torch.compiler.load_cache_artifacts(file.read())
    torch.compile(project)(torch.randn(4, 8), torch.randn(8, 8))
    saved = torch.compiler.save_cache_artifacts()
    if mode == "first" and saved is not None:
        with open(path, "wb") as file:
            file.write(saved[0])


def own_cache():
    with torch._dynamo.config.patch(caching_precompile=True):
        torch.compile(lambda x: x @ x.t())(torch.randn(4, 4))


def ahead(mode, folder):
    path = os.path.join(folder, "ahead")
    example = torch.randn(4, 8), torch.randn(8, 8)
    if mode == "first":
        compiled = torch.compile(project, fullgraph=True).aot_compile((example, {}))
        compiled.save_compiled_function(path)
    elif os.path.exists(path):
        with open(path, "rb") as file:
            torch.compiler.load_compiled_function(file)(*example)


def main(mode, folder):
    os.makedirs(folder, exist_ok=True)
    if hasattr(torch.compiler, "save_cache_artifacts"):
        truth.run("bundle", lambda: bundle(mode, folder))
    else:
        truth.lacks("save_cache_artifacts")
    if hasattr(torch._dynamo.config, "caching_precompile"):
        truth.run("own cache", own_cache)
    else:
        truth.lacks("caching_precompile")
    if hasattr(torch.compiler, "load_compiled_function"):
        truth.run("ahead of time", lambda: ahead(mode, folder))
    else:
        truth.lacks("aot_compile")
    truth.write()


main(sys.argv[1], sys.argv[2])
