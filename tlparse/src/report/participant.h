// Which logs of a run get which directory of a report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tlparse {

class Database;

struct ReportProcess {
  std::int64_t id = 0;
  std::int64_t pid = 0;
  std::optional<std::int64_t> time_shift_us;  // local_us + this = microseconds since the epoch
  std::int64_t first_record_id = 0;           // its records lie between these two
  std::int64_t last_record_id = 0;
};

// One log, or one rank of a log that holds several.
struct Participant {
  std::string directory;  // "" is the root; else one component: rank_0, rank_0_ab12cd34, log_<stem>
  std::string title;      // for people
  std::optional<std::int64_t> rank;
  bool rank_in_records = false;  // the rank was read from records, not from the file's name
  std::string log_path;
  std::int64_t first_record_id = 0;  // inclusive; 0 and -1: no records
  std::int64_t last_record_id = -1;
  bool whole_log = true;  // else only records of `processes`
  std::vector<ReportProcess> processes;

  const ReportProcess* Process(std::int64_t id) const;
};

// The participants of a run, by rank (unranked last), then by file. A file with at most one rank is
// one participant (forked children without a rank included). Several participants have directories
// of their own: the first log of a rank is rank_<N>, later ones rank_<N>_<suffix>; unranked ones
// are log_<stem>. A single one stands in the root unless `force_directories`.
Result<std::vector<Participant>> FindParticipants(Database& database, std::int64_t run_id,
                                                  bool force_directories);

}  // namespace tlparse
