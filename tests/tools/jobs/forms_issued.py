"""Forms of sentences about the collectives that dumps show."""

import re
import statistics

from facts import RANKS, close, form, seconds


def entries(facts, rank, group, sequence):
    dump = facts.job.dumps.get(rank)
    if dump is None:
        return None
    return [
        one
        for one in dump.get("entries", [])
        if not one.get("is_p2p")
        and group in tuple(one["process_group"])
        and one["collective_seq_id"] == sequence
    ]


def op_of(entry):
    return entry["profiling_name"].split(":")[-1].split(" ")[0]


GROUP = r"#(?P<sequence>\d+) of group (?P<group>[^\s;,()]+)(?: \((?P<id>\S+?)\))?"


@form(
    rf"^(?P<who>{RANKS}) issued (?P<op>\w+)(?P<more>.*?) where (?P<others>{RANKS}) issued (?P<other_op>\w+).*?: {GROUP}"
)
def issued_other(facts, match, finding):
    claims = []
    for ranks, op in (
        (facts.ranks(match["who"]), match["op"]),
        (facts.ranks(match["others"]), match["other_op"]),
    ):
        for rank in ranks:
            found = entries(facts, rank, match["group"], int(match["sequence"]))
            claims.append(
                (
                    f"rank {rank} issued {op} as #{match['sequence']} of {match['group']}",
                    None if found is None else any(op_of(one) == op for one in found),
                )
            )
    return claims


@form(rf"^(?P<who>{RANKS}) came to (?P<op>\w+) {GROUP} (?P<delay>[\d.]+) s after (?P<others>.+?)$")
def came_late(facts, match, finding):
    claims = []
    times = {
        rank: [
            one["time_created_ns"] / 1e9
            for one in entries(facts, rank, match["group"], int(match["sequence"])) or []
        ]
        for rank in facts.job.dumps
    }
    who = facts.ranks(match["who"])
    rest = [min(found) for rank, found in times.items() if found and rank not in who]
    for rank in who:
        if times.get(rank) and rest:
            claims.append(
                (
                    f"rank {rank} came {match['delay']} s later (dumps: {min(times[rank]) - statistics.median(rest):.1f} s)",
                    any(close(float(match["delay"]), min(times[rank]) - one, least=0.1) for one in rest),
                )
            )
    return claims


@form(
    rf"^(?P<who>{RANKS}) (?:did not issue|has not issued|have not issued|never issued|did not reach) (?P<op>\w+) {GROUP}"
)
def not_reached(facts, match, finding):
    claims = []
    for rank in facts.ranks(match["who"]):
        found = entries(facts, rank, match["group"], int(match["sequence"]))
        claims.append(
            (
                f"rank {rank} did not issue #{match['sequence']} of {match['group']}",
                None if found is None else not found,
            )
        )
    return claims


@form(
    rf"^(?P<who>{RANKS}) had not reached (?P<op>\w+) {GROUP}(?: in \S+(?: \(\S+\))?| at \S+)? when the recorder was dumped"
    rf"(?:; (?P<others>{RANKS}) (?:waits? in|ha(?:s|ve) enqueued) it)?"
)
def had_not_reached(facts, match, finding):
    claims = []
    sequence = int(match["sequence"])
    for rank in facts.ranks(match["who"]):
        found = entries(facts, rank, match["group"], sequence)
        claims.append((f"rank {rank} had not issued #{sequence}", None if found is None else not found))
    for rank in facts.ranks(match["others"]) if match["others"] else []:
        found = entries(facts, rank, match["group"], sequence)
        is_waiting = found and any(op_of(one) == match["op"] and not one["retired"] for one in found)
        claims.append((f"rank {rank} is in it", None if found is None else bool(is_waiting)))
    return claims


@form(
    rf"^(?P<who>{RANKS}) did not compile or call (?P<function>\w+), in whose (?P<op>\w+) {GROUP} (?P<others>{RANKS}) waits?$"
)
def did_not_call(facts, match, finding):
    claims = had_not_reached(facts, match, finding)
    for rank in facts.ranks(match["who"]):
        compiled = [one.function for log in facts.logs(rank) for one in log.compiles.values()]
        claims.append((f"rank {rank} did not compile {match['function']}", match["function"] not in compiled))
    return claims


@form(
    rf"^(?P<who>{RANKS})'s dump ends before (?P<op>\w+) {GROUP}, the last call of (?P<others>{RANKS})(?:; (?P<none>{RANKS}) left no dump)?$"
)
def dump_ends_before(facts, match, finding):
    claims = had_not_reached(facts, {**match.groupdict(), "others": None}, finding)
    sequence = int(match["sequence"])
    for rank in facts.ranks(match["others"]):
        found = entries(facts, rank, match["group"], sequence)
        last = found and max(one["time_created_ns"] for one in facts.job.dumps[rank]["entries"])
        is_last = found and any(op_of(one) == match["op"] and one["time_created_ns"] == last for one in found)
        claims.append((f"#{sequence} is the last of rank {rank}", None if found is None else bool(is_last)))
    for rank in facts.ranks(match["none"]) if match["none"] else []:
        claims.append((f"there is no dump of rank {rank}", rank not in facts.job.dumps))
    return claims


@form(rf"^(?P<who>{RANKS}) (?:had|has|have) issued nothing on group (?P<group>\S+)")
def issued_nothing(facts, match, finding):
    claims = []
    for rank in facts.ranks(match["who"]):
        dump = facts.job.dumps.get(rank)
        mine = dump and [one for one in dump["entries"] if match["group"] in tuple(one["process_group"])]
        claims.append((f"rank {rank} issued nothing on {match['group']}", None if dump is None else not mine))
    return claims


@form(rf"^(?P<who>{RANKS}) waits? in (?P<op>\w+) {GROUP}")
def waits_in(facts, match, finding):
    claims = []
    for rank in facts.ranks(match["who"]):
        found = entries(facts, rank, match["group"], int(match["sequence"]))
        is_waiting = found and any(op_of(one) == match["op"] and not one["retired"] for one in found)
        claims.append((f"rank {rank} waits in {match['op']}", None if found is None else bool(is_waiting)))
    return claims


@form(rf"(?P<who>{RANKS}): (?P<op>\w+) (?P<sizes>\[[\d, ]*\]) (?P<dtype>\w+)")
def issued_sizes(facts, match, finding):
    """Of calls that are told rank by rank: each rank issued such a call."""
    claims = []
    sizes = [int(one) for one in re.findall(r"\d+", match["sizes"])]
    for rank in facts.ranks(match["who"]):
        dump = facts.job.dumps.get(rank)
        found = dump and any(
            op_of(one) == match["op"]
            and sizes in one["input_sizes"]
            and match["dtype"] in one["input_dtypes"]
            for one in dump["entries"]
        )
        what = f"rank {rank} issued {match['op']} {match['sizes']} {match['dtype']}"
        claims.append((what, None if dump is None else bool(found)))
    return claims


@form(rf"The last of (?P<who>{RANKS}) on this group: #(?P<sequence>\d+) (?P<op>\w+)")
def last_on_group(facts, match, finding):
    claims = []
    for rank in facts.ranks(match["who"]):
        dump = facts.job.dumps.get(rank)
        last = {}  # by group
        for one in sorted(dump["entries"] if dump else [], key=lambda one: one["time_created_ns"]):
            last[tuple(one["process_group"])] = one
        is_it = any(
            one["collective_seq_id"] == int(match["sequence"]) and op_of(one) == match["op"]
            for one in last.values()
        )
        claims.append(
            (f"rank {rank}'s last is #{match['sequence']} {match['op']}", is_it if dump else None)
        )
    return claims


@form(
    rf"^(?P<others>{RANKS}) waits? for (?P<who>{RANKS}): it came last to (?P<last>\d+) of (?P<count>\d+) collectives of group "
    rf"(?P<group>\S+)(?: \([^)]*\))?, (?:(?:at least )?(?P<median>[\d.]+ m?s)|to (?P<long>\d+) of them (?P<least>[\d.]+ m?s) or more) "
    rf"after the others, (?P<lost>[\d.]+ m?s) in all(?:, its compiles not counted)?$"
)
def came_last(facts, match, finding):
    """By the times at which all ranks of the group issued each of its collectives."""
    (who,) = facts.ranks(match["who"])
    members = {who, *facts.ranks(match["others"])}
    times = {}  # by sequence: {rank: seconds}
    for rank in members & set(facts.job.dumps):
        for one in facts.job.dumps[rank]["entries"]:
            if match["group"] in tuple(one["process_group"]) and not one["is_p2p"]:
                times.setdefault(one["collective_seq_id"], {}).setdefault(rank, one["time_created_ns"] / 1e9)
    whole = [of_ranks for of_ranks in times.values() if set(of_ranks) == members]
    lags = sorted(
        of_ranks[who] - max(time for rank, time in of_ranks.items() if rank != who) for of_ranks in whole
    )
    lags = [lag for lag in lags if lag > 0]
    claims = [
        (f"rank {who} came last {match['last']} times (dumps: {len(lags)})", len(lags) >= int(match["last"])),
        (f"all issued {match['count']} (dumps: {len(whole)})", len(whole) >= int(match["count"])),
        (f"{match['lost']} in all (dumps: {sum(lags):.2f} s)", sum(lags) >= 0.94 * seconds(match["lost"])),
    ]
    if match["long"]:
        count = sum(lag >= 0.94 * seconds(match["least"]) for lag in lags)
        claims.append((f"{match['long']} of {match['least']} or more ({count})", count >= int(match["long"])))
    else:
        count = sum(lag >= 0.94 * seconds(match["median"]) for lag in lags)
        claims.append((f"{match['median']} at the median", 2 * count >= int(match["last"])))
    return claims
