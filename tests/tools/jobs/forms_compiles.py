"""Forms of sentences: time, caches, recompiles, differences between ranks, graph breaks."""

import re

from facts import FUNCTION, LABEL, RANKS, close, form

# --- Time of compiles


def compile_s(log):
    total = 0.0
    for one in log.compiles.values():
        total += (
            sum((metrics.get("duration_us") or 0) for metrics in one.metrics + one.backward_metrics) / 1e6
        )
    return total


@form(
    rf"^(?P<who>{RANKS}) compiled for (?P<own>[\d.]+)(?: to (?P<own_most>[\d.]+))? s, (?P<count>\d+) others? for (?P<least>[\d.]+)(?: to (?P<most>[\d.]+))? s"
)
def compiled_for(facts, match, finding):
    who = facts.ranks(match["who"])
    claims = []
    for rank in who:
        for log in filter(None, [facts.main(rank)]):
            low, high = float(match["own"]), float(match["own_most"] or match["own"])
            claims.append(
                (
                    f"rank {rank} compiled for {match['own']} s (metrics: {compile_s(log):.1f} s)",
                    low - max(0.3, 0.1 * low) <= compile_s(log) <= high + max(0.3, 0.1 * high),
                )
            )
    rest = [compile_s(facts.main(rank)) for rank in facts.all_ranks() if rank not in who]
    # Without those that had compiled before the others, for longer.
    rest = sorted(rest)[: int(match["count"])]
    if rest:
        low, high = float(match["least"]), float(match["most"] or match["least"])
        claims.append(
            (
                f"others for {low} to {high} s (metrics: {min(rest):.1f} to {max(rest):.1f} s)",
                close(low, min(rest), 0.1, 0.3) and close(high, max(rest), 0.1, 0.3),
            )
        )
    return claims


# --- Caches


@form(
    rf"^(?P<who>{RANKS}) missed (?P<count>\d+) cache entr(?:y|ies) in (?P<where>.+?) that (?P<others>{RANKS}|others of this launch) hit"
)
def missed(facts, match, finding):
    who = facts.ranks(match["who"])
    claims = []
    labels = {label for label, _ in re.findall(rf"({LABEL}) ({FUNCTION})", match["where"])}
    # What an earlier launch missed does not count.
    launch = {rank: [facts.main(rank)] for rank in facts.all_ranks()}
    hits = {
        key
        for rank, logs in launch.items()
        for log in logs
        if rank not in who
        for one in log.compiles.values()
        for key in one.hits
    }
    for rank in who:
        own = [
            key
            for log in launch.get(rank, [])
            for label, one in log.compiles.items()
            if label in labels or not labels
            for key in one.misses
            if key in hits
        ]
        claims.append(
            (
                f"rank {rank} missed {match['count']} entries that others hit (keys of its records: {len(own)})",
                len(own) == int(match["count"]) if facts.logs(rank) else None,
            )
        )
    for label, function in re.findall(rf"({LABEL}) ({FUNCTION})", match["where"]):
        claims.append((f"{label} is {function}", facts.of_ranks(who, facts.has_compile(label, function))))
    return claims


@form(r"These compiles took (?P<a>[\d.]+) s on rank (?P<rank>\d+), (?P<b>[\d.]+) s on rank (?P<other>\d+)")
def these_took(facts, match, finding):
    claims = []
    for value, rank in ((match["a"], int(match["rank"])), (match["b"], int(match["other"]))):
        for log in filter(None, [facts.main(rank)]):
            took = sum(
                (metrics.get("duration_us") or 0) / 1e6
                for one in log.compiles.values()
                if one.label in finding["compiles"]
                for metrics in one.metrics + one.backward_metrics
            )
            claims.append(
                (
                    f"they took {value} s on rank {rank} (metrics: {took:.1f} s)",
                    close(float(value), took, 0.1, 0.3) if took else None,
                )
            )
    return claims


# --- Recompiles

TIMES = {"once": 1, "twice": 2}
COUNT = r"(?:once|twice|\d+ times)"


def count_of(text):
    return TIMES.get(text) or int(text.split()[0])


def recompiles(log, function):
    return [
        one
        for one in log.compiles.values()
        if one.reasons
        and one.function == function
        and not any("limit" in reason for _, reason in one.failures)
    ]


def values_claims(facts, ranks, function, text):
    """`size 1 of x: 12, 9 on rank 0`: each value must be in the reasons of each rank that it is told of; without a rank, of all."""
    claims = []
    if of_one := re.search(r" on rank (\d+)$", text or ""):
        ranks, text = [int(of_one[1])], text[: of_one.start()]
    for part in re.findall(r": ((?:-?\d+, )*-?\d+)(?=[,;)…]|$)", text or ""):
        for value in part.split(", "):
            for rank in ranks:
                claims.append(
                    (
                        f"rank {rank} saw {value} where {function} was recompiled",
                        facts.any_log(
                            rank,
                            lambda log: any(
                                re.search(rf"(?<!\d){value}(?!\d)", reason)
                                for one in recompiles(log, function)
                                for reason in one.reasons
                            )
                            or any(
                                re.search(rf"(?<!\d){value}(?!\d)", log.text_of(one.label))
                                for one in recompiles(log, function)
                            ),
                        ),
                    )
                )
    return claims


@form(
    rf"^(?P<function>{FUNCTION}) was recompiled (?P<count>{COUNT}|{COUNT[3:-1]} to \d+ times)(?: on each of the (?P<ranks>\d+) ranks)?(?: \((?P<values>.*)\))?"
)
def was_recompiled(facts, match, finding):
    if " to " in match["count"]:
        return []
    ranks = finding["ranks"] or facts.all_ranks()
    if not ranks:
        logs = [max((len(recompiles(log, match["function"])) for log in facts.job.logs), default=0)]
        return [(f"{match['function']} was recompiled {match['count']}", logs[0] == count_of(match["count"]))]
    claims = [
        (
            f"rank {rank} recompiled {match['function']} {match['count']}",
            facts.any_log(
                rank, lambda log: len(recompiles(log, match["function"])) == count_of(match["count"])
            ),
        )
        for rank in ranks
    ]
    if match["ranks"]:
        claims.append((f"there are {match['ranks']} ranks", len(facts.all_ranks()) == int(match["ranks"])))
    return claims + values_claims(facts, ranks, match["function"], match["values"])


@form(
    rf"^(?:Only (?P<only>{RANKS})|(?P<who>{RANKS})) recompiled (?P<function>{FUNCTION}?):? (?P<count>{COUNT})(?: each)?(?: \((?P<values>[^)]*)\))?(?:, (?P<others>{RANKS}) (?P<other_count>{COUNT}))?"
)
def one_recompiled(facts, match, finding):
    who, function = facts.ranks(match["only"] or match["who"]), match["function"]
    claims = [
        (
            f"rank {rank} recompiled {function} {match['count']}",
            facts.any_log(rank, lambda log: len(recompiles(log, function)) == count_of(match["count"])),
        )
        for rank in who
    ]
    if match["only"]:
        claims += [
            (
                f"rank {rank} did not recompile {function}",
                facts.any_log(rank, lambda log: not recompiles(log, function)),
            )
            for rank in facts.all_ranks()
            if rank not in who
        ]
    for rank in facts.ranks(match["others"]) if match["others"] else []:
        claims.append(
            (
                f"rank {rank} recompiled {function} {match['other_count']}",
                facts.any_log(
                    rank, lambda log: len(recompiles(log, function)) == count_of(match["other_count"])
                ),
            )
        )
    return claims + values_claims(facts, who, function, match["values"])


@form(
    rf"Only (?P<who>{RANKS}) recompiled (?P<function>{FUNCTION}?): (?P<label>{LABEL}) after (?P<prior>{LABEL})"
)
def recompiled_after(facts, match, finding):
    who, function = facts.ranks(match["who"]), match["function"]
    claims = [
        (
            f"rank {rank} recompiled {match['label']} after {match['prior']}",
            facts.any_log(
                rank,
                lambda log: match["label"] in log.compiles
                and any(
                    reason.startswith(match["prior"] + ":") for reason in log.compiles[match["label"]].reasons
                ),
            ),
        )
        for rank in who
    ]
    return claims + [
        (
            f"rank {rank} has no {match['label']} {function} that was recompiled",
            facts.any_log(rank, lambda log: not recompiles(log, function)),
        )
        for rank in facts.all_ranks()
        if rank not in who
    ]


# --- Launches


@form(r"^Launch (?P<launch>\d+)(?: of \d+)? had (?P<hits>\d+) cache hits?, (?:all|(?P<some>\d+)) of them on")
def launch_hits(facts, match, finding):
    logs = filter(None, map(facts.main, facts.all_ranks()))
    hits = sum(len(one.hits) for log in logs for one in log.compiles.values())
    return [(f"the last launch had {match['hits']} cache hits (records: {hits})", hits == int(match["hits"]))]


@form(
    rf"Most of the difference(?: of {RANKS})? in (?P<label>{LABEL}) (?P<function>{FUNCTION}) \((?P<more>[\d.]+) s more\)(?P<alone>: half of the ranks or more do not compile it)?"
)
def most_of_difference(facts, match, finding):
    def took_s(log):
        found = [one for one in log.compiles.values() if one.function == match["function"]]
        of_label = [one for one in found if one.label == match["label"]]
        found = of_label if match["alone"] else of_label or found
        return sum(
            (m.get("duration_us") or 0) / 1e6 for one in found for m in one.metrics + one.backward_metrics
        )

    who = finding["ranks"]
    rest = sorted(took_s(facts.main(rank)) for rank in facts.all_ranks() if rank not in who)
    claims = []
    for rank in who[:1] if rest else []:
        own = took_s(facts.main(rank))
        near = any(
            close(float(match["more"]), own - one, 0.15, 0.4) for one in [*rest, sum(rest) / len(rest)]
        )
        claims.append(
            (
                f"rank {rank} took {match['more']} s more (metrics: {own:.1f} s, others {rest})",
                near if own else None,
            )
        )
    return claims
