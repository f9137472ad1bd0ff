// Recompiles as series: what one guard of one function failed on, in order, over all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/job/asked_participant.h"
#include "store/database.h"

namespace tlparse {

struct RecompileSeries {
  std::string run;
  std::optional<std::int64_t> launch;  // ordinal
  std::string function, file;
  std::int64_t line = 0;  // of the function; 0: unknown
  std::string guard;      // what was compared, "size 0 of x"; else the guard
  std::string at;         // its line, where the guard names only generated code
  // In order: what compiles were made for, and what came; of the process that recompiled most.
  std::vector<std::string> values;
  // Whose the values are, if others have others; nothing of both: every process has these, or the
  // first of them.
  std::optional<std::int64_t> values_rank, values_pid;
  std::string user_file;  // where the guard comes from; empty: unknown
  std::int64_t user_line = 0;
  // Recompiles and attempts that the recompile limit refused, of the rank that has most of both.
  std::int64_t recompiles = 0, refused = 0;
  std::int64_t least_recompiles = 0;  // of the rank that has fewest
  // Of this function, whatever the guard.
  bool is_limit_reached = false;
  std::optional<double> seconds_lost;  // by its recompiles, of the rank that lost most
  // How long another rank waited in collectives for the rank that recompiled the forward, while it did so; of the
  // rank for which they waited longest. Nothing: no recorder dump tells.
  std::optional<double> others_waited_s;
  std::vector<std::string> compiles;  // labels, of the first rank
  std::vector<std::int64_t> ranks;    // ascending
  std::vector<std::int64_t> pids;     // of processes without a rank
  bool is_of_torch_logs = false;      // from text, not from a structured trace
};

// Nothing: all.
struct RecompileFilter {
  AskedParticipant asked;
  std::optional<std::int64_t> run_id, launch;
};

// Of one earlier compile that was tried each time, that of ComparedValues::Telling: older ones fail again
// and again. Those of functions that reached the limit first, then by seconds lost.
Result<std::vector<RecompileSeries>> FindRecompileSeries(Database& database,
                                                         const RecompileFilter& filter);

}  // namespace tlparse
