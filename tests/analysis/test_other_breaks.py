"""Graph breaks that are not the user's to mend, or that the user asked for, are notes; those of `tlparse run` itself are nothing."""

import unittest

from answers import AnswerTest, ask


class OtherBreaks(AnswerTest):
    def titles(self, scenario):
        findings = [one for one in ask("findings", self.job(scenario))["findings"] if one["kind"] == "graph_break"]
        self.assertEqual({"note"}, {one["severity"] for one in findings}, findings)
        return [one["title"] for one in findings]

    def test_a_method_with_torch_compiler_disable(self):
        self.assertIn("forward breaks the graph at train.py:30: Skip inlining `torch.compiler.disable()`d function", self.titles("disabled_method"))

    def test_those_of_ddp_are_one_note(self):
        """No function of the program is compiled there."""
        own, = (one for one in ask("findings", self.job("disabled_method"))["findings"] if one["kind"] == "graph_break" and not one["title"].startswith("forward breaks"))
        titles = sorted(one["title"] for one in (own, *own["evidence"]))
        self.assertEqual(["helper and __init__ break the graph in contextlib.py", "inner breaks the graph in distributed.py"], [title[:title.index(":")] for title in titles])

    def test_a_frame_of_a_library_that_runs_eagerly(self):
        """What it calls is compiled by itself."""
        titles = [title for title in self.titles("breaks_of_library") if "is not compiled, it runs eagerly" in title]
        self.assertEqual(["forward is not compiled, it runs eagerly: graph break in modeling_utils.py:4778", "<dictcomp> is not compiled, it runs eagerly: graph break in peft_model.py:2119"],
                         [title.split(", called")[0] for title in titles])

    def test_the_hook_of_tlparse_run(self):
        """A compiled step of an optimizer calls it, with --profile: as it was, and as it is."""
        self.assertEqual(["<lambda> and wrapper break the graph in optimizer.py:78, called from train.py:5: Call to `torch._dynamo.graph_break()`"], self.titles("hooked_step"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
