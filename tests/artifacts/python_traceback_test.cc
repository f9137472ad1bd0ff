#include "artifacts/common/text/python_traceback.h"

#include <string>

#include "tests/catch2.h"

TEST_CASE("ParseFrameLine reads file, line and function", "[python_traceback]") {
  const auto frame = tlparse::ParseFrameLine("  File \"/u/a, b.py\", line 12, in f");
  REQUIRE(frame);
  CHECK(frame->file == "/u/a, b.py");
  CHECK(frame->line == 12);
  CHECK(frame->function == "f");
  CHECK(tlparse::ParseFrameLine("File \"a.py\", line 3")->function.empty());
  CHECK_FALSE(tlparse::ParseFrameLine("  File \"a.py\", line x"));
  CHECK_FALSE(tlparse::ParseFrameLine("    return f(x)"));
}

TEST_CASE("IsUserFile tells the user's files from PyTorch's, Python's and generated ones",
          "[python_traceback]") {
  CHECK(tlparse::IsUserFile("/home/u/train.py"));
  CHECK_FALSE(tlparse::IsUserFile("/usr/lib/python3/dist-packages/torch/nn/modules/module.py"));
  CHECK_FALSE(tlparse::IsUserFile("/usr/lib/python3.14/contextlib.py"));
  CHECK_FALSE(tlparse::IsUserFile("<eval_with_key>.3"));
  CHECK(tlparse::IsUserFile("<ipython-input-6-ea9750a373e0>"));
  CHECK_FALSE(tlparse::IsUserFile("/home/u/tl_run/hook/sitecustomize.py"));
  CHECK_FALSE(tlparse::IsUserFile("/tmp/x/de/c" + std::string(51, 'd') + ".py"));
}

TEST_CASE("IsTorchFile tells PyTorch's files from others", "[python_traceback]") {
  CHECK(tlparse::IsTorchFile(
      "/usr/lib/python3/dist-packages/torch/distributed/_functional_collectives.py"));
  CHECK(tlparse::IsTorchFile("torch/_dynamo/convert_frame.py"));
  CHECK_FALSE(tlparse::IsTorchFile("/usr/lib/python3/dist-packages/transformers/trainer.py"));
  CHECK_FALSE(tlparse::IsTorchFile("/home/u/torch/train.py"));
}

TEST_CASE("SummarizeTraceback takes the last of chained tracebacks", "[python_traceback]") {
  const std::string text =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    x\nValueError: "
      "inner\n\n"
      "During handling of the above exception, another exception occurred:\n\n"
      "Traceback (most recent call last):\n  File \"b.py\", line 2, in g\n    y\nmod.Outer: "
      "first\nsecond\n";
  const auto summary = tlparse::SummarizeTraceback(text);
  CHECK(summary.type == "Outer");
  CHECK(summary.message == "first\nsecond");
  REQUIRE(summary.user_frame);
  CHECK(summary.user_frame->file == "b.py");
}

TEST_CASE("CauseOfTraceback follows what was raised from another", "[python_traceback]") {
  const std::string header = "Traceback (most recent call last):\n  File \"/u/a.py\", line ";
  const std::string from =
      "\nThe above exception was the direct cause of the following exception:\n\n";
  const std::string during =
      "\nDuring handling of the above exception, another exception occurred:\n\n";
  const std::string own = header + "1, in f\nA: a\n", next = header + "2, in f\nB: b\n";
  CHECK(tlparse::CauseOfTraceback(own).type.empty());
  CHECK(tlparse::CauseOfTraceback(own + during + next).type.empty());
  CHECK(tlparse::CauseOfTraceback(own + from + next).message == "a");
  CHECK(tlparse::CauseOfTraceback(own + from + next + from + header + "3, in f\nC: c").type == "A");
  CHECK(tlparse::CauseOfTraceback(own + during + next + from + header + "3\nC: c").type == "B");
  // As multiprocessing.Pool quotes the traceback of a worker.
  const std::string remote = "m.RemoteTraceback: \n\"\"\"\n" + own + "\"\"\"\n\n" + from + next;
  CHECK(tlparse::CauseOfTraceback(remote).user_frame->line == 1);
}

TEST_CASE("QuotedTraceback takes the first that a message quotes", "[python_traceback]") {
  const std::string message =
      "ranks [0, 1]\nTraceback (most recent call last): (RANK 0)\n  File \"/u/a.py\", line 3, in "
      "f\n"
      "    g()\nt.AssertionError: no metadata\nin step 4\nTraceback (most recent call last): (RANK "
      "1)\n"
      "  File \"/u/a.py\", line 9, in f\nt.AssertionError: other\n";
  const auto quoted = tlparse::QuotedTraceback(message);
  CHECK(quoted.type == "AssertionError");
  CHECK(quoted.message == "no metadata\nin step 4");
  REQUIRE(quoted.user_frame);
  CHECK(quoted.user_frame->line == 3);
  CHECK(tlparse::QuotedTraceback("no Traceback (most recent call last): is here").type.empty());
  CHECK(tlparse::QuotedTraceback("in worker 0.\nOriginal Traceback (most recent call last):\nE: x")
            .type == "E");
}

TEST_CASE("SummarizeTraceback leaves a traceback alone that a message quotes",
          "[python_traceback]") {
  const std::string text =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    x\nRuntimeError: "
      "worker said\n"
      "Traceback (most recent call last):\n  File \"w.py\", line 9, in w\nKeyError: 3";
  const auto summary = tlparse::SummarizeTraceback(text);
  CHECK(summary.type == "RuntimeError");
  CHECK(summary.user_frame->file == "a.py");
}

TEST_CASE("SummarizeTraceback prefers the user code that Dynamo names", "[python_traceback]") {
  const std::string text =
      "Traceback (most recent call last):\n  File \"train.py\", line 1, in main\n    x\n"
      "torch._dynamo.exc.Unsupported: no\n\nfrom user code:\n   File \"model.py\", line 7, in "
      "forward\n    y\n"
      "  File \"/usr/lib/python3/dist-packages/torch/nn/f.py\", line 3, in g\n";
  const auto summary = tlparse::SummarizeTraceback(text);
  CHECK(summary.user_frame->file == "model.py");
  CHECK(summary.user_frame->line == 7);
}

TEST_CASE("SummarizeTraceback of other text finds nothing", "[python_traceback]") {
  for (const char* text : {"", "just a message", "Traceback (most recent call last)"}) {
    CHECK(tlparse::SummarizeTraceback(text).type.empty());
  }
}
