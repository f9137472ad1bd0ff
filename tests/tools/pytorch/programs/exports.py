"""torch.export: static, dynamic, strict, a draft, and one that fails on data."""
import torch
import truth


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x):
        return torch.softmax(self.linear(x), -1)


class Branches(torch.nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x


class Slices(torch.nn.Module):
    def forward(self, n, x):
        return torch.ops.compat.halved(x[: n.item()])


@torch.library.custom_op("compat::halved", mutates_args=())
def halved(x: torch.Tensor) -> torch.Tensor:  # has no fake kernel
    return x / 2


def main():
    x = torch.randn(4, 8)
    rows = torch.export.Dim("rows", min=1, max=64)
    truth.run("static", lambda: torch.export.export(Net(), (x,)))
    truth.run("dynamic", lambda: torch.export.export(Net(), (x,), dynamic_shapes=({0: rows},)).run_decompositions())
    truth.run("strict", lambda: torch.export.export(Net(), (x,), strict=True))
    truth.run("branch on data", lambda: torch.export.export(Branches(), (x,)), fails=True)
    counted = truth.frame_compiles()  # a draft has a log of its own
    try:
        from torch.export import draft_export
    except ImportError:
        try:
            from torch.export._draft_export import draft_export
        except ImportError:
            draft_export = None
    if draft_export is None:
        truth.lacks("draft_export")
    else:
        truth.run("draft", lambda: draft_export(Slices(), (torch.tensor(3), torch.randn(10, 3))))
    truth.write(frame_compiles=counted)


main()
