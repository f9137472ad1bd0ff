#!/usr/bin/env python3
"""Servers that stay silent: a command ends after --timeout, but not while the server says that it works on the request."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
sys.path.insert(0, os.path.join(ROOT, "tests", "fleet"))

import clickhouse  # noqa: E402
from harness import TLPARSE, EndToEnd, bundled  # noqa: E402

# What a server sends before it falls silent.
NOTHING = b""
HALF_A_HEADER = b"HTTP/1.1 200 OK\r\nX-Clic"
NO_BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
HALF_A_BODY = NO_BODY + b"x\ty\n"
HALF_A_CHUNK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\nx"
HALF_AN_ERROR = b"HTTP/1.1 500 Error\r\nContent-Length: 100\r\n\r\nCode: 241, mem"
MOST_S = 60  # before, a silent server held a command for 300 s


def end(one):
    """Closes a socket that another thread may be reading."""
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


class Silent:
    """Accepts connections, sends `first` on each, and no more."""

    def __init__(self, first):
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self.listening.getsockname()[1]
        self.first, self.open = first, []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection = self.listening.accept()[0]
                self.open.append(connection)
                connection.sendall(self.first)
            except OSError:
                return

    def close(self):
        for one in (self.listening, *self.open):
            end(one)


class Closing(Silent):
    """Closes each connection while the client waits for the handshake."""

    def __init__(self):
        super().__init__(NOTHING)

    def serve(self):
        while True:
            try:
                with self.listening.accept()[0] as connection:
                    connection.recv(10)
            except OSError:
                return


class NotAccepting(Silent):
    """Its queue of connections is full: the kernel answers no further one."""

    def __init__(self):
        self.listening = socket.socket()
        self.listening.bind(("127.0.0.1", 0))
        self.listening.listen(0)
        self.port = self.listening.getsockname()[1]
        self.open = []
        for _ in range(4):
            waiting = socket.socket()
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", self.port))
            self.open.append(waiting)


class Stopping:
    """Passes the bytes of connections to a real server and back, until `limit` bytes went in that direction."""

    def __init__(self, target, to_server=1 << 60, to_client=1 << 60):
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        self.target, self.left, self.open = target, {"server": to_server, "client": to_client}, [self.listening]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client = self.listening.accept()[0]
            except OSError:
                return
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            server = socket.create_connection(("127.0.0.1", self.target))
            self.open += [client, server]
            for source, sink, way in ((client, server, "server"), (server, client, "client")):
                threading.Thread(target=self.copy, args=(source, sink, way), daemon=True).start()

    def copy(self, source, sink, way):
        try:
            while True:
                # At the limit nothing is read any more, so that the sender's buffers fill.
                data = source.recv(min(4096, self.left[way])) if self.left[way] > 0 else time.sleep(3600)
                if not data:
                    break
                self.left[way] -= len(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        for one in self.open:
            end(one)


class Silence(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.home = clickhouse.scratch(cls)
        cls.database = f"{cls.home}/trace.db"
        subprocess.run([TLPARSE, os.path.dirname(bundled("train_order")), "--db-only", "--db", cls.database, "--run", "job"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def commands(self):
        return [["push", self.database], ["pull", "--job", "j", "--latest", "-o", self.path("pulled.db")], ["fleet", "jobs"],
                ["fleet", "findings"], ["fleet", "init"], ["check", self.database, "--against", "fleet:j~7d"], ["serve", "--port", "0"]]

    def check_ends(self, url, kind):
        began = time.monotonic()
        running = [(command, subprocess.Popen([TLPARSE, *command, "--url", url, "--timeout", "1"], stdout=subprocess.PIPE,
                                              stderr=subprocess.PIPE, text=True)) for command in self.commands()]
        for command, process in running:
            try:
                _, message = process.communicate(timeout=MOST_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                self.fail(f"{command[0]} does not end: {kind}")
            self.assertEqual(process.returncode, 1 if kind == "half an error" else 2, (kind, command, message))
            self.assertEqual(message.count("\n"), 1, message)
            if kind != "half an error":
                self.assertIn(f"the server does not answer: {url}: ", message)
        if kind != "cut off":
            self.assertGreater(time.monotonic() - began, 0.9)
        self.assertFalse(os.path.exists(self.path("pulled.db")))
        return message

    def test_a_silent_socket(self):
        for kind, first, words in (("nothing", NOTHING, "no answer within 1 s"), ("half a header", HALF_A_HEADER, "no answer within 1 s"),
                                   ("no body", NO_BODY, "no more of the answer within 1 s"),
                                   ("half a body", HALF_A_BODY, "no more of the answer within 1 s"),
                                   ("half a chunk", HALF_A_CHUNK, "no more of the answer within 1 s"),
                                   ("half an error", HALF_AN_ERROR, "Code: 241")):
            server = Silent(first)
            self.addCleanup(server.close)
            self.assertIn(words, self.check_ends(f"http://127.0.0.1:{server.port}", kind))

    def test_no_handshake(self):
        for first in (NOTHING, b"\x16\x03\x03\x01\x00"):
            server = Silent(first)
            self.addCleanup(server.close)
            self.assertIn("no answer within 1 s", self.check_ends(f"https://127.0.0.1:{server.port}", "no handshake"))

    def test_a_handshake_that_is_cut_off(self):
        """OpenSSL writes an alert to the closed connection, which raises SIGPIPE."""
        server = Closing()
        self.addCleanup(server.close)
        self.check_ends(f"https://127.0.0.1:{server.port}", "cut off")

    def test_no_connection(self):
        server = NotAccepting()
        self.addCleanup(server.close)
        self.check_ends(f"http://127.0.0.1:{server.port}", "no connection")


class RealServer(Silence):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = clickhouse.cluster(cls, cls.home, 1)[0]
        cls.url = cls.server.url
        subprocess.run([TLPARSE, "fleet", "init", "--url", cls.url], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([TLPARSE, "push", cls.database, "--url", cls.url, "--job", "j", "--day", "2026-11-01"], check=True,
                       stdout=subprocess.DEVNULL)

    commands = None
    test_a_silent_socket = test_no_handshake = test_a_handshake_that_is_cut_off = test_no_connection = None  # above

    def stopping(self, **limits):
        proxy = Stopping(self.server.http, **limits)
        self.addCleanup(proxy.close)
        return proxy.url

    def ended(self, *arguments, url):
        done = self.tlparse(*arguments, "--url", url, "--timeout", "1", expect=2, limit_s=MOST_S)
        self.assertIn("within 1 s (--timeout)", done.stderr)
        return done

    def test_a_server_that_stops_in_the_middle(self):
        before = self.server.count("push")
        for to_server in (20_000, 60_000):  # the bodies of a push
            self.ended("push", self.database, "--job-key", "stopped", url=self.stopping(to_server=to_server))
        self.assertEqual(self.server.count("push"), before)
        for to_client in (100, 30_000, 60_000):
            self.ended("pull", "--job", "j", "--latest", "-o", self.path("stopped.db"), url=self.stopping(to_client=to_client))
            self.assertFalse(os.path.exists(self.path("stopped.db")))
        self.ended("fleet", "jobs", "--since", "2026-01-01", url=self.stopping(to_client=100))

    def test_a_query_that_the_server_works_on_is_awaited(self):
        """Each read of the table of pushes takes longer than --timeout."""
        question = ["fleet", "breaks", "--url", self.url, "--since", "2026-01-01", "--json"]
        expected = json.loads(self.tlparse(*question).stdout)
        self.server.query("RENAME TABLE push TO push_kept")
        self.server.query("CREATE VIEW push AS SELECT * FROM push_kept WHERE sleep(1.4) = 0 AND sleep(1.4) = 0")
        try:
            began = time.monotonic()
            answer = json.loads(self.tlparse(*question, "--timeout", "2").stdout)
            self.assertGreater(time.monotonic() - began, 2.5)
        finally:
            self.server.query("DROP TABLE push")
            self.server.query("RENAME TABLE push_kept TO push")
        self.assertEqual(answer, expected)

    def test_the_page(self):
        proxy = Stopping(self.server.http)
        self.addCleanup(proxy.close)
        served = subprocess.Popen([TLPARSE, "serve", "--url", proxy.url, "--port", "0", "--since", "2026-01-01", "--timeout", "3"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(served.stdout.close)
        self.addCleanup(served.kill)
        page = served.stdout.readline().strip()
        self.assertRegex(page, r"^http://127\.0\.0\.1:\d+/$")
        self.assertIn("job?name=j", urllib.request.urlopen(page, timeout=MOST_S).read().decode())
        run = re.search(r"/run/[0-9a-f-]+", urllib.request.urlopen(page + "job?name=j", timeout=MOST_S).read().decode()).group(0)[1:]
        proxy.left["client"] = 0
        for path in ("", "job?name=j", "function?job=j&name=f", run):
            with self.assertRaises(urllib.error.HTTPError) as raised:
                urllib.request.urlopen(page + path, timeout=MOST_S)
            self.assertEqual(raised.exception.code, 502)
            self.assertIn("within 3 s (--timeout)", raised.exception.read().decode())
            raised.exception.close()
        proxy.left["client"] = 1 << 60
        self.assertIn("job?name=j", urllib.request.urlopen(page, timeout=MOST_S).read().decode())
        served.send_signal(signal.SIGINT)
        self.assertEqual(served.wait(MOST_S), 0)


if __name__ == "__main__":
    unittest.main()
