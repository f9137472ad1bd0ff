#!/usr/bin/env python3
"""The adapters for TensorRT and for Triton Inference Server: what is in their logs. A stand-in for TensorRT's library, and one for Triton's
server; with TRITONSERVER=<program> the real server too (the wheel nvidia-pytriton of PyPI has one), asked over HTTP.

usage: test_adapters.py TENSORRT_EXAMPLE TRITON_STAND_IN TRITON_BACKEND
"""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

TENSORRT, TRITON, BACKEND = sys.argv[1:4]
TRACE_ID = "0af7651916cd43dd8448eb211c80319"
CONFIG = """backend: "libtrace_example"
max_batch_size: 0
input [{name: "INPUT", data_type: TYPE_FP32, dims: [-1]}]
output [{name: "OUTPUT", data_type: TYPE_FP32, dims: [-1]}]
instance_group [{kind: KIND_CPU}]
"""


def environment(**more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("LIBTRACE_", "TORCH_", "OTEL_", "RANK"))}
    return clean | more


def records(folder):
    """(envelope, payload) of each record of the one log in `folder`."""
    log, = pathlib.Path(folder).glob("*.log")
    found = []
    for line in log.read_text().splitlines():
        if line.startswith("\t"):
            found[-1][1] += line[1:] + "\n"
        else:
            found.append([json.loads(line.split("] ", 1)[1]), ""])
    return found


def artifacts(found, name):
    return [(envelope, json.loads(payload)) for envelope, payload in found if re.fullmatch(name, envelope.get("artifact", {}).get("name", ""))]


def lookups(found, layer):
    return [envelope["artifact"]["name"].removeprefix(layer + "_cache_") for envelope, _ in artifacts(found, layer + "_cache_(hit|miss|bypass)")]


class Adapters(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def test_tensorrt(self):
        with open(self.path("model.onnx"), "w") as file:
            file.write("a model")
        for start in ("miss", "hit"):
            subprocess.run([TENSORRT, self.path("model.onnx"), self.path("cache"), "5"], check=True, timeout=120,
                           env=environment(TORCH_TRACE=self.path(start)))
            found = records(self.path(start))
            self.assertEqual(lookups(found, "acme_tensorrt"), [start])
            (envelope, payload), = artifacts(found, "libtrace_measured_runtime")
            self.assertEqual((envelope["frame_id"], payload["clock"]), (0, "cuda"))
            self.assertEqual([(op["name"], op["count"], op["total_ns"]) for op in payload["ops"]],
                             [("conv1 + relu1", 5, 2.5e6), ("fc", 5, 1.25e6)])
            self.assertEqual(len(artifacts(found, "libtrace_graph_execution")), 5)
            built = sum("tensorrt_build" in payload for _, payload in found)
            self.assertEqual(built != 0, start == "miss")
        # Off: the same work, no profiler, no log.
        subprocess.run([TENSORRT, self.path("model.onnx"), self.path("cache")], check=True, timeout=120, env=environment())

    def check_requests(self, found, state):
        self.assertEqual(lookups(found, "acme_triton"), [state])
        calls = artifacts(found, "libtrace_graph_execution")
        self.assertEqual([envelope.get("traceparent", "")[3:35] for envelope, _ in calls], [TRACE_ID + "a", TRACE_ID + "b"])
        self.assertEqual([payload["compile_id"] for _, payload in calls], ["0/0", "0/0"], calls)

    def test_triton_stand_in(self):
        os.mkdir(self.path("model"))
        for start in ("miss", "hit"):
            done = subprocess.run([TRITON, BACKEND, self.path("model")], check=True, capture_output=True, text=True, timeout=120,
                                  env=environment(TORCH_TRACE=self.path(start)))
            self.assertEqual(done.stdout, "answer: 2 4 6\nanswer: 2 4 6\nanswer: error INPUT is not FP32\n")
            self.check_requests(records(self.path(start)), start)

    @unittest.skipUnless(os.environ.get("TRITONSERVER"), "TRITONSERVER does not name a server")
    def test_triton(self):
        os.makedirs(self.path("models/doubling/1"))
        os.makedirs(self.path("backends/libtrace_example"))
        shutil.copy(BACKEND, self.path("backends/libtrace_example/libtriton_libtrace_example.so"))
        with open(self.path("models/doubling/config.pbtxt"), "w") as file:
            file.write(CONFIG)
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        for start in ("miss", "hit"):
            with open(self.path(start + ".txt"), "w") as said:
                server = subprocess.Popen(
                    [os.environ["TRITONSERVER"], "--model-repository", self.path("models"), "--backend-directory", self.path("backends"),
                     "--http-address=127.0.0.1", f"--http-port={port}", "--allow-grpc=false", "--allow-metrics=false",
                     "--http-header-forward-pattern=(?i)traceparent"], stdout=said, stderr=said, env=environment(TORCH_TRACE=self.path(start)))
            try:
                for last in "ab":
                    self.assertEqual(self.ask(server, port, last), [2, 4, 6])
            finally:
                server.terminate()
                server.wait(120)
            self.check_requests(records(self.path(start)), start)

    def ask(self, server, port, last):
        body = {"inputs": [{"name": "INPUT", "datatype": "FP32", "shape": [3], "data": [1, 2, 3]}]}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v2/models/doubling/infer", json.dumps(body).encode(),
                                         {"traceparent": f"00-{TRACE_ID}{last}-b7ad6b7169203331-01"})
        while True:
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.load(answer)["outputs"][0]["data"]
            except OSError:
                self.assertIsNone(server.poll())
                time.sleep(0.2)


unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
