"""Compiled autograd: the backward of an eager and of a compiled forward."""
import torch
import truth

torch.manual_seed(0)


def main():
    import torch._dynamo.compiled_autograd as compiled_autograd

    w = torch.randn(8, 8, requires_grad=True)

    def backward_only():
        with compiled_autograd._enable(torch.compile(backend="inductor")):
            (torch.randn(4, 8) @ w).sum().backward()

    def both():
        with torch._dynamo.config.patch(compiled_autograd=True):
            def step(x):
                loss = (x @ w @ w).sum()
                loss.backward()
                return loss
            torch.compile(step)(torch.randn(4, 8))

    if hasattr(compiled_autograd, "_enable"):
        truth.run("of an eager forward", backward_only)
    else:
        truth.lacks("compiled_autograd._enable")
    truth.run("of a compiled step", both)
    truth.write()


main()
