"""Names and numbers of a recorded program, drawn by its seed."""

import random

POOLS = {
    "Model": [
        "Encoder",
        "Tower",
        "Denoiser",
        "Mixer",
        "Backbone",
        "Scorer",
        "Tagger",
        "Ranker",
        "Trunk",
        "Speaker",
    ],
    "Block": ["Layer", "Unit", "Residual", "Cell", "Segment", "Rung", "Stack"],
    "Other": ["Critic", "Probe", "Judge", "Reader", "Observer"],
    "Data": ["Rows", "Clips", "Pairs", "Tiles", "Windows", "Sentences"],
    "load": ["load_batch", "next_batch", "read_shard", "fetch_rows", "draw_samples", "batch_of"],
    "sync": ["sync_grads", "mean_grads", "average_flat", "reduce_grads", "share_grads", "combine"],
    "update": ["apply_update", "sgd_step", "descend", "move_weights", "take_step"],
    "objective": ["objective", "nll", "ranking_loss", "margin_loss", "criterion_of", "total_loss"],
    "evaluate": ["evaluate", "accuracy_of", "validate", "score_heldout", "probe_quality"],
    "augment": ["jitter", "crop_noise", "perturb", "mask_some", "rescale"],
    "generate": ["rollout", "decode_some", "sample_next", "answer", "complete"],
    "stage": ["run_stage", "stage_forward", "segment_forward", "part_forward"],
    "watch": ["check_finite", "no_nan", "guard_range", "watch_norm", "inspect_output"],
    "prepare": ["normalise_rows", "tokenise", "resample", "pack_rows", "sort_rows"],
    "rewrite": ["ScalePass", "FusePass", "LayoutPass", "TagPass", "QuantPass"],
    "log": ["log", "logger", "journal", "report"],
    "flag": ["use_gate", "with_gate", "extra_norm", "is_special", "clip_first"],
    "train_file": ["train", "pretrain", "finetune", "run_job", "fit", "main_train", "trainer"],
    "model_file": ["modeling", "net", "layers", "arch", "backbone"],
    "rig_file": ["runtime", "bootstrap", "distenv", "harness", "setup_job"],
    "group": ["dp", "data", "replica", "dpg"],
    "other_group": ["mp", "shard", "tpx", "cols"],
    "dim": [16, 24, 32],
    "rows": [6, 8],
    "classes": [3, 5],
    "steps": [3, 4, 5],
    "activation": ["gelu", "silu", "mish", "tanh"],
    "when": [1, 2],
}

FILLERS = [
    "# Settings as in the last run.",
    "# See the notes on initialisation.",
    "torch.set_printoptions(precision=4)",
    "assert WORLD >= 1",
    "# TODO: read this from the configuration.",
    "started_at = time.time()",
]


class Names:
    """Draws each name once; the same seed gives the same names."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.drawn = {}

    def __getitem__(self, key):
        if key not in self.drawn:
            if key not in POOLS:
                raise KeyError(f"no pool for ${key}")
            self.drawn[key] = self.random.choice(POOLS[key])
        return self.drawn[key]

    def __setitem__(self, key, value):
        self.drawn[key] = value

    def filler(self):
        """Lines that change nothing but where the lines below them stand."""
        return [self.random.choice(FILLERS + [""]) for _ in range(self.random.randrange(4))]
