# The first part of the hook; sitecustomize.py is the rest.


class Changes:
    """Makes changes before each compile of Dynamo, so that what the program itself has set until then does not undo them. A line of the
    file CHANGED says that a process has made a change: its pid, and the change's place in the list."""

    def __init__(self):
        import json
        self.changes, self.said = json.loads(CHANGES), set()

    def before_compile(self, frame):
        for index, change in enumerate(self.changes):
            attempt(self.make, "%d %d\n" % (os.getpid(), index), change, frame)

    def make(self, line, change, frame):
        getattr(self, change["kind"])(change["name"], change["value"], change, frame)
        if line not in self.said:
            self.said.add(line)
            with open(CHANGED, "a", encoding="ascii") as file:
                file.write(line)

    def variable(self, name, value, change, _):
        os.environ.pop(name, None)
        if change["kind"] == "variable":
            os.environ[name] = value
    no_variable = variable

    def option(self, name, text, *_):
        """torch._inductor.config.triton.cudagraphs = True; the text is JSON, a literal of Python, or a plain word."""
        import ast
        import functools
        import importlib
        module, path = name.split(".config.", 1)
        *parts, name = path.split(".")
        owner = functools.reduce(getattr, parts, importlib.import_module(module + ".config"))
        current = getattr(owner, name)  # no such option in this version: nothing is changed
        try:
            value = ast.literal_eval({"true": "True", "false": "False", "null": "None"}.get(text, text))
        except (ValueError, SyntaxError):
            if not isinstance(current, str):
                raise
            value = text
        setattr(owner, name, bool(value) if isinstance(current, bool) else value)

    def mark_dynamic(self, name, value, change, frame):
        """A local of the frame that is compiled: "x", "self.bias", "xs[0]". In other frames an error: nothing is changed."""
        import re
        import torch
        if (frame.f_code.co_name, os.path.basename(frame.f_code.co_filename)) != (change["function"], os.path.basename(change["file"])):
            raise KeyError(name)
        first, *rest = re.findall(r"\w+|\[\d+\]", name)
        tensor = frame.f_locals[first]
        for part in rest:
            tensor = tensor[int(part[1:-1])] if part[0] == "[" else getattr(tensor, part)
        torch._dynamo.mark_dynamic(tensor, int(value))

    def after_convert_frame(self, module):
        original = module.ConvertFrameAssert.__call__
        def call(convert, frame, *arguments, **options):
            attempt(self.before_compile, frame)
            if "skip" in options:
                options["skip"] += 1  # this function is no frame of the program's
            return original(convert, frame, *arguments, **options)
        module.ConvertFrameAssert.__call__ = call


