"""Runs the answers of tlparse for the tests and checks every one against its JSON Schema."""

import glob
import json
import os
import subprocess
import tempfile
import unittest

import jsonschema

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TLPARSE = os.environ.get("TLPARSE", os.path.join(ROOT, "build", "bin", "tlparse"))
LOGS = os.path.join(ROOT, "fixtures", "logs")


def validator(name):
    with open(os.path.join(ROOT, "schemas", "json", "answers", name + ".schema.json")) as file:
        schema = json.load(file)
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def run(*arguments, code=0):
    done = subprocess.run([TLPARSE, *arguments], capture_output=True, text=True, env={**os.environ, "COLUMNS": "80"})
    if done.returncode != code:
        raise AssertionError(f"tlparse {' '.join(arguments)}: {done.returncode}, expected {code}: {done.stderr}")
    return done.stdout


def ask(name, *arguments, code=0):
    """The answer as JSON, valid by its schema, and its text, which fits 80 columns."""
    answer = json.loads(run(name, *arguments, "--json", code=code))
    validator(name).validate(answer)
    return answer


class AnswerTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name

    def ingest(self, *inputs, name="trace", run_name=None):
        database = os.path.join(self.scratch, name + ".db")
        run(*inputs, "--db-only", "--db", database, *(["--run", run_name] if run_name else []))
        return database

    def job(self, scenario):
        return self.ingest(os.path.join(LOGS, scenario), name=scenario)

    def aspects(self, database):
        """{ranks: [area: text, …]} of the classes that are not the reference."""
        answer = ask("ranks", database)
        return {one["ranks"]["ranks"]: [f"{aspect['area']}: {aspect['text']}" for aspect in one["aspects"]] for one in answer["classes"][1:]}


def first_log(scenario):
    return sorted(glob.glob(os.path.join(LOGS, scenario, "*")))[0]
