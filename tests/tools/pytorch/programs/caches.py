"""Caches of FX graphs and AOTAutograd. usage: caches.py cold|warm|bypass|key

cold and warm are the same program, run twice with one cache folder; key has another value of an option, bypass what no key can hold.
"""
import sys

import torch
import torch._inductor.config as inductor_config
import truth

torch.manual_seed(0)


def project(x, w):
    return (x @ w).relu()


def main(mode):
    if mode == "key":
        inductor_config.max_fusion_size = 13
    compiled = torch.compile(project)
    w = torch.randn(8, 8, requires_grad=True)
    truth.run("forward and backward", lambda: compiled(torch.randn(4, 8), w).sum().backward())
    truth.run("dynamic", lambda: torch.compile(lambda x: x @ x.t(), dynamic=True)(torch.randn(3, 7)))
    if mode == "bypass":
        def unknown_pass(graph):
            return None

        with inductor_config.patch(post_grad_custom_post_pass=unknown_pass):
            truth.run("a pass without uuid", lambda: torch.compile(lambda x: x @ x)(torch.randn(8, 8)))
        with inductor_config.patch(freezing=True), torch.no_grad():
            truth.run("freezing", lambda: torch.compile(torch.nn.Linear(8, 8).eval())(torch.randn(4, 8)))
    truth.write()


main(sys.argv[1])
