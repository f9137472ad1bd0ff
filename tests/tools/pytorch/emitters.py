"""What the Python and C++ sources of a wheel can write: record keys, artifacts, timed events, metrics, components of cache keys, members of
recorder dumps; each with the file and line that writes it.

A name that the source computes is a pattern: '*' stands for what is not written out ("aotautograd_cache_*").
"""
import ast
import os
import re

TIMED = {"dynamo_timed": 0, "chromium_event_timed": 0, "log_event_start": 0, "log_event_end": 0, "log_instant_event": 0, "instant": 0,
         "aot_autograd_timed": 0, "compile_time_record_function": None}
# Functions whose first argument (or `name`) is the name of an artifact or of a record.
ARTIFACT = {"trace_structured_artifact", "_trace_structured_artifact"}
RECORD = {"trace_structured", "dtrace_structured"}
COMPONENTS = {"FxGraphHashDetails", "AOTAutogradCacheDetails"}
METRICS = {"CompilationMetrics"}
RECORDER_CONSTANT = re.compile(r'DEFINE_CONSTANT\((\w+_key), "(\w+)"\)')
RECORDER = "FlightRecorder.hpp"


def patterns(node, values):
    """The texts that an expression may be. `values`: of names that the function around it sets."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return ["".join(part.value if isinstance(part, ast.Constant) else "*" for part in node.values)]
    if isinstance(node, ast.IfExp):
        return patterns(node.body, values) + patterns(node.orelse, values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [left + right for left in patterns(node.left, values) or ["*"] for right in patterns(node.right, values) or ["*"]]
    if isinstance(node, ast.NamedExpr):
        return patterns(node.value, values)
    if isinstance(node, ast.Name):
        return [text for value in values.get(node.id, []) for text in patterns(value, {})]
    return []


def called(call):
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""


def argument(call, position, *names):
    if position is not None and len(call.args) > position:
        return call.args[position]
    return next((keyword.value for keyword in call.keywords if keyword.arg in names), None)


def artifact_name(call):
    """The value of "name" in the dict that metadata_fn returns."""
    metadata = argument(call, 1, "metadata_fn")
    for node in ast.walk(metadata) if metadata is not None else ():
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values):
                if isinstance(key, ast.Constant) and key.value == "name":
                    return value
    return None


class Finder(ast.NodeVisitor):
    def __init__(self, path):
        self.path, self.found, self.values, self.computed = path, [], [{}], []

    def add(self, kind, name, node):
        self.found.append((kind, name, self.path, node.lineno))

    def visit_Module(self, node):
        for child in node.body:
            if isinstance(child, ast.Assign) and len(child.targets) == 1 and isinstance(child.targets[0], ast.Name):
                self.values[-1].setdefault(child.targets[0].id, []).append(child.value)
        self.generic_visit(node)

    def visit_FunctionDef(self, node):
        values = dict(self.values[-1])
        arguments = node.args.posonlyargs + node.args.args
        for one, default in zip(reversed(arguments), reversed(node.args.defaults)):
            values.setdefault(one.arg, []).append(default)
        for child in ast.walk(node):
            if isinstance(child, ast.Assign) and len(child.targets) == 1 and isinstance(child.targets[0], ast.Name):
                values.setdefault(child.targets[0].id, []).append(child.value)
        self.values.append(values)
        self.generic_visit(node)
        self.values.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        for child in ast.walk(node):
            if node.name in METRICS and isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
                self.add("metric", child.target.id, child)
            targets = child.targets if isinstance(child, ast.Assign) else [child.target] if isinstance(child, ast.AnnAssign) else []
            for target in targets:
                if node.name in COMPONENTS and isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
                    self.add("component", target.attr, child)
        self.generic_visit(node)

    def add_texts(self, kind, expression, node):
        texts = patterns(expression, self.values[-1]) if expression is not None else []
        for text in dict.fromkeys(texts):
            if text.strip("*"):
                self.add(kind, text, node)
        if not texts:
            self.computed.append((kind, self.path, node.lineno))

    def visit_Call(self, node):
        name = called(node)
        if name in RECORD:
            key = argument(node, 0, "name")
            if isinstance(key, ast.Constant) and key.value == "artifact":
                self.add_texts("artifact", artifact_name(node), node)
            else:
                self.add_texts("record", key, node)
        elif name in ARTIFACT:
            self.add_texts("artifact", argument(node, 0, "name"), node)
        elif TIMED.get(name) is not None:
            self.add_texts("phase", argument(node, TIMED[name], "key", "event_name"), node)
            phase = argument(node, 1, "phase_name") if name == "dynamo_timed" else None
            if phase is not None:
                self.add_texts("phase", phase, node)
        self.generic_visit(node)


def python_files(folder):
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if one not in ("testing", "test", "tests", "__pycache__"))
        for name in sorted(names):
            if name.endswith(".py") or name == RECORDER:
                yield os.path.join(place, name)


def find(folder):
    """([(kind, name or pattern, path, line)], [(kind, path, line) of names that cannot be told from the source])."""
    found, computed = [], []
    for path in python_files(folder):
        relative = os.path.relpath(path, folder)
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        if path.endswith(RECORDER):
            found += [("recorder", name, relative, text.count("\n", 0, match.start()) + 1)
                      for match in RECORDER_CONSTANT.finditer(text) for name in [match[2]]]
            continue
        if not any(word in text for word in ("trace_structured", "_timed", "log_event", "log_instant_event", "CompileEventLogger", *COMPONENTS, *METRICS)):
            continue
        try:
            finder = Finder(relative)
            finder.visit(ast.parse(text))
        except SyntaxError:  # a template
            continue
        found += finder.found
        computed += finder.computed
    return found, computed
