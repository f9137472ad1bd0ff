#!/usr/bin/env python3
"""Spans of requests, as a receiver gets them that accepts nothing but OTLP/JSON as opentelemetry-proto says: names of members, ids in
lower-case hexadecimal, 64-bit numbers as texts, no unknown member. Also a collector that is not there, is busy, refuses, or takes a part.

usage: test_otel.py PROGRAM
"""
import http.server
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = sys.argv[1]


def members(value, required, optional=()):
    assert isinstance(value, dict), value
    assert set(required) <= set(value) <= set(required) | set(optional), sorted(value)


def attribute(one):
    members(one, ("key", "value"))
    assert isinstance(one["key"], str) and len(one["value"]) == 1, one
    kind, value = next(iter(one["value"].items()))
    assert kind in ("stringValue", "intValue") and isinstance(value, str), one
    assert kind == "stringValue" or re.fullmatch(r"-?\d+", value), one
    return one["key"], value


def span(one):
    members(one, ("traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano"),
            ("parentSpanId", "attributes", "links", "status"))
    assert re.fullmatch("[0-9a-f]{32}", one["traceId"]) and int(one["traceId"], 16), one
    assert re.fullmatch("[0-9a-f]{16}", one["spanId"]) and int(one["spanId"], 16), one
    assert "parentSpanId" not in one or re.fullmatch("[0-9a-f]{16}", one["parentSpanId"]), one
    assert one["kind"] == 1 and one["name"], one
    for name in ("startTimeUnixNano", "endTimeUnixNano"):
        assert re.fullmatch(r"\d+", one[name]), one
    begin, end = int(one["startTimeUnixNano"]), int(one["endTimeUnixNano"])
    assert begin <= end and abs(time.time() - end / 1e9) < 60, one
    for link in one.get("links", ()):
        members(link, ("traceId", "spanId"))
    if "status" in one:
        members(one["status"], ("code", "message"))
        assert one["status"]["code"] == 2, one
    return {**one, "attributes": dict(attribute(a) for a in one["attributes"])}


def spans(text):
    def unique(pairs):
        assert len(pairs) == len(dict(pairs)), pairs
        return dict(pairs)
    request = json.loads(text, object_pairs_hook=unique)
    members(request, ("resourceSpans",))
    for resource in request["resourceSpans"]:
        members(resource, ("resource", "scopeSpans"))
        members(resource["resource"], ("attributes",))
        of_resource = dict(attribute(a) for a in resource["resource"]["attributes"])
        assert of_resource["service.name"] == "ranker" and int(of_resource["process.pid"]), of_resource
        for scope in resource["scopeSpans"]:
            members(scope, ("scope", "spans"))
            members(scope["scope"], ("name",))
            for one in scope["spans"]:
                yield {**span(one), "pid": int(of_resource["process.pid"])}


class Receiver:
    """`answers`: (status, body) of the first requests; then 200."""

    def __init__(self, answers=()):
        self.answers, self.spans, self.wrong, self.requests = list(answers), [], [], 0
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                text = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests += 1
                status, body = receiver.answers.pop(0) if receiver.answers else (200, "{}")
                try:
                    assert self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json", self.path
                    found = list(spans(text))
                    assert found
                    if status == 200:
                        receiver.spans += found
                except Exception as error:  # pylint: disable=broad-except
                    receiver.wrong.append(repr(error))
                    status, body = 400, ""
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.port = self.server.server_address[1]


def run(port, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([PROGRAM, folder, str(port), *arguments], capture_output=True, text=True, check=True, timeout=120)
        logs = sorted(pathlib.Path(folder).glob("*.log"))
        counters = dict(re.findall(r"(sent|dropped|rejected|failed) (\d+)", done.stdout.splitlines()[0]))
        return {name: int(value) for name, value in counters.items()}, [log.read_text() for log in logs], done.stdout


FIRST, SECOND, UNSAMPLED = ("0af7651916cd43dd8448eb211c80319" + last for last in "cde")
receiver = Receiver()
counters, logs, text = run(receiver.port)
assert not receiver.wrong, receiver.wrong
by_name = {}
for one in receiver.spans:
    by_name.setdefault(one["name"], []).append(one)
compile_span, = by_name["compile net"]
assert (compile_span["traceId"], compile_span["parentSpanId"]) == (FIRST, "b7ad6b7169203331"), compile_span
lookup = next(one for one in by_name["cache lookup acme_model"] if one["traceId"] == FIRST)
assert lookup["parentSpanId"] == compile_span["spanId"] and lookup["attributes"]["libtrace.cache.state"] == "miss", lookup
assert int(lookup["endTimeUnixNano"]) - int(lookup["startTimeUnixNano"]) == 2000, lookup
load, = by_name["model load net"]
assert load["parentSpanId"] == compile_span["spanId"], load
assert int(load["endTimeUnixNano"]) - int(load["startTimeUnixNano"]) == 5000000, load
# On another thread, which got the traceparent as text.
remote, = by_name["cache lookup acme_remote"]
assert (remote["traceId"], remote["parentSpanId"]) == (FIRST, "b7ad6b7169203331"), remote
# Another request: its graph call leads to the compile of the first.
call, = by_name["graph call net"]
assert (call["traceId"], call["parentSpanId"]) == (SECOND, "b7ad6b7169203332"), call
assert call["links"] == [{"traceId": FIRST, "spanId": compile_span["spanId"]}], call
assert int(call["endTimeUnixNano"]) - int(call["startTimeUnixNano"]) == 1000000, call
assert "graph call unsampled" not in by_name and not any(one["traceId"] == UNSAMPLED for one in receiver.spans)
broken, = by_name["compile broken"]
assert "parentSpanId" not in broken and broken["status"]["message"] == 'acme::Error: no "kernel"\n', broken
child, = by_name["graph call child"]
assert child["pid"] != call["pid"] and "parentSpanId" not in child, child
assert counters == {"sent": len(receiver.spans) - 1, "dropped": 0, "rejected": 0, "failed": 0}, (counters, len(receiver.spans))
# The log is whole, and its records have the traceparent, in its thread alone.
with_parent = [line for line in logs[0].splitlines() + logs[1].splitlines() if f'"traceparent": "00-{FIRST}-b7ad6b7169203331-01"' in line]
assert any("acme_remote_cache_hit" in line for line in with_parent) and any("compilation_metrics" in line for line in with_parent), logs
assert all('"traceparent"' not in line for log in logs for line in log.splitlines() if "acme_text" in line)
# Prometheus: name, labels, number.
lines = text.splitlines()[1:]
assert all(re.fullmatch(r'# (HELP|TYPE) libtrace_\w+ .+|libtrace_\w+(\{kind="\w+"\})? \d+', line) for line in lines), lines
assert 'libtrace_lost_records_total{kind="queue_full"} 0' in lines, lines

# Busy, then there: nothing is lost. Refused: counted. A part refused: counted.
all_count = counters["sent"]
receiver = Receiver([(503, ""), (429, "")])
counters, _logs, _text = run(receiver.port)
assert counters["sent"] + counters["rejected"] + counters["dropped"] >= all_count and counters["rejected"] == 0, counters
assert counters["dropped"] == 0 and counters["failed"] >= 1, counters
receiver = Receiver([(400, "")] * 100)
counters, _logs, _text = run(receiver.port)
# One request is the child's, which on a busy machine can run into its timeout before it is sent.
assert {**counters, "failed": 0} == {"sent": 0, "dropped": 0, "rejected": all_count, "failed": 0}, counters
assert receiver.requests - counters["failed"] in (0, 1) and counters["failed"] >= 1, (counters, receiver.requests)
receiver = Receiver([(200, '{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "no"}}')] + [(200, "{}")] * 9)
counters, _logs, _text = run(receiver.port)
assert counters["rejected"] in (0, 2) and counters["sent"] + counters["rejected"] == all_count, counters  # the child's request may be the first

# Nobody there: the program ends in time, and what it could not send is counted; likewise beyond the limit.
with socket.socket() as nobody:
    nobody.bind(("127.0.0.1", 0))
    begin = time.time()
    counters, logs, _text = run(nobody.getsockname()[1], "500")
    assert counters["sent"] == 0 and counters["dropped"] == all_count and counters["failed"] >= 1, counters
    assert time.time() - begin < 30 and "compilation_metrics" in logs[0] + logs[1]
    counters, _logs, _text = run(nobody.getsockname()[1], "500", "2")
    assert counters["dropped"] == all_count, counters
print(all_count, "spans")
