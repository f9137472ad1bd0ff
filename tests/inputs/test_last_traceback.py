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

    def findings(self, text):
        self.assertIn("Traceback (most recent call last):\n", text)
        # Beside a log, as in a folder of a job: a folder of nothing that is known is no input.
        self.save("job/stderr.txt", "step 1: loss 0.5\n", text)
        self.save("job/known.txt", "[rank0]: Traceback (most recent call last):\n")
        return ask("findings", self.ingest(os.path.join(self.scratch, "job")))["findings"]

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
        for line in ("../aten/src/ATen/native/cuda/ScatterGatherKernel.cu:365: operator(): block: [6250,0,0], thread: [126,0,0] Assertion `idx_dim >= 0 && idx_dim < index_size` failed.",
                     "[E616 02:08:15.931621754 TCPStore.cpp:318] [c10d] TCP client failed to connect/validate to host 10.0.0.9:50437"):
            with self.subTest(line):
                self.assertEqual("The program raised RuntimeError: CUDA error: device-side assert triggered", self.findings(f"{line}\n{raised}{MORE}")[0]["title"])

    def test_an_assertion_of_a_kernel(self):
        line = "../aten/src/ATen/native/cuda/ScatterGatherKernel.cu:365: operator(): block: [{},0,0], thread: [126,0,0] Assertion `idx_dim >= 0 && idx_dim < index_size` failed."
        raised = self.printed("raise RuntimeError('CUDA error: device-side assert triggered')")
        first = self.findings("".join(line.format(block) + "\n" for block in range(9)) + raised + MORE)[0]
        self.assertIn("A kernel printed before: ScatterGatherKernel.cu:365: Assertion `idx_dim >= 0 && idx_dim < index_size` failed.", first["detail"])
        self.assertTrue(first["try"].startswith("CUDA_LAUNCH_BLOCKING=1"), first["try"])

    def test_what_ended_no_program(self):
        caught = ("try:", "    read_table('users')", "except KeyError:")
        for name, lines in {
            "a thread": ("import threading", "threading.Thread(target=read_table, args=('users',)).start()"),
            "a finalizer": ("class Held:", "    def __del__(self):", "        read_table('users')", "held = Held()"),
            "at exit": ("import atexit", "atexit.register(read_table, 'users')"),
            "a log": ("import logging", *caught, "    logging.exception('no users, going on')"),
            "printed, and more behind it": ("import sys, traceback", *caught, "    traceback.print_exc()", "print('step 2', file=sys.stderr)"),
        }.items():
            with self.subTest(name):
                self.assertEqual([], [one["title"] for one in self.findings(self.printed(*lines)) if "raised" in one["title"]])


if __name__ == "__main__":
    unittest.main()
