"""Derived traces in older spellings of the format, for which no real sample is bundled."""

import json
import re

from derived_trace import DerivedTrace, artifact, changed, load, new_record, with_pid

FIRST_THREAD_ID = 140144363024384
HANDLE_COMMENT = re.compile(rb"^ *# \[Provenance debug handles\].*\n", re.MULTILINE)
KERNEL_NODES = ("SELECT DISTINCT k.name, n.post_grad_node FROM kernel_node n "
                "JOIN kernel k ON k.id = n.kernel_id ORDER BY 1, 2")
NODE_PAIRS = "SELECT DISTINCT post_grad_node, pre_grad_node FROM node_mapping ORDER BY 1, 2"


def thread_ids():
    """Early 2024: the prefix holds a thread id, several per process."""
    trace = DerivedTrace("thread_ids", "thread ids in the pid column")
    for index, record in enumerate(load("simple_2_6")):
        thread = FIRST_THREAD_ID + 640 * (index % 3 == 2)
        trace.record(changed(record, prefix=with_pid(record.prefix, thread)))
    trace.query("SELECT count(*), min(is_thread_id) FROM process", [[1, 1]])
    trace.query("SELECT count(*) FROM stack_frame WHERE file LIKE '<unknown:%'", [[0]])
    yield trace


def fx_graph_cache_hash():
    """2024 nightlies: one artifact name for all states, component lines split at line feeds."""
    trace = DerivedTrace("fx_graph_cache_hash", "fx_graph_cache_hash with split components")
    components = {}
    states = {}
    for record in load("cache_cold_2_6"):
        if record.name not in ("fx_graph_cache_hit", "fx_graph_cache_miss"):
            trace.record(record)
            continue
        info = json.loads(record.payload)
        components[info["key"]] = len(info["components"])
        states[info["cache_state"]] = states.get(info["cache_state"], 0) + 1
        info["components"] = [part for line in info["components"] for part in line.split("\n")]
        assert len(info["components"]) > components[info["key"]]
        envelope = dict(record.envelope)
        envelope["artifact"] = {"name": "fx_graph_cache_hash", "encoding": "json"}
        trace.record(changed(record, envelope, json.dumps(info).encode()))
    trace.query("SELECT key, count(*) FROM cache_component WHERE key IN "
                "(SELECT key FROM cache_event WHERE layer = 'fx_graph') GROUP BY 1 ORDER BY 1",
                [[key, number] for key, number in sorted(components.items())])
    trace.query("SELECT state, count(*) FROM cache_event WHERE layer = 'fx_graph' "
                "GROUP BY 1 ORDER BY 1", [[state, n] for state, n in sorted(states.items())])
    yield trace


def dynamo_guards_2024():
    """2024: every guard as an element of a JSON list, whose stacks hold interned ids."""
    trace = DerivedTrace("dynamo_guards_2024", "guards as JSON with interned file ids")
    guards = 0
    file_id = None
    for record in load("mlp_train_2_6"):
        trace.record(record)
        if record.kind == "str":
            file_id = record.envelope["str"][1]
        if record.kind != "dynamo_cpp_guards_str":
            continue
        entries = []
        for line in record.payload.decode().split("\n"):
            code = line.split("+- ")[-1].split("#")[0].strip()
            if "+- " in line and not code.startswith("GuardManager"):
                frame = {"line": len(entries) + 1, "name": "forward", "filename": file_id}
                entries.append({"code": code, "stack": None,
                                "user_stack": [frame] if len(entries) % 2 else None})
        guards += len(entries)
        payload = "[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]"
        trace.record(new_record(record, "dynamo_guards", {}, payload.encode()))
    trace.query("SELECT count(*) FROM guard g JOIN record r ON r.id = g.record_id "
                "WHERE r.kind = 'dynamo_guards'", [[guards]])
    yield trace


def older_mappings(record):
    """(kernel → post-grad nodes without handles, post-grad → pre-grad nodes) of a 2.14 record."""
    mappings = json.loads(record.payload)
    kernels = {}
    for kernel, nodes in mappings.get("cppCodeToPost", {}).items():
        merged = kernels.setdefault(kernel.rsplit(":", 1)[0], [])
        merged.extend(node for node in nodes if node not in merged)
    return kernels, mappings.get("postToPre", {})


def from_nodes(post_to_pre):
    """The nested shape of inductor_post_to_pre_grad_nodes: post ← (a pass's node) ← pre."""
    def entry(name, action, from_node, graph_id):
        return {"name": name, "target": "aten.x", "graph_id": graph_id, "pass_name": "pass",
                "action": action, "from_node": from_node}
    return {post: [entry(f"{pre}_mid", "create", [entry(pre, "create", [], 139)], 140)
                   for pre in pres] for post, pres in post_to_pre.items()}


def provenance_generations():
    """2.7 (triton kernels), 2.8 (generated kernels), mid-2025 (one object without version)."""
    generations = [
        ("provenance_2_7", "inductor_triton_kernel_to_post_grad_nodes"),
        ("provenance_2_8", "inductor_generated_kernel_to_post_grad_nodes"),
        ("provenance_unversioned", "inductor_provenance_tracking_node_mappings"),
    ]
    for trace_name, artifact_name in generations:
        trace = DerivedTrace(trace_name, f"provenance as {artifact_name}, no debug handles")
        kernel_nodes, pairs = set(), set()
        for record in load("tlparse_meta"):
            if record.name == "inductor_provenance_tracking_kernel_stack_traces":
                continue
            if record.kind == "inductor_output_code":  # the handles came with the newer form
                record = changed(record, payload=HANDLE_COMMENT.sub(b"", record.payload))
            if record.name != "inductor_provenance_tracking_node_mappings":
                trace.record(record)
                continue
            kernels, post_to_pre = older_mappings(record)
            kernel_nodes.update((kernel, node) for kernel, nodes in kernels.items()
                                for node in nodes)
            pairs.update((post, pre) for post, pres in post_to_pre.items() for pre in pres)
            if artifact_name.endswith("node_mappings"):
                whole = json.loads(record.payload)
                whole.pop("version")
                whole["cppCodeToPost"] = kernels
                whole["postToCppCode"] = {
                    post: sorted({kernel.rsplit(":", 1)[0] for kernel in names})
                    for post, names in whole.get("postToCppCode", {}).items()}
                trace.record(artifact(record, artifact_name, json.dumps(whole).encode()))
            else:
                trace.record(artifact(record, artifact_name, json.dumps(kernels).encode()))
                trace.record(artifact(record, "inductor_post_to_pre_grad_nodes",
                                      json.dumps(from_nodes(post_to_pre)).encode()))
        trace.query(KERNEL_NODES, [list(pair) for pair in sorted(kernel_nodes)])
        if artifact_name.endswith("node_mappings"):
            trace.query(NODE_PAIRS, [list(pair) for pair in sorted(pairs)])
        else:  # whether the node in between counts as pre-grad is not ours to say
            trace.query(f"SELECT count(*) FROM ({NODE_PAIRS}) WHERE pre_grad_node NOT LIKE '%_mid'",
                        [[len(pairs)]])
        trace.query("SELECT count(*) FROM kernel k JOIN kernel_node n ON n.kernel_id = k.id "
                    "WHERE k.debug_handle IS NOT NULL", [[0]])
        yield trace


def runtime_mid_2025():
    """Two artifacts that later became inductor_runtime_and_tensor_meta; graph runs one by one."""
    trace = DerivedTrace("runtime_mid_2025",
                         "inductor_tlparse_runtime, inductor_tlparse_tensor_meta, "
                         "inductor_graph_execution")
    ops, outputs, runs = 0, 0, 0
    for record in load("tlparse_meta"):
        if record.name == "inductor_runtime_and_tensor_meta":
            entries = json.loads(record.payload)["ops"]
            ops += len(entries)
            outputs += sum(len(entry["outputs"]) for entry in entries)
            for name, left_out in (("inductor_tlparse_runtime", "outputs"),
                                   ("inductor_tlparse_tensor_meta", "estimated_runtime_ns")):
                kept = [{key: value for key, value in entry.items() if key != left_out}
                        for entry in entries]
                trace.record(artifact(record, name, json.dumps({"ops": kept}, indent=0).encode()))
        elif record.name == "graph_execution":
            for entry in json.loads(record.payload)["graph_execution_order"]:
                payload = json.dumps({"graph": f"graph_{runs}"}, indent=0).encode()
                envelope = {"artifact": {"name": "inductor_graph_execution", "encoding": "json"},
                            "stack": record.envelope["stack"]}
                trace.record(changed(record, envelope, payload))
                runs += 1
                assert entry
        else:
            trace.record(record)
    trace.query("SELECT count(*) FROM op_runtime", [[ops]])
    trace.query("SELECT count(*) FROM tensor_meta", [[outputs]])
    trace.query("SELECT count(*), count(compile_id) FROM graph_execution", [[runs, 0]])
    trace.query("SELECT label FROM graph_execution ORDER BY ordinal LIMIT 2",
                [["graph_0"], ["graph_1"]])
    yield trace


def without_compile_ids():
    trace = DerivedTrace("no_compile_ids", "no record has a compile id")
    ids = ("frame_id", "frame_compile_id", "attempt", "compiled_autograd_id")
    for record in load("mlp_train_2_6"):
        trace.record(changed(record, {key: value for key, value in record.envelope.items()
                                      if key not in ids}))
    trace.query("SELECT count(*) FROM compile WHERE NOT is_synthetic", [[0]])
    trace.query("SELECT count(*) > 0 FROM compile", [[1]])
    yield trace


def december_2024():
    """Nightlies of December 2024: compiled_autograd_id in every record with ids, mostly null."""
    trace = DerivedTrace("null_compiled_autograd_id", "compiled_autograd_id: null everywhere")
    records = load("simple_2_6")
    labels = set()
    for record in records:
        envelope = dict(record.envelope)
        if "frame_id" in envelope:
            envelope["compiled_autograd_id"] = None
            labels.add(f"{envelope['frame_id']}/{envelope['frame_compile_id']}")
        trace.record(changed(record, envelope))
    trace.query("SELECT DISTINCT label FROM compile WHERE NOT is_synthetic ORDER BY 1",
                [[label] for label in sorted(labels)])
    yield trace


def odd_records_2_6():
    """2.6's unnamed artifact, an element without frame name, pre-2.6 backward metrics."""
    trace = DerivedTrace("odd_records", "unnamed artifact, legacy and unknown record types")
    records = load("simple_2_6")
    trace.all(records)
    like = next(record for record in records if record.kind == "dynamo_output_graph")
    trace.record(artifact(like, None, b"Knapsack summary:\n  saved 3 of 9 nodes"))
    trace.record(new_record(like, "aot_autograd_backward_compilation_metrics",
                            {"start_time": 1.5, "elapsed_time": 0.25, "fail_type": None,
                             "fail_reason": None}))
    trace.record(new_record(like, "link", {"name": "cprofile_manifold_url", "url": "u://x"}))
    trace.record(new_record(like, "memoizer_artifacts", {}, b'{"a": 1}'))
    trace.record(new_record(like, "a_key_of_2031", {"deep": [{"er": None}]}, b"text"))
    trace.record(artifact(like, "an_artifact_of_2031", b"text", "cbor", extra=[1, 2]))
    trace.query("SELECT count(*) FROM record WHERE kind = 'artifact' AND name IS NULL", [[1]])
    trace.query("SELECT metadata -> '$.deep[0]' FROM record WHERE kind = 'a_key_of_2031'",
                [['{"er":null}']])
    yield trace


def older():
    for make in (thread_ids, fx_graph_cache_hash, dynamo_guards_2024, provenance_generations,
                 runtime_mid_2025, without_compile_ids, december_2024, odd_records_2_6):
        yield from make()
