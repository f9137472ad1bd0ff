// What the chunks of the page's data hold.
#include <algorithm>

#include "report/viewer/data.h"
#include "tests/report/report_fixture.h"

namespace tlparse {
namespace {

std::string Event(int pid, const std::string& name, int ts) {
  const std::string event =
      "{\"name\": \"" + name + "\", \"ph\": \"i\", \"ts\": " + std::to_string(ts) + "}";
  return LogRecordText("{\"chromium_event\": {}}", event.c_str(), pid);
}

// The records and the names of a process's events, as its chunk lists them.
std::string EventsOf(ViewerData& viewer, int process) {
  const Result<std::string> chunk = viewer.Chunk("events/" + std::to_string(process));
  REQUIRE(chunk);
  const std::size_t names = chunk->find('['), ids = chunk->find("\"record_id\":");
  return chunk->substr(names, chunk->find(']') + 1 - names) + " " +
         chunk->substr(ids, chunk->find(']', ids) + 1 - ids);
}

TEST_CASE("The events of a process are its own, whether processes are mixed or not",
          "[viewer_data]") {
  const TempDirectory directory;
  Database database = Ingested(
      directory, Event(11, "a", 1) + Event(12, "b", 2) + Event(11, "c", 3) + Event(12, "d", 4) +
                     Event(13, "e", 5) + LogRecordText("{\"str\": [\"x\", 1]}", nullptr, 13));
  auto viewer = ViewerData::Open(database, std::nullopt);
  REQUIRE(viewer);
  CHECK(EventsOf(*viewer, 1) == "[\"a\",\"c\"] \"record_id\":[1,3]");
  CHECK(EventsOf(*viewer, 2) == "[\"b\",\"d\"] \"record_id\":[2,4]");
  CHECK(EventsOf(*viewer, 3) == "[\"e\"] \"record_id\":[5]");
  const auto names = viewer->ChunkNames();
  REQUIRE(names);
  CHECK(std::count(names->begin(), names->end(), "args/0") == 1);
  CHECK(std::count(names->begin(), names->end(), "args/1") == 0);
}

TEST_CASE("What a chunk of the page leaves out is counted", "[viewer_data]") {
  const TempDirectory directory;
  const std::string ids = ", \"frame_id\": 0, \"frame_compile_id\": 0, \"attempt\": 0}";
  std::string schedule = "[\"all_gather\"";
  for (int i = 0; i < 200'006; ++i) schedule += ",\"a\"";
  const std::string event = "{\"name\": \"e\", \"ph\": \"i\", \"ts\": 1, \"args\": {\"a\": \"" +
                            std::string(20'000, 'v') + "\"}}";
  Database database = Ingested(
      directory, LogRecordText("{\"dynamo_start\": {\"stack\": []}" + ids) +
                     LogRecordText("{\"artifact\": {\"name\": \"inductor_collective_schedule\", "
                                   "\"encoding\": \"json\"}" +
                                       ids,
                                   (schedule + "]").c_str()) +
                     LogRecordText("{\"chromium_event\": {}}", event.c_str()));
  auto viewer = ViewerData::Open(database, std::nullopt);
  REQUIRE(viewer);
  const Result<std::string> schedules = viewer->Chunk("schedules");
  REQUIRE(schedules);
  CHECK(schedules->find("\"rows\":200000") != std::string::npos);
  CHECK(schedules->find("\"collectives\":[7]") != std::string::npos);
  CHECK(schedules->find("\"executions\":[0]") != std::string::npos);
  const Result<std::string> arguments = viewer->Chunk("args/0");
  REQUIRE(arguments);
  CHECK(arguments->find("\"length\":[" + std::to_string(event.size()) + "]") != std::string::npos);
  CHECK(arguments->size() < 2000);
}

}  // namespace
}  // namespace tlparse
