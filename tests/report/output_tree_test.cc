// The whole tree of two real logs, compared with expected/ (made by peer_tree.py).
#include <simdjson.h>

#include <map>
#include <sstream>

#include "report/tree/json_format.h"
#include "tests/report/report_fixture.h"

namespace tlparse {
namespace {

std::vector<std::string> Split(const std::string& line, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(line);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::string Hex(std::string_view bytes) { return ToHex(Md5(bytes)); }

std::string Compact(std::string_view json) {
  std::string compact;
  REQUIRE(AppendJson(json, JsonLayout::kCompact, compact));
  return compact;
}

struct Expectation {
  std::map<std::string, std::pair<std::string, std::string>> files;  // path → form, MD5
  std::vector<std::string> raw;
  std::string events;
  std::string strings;
};

Expectation ReadExpectation(const std::string& path) {
  Expectation expectation;
  std::istringstream stream(ReadFile(path));
  for (std::string line; std::getline(stream, line);) {
    const std::vector<std::string> parts = Split(line, '\t');
    if (parts[0] == "file") expectation.files[parts[1]] = {parts[2], parts[3]};
    if (parts[0] == "raw") expectation.raw.push_back(line);
    if (parts[0] == "events") expectation.events = line;
    if (parts[0] == "strings") expectation.strings = parts[1];
  }
  return expectation;
}

// One line of raw.jsonl as expected/ describes it.
std::string DescribeRaw(const std::string& line) {
  simdjson::dom::parser parser;
  const simdjson::dom::element value = parser.parse(line).value();
  std::string_view payload = "-";
  if (value["payload_filename"].get(payload) != simdjson::SUCCESS) payload = "-";
  std::string_view timestamp = value["timestamp"].get_string().value();
  CHECK(timestamp.size() == 27);
  const std::string envelope = line.substr(0, line.rfind(", \"timestamp\": ")) + "}";
  return "raw\t" + std::string(value["pathname"].get_string().value()) + "\t" +
         std::to_string(value["lineno"].get_int64().value()) + "\t" +
         std::to_string(value["thread"].get_int64().value()) + "\t" + std::string(payload) + "\t" +
         Hex(Compact(envelope));
}

void CheckTree(const std::string& name, const std::string& log) {
  const std::string source = std::string(TRACEKIT_SOURCE_DIR);
  const std::string expected = source + "/tests/report/expected/" + name;
  const Expectation expectation = ReadExpectation(expected + "/files.tsv");
  const ReportOf report({source + "/fixtures/logs/" + log});

  std::set<std::string> names = {std::string(kMarkerFileName)};
  for (const auto& [path, form] : expectation.files) names.insert(path);
  CHECK(FilesBelow(report.root()) == names);
  for (const auto& [path, form] : expectation.files) {
    CAPTURE(path);
    if (form.first == "text") CHECK(Hex(report.File(path)) == form.second);
    if (form.first == "json") CHECK(Hex(Compact(report.File(path))) == form.second);
  }
  CHECK(report.File("compile_directory.json") == ReadFile(expected + "/compile_directory.json"));

  std::vector<std::string> raw = Split(report.File("raw.jsonl"), '\n');
  simdjson::dom::parser parser;
  CHECK(Compact(simdjson::minify(parser.parse(raw.at(0))["string_table"].value())) ==
        Compact(expectation.strings));
  raw.erase(raw.begin());
  for (std::string& line : raw) line = DescribeRaw(line);
  CHECK(raw == expectation.raw);

  std::vector<std::string> events = Split(report.File("chromium_events.json"), '\n');
  REQUIRE(events.size() >= 2);
  std::string all;
  for (std::size_t i = 1; i + 1 < events.size(); ++i) {
    if (events[i].ends_with(',')) events[i].pop_back();
    all += events[i] + "\n";
  }
  CHECK("events\t" + std::to_string(events.size() - 2) + "\t" + Hex(all) == expectation.events);
}

TEST_CASE("tree: a small log of PyTorch 2.14") {
  CheckTree("simple", "simple/dedicated_log_torch_trace_p2wh118d.log");
}

TEST_CASE("tree: a log of PyTorch 2.6 with failures, restarts and dumped files") {
  CheckTree("failures_2_6", "failures_2_6/dedicated_log_torch_trace__d4jyvbd.log");
}

TEST_CASE("tree: plain text, provenance and export") {
  const std::string logs = std::string(TRACEKIT_SOURCE_DIR) + "/fixtures/logs/";
  ReportOptions options;
  options.plain_text = true;
  options.inductor_provenance = true;
  options.custom_header_html = "<p id=\"mine\">my header</p>";
  const ReportOf plain({logs + "simple/dedicated_log_torch_trace_p2wh118d.log"}, options);
  CHECK(plain.Has("provenance_tracking_-_0_0_0.html"));
  CHECK(plain.File("index.html").find(options.custom_header_html) != std::string::npos);
  bool has_code = false;
  for (const std::string& path : FilesBelow(plain.root())) {
    if (path.find("/inductor_output_code_") == std::string::npos) continue;
    has_code = true;
    CHECK(path.ends_with(".txt"));
    CHECK(plain.File(path).find("# AOT ID") != std::string::npos);
  }
  CHECK(has_code);
}

TEST_CASE("tree: equal payloads are one file with several names") {
  const TextLog log;
  const std::string payload(10'000, 'g');
  std::string text;
  for (int i = 0; i < 3; ++i) {
    text += LogRecordText("{\"aot_joint_graph\": {}, \"frame_id\": 0, \"frame_compile_id\": " +
                              std::to_string(i) + ", \"attempt\": 0}",
                          payload.c_str());
  }
  const ReportOf report({log.Path("a.log", text)});
  for (int i = 0; i < 3; ++i) {
    const std::string path = report.root() + "/-_0_" + std::to_string(i) + "_0/aot_joint_graph_" +
                             std::to_string(i) + ".txt";
    CHECK(ReadFile(path) == payload);
    CHECK(std::filesystem::hard_link_count(path) == 3);
  }
}

TEST_CASE("tree: what the peer loses is kept and numbered last") {
  const TextLog log;
  const std::string text =
      LogRecordText(R"({"chromium_event": {}, "rank": 3})", "{\"name\": \"dynamo\"}") +
      LogRecordText(R"({"artifact": {"name": "torch_version", "encoding": "json"}})", "{}") +
      LogRecordText(
          R"({"artifact": {"encoding": "string"}, "rank": 3, "frame_id": 0, "frame_compile_id": 0, "attempt": 0})",
          "knapsack") +
      LogRecordText(
          R"({"artifact": {"name": "odd", "encoding": "yaml"}, "rank": 3, "frame_id": 0, "frame_compile_id": 0, "attempt": 0})",
          "a: 1") +
      LogRecordText(
          R"({"aot_joint_graph": {}, "rank": 3, "frame_id": 0, "frame_compile_id": 0, "attempt": 0})",
          "graph") +
      LogRecordText(R"({"brand_new_kind": {"x": 1}, "rank": 3})", "something") +
      LogRecordText(R"({"timestamp": 5, "brand_new_kind": {}, "rank": 3})");
  const ReportOf report({log.Path("dedicated_log_torch_trace_rank_3_abcdefgh.log", text)});
  CHECK(report.File("-_0_0_0/aot_joint_graph_0.txt") == "graph");
  CHECK(report.File("-_-_-_-/torch_version_1.json") == "{}");
  CHECK(report.File("-_0_0_0/artifact_2.txt") == "knapsack");
  CHECK(report.File("-_0_0_0/odd_3.txt") == "a: 1");
  CHECK(report.File("payloads/" + Hex("something") + ".txt") == "something");
  const std::vector<std::string> raw = Split(report.File("raw.jsonl"), '\n');
  CHECK(raw.size() == 7);  // strings, and all records but the event
  CHECK(raw.at(1).find("\"payload_filename\": \"-_-_-_-/torch_version_1.json\"") !=
        std::string::npos);
  CHECK(raw.at(6).find("\"timestamp\": 5") != std::string::npos);
}

TEST_CASE("tree: kernel stack traces have a page that takes a number") {
  const TextLog log;
  const std::string name = "inductor_provenance_tracking_kernel_stack_traces";
  const std::string envelope = "{\"artifact\": {\"name\": \"" + name +
                               "\", \"encoding\": \"json\"}, \"frame_id\": 0, "
                               "\"frame_compile_id\": 0, \"attempt\": 0}";
  const ReportOf report({log.Path(
      "a.log", LogRecordText(envelope, R"({"k:1": ["  File \"a.py\", line 1\n    <b>\n"]})") +
                   LogRecordText(envelope) + LogRecordText(envelope, "not JSON"))});
  CHECK(report.Has("-_0_0_0/" + name + "_0.json"));
  CHECK(report.File("-_0_0_0/" + name + "_0_readable.html").find("&lt;b&gt;") != std::string::npos);
  CHECK(report.File("-_0_0_0/" + name + "_2.json").empty());
  CHECK(report.File("-_0_0_0/" + name + "_3.json") == "not JSON");
  const std::string directory = report.File("compile_directory.json");
  CHECK(directory.find("\"number\": 1,\n        \"readable_url\": \"-_0_0_0/" + name +
                       "_0_readable.html\"") != std::string::npos);
  CHECK(directory.find("\"number\": 2,\n        \"readable_url\": \"\"") != std::string::npos);
}

TEST_CASE("tree: vLLM's configuration, patterns, and what its passes changed") {
  const TextLog log;
  const std::string tail = ", \"frame_id\": 0, \"frame_compile_id\": 0, \"attempt\": 0}";
  const auto dump = [&](const std::string& name, const char* payload) {
    return LogRecordText("{\"graph_dump\": {\"name\": \"" + name + "\"}" + tail, payload);
  };
  const auto artifact = [&](const std::string& name, const std::string& encoding,
                            const char* payload) {
    return LogRecordText(
        "{\"artifact\": {\"name\": \"" + name + "\", \"encoding\": \"" + encoding + "\"}" + tail,
        payload);
  };
  const std::string text = dump("vllm_post_grad.0.First", "nothing before") +
                           artifact("vllm_compilation_config", "json", "{\"model\": \"m\"}") +
                           dump("vllm_patterns.Fuse", "def pattern_0():") +
                           dump("vllm_post_grad.0.Second", "the configuration lies between") +
                           artifact("before_post_grad_graph", "string", "x = sin(a)\nreturn x") +
                           dump("vllm_post_grad.0.Fuse", "x = fused<T>(a)\nreturn x") +
                           dump("vllm_post_grad.0.Fuse", "x = fused<T>(a)\nreturn x");
  const ReportOf report({log.Path("a.log", text)});
  CHECK(report.Has("-_0_0_0/vllm_post_grad.0.First_0.txt"));
  CHECK_FALSE(report.Has("-_0_0_0/vllm_post_grad.0.First.diff.html"));
  CHECK(report.File("-_0_0_0/vllm_compilation_config_1.json") ==
        report.File("-_0_0_0/vllm_compilation_config_2.json"));
  CHECK(report.File("raw.jsonl").find("vllm_compilation_config_2.json") != std::string::npos);
  CHECK(report.File("-_0_0_0/vllm_patterns.Fuse_3.py") == "def pattern_0():");
  CHECK_FALSE(report.Has("-_0_0_0/vllm_post_grad.0.Second.diff.html"));
  CHECK(report.Has("-_0_0_0/vllm_post_grad.0.Fuse_6.txt"));
  const std::string page = report.File("-_0_0_0/vllm_post_grad.0.Fuse.diff.html");
  CHECK(page.find("<del>-x = sin(a)</del>") != std::string::npos);
  CHECK(page.find("<ins>+x = fused&lt;T&gt;(a)</ins>") != std::string::npos);
  CHECK(report.Has("-_0_0_0/vllm_post_grad.0.Fuse_8.txt"));
  CHECK(report.File("-_0_0_0/vllm_post_grad.0.Fuse.diff~2.html").find("Nothing.") !=
        std::string::npos);
  CHECK(report.File("compile_directory.json").find("\"number\": 9") != std::string::npos);
}

TEST_CASE("tree: what a pass of vLLM changed is limited, and says what was left out") {
  const TextLog log;
  const std::string tail = ", \"frame_id\": 0, \"frame_compile_id\": 0, \"attempt\": 0}";
  const auto dump = [&](const std::string& name, const std::string& payload) {
    return LogRecordText("{\"graph_dump\": {\"name\": \"vllm_post_grad.0." + name + "\"}" + tail,
                         payload.c_str());
  };
  std::string many, others;
  for (int line = 0; line < 3000; ++line) {
    many += "a" + std::to_string(line) + "\n";
    others += "b" + std::to_string(line) + "\n";
  }
  const std::string text = LogRecordText(
                               "{\"artifact\": {\"name\": \"before_post_grad_graph\", "
                               "\"encoding\": \"string\"}" +
                                   tail,
                               "x = 1") +
                           dump("Long", std::string(5000, 'y')) + dump("Many", many) +
                           dump("Others", others) + dump("Large", std::string((8 << 20) + 1, 'z'));
  const ReportOf report({log.Path("a.log", text)});
  const std::string cut = report.File("-_0_0_0/vllm_post_grad.0.Long.diff.html");
  CHECK(cut.find("<ins>+" + std::string(1999, 'y') + "… (3001 more bytes)</ins>") !=
        std::string::npos);
  const std::string lines = report.File("-_0_0_0/vllm_post_grad.0.Others.diff.html");
  CHECK(lines.find("<del>-a1000</del>") != std::string::npos);
  CHECK(lines.find("… 4002 more lines") != std::string::npos);
  const std::string large = report.File("-_0_0_0/vllm_post_grad.0.Large.diff.html");
  CHECK(large.find("too much to be compared") != std::string::npos);
  CHECK(large.find("8388609 bytes") != std::string::npos);
  CHECK(large.size() < 10'000);
}

}  // namespace
}  // namespace tlparse
