"""The key of a recording: what was planted, and what its raw logs, dumps and profiles show.

It is never made from an answer of tlparse.
"""

import json
import os

# The kinds of findings that may name a cause of each class. A new kind gets its place here.
ENDS = ["stopped_first", "crashed", "stuck", "collective_not_reached", "compile_failed", "never_called"]
CLASSES = {
    "straggler": ["slow_rank", "straggler", "late_rank"],
    "late": ["late_rank", "slow_rank", "straggler"],
    "slow_compile": ["slow_rank", "straggler", "late_rank"],
    "compile_failed": ["compile_failed"],
    "compile_failed_or_ended": ["compile_failed", "crashed", "stopped_first", "never_called", "graph_break"],
    "ended": ENDS,
    "ended_before_all": ENDS + ["missing_rank", "missing_compile"],
    "collective": [
        "collective_divergence",
        "collective_not_reached",
        "stuck",
        "execution_divergence",
        "never_called",
    ],
    "config": ["config_divergence"],
    "backend": ["config_divergence", "code_divergence"],
    "input": ["input_divergence", "graph_divergence"],
    "recompile": ["recompiles", "extra_compile", "input_divergence", "recompile_limit"],
    "graph": ["graph_divergence", "code_divergence"],
    "graph_break_divergence": ["graph_break_divergence", "graph_break"],
    "graph_break": ["graph_break"],
    "recompile_limit": ["recompile_limit", "recompiles"],
    "cold": ["cold_cache"],
    "missing": ["missing_rank", "eager_rank"],
    "eager": ["missing_rank", "eager_rank", "runs_eagerly"],
    "restarted": ["restarted"],
}
# Between two ranks alone, nothing shows which one is odd.
SYMMETRIC = {"config", "backend", "input", "graph", "graph_break_divergence", "collective"}
# A note is enough: a log that is not there is no fault of the job, for example.
ANY_SEVERITY = {"missing", "graph_break", "recompile_limit", "recompile", "restarted"}


def began(log):
    """What a log shows to have begun, with its start: (function, line, number, direction)."""
    counts, steps = {}, {}
    for one in log.compiles.values():
        if one.function is None:
            continue
        at = (one.function, one.line)
        number = counts[at] = counts.get(at, -1) + 1
        steps[(*at, number, "forward")] = one.start_s
        if one.backward_began or one.backward_metrics:
            steps[(*at, number, "backward")] = one.last_s
    return steps


def log_of(job, rank, pids=None):
    """The rank's log, not that of a child of it; of the last launch unless process ids are given."""
    logs = [log for log in job.of_rank(rank) if pids is None or log.pid in pids]
    return logs[-1] if logs else None


def ends_with(mine, others):
    """Whether a launcher may have ended all of them at once: which was the first is then in no log."""
    mine_began = began(mine)
    # One that is ahead, and silent for longer, waits for the others.
    ending = [log for log in others if log.open_events or abs(mine.last_s - log.last_s) <= 1]
    are_behind_or_inside = all(
        log.open_events or any(step not in began(log) for one in others for step in began(one) if step not in mine_began)
        for log in ending
    )
    return are_behind_or_inside and bool(ending) and all(abs(mine.last_s - log.last_s) <= 1 for log in ending)


def what_end_shows(job, victim, peers, pids=None, has_role_peers=True):
    """How the victim's end differs from its peers' in the logs: {"visible", "functions", "text"}.
    Ranks of other roles compile other functions."""
    logs = {rank: log_of(job, rank, pids) for rank in (victim, *peers)}
    mine, others = logs[victim], [logs[rank] for rank in peers if logs[rank] is not None]
    if mine is None:
        shows_rank = any(log.rank > victim for log in others) or bool(job.dumps)
        return {
            "visible": shows_rank,
            "functions": [],
            "text": "the victim has no log, its peers have"
            + ("" if shows_rank else "; that there is such a rank is in none"),
            "no_log": True,
        }
    mine_began = began(mine)
    ahead = [
        step for log in others for step in began(log) if has_role_peers and step not in mine_began
    ]
    open_label = next((label for _, label in reversed(mine.open_events) if label), None)
    if ahead and not mine.open_events and ends_with(mine, others):
        return {
            "visible": False,
            "functions": [],
            "text": "its log ends between compiles, those of its peers inside one, all within a launcher's second",
        }
    last = mine.compiles.get(open_label) if open_label else None
    functions = [last.function] if last else [step[0] for step in list(mine_began)[-1:]]
    functions += [step[0] for step in ahead]
    if ahead:
        return {
            "visible": True,
            "functions": functions,
            "text": f"its log ends {'inside ' + open_label if open_label else 'between compiles'}; peers went on to {sorted({step[0] for step in ahead})}",
        }
    if open_label:
        open_too = [log for log in others if any(label == open_label for _, label in log.open_events)]
        if not open_too:
            return {
                "visible": True,
                "functions": functions,
                "text": f"its log ends inside {open_label}, those of its peers do not",
            }
        first = all(mine.last_s < log.last_s - 0.05 for log in open_too)
        return {
            "visible": first,
            "functions": functions,
            "text": f"all end inside {open_label}; its last record is {'the first' if first else 'not the first'}",
        }
    return {"visible": False, "functions": functions, "text": "its log ends where its peers' do, or later"}


def dumps_tell(dumps, victim, peers):
    """Whether the dumps set the victim apart: it alone left none, or issued fewer or more in a group of its own."""
    if victim not in dumps:
        return all(peer in dumps for peer in peers)
    def counts(rank):
        groups = [str(entry["process_group"]) for entry in dumps[rank]["entries"]]
        return {group: groups.count(group) for group in groups}
    own = counts(victim)
    theirs = [counts(peer) for peer in peers if peer in dumps]
    return any(own[group] != other[group] for other in theirs for group in own if group in other)


def finish_cause(cause, job, context):
    """Adds to the planted cause what only the raw files can say. `context`: victim, peers, pids of the
    ranks in the launch in which it struck, message, whether other inputs than logs show it."""
    what = cause["class"]
    pids = context["pids"]
    if what == "late" and context["peers"]:
        # Where a rendezvous comes before the first compile, all ranks begin late.
        mine, others = (log_of(job, context["victim"], pids), [log_of(job, rank, pids) for rank in context["peers"]])
        cause["visible"] = mine is not None and all(log is None or mine.first_s > log.first_s + 5 for log in others)
    if what == "missing":
        # That a rank has no log shows where the inputs have a higher rank, or its dump.
        cause["visible"] = context["shown_otherwise"] or any(
            log.rank is not None and log.rank > context["victim"] for log in job.logs
        )
    if what == "collective" and context["left_no_dump"]:
        # Gloo ends the process that waits for what none sends.
        cause.update({"class": "ended_before_all", "place": []})
    if what == "ended":
        shows = what_end_shows(job, context["victim"], context["peers"], pids, context["has_role_peers"])
        cause["raw"] = shows["text"]
        if shows.get("no_log"):
            cause["class"] = "ended_before_all"
        elif shows["functions"]:
            cause["words"].append(sorted(set(shows["functions"])))
        if not shows["visible"]:
            cause["visible"] = context["shown_otherwise"]
            cause["words"] = []
            if context["left_no_dump"]:
                cause["class"] = "ended_before_all"
    if what in ("compile_failed", "compile_failed_or_ended"):
        log = log_of(job, context["victim"], pids) if context["peers"] else job.logs[-1]
        logs = [log] if log else [one for one in job.logs if one.rank is None]
        failures = [failure for one in logs for each in one.compiles.values() for failure in each.failures]
        cause["raw"] = f"failures in the victim's log: {failures[:2]!r}"[:300]
        if what == "compile_failed":
            cause["visible"] = bool(failures)
        elif log and context["message"] in log.text:
            cause["says"].append([context["message"], "ValueError"])
        elif not failures:
            shows = what_end_shows(job, context["victim"], context["peers"], pids)
            cause.update(visible=shows["visible"], raw=shows["text"])


def mains_of(folder):
    """The processes that are ranks, by their own account: {launch: {process id: rank}}."""
    mains = {}
    path = os.path.join(folder, "truth.jsonl")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for row in map(json.loads, file):
                if row["event"] == "started":
                    mains.setdefault(row["attempt"], {})[row["pid"]] = row["rank"]
    return mains


def launches_of(folder, job):
    """Of each launch that left logs, the process ids of ranks with a log."""
    logged = {log.pid for log in job.logs}
    return [sorted(set(pids) & logged) for _, pids in sorted(mains_of(folder).items()) if set(pids) & logged]


def cause_of(plan, job):
    """The cause as a finding should name it; None: nothing was planted."""
    fault = plan.fault
    if fault.is_harmless:
        return None
    what = fault.sees[plan.inputs]
    cause = {
        "class": what or "none",
        "ranks": [] if fault.everyone else [plan.victim],
        "visible": what is not None,
        "words": plan.fill(fault.words),
        "says": plan.fill(fault.says.get(plan.inputs, ())),
        "place": plan.marks.get(fault.place, []) if fault.place else [],
        "planted_at": plan.marks.get("cause", []),
    }
    if plan.recovers and fault.ends != "well":
        cause.update(
            {"class": "restarted", "words": [], "place": [], "says": [[f"rank {plan.victim}"]], "ranks": None}
        )
        return cause
    if cause["class"] == "collective" and cause["place"]:
        # Its peers' call is where the mismatch is as well.
        cause["place"] = cause["place"] + plan.marks.get("all_reduce", []) + plan.marks.get("sync", [])
    has_ranks = any(log.rank is not None for log in job.logs) or bool(job.dumps)
    if plan.world == 1 or not has_ranks:
        cause["ranks"] = []
    if not has_ranks and cause["class"] in SYMMETRIC:
        # Nothing shows that processes without ranks were meant to do the same.
        cause["visible"] = False
    role = next((ranks for ranks in plan.roles.values() if plan.victim in ranks), [])
    peers = [rank for rank in (role if len(role) > 1 else range(plan.world)) if rank != plan.victim]
    cause["either"] = cause["class"] in SYMMETRIC and len(peers) == 1
    finish_cause(
        cause,
        job,
        {
            "victim": plan.victim,
            "peers": peers,
            "pids": set(mains_of(job.folder).get(plan.struck, {})) or None,
            "has_role_peers": len(role) > 1,
            "left_no_dump": bool(job.dumps) and plan.victim not in job.dumps,
            "shown_otherwise": plan.inputs == "run"
            or any(dump["entries"] for dump in job.dumps.values())
            and fault.sees["dumps"] is not None
            and dumps_tell(job.dumps, plan.victim, peers),
            "message": plan.names.drawn.get("message"),
        },
    )
    return cause


def describe_logs(job):
    """A short account of the raw logs for people who read the key."""
    rows = []
    for log in job.logs:
        compiles = [
            f"{one.label} {one.function}{'' if one.done else ' (no metrics)'}{' failed' if one.failures else ''}"
            for one in log.compiles.values()
        ]
        rows.append(
            {
                "log": log.name,
                "rank": log.rank,
                "pid": log.pid,
                "records": log.records,
                "first_s": log.first_s,
                "last_s": log.last_s,
                "compiles": compiles[:40],
                "open": [f"{name} [{label}]" for name, label in log.open_events][-3:],
            }
        )
    return rows
