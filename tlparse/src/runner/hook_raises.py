# The second part of the hook: exceptions that nothing catches, of the program, of its threads and tasks, of processes of multiprocessing.


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
    """The hooks that PyTorch and others put in front of it call it too."""
    show = sys.excepthook

    def excepthook(kind, error, trace):
        attempt(write_raise, kind, error, trace)
        show(kind, error, trace)

    sys.excepthook = excepthook


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


def after_multiprocessing(module):
    """Its processes print what their program raises, and end."""
    import functools
    original = module.BaseProcess._bootstrap

    @functools.wraps(original)
    def bootstrap(*arguments, **options):
        import traceback
        show = traceback.print_exc

        @functools.wraps(show)
        def print_exc(*arguments, **options):
            if sys._getframe(1).f_code is original.__code__:
                attempt(write_raise, *sys.exc_info())
            show(*arguments, **options)

        traceback.print_exc = print_exc
        return original(*arguments, **options)

    module.BaseProcess._bootstrap = bootstrap
