"""Faults that end a rank: in a compile, or in its own code between compiles."""

from fault import MESSAGE, NTH, WAYS, fault, in_pass, seen, when

# A rank that ends in a compile.
fault(
    "raise_in_pass",
    "a pass of Inductor raises on the victim",
    plant=in_pass('raise RuntimeError("$message")  #! cause'),
    sees=seen("compile_failed"),
    ends="fails",
    numbers={**NTH, **MESSAGE},
    words=(("$message",),),
    place="",
)
fault(
    "kill_in_pass",
    "the victim is killed in a pass of Inductor",
    plant=in_pass(WAYS["kill"]),
    sees=seen("ended"),
    ends="fails",
    numbers=NTH,
    place="",
)
fault(
    "segv_in_pass",
    "the victim gets SIGSEGV in a pass of Inductor",
    plant=in_pass(WAYS["segv"]),
    sees=seen("ended"),
    ends="fails",
    numbers=NTH,
    place="",
)
fault(
    "exit_in_pass",
    "the victim exits in a pass of Inductor",
    plant=in_pass(WAYS["exit"]),
    sees=seen("ended"),
    ends="fails",
    numbers=NTH,
    place="",
)
fault(
    "hang_in_pass",
    "a pass of Inductor never ends on the victim",
    plant=in_pass("while True:\n    time.sleep(1)  #! cause"),
    sees=seen("ended"),
    ends="hangs",
    numbers=NTH,
    place="",
)
fault(
    "alarm_in_pass",
    "an alarm ends the victim in a pass of Inductor that takes too long",
    plant=in_pass("signal.alarm(3)\ntime.sleep(60)  #! cause"),
    sees=seen("ended"),
    ends="fails",
    numbers=NTH,
    place="",
)
fault(
    "raise_traced",
    "the compiled function raises on the victim, while it is traced",
    plant={"forward_in": 'if RANK == $victim:\n    raise ValueError("$message")  #! cause'},
    sees=seen("compile_failed_or_ended"),
    ends="fails",
    numbers=MESSAGE,
    launch={"fires": False},
)
fault(
    "compiler_killed",
    "the C++ compiler of the victim is killed",
    environment={"CXX": "/rec/cxx_killed"},
    sees=seen("compile_failed"),
    ends="fails",
    words=(("CppCompileError", "C++ compile", "compiler"),),
    place="",
    launch={"fires": False},
)
fault(
    "compiler_missing",
    "the victim's host has no C++ compiler",
    environment={"CXX": "/opt/none/g++"},
    sees=seen("compile_failed"),
    ends="fails",
    words=(("InvalidCxxCompiler", "No working C++ compiler"),),
    place="",
    launch={"fires": False},
    fresh=True,
)
fault(
    "disk_full",
    "the victim's caches and temporary files are on a full disk",
    sees=seen("compile_failed"),
    ends="fails",
    words=(("No space left",),),
    place="",
    launch={"fires": False, "tiny_disk": True},
)

fault(
    "wrong_dtype",
    "the victim's batches have a type that its weights do not have",
    plant={"tweak": "if RANK == $victim:\n    fired()\n    x = x.double()  #! cause"},
    sees=seen("compile_failed"),
    ends="fails",
    place="",
)
fault(
    "wrong_dtype_later",
    "a later batch of the victim has a type that its weights do not have",
    plant={"tweak": when("x = x.double()  #! cause")},
    sees=seen("compile_failed"),
    ends="fails",
    place="",
)

# A rank that ends between compiles.
for way, point in (
    ("raise", "after_forward"),
    ("exit", "before_sync"),
    ("kill", "before_sync"),
    ("segv", "after_forward"),
    ("oom", "after_forward"),
    ("kill", "after_backward"),
    ("raise", "after_backward"),
    ("exit", "after_forward"),
    ("leave", "after_forward"),
    ("leave", "before_sync"),
    ("quit", "after_forward"),
    ("raise", "serving"),
    ("raise", "saving"),
    ("kill", "packing"),
    ("raise", "before_dispatch"),
    ("kill", "after_play"),
    ("raise", "after_teacher"),
    ("term", "after_forward"),
    ("nan", "after_forward"),
    ("interrupt", "after_forward"),
    ("kill", "scoring"),
):
    fault(
        f"{way}_{point}",
        f"the victim ends in its own code ({way}) at `{point}` of the first step",
        ends="fails",
        early=True,
        sees=seen("ended"),
        plant={
            point: when(
                WAYS[way],
                "RANK == $victim" if point in ("saving", "scoring", "serving", "packing") else "RANK == $victim and step == $when",
            )
        },
        numbers={**MESSAGE, "nan": ["loss is not finite", "nan in the input"]},
        place="",
        not_visible="how and where the process ended",
    )
for way in ("raise", "kill", "leave", "quit"):
    fault(
        f"{way}_late",
        f"the victim ends in its own code ({way}) after all compiles",
        plant={"after_forward": when(WAYS[way])},
        ends="fails",
        sees=seen(None, "ended", run="ended"),
        numbers=MESSAGE,
        place="",
        not_visible="logs: all ranks have compiled everything",
    )
fault(
    "state_mismatch",
    "the victim restores a checkpoint of a model of another width",
    ends="fails",
    early=True,
    sees=seen("ended"),
    plant={
        "restoring": when(
            "net.load_state_dict({name: value.new_zeros([size + 1 for size in value.shape]) for name, value in saved.items()})  #! cause",
            "RANK == $victim",
        )
    },
    place="",
    not_visible="how and where the process ended",
)
fault(
    "hook_raises",
    "a forward hook of the victim raises",
    ends="fails",
    sees=seen("ended"),
    place="",
    plant={
        "hooked": 'def $watch(module, args, out):\n    if RANK == $victim:\n        fired()\n        raise FloatingPointError("loss is nan")  #! cause\n\nmodel.register_forward_hook($watch)'
    },
)
fault(
    "backward_hook_raises",
    "a hook of the victim's loss raises before the backward is compiled",
    ends="fails",
    sees=seen("ended"),
    place="",
    plant={
        "after_forward": 'def $watch(grad):\n    if RANK == $victim:\n        fired()\n        raise FloatingPointError("gradient is nan")  #! cause\n\nloss.register_hook($watch)'
    },
)
fault(
    "gradient_hook_raises",
    "a hook of a parameter's gradient raises on the victim, while the backward runs",
    ends="fails",
    early=True,
    sees=seen("ended"),
    place="",
    plant={
        "setup": 'def $watch(grad):\n    if RANK == $victim:\n        fired()\n        raise FloatingPointError("gradient is nan")  #! cause\n\nlist(net.parameters())[-1].register_hook($watch)'
    },
)
fault(
    "worker_raises",
    "a loader worker of the victim raises",
    ends="fails",
    sees=seen("ended"),
    plant={"item": when('raise ValueError("$message")  #! cause', "RANK == $victim")},
    numbers=MESSAGE,
    place="",
)
fault(
    "worker_killed",
    "a loader worker of the victim is killed",
    ends="fails",
    sees=seen("ended"),
    plant={"item": when(WAYS["kill"], "RANK == $victim")},
    place="",
)
fault(
    "worker_hangs",
    "a loader worker of the victim never ends with an item",
    ends="hangs",
    sees=seen("ended"),
    plant={"item": when("while True:\n    time.sleep(1)  #! cause", "RANK == $victim")},
    place="",
)
fault(
    "preempted",
    "the scheduler ends all ranks while they compile: no rank is at fault",
    plant={"setup": when("pass", "RANK == $victim")},
    sees=seen("preempted"),
    ends="fails",
    everyone=True,
    launch={"preempt_after_s": 2.0},
    place="",
)
