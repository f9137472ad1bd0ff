#!/usr/bin/env python3
"""Makes snapshots in the format of PyTorch's caching allocator (torch.cuda.memory._dump_snapshot), without a GPU.

Nothing here was recorded: a small model of the allocator makes segments, blocks and events whose members have the names and
types that torch/csrc/cuda/Module.cpp (`_snapshot`) and memory_snapshot.cpp (the snapshot that C++ writes) give them.

    memory_snapshot.py OUT [--events N] [--stacks N] [--format pickle|json|cpp] [--oom] [--leak BYTES] [--steps N]
"""

import argparse
import contextlib
import json
import pickle
import random
import struct

SEGMENT = 20 << 20


def frame(name, filename, line):
    return {"name": name, "filename": filename, "line": line}


class Allocator:
    """One device. Blocks are cut from segments, rounded to 512 bytes; neighbours that are free are one block."""

    def __init__(self, device=0, start_us=1_700_000_000_000_000):
        self.device, self.time_us = device, start_us
        self.segments, self.events, self.annotations = [], [], []
        self.next_address = 0x7F0000000000 + (device << 36)

    def event(self, action, address, size, frames, context=None, stream=0, **more):
        self.time_us += 3
        entry = {"action": action, "device_free" if action == "oom" else "addr": address, "size": size, "stream": stream, "time_us": self.time_us,
                 "frames": frames, "compile_context": context or "", "user_metadata": ""}
        self.events.append({**entry, **more})

    def annotate(self, stage, name):
        self.time_us += 1
        self.annotations.append({"stage": stage, "name": name, "device": self.device, "time_us": self.time_us})

    @contextlib.contextmanager
    def step(self, number):
        self.annotate("START", f"ProfilerStep#{number}")
        yield
        self.annotate("END", f"ProfilerStep#{number}")

    def segment(self, size, frames, pool=(0, 0), stream=0):
        address = self.next_address
        self.next_address += size + (1 << 21)
        self.segments.append({"address": address, "size": size, "pool": pool, "stream": stream, "frames": frames,
                              "blocks": [{"address": address, "size": size, "requested_size": 0, "state": "inactive", "frames": []}]})
        self.event("segment_alloc", address, size, frames, stream=stream)
        return self.segments[-1]

    def alloc(self, size, frames, context=None, pool=(0, 0), stream=0):
        rounded = (size + 511) // 512 * 512
        for segment in self.segments + [None]:
            if segment is None:
                segment = self.segment(max(SEGMENT, rounded), frames, pool, stream)
            elif segment["pool"] != pool or segment["stream"] != stream:
                continue
            for i, block in enumerate(segment["blocks"]):
                if block["state"] != "inactive" or block["size"] < rounded:
                    continue
                rest = dict(block, address=block["address"] + rounded, size=block["size"] - rounded)
                block = {"address": block["address"], "size": rounded, "requested_size": size, "state": "active_allocated", "frames": frames}
                segment["blocks"][i:i + 1] = [block] + ([rest] if rest["size"] else [])
                self.event("alloc", block["address"], size, frames, context, stream)
                return block["address"]
        raise AssertionError

    def free(self, address, frames, pending=False):
        for segment in self.segments:
            for i, block in enumerate(segment["blocks"]):
                if block["address"] != address or block["state"] != "active_allocated":
                    continue
                self.event("free_requested", address, block["requested_size"], frames, stream=segment["stream"])
                if pending:
                    block["state"] = "active_pending_free"
                    return
                self.event("free_completed", address, block["requested_size"], frames, stream=segment["stream"])
                blocks = segment["blocks"]
                blocks[i] = {"address": address, "size": block["size"], "requested_size": 0, "state": "inactive", "frames": []}
                for j in (i, i - 1):
                    if 0 <= j and j + 1 < len(blocks) and blocks[j]["state"] == blocks[j + 1]["state"] == "inactive":
                        blocks[j]["size"] += blocks.pop(j + 1)["size"]
                return
        raise KeyError(address)

    def oom(self, size, device_free, frames):
        self.event("oom", device_free, size, frames)

    def segment_list(self):
        for segment in self.segments:
            active = [b for b in segment["blocks"] if b["state"] != "inactive"]
            yield {"device": self.device, "address": segment["address"], "total_size": segment["size"],
                   "allocated_size": sum(b["size"] for b in active if b["state"] == "active_allocated"),
                   "active_size": sum(b["size"] for b in active), "requested_size": sum(b["requested_size"] for b in active),
                   "stream": segment["stream"], "segment_type": "large" if segment["size"] > 2 << 20 else "small",
                   "segment_pool_id": segment["pool"], "is_expandable": False, "frames": segment["frames"], "blocks": segment["blocks"]}


class PinnedAllocator:
    """Pinned memory of the host as PyTorch 2.15 records it (record_pinned_host_memory): one list of events, host_traces. Sizes are
    powers of two, blocks are not split (ATen/core/CachingHostAllocator.h). What an entry of host_segments holds is not in the
    headers: it is left empty here, as where nothing was recorded."""

    def __init__(self, start_us=1_700_000_000_000_000):
        self.time_us, self.events, self.free_blocks, self.next_address = start_us, [], {}, 0x6F0000000000

    def event(self, action, address, size, frames):
        self.time_us += 3
        self.events.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": self.time_us, "frames": frames,
                            "compile_context": "", "user_metadata": "", "pool_id": (0, 0)})

    def alloc(self, size, frames):
        size = 1 << (size - 1).bit_length()
        if self.free_blocks.get(size):
            address = self.free_blocks[size].pop()
        else:
            address, self.next_address = self.next_address, self.next_address + size
            self.event("segment_alloc", address, size, frames)
        self.event("alloc", address, size, frames)
        return address, size

    def free(self, block, frames):
        self.event("free_requested", *block, frames)
        self.event("free_completed", *block, frames)
        self.free_blocks.setdefault(block[1], []).append(block[0])


def snapshot(allocators, last=None, annotations=(), pinned=None):
    """`last`: the size of each device's ring of events (max_entries); earlier events are lost."""
    devices = {a.device: a for a in allocators}
    traces = [devices[i].events if i in devices else [] for i in range(max(devices) + 1)]
    host = {"host_segments": [], "host_traces": pinned.events} if pinned else {}
    return {**host, "segments": [s for a in allocators for s in a.segment_list()], "device_traces": [t[-last:] if last else t for t in traces],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
                                   "expandable_segments": False, "roundup_power2_divisions": {"1": 0, "2": 0}},
            "external_annotations": list(annotations) + [one for a in allocators for one in a.annotations]}


def cpp_pickle(value):
    """As torch::jit::Pickler writes it for memory_snapshot.cpp: protocol 2, one batch for each container, which is remembered
    behind its content, where several refer to it."""
    out, slots, kept = bytearray(b"\x80\x02"), {}, []

    def remember(key):
        slots[key] = len(slots)
        out.extend(b"q" + bytes([slots[key]]) if slots[key] < 256 else b"r" + struct.pack("<I", slots[key]))

    def recall(key):
        out.extend(b"h" + bytes([slots[key]]) if slots[key] < 256 else b"j" + struct.pack("<I", slots[key]))

    def push(one):
        key = one if isinstance(one, str) else id(one)
        if isinstance(one, bool):
            out.extend(b"\x88" if one else b"\x89")
        elif isinstance(one, int):
            if 0 <= one < 256:
                out.extend(b"K" + bytes([one]))
            elif -2**31 <= one < 2**31:
                out.extend(b"J" + struct.pack("<i", one))
            else:
                out.extend(b"\x8a\x08" + struct.pack("<q", one))
        elif isinstance(one, float):
            out.extend(b"G" + struct.pack(">d", one))
        elif one is None:
            out.extend(b"N")
        elif key in slots:
            recall(key)
        elif isinstance(one, str):
            out.extend(b"X" + struct.pack("<I", len(one.encode())) + one.encode())
            remember(key)
        else:
            kept.append(one)
            if isinstance(one, tuple):
                out.extend(b"(")
            else:
                out.extend((b"}" if isinstance(one, dict) else b"]") + b"(")
            for item in (x for pair in one.items() for x in pair) if isinstance(one, dict) else one:
                push(item)
            out.extend(b"t" if isinstance(one, tuple) else b"u" if isinstance(one, dict) else b"e")
            remember(key)

    push(value)
    return bytes(out + b".")


def training(events, stacks=50, oom=False, leak=0, seed=1, device=0, steps=0):
    """Steps of a training loop: weights, activations of a compiled region, gradients, an optimizer's state; with `leak` a list
    that a line of the program lets grow by so many bytes in each step. `steps`: so many, which annotations mark."""
    rng = random.Random(seed)
    allocator = Allocator(device)
    torch = "/usr/lib/python3/dist-packages/torch"
    main = [frame("train", "/job/train.py", 80), frame("<module>", "/job/train.py", 99)]
    init = [frame("__init__", f"{torch}/nn/modules/linear.py", 106), frame("build", "/job/model.py", 12)] + main
    step = [frame("_init_group", f"{torch}/optim/adam.py", 150), frame("step", f"{torch}/optim/adam.py", 223)] + main
    backward = [frame("_engine_run_backward", f"{torch}/autograd/graph.py", 824), frame("backward", f"{torch}/_tensor.py", 581)] + main
    forward = [[frame("forward", f"{torch}/nn/modules/linear.py", 125), frame("forward", "/job/model.py", 30 + i)] +
               [frame(f"layer_{j}", "/job/layers.py", 100 * i + j) for j in range(10)] + main for i in range(stacks)]
    inner = [frame("append", "/job/metrics.py", 7), frame("log_loss", "/job/metrics.py", 21)] + main
    weights = [allocator.alloc(rng.randrange(1 << 10, 1 << 18), init) for _ in range(20)]
    state = [allocator.alloc(rng.randrange(1 << 10, 1 << 18), step) for _ in range(20)]
    number = 0
    while number < steps if steps else len(allocator.events) < events:
        if steps:
            allocator.annotate("START", f"ProfilerStep#{number}")
        allocated = [allocator.alloc(rng.randrange(1, 1 << 20), rng.choice(forward), "Torch-Compiled Region: 0/0" if i % 2 else None)
                     for i in range(20)]
        gradients = []
        while allocated:
            gradients.append(allocator.alloc(rng.randrange(1, 1 << 16), backward))
            allocator.free(allocated.pop(), backward)
        for address in gradients:
            allocator.free(address, main)
        if leak:
            allocator.alloc(leak, inner)
        if steps:
            allocator.annotate("END", f"ProfilerStep#{number}")
        number += 1
    if oom:
        last = [allocator.alloc(rng.randrange(1 << 16, 1 << 20), forward[0]) for _ in range(12)]
        for address in last[::2]:
            allocator.free(address, forward[0])
        allocator.oom(1 << 30, 300 << 20, forward[1])
    assert weights and state
    return allocator


def write(value, path, form="pickle", protocol=4):
    with open(path, "wb") as file:
        if form == "json":
            file.write(json.dumps(value).encode())
        elif form == "cpp":
            file.write(cpp_pickle(value))
        else:
            pickle.dump(value, file, protocol)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--stacks", type=int, default=50)
    parser.add_argument("--format", choices=("pickle", "json", "cpp"), default="pickle")
    parser.add_argument("--oom", action="store_true")
    parser.add_argument("--leak", type=int, default=0)
    parser.add_argument("--steps", type=int, default=0)
    arguments = parser.parse_args()
    write(snapshot([training(arguments.events, arguments.stacks, arguments.oom, arguments.leak, steps=arguments.steps)]), arguments.out, arguments.format)


if __name__ == "__main__":
    main()
