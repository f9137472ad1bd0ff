# The second part of the hook: exceptions that nothing catches, of the program, of its threads and tasks, of processes of multiprocessing;
# and where a program leaves with an exit code, which may be the end of an exception that it caught.


def write_raise(kind, error, trace, name=None, identity="thread", raised_us=None):
    """`name`: of the thread or task that it ended."""
    import json
    import traceback

    raised_us = raised_us or time.time_ns() // 1000
    text = "".join(traceback.format_exception(kind, error, trace))[:50000]
    if name is not None:
        text = " ".join(name.split()) + "\n" + text
    write_identity("raised" if name is None else identity, str(raised_us), json.dumps(text))


def listen_for_raises():
    """The hooks that PyTorch and others put in front of it call it, or the one of Python; of those that do neither, Python knows the
    exception when the program ends."""
    import atexit
    said = set()

    def say(kind, error, trace):
        if id(error) not in said:
            write_raise(kind, error, trace)
            said.add(id(error))
            attempt(lambda: write_last_dump(listen_for_dumps.pid, listen_for_dumps.rank))  # its launcher may end it before its end

    def say_last():
        error = getattr(sys, "last_value", None)
        if isinstance(error, Exception):
            say(type(error), error, error.__traceback__)

    def hook_before(show):
        def excepthook(kind, error, trace):
            try:
                say(kind, error, trace)
            except BaseException:  # of a signal that came meanwhile: DataLoader raises in its handler that a worker was killed
                attempt(say, kind, error, trace)
            show(kind, error, trace)
            if kind is KeyboardInterrupt:  # Python then ends itself by SIGINT, unless code that was imported here has reset that
                attempt(exec, "raise KeyboardInterrupt")
        return excepthook

    is_plain = sys.excepthook is sys.__excepthook__
    sys.excepthook = hook_before(sys.excepthook)
    sys.__excepthook__ = sys.excepthook if is_plain else hook_before(sys.__excepthook__)
    atexit.register(attempt, say_last)


def write_leave(function, frame, code):
    """The code, and where the main thread was, innermost first; then what it was handling, as torch.multiprocessing.spawn does.
    `function`: that it called; None: it raised SystemExit itself."""
    import json
    import threading
    import traceback

    passes_on = str(frame.f_globals.get("__name__")).startswith("multiprocessing.")  # the code with which its program left
    if code in (None, 0) or passes_on or (function != "_exit" and threading.current_thread() is not threading.main_thread()):
        return
    kind, error, trace = sys.exc_info()
    raised = traceback.format_exception(kind, error, trace) if error is not None else []
    if error is None and isinstance(code, str):
        raised = ["Traceback (most recent call last):\n", *traceback.format_stack(frame), "SystemExit: " + code]
    text = ["%d" % code if isinstance(code, int) else "1"]
    if function:
        text.append("  File \"<sys>\", line 0 in " + function)
    while frame is not None:
        text.append('  File "%s", line %d in %s' % (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    if raised:
        text.append("\n" + "".join(raised))
    write_identity("left", str(time.time_ns() // 1000), json.dumps("\n".join(text)[:50000]))


def listen_for_leaves():
    import functools

    def watched(original):
        @functools.wraps(original)
        def leave(*arguments, **options):
            attempt(write_leave, original.__name__, sys._getframe(1), *arguments, *options.values())
            original(*arguments, **options)
        return leave

    sys.exit, os._exit = watched(sys.exit), watched(os._exit)


def listen_for_raised_exits():
    """`raise SystemExit`, which no function of Python sees: from Python 3.12 on."""
    monitoring, tool = sys.monitoring, 4

    def after_raise(code, offset, error):
        # It comes again in each caller; that of sys.exit is known.
        if isinstance(error, SystemExit) and error.__traceback__.tb_next is None and code.co_filename != __file__:
            attempt(write_leave, None, sys._getframe(1), error.code)

    monitoring.use_tool_id(tool, "tlparse")
    monitoring.register_callback(tool, monitoring.events.RAISE, after_raise)
    monitoring.set_events(tool, monitoring.events.RAISE)


def after_threading(module):
    show = module.excepthook

    def excepthook(arguments):
        if arguments.exc_type is not SystemExit:
            attempt(lambda: write_raise(*arguments[:3], arguments.thread.name if arguments.thread else ""))
        show(arguments)

    module.excepthook = excepthook


class Tasks:
    """What ends a task of asyncio is raised where the task is awaited. If nobody has looked at it a second later, maybe nobody will."""

    def __init__(self):
        self.said = set()  # id of exceptions

    def after_asyncio(self, module):
        import functools
        create, report = module.BaseEventLoop.create_task, module.BaseEventLoop.call_exception_handler

        @functools.wraps(create)
        def create_task(*arguments, **options):
            task = create(*arguments, **options)
            attempt(lambda: task.add_done_callback(lambda task: attempt(self.after_end, task)))
            return task

        @functools.wraps(report)
        def call_exception_handler(loop, context):
            attempt(lambda: self.say(context["future"], context["exception"]))  # "... exception was never retrieved"
            return report(loop, context)

        module.BaseEventLoop.create_task, module.BaseEventLoop.call_exception_handler = create_task, call_exception_handler

    def after_end(self, task):
        import weakref
        if not task.cancelled() and isinstance(task._exception, Exception):
            task.get_loop().call_later(1, attempt, self.look, weakref.ref(task), time.time_ns() // 1000)

    def look(self, reference, ended_us):
        task = reference()
        if task is not None and task._log_traceback:  # as Python knows that nobody has
            self.say(task, task._exception, ended_us)

    def say(self, task, error, ended_us=None):
        if id(error) in self.said or len(self.said) == 20:
            return
        self.said.add(id(error))
        name = task.get_name() if hasattr(task, "get_name") else ""
        if name.startswith("Task-"):  # it was given none
            name = task.get_coro().__qualname__
        write_raise(type(error), error, error.__traceback__, name, "task", ended_us)


def write_numbers(process):
    """Those among the arguments of a process, and its function: one may be its rank, as others of the function have told theirs."""
    values = [*process._args, *(value for _, value in sorted(process._kwargs.items()))][:16]
    write_identity("numbers", ",".join(str(value) if type(value) is int else "" for value in values),
                   " ".join(str(getattr(process._target, "__qualname__", type(process).__qualname__)).split()))


def after_multiprocessing(module):
    """Its processes print what their program raises, and end."""
    import functools
    original = module.BaseProcess._bootstrap

    @functools.wraps(original)
    def bootstrap(*arguments, **options):
        import traceback
        show = traceback.print_exc
        attempt(write_numbers, arguments[0])

        @functools.wraps(show)
        def print_exc(*arguments, **options):
            if sys._getframe(1).f_code is original.__code__:
                attempt(write_raise, *sys.exc_info())
            show(*arguments, **options)

        traceback.print_exc = print_exc
        return original(*arguments, **options)

    module.BaseProcess._bootstrap = bootstrap
