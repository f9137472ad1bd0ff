# The first part of the hook; hook_raises.py, hook_groups.py and sitecustomize.py are the rest.


class Changes:
    """Makes changes before each compile of Dynamo, so that what the program itself has set until then does not undo them. A line of the
    file CHANGED says that a process has made a change: its pid, and the change's place in the list."""

    def __init__(self):
        import json
        self.changes, self.said = json.loads(CHANGES), set()
        self.optimizer, self.steps = None, 0

    def before_compile(self, frame):
        for index, change in enumerate(self.changes):
            if change["kind"] not in ("backend", "steps"):  # each has a place of its own
                attempt(self.make, index, change, frame)

    def make(self, index, change, frame):
        getattr(self, change["kind"])(change["name"], change["value"], change, frame)
        self.say(index)

    def say(self, index):
        line = "%d %d\n" % (os.getpid(), index)
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
        """torch._inductor.config.triton.cudagraphs = True."""
        import functools
        import importlib
        module, path = name.split(".config.", 1)
        *parts, name = path.split(".")
        owner = functools.reduce(getattr, parts, importlib.import_module(module + ".config"))
        setattr(owner, name, self.read(text, getattr(owner, name)))  # no such option in this version: nothing is changed

    @staticmethod
    def read(text, current):
        """JSON, a literal of Python, or, where the option is a text, a plain word."""
        import ast
        try:
            value = ast.literal_eval({"true": "True", "false": "False", "null": "None"}.get(text, text))
        except (ValueError, SyntaxError):
            if not isinstance(current, str):
                raise
            value = text
        return bool(value) if isinstance(current, bool) else value

    def read_patch(self, patches, change):
        name = change["name"].partition("torch._inductor.config.")[2]
        if change["kind"] == "option" and name in patches:
            patches[name] = self.read(change["value"], patches[name])

    def mark_dynamic(self, name, value, change, frame):
        """A local of the frame that is compiled: "x", "self.bias", "xs[0]". In other frames an error: nothing is changed."""
        import re
        import torch
        if not self.is_of(change, frame):
            raise KeyError(name)
        first, *rest = re.findall(r"\w+|\[\d+\]", name)
        tensor = frame.f_locals[first]
        for part in rest:
            tensor = tensor[int(part[1:-1])] if part[0] == "[" else getattr(tensor, part)
        torch._dynamo.mark_dynamic(tensor, int(value))

    @staticmethod
    def is_of(change, frame):
        code = frame.f_code
        return (code.co_name, os.path.basename(code.co_filename)) == (change["function"], os.path.basename(change["file"]))

    def fullgraph(self, name, value, change, frame):
        """What torch.compile(fullgraph=True) sets, for this frame alone; the error reaches the program: `after_convert_frame`."""
        if not self.is_of(change, frame):
            raise KeyError(change["function"])
        self.convert._one_graph = True

    def is_whole(self, frame):
        return any(one["kind"] == "fullgraph" and self.is_of(one, frame) for one in self.changes)

    def after_convert_frame(self, module):
        original, may_break = module.ConvertFrameAssert.__call__, module.ConvertFrame.__call__

        def call(convert, frame, *arguments, **options):
            one_graph = getattr(convert, "_one_graph", None)
            self.convert = convert
            attempt(self.before_compile, frame)
            if "skip" in options:
                options["skip"] += 1  # this function is no frame of the program's
            try:
                return original(convert, frame, *arguments, **options)
            finally:
                convert._one_graph = one_graph  # other frames are compiled by the same object

        def call_or_raise(convert, frame, *arguments, **options):
            """ConvertFrame runs a frame eagerly whose graph cannot be made; its inner part raises, as it does with fullgraph=True."""
            is_whole = hasattr(convert, "_inner_convert") and self.is_whole(frame)
            return convert._inner_convert(frame, *arguments, **options) if is_whole else may_break(convert, frame, *arguments, **options)

        module.ConvertFrameAssert.__call__, module.ConvertFrame.__call__ = call, call_or_raise

    def after_compile_fx(self, module):
        """A graph that is compiled without Dynamo: fx_graph_runnable. And what torch.compile is given as options or mode, which compile_fx
        sets after Dynamo."""
        original, compile_fx = module.compile_fx_inner, module.compile_fx

        def compile_with(*arguments, **options):
            if options.get("config_patches"):
                options["config_patches"] = patches = dict(options["config_patches"])
                for one in self.changes:
                    attempt(self.read_patch, patches, one)
            return compile_fx(*arguments, **options)

        def compile_fx_inner(*arguments, **options):
            attempt(self.before_compile, None)
            return original(*arguments, **options)
        module.compile_fx_inner, module.compile_fx = compile_fx_inner, compile_with

    def after_dynamo(self, module):
        """torch.compile names its backend to torch._dynamo.optimize."""
        original = module.optimize

        def optimize(*arguments, **options):
            for index, one in enumerate(self.changes):
                if one["kind"] == "backend":
                    arguments, options["backend"] = arguments[1:], one["value"]
                    attempt(self.say, index)
            return original(*arguments, **options)
        module.optimize = optimize

    def after_step(self, optimizer, *_):
        """Ends the program after so many steps of the first optimizer that steps."""
        import threading
        self.optimizer = self.optimizer or id(optimizer)
        if id(optimizer) != self.optimizer or threading.current_thread() is not threading.main_thread():
            return
        self.steps += 1
        for index, one in enumerate(self.changes):
            if one["kind"] == "steps" and self.steps >= int(one["value"]):
                attempt(self.say, index)
                raise SystemExit(0)


