#!/usr/bin/env python3
"""What a notebook shows of tracekit with the Jupyter and pandas of two Pythons: the cells of docs/from-python.md, the HTML of findings, rows and
a timeline, and each list of rows of each answer as a DataFrame. Both notebooks are also made into pages by nbconvert.

usage: notebooks.py [PYTHON OTHER_PYTHON]      (TLPARSE names the program)

Each Python has pandas, ipykernel, nbclient and nbconvert; without arguments, the one that runs this has those of Debian, and those of PyPI are
installed into an environment that is removed afterwards. Prints their versions and how much was compared. Exit code 1: they show different
things, or not what docs/from-python.md says; 77: one of the two cannot be had.
"""
import doctest
import html.parser
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGES = ("pandas", "ipykernel", "nbclient", "nbconvert")
SCENARIOS = ["diverge_config_2_6", "cache_some_ranks", "graph_breaks_2_6", "recompiles_2_6", "train_order", "mlp_train"]
# Shows each list of rows within an answer as it is and as a DataFrame with its types; those that need an argument have none here.
ANSWERS = """
import pandas
pandas.set_option("display.max_rows", None, "display.max_columns", None)
def show(name, rows):
    frame = rows.df()
    print(name, [str(one) for one in frame.dtypes])
    display(rows)
    display(frame)
def show_within(name, value):
    if isinstance(value, tracekit.Rows):
        show(name, value)
    elif isinstance(value, tracekit.Row):
        for member, one in vars(value).items():
            show_within(name + "." + member, one)
def show_job(name):
    job = tracekit.open("fixtures/logs/" + name)
    show("findings", job.findings())
    show("history", job.history("--all"))
    show("compiles", job.sql("SELECT * FROM compile ORDER BY rank, label"))
    for answer in tracekit.Job._answers:
        try:
            show_within(answer, getattr(job, answer)())
        except tracekit.Error as error:
            print(answer, "says", error)
    display(job.timeline())
"""


class Shown(html.parser.HTMLParser):
    """The rows of a page's tables, and its links for downloading."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.links, self.cell = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.cell = ""
        elif tag == "a" and dict(attrs).get("download"):
            self.links.append(dict(attrs)["href"])

    def handle_endtag(self, tag):
        if tag in ("td", "th") and self.cell is not None:
            self.rows[-1].append(self.cell)
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data


def cells():
    """(source, what the documentation says it prints) of each cell."""
    with open(os.path.join(ROOT, "docs", "from-python.md")) as file:
        examples = doctest.DocTestParser().get_examples(file.read())
    documented = [(one.source, one.exc_msg or one.want) for one in examples]
    return documented + [(ANSWERS, "")] + [(f"show_job({name!r})", None) for name in SCENARIOS]


def run_here():
    """Runs the notebook with the packages of this Python: [[{type: content} of each output] of each cell], and the page."""
    import nbconvert
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source, _ in cells()])
    NotebookClient(book, timeout=600, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": ROOT}}).execute()
    outputs = []
    for cell in book.cells:
        shown = []
        for output in cell.outputs:
            if output.output_type == "stream":
                if shown and "stream" in shown[-1]:  # it may come in any number of pieces
                    shown[-1]["stream"] += output.text
                else:
                    shown.append({"stream": output.text})
            elif output.output_type == "error":
                shown.append({"text/plain": f"tracekit.{output.ename}: {output.evalue}"})
            else:
                shown.append(dict(output.data))
        outputs.append(shown)
    return {"outputs": outputs, "page": nbconvert.HTMLExporter().from_notebook_node(book)[0]}


def run_with(python):
    """The same by another Python."""
    environment = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python"), "PYTHONWARNINGS": "ignore", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    versions = subprocess.run([python, "-c", "import sys, importlib.metadata as m; print(sys.version.split()[0], *map(m.version, sys.argv[1:]))",
                               *PACKAGES], capture_output=True, text=True, check=True).stdout.split()
    print(", ".join(f"{name} {version}" for name, version in zip(("Python", *PACKAGES), versions)))
    done = subprocess.run([python, os.path.abspath(__file__), "--here"], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    # Folders of their own; pandas since 3 writes several spaces so that a browser shows them all.
    return json.loads(re.sub(r"tracekit_\w+", "tracekit_FOLDER", re.sub(r"&nbsp;|\\u00a0", " ", done.stdout)))


def words(shown):
    return " ".join(" ".join(one.get("text/plain", one.get("stream", "")) for one in shown).split())


def compare(one, other):
    """What differs, as lines."""
    differences = []
    for (source, expected), first, second in zip(cells(), one["outputs"], other["outputs"], strict=True):
        cell = source.strip().splitlines()[0]
        if expected is not None and words(first) != " ".join(expected.split()):
            differences.append(f"{cell}: shows {words(first)}, documented is {expected}")
        if first != second:
            pairs = [pair for pair in zip(first, second) if pair[0] != pair[1]]
            differences.append(f"{cell}: {len(pairs)} outputs differ, {len(first)} and {len(second)}")
            differences += [f"  {kind}: {pair[0].get(kind)!r}\n  {' ' * len(kind)}  {pair[1].get(kind)!r}" for pair in pairs for kind in pair[0]
                            if pair[0].get(kind) != pair[1].get(kind)]
    pages = Shown(one["page"]), Shown(other["page"])
    if (pages[0].rows, pages[0].links) != (pages[1].rows, pages[1].links):
        differences.append("the pages have other tables or links")
    shown = Shown("".join(output.get("text/html", "") for outputs in one["outputs"] for output in outputs))
    if (pages[0].rows, pages[0].links) != (shown.rows, shown.links):
        differences.append("a page has not what its notebook has")
    count = sum(map(len, one["outputs"]))
    print(f"{len(one['outputs'])} cells, {count} outputs; {len(pages[0].rows)} rows of tables, {len(pages[0].links)} links to files on each page")
    return differences


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def from_pypi(folder):
    """A Python with the packages that PyPI has."""
    lacks = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if lacks:
        skip(f"this Python has no {', '.join(lacks)}: apt-get install {' '.join('python3-' + name for name in PACKAGES)}")
    for command in ([sys.executable, "-m", "venv", folder], [os.path.join(folder, "bin", "pip"), "install", "-q", "--no-cache-dir", *PACKAGES]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            skip(f"{' '.join(command[1:4])}: {done.stdout.strip()[-300:]}")
    return os.path.join(folder, "bin", "python")


def main():
    if sys.argv[1:] == ["--here"]:
        json.dump(run_here(), sys.stdout)
        return 0
    if len(sys.argv) not in (1, 3):
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        pythons = sys.argv[1:] or [sys.executable, from_pypi(folder)]
        differences = compare(*map(run_with, pythons))
    print("\n".join(differences) or "both show the same")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
