// Logs that want to write elsewhere, run scripts in the reader's browser, or break the JSON.
#include <simdjson.h>

#include "base/utf8.h"
#include "report/tree/json_format.h"
#include "tests/report/report_fixture.h"

namespace tlparse {
namespace {

constexpr std::string_view kScript = "<script>alert(1)</script>";

const std::vector<std::string>& HostileNames() {
  static const std::vector<std::string> names = {"..",
                                                 "../../escape",
                                                 "/tmp/tlparse_escape",
                                                 "a/b/c",
                                                 "nul\\u0000byte",
                                                 "new\\nline",
                                                 "\\\\back\\\\slash",
                                                 "C:\\\\windows",
                                                 "CON",
                                                 "name.",
                                                 "case",
                                                 "CASE",
                                                 "sp ace",
                                                 "<script>alert(1)</script>",
                                                 "\\\"quote\\\"",
                                                 "\\ud800",
                                                 "%2e%2e%2f",
                                                 "#fragment?query",
                                                 "~",
                                                 "-rf",
                                                 ".hidden",
                                                 std::string(4096, 'x'),
                                                 std::string(4095, 'x') + "y"};
  return names;
}

std::string HostileLog() {
  const std::string tail = ", \"frame_id\": 0, \"frame_compile_id\": 0, \"attempt\": 0}";
  const std::string payload = std::string(kScript) + " payload";
  std::string text;
  for (const std::string& name : HostileNames()) {
    for (const char* encoding : {"string", "json"}) {
      text += LogRecordText(
          "{\"artifact\": {\"name\": \"" + name + "\", \"encoding\": \"" + encoding + "\"}" + tail,
          payload.c_str());
    }
    text += LogRecordText("{\"graph_dump\": {\"name\": \"" + name + "\"}" + tail, payload.c_str());
    text += LogRecordText("{\"dump_file\": {\"name\": \"" + name + "\"}}", payload.c_str());
    text += LogRecordText("{\"inductor_output_code\": {\"filename\": \"" + name + "\"}" + tail,
                          payload.c_str());
    text += LogRecordText("{\"link\": {\"name\": \"" + name +
                          "\", \"url\": \"javascript:alert(1)\"}" + tail);
  }
  text += LogRecordText("{\"compilation_metrics\": {\"co_name\": \"" + std::string(kScript) +
                        "\", \"fail_type\": \"" + std::string(kScript) + "\", \"fail_reason\": \"" +
                        std::string(kScript) + "\", \"x\": NaN, \"" + std::string(kScript) +
                        "\": 1}" + tail);
  const std::string huge = "123456789012345678901234567890";
  text += LogRecordText(
      "{\"artifact\": {\"name\": \"big\", \"encoding\": \"string\", \"n\": " + huge + "}" + tail,
      "big");
  text += LogRecordText("{\"brand_new\": {}, \"timestamp\": " + huge + "}");
  text +=
      LogRecordText("{\"dynamo_guards\": {}" + tail, "[{\"code\": \"<script>alert(1)</script>\"}]");
  text += LogRecordText("{\"str\": [\"" + std::string(kScript) + "\", 0]}");
  text += LogRecordText("{\"dynamo_start\": {\"stack\": [{\"line\": 1, \"name\": \"" +
                        std::string(kScript) + "\", \"filename\": 0, \"loc\": \"" +
                        std::string(kScript) + "\"}]}" + tail);
  text += LogRecordText(
      "{\"frame_id\": -1, \"aot_joint_graph\": {}, \"frame_compile_id\": 99999999999}", "g");
  return text;
}

TEST_CASE("hostile names: every file is inside and every listed one is there") {
  const TextLog log;
  ReportOptions options;
  options.inductor_provenance = true;
  const ReportOf report({log.Path("evil.log", HostileLog())}, options);
  CHECK(FilesBelow(log.directory.path()) == std::set<std::string>{"evil.log"});
  for (const auto& entry : std::filesystem::directory_iterator(report.directory().path())) {
    const std::string name = entry.path().filename().string();
    CHECK((name == "out" || name == "trace.db"));
  }
  simdjson::dom::parser parser;
  const simdjson::dom::object keys =
      parser.parse(report.File("compile_directory.json")).get_object().value();
  std::set<std::string> urls;
  std::int64_t links = 0;
  for (const auto key : keys) {
    const simdjson::dom::array artifacts = key.value["artifacts"].get_array().value();
    for (const simdjson::dom::element artifact : artifacts) {
      const std::string url(artifact["url"].get_string().value());
      CAPTURE(url);
      if (url.starts_with("javascript:")) {
        ++links;
        continue;
      }
      CHECK(report.Has(url));
      CHECK(urls.insert(url).second);
      CHECK(IsTextSafe(url));
    }
  }
  const auto names = static_cast<std::int64_t>(HostileNames().size());
  CHECK(links == names);
  // 5 files a name, one page of metrics, one of guards, one graph, one artifact.
  CHECK(urls.size() == static_cast<std::size_t>(5 * names + 4));
}

TEST_CASE("hostile text: no page holds markup of the log") {
  const TextLog log;
  ReportOptions options;
  options.inductor_provenance = true;
  const ReportOf report(
      {log.Path("evil.log", HostileLog()), log.Path("<script>alert(1)<_script>.log", HostileLog())},
      options);
  int pages = 0;
  for (const std::string& path : FilesBelow(report.root())) {
    if (!path.ends_with(".html")) continue;
    ++pages;
    const std::string page = report.File(path);
    CAPTURE(path);
    CHECK(page.find("<script") == std::string::npos);
    CHECK(page.find("href=\"javascript:") == std::string::npos);
    CHECK(page.find(" src=") == std::string::npos);  // no resources
    CHECK(page.find("<link") == std::string::npos);
  }
  CHECK(pages > 100);
}

TEST_CASE("hostile text: every line of raw.jsonl is JSON") {
  const TextLog log;
  const ReportOf report({log.Path("evil.log", HostileLog())});
  std::istringstream lines(report.File("raw.jsonl"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    CAPTURE(line);
    std::string compact;
    CHECK(AppendJson(line, JsonLayout::kCompact, compact));
  }
  CHECK(count > 100);
}

TEST_CASE("damaged bytes in a payload do not spoil what is written for many") {
  const TextLog log;
  std::string text;
  for (const char* name : {"good", "b\xcc\xff", "cut \xe2\x82"}) {
    text += LogRecordText("{\"chromium_event\": {}, \"rank\": 0}",
                          (std::string("{\"name\": \"") + name +
                           "\", \"ts\": 1732178701123000.0, \"ph\": \"i\", \"pid\": 0}")
                              .c_str());
  }
  text += LogRecordText(
      "{\"artifact\": {\"name\": \"inductor_collective_schedule\", \"encoding\": \"json\"}, "
      "\"rank\": 0, \"frame_id\": 0, \"frame_compile_id\": 0, \"attempt\": 0}",
      "[\"all_reduce\", \"b\xcc\xff\"]");
  ReportOptions options;
  options.rank_directories = true;
  const ReportOf report({log.Path("damaged.log", text)}, options);
  simdjson::dom::parser parser;
  for (const char* file : {"chromium_events.json", "rank_0/chromium_events.json"}) {
    CAPTURE(file);
    CHECK(parser.parse(report.File(file)).get_array().value().size() == 3);
  }
  const simdjson::dom::array graphs =
      parser.parse(report.File("collective_schedules.json")).get_array().value();
  CHECK(graphs.at(0)["ops"].get_array().value().size() == 2);
}

}  // namespace
}  // namespace tlparse
