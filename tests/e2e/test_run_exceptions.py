#!/usr/bin/env python3
"""tlparse run: what an exception says that ends a process, and where it was raised."""

import json
import sys
import unittest

from test_run import Running

PYTHON = sys.executable


class Exceptions(Running):
    def findings(self):
        return json.loads(self.tlparse("findings", "tl_run", "--json").stdout)["findings"]

    def test_the_exception_that_a_message_quotes(self):
        """As mp.spawn raises one for its processes."""
        program = self.script("spawn.py", """\
            import textwrap
            class ProcessRaisedException(Exception):
                pass
            try:
                exec(compile("\\n\\nraise ZeroDivisionError('std of an empty buffer')", "/u/learn.py", "exec"))
            except ZeroDivisionError:
                import traceback
                text = traceback.format_exc()
            raise ProcessRaisedException("\\n\\n-- Process 0 terminated with the following error:\\n" + text)
            """)
        self.run_command("--", PYTHON, program, expect=1)
        first = self.findings()[0]
        self.assertEqual(first["title"], "The command raised ProcessRaisedException: ZeroDivisionError: std of an empty buffer")
        self.assertEqual(first["place"], {"file": "/u/learn.py", "line": 3, "code": None})

    def test_the_exception_of_a_worker_of_a_loader(self):
        program = self.script("loader.py", """\
            class KeyErrorMessage(str):
                def __repr__(self):
                    return self
            raise KeyError(KeyErrorMessage("Caught KeyError in DataLoader worker process 1.\\nOriginal Traceback (most recent call last):\\n"
                '  File "/v/site-packages/torch/utils/data/_utils/worker.py", line 375, in _worker_loop\\n    data = fetcher.fetch(index)\\n'
                '  File "/u/clips.py", line 14, in __getitem__\\n    return clip["audio"]\\n' + "KeyError: 'audio'\\n"))
            """)
        self.run_command("--", PYTHON, program, expect=1)
        first = self.findings()[0]
        self.assertEqual(first["title"], "The command raised KeyError: 'audio' (in DataLoader worker process 1)")
        self.assertEqual(first["place"], {"file": "/u/clips.py", "line": 14, "code": None})

    def test_an_exception_of_a_worker_that_is_raised_as_another(self):
        """As that of a class that takes several arguments."""
        program = self.script("loader.py", """\
            raise RuntimeError("Caught JSONDecodeError in DataLoader worker process 0.\\nOriginal Traceback (most recent call last):\\n"
                '  File "/u/rows.py", line 13, in __iter__\\n    row = json.loads(line)\\n' + "json.decoder.JSONDecodeError: Expecting value: line 2\\n")
            """)
        self.run_command("--", PYTHON, program, expect=1)
        self.assertEqual(self.findings()[0]["title"], "The command raised JSONDecodeError: Expecting value: line 2 (in DataLoader worker process 0)")

    def test_the_exception_from_which_another_was_raised(self):
        program = self.script("wrap.py", """\
            try:
                {}["val/accuracy"]
            except KeyError as error:
                raise RuntimeError("step 7 failed") from error
            """)
        self.run_command("--", PYTHON, program, expect=1)
        first = self.findings()[0]
        self.assertEqual((first["title"], first["place"]["line"]), ("The command raised RuntimeError: step 7 failed, from KeyError: 'val/accuracy'", 2))

    def test_an_index_that_a_kernel_checks(self):
        program = self.script("index.py", """\
            def cpp_fused_embedding_0(x):
                raise RuntimeError("kernel, /tmp/c.main.cpp:23, index out of bounds: 0 <= tmp6 < 64L")
            cpp_fused_embedding_0(64)
            """)
        self.run_command("--", PYTHON, program, expect=1)
        self.assertTrue(self.findings()[0]["detail"].endswith(" The index is of one of the operations of cpp_fused_embedding_0."))


if __name__ == "__main__":
    unittest.main()
