// Ranks whose logs end early: in which compile, and whether the times show that one was first.
// Internal to analysis/findings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/findings/context.h"
#include "base/result.h"

namespace tlparse {

// A participant whose log ends inside a compile, or before compiles that most others have.
struct Stop {
  RankIndex rank = 0;
  std::int32_t position = -1;  // of its last compile among the job's
  bool is_inside = true;
  bool is_backward = false;  // inside the backward of that compile
  std::int64_t last_us = 0;
  std::int32_t next_slot = -1;  // not inside: the compile that the others went on to
  std::string phase = {};       // the innermost event that is open; empty: unknown
};

// Ordered by compile, forward before backward, then by time of the last record.
std::vector<Stop> FindStops(const FindingContext& context);

// The time of the last record of all logs of the launch; 0: none has a time.
std::int64_t LatestRecord(const FindingContext& context);

// Whether a rank that ends inside a compile was silent while others still wrote, for more than
// twice as long as the others ever were inside the same event of this compile, and 50 ms. Only then
// did it stop before them: where a whole job is killed, the last records of its ranks lie apart as
// well. No: no other rank has that event.
Result<bool> WasSilentBeforeOthers(const FindingContext& context, const Stop& stop);

}  // namespace tlparse
