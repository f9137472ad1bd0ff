# The third part of the hook: groups that the process joins, and what is taken of them when it hangs.


def write_dump(path):
    """The flight recorder of this process."""
    from torch._C import _distributed_c10d as c10d
    dump = getattr(c10d, "_dump_fr_trace", None) or getattr(c10d, "_dump_nccl_trace", None)
    with open(os.path.join(PIPES, "draft_%d" % os.getpid()), "wb") as file:
        file.write(dump())
    os.replace(file.name, path)


def write_last_dump(pid, rank):
    """Beside the others: tlparse takes it where nothing else says who kept the others waiting: the command ends well, or all ranks waited in vain."""
    from torch._C import _distributed_c10d as c10d
    if pid == os.getpid() and hasattr(c10d, "_dump_fr_trace"):
        folder = os.path.join(PIPES, "last")
        os.makedirs(folder, exist_ok=True)
        write_dump(os.path.join(folder, "%d.%d" % (rank, pid)))


def write_peer():
    """Of the send or receive that the main thread waits in, the other rank and the tag: a stack does not name them."""
    import threading
    from torch.distributed import distributed_c10d
    path = os.path.join(PIPES, "peer_%d" % os.getpid())
    frame = sys._current_frames().get(threading.main_thread().ident)
    while frame and (frame.f_code.co_filename != distributed_c10d.__file__ or frame.f_code.co_name not in ("send", "recv")):
        frame = frame.f_back
    if frame is None:
        return
    side, word = ("dst", "to") if frame.f_code.co_name == "send" else ("src", "from")
    peer, in_group = frame.f_locals.get(side), frame.f_locals.get("group_" + side)
    if peer is None and in_group is not None:
        peer = distributed_c10d.get_global_rank(frame.f_locals["group"], in_group)
    if peer is not None:
        tag = frame.f_locals.get("tag")
        with open(path, "w", encoding="ascii") as file:
            file.write("%s %s rank %d%s" % (frame.f_code.co_name, word, peer, " with tag %d" % tag if tag else ""))


def wait_for_asks(pipe, rank):
    while os.read(pipe, 100):
        attempt(write_peer)
        attempt(write_dump, os.path.join(RECORDED, "comm_lib_trace_rank_%d" % rank))  # where PyTorch would write it at a timeout


def listen_for_dumps(distributed_c10d):
    """NCCL and XCCL have a pipe that asks for a dump. Other backends record as well, since 2.8, but nothing writes their dumps."""
    import threading

    backend = distributed_c10d.get_backend()
    if "nccl" in backend or "xccl" in backend or getattr(listen_for_dumps, "pid", None) == os.getpid():
        return
    listen_for_dumps.pid = os.getpid()
    name = os.path.join(PIPES, "pid_%d.pipe" % os.getpid())
    os.mkfifo(name, 0o600)
    pipe = os.open(name, os.O_RDWR | os.O_CLOEXEC)
    rank = distributed_c10d.get_rank()
    threading.Thread(target=wait_for_asks, args=(pipe, rank), name="tlparse", daemon=True).start()
    at_end(write_last_dump, os.getpid(), rank)
    listen_for_dumps.rank = rank


def say_rank(module, name, rank, *steps):
    """A function with which a process joins others, or waits for them without end. RANK of the environment may be that of its launcher, or of nothing."""
    import functools
    import inspect
    original = getattr(module, name)
    signature = inspect.signature(original)

    def say_asked(*arguments, **options):
        asked = signature.bind(*arguments, **options).arguments.get("rank", -1)
        asked = os.environ["RANK"] if asked is None or asked < 0 else str(int(asked))
        write_identity("member", asked)

    @functools.wraps(original)
    def join(*arguments, **options):
        attempt(lambda: say_asked(*arguments, **options))
        result = original(*arguments, **options)
        attempt(lambda: write_identity("member", str(rank())))
        for step in steps:
            attempt(step, module)
        return result

    join.__code__ = join.__code__.replace(co_name=name)  # in stacks, which do not ask for __wrapped__
    setattr(module, name, join)


def after_distributed(module):
    say_rank(module, "init_process_group", module.get_rank, *([listen_for_dumps] if PIPES else []))


def after_rpc(module):
    say_rank(module, "init_rpc", lambda: module.get_worker_info().id)
