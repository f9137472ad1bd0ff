#!/usr/bin/env python3
"""import-log --unknown: a log of a made-up PyTorch, and the bundled logs, whose names are all known."""

import hashlib
import json
import unittest

import harness

HEADER = 'V1121 08:45:4%d.014000 10 a.py:1] '
IDS = '"frame_id": 0, "frame_compile_id": 0, "attempt": 0'


def record(second, envelope, payload=None):
    text = HEADER % second + "{" + envelope + ", " + IDS
    if payload is None:
        return text + "}\n"
    return text + f', "has_payload": "{hashlib.md5(payload.encode()).hexdigest()}"}}\n\t{payload}\n'


def newer_log():
    """What PyTorch 2.31 might write."""
    event = '{"name": "%s", "ph": "X", "ts": 1732178741014000, "dur": 5, "pid": 0, "tid": 0, "cat": "dynamo_timed", "args": {}}'
    key = {"key": "fabc", "cache_state": "miss", "components": [
        "[" + "a" * 51 + "] torch_version: 1", "[" + "b" * 51 + "] quantum_config[depth]: 3", "[" + "c" * 51 + "] quantum_config[width]: 4"]}
    return "".join([
        record(1, '"artifact": {"name": "torch_version", "encoding": "json"}', '{"version": "2.31.0", "torch_version": "2.31.0"}'),
        record(1, '"hologram": {"size": 3}'),
        record(2, '"artifact": {"name": "inductor_hologram", "encoding": "string"}', "text"),
        record(3, '"artifact": {"name": "inductor_hologram", "encoding": "string"}', "another"),
        record(4, '"chromium_event": {}', event % "dynamo"),
        record(4, '"chromium_event": {}', event % "pass.post_grad_passes.new_pass"),
        record(5, '"chromium_event": {}', event % "hologram_pass"),
        record(6, '"artifact": {"name": "fx_graph_cache_miss", "encoding": "json"}', json.dumps(key)),
        record(7, '"compilation_metrics": {"co_name": "f", "hologram_time_us": 7}'),
    ]).encode()


class Unknown(harness.EndToEnd):
    def unknown(self, *options):
        return json.loads(self.tlparse("import-log", "out", "--unknown", "--json", *options).stdout)["unknown"]

    def test_names_of_a_newer_pytorch_are_listed(self):
        log = self.write("newer.log", newer_log())
        self.tlparse(log, "-o", "out", "--db-only", "--run", "newer")
        found = self.unknown()
        self.assertEqual([(one["kind"], one["name"], one["count"], one["line"]) for one in found],
                         [("artifact", "inductor_hologram", 2, 4), ("component", "quantum_config", 2, None),
                          ("metric", "hologram_time_us", 1, 16), ("phase", "hologram_pass", 1, 12), ("record", "hologram", 1, 3)])
        self.assertTrue(all(one["path"] == log for one in found if one["kind"] != "component"))
        text = self.tlparse("import-log", "out", "--unknown").stdout
        self.assertIn("inductor_hologram", text)
        self.assertIn("newer.log:4", text)
        self.assertEqual(self.unknown("--run", "newer"), found)
        for options in (["--severity", "info"], ["--launch", "1"]):
            self.assert_one_line_of_complaint(self.tlparse("import-log", "out", "--unknown", *options, expect=2))
        self.assertIn("there is: newer", self.tlparse("import-log", "out", "--unknown", "--run", "none", expect=2).stderr)

    def test_names_of_another_run_are_not_those_of_this_one(self):
        self.tlparse(harness.bundled("simple"), "-o", "out", "--db-only", "--run", "known")
        self.tlparse(self.write("newer.log", newer_log()), "--db-only", "--db", "out/trace.db", "--run", "newer")
        self.assertEqual(self.unknown("--run", "known"), [])
        self.assertEqual([(one["name"], one["count"]) for one in self.unknown("--run", "newer")],
                         [("inductor_hologram", 2), ("quantum_config", 2), ("hologram_time_us", 1), ("hologram_pass", 1), ("hologram", 1)])

    def test_names_of_the_bundled_logs_are_known(self):
        self.tlparse(*[harness.bundled(name) for name in ("simple", "mlp_train_2_6", "cache_warm_provenance", "cache_cold_2_6", "export",
                                                          "libtrace_aoti", "libtrace_torchscript")], "-o", "out", "--db-only")
        self.assertEqual([one for one in self.unknown() if one["kind"] not in ("record", "artifact")], [])


if __name__ == "__main__":
    unittest.main()
