"""What the compiled graphs of a process gave, for `tlparse run --numbers`: a record of the log for each call that is looked at, with a hash, the
norm, and the counts of NaN and infinity of every output. Loaded by our sitecustomize.py; its shape is that of libtrace's RunDigest
(schemas/json/libtrace/libtrace_run_digest.schema.json)."""

import base64
import hashlib
import math


def type_of(tensor):
    return "%s[%s]" % (str(tensor.dtype).removeprefix("torch."), ", ".join(map(str, tensor.shape)))


def digest(content):
    return base64.b32encode(hashlib.sha256(content).digest()).decode().lower()[:51]


def part_of_tensor(kind, position, tensor):
    """Reads the tensor once on its device for the counts and once as bytes: it waits for the device."""
    import torch

    part = {"kind": kind, "name": str(position), "text": type_of(tensor)}
    if tensor.is_floating_point() or tensor.is_complex():
        counts = {"nan": int(torch.isnan(tensor).sum()), "inf": int(torch.isinf(tensor).sum())}
        part.update({name: count for name, count in counts.items() if count})
        norm = float(torch.linalg.vector_norm(tensor, dtype=None if tensor.is_complex() else torch.float32)) if tensor.numel() else 0.0
        if math.isfinite(norm):
            part["norm"] = norm
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    part["hash"] = digest(memoryview(flat.view(torch.uint8).numpy()) if flat.numel() else b"")
    return part


def parts_of_outputs(outputs):
    import torch

    for position, value in enumerate(outputs):
        if isinstance(value, torch.Tensor):
            yield part_of_tensor("output", position, value)
        elif value is not None:
            yield {"kind": "output", "name": str(position), "text": "%s %r" % (type(value).__name__, value), "hash": digest(repr(value).encode())}


def parts_of_bad_inputs(inputs):
    """The inputs that hold NaN or infinity already: what comes of them does not arise in this graph."""
    import torch

    return [part_of_tensor("input", position, value) for position, value in enumerate(inputs)
            if isinstance(value, torch.Tensor) and value.is_floating_point() and not bool(torch.isfinite(value).all())]


def is_capturing():
    import torch

    return torch.cuda.is_available() and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


class Graph:
    """One compiled graph, called as before."""

    def __init__(self, callable_, name, context, every):
        self.callable, self.name, self.context, self.every, self.calls = callable_, name, context, every, 0
        self._boxed_call = True  # it takes its inputs as a list, which it may empty

    def __call__(self, inputs):
        call, self.calls = self.calls, self.calls + 1
        if call % self.every:
            return self.callable(inputs)
        parts = self.look(lambda: parts_of_bad_inputs(inputs))
        outputs = self.callable(inputs)
        parts += self.look(lambda: list(parts_of_outputs(outputs)))
        if parts:
            self.look(lambda: self.emit(call, parts))
        return outputs

    def look(self, step):
        """Whatever fails is left out: the program must not notice."""
        import torch

        try:
            if is_capturing():
                return []
            with torch.no_grad():
                return step() or []
        except Exception:
            return []

    def emit(self, call, parts):
        from torch._guards import compile_context
        from torch._logging import trace_structured

        with compile_context(self.context):  # not that of another compile which this call may be a part of
            trace_structured("artifact", metadata_fn=lambda: {"name": "libtrace_run_digest", "encoding": "json"},
                             payload_fn=lambda: {"graph": self.name, "call": call, "parts": parts}, expect_trace_id=False)


class Numbers:
    def __init__(self, every):
        self.every, self.graphs = int(every), {}

    def name_of(self, compile_id, options):
        direction = "backward" if options.get("is_backward") else "inference" if options.get("is_inference") else "forward"
        count = self.graphs[compile_id, direction] = self.graphs.get((compile_id, direction), 0) + 1
        return direction if count == 1 else "%s %d" % (direction, count)

    def after_output_code(self, module):
        original = module.CompiledFxGraph.post_compile

        def post_compile(graph, *arguments, **options):
            result = original(graph, *arguments, **options)
            try:
                self.take(graph)
            except Exception:
                pass
            return result
        module.CompiledFxGraph.post_compile = post_compile

    def take(self, graph):
        from torch._guards import CompileContext

        if not isinstance(graph.current_callable, Graph):
            current = CompileContext.try_get()
            context = CompileContext(current and current.compile_id)
            context.attempt = current.attempt if current else 0
            graph.current_callable = Graph(graph.current_callable, self.name_of(context.compile_id, graph.fx_kwargs), context, self.every)
