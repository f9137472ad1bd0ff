"""Text of several processes as torchrun, mpirun, srun, Ray, the journal, Docker, Kubernetes and build servers collect it: who raised what."""

import contextlib
import os
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "analysis"))
from answers import AnswerTest, ask  # noqa: E402
from test_printed_failures import REPORT  # noqa: E402

LIBRARY = "/opt/venv/lib/python3.11/site-packages/torch"
KEY_ERROR = f"""Traceback (most recent call last):
  File "/srv/train.py", line 55, in <module>
    main()
  File "{LIBRARY}/_dynamo/eval_frame.py", line 655, in _fn
    return fn(*args, **kwargs)
  File "/srv/model.py", line 12, in step
    return table[name]
KeyError: 'stage2'
"""
GONE = f"""Traceback (most recent call last):
  File "/srv/train.py", line 40, in main
    dist.all_reduce(t)
  File "{LIBRARY}/distributed/distributed_c10d.py", line 2501, in all_reduce
    work = group.allreduce([tensor], opts)
RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:36038
"""
BAR = "100%|██████| 2/2 [00:38<00:00, 19.26s/it]"


def marked(mark, text):
    return "".join(mark + line + "\n" for line in text.splitlines())


def by_turns(*texts):
    lines = [text.splitlines(keepends=True) for text in texts]
    return "".join(part[i] for i in range(max(map(len, lines))) for part in lines if i < len(part))


class CollectedText(AnswerTest):
    def first(self, *texts):
        self.save("job/stderr.txt", *texts)
        self.database = self.ingest(os.path.join(self.scratch, "job"))
        return ask("findings", self.database)["findings"][0]

    def test_two_processes_write_by_turns(self):
        """The one whose exception is no consequence raised, whatever stands in front of its lines."""
        for marks, who, ranks in (
            (("[default0]:", "[default1]:"), "Local rank 1", []),
            (("[default0]:[rank4]: ", "[default1]:[rank5]: "), "Rank 5", [5]),
            ((" 3: ", "12: "), "Task 12 of srun", []),
            (("[1,0]<stderr>:", "[1,1]<stderr>:"), "Process 1 of mpirun", []),
            (("(train_loop pid=501, ip=10.0.0.4) ", "(train_loop pid=502, ip=10.0.0.5) "), "train_loop (pid 502)", []),
            (("\x1b[36m(TrainWorker pid=501)\x1b[0m ", "\x1b[36m(TrainWorker pid=502)\x1b[0m "), "TrainWorker (pid 502)", []),
            (("trainer-1  | ", "trainer-2  | "), "trainer-2", []),
            (("[pod/job-0/main] ", "[pod/job-1/main] "), "job-1", []),
            (("(pid=501) ", "(pid=502) "), "Process (pid 502)", []),
            (("ddp-worker-0: ", "ddp-worker-1: "), "ddp-worker-1", []),
            (("[0]<stderr>:", "[1]<stderr>:"), "[1]<stderr>", []),
            (("Dec 01 18:34:27 n1 python3[8727]: ", "Dec  1 18:34:27 n1 python3[8728]: "), "python3 (pid 8728)", []),
        ):
            with self.subTest(marks=marks):
                first = self.first(marked(marks[0], "step 1: loss 0.5") + by_turns(marked(marks[0], GONE), marked(marks[1], KEY_ERROR)))
                self.assertEqual((first["title"], first["ranks"], first["place"]["file"], first["place"]["line"]),
                                 (who + " raised KeyError: 'stage2'", ranks, "/srv/model.py", 12))

    def test_the_report_of_torchrun_names_the_rank(self):
        text = by_turns(marked("[default0]:", GONE), marked("[default1]:", KEY_ERROR)) + REPORT.format(rank=1, code=1)
        first = self.first(text.replace("rank      : 1 (", "rank      : 9 ("))
        self.assertEqual((first["title"], first["ranks"]), ("Rank 9 raised KeyError: 'stage2'", [9]))

    def test_what_stands_in_front_of_one_process(self):
        for mark in ("2025-12-15T20:35:11.123456789Z stderr F ", "2025-12-15T20:35:11.1234567Z ", "[2025-12-15T20:35:11Z] "):
            with self.subTest(mark=mark):
                self.assertEqual(self.first(marked(mark, "step 1\n" + KEY_ERROR))["title"], "The program raised KeyError: 'stage2'")
        for bar in (BAR, "\r 50%|███   | 1/2\r" + BAR + "\r"):
            self.assertEqual(self.first(bar + KEY_ERROR)["title"], "The program raised KeyError: 'stage2'")

    def test_an_exception_that_ended_no_process(self):
        """Its process went on to print."""
        text = marked("[default0]:", "Exception in thread Thread-3:\n" + KEY_ERROR + "step 2: loss 0.1") + marked("[default1]:", KEY_ERROR)
        self.assertEqual(self.first(text)["title"], "Local rank 1 raised KeyError: 'stage2'")

    def test_tracebacks_behind_which_a_launcher_says_that_a_process_ended(self):
        """Of processes that wrote by turns; one behind another that was caught says nothing."""
        deepspeed = ("[2023-04-14 13:11:27,879] [INFO] [launch.py:428:sigkill_handler] Killing subprocess 13266\n"
                     "[2023-04-14 13:11:27,885] [ERROR] [launch.py:434:sigkill_handler] ['/usr/bin/python3', 'main.py', '--local_rank=1'] exits with return code = {}\n")
        elastic = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 4 (pid: 899509) of binary: /opt/bin/python\n"
        for text, title in ((GONE + KEY_ERROR + GONE + deepspeed.format(1), "A process raised KeyError: 'stage2'"),
                            (KEY_ERROR + elastic, "A process raised KeyError: 'stage2'"),
                            ("step 1\n" + deepspeed.format(-9), "A process of DeepSpeed's launcher was ended by SIGKILL"),
                            (KEY_ERROR + "step 2\n" + deepspeed.format(-11), "A process of DeepSpeed's launcher was ended by SIGSEGV")):
            with self.subTest(title=title):
                first = self.first(text)
                self.assertEqual((first["title"], first["ranks"]), (title, []))

    def test_what_slurm_says(self):
        oom = "slurmstepd: error: Detected 1 oom_kill event in StepId=7012.0. Some of the step tasks have been OOM Killed.\n"
        for text, title in ((marked("0: ", GONE) + marked("1: ", KEY_ERROR) + "srun: error: n042: task 1: Exited with exit code 1\nsrun: error: n042: task 0: Terminated\n",
                             "Task 1 of srun raised KeyError: 'stage2'"),
                            (oom + "srun: error: n042: task 3: Out Of Memory\nsrun: error: n042: tasks 0-2: Killed\n", "Task 3 of srun was ended by SIGKILL: its memory ran out"),
                            (oom, "A task of Slurm was ended by SIGKILL: its memory ran out"),
                            ("srun: error: n1: task 5: Segmentation fault (core dumped)\nsrun: error: n1: task 4: Killed\n", "Task 5 of srun was ended by SIGSEGV")):
            with self.subTest(title=title):
                self.assertEqual(self.first(text)["title"], title)

    def test_a_warning_of_nccl_in_the_process_that_was_gone(self):
        gone = marked("[rank1]: ", GONE[:GONE.index("RuntimeError")] + "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1275, "
                      "remote process exited or there was a network error, NCCL version 2.20.5\nncclRemoteError: A call failed.\nLast error:\n"
                      "socketProgress: Connection closed by remote peer n2<51159>")
        first = self.first("n2:22555:22555 [0] NCCL INFO ncclCommInitRank comm 0x55a4 rank 2 nranks 4 cudaDev 0 busId 7000 - Init COMPLETE\n"
                           "n1:13572:14001 [1] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer n2<51159>\n"
                           "n2:22555:22590 [0] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'\n", gone)
        self.assertEqual(first["title"], "Rank 1 raised DistBackendError: NCCL remote process exited or there was a network error: "
                         "socketProgress: Connection closed by remote peer n2<51159>")
        self.assertIn("NCCL of rank 2 (pid 22555 on n2) warned in line 3 of ", first["detail"])
        self.assertEqual(first["try"], "look at rank 2 (pid 22555 on n2), of which NCCL warned")

    def test_the_box_of_rich(self):
        """As rich 15 prints it, 60 columns wide: a place may be broken in a word or at a space."""
        frames = ("/srv/train.py:230 in <module>", "", "  229 if __name__ == '__main__':", "❱ 230 │   main()", "", "... 2 frames hidden ...", "",
                  "/srv/a_folder_with_a_name_that_is_longer_than_the_line_of_t", "he_box/model.py:12 in", "a_function_with_a_long_name", "", "   11 │   for name in names:",
                  "❱ 12 │   │   return table[name]")
        width = max(map(len, frames))
        box = "".join(f"│ {one:{width}} │\n" for one in frames)
        first = self.first("╭── Traceback (most recent call last) ──╮\n" + box + "╰──╯\nKeyError: 'stage2'\n")
        self.assertEqual((first["title"], first["place"]["file"], first["place"]["line"]),
                         ("The program raised KeyError: 'stage2'", "/srv/a_folder_with_a_name_that_is_longer_than_the_line_of_the_box/model.py", 12))
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            [(stack,)] = connection.execute("SELECT traceback FROM uncaught_exception").fetchall()
        self.assertEqual(stack.split("\n")[:3], ["Traceback (most recent call last):", '  File "/srv/train.py", line 230, in <module>', "    main()"])
        self.assertIn(", line 12, in a_function_with_a_long_name\n    return table[name]\nKeyError: 'stage2'", stack)

    def test_a_message_of_several_lines(self):
        base = GONE[:GONE.index("RuntimeError")]
        first = self.first(base + "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:121, unhandled system error "
                           "(run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5\nncclSystemError: System call or external library call failed.\n"
                           "Last error:\nError while creating shared memory segment /dev/shm/nccl-9T1Y4B (size 9637888)\n")
        self.assertEqual(first["title"], "The program raised DistBackendError: NCCL unhandled system error: "
                         "Error while creating shared memory segment /dev/shm/nccl-9T1Y4B (size 9637888)")
        first = self.first(base + "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nRuntimeError: No valid triton configs\n\n"
                           "Set TORCH_LOGS=\"+dynamo\" for more information\n\nYou can suppress this exception and fall back to eager by setting:\n"
                           "    import torch._dynamo\n    torch._dynamo.config.suppress_errors = True\n")
        self.assertEqual(first["title"], "The program raised BackendCompilerFailed: backend='inductor' raised: RuntimeError: No valid triton configs")


if __name__ == "__main__":
    unittest.main()
