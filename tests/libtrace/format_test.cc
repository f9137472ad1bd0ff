#include <string>

#include "libtrace/compile_id.h"
#include "libtrace/log_format.h"
#include "tests/catch2.h"

namespace libtrace {
namespace {

TEST_CASE("AppendPayloadLines indents every piece, empty ones too", "[log_format]") {
  const auto lines = [](std::string_view payload) {
    std::string out;
    format::AppendPayloadLines(payload, out);
    return out;
  };
  CHECK(lines("") == "\t\n");
  CHECK(lines("a\n") == "\ta\n\t\n");
  CHECK(lines("\n\n") == "\t\n\t\n\t\n");
  CHECK(lines("a\r\n\tb") == "\ta\r\n\t\tb\n");
}

TEST_CASE("JoinPayloadLines undoes AppendPayloadLines", "[log_format]") {
  const std::string payloads[] = {"",   "a",          "a\n",
                                  "\n", "a\n\nb\n\n", std::string("\0\r\t\n\x85", 5)};
  for (const std::string& payload : payloads) {
    std::string lines;
    format::AppendPayloadLines(payload, lines);
    CHECK(format::JoinPayloadLines(lines) == payload);
  }
  CHECK(format::JoinPayloadLines("\ta\n\tb") == "a\nb");  // cut off before the last LF
}

TEST_CASE("ParseFileName knows ranked, unranked and renamed logs", "[log_format]") {
  using format::ParseFileName;
  CHECK(ParseFileName("dedicated_log_torch_trace_ab_9xyz0.log")->random == "ab_9xyz0");
  CHECK_FALSE(ParseFileName("dedicated_log_torch_trace_ab_9xyz0.log")->rank);
  CHECK(ParseFileName("dedicated_log_torch_trace_rank_12_abcdefgh.log")->rank == 12u);
  CHECK(ParseFileName("dedicated_log_torch_trace_rank_7.log")->rank == 7u);
  // Eight characters that happen to begin like a rank.
  CHECK_FALSE(ParseFileName("dedicated_log_torch_trace_rank_12x.log")->rank);
  CHECK_FALSE(ParseFileName("dedicated_log_torch_trace_rank_99999999999_abcdefgh.log"));
  CHECK_FALSE(ParseFileName("dedicated_log_torch_trace_.log"));
  CHECK_FALSE(ParseFileName("dedicated_log_torch_trace_ABCDEFGH.log"));
  CHECK_FALSE(ParseFileName("train.log"));
}

TEST_CASE("FormatFileName gives names that ParseFileName reads", "[log_format]") {
  CHECK(format::FormatFileName({}, "abcdefgh") == "dedicated_log_torch_trace_abcdefgh.log");
  const std::string name = format::FormatFileName(3, "abcdefgh");
  CHECK(format::ParseFileName(name)->rank == 3u);
}

TEST_CASE("Reserved names are no record keys", "[log_format]") {
  for (const char* name :
       {"rank", "stack", "has_payload", "subgraph_name", "timestamp", "thread"}) {
    CHECK(format::IsReservedKey(name));
  }
  CHECK_FALSE(format::IsReservedKey("artifact"));
}

TEST_CASE("Compile ids have text forms and back", "[compile_id]") {
  const CompileId ids[] = {CompileId::Frame(0), CompileId::Frame(12, 3),
                           CompileId::CompiledAutograd(1), CompileId{2, 3, 4}};
  const char* texts[] = {"0/0", "12/3", "!1", "!2/3/4"};
  for (size_t i = 0; i < std::size(ids); ++i) {
    CHECK(ToString(ids[i]) == texts[i]);
    CHECK(ParseCompileId(texts[i]) == ids[i]);
  }
  CHECK(ToString(CompileId()) == "None");
  for (const char* text : {"", "None", "0", "0/", "/0", "!", "!1/", "!1/2", "0/0_1", "a/b", "-1/0",
                           "0/0 ", "4294967296/0"}) {
    INFO(text);
    CHECK_FALSE(ParseCompileId(text));
  }
}

}  // namespace
}  // namespace libtrace
