"""Faults that make ranks wait: a slow rank, one that hangs, one that calls other collectives."""

from fault import NTH, fault, in_pass, seen, when

# A rank that makes the others wait.
fault(
    "slow_loader",
    "the victim takes long to load each batch",
    place="",
    plant={"batch": "if RANK == $victim:\n    fired()\n    time.sleep($pause)  #! cause"},
    sees=seen(dumps="straggler"),
    numbers={"pause": [0.35, 0.45, 0.6, 0.8]},
    says={"profiles": (("$load", "loader", "load"),)},
    not_visible="logs alone do not show run time",
)
fault(
    "slow_compute",
    "the victim works on each batch for long before its forward",
    place="",
    sees=seen(dumps="straggler"),
    plant={
        "setup": "def $prepare(t):\n    until = time.perf_counter() + $pause\n    while time.perf_counter() < until:\n        t = t + torch.randn(48, 48).mm(torch.randn(48, 48)).mean() * 0  #! cause\n    return t",
        "tweak": "if RANK == $victim:\n    fired()\n    x = $prepare(x)",
    },
    numbers={"pause": [0.35, 0.45, 0.6]},
    not_visible="logs alone do not show run time",
)
fault(
    "late_start",
    "the victim begins long after the others",
    plant={"setup": when("time.sleep($late)  #! cause", "RANK == $victim")},
    sees=seen("late"),
    numbers={"late": [22, 27, 33]},
    place="",
    not_visible="why it was late",
)
fault(
    "slow_pass",
    "a pass of Inductor takes long on the victim",
    plant=in_pass("time.sleep($late)  #! cause"),
    sees=seen("slow_compile"),
    numbers={"late": [24, 30, 38], **NTH},
    place="",
)
fault(
    "gloo_timeout",
    "the victim sleeps for longer than the others wait for a collective",
    plant={"before_sync": when("time.sleep(40)  #! cause")},
    sees=seen("ended"),
    ends="fails",
    early=True,
    launch={"timeout_s": 9},
    place="",
)
fault(
    "gloo_timeout_late",
    "the victim sleeps in a later step for longer than the others wait for a collective",
    plant={"before_sync": when("time.sleep(40)  #! cause")},
    sees=seen(None, "ended"),
    ends="fails",
    launch={"timeout_s": 9},
    place="",
    not_visible="logs: all ranks have compiled everything",
)
fault(
    "slow_saving",
    "the victim saves after each step, for long",
    place="",
    plant={"saving": "if RANK == $victim:\n    fired()\n    time.sleep($pause)  #! cause"},
    sees=seen(dumps="straggler"),
    numbers={"pause": [0.5, 0.7]},
    not_visible="logs alone do not show run time",
)
fault(
    "slow_learner",
    "the victim works for long on what it gathers",
    place="",
    plant={"after_backward": "if RANK == $victim:\n    fired()\n    time.sleep($pause)  #! cause"},
    sees=seen(dumps="straggler"),
    launch={"steps": 6},
    numbers={"pause": [0.5, 0.7]},
    not_visible="logs alone do not show run time",
)

# A rank that waits for something else than the others.
for point in ("before_sync", "after_forward"):
    fault(
        f"hang_{point}",
        f"the victim waits for a lock in its own code, at `{point}` of the first step",
        ends="hangs",
        early=True,
        sees=seen("ended"),
        place="",
        plant={point: when("lock = threading.Lock()\nlock.acquire()\nlock.acquire()  #! cause")},
        not_visible="in which line it waits",
    )
fault(
    "hang_before_outer",
    "the victim waits for a lock before the collective of all islands",
    ends="hangs",
    sees=seen(None, "ended"),
    place="",
    plant={"before_outer": when("lock = threading.Lock()\nlock.acquire()\nlock.acquire()  #! cause", "RANK == $victim")},
    not_visible="logs: all ranks have compiled everything",
)
fault(
    "hang_late",
    "the victim sleeps for ever in its own code, after all compiles",
    ends="hangs",
    sees=seen(None, "ended"),
    place="",
    plant={"before_sync": when("while True:\n    time.sleep(1)  #! cause")},
    not_visible="logs: all ranks have compiled everything",
)
fault(
    "skip_first",
    "the victim skips the first step's collective",
    ends="hangs",
    early=True,
    sees=seen(None, "collective"),
    place="",
    plant={"before_sync": when("net.zero_grad()\ncontinue  #! cause")},
    not_visible="logs: it compiles it a step later",
)
fault(
    "skip_late",
    "the victim skips a later step's collective",
    ends="hangs",
    sees=seen(None, "collective"),
    place="",
    plant={"before_sync": when("net.zero_grad()\ncontinue  #! cause")},
    not_visible="logs: all ranks have compiled everything",
)
fault(
    "twice_late",
    "the victim calls one more collective in a later step",
    ends="hangs",
    sees=seen(None, "collective"),
    place="",
    plant={"before_sync": when("dist.all_reduce(torch.ones(1))  #! cause")},
    not_visible="logs: all ranks have compiled everything",
)
fault(
    "uneven_data",
    "the victim has fewer batches than the others",
    ends="hangs",
    sees=seen(None, "collective"),
    place="",
    plant={"tweak": when("break  #! cause")},
    not_visible="logs: all ranks have compiled everything",
)
fault(
    "other_collective",
    "the victim's compiled function calls another collective",
    ends="hangs",
    sees=seen("collective"),
    launch={"fires": False},
    plant={
        "sync_in": "if RANK == $victim:\n    return fcol.all_gather_tensor(flat.reshape(-1), 0, $group_of_sync)[: flat.numel()]  #! cause"
    },
)
fault(
    "reordered",
    "the victim's compiled function calls two collectives in another order",
    ends="hangs",
    sees=seen("collective"),
    launch={"fires": False},
    plant={
        "sync_in": 'if RANK == $victim:\n    top = fcol.all_reduce(flat.amax(), "max", $group_of_sync)  #! cause\n    parts = fcol.all_gather_tensor(flat.amin().reshape(1), 0, $group_of_sync)  #! cause\n'
        'else:\n    parts = fcol.all_gather_tensor(flat.amin().reshape(1), 0, $group_of_sync)\n    top = fcol.all_reduce(flat.amax(), "max", $group_of_sync)\nflat = (flat - parts.mean()) / (top.abs() + 1)'
    },
)
fault(
    "extra_collective",
    "the victim alone calls a collective while it evaluates",
    ends="hangs",
    sees=seen(None, "collective"),
    place="",
    plant={"evaluating": when("dist.all_reduce(torch.ones(3))  #! cause", "RANK == $victim")},
    not_visible="logs: eager collectives are in no log",
)
fault(
    "fewer_evaluations",
    "the victim evaluates fewer batches than the others",
    ends="hangs",
    sees=seen(None, "collective"),
    place="",
    plant={"evaluating": when("break  #! cause", "RANK == $victim and part == 2")},
    not_visible="logs: eager collectives are in no log",
)
fault(
    "skip_send",
    "a stage does not send what the next one waits for",
    ends="hangs",
    sees=seen(None, None),
    place="",
    plant={"before_send": when("time.sleep(0.1)\ncontinue  #! cause")},
    not_visible="gloo's recorder has no entries for send and recv",
)
