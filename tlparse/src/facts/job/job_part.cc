// A part of a job that is in memory, and the records of both.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "facts/job/job.h"

namespace tlparse {

void JobRecords::Take(const JobParticipant& one) {
  if (one.last_record_id < one.first_record_id) return;
  first_id = std::min(first_id, one.first_record_id);
  last_id = std::max(last_id, one.last_record_id);
}

std::string JobRecords::InLogs(std::string_view column) const {
  return fmt::format("{} BETWEEN {} AND {}", column, first_id, last_id);
}

std::string JobRecords::InWholeRecords(std::string_view column) const {
  if (cut.empty()) return InLogs(column);
  return fmt::format(
      "{} AND {} NOT IN (SELECT record_id "
      "FROM import_log WHERE code = 'payload_truncated' AND record_id IS NOT NULL)",
      InLogs(column), column);
}

Job Job::Part(const std::vector<RankIndex>& members) const {
  Job part;
  part.launch_ = launch_;
  part.whole_ = whole_;
  part.all_logs_ = all_logs_;
  part.children_ = children_;
  part.is_part_ = is_part_ || members.size() < participants_.size();
  part.strings_ = strings_;
  part.string_ids_ = string_ids_;
  std::vector<RankIndex> index_of(participants_.size(), -1);
  for (const RankIndex member : members) {
    const JobParticipant& one = participants_[static_cast<std::size_t>(member)];
    const auto index = static_cast<RankIndex>(part.participants_.size());
    index_of[static_cast<std::size_t>(member)] = index;
    for (const std::int64_t process : one.process_ids)
      part.participant_of_process_[process] = index;
    part.records_.Take(one);
    part.participants_.push_back(one);
  }
  std::copy_if(
      records_.cut.begin(), records_.cut.end(), std::back_inserter(part.records_.cut),
      [&](std::int64_t id) { return id >= part.records_.first_id && id <= part.records_.last_id; });
  part.compiles_of_participant_.resize(members.size());
  for (const JobCompile& of_whole : compiles_) {
    const RankIndex participant = index_of[static_cast<std::size_t>(of_whole.participant)];
    if (participant < 0) continue;
    JobCompile compile = of_whole;
    compile.participant = participant;
    compile.slot = -1;
    part.AddCompile(compile);
  }
  part.Align();
  return part;
}

}  // namespace tlparse
