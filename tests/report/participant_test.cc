// Which log gets which directory, and what stands above them.
#include <simdjson.h>

#include "tests/report/report_fixture.h"

namespace tlparse {
namespace {

std::string Graph(int pid, const std::string& rank, const char* graph) {
  return LogRecordText("{\"aot_joint_graph\": {}" + rank +
                           ", \"frame_id\": 0, \"frame_compile_id\": 0, \"attempt\": 0}",
                       graph, pid);
}

TEST_CASE("directories: one log stands in the root") {
  const TextLog log;
  const ReportOf report({log.Path("some.log", Graph(1, "", "g"))});
  CHECK(report.summary().logs == 1);
  CHECK(report.Has("-_0_0_0/aot_joint_graph_0.txt"));
  ReportOptions options;
  options.rank_directories = true;
  const ReportOf forced({log.Path("some.log", Graph(1, "", "g"))}, options);
  CHECK(forced.Has("log_some/-_0_0_0/aot_joint_graph_0.txt"));
  CHECK(forced.Has("index.html"));
}

TEST_CASE("directories: ranks, a second log of a rank, logs without a rank") {
  const TextLog log;
  const ReportOf report(
      {log.Path("dedicated_log_torch_trace_rank_1_aaaaaaaa.log", Graph(1, ", \"rank\": 1", "one")),
       log.Path("dedicated_log_torch_trace_rank_0_bbbbbbbb.log", Graph(2, ", \"rank\": 0", "zero")),
       log.Path("dedicated_log_torch_trace_rank_1_cccccccc.log",
                Graph(3, ", \"rank\": 1", "again")),
       log.Path("a/plain.log", Graph(4, "", "a")), log.Path("b/plain.log", Graph(5, "", "b"))});
  const std::string file = "/-_0_0_0/aot_joint_graph_0.txt";
  CHECK(report.File("rank_0" + file) == "zero");
  CHECK(report.File("rank_1" + file) == "one");
  // The same time: a further log of the rank, not a later launch.
  CHECK(report.File("rank_1_2" + file) == "again");
  CHECK(report.File("log_plain" + file) == "a");
  CHECK(report.File("log_plain~2" + file) == "b");
}

TEST_CASE("directories: a rank's later log is of a later launch") {
  const TextLog log;
  const auto again = [](std::string text) {
    for (std::size_t at = 0; (at = text.find("V1121 08:", at)) != std::string::npos; at += 9)
      text.replace(at, 9, "V1121 09:");
    return text;
  };
  const ReportOf report(
      {log.Path("dedicated_log_torch_trace_rank_1_aaaaaaaa.log", Graph(1, ", \"rank\": 1", "one")),
       log.Path("dedicated_log_torch_trace_rank_0_bbbbbbbb.log", Graph(2, ", \"rank\": 0", "zero")),
       log.Path("dedicated_log_torch_trace_rank_1_cccccccc.log",
                again(Graph(3, ", \"rank\": 1", "later")))});
  const std::string file = "/-_0_0_0/aot_joint_graph_0.txt";
  CHECK(report.File("rank_0" + file) == "zero");
  CHECK(report.File("rank_1" + file) == "one");
  CHECK(report.File("launch_2/rank_1" + file) == "later");
}

TEST_CASE("directories: ranks that share a file are separated") {
  const TextLog log;
  const ReportOf report(
      {log.Path("merged.log", Graph(1, ", \"rank\": 0", "zero") + Graph(2, ", \"rank\": 1", "one") +
                                  Graph(1, ", \"rank\": 0", "zero again"))});
  CHECK(report.summary().logs == 2);
  CHECK(report.File("rank_0/-_0_0_0/aot_joint_graph_0.txt") == "zero");
  CHECK(report.File("rank_0/-_0_0_0/aot_joint_graph_1.txt") == "zero again");
  CHECK(report.File("rank_1/-_0_0_0/aot_joint_graph_0.txt") == "one");
}

TEST_CASE("directories: interned strings are kept per process") {
  const TextLog log;
  const auto string = [](int pid, const std::string& text, int id) {
    return LogRecordText("{\"str\": [\"" + text + "\", " + std::to_string(id) + "]}", nullptr, pid);
  };
  const ReportOf report(
      {log.Path("forked.log", string(1, "a.py", 0) + string(1, "c.py", 2) + string(2, "b.py", 2) +
                                  string(2, "d.py", 3) + string(1, "far.py", 2'000'000'000) +
                                  Graph(1, "", "g"))});
  const std::string raw = report.File("raw.jsonl");
  CHECK(raw.substr(0, raw.find('\n')) ==
        "{\"string_table\":[\"a.py\",null,\"c.py\",\"d.py\"],"
        "\"string_table_outside\":{\"2000000000\":\"far.py\"},"
        "\"string_tables\":{\"2\":{\"2\":\"b.py\"}}}");
}

TEST_CASE("aggregates: events, schedules and estimates of several ranks") {
  const TextLog log;
  const auto text = [](int rank, const char* schedule) {
    const std::string tail = ", \"rank\": " + std::to_string(rank) +
                             ", \"frame_id\": 0, \"frame_compile_id\": 0, \"attempt\": 0}";
    return LogRecordText("{\"chromium_event\": {}, \"rank\": " + std::to_string(rank) + "}",
                         "{\"name\": \"dynamo\", \"args\": {\"pid\": 9}, \"pid\": 0}", rank + 1) +
           LogRecordText("{\"chromium_event\": {}, \"rank\": " + std::to_string(rank) + "}",
                         "{\"name\": \"x \\\"pid\\\":1\", \"pid\": 0, \"tid\": 0}", rank + 1) +
           LogRecordText("{\"chromium_event\": {}, \"rank\": " + std::to_string(rank) + "}",
                         "damaged", rank + 1) +
           LogRecordText(
               "{\"artifact\": {\"name\": \"inductor_collective_schedule\", \"encoding\": "
               "\"json\"}" +
                   tail,
               schedule, rank + 1) +
           LogRecordText(
               "{\"artifact\": {\"name\": \"inductor_runtime_and_tensor_meta\", \"encoding\": "
               "\"json\"}" +
                   tail,
               "{\"ops\": [{\"name\": \"op0\", \"type\": \"compute\", "
               "\"estimated_runtime_ns\": 2500.5, \"outputs\": []}]}",
               rank + 1);
  };
  const ReportOf report(
      {log.Path("rank_0.log", text(0, "[\"torch.ops._c10d_functional.all_reduce.default\", null]")),
       log.Path("rank_7.log", text(7, "[]"))});
  simdjson::dom::parser parser;
  const simdjson::dom::array events =
      parser.parse(report.File("chromium_events.json")).get_array().value();
  CHECK(events.size() == 4);
  CHECK(events.at(0)["pid"].get_int64().value() == 0);
  CHECK(events.at(2)["pid"].get_int64().value() == 7);
  CHECK(events.at(2)["args"]["pid"].get_int64().value() == 9);
  CHECK(events.at(3)["pid"].get_int64().value() == 7);
  CHECK(report.File("collective_schedules.json") ==
        "[\n{\"rank\":0,\"graph\":\"-_0_0_0\",\"ops\":[\"torch.ops._c10d_functional.all_reduce."
        "default\",null]}\n]");
  CHECK(report.File("runtime_estimations.json") ==
        "[\n{\"rank\":0,\"graph\":\"-_0_0_0\",\"ops\":[{\"name\":\"op0\",\"estimated_runtime_ns\":"
        "2500.5}]},\n"
        "{\"rank\":7,\"graph\":\"-_0_0_0\",\"ops\":[{\"name\":\"op0\",\"estimated_runtime_ns\":"
        "2500.5}]}\n]");
  CHECK(parser.parse(report.File("chromium_trace_with_runtime.json")).error() == simdjson::SUCCESS);
  CHECK(report.Has("rank_7/collectives_parity.json"));
}

}  // namespace
}  // namespace tlparse
