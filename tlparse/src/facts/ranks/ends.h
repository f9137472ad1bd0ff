// How the processes of a launch ended, as far as known, and which of them ended first: by exit codes
// and signals that `tlparse run` saw, by records of failures, and by where logs end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "facts/job/job_status.h"
#include "facts/job/stops.h"

namespace tlparse {

// A rank whose last compile failed, after which its log has nothing: the failure ended it.
struct FailedEnd {
  RankIndex rank = 0;
  std::int64_t since_us = 0;
  std::string reason;  // empty: the log names no exception
};

// The ranks whose logs end early, in the order in which they stopped.
struct EndChain {
  std::vector<Stop> first;  // those that stopped before the others, at one place
  std::vector<Stop> later;
  bool is_everyone = false;  // all logs end inside compiles
  // False: which of them was the first to stop is not in the logs. `first` is then no cause.
  bool is_first_known = false;
  // Ranks whose logs end at the same time as these, outside compiles: they may have been first.
  std::vector<RankIndex> outside;
  // Of those the ranks that a recorder dump shows inside a collective that had not ended: they waited.
  std::vector<RankIndex> waiting;
  std::vector<FailedEnd> failures;  // in order of time
  // The failure after which the others stopped: index into `failures`, -1: none. A launcher ends the
  // other ranks after a failure. A log may be silent for long before that, as inside a C++ compiler;
  // the end of one that was silent for longer came first.
  int failure = -1;
};
Result<EndChain> FindEndChain(const JobStatus& job);

// Whether two logs end at one place of the program. Ranks may have compiled different functions there.
bool IsSamePlace(const JobStatus& job, const Stop& a, const Stop& b);

enum class EndKind : std::uint8_t {
  kFinished,  // it returned exit code 0
  kFailed,  // it returned another one; or its last compile failed, and its log has nothing after that
  kKilled,   // a signal ended it
  kSilent,   // its log ends; how the process did is not in the inputs
  kRunning,  // it lived on when the command of its run.json had ended
};
// "finished", "failed", "killed", "silent", "running": process_end.kind.
std::string_view Name(EndKind kind);

struct ProcessEnd {
  std::int64_t process_id = 0;
  EndKind kind = EndKind::kSilent;
  std::optional<std::int64_t> last_us;  // when it ended; not known: its last record
  std::optional<std::int64_t> exit_code, signal;
  bool is_bystander = false;  // it stopped after another had failed or stopped
  std::optional<std::int64_t> ended_by_process_id;  // that one, where it has a log
  std::string evidence;                             // a clause: "its log ends inside 0/0 block"
};
// Of all processes of the launch with records, children included, copies excluded.
Result<std::vector<ProcessEnd>> FindProcessEnds(const JobStatus& job);

}  // namespace tlparse
