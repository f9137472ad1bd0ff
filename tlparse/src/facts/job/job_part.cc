// A part of a job that is in memory, and the records of both; and what ended beside its processes.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "facts/job/exits.h"
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

// Of the processes that `tlparse run` saw, those of a launch.
std::vector<std::int64_t> ProcessesOf(const Job& job) {
  std::vector<std::int64_t> ids;
  for (const JobParticipant& one : job.participants())
    ids.insert(ids.end(), one.process_ids.begin(), one.process_ids.end());
  return ids;
}

std::vector<ProcessExit> ExitsBeside(const std::vector<ProcessExit>& exits,
                                     const std::vector<std::int64_t>& process_ids) {
  const std::set<std::int64_t> ids(process_ids.begin(), process_ids.end());
  struct Span {
    std::int64_t from_us = INT64_MAX, to_us = INT64_MIN;
  };
  std::map<std::int64_t, Span> spans;  // by the run.json: hosts have clocks of their own
  std::set<std::int64_t> elsewhere;    // run.json of processes with other logs: of another launch
  for (const ProcessExit& one : exits) {
    if (!one.process_id) continue;
    if (!ids.contains(*one.process_id)) elsewhere.insert(one.profile_id);
    if (!ids.contains(*one.process_id) || !one.started_us) continue;
    Span& span = spans[one.profile_id];
    span.from_us = std::min(span.from_us, *one.started_us);
    span.to_us = std::max(span.to_us, one.ended_us.value_or(INT64_MAX));
  }
  std::vector<ProcessExit> beside = exits;
  std::erase_if(beside, [&](const ProcessExit& one) {
    const auto span = spans.find(one.profile_id);
    if (span == spans.end()) return !spans.empty() && elsewhere.contains(one.profile_id);
    if (!one.started_us) return false;
    const auto& [from_us, to_us] = span->second;
    const std::int64_t middle_us =
        *one.started_us + (std::min(one.ended_us.value_or(to_us), to_us) - *one.started_us) / 2;
    return middle_us < from_us || *one.started_us > to_us;
  });
  return beside;
}

}  // namespace tlparse
