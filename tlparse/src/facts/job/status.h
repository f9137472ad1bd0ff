// The state of each process of a launch at the end of its log: view rank_status as structs. The
// answer of `tlparse status`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "facts/job/participants.h"
#include "store/database.h"

namespace tlparse {

enum class RankState : std::uint8_t { kCompiling, kBetweenCompiles, kFailed };
// "compiling", "between_compiles", "failed".
std::string_view Name(RankState state);

// Unknown strings are empty and unknown ids 0; times are microseconds since the epoch.
struct ProcessStatus {
  std::int64_t launch = 1;
  std::optional<std::int64_t> rank;
  std::string name;  // of the rank: "3", "3#2" of a further log of it
  std::int64_t pid = 0;
  RankState state = RankState::kBetweenCompiles;
  std::string compile;       // label of the last compile
  std::string function;      // of it
  bool is_backward = false;  // compiling: its backward
  std::string phase;         // the innermost event that is open
  std::optional<std::int64_t> since_us;
  std::optional<std::int64_t> first_record_us, last_record_us;
  std::int64_t compiles_done = 0;
  std::int64_t process_id = 0;
  std::int64_t compile_id = 0;
  std::int64_t open_record_id = 0;  // the record of that event
  std::string log_path;
  // The compressed log is cut or damaged and can be read up to this byte of its text: the state is
  // that at the last record before. Nothing: it was read whole.
  std::optional<std::int64_t> readable_bytes;

  // "0/0 forward", "the backward of 0/0 forward"; empty: no compile.
  std::string Title() const;
};

struct StatusAnswer {
  std::string run;
  std::int64_t launch = 1;
  std::int64_t launch_count = 1;
  // Logs of the launch without a record, which have no row.
  struct EmptyLog {
    std::optional<std::int64_t> rank;  // of the file's name
    std::string path;
  };
  std::vector<EmptyLog> empty_logs;
  std::vector<ProcessStatus> rows;  // by rank (without rank last), then process
  // Profiles, dumps and other files beside logs, which have no state.
  struct OtherFiles {
    std::string kind;  // profile_kind.name
    std::int64_t count = 0;
    std::vector<std::int64_t> ranks;  // that they name, ascending
  };
  std::vector<OtherFiles> other_files;  // by kind
  // "4 processes"; of a run without logs "no log, 3 recorder dumps of ranks 0-2".
  std::string Contents() const;
};

struct StatusOptions {
  std::string run;                     // empty: the latest
  std::optional<std::int64_t> launch;  // ordinal; nothing: the latest
};
// kNotFound: no such run or launch.
Result<StatusAnswer> AnalyzeStatus(Database& database, const StatusOptions& options);
// Of a launch whose participants are loaded, those of its whole run.
Result<StatusAnswer> AnalyzeStatusOf(Database& database, const ChosenLaunch& launch,
                                     const std::vector<RunParticipant>& participants);

}  // namespace tlparse
