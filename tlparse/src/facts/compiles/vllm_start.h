// How long vLLM took to start, by stage, as its own lines and the logs of its processes tell: from its
// first line, or from the start of its process where `tlparse run` saw it, to the end of the engine's
// initialisation, or to the line of the server that follows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Where a duration comes from.
enum class StartBasis : std::uint8_t {
  kSaid,   // by the line
  kClock,  // difference of the times of two lines, which are whole seconds
  kTrace,  // compiles in the log of the process
  kRest,   // of the stage that it is within
};
std::string_view Name(StartBasis basis);

// The time between the start of its process, as `tlparse run` saw it, and its first line.
inline constexpr std::string_view kStageBeforeFirstLine = "before_first_line";

struct StartStage {
  std::string_view name;    // "load", "compile", …; "not_attributed": what no other stage is
  std::string_view within;  // stage that it is a part of; empty: of the start itself
  double seconds = 0;
  StartBasis basis = StartBasis::kSaid;
  std::int64_t line = 0;  // of the file, that says it or ends it; 0: none does
  std::string note;  // of what an earlier start had compiled: whether it was loaded, or why not
};

struct VllmStart {
  std::int64_t run_id = 0;
  std::string path;    // of the text
  std::string engine;  // "EngineCore_DP1"; empty: the text has no names of processes
  std::optional<std::int64_t> engine_pid;
  std::string worker;  // whose stages these are: of several the one that took longest
  std::optional<std::int64_t> worker_pid;
  std::string began, ended;  // local times
  double seconds = 0;
  std::vector<StartStage>
      stages;  // each behind the one that it is within; the parts of a stage add up to it
};

// Of two runs that are compared.
struct VllmStartPair {
  VllmStart a, b;
};

// Of a file; all its lines are in vllm_line.
inline constexpr std::size_t kMostStarts = 1000;

// Those that came to their end, by file and time, of a file the first kMostStarts. Of all runs if none
// is given.
Result<std::vector<VllmStart>> LoadVllmStarts(Database& database,
                                              const std::optional<std::int64_t>& run_id);

}  // namespace tlparse
