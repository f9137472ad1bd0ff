"""Traces of PyTorch's compiler in Python: what the program tlparse answers, as objects.

    import tracekit
    job = tracekit.open("tl_run")          # an output directory, a database, or a directory of logs
    for finding in job.findings():
        print(finding.severity, finding.title)
    job.history()                          # rows; .df() where pandas is there
    job.ranks().classes                    # each answer of tlparse is a method
    job.sql("SELECT label, status FROM compile WHERE rank = ?", 3)

    with tracekit.record("traces") as recording:
        train()
    recording.job().findings()

Only the standard library is needed. Objects have the names of the answers' JSON (`tlparse findings --json`).
"""

import base64
import builtins
import contextlib
import html
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import tempfile
import weakref
from urllib.parse import quote

__all__ = ["Error", "Finding", "Job", "Row", "Rows", "Timeline", "open", "program", "record"]


class Error(Exception):
    """What tlparse says when it cannot answer."""


def program():
    """The path of tlparse: TLPARSE of the environment, the one installed with this package, else the one on PATH."""
    beside = os.path.join(sysconfig.get_path("scripts"), "tlparse")
    path = os.environ.get("TLPARSE") or (beside if os.path.exists(beside) else shutil.which("tlparse"))
    if path is None:
        raise Error("there is no tlparse on PATH")
    return path


def _run(*arguments):
    done = subprocess.run([program(), *arguments], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode not in (0, 1):
        raise Error(done.stderr.decode("utf-8", "replace").strip() or f"tlparse ended with {done.returncode}")
    return done.stdout.decode("utf-8", "replace")


def _object(value):
    if isinstance(value, dict):
        return Row(value)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return Rows(map(Row, value))
    return value


class Row:
    """One row of an answer, or a whole answer: its members are attributes (objects are rows again, lists of them Rows); those of a name that
    Python reserves end in "_"."""

    def __init__(self, members):
        self._members = members
        for name, value in members.items():
            setattr(self, name + "_" if name in ("try", "class", "from") else name, _object(value))

    def to_dict(self):
        return dict(self._members)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._members.items())})"

    def __eq__(self, other):
        return isinstance(other, Row) and self._members == other._members

    __hash__ = None


class Finding(Row):
    """What is wrong and why: severity, kind, title, detail, ranks, compiles, place, cause, try_, evidence (findings), query (SQL)."""

    def __init__(self, members):
        super().__init__(members)
        self.evidence = Rows(Finding(one) for one in members.get("evidence", []))

    def __str__(self):
        return f"{self.severity}: {self.title}"

    def _repr_html_(self):
        lines = [f"<b>{html.escape(str(self))}</b>"]
        if self.place:
            line = f":{self.place.line}" if self.place.line else ""
            lines.append(f"<code>{html.escape(self.place.file)}{line}</code>")
        lines += [html.escape(text) for text in (self.detail, f"try: {self.try_}" if self.try_ else "") if text]
        return "<br>".join(lines)


def _column(values):
    """A pandas.Series of values as JSON and SQLite have them; pandas itself makes float64 of whole numbers with gaps, and its types of text differ."""
    import pandas

    kinds = {type(value) for value in values if value is not None}
    has_gaps = any(value is None for value in values)
    if kinds == {int} and has_gaps:
        return pandas.Series(values, dtype="Int64")
    is_plain = (kinds and kinds <= {int, float}) or (kinds == {bool} and not has_gaps)
    return pandas.Series(values, dtype=None if is_plain else object)


class Rows(list):
    """Rows of an answer or a query."""

    def df(self):
        """A pandas.DataFrame, with the same types in each version of pandas: whole numbers stay whole where some are missing (Int64), and what
        is missing from other columns than those of numbers is None."""
        import pandas

        rows = [row.to_dict() for row in self]
        names = dict.fromkeys(name for row in rows for name in row)
        return pandas.DataFrame({name: _column([row.get(name) for row in rows]) for name in names})

    def _repr_html_(self):
        if self and isinstance(self[0], Finding):
            return "<hr>".join(finding._repr_html_() for finding in self)
        names = list(self[0].to_dict()) if self else []
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join("<tr>" + "".join(f"<td>{'' if value is None else html.escape(str(value))}</td>" for value in row.to_dict().values()) + "</tr>"
                       for row in self)
        return f"<table><tr>{head}</tr>{body}</table>"


class Timeline:
    """A file in the trace-event format, for ui.perfetto.dev (Open trace file) and chrome://tracing."""

    def __init__(self, path):
        self.path = path  # compressed

    def __repr__(self):
        return f"tracekit.Timeline({self.path!r})"

    def _repr_html_(self):
        with builtins.open(self.path, "rb") as file:
            packed = base64.b64encode(file.read()).decode()
        return (f'<a download="timeline.json.gz" href="data:application/gzip;base64,{packed}">timeline.json.gz</a>, '
                'for <a href="https://ui.perfetto.dev" target="_blank" rel="noopener">Perfetto</a> (Open trace file)')


class Job:
    """A database of tlparse, with one or more runs; answers are about the latest unless `run` names another. Each answer is a method
    with the command's name (`tlparse --help`): what `--json` writes, as a Row; arguments as of the command. `tlparse schema` says what its
    members mean."""

    _answers = ("cache", "check", "collectives", "compile", "cost", "execution", "import_log", "memory", "provenance", "ranks", "recompiles", "source",
                "status")

    def __init__(self, database, run=None):
        self.database, self.run = database, run

    def __getattr__(self, name):
        if name not in self._answers:
            raise AttributeError(f"no answer {name!r}: {', '.join(('findings', 'history', *self._answers))}")
        return lambda *arguments: Row(self._ask(name.replace("_", "-"), *arguments))

    def __dir__(self):
        return [*super().__dir__(), *self._answers]

    def _ask(self, command, *arguments):
        run = ["--run", self.run] if self.run else []
        return json.loads(_run(command, self.database, "--json", *run, *arguments))

    def findings(self, *arguments):
        """What is wrong and why, the most urgent first; arguments as of `tlparse findings`."""
        return Rows(Finding(one) for one in self._ask("findings", *arguments)["findings"])

    def history(self, *arguments):
        """The compiles; arguments as of `tlparse history`."""
        answer = self._ask("history", *arguments)
        return Rows(Row(one) for one in next(value for value in answer.values() if isinstance(value, list)))

    def sql(self, query, *parameters):
        """Rows of a query; tables and views are described in the table schema_doc."""
        with contextlib.closing(sqlite3.connect(f"file:{quote(self.database)}?mode=ro", uri=True)) as connection:
            cursor = connection.execute(query, parameters)
            names = [column[0] for column in cursor.description or ()]
            return Rows(Row(dict(zip(names, values))) for values in cursor)

    def timeline(self, *arguments):
        """The run as a file for Perfetto, which is removed with the object; a notebook shows a link to it. Arguments as of `tlparse timeline`."""
        folder = tempfile.mkdtemp(prefix="tracekit_")
        timeline = Timeline(os.path.join(folder, "timeline.json.gz"))
        weakref.finalize(timeline, shutil.rmtree, folder, True)
        run = ["--run", self.run] if self.run else []
        _run("timeline", self.database, "-o", timeline.path, *run, *arguments)
        return timeline

    def __repr__(self):
        return f"tracekit.Job({self.database!r})"


def open(path, run=None):  # pylint: disable=redefined-builtin
    """A Job of an output directory of tlparse, of a database, or of logs, which are read into a temporary database first."""
    inside = os.path.join(path, "trace.db")
    if os.path.exists(inside):
        return Job(inside, run)
    if os.path.isfile(path):
        with builtins.open(path, "rb") as file:
            if file.read(16) == b"SQLite format 3\0":
                return Job(path, run)
    folder = tempfile.mkdtemp(prefix="tracekit_")
    job = Job(os.path.join(folder, "trace.db"), run)
    weakref.finalize(job, shutil.rmtree, folder, True)
    _run(path, "--db", job.database, "--db-only")
    return job


class Recording:
    """What `record` writes into its directory."""

    def __init__(self, directory):
        self.directory = directory

    def job(self):
        return open(self.directory)


def _trace_into(directory):
    """Has PyTorch, which is imported already, write its trace there."""
    from torch._logging import _internal

    handler = _internal.LOG_TRACE_HANDLER
    if handler is not None and handler.stream is not None:
        raise Error("this process writes a trace already")
    _internal._init_logs()  # pylint: disable=protected-access
    _internal.LOG_TRACE_HANDLER.root_dir = directory


@contextlib.contextmanager
def record(directory, profile=False):
    """Records what this process compiles from now on into the directory; `profile`: torch.profiler records the block. For whole jobs, and
    for what a job that hangs or crashes leaves, use `tlparse run`. Raises Error if the process writes a trace already."""
    directory = os.path.abspath(directory)
    os.makedirs(directory, exist_ok=True)
    if "torch" in sys.modules:
        _trace_into(directory)
    else:
        os.environ["TORCH_TRACE"] = directory
    profiler = None
    if profile:
        import torch.profiler

        profiler = torch.profiler.profile()
        profiler.start()
    try:
        yield Recording(directory)
    finally:
        if profiler is not None:
            profiler.stop()
            profiler.export_chrome_trace(os.path.join(directory, f"profile_pid_{os.getpid()}.json"))
