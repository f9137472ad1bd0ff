// Ranks whose logs end early: in which compile, and whether the times show that one was first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "facts/job/job_status.h"

namespace tlparse {

// A participant whose log ends inside a compile, or before compiles, or the backward of its last one,
// that most others have.
struct Stop {
  RankIndex rank = 0;
  std::int32_t position = -1;  // of its last compile among the job's
  // Inside a backward, which comes after all forwards: of the last of these. Else `position`.
  std::int32_t reach = -1;
  std::size_t backwards = 0;  // that are compiled
  bool is_inside = true;
  bool is_backward = false;  // inside the backward of that compile
  std::int64_t last_us = 0;
  std::int32_t next_slot = -1;     // not inside: the compile that the others went on to
  std::int32_t next_compile = -1;  // it on one of them: index into Job::compiles
  bool is_next_backward = false;   // its backward
  bool needs_all = false;          // that compile holds collectives
  std::string phase = {};          // the innermost event that is open; empty: unknown
  // Inside a collective of the compiler: the ranks that did not come to it.
  std::vector<RankIndex> awaited = {};
};

// The event in which a rank that traced a function waits until all ranks have (config
// enable_compiler_collectives; OutputGraph.run_compiler_collective, torch/_dynamo/output_graph.py).
inline constexpr std::string_view kCompilerCollective = "compiler_collective";

// Of a rank whose log ends inside an event in which all ranks wait for each other: those that began
// fewer of them. Each rank takes part in each of them, so the n-th of one rank is the n-th of all. Logs
// that are damaged do not show it.
Result<std::vector<RankIndex>> AwaitedRanks(const JobStatus& context, RankIndex rank,
                                            std::string_view event);

// Ordered by how far the logs go: by the last forward, inside it, behind it, inside a backward, by the
// number of backwards, then by time of the last record.
Result<std::vector<Stop>> FindStops(const JobStatus& context);

// The time of the last record of all logs of the launch; 0: none has a time.
std::int64_t LatestRecord(const JobStatus& context);

// Whether a rank whose log ends inside a compile stopped before the others: the time from its last
// record to the last record of the job is more than 50 ms plus twice the longest pause between two
// records of another rank inside the same event of this compile. (If a whole job is killed at once,
// the last records of its ranks also have different times.) False if no other rank has that event.
Result<bool> WasSilentBeforeOthers(const JobStatus& context, const Stop& stop);

}  // namespace tlparse
