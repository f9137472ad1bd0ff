"""What snapshots of the allocator hold, counted in the plainest way: the blocks that live are kept in a dict, and copied when
there are more bytes than ever before."""

import json
import pickle


def load(path):
    with open(path, "rb") as file:
        data = file.read()
    return pickle.loads(data) if data[:1] in b"\x80(}" else json.loads(data)


class Counted:
    """One device until a time: the peak, and what lives at the peak and at the end, as (size, frames, context); None: not recorded."""

    def __init__(self, snapshot, device, until_us=None):
        events = snapshot["device_traces"][device] if device < len(snapshot["device_traces"]) else []
        segments = [s for s in snapshot["segments"] if s["device"] == device]
        blocks = {b["address"]: b for s in segments for b in s["blocks"] if b["state"].startswith("active")}
        # What lived before the first event: blocks that no event allocated, and those that were freed without.
        live, seen = {}, set()
        for event in events:
            if event["action"] == "alloc":
                seen.add(event["addr"])
            elif event["action"] in ("free_completed", "free") and event["addr"] not in seen:
                live[event["addr"]] = (event["size"], None, None)
            if event["action"] in ("free_completed", "free"):
                seen.discard(event["addr"])
        for address, block in blocks.items():
            if address not in seen:
                live.setdefault(address, (block["requested_size"], block["frames"], None))
        self.base = sum(size for size, _, _ in live.values())
        self.peak, self.ordinal, self.at_peak = self.base, -1, list(live.values())
        now, reserved = self.base, []
        held = 0
        for i, event in enumerate(events):
            if until_us is not None and event["time_us"] > until_us:
                break
            action = event["action"]
            if action == "alloc":
                live[event["addr"]] = (event["size"], event["frames"], event.get("compile_context"))
                now += event["size"]
            elif action in ("free_completed", "free"):
                now -= live.pop(event["addr"])[0]
            elif action in ("segment_alloc", "segment_map"):
                held += event["size"]
            elif action in ("segment_free", "segment_unmap"):
                held -= event["size"]
            reserved.append(held)
            if now > self.peak:
                self.peak, self.ordinal, self.at_peak = now, i, list(live.values())
        self.end, self.at_end = now, list(live.values())
        total = sum(s["total_size"] for s in segments)
        self.reserved_at_peak = total - held + (reserved[self.ordinal] if self.ordinal >= 0 else 0)
        self.reserved = total


def outermost_first(frames):
    return [(f["filename"], f["line"], f["name"]) for f in reversed(frames or [])]
