"""What the tests of costs share: an answer that is checked against its schema, and a small profile of a device."""

import json
import os

import profiles
from profiles import harness

SCHEMAS = os.path.join(profiles.ROOT, "schemas", "json", "answers")


class CostTest(harness.EndToEnd):
    def checked(self, answer, schema):
        try:
            import jsonschema
        except ImportError:
            return answer
        with open(os.path.join(SCHEMAS, schema), encoding="utf-8") as file:
            jsonschema.validate(answer, json.load(file))
        return answer

    def ask(self, *arguments, database="x.db"):
        return self.checked(json.loads(self.tlparse("cost", database, "--json", "--top", "100000", *arguments).stdout), "cost.schema.json")

    def ask_diff(self, a, b, *arguments):
        return self.checked(json.loads(self.tlparse("diff", a, b, "--json", *arguments).stdout), "diff.schema.json")

    def gpu_trace(self):
        def event(category, name, ts, dur, **more):
            return dict({"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {}}, **more)
        events = [event("user_annotation", f"ProfilerStep#{step}", step * 100, 100) for step in (3, 4)]
        for step in (3, 4):
            at = step * 100
            key = "f" * 52
            events.append(event("user_annotation", f"## Call CompiledFxGraph {key} ##", at + 10, 20, args={"External id": step * 10}))
            events.append(event("cpu_op", "triton_poi_fused_0", at + 12, 5, args={"External id": step * 10 + 1}))
            events.append(event("cuda_runtime", "cuLaunchKernel", at + 13, 2, args={"correlation": step, "External id": step * 10 + 1}))
            # Two streams; the work of step 3 ends in step 4.
            events.append(event("kernel", "triton_poi_fused_0", at + 50, 70, pid=0, tid=7,
                                args={"device": 0, "stream": 7, "correlation": step, "External id": step * 10 + 1}))
            events.append(event("gpu_memcpy", "Memcpy HtoD", at + 60, 10, pid=0, tid=8, args={"device": 0, "stream": 8, "bytes": 4}))
        return {"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": events}
