#!/usr/bin/env python3
"""Every command of docs/questions.md runs and prints what stands there.

usage: test_documents.py [--update]     with --update the screens are written into the document: read the diff
"""

import os
import re
import shlex
import sys
import unittest

import harness

DOCUMENT = os.path.join(harness.ROOT, "docs", "questions.md")
BLOCK = re.compile(r"(?m)^```console\n(.*?)^```$", re.DOTALL)
RECORDED_BY = re.compile(r"(?<=/home)/\w+/")
MOST_LINES = 12
MOST_COLUMNS = 140


def commands(block):
    """(command, lines that it prints) of a block."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


class Documents(harness.EndToEnd):
    def run_command(self, command):
        words = shlex.split(command)
        self.assertEqual(words[0], "tlparse", command)
        done = self.tlparse(*words[1:], expect=None)
        self.assertEqual(done.stderr, "", command)
        lines = [line if len(line) <= MOST_COLUMNS else line[:MOST_COLUMNS] + "…" for line in map(str.rstrip, RECORDED_BY.sub("/u/", done.stdout).splitlines())]
        if "--db-only" in words:
            lines = lines[1:]  # where the database is
        if len(lines) > MOST_LINES:
            lines = lines[:MOST_LINES] + ["…"]
        return lines + ([f"exit {done.returncode}"] if done.returncode else [])

    def test_screens(self):
        os.symlink(os.path.join(harness.ROOT, "fixtures"), self.path("fixtures"))
        with open(DOCUMENT, encoding="utf-8") as file:
            text = file.read()
        blocks = BLOCK.findall(text)
        self.assertGreaterEqual(len(blocks), 12)
        for block in blocks:
            shown = "".join(f"$ {command}\n" + "".join(line + "\n" for line in self.run_command(command)) for command, _ in commands(block))
            if UPDATE:
                text = text.replace(f"```console\n{block}```", f"```console\n{shown}```", 1)
            else:
                self.assertEqual(shown, block)
        if UPDATE:
            with open(DOCUMENT, "w", encoding="utf-8") as file:
                file.write(text)


UPDATE = "--update" in sys.argv
if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--update"])
