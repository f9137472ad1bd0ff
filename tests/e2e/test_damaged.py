#!/usr/bin/env python3
"""Damage that needs whole, large or compressed logs; the kinds of damage themselves are in fixtures/corrupt."""

import hashlib
import subprocess
import unittest

import harness

HEADER = b'V1121 08:30:01.000000 7 a.py:1] {"artifact": {"name": "dynamo_side_effects", "encoding": "string"}'
LINK = b'V1121 08:30:01.000000 7 a.py:1] {"link": {"name": "a", "url": "b"}}\n'
MIB = 1 << 20


class Damaged(harness.EndToEnd):
    def read(self, log, *options, expect=0):
        done = self.tlparse(log, "--db", "trace.db", "--db-only", *options, expect=expect)
        return self.path("trace.db"), done

    def compress(self, name, pieces):
        """A zstd file of pieces that need not be in memory together."""
        path = self.path(name)
        with subprocess.Popen(["zstd", "-q1", "-o", path], stdin=subprocess.PIPE) as process:
            for piece in pieces:
                process.stdin.write(piece)
        self.assertEqual(process.returncode, 0)
        return path

    def test_record_above_the_limit(self):
        line = [b"x" * MIB] * 800
        log = self.compress("long.log.zst", [
            LINK, HEADER, b', "has_payload": "', b"0" * 32, b'"}\n\t', *line, b"\n", LINK])
        database, _ = self.read(log)
        self.assertEqual(harness.rows(database, "SELECT line, kind, payload_state FROM record"),
                         [[1, "link", "absent"], [2, "artifact", "mismatch"], [4, "link", "absent"]])
        self.assertEqual(harness.rows(database, "SELECT line, severity, code FROM import_log WHERE line <= 3"),
                         [[2, "error", "line_too_long"], [2, "error", "payload_mismatch"], [3, "info", "foreign_line"]])
        # What was cut off is text of import_log.
        kept, = harness.rows(database, "SELECT (SELECT sum(size_bytes) FROM payload) + "
                             "(SELECT sum(length(text)) FROM import_log WHERE code = 'foreign_line')")
        self.assertEqual(kept, [800 * MIB + 1])

    def test_zstd_with_a_large_window(self):
        # RFC 8878: magic, no flags, a window of 2^28 bytes, one raw block that is the last.
        frame = (b"\x28\xb5\x2f\xfd\x00" + bytes([(28 - 10) << 3]) +
                 (len(LINK) << 3 | 1).to_bytes(3, "little") + LINK)
        database, _ = self.read(self.write("window.log.zst", frame), "--strict", expect=1)
        messages = dict(harness.rows(database, "SELECT code, message FROM import_log"))
        self.assertEqual(set(messages), {"damaged_input", "log_without_records"})
        self.assertIn("zstd -d --long=31", messages["damaged_input"])
        self.assertEqual(messages["log_without_records"], "no line could be decoded from it")

    def test_interleaved_ranks(self):
        """An aggregator that gives every line its rank, over many windows of the reader."""
        ranks = []
        for rank in range(3):
            lines = []
            for number in range(1500):
                payload = b"\n".join(b"rank %d line %d of %d" % (rank, line, number) for line in range(number % 90))
                header = HEADER.replace(b" 7 ", b" %d " % (100 + rank)) + b', "rank": %d, "has_payload": "%s"}' % (
                    rank, hashlib.md5(payload).hexdigest().encode())
                lines += [header, *(b"\t" + line for line in payload.split(b"\n"))]
            ranks.append([b"[rank%d]:%s\n" % (rank, line) for line in lines])
        log = self.write("merged.log", b"".join(b"".join(lines) for lines in zip(*ranks)))
        database, _ = self.read(log, "--strict")
        self.assertEqual(harness.rows(database, "SELECT rank, payload_state, count(*) FROM record GROUP BY 1, 2"),
                         [[rank, "ok", 1500] for rank in range(3)])
        self.assertEqual(harness.rows(database, "SELECT count(*) FROM import_log WHERE code <> 'time_from_file'"), [[0]])


if __name__ == "__main__":
    unittest.main()
