// Where the time of compiles went, of the timed events (Chromium events) of a process.
//
// Each moment counts once, for the event that began last of those that are open: so the parts add
// up to the time in which an event or a compile was under way. What is in a compile but in no event
// is not attributed. Events of compile workers, which overlap those of the main thread without
// being nested in them, count by the same rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// What PyTorch's metrics count of a compile, by the events that they are measured with; each
// without those inside of it.
enum class TimedPhase : std::uint8_t {
  kOther,  // in none of the others
  kDynamo,
  kAotAutograd,
  kInductor,  // without its generation of code
  kCodeGeneration,
  kBackward  // all that compiles the backward when it is first called
};

// The phase of an event by its name and the phase of the event around it.
TimedPhase PhaseInside(std::string_view name, TimedPhase outer);

// A name below the names of the events around it, in one compile: a tree. An event is below the one
// that began last of those that contain it and are of its compile, but never below its own name.
struct TimeNode {
  std::optional<std::size_t> parent = {};  // index; always smaller
  std::size_t group = 0;                   // of ProcessTimes::compiles
  std::string name;
  TimedPhase phase = TimedPhase::kOther;
  double self_us = 0;
  std::int64_t count = 0;
};

// A name in one phase of a compile. total_us: an event of it was open.
struct TimeOfName {
  std::size_t group = 0;
  TimedPhase phase = TimedPhase::kOther;
  std::string name;
  double self_us = 0, total_us = 0, max_us = 0;
  std::int64_t count = 0;
};

struct TimeOfCompile {
  std::optional<std::int64_t> compile_id;  // nothing: events outside of compiles
  double self_us = 0;                      // of its events, and not attributed
  double total_us = 0;                     // with what began inside of it
  double not_attributed_us = 0;
  std::int64_t events = 0;
};

struct ProcessTimes {
  std::vector<TimeOfCompile> compiles;
  std::vector<TimeOfName> names;
  std::vector<TimeNode> nodes;
};

// What began in it, in microseconds since the epoch.
struct TimeWindow {
  std::int64_t from_us = INT64_MIN, until_us = INT64_MAX;
  bool Has(double us) const {
    return us >= static_cast<double>(from_us) && us < static_cast<double>(until_us);
  }
};

// Empty where the log has no timed events and no compile of known time.
Result<ProcessTimes> LoadProcessTimes(Database& database, std::int64_t process_id,
                                      const TimeWindow& window = {});

}  // namespace tlparse
