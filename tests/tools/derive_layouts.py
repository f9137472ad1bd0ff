"""Derived traces: several processes in one file, log aggregators, Windows line ends, New Year."""

import re

from derived_trace import DerivedTrace, changed, load, with_pid

NO_UNKNOWN_FRAMES = "SELECT count(*) FROM stack_frame WHERE file LIKE '<unknown:%'"
NEW_YEAR_2028 = 1830297600  # seconds since the epoch, UTC
PER_RANK = "SELECT rank, count(*) FROM record GROUP BY 1 ORDER BY 1"


def by_time(*logs):
    """Records of several logs as one list in the order of their prefix times (stable)."""
    tagged = [(record.prefix.split(b" ")[1], index, record)
              for index, log in enumerate(logs) for record in log]
    return [(index, record) for _, index, record in sorted(tagged, key=lambda entry: entry[0])]


def ranks_interleaved():
    trace = DerivedTrace("ranks_interleaved", "two ranks, two processes, in one file")
    logs = [load("diverge_config_2_6", 0), load("diverge_config_2_6", 2)]
    for _, record in by_time(*logs):
        trace.record(record)
    trace.query("SELECT count(*) FROM process", [[2]])
    trace.query(PER_RANK, [[0, len(logs[0])], [2, len(logs[1])]])
    trace.query(NO_UNKNOWN_FRAMES, [[0]])
    yield trace


def ranks_one_pid():
    trace = DerivedTrace("ranks_one_pid", "two ranks of two containers: the same pid in one file")
    logs = [load("diverge_config_2_6", 0), load("diverge_config_2_6", 2)]
    for _, record in by_time(*logs):
        trace.record(changed(record, prefix=with_pid(record.prefix, 17)))
    ranked = [sum("rank" in record.envelope for record in log) for log in logs]
    trace.query("SELECT rank, count(*) FROM record WHERE envelope -> '$.rank' IS NOT NULL "
                "GROUP BY 1 ORDER BY 1", [[0, ranked[0]], [2, ranked[1]]])
    trace.query("SELECT count(*) FROM process WHERE rank IN (0, 2)", [[2]])
    yield trace


def aggregator_merge():
    """What a job's log collector makes of the ranks' traces and of their TORCH_LOGS text."""
    trace = DerivedTrace("rank_prefix_merge",
                         "[rankN]: prefixes, TORCH_LOGS text of several lines, blank lines")
    logs = [load("diverge_order", rank) for rank in range(4)]
    for number, (rank, record) in enumerate(by_time(*logs)):
        tag = b"[rank%d]:" % rank
        trace.record(changed(record, prefix=tag + record.prefix))
        glog = re.match(rb"V(\d{4} [\d:.]+ +\d+) ", record.prefix).group(1)
        if number % 29 == 3:
            head = tag + b"V" + glog + b" torch/_dynamo/guards.py:2169] [0/0] [__guards] "
            trace.line(head + b"GUARDS:")
            trace.line(head + b"")
            trace.line(head + b"TREE_GUARD_MANAGER:")
            trace.line(head + b"+- RootGuardManager {not JSON}")
        if number % 31 == 7:
            trace.line(b"", "blank")
            trace.line(tag + b"W" + glog + b" torch/_logging/_internal.py:1081] some warning")
            trace.line(b"epoch 3 loss 0.25 \xe2\x9c\x93")
        if number % 97 == 11:
            trace.line(b"Traceback (most recent call last):")
            trace.line(b"\tat frame 1", "orphan_payload")
            trace.line(b"", "blank")
            trace.line(b"\tat frame 2", "orphan_payload")
        if number % 101 == 13:
            trace.line(b"[rank0]: not a header")
            trace.line(b"[rank9]:V1121 08:30:01.1 x] {}")
    trace.query("SELECT count(*) FROM process", [[4]])
    trace.query(PER_RANK, [[rank, len(log)] for rank, log in enumerate(logs)])
    trace.query(NO_UNKNOWN_FRAMES, [[0]])
    yield trace


def fork_2_6():
    """PyTorch 2.6: a forked child continues to write to its parent's file, with the parent's intern
    table as it was at the fork."""
    trace = DerivedTrace("fork_2_6", "a forked child writes to its parent's file (2.6)")
    parent = load("graph_breaks_2_6")
    fork_at = len(parent) // 3
    trace.all(parent[:fork_at])
    child_pid = parent[0].pid + 1
    child_strings = 0
    for record in parent[fork_at:]:
        trace.record(record)
        envelope = None
        if record.kind == "str":  # from here on the tables differ
            envelope = {"str": [record.envelope["str"][0] + ".child", record.envelope["str"][1]]}
            child_strings += 1
        trace.record(changed(record, envelope, prefix=with_pid(record.prefix, child_pid)))
    assert child_strings
    trace.query("SELECT count(*) FROM process", [[2]])
    trace.query("SELECT p.pid, count(*) FROM record r JOIN process p ON p.id = r.process_id "
                "GROUP BY 1 ORDER BY 1",
                [[parent[0].pid, len(parent)], [child_pid, len(parent) - fork_at]])
    trace.query(NO_UNKNOWN_FRAMES, [[0]])
    trace.query("SELECT count(*) > 0 FROM stack_frame WHERE file LIKE '%.child'", [[1]])
    yield trace


def windows_line_ends():
    trace = DerivedTrace("crlf", "CR LF everywhere")
    records = load("mlp_train")
    trace.all(records, crlf=True)
    trace.query("SELECT count(*) FROM import_log WHERE severity = 'error'", [[0]])
    yield trace

    trace = DerivedTrace("payload_ends_in_cr", "a payload whose lines end in CR, hashed so")
    trace.all(records[:40])
    source = next(record for record in records if record.kind == "dynamo_output_graph")
    trace.record(changed(source, payload=source.payload.replace(b"\n", b"\r\n") + b"\r"))
    yield trace


def new_year():
    """The prefix has no year: the clock passes from 31 December to 1 January, over midnight."""
    trace = DerivedTrace("new_year", "New Year in the middle of a trace")
    records = load("simple_2_6")
    middle = len(records) // 2
    for index, record in enumerate(records):
        date, clock = (b"1231", b"23:59:59") if index < middle else (b"0101", b"00:00:00")
        prefix = re.sub(rb"^V\d{4} \d\d:\d\d:\d\d\.", b"V" + date + b" " + clock + b".",
                        record.prefix)
        prefix = re.sub(rb"\.\d{6} ", b".%06d " % (index * 700), prefix, count=1)
        record = changed(record, prefix=prefix)
        if record.kind == "chromium_event":  # they tell year and zone: 2027, UTC
            seconds = NEW_YEAR_2028 - 1 if index < middle else NEW_YEAR_2028
            event_time = b'"ts": %d.5' % (seconds * 1000000 + index * 700)
            record = changed(record, payload=re.sub(rb'"ts": [\d.]+', event_time, record.payload))
        trace.record(record)
    trace.query("SELECT count(*) FROM (SELECT time_us < lag(time_us) OVER (ORDER BY line) AS back "
                "FROM record) WHERE back", [[0]])
    trace.query("SELECT max(time_us) - min(time_us) < 2000000 FROM record", [[1]])
    trace.query("SELECT max(time_us) / 1000000 FROM record", [[NEW_YEAR_2028]])
    yield trace


def layouts():
    yield from ranks_interleaved()
    yield from ranks_one_pid()
    yield from aggregator_merge()
    yield from fork_2_6()
    yield from windows_line_ends()
    yield from new_year()
