"""What a program counts itself, beside its log: one JSON file a process in the folder that TRUTH names.

The compiles are PyTorch's own numbers of frames (the ids are made from them), not records of a log; the lookups are the counters of its
caches. Programs never call torch._dynamo.reset(), which sets these numbers back.
"""
import json
import os
import sys

FOLDER = os.environ.get("TRUTH", ".")


def rank():
    return int(os.environ.get("RANK", "0"))


_outcomes = {}
_lacks = []


def run(label, function, fails=False):
    """Calls `function`; an exception must come exactly where the program plants one. Returns what it returns."""
    try:
        result = function()
    except Exception as error:  # any: a planted failure has a type of its own in each version
        _outcomes[label] = {"fails": fails, "raised": type(error).__name__, "text": str(error).strip()[:300]}
        if not fails:
            print(f"truth: {label}: {type(error).__name__}: {str(error)[:2000]}", file=sys.stderr)
        return None
    _outcomes[label] = {"fails": fails, "raised": None}
    return result


def lacks(feature):
    """This version of PyTorch does not have it: the program goes on without."""
    _lacks.append(feature)


def frame_compiles():
    from torch._dynamo.convert_frame import FRAME_COMPILE_COUNTER

    return sum(FRAME_COMPILE_COUNTER.values())


def _autograd_compiles():
    """Compiles of compiled autograd, where the version counts them; reading the counter moves it."""
    import torch._dynamo.compiled_autograd as compiled_autograd

    if not hasattr(compiled_autograd, "COMPILE_COUNTER"):
        return 0
    return next(compiled_autograd.COMPILE_COUNTER)


def write(**more):
    """Writes the file; `more` are counts of the program's own."""
    import torch
    from torch._dynamo.utils import counters

    caches = {f"{layer}.{name}": count for layer in ("inductor", "aot_autograd") for name, count in counters[layer].items()
              if "cache" in name}
    with open(os.path.join(FOLDER, f"truth_{rank()}_{os.getpid()}.json"), "w") as file:
        json.dump({"torch": torch.__version__, "git": torch.version.git_version, "cuda": torch.version.cuda, "python": sys.version.split()[0],
                   "rank": rank(), "pid": os.getpid(), "frame_compiles": frame_compiles(), "autograd_compiles": _autograd_compiles(),
                   "graph_breaks": sum(counters["graph_break"].values()), "caches": caches, "outcomes": _outcomes, "lacks": _lacks,
                   **more}, file, indent=1, sort_keys=True)
        file.write("\n")
