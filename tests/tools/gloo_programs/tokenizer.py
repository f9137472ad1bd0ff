"""T5 encoder; each rank has a tokenizer process that it asks through pipes."""
import datetime
import json
import subprocess
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from transformers import T5Config, T5EncoderModel

TOKENIZER = """
import json, sys
rank, answered = int(sys.argv[1]), 0
for line in sys.stdin:
    text = json.loads(line)
    answered += 1
    out = json.dumps([[ord(c) % 90 for c in row] for row in text])
    if rank == 2 and answered == 7:
        sys.stdin.read()          # a line is awaited that nobody writes
    sys.stdout.write(out + "\\n")
    sys.stdout.flush()
"""


class Tokenizer:
    def __init__(self, rank):
        self.process = subprocess.Popen([sys.executable, "-c", TOKENIZER, str(rank)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def encode(self, rows):
        self.process.stdin.write(json.dumps(rows) + "\n")
        self.process.stdin.flush()
        return torch.tensor(json.loads(self.process.stdout.readline()))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=75))
    rank = dist.get_rank()
    torch.manual_seed(9)
    encoder = T5EncoderModel(T5Config(vocab_size=90, d_model=24, d_kv=12, d_ff=32, num_layers=1, num_heads=2, dropout_rate=0.0))
    encoder.encoder.block[0].compile(backend="aot_eager")
    replica = DDP(encoder)
    optimizer = torch.optim.Adafactor(replica.parameters())
    tokenizer = Tokenizer(rank)
    for step in range(12):
        tokens = tokenizer.encode(["a small sentence"] * 4)
        replica(input_ids=tokens).last_hidden_state.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    tokenizer.close()
    dist.destroy_process_group()


main()
