"""Records jobs: runs their programs with a real PyTorch, keeps logs, dumps, profiles and the key."""

import glob
import gzip
import json
import os
import shutil
import subprocess

import key
import rawlogs
from plan import BASE, HERE


class Root:
    """A folder with a Debian that has PyTorch, in which jobs run under /rec; needs root."""

    def __init__(self, folder, nice=10):
        self.folder = folder
        os.makedirs(self.path("/rec"), exist_ok=True)
        for name in ("launch.py", "cxx_store.sh"):
            shutil.copy(os.path.join(HERE, name), self.path("/rec"))
        with open(self.path("/rec/cxx_killed"), "w") as file:
            file.write(
                '#!/bin/sh\ncase "$*" in *--version*|*-v) exec g++ "$@" ;; *header*) exec /rec/cxx_store.sh "$@" ;; esac\nkill -9 $$\n'
            )
        for name in ("cxx_store.sh", "cxx_killed"):
            os.chmod(self.path("/rec/" + name), 0o755)
        settings = [f"{name}={value}" for name, value in BASE.items()]
        self.process = subprocess.Popen(
            [
                "nice",
                "-n",
                str(nice),
                "chroot",
                folder,
                "env",
                "-i",
                *settings,
                "TORCH_TRACE=/rec/unused",
                "python3",
                "/rec/launch.py",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.versions = json.loads(self.process.stdout.readline())

    def path(self, inside):
        return self.folder + inside

    def run(self, job):
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("launch.py ended")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Recorder:
    def __init__(self, root, out):
        self.root, self.out = root, out

    def record(self, plan):
        folder = self.root.path(plan.folder)
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("src", "logs", "tmp", "cache"):
            os.makedirs(f"{folder}/{name}")
        for name, text in plan.files.items():
            with open(f"{folder}/src/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        is_tiny = plan.fault.launch.get("tiny_disk")
        if is_tiny:
            os.makedirs(f"{folder}/full")
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", f"{folder}/full"], check=True)
        try:
            if plan.fault.launch.get("warm"):
                self.root.run(plan.job(0, strikes=False, trace="warm"))
                for name in ["truth.jsonl"] + [
                    os.path.basename(path)
                    for path in glob.glob(f"{folder}/store_*") + glob.glob(f"{folder}/profile*")
                ]:
                    if os.path.exists(f"{folder}/{name}"):
                        os.unlink(f"{folder}/{name}")
                shutil.rmtree(f"{folder}/fr", ignore_errors=True)
            answers = []
            for launch in range(plan.launches):
                for path in glob.glob(f"{folder}/dump*") + glob.glob(f"{folder}/fired_*"):
                    os.unlink(path)
                if plan.fault.launch.get("warm") and launch == plan.struck:
                    shutil.rmtree(f"{folder}/cache/{plan.victim}", ignore_errors=True)
                answers.append(self.root.run(plan.job(launch)))
        finally:
            if is_tiny:
                subprocess.run(["umount", f"{folder}/full"], check=True)
        return self.keep(plan, folder, answers)

    def keep(self, plan, folder, answers):
        target = os.path.join(self.out, plan.name)
        shutil.rmtree(target, ignore_errors=True)
        os.makedirs(f"{target}/logs")
        for path in sorted(glob.glob(f"{folder}/logs/**/*.log", recursive=True)):
            kept = f"{target}/{os.path.relpath(path, folder)}.zst"
            os.makedirs(os.path.dirname(kept), exist_ok=True)
            subprocess.run(["zstd", "-12", "-q", "-f", path, "-o", kept], check=True)
            shutil.copystat(path, kept)
        if os.path.isdir(f"{folder}/fr"):
            shutil.copytree(f"{folder}/fr", f"{target}/fr")
        for path in sorted(glob.glob(f"{folder}/profile_rank*.json")):
            with open(path, "rb") as file, gzip.open(f"{target}/{os.path.basename(path)}.gz", "wb", 6) as out:
                out.write(file.read())
        if plan.inputs == "run":
            self.write_run(plan, target, answers)
        shutil.copytree(f"{folder}/src", f"{target}/program", ignore=shutil.ignore_patterns("__pycache__"))
        with open(f"{target}/stdout.txt", "w", encoding="utf-8") as out:
            for path in sorted(glob.glob(f"{folder}/stdout_*.txt")):
                with open(path, encoding="utf-8", errors="replace") as file:
                    out.write(f"==> {os.path.basename(path)} <==\n{file.read()}\n")
        truth = []
        if os.path.exists(f"{folder}/truth.jsonl"):
            shutil.copy(f"{folder}/truth.jsonl", target)
            with open(f"{folder}/truth.jsonl") as file:
                truth = [json.loads(line) for line in file]
        meta = self.meta(plan, answers, truth, rawlogs.Job(target))
        with open(f"{target}/meta.json", "w", encoding="utf-8") as file:
            json.dump(meta, file, indent=1)
        shutil.rmtree(folder, ignore_errors=True)
        return meta

    def write_run(self, plan, target, answers):
        """What `tlparse run` leaves of a job on its host."""
        names = ("pid", "rank", "exit_code", "signal", "started_us", "ended_us")
        processes = [
            {name: process[name] for name in names} for answer in answers for process in answer["processes"]
        ]
        run = {
            "version": 1,
            "command": ["python3", plan.train],
            "directory": f"{plan.folder}/src",
            "started_us": min(one["started_us"] for one in processes),
            "ended_us": max(one["ended_us"] for one in processes),
            "host": "node-0",
            "environment": {"TORCH_TRACE": f"{plan.folder}/logs"},
            "processes": processes,
            "recorded": {"logs": True, "dumps": False, "profiles": False},
        }
        with open(f"{target}/run.json", "w", encoding="utf-8") as file:
            json.dump(run, file, indent=1)

    def meta(self, plan, answers, truth, job):
        fault = plan.fault
        ended_well = all(process["exit_code"] == 0 for process in answers[-1]["processes"])
        fired = [row for row in truth if row["event"] == "fired"]
        expects_fire = fault.launch.get("fires", True) and not fault.is_harmless
        problems = []
        if expects_fire and not fired:
            problems.append("the fault never struck")
        if fault.ends == "well" and not ended_well:
            problems.append("it was meant to end well")
        if fault.ends != "well" and ended_well and not plan.recovers:
            problems.append("it was meant to fail")
        cause = key.cause_of(plan, job)
        return {
            "name": plan.name,
            "shape": plan.shape.name,
            "fault": fault.name,
            "inputs": plan.inputs,
            "seed": plan.seed,
            "torch": self.root.versions["torch"],
            "world_size": plan.world,
            "about": plan.shape.about,
            "planted": fault.about,
            "victim": None if fault.everyone or fault.is_harmless else plan.victim,
            "roles": plan.roles,
            "children": plan.shape.options.get("children"),
            "launches": plan.launches,
            "struck_launch": plan.struck + 1,
            "shares_cache": plan.shares_cache,
            "healthy": cause is None,
            "highest_severity": "note" if cause is None or cause["class"] == "restarted" else None,
            "cause": cause,
            "not_visible": fault.not_visible,
            "ended_well": ended_well,
            "problems": problems,
            "launcher": [
                {"why": one["why"], "wall_s": one["wall_s"], "processes": one["processes"]} for one in answers
            ],
            "fired": [{name: row[name] for name in ("time", "rank", "pid", "attempt")} for row in fired][:8],
            "launched": key.launches_of(job.folder, job),
            "logs": key.describe_logs(job),
        }
