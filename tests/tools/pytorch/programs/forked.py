"""Starts the ranks of a job as children of one process, which has imported PyTorch once, and ends them as torchrun does."""
import os
import signal
import socket
import sys
import time
import traceback

import torch
import torch._dynamo  # noqa: F401
import torch._inductor.compile_fx  # noqa: F401

RANKS = 4


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _start(rank, port, function):
    pid = os.fork()
    if pid != 0:
        return pid
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # The pool of threads is the parent's; two threads that make the child's at once find none ("Invalid thread pool", 2.11 and 2.13).
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    # With one for all it depends on the moment which rank finds what another has just stored.
    os.environ["TORCHINDUCTOR_CACHE_DIR"] += f"_{rank}"
    code = 1
    try:
        function()
        code = 0
    except BaseException:  # whatever ends a rank
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run(function):
    """Calls `function` in each rank; exits with 1 when one fails, after the others were sent SIGTERM."""
    port = _free_port()
    running = {_start(rank, port, function) for rank in range(RANKS)}

    def end(*_):
        for pid in running:
            os.kill(pid, signal.SIGTERM)
        for pid in running:
            os.waitpid(pid, 0)
        sys.exit(1)

    signal.signal(signal.SIGTERM, end)
    while running:
        pid, status = os.wait()
        running.discard(pid)
        if status != 0:
            time.sleep(1)
            end()
