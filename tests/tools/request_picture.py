#!/usr/bin/env python3
"""Draws what OpenTelemetry and the log say of requests to the example of a server (libtrace/examples/server.cc): from the HTTP header to the compile, the
lookup in the cache and the call of the kernel. Starts the server twice on one cache, is its client and its collector, and reads its log with tlparse.

usage: request_picture.py SERVER TLPARSE PICTURE.svg
"""
import html
import http.server
import json
import os
import pathlib
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

SIZE = 200_000
WIDTH, LEFT, RIGHT, ROW = 1000, 190, 300, 22
COLORS = {"request": "#8aa4c8", "compile": "#c98a4b", "cache": "#7fae7a", "graph": "#b3667a"}


class Collector:
    """Keeps the spans that it gets by OTLP over HTTP."""

    def __init__(self):
        self.spans = []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                collector.spans += [span for resource in request["resourceSpans"] for scope in resource["scopeSpans"] for span in scope["spans"]]
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.port = self.server.server_address[1]

    def of(self, trace_id, count):
        """The spans of a request, when there are so many."""
        until = time.time() + 60
        while time.time() < until:
            found = [span for span in self.spans if span["traceId"] == trace_id]
            if len(found) >= count:
                return sorted(found, key=lambda span: int(span["startTimeUnixNano"]))
            time.sleep(0.05)
        sys.exit(f"request_picture: {trace_id} has {len(found)} spans, not {count}")


def ask(port, traceparent):
    """(start, end) of a request, in ns."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/score?size={SIZE}", headers={"traceparent": traceparent})
    until = time.time() + 60
    while True:
        start = time.time_ns()
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                answer.read()
                return start, time.time_ns()
        except OSError:
            if time.time() > until:
                raise
            time.sleep(0.05)


def record(server, folder):
    """[(title, traceparent, request's times, spans)]."""
    collector, found = Collector(), []
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LIBTRACE_", "TORCH_", "OTEL_", "RANK"))}
    for titles in (["first request of a size", "the next one"], ["first request after a restart"]):
        process = subprocess.Popen([server, os.path.join(folder, "cache"), str(port)],
                                   env={**environment, "TORCH_TRACE": os.path.join(folder, "trace"), "OTEL_PORT": str(collector.port)})
        try:
            for title in titles:
                trace_id = os.urandom(16).hex()
                traceparent = f"00-{trace_id}-{os.urandom(8).hex()}-01"
                times = ask(port, traceparent)
                found.append((title, traceparent, times, collector.of(trace_id, 1 if title == "the next one" else 3)))
        finally:
            process.terminate()
            process.wait(60)
    return found


def in_log(tlparse, folder):
    """{traceparent: names of its records}, of the log."""
    database = os.path.join(folder, "trace.db")
    subprocess.run([tlparse, os.path.join(folder, "trace"), "--db", database, "--db-only"], check=True, capture_output=True, timeout=240)
    with sqlite3.connect(database) as db:
        rows = db.execute("SELECT envelope ->> 'traceparent', coalesce(name, kind) FROM record WHERE envelope ->> 'traceparent' IS NOT NULL ORDER BY id").fetchall()
    found = {}
    for traceparent, name in rows:
        found.setdefault(traceparent, []).append(name)
    return found


def duration(ns):
    return f"{ns / 1e6:.2f} ms" if ns >= 1e6 else f"{ns / 1e3:.1f} µs"


def text(x, y, words, size=12, **more):
    style = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}"{style}>{html.escape(words)}</text>'


def draw(requests, log):
    parts, y, place_of = [], 10, {}
    for title, traceparent, (begin, end), spans in requests:
        y += 24
        parts += [text(10, y, title, 15, font_weight="bold"), text(LEFT + 80, y, f"traceparent: {traceparent}", 12, font_family="monospace")]
        bars = [("request", "HTTP request", begin, end, [])]
        bars += [(span["name"].split()[0], span["name"], int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"]), [span]) for span in spans]
        first, last = min(bar[2] for bar in bars), max(bar[3] for bar in bars)
        scale = (WIDTH - LEFT - RIGHT) / (last - first)
        for kind, name, start, stop, of in bars:
            y += ROW
            x, width = LEFT + (start - first) * scale, max(2, (stop - start) * scale)
            parts.append(f'<rect x="{x:.1f}" y="{y - 13}" width="{width:.1f}" height="16" fill="{COLORS[kind]}"/>')
            parts.append(text(10 if kind == "request" else 24, y, name))
            said = duration(stop - start) if stop > start else ""
            for span in of:
                place_of[span["spanId"]] = (x, y)
                state = {one["key"]: one["value"] for one in span.get("attributes", [])}.get("libtrace.cache.state", {}).get("stringValue")
                said = ", ".join(filter(None, (said, state)))
                for link in span.get("links", []):
                    if link["spanId"] in place_of:
                        to_x, to_y = place_of[link["spanId"]]
                        if to_y != y and link["traceId"] != span["traceId"]:
                            said += ", link to the compile above"
                            parts.append(f'<path d="M {x:.0f} {y - 13} C {x - 60:.0f} {y - 40:.0f} {to_x - 60:.0f} {to_y + 40:.0f} {to_x:.0f} {to_y + 3:.0f}" fill="none" '
                                         'stroke="#444" stroke-dasharray="4 3" marker-end="url(#arrow)"/>')
            parts.append(text(WIDTH - RIGHT + 8, y, said, 12))
        y += ROW
        names = log.get(traceparent, [])
        counted = ", ".join(f"{name} × {names.count(name)}" if names.count(name) > 1 else name for name in dict.fromkeys(names))
        parts.append(text(24, y, f"in the log under this traceparent: {counted}", 11, fill="#444"))
        y += 10
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 12}" font-family="sans-serif">\n<rect width="100%" height="100%" fill="white"/>\n'
            '<defs><marker id="arrow" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 L6 3 L0 6 z" fill="#444"/></marker></defs>\n'
            + "\n".join(parts) + "\n</svg>\n")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    server, tlparse, picture = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        requests = record(server, folder)
        log = in_log(tlparse, folder)
    missing = [traceparent for _, traceparent, _, _ in requests if traceparent not in log]
    if missing:
        sys.exit(f"request_picture: the log lacks {missing}")
    pathlib.Path(picture).write_text(draw(requests, log))
    for title, traceparent, _, spans in requests:
        print(f"{title}: {', '.join(span['name'] for span in spans)}; {len(log[traceparent])} records of {traceparent}")


main()
