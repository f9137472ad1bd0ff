"""Faults that make a rank differ: options, inputs, graphs, caches; and what all ranks do wrong."""

from fault import fault, seen

# A rank that differs.
fault(
    "config_code",
    "the victim sets an option of Inductor",
    sees=seen("config"),
    place="",
    launch={"fires": False},
    words=(("$option",),),
    plant={"configured": "if RANK == $victim:\n    torch._inductor.config.$option = $setting"},
    numbers={
        "option,setting": [
            ("max_fusion_size", "13"),
            ("epilogue_fusion", "False"),
            ("realize_reads_threshold", "3"),
            ("split_reductions", "False"),
            ("reorder_for_locality", "False"),
        ]
    },
)
fault(
    "config_env",
    "the environment of the victim sets an option",
    sees=seen("config"),
    place="",
    fresh=True,
    launch={"fires": False},
    words=(("$option",),),
    environment={"$variable": "$setting"},
    numbers={
        "variable,setting,option": [
            ("TORCHINDUCTOR_SHAPE_PADDING", "0", "shape_padding"),
            ("TORCHINDUCTOR_COMPREHENSIVE_PADDING", "0", "comprehensive_padding"),
            ("TORCHINDUCTOR_LAYOUT_OPTIMIZATION", "0", "layout_optimization"),
        ]
    },
)
fault(
    "matmul_precision",
    "the victim sets another precision of matrix products",
    sees=seen("config"),
    place="",
    launch={"fires": False},
    words=(("matmul", "precision"),),
    plant={"configured": 'if RANK == $victim:\n    torch.set_float32_matmul_precision("high")  #! cause'},
)
fault(
    "other_backend",
    "the victim compiles with another backend",
    sees=seen("backend"),
    place="",
    launch={"fires": False},
    plant={
        "configured": 'if RANK == $victim:\n    torch.compile = functools.partial(torch.compile, backend="aot_eager")  #! cause'
    },
)
fault(
    "deterministic",
    "the victim asks for deterministic algorithms",
    sees=seen("config"),
    place="",
    launch={"fires": False},
    words=(("determinis",),),
    plant={"configured": "if RANK == $victim:\n    torch.use_deterministic_algorithms(True)  #! cause"},
)
fault(
    "other_shape",
    "the victim's batches have other sizes",
    sees=seen("input"),
    place="",
    plant={"tweak": "if RANK == $victim:\n    fired()\n    $crop  #! cause"},
)
fault(
    "other_layout",
    "the victim's batches have another layout",
    sees=seen("input"),
    place="",
    plant={"tweak": "if RANK == $victim:\n    fired()\n    x = x.t().contiguous().t()  #! cause"},
)
fault(
    "eval_mode",
    "the victim's model is in evaluation mode until the first evaluation",
    sees=seen("graph"),
    place="",
    launch={"fires": False},
    plant={"built": "if RANK == $victim:\n    net.eval()  #! cause"},
)
fault(
    "other_size_later",
    "the victim's batches have other sizes after the first step",
    sees=seen("recompile"),
    place="",
    plant={"tweak": "if RANK == $victim and step > 0:\n    fired()\n    $crop  #! cause"},
)
fault(
    "other_branch",
    "the victim takes another branch in the compiled function",
    sees=seen("graph"),
    launch={"fires": False},
    plant={"forward_in": "if RANK == $victim:\n    h = h * torch.sigmoid(h)  #! cause"},
)
fault(
    "autocast_off",
    "the victim runs without autocast",
    sees=seen("graph"),
    launch={"fires": False},
    place="",
    plant={"setup": "use_amp = RANK != $victim  #! cause"},
)
fault(
    "graph_break_one",
    "the victim prints a value in the compiled function",
    sees=seen("graph_break_divergence"),
    launch={"fires": False},
    plant={"forward_in": 'if RANK == $victim:\n    print("mean", h.mean().item())  #! cause'},
)
fault(
    "graph_break_all",
    "all ranks print a value in the compiled function",
    sees=seen("graph_break"),
    everyone=True,
    launch={"fires": False},
    plant={"forward_in": 'print("mean", h.mean().item())  #! cause'},
)
COUNTER = 'self.seen = getattr(self, "seen", 0) + 1  #! cause\nh = h * float(self.seen)  #! cause'
fault(
    "recompile_storm",
    "a counter in the module: every step is compiled again, up to the limit",
    sees=seen("recompile_limit"),
    everyone=True,
    launch={"fires": False, "steps": 11},
    plant={"forward_in": COUNTER},
)
fault(
    "recompile_one",
    "a counter in the module of the victim: it compiles every step again",
    sees=seen("recompile"),
    launch={"fires": False, "steps": 7},
    plant={"forward_in": "if RANK == $victim:\n    " + COUNTER.replace("\n", "\n    ")},
)
fault(
    "cold_cache",
    "the caches of all ranks but the victim are filled",
    sees=seen("cold"),
    place="",
    launch={"fires": False, "warm": True},
)
fault(
    "eager_rank",
    "the victim runs eagerly: TORCHDYNAMO_DISABLE=1",
    sees=seen("missing", "eager"),
    place="",
    fresh=True,
    launch={"fires": False},
    environment={"TORCHDYNAMO_DISABLE": "1"},
    says={
        "dumps": (("eager", "TORCHDYNAMO_DISABLE", "compiles nothing", "compiled nothing"),),
        "profiles": (("eager", "TORCHDYNAMO_DISABLE", "compiles nothing", "compiled nothing"),),
    },
)
fault(
    "compile_disabled",
    "the victim runs eagerly: TORCH_COMPILE_DISABLE=1",
    sees=seen("missing", "eager"),
    place="",
    fresh=True,
    launch={"fires": False},
    environment={"TORCH_COMPILE_DISABLE": "1"},
)
fault(
    "other_threads",
    "the environment of the victim gives it another number of threads",
    sees=seen("config"),
    place="",
    fresh=True,
    launch={"fires": False},
    words=(("thread",),),
    environment={"OMP_NUM_THREADS": "2"},
)
fault(
    "no_trace",
    "the victim writes no log: TORCH_TRACE is not set there",
    sees=seen("missing"),
    place="",
    launch={"fires": False},
    environment={"TORCH_TRACE": None},
)
fault(
    "hash_seed",
    "the environment of the victim sets PYTHONHASHSEED, those of the others do not: no fault",
    place="",
    fresh=True,
    launch={"fires": False},
    environment={"PYTHONHASHSEED": "7"},
    is_harmless=True,
)
