"""Python loads this before a program that `tlparse run` has started (PYTHONPATH). Whatever fails here fails without a word: the
program must not notice. A sitecustomize of the user's own is loaded afterwards, as if this one were not there."""

import os
import sys
import time

RECORDED = os.environ.get("TLPARSE_RUN_RECORDED", "")
PIPES = os.environ.get("TLPARSE_RUN_PIPES", "")
STACKS = os.environ.get("TLPARSE_RUN_STACKS", "")
PROCESSES = os.environ.get("TLPARSE_RUN_PROCESSES", "")
ENDS = os.environ.get("TLPARSE_RUN_ENDS", "")  # a folder
FAULTS = os.environ.get("TLPARSE_RUN_FAULTS", "")  # set: the handler of fatal signals is ours
PROFILE = os.environ.get("TLPARSE_RUN_PROFILE", "")  # "steps 3 5", "seconds 10", "demand 10"
MEMORY = os.environ.get("TLPARSE_RUN_MEMORY", "")
NUMBERS = os.environ.get("TLPARSE_RUN_NUMBERS", "")  # of the calls of a compiled graph each so many
CHANGES = os.environ.get("TLPARSE_RUN_CHANGES", "")  # JSON: what `tlparse try` changes, a list of objects
CHANGED = os.environ.get("TLPARSE_RUN_CHANGED", "")  # the file that says which of them were made


def attempt(step, *arguments):
    try:
        step(*arguments)
    except BaseException:
        pass


def not_traced(function):
    """Dynamo would trace it, and break the graph in it, where a program compiles the step of its optimizer."""
    disable = getattr(sys.modules.get("torch._compile"), "_disable_dynamo", None)
    return disable(lambda *arguments: function(*arguments)) if disable else function  # it sets an attribute, which no method has


def content(path):
    with open(path, "rb") as file:
        return file.read().decode("utf-8", "replace")


def write_identity(kind, value, text=None):
    """Who this process is, in a line: tlparse may look at processes only when this one has ended. `kind`: "start", with the rank of the
    environment; "member", with the rank in the process group; "raised", with the time, and the traceback of the exception that ends
    the program; "left", with the time, exit code and stack where it called sys.exit or os._exit, and the traceback of what it was handling; "numbers", arguments of a process
    of multiprocessing; "errors", with the file of standard error and its size; "thread" or "task", with the time, and the name and traceback of the one that an exception ended.
    runner/identity_file.cc reads it."""
    machine = content("/proc/sys/kernel/random/boot_id").strip() + " " + os.readlink("/proc/self/ns/pid")
    stat = content("/proc/self/stat").rpartition(")")[2].split()  # from the third field of proc(5) on
    command = "".join(letter if letter.isprintable() else " " for letter in content("/proc/self/cmdline")[:2000].rstrip("\0"))
    line = "\t".join((machine, kind, str(os.getpid()), stat[19], stat[1], value, text or command)) + "\n"
    with open(PROCESSES, "ab", buffering=0) as file:  # in one write: other processes append too
        file.write(line.encode("utf-8", "replace"))


def write_start():
    write_identity("start", os.environ.get("RANK", ""))
    errors = os.fstat(2)
    if errors.st_mode & 0o170000 == 0o100000:  # a file, as torchrun --redirects gives each rank one
        write_identity("errors", str(errors.st_size), os.readlink("/proc/self/fd/2"))


def at_end(step, *arguments):
    """Calls the step when the program ends by itself, also in a child of multiprocessing, which atexit leaves out."""
    from multiprocessing import util
    util.Finalize(None, attempt, (step, *arguments), exitpriority=100)


def listen_for_stacks():
    """A signal makes faulthandler write the stacks of all threads, even if the program is blocked in C. tlparse looks whether the
    descriptor is still this file."""
    import faulthandler

    faulthandler.register(int(os.environ["TLPARSE_RUN_SIGNAL"]), file=open_high(STACKS), all_threads=True, chain=False)


def listen_for_ends():
    """Where the program was when a signal ended it: a fatal one, or that of its launcher, which ends it as before. A program that
    handles the signal itself replaces this."""
    import faulthandler
    import signal

    file = open_high(os.path.join(ENDS, str(os.getpid())))
    if FAULTS:
        faulthandler.enable(file=file)
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        faulthandler.register(signal.SIGTERM, file=file, all_threads=True, chain=True)


def open_high(path):
    """Beyond the descriptors that programs use by number."""
    import fcntl
    import resource

    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        return fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, max(10, min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1000) - 50))
    finally:
        os.close(file)


def profiled():
    """What a profile records besides: with --memory what is allocated, on the CPU too, and by which lines."""
    return {"profile_memory": True, "with_stack": True} if MEMORY else {}


class StepProfile:
    """Profiles a stretch of steps. The first step that is seen ends when an optimizer steps for the first time, so it is never profiled."""

    def __init__(self):
        kind, *numbers = PROFILE.split()
        self.first, self.last = (int(numbers[0]), int(numbers[1])) if kind == "steps" else (2, None)
        self.seconds = float(numbers[0]) if kind == "seconds" else None
        self.done, self.optimizer, self.profile, self.began = 0, None, None, 0.0

    def action(self, step):
        from torch.profiler import ProfilerAction

        if step < self.first:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if self.last is None or step <= self.last else ProfilerAction.NONE

    def after_step(self, optimizer, *_):
        attempt(self.count, optimizer)

    def count(self, optimizer):
        # Of several optimizers the first one counts.
        self.optimizer = self.optimizer or id(optimizer)
        if id(optimizer) != self.optimizer or self.profile is False:
            return
        self.done += 1
        if self.profile is not None:
            is_over = self.done >= self.last if self.last else time.monotonic() - self.began >= self.seconds
            return self.end() if is_over else self.profile.step()
        if self.done >= max(1, self.first - 2):
            self.begin(max(2, self.done + 1))

    def begin(self, step):
        import torch.profiler

        self.profile = torch.profiler.profile(schedule=self.action, **profiled())
        # The names of the steps are their numbers.
        self.profile.step_num, self.profile.current_action = step, self.action(step)
        self.began = time.monotonic()
        self.profile.start()
        at_end(self.end)

    def end(self):
        profile, self.profile = self.profile, False
        if profile:
            profile.stop()
        if profile and self.done >= self.first:  # a whole step was recorded
            profile.export_chrome_trace(os.path.join(RECORDED, "profile_pid_%d.json" % os.getpid()))


class DemandedProfile:
    """A signal begins a window of some seconds, in the main thread and whatever it does; another signal, by a timer, ends it."""

    def __init__(self):
        self.seconds = float(PROFILE.split()[1])
        self.profile, self.ends, self.count = None, 0.0, 0

    def listen(self):
        import signal

        signal.signal(int(os.environ["TLPARSE_RUN_PROFILE_SIGNAL"]), lambda *_: attempt(self.turn))

    def turn(self):
        if self.profile is None:
            self.begin()
        elif time.monotonic() >= self.ends:
            self.end()

    def begin(self):
        import threading

        data = sys.modules.get("torch.utils.data")
        if "torch" not in sys.modules or (data is not None and data.get_worker_info() is not None):
            return
        import torch.profiler

        profile = torch.profiler.profile(**profiled())
        profile.start()
        self.profile, self.ends = profile, time.monotonic() + self.seconds
        at_end(self.end)
        number = int(os.environ["TLPARSE_RUN_PROFILE_SIGNAL"])
        timer = threading.Timer(self.seconds + 0.01, os.kill, (os.getpid(), number))
        timer.daemon = True
        timer.start()

    def end(self):
        profile, self.profile = self.profile, None
        if profile is not None:
            profile.stop()
            self.count += 1
            profile.export_chrome_trace(os.path.join(RECORDED, "profile_pid_%d_%d.json" % (os.getpid(), self.count)))


class MemoryHistory:
    """What the allocator of CUDA does, from the moment on at which the program initializes CUDA: to record earlier would initialize it."""
    most_snapshots, most_peaks = 3, 10  # at allocations that failed; of peaks, each replaces the one before
    failures = peaks = peak = 0

    def after_cuda(self, module):
        module._lazy_call(lambda: attempt(self.begin))

    def begin(self):
        import torch
        torch.cuda.memory._record_memory_history(stacks="python", max_entries=100000)
        at_end(self.write, "end")
        torch._C._cuda_attach_out_of_memory_observer(self.after_failure)

    def after_failure(self, *_):
        self.failures += 1
        if self.failures <= self.most_snapshots:
            attempt(self.write, "oom_%d" % self.failures)

    def after_step(self, *_):
        attempt(self.look_at_peak)

    def look_at_peak(self):
        """A snapshot after the step that reached a new peak: its last events are those around the peak."""
        import torch

        peak = torch.cuda.max_memory_allocated() if torch.cuda.is_initialized() else 0
        if peak > self.peak * 1.05 and self.peaks < self.most_peaks:
            self.peak, self.peaks = peak, self.peaks + 1
            self.write("peak")

    def write(self, reason):
        import torch

        torch.cuda.memory._dump_snapshot(os.path.join(RECORDED, "memory_pid_%d_%s.pickle" % (os.getpid(), reason)))


# Old names and the ones that replaced them: PyTorch warns of an old one that is set.
RENAMED = (("TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE"), ("TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_FR_DUMP_ON_TIMEOUT"),
           ("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_DUMP_TEMP_FILE"))


def leave_one_name(spec):
    """Of a setting that `tlparse run` made under two names, keeps the one that this PyTorch asks for."""
    import re

    with open(os.path.join(os.path.dirname(spec.origin), "version.py"), encoding="utf-8") as file:
        version = re.search(r"__version__ = ['\"](\d+)\.(\d+)", file.read())
    if (int(version[1]), int(version[2])) < (2, 9):
        return
    for old, new in RENAMED:
        if old in os.environ and os.environ.get(new) == os.environ[old]:
            del os.environ[old]


class Loader:
    """A loader that calls a function when its module has been executed."""

    def __init__(self, loader, after):
        self.loader, self.after = loader, after

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        attempt(self.after, module)


class Finder:
    """Finds modules as the finders behind it do. `before` get the spec of a module, `after` the module."""

    def __init__(self, before, after):
        self.before, self.after = before, after

    def find_spec(self, name, path=None, target=None):
        before, after = self.before.pop(name, None), self.after.pop(name, None)
        if before is None and after is None:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if before is not None:
                    attempt(before, spec)
                if after is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = Loader(spec.loader, after)
                return spec
        return None


def load_next():
    """The sitecustomize that Python would have loaded."""
    import importlib.machinery
    import importlib.util

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    sys.path_importer_cache.pop(here, None)
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def watch_imports():
    after = {"torch.distributed.distributed_c10d": after_distributed, "torch.distributed.rpc": after_rpc}
    follow_steps = []
    if PROFILE.startswith("demand"):
        attempt(DemandedProfile().listen)
    elif PROFILE:
        follow_steps.append(StepProfile())
    if MEMORY:
        follow_steps.append(MemoryHistory())
        after["torch.cuda"] = follow_steps[-1].after_cuda
    if CHANGES:
        changes = Changes()
        after["torch._dynamo.convert_frame"] = changes.after_convert_frame
        after["torch._inductor.compile_fx"] = changes.after_compile_fx
        after["torch._dynamo"] = changes.after_dynamo
        follow_steps.append(changes)  # the last: it may end the program
    if follow_steps:
        after["torch.optim.optimizer"] = lambda module: [module.register_optimizer_step_post_hook(not_traced(one.after_step)) for one in follow_steps]
    if NUMBERS:
        from tlparse_numbers import Numbers
        after["torch._inductor.output_code"] = Numbers(NUMBERS).after_output_code
    after.update({"threading": after_threading, "multiprocessing.process": after_multiprocessing, "asyncio.base_events": Tasks().after_asyncio})
    for name in [name for name in after if name in sys.modules]:
        attempt(after.pop(name), sys.modules[name])
    sys.meta_path.insert(0, Finder({"torch": leave_one_name}, after))


if STACKS:
    attempt(write_start)
    os.register_at_fork(after_in_child=lambda: attempt(write_start))
    attempt(listen_for_stacks)
    attempt(listen_for_raises)
    attempt(listen_for_leaves)
    attempt(listen_for_raised_exits)
    if ENDS:
        attempt(listen_for_ends)
        os.register_at_fork(after_in_child=lambda: attempt(listen_for_ends))
    attempt(watch_imports)
load_next()
