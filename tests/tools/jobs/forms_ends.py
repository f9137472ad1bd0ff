"""Forms of sentences: how logs end, what failed, which ranks are not there or late."""

import re
import statistics

from facts import FUNCTION, LABEL, RANKS, close, form, seconds


@form(
    rf"^(?:Rank (?P<one>\d+)'s log|The logs of (?P<many>{RANKS})) ends? (?P<first>first, )?inside (?P<back>the backward of )?(?P<label>{LABEL}) (?P<function>{FUNCTION}?)"
    rf"(?:, in (?P<phase>[^;,]+))?(?:, (?P<gap>[\d.]+ m?s) before the others)?(?:; (?P<done>{RANKS}) finished that (?P<what>compile|backward))?$"
)
def ends_inside(facts, match, finding):
    ranks = facts.ranks(match["one"] or match["many"])
    label, function = match["label"], match["function"]
    claims = []
    for rank in ranks:
        claims.append(
            (
                f"rank {rank}'s log ends inside {label} {function}",
                facts.any_log(
                    rank,
                    lambda log: facts.compile(log, label, function) is not None
                    and (
                        any(one == label for _, one in log.open_events) or not facts.compile(log, label).done
                    ),
                ),
            )
        )
        if match["phase"]:
            claims.append(
                (
                    f"rank {rank}'s log ends in {match['phase']}",
                    facts.any_log(
                        rank, lambda log: any(name == match["phase"] for name, _ in log.open_events)
                    ),
                )
            )
    for rank in facts.ranks(match["done"]) if match["done"] else []:
        claims.append(
            (
                f"rank {rank} finished it",
                facts.any_log(
                    rank,
                    lambda log: any(
                        one.function == function and (one.backward_metrics if match["back"] else one.done)
                        for one in log.compiles.values()
                    ),
                ),
            )
        )
    if match["first"] and match["gap"]:
        own = min(log.last_s for rank in ranks for log in facts.logs(rank))
        rest = [log.last_s for log in facts.job.logs if log.rank not in ranks]
        claims.append(
            (
                f"{match['gap']} before the others",
                close(seconds(match["gap"]), min(rest) - own) if rest else None,
            )
        )
    return claims


@form(
    rf"^(?:Rank (?P<one>\d+)'s log|The logs of (?P<many>{RANKS})) ends? after (?P<back>the (?:forward|backward) of )?(?P<label>{LABEL}) (?P<function>{FUNCTION}?); (?P<others>{RANKS}) went on to (?P<what>.+)$"
)
def ends_after(facts, match, finding):
    ranks, label, function = facts.ranks(match["one"] or match["many"]), match["label"], match["function"]
    claims = [
        (
            f"rank {rank}'s log ends after {label} {function}",
            facts.any_log(
                rank, lambda log: facts.compile(log, label, function) is not None and not log.open_events
            ),
        )
        for rank in ranks
    ]
    following = re.search(rf"({LABEL}) ({FUNCTION})", match["what"])
    for rank in facts.ranks(match["others"]) if following else []:
        claims.append(
            (
                f"rank {rank} went on to {following[0]}",
                facts.any_log(rank, facts.has_compile(following[1], following[2])),
            )
        )
    for rank in ranks if following else []:
        own = facts.main(rank)  # an earlier launch may have gone on
        has = None if own is None else facts.has_compile(following[1], following[2])(own)
        if "backward" not in match["what"]:
            claims.append((f"rank {rank} did not go on to {following[0]}", None if has is None else not has))
    return claims


@form(
    r"(?P<who>Its|Their) last records? (?:is|are) of (?P<first>\d\d:\d\d:\d\d(?:\.\d+)?)(?: to (?P<last>\d\d:\d\d:\d\d(?:\.\d+)?))?(?: UTC)?(?:, (?:the first of them )?(?P<gap>[\d.]+ m?s) before the last of all logs)?"
)
def last_records(facts, match, finding):
    logs = [log for rank in finding["ranks"] or facts.all_ranks() for log in facts.logs(rank)]
    times = [log.last_s for log in logs]
    claims = []
    for name in ("first", "last"):
        if match[name]:
            claimed = clock_s(match[name])
            claims.append(
                (
                    f"a last record is of {match[name]}",
                    any(abs(claimed - one) < 0.002 for one in times) if times else None,
                )
            )
    if match["gap"] and times:
        claims.append(
            (
                f"{match['gap']} before the last of all logs",
                any(close(seconds(match["gap"]), facts.latest_s() - one, least=0.011) for one in times),
            )
        )
    return claims


def clock_s(text):
    hours, minutes, rest = text.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)


# --- Failures


@form(
    rf"^(?P<who>{RANKS}) failed to compile (?P<back>the backward of )?(?P<label>{LABEL}) (?P<function>{FUNCTION}?): (?P<text>.+)$"
)
def failed(facts, match, finding):
    claims = []
    # Parts of the message: what stands between them in the log may be left out.
    parts = [part for part in re.sub(r"\s+", " ", match["text"]).rstrip("… ").split(": ") if len(part) > 5][
        :6
    ]

    def tells(log):
        text = re.sub(r"\\n|\\t|\s+", " ", log.text.replace('\\"', '"'))
        return all(part in text for part in parts)

    for rank in facts.ranks(match["who"]):
        has = facts.any_log(
            rank,
            lambda log: bool((facts.compile(log, match["label"], match["function"]) or Nothing).failures),
        )
        claims.append((f"rank {rank} failed in {match['label']} {match['function']}", has))
        claims.append((f"rank {rank}: {': '.join(parts)[:80]}", facts.any_log(rank, tells)))
    return claims


class Nothing:
    failures = ()


@form(rf"(?P<who>{RANKS}) compiled it\.")
def compiled_it(facts, match, finding):
    label = finding["compiles"][0] if finding["compiles"] else None
    return [
        (
            f"rank {rank} compiled {label}",
            facts.any_log(
                rank,
                lambda log: label in log.compiles
                and log.compiles[label].done
                and not log.compiles[label].failures,
            ),
        )
        for rank in facts.ranks(match["who"])
    ]


@form(rf"It is the last compile in the logs? of (?P<who>{RANKS})\.")
def last_compile(facts, match, finding):
    label = finding["compiles"][0] if finding["compiles"] else None
    return [
        (
            f"{label} is the last compile of rank {rank}",
            facts.any_log(
                rank, lambda log: max(log.compiles.values(), key=lambda one: one.start_s).label == label
            ),
        )
        for rank in facts.ranks(match["who"])
    ]


# --- Ranks that are not there, or late


@form(
    rf"^No log from (?P<who>{RANKS})(?: in launch \d+)?(?: \((?P<have>\d+) of (?P<all>\d+) ranks have one\))?"
)
def no_log(facts, match, finding):
    claims = [(f"rank {rank} has no log", not facts.logs(rank)) for rank in facts.ranks(match["who"])]
    if match["have"]:
        claims.append((f"{match['have']} ranks have a log", len(facts.all_ranks()) == int(match["have"])))
        if facts.world_size:
            claims.append((f"there are {match['all']} ranks", facts.world_size == int(match["all"])))
    return claims


@form(rf"^No recorder dump from (?P<who>{RANKS}); (?P<others>{RANKS}) ha(?:s|ve) one")
def no_dump(facts, match, finding):
    return [
        (f"rank {rank} has no dump", rank not in facts.job.dumps) for rank in facts.ranks(match["who"])
    ] + [(f"rank {rank} has a dump", rank in facts.job.dumps) for rank in facts.ranks(match["others"])]


@form(rf"^(?P<who>{RANKS}) began to compile (?P<delay>[\d.]+ (?:ms|s)|\d+ min \d+ s) after (?:most ranks|rank \d+)")
def late(facts, match, finding):
    who = facts.ranks(match["who"])
    rest = [min(log.first_s for log in facts.logs(rank)) for rank in facts.all_ranks() if rank not in who]
    claims = []
    for rank in who:
        logs = facts.logs(rank)
        if logs and rest:
            real = min(log.first_s for log in logs) - statistics.median(rest)
            claims.append(
                (
                    f"rank {rank} began {match['delay']} later (really {real:.2f} s)",
                    close(seconds(match["delay"]), real, least=0.3),
                )
            )
    return claims
