#!/usr/bin/env python3
"""Whether the hook of `tlparse run` works with a PyTorch: runs programs/hooked.py under it.

usage: hook.py PYTHON [ROW.json]

PYTHON has PyTorch and numpy; TLPARSE names the program. Prints what works and what does not, and writes it as {name: true or what was seen
instead}. Exit code 1: something does not. TOUCHED says of each what it touches in PyTorch; those that need a GPU are not looked at.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "hooked.py")
TOUCHED = {
    "rank in the process group": "`distributed_c10d.init_process_group`, `get_rank`",
    "exception that ends it": "none: `sys.excepthook`",
    "stacks": "none: `faulthandler`",
    "dump of gloo's recorder": "`_distributed_c10d._dump_fr_trace`, `_dump_nccl_trace`; writes nothing before 2.8",
    "names of variables": "`torch/version.py`",
    "profile of steps": "`optim.optimizer.register_optimizer_step_post_hook`; `profiler.profile.step_num`, `current_action`",
    "digests": "`_inductor.output_code`: `CompiledFxGraph.post_compile`",
    "option": "`convert_frame.ConvertFrameAssert.__call__`; the modules `config`",
    "option of torch.compile": "`compile_fx.compile_fx`: `config_patches`",
    "mark_dynamic": "`_dynamo.mark_dynamic`, locals of the frame",
    "variable": "none",
    "end after steps": "`optim.optimizer.register_optimizer_step_post_hook`",
    "fullgraph": "`ConvertFrameAssert._one_graph`, `ConvertFrame._inner_convert`",
    "backend": "`_dynamo.optimize`",
}


def facts_of(output):
    lines = [line for line in output.splitlines() if line.startswith("facts ")]
    return json.loads(lines[-1][6:]) if lines else {"output": output[-2000:]}


class Check:
    def __init__(self, python, folder):
        self.python, self.folder, self.row = python, folder, {}
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "TLPARSE_", "PYTHON", "RANK"))}
        self.environment.update(CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1", TORCHINDUCTOR_VEC_ISA_OK="0", TORCHINDUCTOR_COMPILE_THREADS="1",
                                TORCHINDUCTOR_CACHE_DIR=os.path.join(folder, "cache"))

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run(self, command, **variables):
        done = subprocess.run(command, cwd=self.folder, env={**self.environment, **variables}, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1200)
        return facts_of(done.stdout)

    def say(self, name, works, seen):
        self.row[name] = True if works else str(seen)[-300:]

    def recorded(self, version):
        facts = self.run([os.environ["TLPARSE"], "run", "-q", "-o", "job", "--numbers", "--profile=2-3", "--", self.python, PROGRAM, "recorded"])
        with open(self.path("job", "processes.txt")) as file:
            lines = [line.split("\t") for line in file]
        kinds = [(line[1], line[5]) for line in lines]
        self.say("rank in the process group", ("member", "0") in kinds, kinds)
        self.say("exception that ends it", any(line[1] == "raised" and "ValueError: ends here" in line[-1] for line in lines), kinds)
        with open(self.path("job", "stacks.txt")) as file:
            stacks = file.read()
        self.say("stacks", "in recorded" in stacks, stacks)
        recorded = sorted(os.listdir(self.path("job", "recorded")))
        self.say("dump of gloo's recorder", version < (2, 8) or "comm_lib_trace_rank_0" in recorded, recorded)
        wanted = ["TORCH_FR_BUFFER_SIZE"] if version >= (2, 9) else ["TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE"]
        self.say("names of variables", facts.get("variables") == wanted, facts)
        steps = []
        for profile in glob.glob(self.path("job", "recorded", "profile_pid_*.json")):
            with open(profile) as file:
                steps = sorted({one["name"] for one in json.load(file)["traceEvents"] if str(one.get("name")).startswith("ProfilerStep#")})
        self.say("profile of steps", steps == ["ProfilerStep#2", "ProfilerStep#3"], steps or facts)
        logs = ""
        for log in glob.glob(self.path("job", "recorded", "*.log")):
            with open(log) as file:
                logs += file.read()
        self.say("digests", "run_digest" in logs, "no record of a digest")

    def with_changes(self, part, changes):
        changed = self.path(part + ".txt")
        facts = self.run([self.python, PROGRAM, part], PYTHONPATH=self.path("job", "hook"), TLPARSE_RUN_STACKS=self.path("stacks.txt"),
                         TLPARSE_RUN_PROCESSES=self.path("processes.txt"), TLPARSE_RUN_SIGNAL="59", TLPARSE_RUN_CHANGES=json.dumps(changes),
                         TLPARSE_RUN_CHANGED=changed)
        made = set()
        if os.path.exists(changed):
            with open(changed) as file:
                made = {int(line.split()[1]) for line in file}
        return facts, {one["kind"] + " " + one["name"] for at, one in enumerate(changes) if at in made}

    def changes(self, version):
        def change(kind, name="", value="", function=""):
            return {"kind": kind, "name": name, "value": value, "function": function, "file": "hooked.py"}
        limit = "torch._dynamo.config." + ("cache_size_limit" if version < (2, 7) else "recompile_limit")
        facts, made = self.with_changes("changed", [
            change("option", limit, "7"), change("option", "torch._inductor.config.max_fusion_size", "32"),
            change("mark_dynamic", "x", "0", "double"), change("variable", "TLPARSE_TRIED", "yes"), change("steps", "", "4")])
        seen = (facts, sorted(made))
        self.say("option", facts.get("limit") == 7 and "option " + limit in made, seen)
        self.say("option of torch.compile", facts.get("fusion_size") == 32, seen)
        self.say("mark_dynamic", facts.get("graphs") == 1 and "mark_dynamic x" in made, seen)
        self.say("variable", facts.get("variable") == "yes", seen)
        self.say("end after steps", facts.get("steps") == 4 and "steps " in made, seen)
        facts, made = self.with_changes("checked", [change("fullgraph", function="breaks"), change("backend", "", "eager")])
        seen = (facts, sorted(made))
        self.say("fullgraph", "raised" in facts and "fullgraph " in made, seen)
        self.say("backend", "own" not in facts and facts.get("double") == [2.0, 2.0, 2.0] and "backend " in made, seen)


def check(python):
    version = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, check=True).stdout
    folder = tempfile.mkdtemp()
    try:
        one = Check(python, folder)
        version = tuple(int(part) for part in version.split(".")[:2])
        one.recorded(version)
        one.changes(version)
        return one.row
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    row = check(sys.argv[1])
    for name, works in row.items():
        print(f"  {name:28}{'works' if works is True else 'DOES NOT: ' + works}")
    if len(sys.argv) == 3:
        with open(sys.argv[2], "w") as file:
            json.dump(row, file, indent=1)
            file.write("\n")
    return 0 if all(works is True for works in row.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
