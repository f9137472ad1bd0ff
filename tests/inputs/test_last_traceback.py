"""Standard error of one program, written by Python itself: the traceback that it ends with is what ended the program; another says nothing of it."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "analysis"))
from answers import AnswerTest, ask  # noqa: E402

RAISES = "def read_table(name):\n    return {}[name]\n\n\n"
# As torch.multiprocessing.spawn of 2.15 passes on what a process raised.
SPAWN = """Traceback (most recent call last):
  File "/rec/spawn_fails.py", line 8, in <module>
    mp.spawn(work, nprocs=2)
  File "/usr/lib/python3/dist-packages/torch/multiprocessing/spawn.py", line 220, in join
    raise ProcessRaisedException(msg, error_index, failed_process.pid)
torch.multiprocessing.spawn.ProcessRaisedException: 

-- Process 1 terminated with the following error:
Traceback (most recent call last):
  File "/usr/lib/python3/dist-packages/torch/multiprocessing/spawn.py", line 89, in _wrap
    fn(i, *args)
  File "/rec/spawn_fails.py", line 5, in work
    raise KeyError("table")
KeyError: 'table'

"""

# The rest of the message of an error of CUDA.
MORE = """CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""


class LastTraceback(AnswerTest):
    def printed(self, *lines):
        path = self.save("train.py", RAISES, *(line + "\n" for line in lines))
        return subprocess.run([sys.executable, path], stderr=subprocess.PIPE, check=False, text=True).stderr

    def findings(self, text, job="job"):
        self.assertIn("Traceback (most recent call last):\n", text)
        # Beside a log, as in a folder of a job: a folder of nothing that is known is no input.
        self.save(job + "/stderr.txt", "step 1: loss 0.5\n", text)
        self.save(job + "/known.txt", "[rank0]: Traceback (most recent call last):\n")
        return ask("findings", self.ingest(os.path.join(self.scratch, job), name=job))["findings"]

    def test_the_exception_that_ended_the_program(self):
        text = self.printed("read_table('users')")
        for before in ("", "x" * (1 << 17) + "\n"):  # what a file is, is read from both of its ends
            with self.subTest(bytes=len(before)):
                first = self.findings(before + text)[0]
                self.assertEqual(("crashed", "error", "The program raised KeyError: 'users'", []), (first["kind"], first["severity"], first["title"], first["ranks"]))
                self.assertEqual((os.path.join(self.scratch, "train.py"), 2), (first["place"]["file"], first["place"]["line"]))

    def test_a_chain(self):
        text = self.printed("try:", "    read_table('users')", "except KeyError as error:", "    raise ValueError('no users') from error")
        self.assertEqual("The program raised ValueError: no users, from KeyError: 'users'", self.findings(text)[0]["title"])

    def test_what_a_spawned_process_raised(self):
        first = self.findings(SPAWN)[0]
        self.assertIn("KeyError: 'table'", first["title"])
        self.assertEqual(("/rec/spawn_fails.py", 5), (first["place"]["file"], first["place"]["line"]))

    def test_whoever_asked_it_to_end_ended_it(self):
        for error in ("KeyboardInterrupt()", "type('SignalException', (Exception,), {})('Process 8786 got signal: 15')"):
            with self.subTest(error):
                self.assertEqual([], [one["title"] for one in self.findings(self.printed(f"raise {error}")) if "raised" in one["title"]])

    def test_what_c_plus_plus_prints_before_it(self):
        raised = self.printed("raise RuntimeError('CUDA error: device-side assert triggered')")
        for line in ("ERROR: Unexpected segmentation fault encountered in worker.\n\0", "../aten/src/ATen/native/cuda/ScatterGatherKernel.cu:365: operator(): block: [6250,0,0], thread: [126,0,0] Assertion `idx_dim >= 0 && idx_dim < index_size` failed.",
                     "[E616 02:08:15.931621754 TCPStore.cpp:318] [c10d] TCP client failed to connect/validate to host 10.0.0.9:50437"):
            with self.subTest(line):
                self.assertEqual("The program raised RuntimeError: CUDA error: device-side assert triggered", self.findings(line + ("" if line.endswith("\0") else "\n") + raised + MORE)[0]["title"])

    def test_an_assertion_of_a_kernel(self):
        line = "../aten/src/ATen/native/cuda/ScatterGatherKernel.cu:365: operator(): block: [{},0,0], thread: [126,0,0] Assertion `idx_dim >= 0 && idx_dim < index_size` failed."
        raised = self.printed("raise RuntimeError('CUDA error: device-side assert triggered')")
        first = self.findings("".join(line.format(block) + "\n" for block in range(9)) + raised + MORE)[0]
        self.assertIn("A kernel printed before: ScatterGatherKernel.cu:365: Assertion `idx_dim >= 0 && idx_dim < index_size` failed.", first["detail"])
        self.assertTrue(first["try"].startswith("CUDA_LAUNCH_BLOCKING=1"), first["try"])

    def test_a_thread_and_a_process_that_python_names(self):
        """They may end unseen, while the program waits for them."""
        thread = ("import threading", "threading.Thread(target=read_table, args=('users',), name='fill').start()")
        child = ("import multiprocessing", "multiprocessing.set_start_method('fork')", "one = multiprocessing.Process(target=read_table, args=('users',))", "one.start()", "one.join()")
        for name, lines, raised, end, severity in (
                ("thread", thread, "Thread fill raised KeyError: 'users'", "", "note"),
                ("child", child, "A child process raised KeyError: 'users'", "", "note"),
                ("asked", thread, "Thread fill raised KeyError: 'users'", "import time; time.sleep(0.5); raise KeyboardInterrupt", "warning"),
                ("waits", child, "A child process raised KeyError: 'users'", "raise EOFError", "error"),
                ("other", thread, "The program raised ValueError: 3", "import time; time.sleep(0.5); raise ValueError(3)", "error")):
            with self.subTest(name):
                first = self.findings(self.printed(*lines, end), name)[0]
                self.assertEqual((severity, raised), (first["severity"], first["title"]))
                self.assertEqual(first["place"]["line"], 7 if name == "other" else 2)

    def test_a_message_of_several_lines_and_what_a_launcher_says(self):
        """Of PyTorch 2.15.0, when the fake of a custom operation gives another shape. The same lines behind a function that was called are of its caller."""
        text = ("Traceback (most recent call last):\n  File \"/u/a.py\", line 25, in {0}\n    main()\n"
                "  File \"/v/lib/python3.11/site-packages/torch/_dynamo/eval_frame.py\", line 1050, in compile_wrapper\n    return fn(*args, **kwargs)\n"
                "AssertionError: expected size 4==4, stride 5==6 at dim=0\nError in op: torch.ops.pool.pairs.default\nUse torch.library.opcheck to test your custom op.\n")
        for name, module, behind, who in (("plain", "<module>", "", "The program"), ("launcher", "<module>", "\nsrun: error: node7: task 0: Exited with exit code 1\n", "A process"),
                                          ("caught", "main", "", None), ("went_on", "<module>", "step\n" * 30, None), ("logged", "<module>", "[12:00:01] step 3\n", None)):
            with self.subTest(name):
                titles = [one["title"] for one in self.findings(text.format(module) + behind, name)]
                self.assertEqual([f"{who} raised AssertionError: expected size 4==4, stride 5==6 at dim=0"] if who else [], [one for one in titles if "raised" in one])

    def test_a_chain_whose_first_message_has_several_lines(self):
        """As torch.export of 2.15.0 raises what it has caught inside."""
        message = "{0}Error: Constraints violated (batch)!\n  - You marked batch as dynamic\nSuggested fixes:\n  batch = 8\n\n"
        text = ("Traceback (most recent call last):\n  File \"/v/lib/python3.11/site-packages/torch/export/_trace.py\", line 2231, in _to_aten\n    f()\n" + message.format("Violation")
                + "During handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"/u/a.py\", line 21, in <module>\n    main()\n"
                "  File \"/v/lib/python3.11/site-packages/torch/export/_trace.py\", line 2233, in _to_aten\n    raise\n" + message.format("torch._dynamo.exc.User") + "The error above occurred when calling torch.export.export.\n")
        self.assertEqual("The program raised UserError: Constraints violated (batch)!", self.findings(text, "chain")[0]["title"])
        logged = self.findings("[12:00:01] ERROR: no export\n" + text, "logged")
        self.assertEqual([], [one["title"] for one in logged if "raised" in one["title"]])

    def test_what_ended_no_program(self):
        caught = ("try:", "    read_table('users')", "except KeyError:")
        for name, lines in {
            "a finalizer": ("class Held:", "    def __del__(self):", "        read_table('users')", "held = Held()"),
            "at exit": ("import atexit", "atexit.register(read_table, 'users')"),
            "a log": ("import logging", *caught, "    logging.exception('no users, going on')"),
            "printed, and more behind it": ("import sys, traceback", *caught, "    traceback.print_exc()", "print('step 2', file=sys.stderr)"),
        }.items():
            with self.subTest(name):
                self.assertEqual([], [one["title"] for one in self.findings(self.printed(*lines)) if "raised" in one["title"]])


if __name__ == "__main__":
    unittest.main()
