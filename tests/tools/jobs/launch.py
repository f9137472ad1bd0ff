"""Starts the processes of recorded jobs. It runs under the Python that has PyTorch.

It reads one job a line from standard input, {"out", "program", "directory", "env", "ranks": [{"rank",
"env", "fresh"}], "notice_s", "settle_s", "limit_s"}, and answers each by a line, {"processes",
"wall_s", "why"}. Ranks are forked from this process, which has imported PyTorch but never called it.
Options that PyTorch reads from the environment while it is imported need a start anew ("fresh").
"""

import json
import os
import runpy
import signal
import sys
import time

import torch
import torch._dynamo
import torch._inductor.codecache
import torch._inductor.compile_fx
import torch._logging._internal
import torch.distributed
import torch.distributed._functional_collectives  # noqa: F401

POLL_S = 0.05
SAMPLE_S = 0.25


def become(job, rank):
    """The forked process becomes a rank; does not return."""
    os.setsid()
    log = os.open(f"{job['out']}/stdout_{rank['rank']}.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    environment = {**job["env"], **rank.get("env", {})}
    program = rank.get("program") or job["program"]
    os.chdir(job["directory"])
    if rank.get("fresh"):
        os.execve("/usr/bin/python3", ["python3", program], environment)
    os.environ.clear()
    os.environ.update(environment)
    torch._logging._internal.LOG_TRACE_HANDLER.root_dir = environment.get("TORCH_TRACE")
    torch.set_num_threads(1)
    sys.argv = [program]
    sys.path.insert(0, os.path.dirname(program))
    code = 0
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def tree(roots):
    """Process ids of `roots` and all below them."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    parents[int(name)] = int(file.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                pass
    found, grew = set(roots), True
    while grew:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grew = bool(more)
    return found


def is_busy(roots):
    """Whether the first thread of a process below `roots` runs, or waits for a disk or a core."""
    for pid in tree(roots):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] in "RD":
                    return True
        except OSError:
            pass
    return False


def end(alive, number):
    for pid in alive:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


class Run:
    def __init__(self, job):
        self.job = job
        self.start = time.time()
        self.alive, self.done, self.signals = {}, [], {}
        self.why = "ended"
        self.ending_since = None
        self.seen = []  # (time, whether something ran)

    def spawn(self):
        for rank in self.job["ranks"]:
            if rank.get("start_after_s"):
                time.sleep(rank["start_after_s"])
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                become(self.job, rank)
            self.alive[pid] = {"pid": pid, "rank": rank["rank"], "started_us": int(time.time() * 1e6)}

    def reap(self):
        failed = False
        for pid in list(self.alive):
            got, status = os.waitpid(pid, os.WNOHANG)
            if not got:
                continue
            process = self.alive.pop(pid)
            process["ended_us"] = int(time.time() * 1e6)
            process["signal"] = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
            process["exit_code"] = None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            process["ended_by_launcher"] = self.signals.get(pid)
            failed |= status != 0
            self.done.append(process)
            end([-pid], signal.SIGKILL)  # its workers
        return failed

    def terminate(self, why):
        if self.ending_since is None:
            self.why, self.ending_since = why, time.time()
            for pid in self.alive:
                self.signals[pid] = int(signal.SIGTERM)
            end(self.alive, signal.SIGTERM)

    def dump(self):
        """Asks the ranks for their recorder's dumps, as a watchdog does."""
        with open(f"{self.job['out']}/dump_now", "w"):
            pass
        until = time.time() + 3
        while time.time() < until:
            if all(os.path.exists(f"{self.job['out']}/dumped_{one['rank']}") for one in self.alive.values()):
                return
            time.sleep(0.1)

    def is_quiet(self, now):
        """Whether nearly nothing ran for settle_s. A process that gets no core counts as one that runs."""
        settle_s = self.job.get("settle_s", 6.0)
        if not self.seen or now - self.seen[-1][0] >= SAMPLE_S:
            self.seen.append((now, is_busy(self.alive)))
        if self.seen[-1][0] - self.seen[0][0] < settle_s:
            return False
        self.seen = [one for one in self.seen if now - one[0] <= settle_s + SAMPLE_S]
        return sum(busy for _, busy in self.seen) <= 0.1 * len(self.seen)

    def wait(self):
        job, failed_at = self.job, None
        while self.alive:
            time.sleep(POLL_S)
            now = time.time()
            if self.reap() and failed_at is None:
                failed_at = now
            is_noticed = failed_at is not None and now - failed_at >= job.get("notice_s", 0.1)
            if is_noticed and job.get("ends_others", True):
                self.terminate("a rank failed")
            if self.ending_since is not None:
                if now - self.ending_since > 5:
                    end(self.alive, signal.SIGKILL)
                continue
            preempt = job.get("preempt_after_s")
            if preempt and os.path.exists(f"{job['out']}/fired_{job['preempt_rank']}"):
                time.sleep(preempt)
                self.terminate("preempted")
            elif self.is_quiet(now):
                self.dump()
                self.terminate("nothing ran any more")
            elif now - self.start > job["limit_s"]:
                self.dump()
                self.terminate("took too long")

    def answer(self):
        return {
            "processes": sorted(self.done, key=lambda one: one["rank"]),
            "wall_s": round(time.time() - self.start, 2),
            "why": self.why,
        }


def main():
    print(json.dumps({"torch": torch.__version__, "python": sys.version.split()[0]}), flush=True)
    for line in sys.stdin:
        run = Run(json.loads(line))
        run.spawn()
        run.wait()
        print(json.dumps(run.answer()), flush=True)


main()
