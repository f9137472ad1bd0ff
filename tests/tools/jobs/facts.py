"""What a sentence of a finding may claim of the raw files of a job, and how it is checked.

A check returns True (the raw files say so), False (they say otherwise) or None (they do not say).
A claim about several ranks is true if it is of each.
"""

import re

FORMS = []  # (compiled pattern, function(facts, match, finding) -> list of (claim, verdict))

RANKS = r"(?:[Rr]anks? \d[\d,\-]*(?: and ranks? \d[\d,\-]*)?|[Aa]ll \d+ ranks|[Bb]oth ranks)"
LABEL = r"!?\d+(?:/\d+)+"
FUNCTION = r"[^\s;,:]+"


def form(pattern):
    def add(function):
        FORMS.append((re.compile(pattern), function))
        return function

    return add


def numbers(text):
    """The ranks of `rank 2`, `ranks 0,1,3`, `ranks 0-2,5`."""
    found = []
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        found += range(int(first), int(last or first) + 1)
    return found


def seconds(text):
    """Seconds of `0.27 s`, `12 s`, `3 ms`, `2 min 5 s`; None: no duration."""
    factors = {"ms": 1e-3, "µs": 1e-6, "us": 1e-6, "s": 1.0, "min": 60.0, "h": 3600.0}
    parts = re.findall(r"([\d.]+) (ms|µs|us|s|min|h)\b", text)
    return sum(float(number) * factors[unit] for number, unit in parts) if parts else None


def close(claimed, real, share=0.06, least=0.06):
    return abs(claimed - real) <= max(least, share * abs(real))


def every(verdicts):
    verdicts = list(verdicts)
    return (
        None
        if not verdicts or (None in verdicts and False not in verdicts)
        else all(one is not False for one in verdicts)
    )


class Facts:
    """The raw files by rank. A rank may have several logs, of children and of launches: a claim
    is true if it is of one of them."""

    def __init__(self, job, world_size=None):
        self.job, self.world_size = job, world_size

    def logs(self, rank):
        return self.job.of_rank(rank)

    def main(self, rank):
        """The log of the rank itself in its last launch: none that begins while another one goes on."""
        logs = self.logs(rank)
        own = [
            log
            for log in logs
            if not log.unresolved and not any(one.first_s < log.first_s < one.last_s for one in logs)
        ]
        return (own or logs or [None])[-1]

    def all_ranks(self):
        return sorted({log.rank for log in self.job.logs if log.rank is not None})

    def ranks(self, text):
        if re.match(r"[Aa]ll \d+ ranks|[Bb]oth ranks", text) or text in ("the others", "others"):
            return self.all_ranks()
        return numbers(text)

    def any_log(self, rank, test):
        logs = self.logs(rank)
        return any(test(log) for log in logs) if logs else None

    def of_ranks(self, ranks, test):
        return every(self.any_log(rank, test) for rank in ranks)

    def compile(self, log, label, function=None):
        one = log.compiles.get(label)
        return one if one is not None and (function is None or one.function == function) else None

    def has_compile(self, label, function):
        return lambda log: self.compile(log, label, function) is not None

    def latest_s(self):
        return max((log.last_s for log in self.job.logs if log.last_s is not None), default=None)
