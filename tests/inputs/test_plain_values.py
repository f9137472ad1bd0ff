#!/usr/bin/env python3
"""The reader of plain values against Python's own pickle and json: what they write is read back as it was, what does more
than build plain values is refused with its byte, and no damage makes the reader fail.

usage: test_plain_values.py PLAIN_DUMP
"""

import collections
import datetime
import glob
import json
import os
import pickle
import pickletools
import random
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLAIN_DUMP = None


def dump(form, data):
    done = subprocess.run([PLAIN_DUMP, form], input=data, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr[-500:], data[:200])
    return json.loads(done.stdout)


def random_value(rng, depth):
    kind = rng.randrange(11 if depth > 0 else 7)
    if kind == 0:
        return None
    if kind == 1:
        return rng.random() < 0.5
    if kind == 2:
        return rng.choice([0, 1, -1, 255, 256, 65535, 65536, 2**31 - 1, -2**31, 2**31, 2**63 - 1, -2**63])
    if kind == 3:
        return rng.choice([0.0, 1.5, -2.25, 1e300, 0.1, 123456789.125])
    if kind in (4, 5, 6):
        return rng.choice(["", "a", "é€😀", "line\nfeed", "back\\slash \\u0041", "x" * rng.choice([5, 255, 256, 300]), "\x00\x1a\r"])
    if kind == 7:
        return {str(rng.random()): random_value(rng, depth - 1) for _ in range(rng.randrange(4))}
    if kind == 8:
        return tuple(random_value(rng, depth - 1) for _ in range(rng.randrange(6)))
    shared = random_value(rng, depth - 1)
    return [shared] + [random_value(rng, depth - 1) for _ in range(rng.randrange(4))] + [shared]


def plain(value):
    """As our JSON gives it back: a NUL, which SQLite's text cannot hold, is U+FFFD there."""
    return json.loads(json.dumps(value).replace("\\u0000", "\\ufffd"))


class PlainPickle(unittest.TestCase):
    def test_values_of_every_protocol(self):
        rng = random.Random(14)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            for _ in range(40):
                value = {"v": random_value(rng, 4)}
                read = dump("pickle", pickle.dumps(value, protocol))
                self.assertIsNone(read["problem"], (protocol, value))
                self.assertEqual(plain(value), read["value"], (protocol, value))

    def test_many_elements_come_in_batches(self):
        value = {"entries": [{"record_id": i, "pair": ("2", "tp")} for i in range(2500)]}
        for protocol in (0, 2, 4):
            self.assertEqual(plain(value), dump("pickle", pickle.dumps(value, protocol))["value"])

    def test_an_integer_beyond_64_bits_is_no_number(self):
        for value in (2**63, -2**63 - 1, 2**200, -2**200, 2**3000):
            for protocol in (0, 2):
                read = dump("pickle", pickle.dumps([value, 7], protocol))
                self.assertEqual([None, 7], read["value"])

    def test_whatever_runs_code_is_refused_with_its_byte(self):
        class Evil:
            def __reduce__(self):
                return (os.system, ("touch /dev/null",))
        for value in (Evil(), datetime.datetime(2026, 1, 1), collections.OrderedDict(a=1), {1, 2}, b"bytes", bytearray(b"x"), os.system):
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                data = pickle.dumps({"entries": [{"whole": 1}, {"odd": value}]}, protocol)
                read = dump("pickle", data)
                self.assertRegex(read["problem"]["message"], "opcode 0x[0-9a-f]{2} does not build a plain value", (value, protocol))
                opcodes = {position: opcode for opcode, _, position in pickletools.genops(data)}
                at = read["problem"]["byte_offset"]
                self.assertIn(at, opcodes)
                self.assertIn("0x%02x" % ord(opcodes[at].code.encode("latin-1").decode("latin-1")), read["problem"]["message"])
                self.assertFalse(read["problem"]["is_cut"])

    def test_a_cut_file_gives_what_came_before(self):
        value = {"version": "2.10", "entries": [{"record_id": i, "frames": [{"line": i}], "time": 10**18 + i} for i in range(4)]}
        for protocol in (2, 4):
            data = pickle.dumps(value, protocol)
            seen = set()
            for size in range(len(data)):
                read = dump("pickle", data[:size]) if size % 7 == 0 or size > len(data) - 9 else None
                if read is None:
                    continue
                # Where it ends in what may be the end mark, a length in it is wrong.
                self.assertEqual(data[size - 1:size] != b".", read["problem"]["is_cut"], size)
                entries = (read["value"] or {}).get("entries", []) or []
                whole = [entry for entry in entries if set(entry) == {"record_id", "frames", "time"}]
                for number, entry in enumerate(whole):
                    self.assertEqual(number, entry["record_id"])
                    self.assertEqual(10**18 + number, entry["time"])
                seen.add(len(whole))
            self.assertTrue(seen >= {0, 1, 2, 3}, seen)

    def test_a_flipped_byte_is_no_cut(self):
        data = pickle.dumps({"entries": [{"record_id": i, "name": "all_reduce"} for i in range(4)]}, 2)
        at = data.index(b"X\x0a\x00\x00\x00all_reduce")
        for changed, offset, message in (
                (data[:at + 4] + b"\x7f" + data[at + 5:], at, "opcode 'X' 0x58: what follows it would go beyond the end of the file"),
                (data[:-2] + b"e.", len(data) - 2, "opcode 'e' 0x65: the mark that it needs is missing"),
                (data[:-1] + b"h", len(data) - 1, None)):
            problem = dump("pickle", changed)["problem"]
            self.assertEqual(offset, problem["byte_offset"])
            if message is None:
                self.assertEqual(("the pickle ends before its end mark", True), (problem["message"], problem["is_cut"]))
            else:
                self.assertEqual(("the pickle is damaged here or before: " + message, False), (problem["message"], problem["is_cut"]))

    def test_damage_never_breaks_the_reader(self):
        rng = random.Random(41)
        base = pickle.dumps({"entries": [{"f": ("a", 1.5), "l": [1, 2, 3]}] * 3, "n": 2**40}, 2)
        for protocol in (0, 2, 4):
            data = pickle.dumps({"entries": [random_value(rng, 3) for _ in range(6)]}, protocol)
            for _ in range(120):
                bytes_ = bytearray(data if rng.random() < 0.7 else base)
                for _ in range(rng.randrange(1, 6)):
                    bytes_[rng.randrange(len(bytes_))] = rng.randrange(256)
                dump("pickle", bytes(bytes_))

    def test_hostile_pickles_cost_no_more_than_their_size(self):
        bomb = b"\x80\x02]q\x00" + b"".join(b"]q%c(h%ch%ce" % (i + 1, i, i) for i in range(60)) + b"h\x3c."
        for data in (b"\x80\x02" + b"(" * 3_000_000, b"\x80\x02" + b"]" * 3_000_000, b"\x80\x02]r\xff\xff\xff\xff.",
                     b"\x80\x02X\xff\xff\xff\x7fabc", b"\x80\x04\x8d" + b"\xff" * 8, b"\x80\x02]q\x00h\x00a.", b"\x80\x02\x8b\xff\xff\xff\x7f1",
                     bomb, b"", b".", b"\x80", b"\x80\x09}.", b"\x80\x02e", b"\x80\x02u", b"\x80\x02a", b"\x80\x02}(K\x01u.", b"\x80\x02\x85."):
            dump("pickle", data)

    def test_recorded_dumps(self):
        files = glob.glob(os.path.join(ROOT, "fixtures", "runs", "*", "fr_*"))
        pickles = [path for path in files if not path.endswith((".json", ".json.zst", ".zst"))]
        self.assertTrue(pickles, "no recording in fixtures/runs")
        for path in pickles:
            with open(path, "rb") as file:
                data = file.read()
            self.assertEqual(plain(pickle.loads(data)), dump("pickle", data)["value"], path)


class PlainJson(unittest.TestCase):
    def test_values(self):
        rng = random.Random(15)
        for indent in (None, 2):
            for _ in range(60):
                value = plain({"v": random_value(rng, 4)})
                for ascii_only in (True, False):
                    data = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
                    self.assertEqual({"value": value, "problem": None}, dump("json", data))

    def test_numbers_that_are_none(self):
        self.assertEqual({"a": None, "b": [None, None]}, dump("json", b'{"a": NaN, "b": [Infinity, -Infinity]}')["value"])

    def test_what_is_not_json_names_its_byte(self):
        for text, at in ((b'{"a": 1,}', 8), (b'[1 2]', 3), (b'{"a" 1}', 5), (b'[1]x', 3), (b'[tru]', 1), (b'{"a": "\\q"}', 7), (b'[01]', 2)):
            read = dump("json", text)
            self.assertEqual(at, read["problem"]["byte_offset"], (text, read))
            self.assertFalse(read["problem"]["is_cut"])

    def test_a_cut_text_gives_what_came_before(self):
        text = json.dumps({"entries": [{"a": i, "b": [1, "x"]} for i in range(5)], "version": "2.10"}).encode()
        for size in range(len(text)):
            read = dump("json", text[:size])
            self.assertTrue(read["problem"]["is_cut"], text[:size])
            for number, entry in enumerate((read["value"] or {}).get("entries", [])[:-1]):
                self.assertEqual({"a": number, "b": [1, "x"]}, entry)


if __name__ == "__main__":
    PLAIN_DUMP = sys.argv.pop(1)
    unittest.main()
