"""What the programs share: where they write, dumps of the recorder, a profiler of four steps, an end."""

import datetime
import os
import sys
import threading
import time
import torch
import torch.distributed as dist
RANK = os.environ['RANK']
OUT = os.environ['OUT']
FAULT = os.environ.get('FAULT', '')

def start(backend='gloo'):
    dist.init_process_group(backend, timeout=datetime.timedelta(seconds=600))
    torch.manual_seed(0)
    return dist.get_rank(), dist.get_world_size()

def dump(prefix='fr_trace_rank_', stacks=True):
    data = torch._C._distributed_c10d._dump_fr_trace(True, stacks, False)
    with open(f'{OUT}/{prefix}{RANK}', 'wb') as f:
        f.write(data)

def dump_json(prefix='fr_trace_rank_'):
    data = torch._C._distributed_c10d._dump_fr_trace_json()
    with open(f'{OUT}/{prefix}{RANK}.json', 'w') as f:
        f.write(data if isinstance(data, str) else data.decode())

def dump_after(seconds, prefix='fr_trace_rank_'):
    """What an operator does to a job that stands: dumps of all ranks, then it is ended."""
    until = float(os.environ['T0']) + seconds

    def wait():
        time.sleep(max(0, until - time.time()))
        dump(prefix)
        time.sleep(3)
        os._exit(0)
    threading.Thread(target=wait, daemon=True).start()

def profiler(ready, repeat=1, **options):
    steps = torch.profiler.schedule(wait=1, warmup=1, active=4, repeat=repeat)
    cpu = [torch.profiler.ProfilerActivity.CPU]
    return torch.profiler.profile(activities=cpu, schedule=steps, on_trace_ready=ready, **options)

def end():
    sys.stdout.flush()
    os._exit(0)
