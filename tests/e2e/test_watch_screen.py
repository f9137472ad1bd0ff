#!/usr/bin/env python3
"""The screen of tlparse watch, on a pseudo terminal and without one."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

import harness

LIMIT_S = float(os.environ.get("TRACEKIT_LIMIT_S", "240"))  # for whatever is waited for: no test depends on speed
SEQUENCE = re.compile(r"\x1b\[(\d*)([FJm])")


class Screen:
    """What a terminal of a size shows: text, line feeds, and the three sequences that tlparse uses. Anything else is an error."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.lines, self.at, self.column = [""], 0, 0
        self.highest = 0  # the most rows that were drawn at once

    def write(self, text):
        while text:
            match = SEQUENCE.match(text)
            if match:
                count, kind = int(match[1] or 1), match[2]
                if kind == "F":
                    if count > min(self.at, self.rows - 1):
                        raise AssertionError(f"{count} rows up, of {self.at} that there are")
                    self.at, self.column = self.at - count, 0
                elif kind == "J":
                    self.lines[self.at:] = [self.lines[self.at][:self.column]]
                text = text[match.end():]
                continue
            char, text = text[0], text[1:]
            if char == "\n":
                self.at, self.column = self.at + 1, 0
                if self.at == len(self.lines):
                    self.lines.append("")
            elif char != "\r":
                if ord(char) < 32 or 127 <= ord(char) < 160:
                    raise AssertionError(f"control character {char!r}")
                if self.column >= self.columns:
                    raise AssertionError(f"wider than {self.columns}: {self.lines[self.at]!r}")
                self.lines[self.at] += char
                self.column += 1
        self.highest = max(self.highest, len(self.lines) - 1)

    def shown(self):
        return [line for line in self.lines if line]


class Watching(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("logs"))

    def append(self, name, data):
        with open(self.path("logs", name), "ab") as file:
            file.write(data)

    def job(self, scenario="diverge_order", count=4):
        """Logs by name."""
        logs = [harness.bundled(scenario, index) for index in range(count)]
        return {os.path.basename(log).removesuffix(".gz").removesuffix(".zst"): harness.log_bytes(log) for log in logs}


class OnATerminal(Watching):
    def start(self, *arguments, columns=60, rows=20, term="xterm"):
        self.master, slave = pty.openpty()
        self.addCleanup(os.close, self.master)
        self.resize(columns, rows)
        attributes = termios.tcgetattr(slave)
        attributes[1] &= ~termios.OPOST  # no CR before LF
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
        self.process = subprocess.Popen([harness.TLPARSE, "watch", "logs", "--db", "w.db", *arguments], cwd=self.folder,
                                        stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.STDOUT,
                                        env={**environment, "TERM": term})
        os.close(slave)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.screen = Screen(columns, rows)
        self.text = ""
        self.bytes = b""
        self.has_ended = False

    def resize(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, what, condition):
        """Reads what is written until the condition holds, never within a frame."""
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > deadline:
                self.fail(f"{what}: not within {LIMIT_S} s\n" + "\n".join(self.screen.lines))
            self.read()

    def read(self):
        if not select.select([self.master], [], [], 0.2)[0]:
            return
        try:
            self.bytes += os.read(self.master, 1 << 16)
        except OSError:
            return  # the other side is closed
        end = self.bytes.rfind(b"\n") + 1  # characters of several bytes may be cut
        text, self.bytes = self.bytes[:end].decode(), self.bytes[end:]
        self.text += text
        if not self.has_ended:
            self.screen.write(text)

    def finish(self):
        """What is shown last stays in whole lines, however wide."""
        self.has_ended = True
        self.process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + LIMIT_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read()
        self.assertEqual(self.process.wait(LIMIT_S), 0, self.text[-2000:])

    def test_redrawn_in_place(self):
        """Ranks that stand at the same place share a line; each frame replaces the one before."""
        logs = self.job()
        self.start("--world-size", "5")
        self.read_until("the first frame", lambda: self.screen.shown() == ["ranks 0-4: no log yet"])
        frames = 1
        for share in (0.3, 0.6, 1):
            for name, data in logs.items():
                with open(self.path("logs", name), "wb" if share == 0.3 else "ab") as file:
                    file.write(data[file.tell():int(len(data) * share)])
            self.read_until("another frame", lambda: self.text.count("\x1b[J") > frames)
            frames = self.text.count("\x1b[J")
        self.read_until("all ranks in one line", lambda: any(line.startswith("4 ranks (0-3): after ") for line in self.screen.shown()))
        shown = self.screen.shown()
        self.assertEqual([line for line in shown if line.startswith("4 ranks")], shown[:1])
        self.assertEqual(shown[1], "rank 4: no log yet")
        self.read_until("a finding", lambda: any(line.startswith(("error: ", "warning: ")) for line in self.screen.shown()[2:]))
        self.assertIn("\x1b[31m", self.text)  # an error is red
        self.finish()

    def test_never_higher_or_wider(self):
        """Of more lines than the terminal has rows some are only counted, also after it has become smaller."""
        log = next(iter(self.job("recompiles_2_6", 1).values()))
        for rank in range(12):  # each stands elsewhere
            self.append(f"dedicated_log_torch_trace_rank_{rank}_abcdefgh.log", log[:len(log) * (rank + 1) // 13])
        self.start(columns=44, rows=8)
        self.read_until("a frame of the logs", lambda: any("more line" in line for line in self.screen.shown()))
        self.assertLess(self.screen.highest, 8)
        self.assertTrue(any(line.endswith("…") for line in self.screen.shown()))
        frames = self.text.count("\x1b[J")
        self.resize(44, 5)
        self.append("dedicated_log_torch_trace_rank_12_abcdefgh.log", log)
        self.read_until("the next frames", lambda: self.text.count("\x1b[J") >= frames + 2)
        self.assertLess(len(self.screen.shown()), 5)
        self.finish()

    def test_hostile_names(self):
        """Names with escape sequences: Screen refuses what is not tlparse's own."""
        name = "evil\x1b[2J\x1b]0;title\x07\x9b31mname\u202e"
        record = ('V1121 08:30:01.000000 7 a.py:1] {"dynamo_start": {"stack": [{"line": 1, "name": %s, "filename": 0}]}, '
                  '"frame_id": 0, "frame_compile_id": 0, "attempt": 0}\n')
        self.append("dedicated_log_torch_trace_rank_0_abcdefgh.log", (record % json.dumps(name)).encode())
        self.start(columns=200)
        self.read_until("the rank", lambda: any("evil" in line for line in self.screen.shown()))
        self.assertNotIn("\u202e", self.text)
        self.finish()

    def test_dumb_terminal(self):
        """Where the cursor cannot be moved, lines as for a file."""
        for name, data in self.job().items():
            self.append(name, data)
        self.start(columns=500, term="dumb")
        self.read_until("the ranks", lambda: any("4 ranks (0-3)" in line for line in self.screen.shown()))
        self.assertNotIn("\x1b", self.text)
        self.finish()


class WithoutATerminal(Watching):
    def test_plain_lines(self):
        """A line with its time for each change, none twice in a row, no sequences."""
        logs = self.job()
        with open(self.path("out"), "wb") as out:
            process = subprocess.Popen([harness.TLPARSE, "watch", "logs", "--db", "w.db"], cwd=self.folder,
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def lines():
            with open(self.path("out"), encoding="utf-8") as file:
                return file.read().splitlines()

        def wait_for(text):
            deadline = time.monotonic() + LIMIT_S
            while not any(text in line for line in lines()):
                self.assertLess(time.monotonic(), deadline, f"{text}: {lines()}")
                time.sleep(0.1)

        wait_for("no record yet")
        for name, data in logs.items():
            self.append(name, data)
        wait_for("4 ranks (0-3): after ")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(LIMIT_S), 0)
        shown = lines()
        self.assertNotIn("\x1b", "".join(shown))
        for line in shown[:-1]:  # the last one is the database
            self.assertRegex(line, r"^\d\d:\d\d:\d\d ")
        texts = [line[9:] for line in shown[:-1]]
        self.assertTrue(all(one != other for one, other in zip(texts, texts[1:])), texts)
        self.assertEqual(shown[-1], "w.db")


if __name__ == "__main__":
    unittest.main()
