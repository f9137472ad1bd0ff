#include "libtrace/spdlog_sink.h"

#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "libtrace/trace.h"
#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

TEST_CASE("A sink of spdlog gets records as they are", "[sink]") {
  std::ostringstream stream;
  Options options;
  options.sink = MakeSpdlogSink(std::make_shared<spdlog::sinks::ostream_sink_st>(stream));
  REQUIRE(Start(std::move(options)));
  Emit(
      "number", [](MetadataWriter& json) { json.Int(1); },
      [](Payload& payload) { payload.text() = "first\n\nsecond"; });
  Stop();
  const auto records = testing::ParseLog(stream.str());
  CHECK(records.size() == 3);  // with libtrace_version and the name of this file
  CHECK(testing::FindRecord(records, "\"number\": 1")->payload == "first\n\nsecond");
}

}  // namespace
}  // namespace libtrace
