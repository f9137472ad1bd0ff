# The second part of the hook: exceptions that nothing catches, of the program, of its threads, of processes of multiprocessing.


def write_raise(kind, error, trace, thread=None):
    import json
    import traceback

    now_us = time.time_ns() // 1000
    text = "".join(traceback.format_exception(kind, error, trace))[:50000]
    if thread is not None:
        text = " ".join(thread.split()) + "\n" + text
    write_identity("raised" if thread is None else "thread", str(now_us), json.dumps(text))


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
