// A job with the state of each of its participants at the end of its log.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/job/job.h"
#include "facts/job/log_damage.h"
#include "facts/job/status.h"
#include "facts/text/compile_label.h"
#include "store/database.h"

namespace tlparse {

// `database`, `job` and `damage` must outlive it.
struct JobStatus {
  Database& database;
  const Job& job;
  const LogDamage& damage;
  std::vector<ProcessStatus> status = {};  // by participant; process_id 0: its log has no record
  std::vector<ProcessStatus> others =
      {};  // the launch's other processes: children, helpers in one log
  bool has_ranks = false;

  static Result<JobStatus> Load(Database& database, const Job& job, const LogDamage& damage);

  const ProcessStatus& StatusOf(RankIndex participant) const {
    return status[static_cast<std::size_t>(participant)];
  }
  // The compile that a participant's log ends in or after; nullptr: none.
  const JobCompile* LastCompile(RankIndex participant) const {
    return job.FindCompile(StatusOf(participant).compile_id);
  }
  std::vector<RankIndex> All() const;
  // All participants but those; both ascending.
  std::vector<RankIndex> Others(const std::vector<RankIndex>& who) const;
  bool HasRanks() const { return has_ranks; }
  bool IsCut(RankIndex participant) const {
    return damage.is_cut[static_cast<std::size_t>(participant)] != 0;
  }
  // Where the data of a participant's compressed log end early; nothing: they do not.
  const std::optional<std::int64_t>& ReadableBytes(RankIndex participant) const {
    return damage.readable_bytes[static_cast<std::size_t>(participant)];
  }
};

// Empty: unknown.
const std::string& FunctionOfCompile(const Job& job, const JobCompile& compile);
// "0/0 forward"
std::string TitleOfCompile(const Job& job, const JobCompile& compile);

}  // namespace tlparse
