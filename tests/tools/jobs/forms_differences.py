"""Forms of sentences: differences between ranks, graph breaks, guards that failed."""

import re

from facts import FUNCTION, LABEL, RANKS, form


@form(rf"^(?P<who>{RANKS}) did not compile (?P<label>{LABEL}) (?P<function>{FUNCTION}?), the others did")
def did_not_compile(facts, match, finding):
    who = facts.ranks(match["who"])
    return [
        (
            f"rank {rank} did not compile {match['function']}",
            facts.any_log(
                rank,
                lambda log: not any(
                    one.function == match["function"] and one.label == match["label"]
                    for one in log.compiles.values()
                ),
            ),
        )
        for rank in who
    ] + [
        (
            f"rank {rank} compiled {match['function']}",
            facts.any_log(rank, facts.has_compile(match["label"], match["function"])),
        )
        for rank in facts.all_ranks()
        if rank not in who
    ]


@form(rf"^Only (?P<who>{RANKS}) compiled (?P<label>{LABEL}) (?P<function>{FUNCTION}?)$")
def only_compiled(facts, match, finding):
    who = facts.ranks(match["who"])
    return [
        (
            f"rank {rank} compiled {match['label']} {match['function']}",
            facts.any_log(rank, facts.has_compile(match["label"], match["function"])),
        )
        for rank in who
    ] + [
        (
            f"rank {rank} did not",
            facts.any_log(rank, lambda log: not facts.compile(log, match["label"], match["function"])),
        )
        for rank in facts.all_ranks()
        if rank not in who
    ]


@form(
    rf"^No schedule or code with the collectives of (?P<label>{LABEL}) (?P<function>{FUNCTION}) is in the logs? of (?P<who>{RANKS})"
)
def collectives_not_there(facts, match, finding):
    op = re.compile(r"_c10d_functional\.(?!wait_tensor)")

    def has_none(log):
        own = [one for one in log.compiles.values() if one.function == match["function"]]
        codes = [text for one in own for text in log.texts.get(one.label, []) if "def call(" in text]
        return not any(one.collectives for one in own) and not any(op.search(code) for code in codes)

    return [
        (
            f"rank {rank} has no schedule or code of {match['function']} with collectives",
            facts.any_log(rank, has_none),
        )
        for rank in facts.ranks(match["who"])
    ]


@form(rf"^(?P<who>{RANKS}) compiled with another configuration: (?P<what>.+)$")
def other_configuration(facts, match, finding):
    claims = []
    who = facts.ranks(match["who"])
    rest = [rank for rank in facts.all_ranks() if rank not in who]
    for name, old, new in re.findall(r"([\w.]+) ([^;→]+) → ([^;→]+)", match["what"]):
        for ranks, value in ((who, new.strip()), (rest, old.strip())):
            if re.fullmatch(r"-?\d+|True|False|None", value):
                spelled = {"True": "true", "False": "false", "None": "null"}.get(value, value)
                found = re.compile(
                    rf"{re.escape(name.split('.')[-1])}[\"'\\]*\]?: [\"'\\]*({value}|{spelled})\b"
                )
                claims.append(
                    (
                        f"{name} is {value} on ranks {ranks}",
                        facts.of_ranks(ranks, lambda log: bool(found.search(log.text))),
                    )
                )
    return claims


def graph_has(text, part):
    """Whether a printed graph has `name = op` or `name: annotation`; None: a part of another form."""
    part = part.strip().rstrip(",")
    assigned = re.fullmatch(r"(\w+) = ([\w.]+)(?:\(.*\))?.*", part)
    if assigned:
        return bool(re.search(rf"\b{assigned[1]}\b[^\n=]* = [^\n]*{re.escape(assigned[2])}", text))
    if re.fullmatch(r"\w+: \w+\[[\d, s]*\]\S*.*", part):
        return part in text.replace('"', "")
    return None


@form(
    rf"^(?P<who>{RANKS}) (?:compiled another graph|ran another text of \S+): (?P<label>{LABEL}) (?P<function>{FUNCTION})"
    r"(?: (?:forward|backward|inference|joint))?: (?P<old>[^→]+) → (?P<new>[^→]+?)(?:, at (?P<at>\S+:\d+).*)?$"
)
def another_graph(facts, match, finding):
    who, label, function = facts.ranks(match["who"]), match["label"], match["function"]
    rest = [rank for rank in facts.all_ranks() if rank not in who]
    claims = []
    for ranks, part in ((who, match["new"]), (rest, match["old"])):
        for rank in ranks:
            verdict = facts.any_log(
                rank,
                lambda log: any(
                    graph_has(log.text_of(one.label), part)
                    for one in log.compiles.values()
                    if one.function == function
                ),
            )
            if graph_has("", part) is not None:
                claims.append((f"rank {rank}'s graph of {label} {function} has {part.strip()}", verdict))
    return claims


@form(
    rf"^(?P<who>{RANKS}) compiled (?P<label>{LABEL}) (?P<function>{FUNCTION}) for other inputs: (?P<what>.+)$"
)
def other_inputs(facts, match, finding):
    who = facts.ranks(match["who"])
    has = facts.has_compile(match["label"], match["function"])
    return [
        (f"rank {rank} compiled {match['label']} {match['function']}", facts.any_log(rank, has))
        for rank in who
    ]


@form(
    rf"^(?P<one>{RANKS}) and (?P<two>{RANKS}) compiled (?P<label>{LABEL}) (?P<function>{FUNCTION})(?:, {LABEL} {FUNCTION})* "
    r"for different inputs: (?P<what>.+?) \(from (?P<from>.+?) to (?P<to>.+?)(?:;[^)]*)?\)"
)
def different_inputs(facts, match, finding):
    claims = []
    function = match["function"]
    for old, new in re.findall(r"size (\[[\d, ]+\]) → (\[[\d, ]+\])", match["what"])[:3]:
        for ranks, size in ((facts.ranks(match["from"]), old), (facts.ranks(match["to"]), new)):
            for rank in ranks:
                has = facts.any_log(
                    rank,
                    lambda log: any(
                        size in log.text_of(one.label) or size in log.text
                        for one in log.compiles.values()
                        if one.function == function
                    ),
                )
                claims.append((f"rank {rank} has {size} in {function}", has))
    return claims


@form(rf"^(?P<who>{RANKS}) runs? (?:another|different) builds?:")
def another_build(facts, match, finding):
    versions = set()
    for log in facts.job.logs:
        for one in log.compiles.values():
            versions |= {
                (metrics.get("python_version"), metrics.get("pytorch_version")) for metrics in one.metrics
            }
    versions.discard((None, None))
    same = len(versions) == 1
    return [
        (
            "their builds differ (versions in the metrics: " + str(sorted(versions, key=str)) + ")",
            False if same else None,
        )
    ]


@form(
    rf"^(?P<who>{RANKS}) compiled (?P<label>{LABEL}) (?P<function>{FUNCTION}), (?P<others>{RANKS}) did not$"
)
def compiled_others_not(facts, match, finding):
    has = facts.has_compile(match["label"], match["function"])
    claims = [(f"rank {rank} compiled it", facts.any_log(rank, has)) for rank in facts.ranks(match["who"])]
    for rank in facts.ranks(match["others"]):
        does = facts.any_log(rank, has)
        claims.append((f"rank {rank} did not", None if does is None else not does))
    return claims


def plain_names(text):
    """self._modules['first']._parameters['bias'] is self.first.bias."""
    return re.sub(r"\._(?:modules|parameters|buffers)\['([^']+)'\]", r".\1", text)


@form(r"Guards that failed: (?P<what>.+)$")
def failed_guards(facts, match, finding):
    claims = []
    reasons = [
        (one.label, plain_names(reason))
        for log in facts.job.logs
        for one in log.compiles.values()
        for reason in one.reasons
    ]
    for label, prior, guard in re.findall(
        rf"({LABEL}) after ({LABEL}): (.+?)(?=; (?:{LABEL} )?after |; and \d+ more|\.?$)", match["what"]
    ):
        start = re.split(r" at: | \(", guard)[0].rstrip(".…")[:40]
        found = any(
            own == label and reason.startswith(prior + ":") and start in reason for own, reason in reasons
        )
        if not start.startswith("type of"):
            claims.append((f"{label} after {prior}: {start}", found))
    return claims


@form(
    rf"^(?P<who>{RANKS}) compiled (?P<new>[^\s,]+) as (?P<label>{LABEL}), (?P<others>{RANKS}|most others) compiled (?P<old>[^\s,]+)$"
)
def another_function(facts, match, finding):
    who = facts.ranks(match["who"])
    rest = [rank for rank in facts.all_ranks() if rank not in who]
    with_old = [rank for rank in rest if facts.any_log(rank, facts.has_compile(match["label"], match["old"]))]
    others = facts.ranks(match["others"]) if match["others"] != "most others" else None
    return [
        (
            f"ranks {who} compiled {match['label']} {match['new']}",
            facts.of_ranks(who, facts.has_compile(match["label"], match["new"])),
        ),
        (
            f"{match['others']} compiled {match['label']} {match['old']} ({with_old})",
            set(others) <= set(with_old) if others else 2 * len(with_old) > len(rest),
        ),
    ]


# --- Graph breaks


@form(rf"^Only (?P<who>{RANKS}) breaks? the graph of (?P<label>{LABEL}) (?P<function>{FUNCTION})(?: at (?P<at>[\w.\-]+:\d+))?")
def only_breaks(facts, match, finding):
    who, function = facts.ranks(match["who"]), match["function"]

    def breaks(log):
        of_function = [one for one in log.compiles.values() if one.function == function]
        if match["at"]:
            return any("/" + match["at"] in text for one in of_function for text in one.breaks)
        return any(one.breaks or one.restarts for one in of_function)

    rest = [rank for rank in facts.all_ranks() if rank not in who]
    claims = [(f"rank {rank} breaks the graph of {function}", facts.any_log(rank, breaks)) for rank in who]
    for rank in rest:
        does = facts.any_log(rank, breaks)
        claims.append((f"rank {rank} does not break it", None if does is None else not does))
    return claims


@form(rf"^(?P<who>{RANKS}) compiled it for (?P<own>.+?), (?P<others>{RANKS}) for (?P<other>.+?), which")
def compiled_it_for(facts, match, finding):
    claims = []
    for ranks, guard in (
        (facts.ranks(match["who"]), match["own"]),
        (facts.ranks(match["others"]), match["other"]),
    ):
        name, _, value = guard.partition(" == ")
        short = re.sub(r"^G\['(\w+)'\]$", r"\1", name)
        for rank in ranks:
            has = facts.any_log(rank, lambda log: short in log.text and value in log.text)
            claims.append((f"rank {rank} has the guard {guard}", has))
    return claims


@form(rf"^(?P<function>[\w<>]+) breaks? the graph (?:at|in) (?P<at>[\w./\-]+:\d+)")
def breaks_the_graph(facts, match, finding):
    def breaks(log):
        return any(
            one.breaks or one.restarts for one in log.compiles.values() if one.function == match["function"]
        )

    ranks = finding["ranks"] or facts.all_ranks()
    return [
        (f"rank {rank} breaks the graph of {match['function']}", facts.any_log(rank, breaks))
        for rank in ranks
    ]


@form(
    rf"^(?P<who>{RANKS}) schedules (?:its collectives in another order|other collectives) than the others: in (?P<label>{LABEL}) (?P<function>{FUNCTION})"
)
def schedules_other(facts, match, finding):
    def schedule(log):
        return [one.collectives for one in log.compiles.values() if one.function == match["function"]]

    who = facts.ranks(match["who"])
    rest = [schedule(facts.main(rank)) for rank in facts.all_ranks() if rank not in who]
    claims = []
    for rank in who:
        own = schedule(facts.main(rank)) if facts.main(rank) else []
        is_other = all(own != other for other in rest)
        claims.append(
            (f"rank {rank} has another schedule", is_other if any(own) and any(map(any, rest)) else None)
        )
    return claims
