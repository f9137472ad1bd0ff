"""Writes docs/findings.md: the first finding of every recorded job with the planted fault, and screens.

findings_page.py TLPARSE SHARED > docs/findings.md        SHARED: the folder with jobs/ and traces/; fixtures/ is the repository's
"""

import json
import os
import re
import subprocess
import sys
import tempfile

JOBS = {
    "jobs/crash_in_compile/logs": "rank 1 raises in a pass of Inductor, in 1/0",
    "jobs/crash_segv_in_inductor/logs": "rank 0 gets SIGSEGV in 2/0; SIGTERM meets the others in 2/0 as well",
    "jobs/hang_in_compile/logs": "rank 2 sleeps in a pass of Inductor, in 1/0, until SIGTERM",
    "jobs/straggler_late/logs": "rank 3 compiles 12 s after the others",
    "jobs/rank_missing/logs": "rank 2 writes no log",
    "jobs/one_rank_cold/logs": "the cache of rank 2 is empty, those of the others are not",
    "jobs/restart_manual_other_config/logs": "run twice, the second time with max_fusion_size = 13",
    "jobs/restart_elastic/logs": "fails on rank 2, then on rank 0, then ends well",
    "jobs/growing/logs": "nothing; functions are recompiled",
    "jobs/healthy_8/logs": "nothing",
    "traces/2.14.1/cache_some_ranks/1_warm_ranks_0_1": "nothing",
    "traces/2.14.1/cache_some_ranks": "both folders of it together: a warm-up without ranks, then the job",
    "traces/2.14.1/cache_some_ranks/2_job": "the caches of ranks 2 and 3 are empty",
    "traces/2.14.1/ddp_optimizer": "nothing; DDP breaks graphs",
    "traces/2.14.1/diverge_config": "rank 2 sets max_fusion_size = 13",
    "traces/2.14.1/diverge_order": "rank 2 issues all_gather before all_reduce",
    "traces/2.14.1/diverge_shape": "rank 2 sees other batch sizes",
    "traces/2.14.1/fcol_4": "nothing",
    "traces/2.14.1/fcol_4_provenance": "nothing",
    "traces/2.14.1/fsdp2": "nothing; functions are recompiled, hooks break graphs",
    "traces/2.6.0/ddp_optimizer": "nothing; DDP breaks graphs",
    "traces/2.6.0/diverge_config": "rank 2 sets max_fusion_size = 13",
    "traces/2.6.0/fcol_4": "nothing",
    "fixtures/logs/autocast_one": "rank 3 runs without autocast; 1/0 holds a constant of the rank on every rank",
    "fixtures/logs/backward_fails_2_6": "rank 2 raises in a pass of Inductor, in the backward of 0/0",
    "fixtures/logs/cpp_headers_missing": "no host has PyTorch's header files",
    "fixtures/logs/cpu_capability": "rank 1 runs with ATEN_CPU_CAPABILITY=avx2",
    "fixtures/logs/export_fails": "the second process fails to export a model",
    "fixtures/logs/killed_restart_2_6": "rank 1 is killed between two compiles; the job is started again",
    "fixtures/logs/no_compiler": "the host of rank 3 has no C++ compiler",
    "fixtures/logs/recompile_limit_2_6": "rank 1 sees 11 sizes and reaches the recompile limit; both break a graph",
    "fixtures/logs/source_edited": "losses.py was edited before rank 1 started",
    "fixtures/logs/stalled_compile": "a pass of Inductor sleeps for 45 s on rank 2",
    "fixtures/logs/suppress_errors": "rank 1 raises in a pass and suppresses it; rank 2 compiles nothing",
    "fixtures/runs/frozen_parameter": "on rank 2 a parameter needs no gradient, whose all_reduce is left out; recorder dumps",
    "fixtures/runs/hang_in_backward": "rank 2 never leaves a pass of Inductor, in the backward of 0/0; recorder dumps",
    "fixtures/runs/actors": "nothing; rank 0 learns from what ranks 1 and 2 play",
    "fixtures/runs/marked_sizes": "nothing; a size that is marked as dynamic is another one on each rank",
    "fixtures/runs/coordinator": "rank 2 raises in a pass of Inductor; rank 0 hands out work and compiles nothing",
    "fixtures/runs/eager_rank": "rank 3 has TORCHDYNAMO_DISABLE=1; recorder dumps",
    "fixtures/runs/hook_raises": "a forward hook raises on rank 0",
    "fixtures/runs/loader_workers": "nothing; workers of a DataLoader compile a transform",
    "fixtures/runs/pipeline": "nothing; two stages of a pipeline",
    "fixtures/runs/eval_mode": "the model of rank 0 is in evaluation mode until the first evaluation",
    "fixtures/runs/fewer_evaluations": "rank 2 evaluates fewer batches than the others; recorder dumps of two ranks",
    "fixtures/runs/mesh_full_disk": "the disk of rank 0 is full; a 2x2 mesh",
    "fixtures/runs/own_sizes": "each rank trains a model of another width; a pass of Inductor sleeps for 24 s on rank 1",
    "fixtures/runs/worker_raises": "a loader worker of rank 0 raises before rank 0 compiles anything",
    "fixtures/runs/segv_after_forward": "rank 1 gets SIGSEGV after the forward of the first step",
    "fixtures/runs/slow_loader": "the loader of rank 1 takes 0.45 s a step; recorder dumps",
    "fixtures/runs/hook_raises_one_dump": "a hook of rank 1 raises; rank 0, which waits for it, leaves no recorder dump",
    "fixtures/runs/bptt_raises": "rank 1 raises between the forward and the backward of the first step",
    "fixtures/runs/fr_two_delays": "the loader of rank 1 takes 0.6 s a step; recorder dumps alone, of three steps",
    "fixtures/runs/other_sizes_later": "the batches of rank 1 have other sizes after the first step",
    "fixtures/runs/threads": "nothing; three threads run two models of one class, of several widths and sizes",
    "fixtures/runs/uneven_splits": "nothing; an all_to_all with uneven splits, layers of other widths, torch.cond, torch.compiler.disable",
    "fixtures/runs/two_encoders": "nothing; two encoders of one class, of other widths",
    "fixtures/runs/mesh_peer_of_failed": "the disk of rank 3 is full; rank 2 waits for it, ranks 0 and 1 go on",
    "fixtures/runs/nothing_compiled": "nothing; `torch.compile(DDP(model))`, with a model of modules of torch.nn alone",
    "fixtures/runs/modality_branches": "rank 1 takes another branch; each rank gets images and sentences in an order of its own",
    "fixtures/runs/speculative_branch": "rank 0 takes another branch; the nodes behind it have other names; contexts grow by other lengths",
    "fixtures/runs/rollout_raises": "rank 1 raises after its backward; ranks 0 and 1 train on what ranks 2 and 3 play",
    "fixtures/runs/rollout_slow_loader": "the loader of rank 2, which plays, takes 0.45 s a step of three; recorder dumps",
    "fixtures/runs/fr_rollout_hang": "rank 1 waits for a lock; rank 0 waits for it in a group of two, ranks 2 and 3 for both; recorder dumps alone",
    "fixtures/runs/slow_loader_compiles": "the loader of rank 1 takes 0.6 s a step, while rank 0 compiles; recorder dumps, profile of rank 1",
    "fixtures/runs/break_on_one": "rank 1 prints a value in the compiled function; a disabled function breaks the graph on both ranks",
    "fixtures/runs/killed_in_threads": "a rank is killed while a second thread scores; ranks compile from two threads each",
    "fixtures/runs/goes_first": "a pass of Inductor sleeps on rank 1; rank 0 compiles first, while the others wait at a barrier",
    "fixtures/runs/goes_first_hook_raises": "a hook of rank 1 raises; rank 0 had compiled first, and waits for the others",
    "fixtures/runs/exported_wrong_dtype": "the batches of rank 1 have a type that its weights do not have; the launcher notices it 8 s later",
    "fixtures/runs/restores_wrong": "rank 0 restores a checkpoint of another model; run.json",
    "fixtures/runs/raises_in_graph": "the batches of rank 1 have another type than its weights from step 4 on; run.json",
    "fixtures/runs/raises_in_kernel": "a matrix is not positive-definite in the fourth step; run.json",
    "fixtures/runs/index_out_of_bounds": "an index is too large in the third step; run.json",
    "fixtures/runs/slow_loader_beside_thread": "the loader of rank 0 takes 0.6 s a step, while a second thread of each rank compiles; recorder dumps",
    "fixtures/runs/hybrid_shards": "nothing; FSDP with shards of two ranks and replicas of two, on a busy machine; profiles alone",
    "fixtures/runs/param_server": "the loader of rank 3 takes 0.45 s a step; rank 0 receives from all, in turn; profiles alone",
}
SCREENS = {"A crash": "jobs/crash_in_compile/logs", "A hang": "jobs/hang_in_compile/logs", "A restart": "jobs/restart_elastic/logs",
           "A cold rank": "jobs/one_rank_cold/logs"}
BEGIN = """# Findings of recorded jobs

`tests/analysis/findings_page.py` writes this page. The table has the first finding of each job and the fault that was planted in it. "nothing above a note" leaves out the kinds
that a healthy job may have (`recompiles`, `graph_break`, `cache_bypassed`, `import_errors`).

| recording | planted | first finding |
|---|---|---|
"""
HARMLESS = {"recompiles", "graph_break", "cache_bypassed", "import_errors"}


ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def recording(name, shared):
    return os.path.join(ROOT if name.startswith("fixtures/") else shared, name)


def text(tlparse, *arguments):
    return subprocess.run([tlparse, *arguments], check=True, capture_output=True, text=True, env={**os.environ, "COLUMNS": "120"}).stdout


def plain(line):
    """Without the folders of the machine that recorded."""
    return re.sub(r"(?<!\w)/(?:\w[\w.-]*/)+(?=\w)", "", line)


def first(findings):
    urgent = [one for one in findings if one["severity"] != "note" and one["kind"] not in HARMLESS]
    if urgent:
        return f"{urgent[0]['severity']}: {urgent[0]['title']}"
    notes = [one for one in findings if one["severity"] == "note" and one["kind"] not in HARMLESS]
    return "nothing above a note" + (f"; note: {notes[0]['title']}" if notes else "")


def page(tlparse, shared):
    parts = [BEGIN]
    screens = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, planted in JOBS.items():
            database = os.path.join(scratch, name.replace("/", "_") + ".db")
            short = name.removesuffix("/logs").removeprefix("fixtures/logs/").removeprefix("fixtures/runs/")
            subprocess.run([tlparse, recording(name, shared), "--db-only", "--db", database, "--run", short], check=True, capture_output=True)
            said = first(json.loads(text(tlparse, "findings", database, "--json"))["findings"])
            parts.append(f"| `{short}` | {planted} | {plain(said).replace('|', chr(92) + '|')} |\n")
            for title, screen in SCREENS.items():
                if screen == name:
                    for command in ("findings", "status"):
                        lines = plain(text(tlparse, command, database)).rstrip().split("\n")
                        screens.append(f"## {title}: {command}\n\n```\n" + "\n".join(line.rstrip() for line in lines) + "\n```\n")
    return "".join(parts) + "\n" + "\n".join(screens)


if __name__ == "__main__":
    sys.stdout.write(page(sys.argv[1], sys.argv[2]))
