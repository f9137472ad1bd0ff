#include "import/process_table.h"

#include <algorithm>

#include "tests/catch2.h"

using namespace tlparse;  // NOLINT: a test

namespace {

constexpr std::int64_t kHourUs = 3'600'000'000;
constexpr std::int64_t kDayUs = 24 * kHourUs;
constexpr std::int64_t kFirstUs = 325 * kDayUs;  // 21 November of a leap year
// 2026-11-21 00:00:00 UTC
const std::int64_t kMtimeUs = DaysFromCivil(2026, 11, 21) * kDayUs;

LogRecord Make(std::int64_t pid, std::string_view kind = "dynamo_start",
               std::optional<std::int64_t> rank = {}) {
  LogRecord record;
  record.prefix.time_us = kFirstUs;
  record.prefix.pid = pid;
  record.envelope.kind = kind;
  record.envelope.rank = rank;
  return record;
}

LogRecord InCompile(std::int64_t frame, std::string_view kind,
                    std::optional<std::int64_t> attempt = 0) {
  LogRecord record = Make(1, kind);
  record.envelope.frame_id = frame;
  record.envelope.frame_compile_id = 0;
  record.envelope.attempt = attempt;
  return record;
}

struct Table {
  std::int64_t next_process_id = 1;
  std::int64_t next_compile_id = 1;
  std::int64_t next_record_id = 1;
  ProcessTable table{next_process_id, next_compile_id, kMtimeUs, true};
  bool conflict = false;
  Process& For(const LogRecord& record) { return table.For(record, next_record_id++, &conflict); }
  CompileState* CompileFor(const LogRecord& record) {
    Process& process = For(record);
    return table.CompileFor(process, record, next_record_id - 1);
  }
};

}  // namespace

TEST_CASE("A process per pid, and per rank where a pid carries several", "[process_table]") {
  Table with;
  Process& first = with.For(Make(7));
  CHECK_FALSE(first.state.rank);
  CHECK(&with.For(Make(7, "str", 0)) == &first);  // the rank came late
  CHECK(first.state.rank == 0);
  CHECK(first.state.rank_source == "record");
  CHECK_FALSE(with.conflict);

  Process& other_rank = with.For(Make(7, "str", 1));
  CHECK(&other_rank != &first);
  CHECK(with.conflict);
  CHECK(&with.For(Make(7)) == &other_rank);  // without a rank: the latest one
  CHECK(&with.For(Make(7, "str", 0)) == &first);
  CHECK_FALSE(with.conflict);

  Process& other_pid = with.For(Make(8, "str", 0));
  CHECK(&other_pid != &first);
  CHECK_FALSE(with.conflict);
  CHECK(with.table.processes().size() == 3);
  CHECK(other_pid.state.id == 3);
}

TEST_CASE(
    "An aggregator's [rankN]: gives the rank without a conflict; the record's own comes first",
    "[process_table]") {
  Table with;
  LogRecord record = Make(7);
  record.prefix.rank = 4;
  CHECK(with.For(record).state.rank_source == "prefix");
  record.prefix.rank = 5;
  CHECK(with.For(record).state.rank == 5);
  CHECK_FALSE(with.conflict);
  record.envelope.rank = 6;
  CHECK(with.For(record).state.rank == 6);
}

TEST_CASE("Thread ids of early logs are one process per rank", "[process_table]") {
  Table with;
  Process& first = with.For(Make(140144363024384, "str", 0));
  CHECK(first.state.is_thread_id);
  CHECK(&with.For(Make(140144363024999, "str", 0)) == &first);
  CHECK(&with.For(Make(140144363024999)) == &first);
  CHECK(&with.For(Make(140144363024384, "str", 1)) != &first);
  CHECK_FALSE(with.conflict);
  CHECK_FALSE(with.For(Make(4194304)).state.is_thread_id);
}

TEST_CASE("A process finds strings of the one that wrote before it", "[process_table]") {
  Table with;
  with.For(Make(7)).state.strings[3] = "a.py";
  Process& child = with.For(Make(8));
  CHECK(child.state.String(3) == "a.py");
  child.state.strings[3] = "b.py";
  CHECK(child.state.String(3) == "b.py");
  CHECK_FALSE(child.state.String(4));
}

TEST_CASE("Records with the same ids are one compile, until it begins again", "[process_table]") {
  Table with;
  CompileState* compile = with.CompileFor(InCompile(0, "dynamo_start"));
  REQUIRE(compile != nullptr);
  CHECK(compile->label == "0/0");
  CHECK(with.CompileFor(InCompile(0, "dynamo_output_graph", 2)) == compile);
  CHECK(compile->has_output_graph);
  CHECK(compile->max_attempt == 2);
  CHECK(compile->first_record_id == 1);
  CHECK(compile->last_record_id == 2);
  CHECK(with.CompileFor(InCompile(1, "dynamo_start")) != compile);
  // Another attempt, not another compile
  CHECK(with.CompileFor(InCompile(0, "dynamo_start", 1)) == compile);
  // After torch._dynamo.reset()
  CompileState* again = with.CompileFor(InCompile(0, "dynamo_start"));
  CHECK(again != compile);
  CHECK(again->generation == 1);
  CHECK(with.CompileFor(InCompile(0, "dynamo_output_graph")) == again);
}

TEST_CASE("What precedes dynamo_start in a repeated compile belongs to the new one",
          "[process_table]") {
  for (const std::string_view payload : {"\t{\n\t\"name\": \"dynamo\",\n\t\"ph\": \"B\"\n\t}",
                                         "\t{\"name\": \"dynamo\", \"ph\": \"B\"}"}) {
    Table with;
    CompileState* compile = with.CompileFor(InCompile(0, "dynamo_start"));
    LogRecord event = InCompile(0, "chromium_event");
    event.raw_payload = "\t{\"name\": \"inductor_compile\", \"ph\": \"B\"}";
    CHECK(with.CompileFor(event) == compile);
    event.raw_payload = payload;
    CHECK(with.CompileFor(event) != compile);
  }
  Table with;
  CompileState* compile = with.CompileFor(InCompile(0, "dynamo_start"));
  LogRecord reasons = InCompile(0, "artifact");
  reasons.envelope.name = "recompile_reasons";
  CHECK(with.CompileFor(reasons) != compile);
}

TEST_CASE("Records without ids that only a compile writes are a synthetic compile",
          "[process_table]") {
  Table with;
  const auto record = [](std::string_view kind, bool has_stack, std::int64_t line,
                         std::string_view name = "") {
    LogRecord made = Make(1, kind);
    made.envelope.has_stack = has_stack;
    if (!name.empty()) made.envelope.name = name;
    made.line = line;
    return made;
  };
  // These belong to nothing and open nothing.
  for (const std::string_view kind : {"str", "link", "dump_file", "chromium_event"}) {
    CHECK(with.CompileFor(record(kind, true, 1)) == nullptr);
  }
  CHECK(with.CompileFor(record("artifact", true, 1, "torch_version")) == nullptr);
  CHECK(with.CompileFor(record("artifact", false, 2, "something")) == nullptr);
  // A stack where an id was expected, or a graph.
  CompileState* compile = with.CompileFor(record("artifact", true, 3, "fx_graph_runnable"));
  REQUIRE(compile != nullptr);
  CHECK(compile->is_synthetic);
  CHECK(compile->label == "unknown_3");
  CHECK(with.CompileFor(record("inductor_output_code", false, 4)) == compile);
  CHECK(with.CompileFor(record("chromium_event", false, 5)) == compile);
  CHECK(with.CompileFor(record("chromium_event", true, 6)) == compile);
  CHECK(with.CompileFor(record("str", false, 7)) == nullptr);
  CHECK(with.CompileFor(InCompile(0, "dynamo_start")) != compile);
  ProcessTable::EndSynthetic(with.For(record("str", false, 8)));
  CHECK(with.CompileFor(record("chromium_event", true, 9)) == nullptr);
  CHECK(with.CompileFor(record("aot_joint_graph", false, 10))->label == "unknown_10");
}

TEST_CASE("The clock is set by an event, else a cache lookup or metrics, else the file's time",
          "[process_clock]") {
  ProcessClock clock(kFirstUs, kMtimeUs, true);
  CHECK(clock.basis() == "file_mtime");
  CHECK(clock.shift_us() == 0);
  CHECK_FALSE(clock.utc_offset_s());
  const std::int64_t local_us = clock.LocalUs(kFirstUs + kHourUs);
  CHECK(local_us == kMtimeUs + kHourUs);
  clock.Note(kFirstUs + kHourUs, local_us - 2 * kHourUs, IngestContext::TimeBasis::kCacheEventTime);
  CHECK(clock.basis() == "cache_event_time");
  CHECK(clock.utc_offset_s() == 7200);
  clock.Note(kFirstUs + kHourUs, local_us, IngestContext::TimeBasis::kCompilationMetrics);  // later
  CHECK(clock.basis() == "cache_event_time");
  clock.Note(kFirstUs + kHourUs, local_us + 5 * kHourUs, IngestContext::TimeBasis::kChromiumEvent);
  CHECK(clock.basis() == "chromium_event");
  CHECK(clock.utc_offset_s() == -18000);
  CHECK(local_us + *clock.shift_us() == local_us + 5 * kHourUs);

  ProcessClock piped(kFirstUs, kMtimeUs, false);
  CHECK(piped.basis() == "none");
  CHECK_FALSE(piped.shift_us());
  piped.Note(kFirstUs, INT64_MAX, IngestContext::TimeBasis::kChromiumEvent);  // no such year
  CHECK(piped.basis() == "none");
  piped.Note(kFirstUs, kMtimeUs, IngestContext::TimeBasis::kCompilationMetrics);
  CHECK(piped.basis() == "compilation_metrics");
  CHECK(piped.shift_us() == 0);
}

TEST_CASE("Times of a process never decrease, over New Year and the end of summer time too",
          "[process_clock]") {
  ProcessClock clock(365 * kDayUs, kMtimeUs, true);  // 31 December
  const std::int64_t last_year = clock.LocalUs(365 * kDayUs + 23 * kHourUs);
  CHECK(clock.LocalUs(0) == last_year + kHourUs);
  CHECK(clock.LocalUs(365 * kDayUs) == last_year + kHourUs);  // a line that came late

  ProcessClock summer(kFirstUs, kMtimeUs, true);
  const std::int64_t before = summer.LocalUs(kFirstUs + kHourUs);
  summer.Note(kFirstUs + kHourUs, before - 2 * kHourUs, IngestContext::TimeBasis::kChromiumEvent);
  // An hour later the clock on the wall shows the same.
  summer.Note(kFirstUs + kHourUs, before - kHourUs, IngestContext::TimeBasis::kChromiumEvent);
  CHECK(summer.LocalUs(kFirstUs + kHourUs) == before);  // one event may be damaged
  summer.Note(kFirstUs + kHourUs, before - kHourUs, IngestContext::TimeBasis::kChromiumEvent);
  CHECK(summer.LocalUs(kFirstUs + kHourUs) == before + kHourUs);
}

TEST_CASE("One time that contradicts those around it does not move the others", "[process_clock]") {
  constexpr std::int64_t kSecondUs = 1'000'000;
  const auto at = [](std::int64_t seconds) { return kFirstUs + kHourUs + seconds * kSecondUs; };
  for (const std::int64_t wrong : {at(9 * 3600), at(100 * 86400), at(70)}) {
    ProcessClock clock(at(0), kMtimeUs, true);
    const std::int64_t first = clock.LocalUs(at(0));
    CHECK(clock.LocalUs(at(1)) == first + kSecondUs);
    clock.LocalUs(wrong);
    CHECK(clock.contradiction().empty());
    CHECK(clock.LocalUs(at(2)) == first + 2 * kSecondUs);
    CHECK_FALSE(clock.contradiction().empty());
    CHECK(clock.LocalUs(at(3)) == first + 3 * kSecondUs);
    CHECK(clock.contradiction().empty());
    CHECK(clock.last_local_us() == first + 3 * kSecondUs);
  }
  ProcessClock behind(at(0), kMtimeUs, true);
  const std::int64_t first = behind.LocalUs(at(0));
  CHECK(behind.LocalUs(at(1)) == first + kSecondUs);
  CHECK(behind.LocalUs(at(-3600)) == first + kSecondUs);
  CHECK(behind.LocalUs(at(2)) == first + 2 * kSecondUs);
  CHECK_FALSE(behind.contradiction().empty());

  ProcessClock begins_ahead(at(3600), kMtimeUs, true);
  begins_ahead.LocalUs(at(3600));
  const std::int64_t second = begins_ahead.LocalUs(at(0));
  CHECK_FALSE(begins_ahead.contradiction().empty());
  CHECK(begins_ahead.first_local_us() == second);
  CHECK(begins_ahead.LocalUs(at(1)) == second + kSecondUs);

  // Where several records have the later time, the clock was set back.
  ProcessClock set_back(at(0), kMtimeUs, true);
  const std::int64_t start = set_back.LocalUs(at(0));
  set_back.LocalUs(at(9));
  set_back.LocalUs(at(10));
  for (const int seconds : {3, 4, 8, 11}) {
    CHECK(set_back.LocalUs(at(seconds)) == start + std::max(seconds, 10) * kSecondUs);
    CHECK(set_back.contradiction().empty());
  }
}

TEST_CASE("A record with one of the two ids of a frame is of no compile", "[process_table]") {
  Table with;
  LogRecord record = InCompile(3, "chromium_event");
  record.envelope.frame_compile_id.reset();
  CHECK(with.CompileFor(record) == nullptr);
  record.envelope.frame_compile_id = 0;
  CHECK(with.CompileFor(record) != nullptr);
  record.envelope.frame_id.reset();
  CHECK(with.CompileFor(record) == nullptr);
}
