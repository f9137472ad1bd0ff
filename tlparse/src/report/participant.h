// Assigns the directories of a report to the logs of a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/job/participants.h"
#include "report/output_directory.h"

namespace tlparse {

using ReportProcess = ParticipantProcess;

struct Participant : RunParticipant {
  std::string directory;  // "" is the root; else rank_0, rank_0_2, log_<stem>, launch_2/rank_0
  std::string title;      // for people
};

// The participants of a run in the order of LoadParticipants. Several participants have directories
// of their own: rank_<N>, a further log of a rank rank_<N>_<n>, without rank log_<stem>; those of a
// later launch are in launch_<M>/. A single one is in the root unless `force_directories`.
Result<std::vector<Participant>> FindParticipants(Database& database, std::int64_t run_id,
                                                  bool force_directories);

// The participant's directory below `root`, created if it does not exist. Not for the root itself.
Result<Directory> MakeDirectory(const Directory& root, const Participant& participant);

}  // namespace tlparse
