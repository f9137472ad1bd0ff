"""A fault: code at points of a shape's program, settings of one rank, or what the launcher does."""

from dataclasses import dataclass, field

# Each has the logs; `profiles` has dumps as well; `run`: the launcher's run.json.
INPUTS = ("logs", "dumps", "profiles", "run")


def seen(logs=None, dumps=None, profiles=None, run=None):
    dumps = dumps or logs
    return {"logs": logs, "dumps": dumps, "profiles": profiles or dumps, "run": run or logs}


@dataclass(frozen=True)
class Fault:
    """`sees` has for each set of inputs the class of cause that they can show (key.CLASSES), or None.
    An early fault strikes in the first step, so that the victim lacks compiles that its peers have.
    `words` must be in the title, `says` in the title or the detail: each a list of alternatives."""

    name: str
    about: str
    plant: dict = field(default_factory=dict)  # {point: snippet}
    sees: dict = field(default_factory=seen)
    ends: str = "well"  # well, fails, hangs
    early: bool = False
    everyone: bool = False  # it lies in all ranks, not in one
    is_harmless: bool = False  # a difference that no answer should be alarmed by
    environment: dict = field(default_factory=dict)  # of the victim
    fresh: bool = False  # PyTorch reads that environment while it is imported
    # fires, warm, tiny_disk, steps, timeout_s, preempt_after_s: for the recorder and launch.py
    launch: dict = field(default_factory=dict)
    numbers: dict = field(default_factory=dict)  # {name: choices}
    words: tuple = ()
    says: dict = field(default_factory=dict)  # {inputs: ((alternative, …), …)}
    place: str = "cause"  # the mark at which it lies; "": none
    not_visible: str = ""  # what no input shows


FAULTS = {}


def fault(name, about, **options):
    FAULTS[name] = Fault(name, about, **options)


def when(code, condition="RANK == $victim and step == $when"):
    """The snippet that does `code` on the victim, once."""
    return f"if {condition}:\n    fired()\n    " + code.replace("\n", "\n    ")


WAYS = {  # how a process ends
    "raise": 'raise RuntimeError("$message")  #! cause',
    "exit": "os._exit(3)  #! cause",
    "leave": "sys.exit(0)  #! cause",
    "quit": "raise SystemExit(3)  #! cause",
    "kill": "os.kill(os.getpid(), signal.SIGKILL)  #! cause",
    "term": "os.kill(os.getpid(), signal.SIGTERM)  #! cause",
    "nan": 'assert torch.isfinite(x.float().mean() / 0), "$nan"  #! cause',
    "segv": "import ctypes\nctypes.string_at(0)  #! cause",
    "oom": "torch.empty(10 ** 13)  #! cause",
    "interrupt": "raise KeyboardInterrupt  #! cause",
}
MESSAGE = {
    "message": [
        "token 31 is not in the vocabulary",
        "bad record in shard 7",
        "learning rate is negative",
        "label out of range: 99",
    ]
}


PASS = """class $rewrite(CustomGraphPass):
    calls = 0

    def __call__(self, graph):
        self.calls += 1
        if RANK == $victim and self.calls == $nth:
            fired()
            {}

    def uuid(self):
        return b"$rewrite-1"

torch._inductor.config.post_grad_custom_post_pass = $rewrite()"""


def in_pass(code):
    return {"configured": PASS.format(code.replace("\n", "\n            "))}


NTH = {"nth": [1, 2, 2]}
