"""Runs the answers of tlparse for the tests and checks every one against its JSON Schema."""

import fcntl
import glob
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import jsonschema

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))
import trace_lines  # noqa: E402

TLPARSE = os.environ.get("TLPARSE", os.path.join(ROOT, "build", "bin", "tlparse"))
LOGS = os.path.join(ROOT, "fixtures", "logs")
SHARED = os.path.join(os.path.dirname(ROOT), "shared")  # recordings, where they are beside the checkout


def validator(name):
    folder = os.path.join(ROOT, "schemas", "json", "answers")
    with open(os.path.join(folder, name + ".schema.json")) as file:
        schema = json.load(file)
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema, resolver=jsonschema.RefResolver(f"file://{folder}/", schema))


def run(*arguments, code=0):
    done = subprocess.run([TLPARSE, *arguments], capture_output=True, text=True, env={**os.environ, "COLUMNS": "80"})
    if done.returncode != code:
        raise AssertionError(f"tlparse {' '.join(arguments)}: {done.returncode}, expected {code}: {done.stderr}")
    return done.stdout


def of_fixtures(inputs):
    return all(os.path.realpath(path).startswith(os.path.join(os.path.realpath(ROOT), "fixtures") + os.sep) for path in inputs)


def ingested_once(inputs, options):
    """The database of fixtures as this very program ingests them. Suites share it: half of their time went into ingesting the same logs
    again. It is made again when the program or a file of the inputs changes; callers copy it."""
    program = os.stat(TLPARSE)
    version = f"{program.st_mtime_ns}-{program.st_size}"
    folder = os.path.join(os.path.dirname(os.path.abspath(TLPARSE)), "ingested_by_tests")
    files = [path for top in inputs for path in ([top] if os.path.isfile(top) else sorted(glob.glob(top + "/**", recursive=True)))]
    state = [(path, os.stat(path).st_mtime_ns, os.stat(path).st_size) for path in files]
    key = hashlib.sha256(repr((inputs, options, state)).encode()).hexdigest()[:24]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, key + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        database = os.path.join(folder, f"{key}-{version}.db")
        if not os.path.exists(database):
            for older in glob.glob(os.path.join(folder, key + "-*")):
                os.remove(older)
            run(*inputs, "--db-only", "--db", database + ".new", *options)
            os.rename(database + ".new", database)
    return database


def ask(name, *arguments, code=0):
    """The answer as JSON, valid by its schema, and its text, which fits 80 columns."""
    answer = json.loads(run(name, *arguments, "--json", code=code))
    validator(name).validate(answer)
    return answer


def expanded(text):
    """{0, 1, 3} of "0,1,3", {0, 1, 2} of "0-2"."""
    return {rank for part in text.split(",") if part for first, _, last in [part.partition("-")] for rank in range(int(first), int(last or first) + 1)}


class AnswerTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name

    def ingest(self, *inputs, name="trace", run_name=None):
        database = os.path.join(self.scratch, name + ".db")
        options = ["--run", run_name] if run_name else []
        if of_fixtures(inputs) and not os.path.exists(database):
            shutil.copyfile(ingested_once(inputs, options), database)
        else:
            run(*inputs, "--db-only", "--db", database, *options)
        return database

    def job(self, scenario):
        return self.ingest(os.path.join(LOGS, scenario), name=scenario)

    def save(self, name, *records):
        path = os.path.join(self.scratch, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write("".join(records))
        return path

    def compiled(self, frame, function, operation, rank=0, inputs='L_x_: "f32[4][1]cuda:0"', place=("/u/m.py", 10)):
        ids = {"rank": rank, "frame_id": frame, "frame_compile_id": 0, "attempt": 0}
        graph = (f"class GraphModule(torch.nn.Module):\n    def forward(self, {inputs}):\n        l_x_ = L_x_\n"
                 f'        {operation}: "f32[4][1]cuda:{rank}" = l_x_ + 1;  l_x_ = None\n        return ({operation},)\n')
        metrics = {"co_name": function, "co_filename": place[0], "co_firstlineno": place[1], "compile_id": f"{frame}/0"}
        stack = [{"line": place[1], "name": function, "filename": 1, "loc": "x"}]
        return (record({"dynamo_start": {"stack": stack}, **ids}) + record({"dynamo_output_graph": {"sizes": {}}, **ids}, graph)
                + record({"compilation_metrics": metrics, **ids}))

    def aspects(self, database):
        """{ranks: [area: text, …]} of the classes that are not the reference."""
        answer = ask("ranks", database)
        return {one["ranks"]["ranks"]: [f"{aspect['area']}: {aspect['text']}" for aspect in one["aspects"]] for one in answer["classes"][1:]}


def record(envelope, payload=None, time="08:30:01.000000"):
    envelope = dict(envelope)
    if payload is not None:
        envelope["has_payload"] = hashlib.md5(payload.encode()).hexdigest()
    text = f"V1121 {time} 4242 torch/_dynamo/convert_frame.py:304] {json.dumps(envelope)}\n"
    return text + ("\t" + payload.replace("\n", "\n\t") + "\n" if payload is not None else "")


def first_log(scenario):
    return sorted(glob.glob(os.path.join(LOGS, scenario, "*")))[0]


def another_process(source, target):
    """Copies a gzip log with other microseconds: a copy with the same bytes is of the same process."""
    with gzip.open(source) as log, open(target, "wb") as out:
        out.write(re.sub(rb"(?m)^([VIWE][0-9]{4} [0-9:]+\.[0-9]{5})[0-9]", rb"\g<1>9", log.read()))


def edit_log(source, target, change):
    """Copies a log; `change(record)` gives the payload of each record that has one, hashed anew where it is another."""
    count = 0
    with open(target, "wb") as out:
        for item in trace_lines.read_log(source):
            if not isinstance(item, trace_lines.Record):
                out.write(item.text + b"\n")
                continue
            envelope, payload = item.envelope_bytes, item.payload
            changed = payload if payload is None else change(item)
            if changed != payload:
                count += 1
                digest = hashlib.md5(changed).hexdigest().encode()
                envelope = re.sub(rb'("has_payload": ")[0-9a-f]{32}', lambda match: match[1] + digest, envelope)
            out.write(item.prefix + envelope + item.line_end)
            if changed is not None:
                out.write(b"\t" + changed.replace(b"\n", b"\n\t") + b"\n")
    return count
