"""Jobs whose recorder dumps nccl_dumps.py makes: pipelines, meshes, batches, a network that stands.

    python3 nccl_jobs.py DIR

writes the dumps of all into folders of DIR; `JOBS` has what was planted in each.
"""

import os
import sys

from nccl_dumps import Call, Group, Op, World, mesh, stand, wait, work

HANG_NS = 600_000_000_000


def site(function, file, line):
    frames = [(function, "/workspace/" + file, line)]
    return frames + [("main", "/workspace/train.py", 210), ("<module>", "/workspace/train.py", 240)]


FORWARD, BACKWARD = site("forward_step", "pipeline.py", 77), site("backward_step", "pipeline.py", 101)


def at_end(world):
    """Dumps ten minutes after the last event, as a timeout leaves them."""
    at_ns = world.last_ns() + HANG_NS
    return world, {rank.rank: at_ns for rank in world.ranks}


def at_part(world, *parts):
    """Dumps of a job that runs: each rank's at that part of its time, or all at the same."""
    span = world.last_ns() - world.begin_ns
    ranks = [rank.rank for rank in world.ranks]
    return world, {rank: world.begin_ns + int(span * parts[rank % len(parts)]) for rank in ranks}


def pipeline(stands=None, waits=True, size=100, steps=60, timing=False, everyone=False, stages=4, width=2):
    """Stages by width replicas. `waits`: the CPU waits for what it receives. Rank `stands` goes no further
    in the last step but two, before a send; `everyone`: a norm over all ranks ends each step."""
    groups, world = mesh((stages, width), ("pp", "dp")), Group("0", "default_pg", range(stages * width))

    def receive(rank, peer, place):
        yield Call("recv", groups[rank]["pp"], [8, 512], dtype="bf16", peer=peer, site=place)
        if waits:
            yield wait()

    def program(rank):
        pp, dp, stage = groups[rank]["pp"], groups[rank]["dp"], rank // width
        for step in range(steps):
            for micro in range(4):
                if stage > 0:
                    yield from receive(rank, rank - width, FORWARD)
                yield work(2)
                if rank == stands and step == steps - 3 and micro == 2:
                    yield stand()
                if stage < stages - 1:
                    yield Call("send", pp, [8, 512], dtype="bf16", peer=rank + width, site=FORWARD)
            for micro in range(4):
                if stage < stages - 1:
                    yield from receive(rank, rank + width, BACKWARD)
                yield work(4)
                if stage > 0:
                    yield Call("send", pp, [8, 512], dtype="bf16", peer=rank - width, site=BACKWARD)
            yield Call("all_reduce", dp, [1000 * (stage + 1)], site=site("finalize", "grads.py", 12))
            if everyone:
                yield Call("all_reduce", world, [1], site=site("clip_grad_norm", "grads.py", 40))
            yield wait()

    return World(stages * width, program, "2.9", size, timing=timing).run()


def tensor_parallel(fault=None, version="2.9", size=200, steps=60, late_ms=0, **options):
    """Eight ranks, data parallel by tensor parallel; rank 5 hangs, rank 4 has another type, rank 3 skips an
    all_reduce of two that are equal, or rank 6 is late."""
    groups = mesh((4, 2), ("dp", "tp"))

    def program(rank):
        dp, tp = groups[rank]["dp"], groups[rank]["tp"]
        for step in range(steps):
            yield work(10 + (late_ms if rank == 6 else 0))
            for _ in range(3):
                place = site("row_forward", "layers.py", 55)
                yield Call("all_reduce", tp, [4, 128, 256], dtype="bf16", site=place)
                yield work(3)
            if fault == "hang" and rank == 5 and step == steps - 10:
                yield stand()
            for bucket in range(2):
                if fault == "skip" and (rank, step, bucket) == (3, steps - 30, 1):
                    continue
                is_odd = fault == "type" and (rank, step, bucket) == (4, steps - 8, 0)
                dtype = "bf16" if is_odd else "f32"
                yield Call("all_reduce", dp, [100_000], dtype=dtype, site=site("reduce_bucket", "ddp.py", 88))
            yield Call("_all_gather_base", tp, [64], [128], site=site("gather_stats", "train.py", 130))
            yield wait()

    return World(8, program, version, size, **options).run()


def ring(fault=False, version="2.10"):
    """Context parallel: batches of two sends and two receives; rank 2 leaves a receive out of one."""
    group, world = Group("3", "mesh_cp", range(4)), Group("0", "default_pg", range(4))

    def program(rank):
        after, before = (rank + 1) % 4, (rank - 1) % 4
        for step in range(12):
            for hop in range(3):
                calls = [
                    Call(kind, group, [2, 64, 64], dtype="bf16", peer=after if kind == "send" else before)
                    for kind in ("send", "recv", "send", "recv")
                ]
                if fault and (rank, step, hop) == (2, 9, 1):
                    calls.pop()
                yield Call("batch", calls=calls, site=site("rotate_kv", "ring_attention.py", 64))
                yield work(3)
                yield wait()
            yield Call("all_reduce", world, [4096], site=site("reduce", "train.py", 88))
            yield wait()

    return World(4, program, version).run()


def other_order():
    """Rank 1 reduces the dense gradients before those of the experts, in one step."""
    groups = [Group("11", "mesh_ep", range(4)), Group("12", "mesh_dp", range(4))]
    places = [site("reduce_grads", "experts.py", 41), site("reduce_grads", "dense.py", 57)]

    def program(rank):
        for step in range(20):
            yield work(5)
            order = (1, 0) if (rank, step) == (1, 14) else (0, 1)
            for index in order:
                yield Call("_reduce_scatter_base", groups[index], [4096], [1024], site=places[index])
                yield wait()

    return World(4, program).run()


def network():
    """All ranks are in one all_reduce of their group, which never ends."""
    world = Group("0", "default_pg", range(8))
    halves = [Group("1", "dp", range(0, 8, 2)), Group("2", "dp", range(1, 8, 2))]

    class Never(Op):
        def end_ns(self):
            return None

    def program(rank):
        group = halves[rank % 2]
        for step in range(30):
            yield work(8)
            if step == 27:
                group.collectives.setdefault(4 * 27 + 3, Never(group.ranks, 1))
            for bucket in range(4):
                sizes, place = [65536 * (bucket + 1)], site("reduce_bucket", "ddp.py", 88)
                yield Call("all_reduce", group, sizes, dtype="bf16", site=place)
            yield Call("all_reduce", world, [1], site=site("log", "train.py", 99))
            yield wait()

    return World(8, program, timing=True).run()


def sharded():
    """Coalesced gathers and scatters of shards, and an all_reduce of replicas."""
    groups, world = mesh((2, 4), ("replicate", "shard")), Group("0", "default_pg", range(8))

    def program(rank):
        shard, replicate = groups[rank]["shard"], groups[rank]["replicate"]
        for _ in range(50):
            for _ in range(4):
                parts = [
                    Call("_all_gather_base", shard, [256 * k], [1024 * k], dtype="bf16") for k in (1, 2, 3)
                ]
                yield Call("batch", calls=parts, site=site("unshard", "fsdp.py", 30))
                yield work(1)
            for _ in range(4):
                part = Call("_reduce_scatter_base", shard, [1024], [256])
                yield Call("batch", calls=[part], site=site("reduce", "fsdp.py", 60))
                yield Call("all_reduce", replicate, [256], site=site("reduce", "fsdp.py", 66))
                yield work(2)
            yield Call("all_reduce", world, [1], site=site("log", "train.py", 99))
            yield wait()

    return World(8, program, "2.10", 500).run()


SKEW_NS = {rank: 3_000_000_000 for rank in (4, 5, 6, 7)}
# By name: what was planted, and a function that gives a world and when its dumps are written (None: after
# the last event), in which form, of which ranks there is none.
JOBS = {
    "pipeline_ok": ("nothing", lambda: (pipeline(everyone=True, waits=False, size=300), None), "pickle", ()),
    "pipeline_runs": ("nothing: dumps of a job that runs", lambda: at_part(pipeline(), 0.6), "pickle", ()),
    "pipeline_apart": (
        "nothing: dumps of other moments",
        lambda: at_part(pipeline(width=1), 0.9, 0.5, 0.613, 0.2),
        "json",
        (),
    ),
    "pipeline_hang": ("rank 2 stands before a send to rank 4", lambda: at_end(pipeline(2)), "pickle", ()),
    "pipeline_hang_timing": ("the same", lambda: at_end(pipeline(2, timing=True)), "json", ()),
    "pipeline_hang_async": (
        "the same, the others have enqueued all",
        lambda: at_end(pipeline(2, waits=False, everyone=True, size=300)),
        "pickle",
        (),
    ),
    "tensor_hang": (
        "rank 5 stands before an all_reduce",
        lambda: at_end(tensor_parallel("hang", "2.4", timing=True)),
        "pickle",
        (),
    ),
    "tensor_dump_missing": (
        "the same; rank 5 leaves no dump",
        lambda: (tensor_parallel("hang"), None),
        "pickle",
        (5,),
    ),
    "tensor_skew_ok": (
        "nothing: clocks of two hosts",
        lambda: (tensor_parallel(version="2.10", skew_ns=SKEW_NS), None),
        "pickle",
        (),
    ),
    "tensor_apart": (
        "nothing: dumps of other moments",
        lambda: at_part(tensor_parallel(version="2.10", steps=200), 0.3, 0.5, 0.7, 0.9),
        "json",
        (),
    ),
    "tensor_late": (
        "rank 6 comes 0.3 s late in each step",
        lambda: (tensor_parallel(version="2.10", size=2000, late_ms=300, timing=True), None),
        "json",
        (),
    ),
    "tensor_type": (
        "rank 4 has another type once",
        lambda: (tensor_parallel("type", "2.7"), None),
        "json",
        (),
    ),
    "tensor_skip": (
        "rank 3 leaves out one of two equal calls",
        lambda: (tensor_parallel("skip", size=2000), None),
        "pickle",
        (),
    ),
    "ring_batch": ("rank 2 leaves a receive out of a batch", lambda: (ring(True), None), "pickle", ()),
    "ring_ok": ("nothing; PyTorch 2.5 counts batches as collectives", lambda: (ring(version="2.4"), None), "pickle", ()),
    "order": ("rank 1 has another order of two groups", lambda: (other_order(), None), "pickle", ()),
    "network": ("a call that all are in never ends", lambda: at_end(network()), "pickle", ()),
    "sharded_ok": ("nothing", lambda: (sharded(), None), "json", ()),
}


def write(name, folder):
    _, make, form, leave_out = JOBS[name]
    world, dump_ns = make()
    os.makedirs(folder, exist_ok=True)
    world.write(folder, form, dump_ns, leave_out)


if __name__ == "__main__":
    for job in JOBS:
        write(job, os.path.join(sys.argv[1], job))
