#include "inputs/recognize.h"

#include "tests/catch2.h"

using namespace tlparse;  // NOLINT: a test

TEST_CASE("Inputs are recognised by what they hold", "[recognize]") {
  CHECK(Recognize(R"({"schemaVersion": 1, "traceEvents": [)") == InputKind::kProfile);
  CHECK(Recognize("\xEF\xBB\xBF {\"traceEvents\": [{\"ph\": \"X\"") == InputKind::kProfile);
  CHECK(Recognize(R"([{"ph": "X", "cat": "cpu_op"}])") == InputKind::kProfile);
  CHECK(Recognize(R"({"version": "2.10", "pg_config": {}, "pg_status": {}, "entries": []})") ==
        InputKind::kRecorderDump);
  CHECK(Recognize(std::string_view("\x80\x02}q\0(X\x07\0\0\0entriesq\x01", 20)) ==
        InputKind::kRecorderDump);
  CHECK(Recognize(R"({"cpp_fused_0:1": {"stack_traces": ["a"], "post_grad_nodes": []}})") ==
        InputKind::kKernelInformation);
  CHECK(Recognize(R"({"event_type": "compilation", "pid": 1, "payload": {}})") ==
        InputKind::kTritonparse);
  CHECK(Recognize(R"({"schema": "1.1.1-chakra.0.0.4", "nodes": []})") ==
        InputKind::kExecutionTrace);
  CHECK(Recognize("PK\x03\x04rest") == InputKind::kPackage);
  CHECK(Recognize(R"(V1122 19:13:02.875000 29856 torch/_inductor/a.py:12] {"artifact": {}})") ==
        InputKind::kLog);
  CHECK(Recognize("V1122 19:30:29.099000 26478 torch/_inductor/scheduler.py:2132] [0/0] [__fusion] "
                  "cannot") == InputKind::kTorchLogs);
}

TEST_CASE("What is none of ours is of no kind", "[recognize]") {
  for (const char* text : {"", "{", "{}", "[]", "hello", R"({"name": "x", "version": "1"})",
                           R"([{"ph": "B", "name": "x"}])", R"({"a": {"traceEvents": []}})",
                           "\x80\x02", R"({"a)", "SQLite format 3"})
    CHECK(Recognize(text) == InputKind::kUnknown);
}
