#include "facts/job/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "facts/text/compile_label.h"
#include "queries/facts/job/job.h"
#include "store/hash128.h"

namespace tlparse {

std::int32_t Job::Intern(std::string_view text) {
  const auto [found, is_new] =
      string_ids_.try_emplace(std::string(text), static_cast<std::int32_t>(strings_.size()));
  if (is_new) strings_.emplace_back(text);
  return found->second;
}

Result<Job> Job::Load(Database& database, std::string_view run_name,
                      const std::optional<std::int64_t>& launch) {
  Job job;
  ASSIGN_OR_RETURN(job.launch_, ChooseLaunch(database, run_name, launch));
  RETURN_IF_ERROR(job.TakeParticipants(database));
  RETURN_IF_ERROR(job.LoadCutRecords(database));
  RETURN_IF_ERROR(job.LoadCompiles(database));
  RETURN_IF_ERROR(job.LoadGraphs(database));
  RETURN_IF_ERROR(job.LoadVariants(database));
  job.whole_->records = job.records_;
  job.Align();
  return job;
}

void Job::Align() {
  FindSequenceClasses();
  AlignAll();
  FindEndPositions();
}

std::string Job::Title() const {
  return launch_.count > 1 ? fmt::format("run {}, launch {} of {}", launch_.run_name,
                                         launch_.ordinal, launch_.count)
                           : "run " + launch_.run_name;
}

Result<Job> Job::LoadWithoutLogs(Database& database, std::string_view run_name) {
  Job job;
  ASSIGN_OR_RETURN(job.launch_.run_id, FindRun(database, run_name));
  ASSIGN_OR_RETURN(job.launch_.run_name, NameOfRun(database, job.run_id()));
  ASSIGN_OR_RETURN(const FirstRow<RunWithoutLogs> run,
                   First(Query<RunWithoutLogs>(database, {.run_id = job.run_id()})));
  if (!run->is_without_logs)
    return Fail(ErrorCode::kNotFound, fmt::format("run '{}' has no profiles", job.run_name()));
  return job;
}

Result<void> Job::TakeParticipants(Database& database) {
  ASSIGN_OR_RETURN(std::vector<RunParticipant> logs, tlparse::LoadParticipants(database, run_id()));
  all_logs_ = std::make_shared<const std::vector<RunParticipant>>(std::move(logs));
  const std::vector<RunParticipant>& all = *all_logs_;
  const bool has_records = std::any_of(all.begin(), all.end(), [&](const RunParticipant& one) {
    return one.launch == launch() && !one.processes.empty();
  });
  for (const RunParticipant& one : all) {
    if (one.launch != launch()) continue;
    if (one.is_child) {
      children_.push_back({one.rank, one.name, one.processes.front().child_kind,
                           one.processes.front().parent_process_id});
      continue;
    }
    // A log without records says nothing about what its rank did: it is not compared.
    if (has_records && one.processes.empty()) {
      if (one.rank) ranks_without_records_.push_back(*one.rank);
      continue;
    }
    if (!one.copy_of.empty()) {
      copied_logs_.push_back({one.rank, one.log_path, one.copy_of, one.is_whole_copy});
      continue;
    }
    JobParticipant participant;
    participant.rank = one.rank;
    participant.first_record_id = one.first_record_id;
    participant.last_record_id = one.last_record_id;
    records_.Take(participant);
    participant.name = one.name;
    participant.is_extra_log = one.rank && one.log_number > 1;
    participant.script = one.script;
    participant.is_of_other_job = one.is_of_other_job;
    participant.is_of_second_job = one.is_of_second_job;
    participant.is_job_clear = one.is_job_clear;
    participant.log_path = one.log_path;
    // A forked child continues to write into its parent's log.
    const bool is_of_rank =
        std::any_of(one.processes.begin(), one.processes.end(),
                    [](const ParticipantProcess& process) { return process.child_kind.empty(); });
    for (const ParticipantProcess& process : one.processes) {
      if (!process.child_kind.empty() && is_of_rank) {
        children_.push_back(
            {one.rank, participant.name, process.child_kind, process.parent_process_id});
        continue;
      }
      participant_of_process_[process.id] = static_cast<RankIndex>(participants_.size());
      participant.process_ids.push_back(process.id);
      if (participant.torch_version.empty()) participant.torch_version = process.torch_version;
      if (participant.python_version.empty()) participant.python_version = process.python_version;
    }
    participants_.push_back(std::move(participant));
  }
  if (participants_.empty())
    return Fail(ErrorCode::kNotFound, fmt::format("run '{}' has no logs", run_name()));
  return {};
}

Result<void> Job::LoadCutRecords(Database& database) {
  FOR_EACH_ROW(const CutRecord& row, Query<CutRecord>(database, {.in_logs = InLogs("record_id")}))
    records_.cut.push_back(row.record_id);
  return {};
}

Result<void> Job::LoadCompiles(Database& database) {
  std::int64_t first_process = INT64_MAX, last_process = -1;
  for (const auto& [process, participant] : participant_of_process_) {
    first_process = std::min(first_process, process);
    last_process = std::max(last_process, process);
  }
  compiles_of_participant_.resize(participants_.size());
  std::vector<std::int64_t> synthetic_count(participants_.size());
  FOR_EACH_ROW(const CompileOfJob& row,
               Query<CompileOfJob>(database, {.run_id = run_id(),
                                              .first_process = first_process,
                                              .last_process = last_process})) {
    const RankIndex participant = ParticipantOfProcess(row.process_id);
    if (participant < 0) continue;
    JobCompile compile;
    compile.id = row.id;
    compile.participant = participant;
    compile.is_synthetic = row.is_synthetic;
    compile.label_id = Intern(CompileLabel(row.label, row.generation));
    // A synthetic label is a line number, which says nothing about other ranks: their order does.
    compile.key_id =
        compile.is_synthetic
            ? Intern(fmt::format("unknown#{}",
                                 synthetic_count[static_cast<std::size_t>(participant)]++))
            : Intern(row.label);
    if (row.function) compile.function_id = Intern(*row.function);
    if (row.file) compile.file_id = Intern(*row.file);
    compile.line = row.line;
    compile.status = CompileStatusFrom(row.status);
    compile.start_us = row.start_time_us;
    compile.stack_id = row.stack_id;
    compile.duration_us = row.duration_us;
    compile.backward_duration_us = row.backward_duration_us;
    compile.generation = static_cast<std::int32_t>(row.generation);
    AddCompile(compile);
  }
  return {};
}

void Job::AddCompile(const JobCompile& compile) {
  const auto index = static_cast<std::int32_t>(compiles_.size());
  compiles_of_participant_[static_cast<std::size_t>(compile.participant)].push_back(index);
  compiles_.push_back(compile);
}

Result<void> Job::LoadGraphs(Database& database) {
  std::int64_t last = -1, last_record = -1;
  FOR_EACH_ROW(
      const DynamoGraphOfCompile& row,
      Query<DynamoGraphOfCompile>(database, {.in_compiles = InCompiles("c.id"),
                                             .in_whole_records = InWholeRecords("t.record_id")})) {
    const std::int32_t index = IndexOfCompile(row.compile_id);
    if (index < 0 || (row.compile_id == last && row.record_id < last_record)) continue;
    last = row.compile_id;
    last_record = row.record_id;
    compiles_[static_cast<std::size_t>(index)].graph_content = row.content_id;
  }
  return {};
}

bool Job::IsWhole(std::int64_t record_id) const {
  return !std::binary_search(records_.cut.begin(), records_.cut.end(), record_id);
}

std::string Job::InCompiles(std::string_view column) const {
  return compiles_.empty() ? "0"
                           : fmt::format("{} BETWEEN {} AND {}", column, compiles_.front().id,
                                         compiles_.back().id);
}

// Their ids ascend, mostly without a gap.
std::int32_t Job::IndexOfCompile(std::int64_t compile_id) const {
  if (compiles_.empty() || compile_id < compiles_.front().id || compile_id > compiles_.back().id)
    return -1;
  const auto guess = static_cast<std::size_t>(compile_id - compiles_.front().id);
  if (guess < compiles_.size() && compiles_[guess].id == compile_id)
    return static_cast<std::int32_t>(guess);
  const auto found =
      std::lower_bound(compiles_.begin(), compiles_.end(), compile_id,
                       [](const JobCompile& one, std::int64_t id) { return one.id < id; });
  return found->id == compile_id ? static_cast<std::int32_t>(found - compiles_.begin()) : -1;
}

const JobCompile* Job::FindCompile(std::int64_t compile_id) const {
  const std::int32_t index = IndexOfCompile(compile_id);
  return index < 0 ? nullptr : &compiles_[static_cast<std::size_t>(index)];
}

RankIndex Job::ParticipantOfProcess(std::int64_t process_id) const {
  const auto found = participant_of_process_.find(process_id);
  return found == participant_of_process_.end() ? -1 : found->second;
}

std::string Job::NameRanks(const std::vector<RankIndex>& participants) const {
  const bool has_rank = std::any_of(participants.begin(), participants.end(), [&](RankIndex one) {
    return participants_[static_cast<std::size_t>(one)].rank.has_value();
  });
  const char* what = !has_rank ? "" : participants.size() == 1 ? "rank " : "ranks ";
  return what + FormatRanks(participants);
}

std::string Job::FormatRanks(const std::vector<RankIndex>& participants) const {
  std::vector<RankIndex> sorted = participants;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int64_t> ranks;
  std::string names;
  for (const RankIndex index : sorted) {
    const JobParticipant& participant = participants_[static_cast<std::size_t>(index)];
    if (participant.rank && !participant.is_extra_log) {
      ranks.push_back(*participant.rank);
    } else {
      names += (names.empty() ? "" : ",") + participant.name;
    }
  }
  const std::string ranges = FormatRankRanges(ranks);
  return ranges.empty() ? names : names.empty() ? ranges : ranges + ',' + names;
}

void Job::FindSequenceClasses() {
  std::unordered_map<Hash128, std::size_t, Hash128Hasher> classes;
  for (std::size_t i = 0; i < participants_.size(); ++i) {
    SequenceHash hash;
    for (const std::int32_t index : compiles_of_participant_[i]) {
      const JobCompile& compile = compiles_[static_cast<std::size_t>(index)];
      hash.Add(compile.key_id);
      hash.Add(compile.generation);
      hash.Add(compile.function_id);
      hash.Add(compile.file_id);
      hash.Add(compile.line);
      hash.Add(compile.graph_content);
    }
    const auto [found, is_new] = classes.try_emplace(hash.Digest(), sequence_classes_.size());
    if (is_new) sequence_classes_.emplace_back();
    sequence_classes_[found->second].push_back(static_cast<RankIndex>(i));
  }
  std::stable_sort(sequence_classes_.begin(), sequence_classes_.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

void Job::AlignAll() {
  compile_of_.resize(participants_.size());
  for (const std::vector<RankIndex>& members : sequence_classes_) AlignClass(members);
  for (std::vector<std::int32_t>& row : compile_of_) row.resize(slots_.size(), -1);
  slot_position_.resize(slots_.size());
  for (std::size_t i = 0; i < slot_order_.size(); ++i) {
    slot_position_[static_cast<std::size_t>(slot_order_[i])] = static_cast<std::int32_t>(i);
  }
}

void Job::FindEndPositions() {
  end_position_.assign(participants_.size(), INT32_MAX);
  for (std::size_t i = 0; i < participants_.size(); ++i) {
    const std::vector<std::int32_t>& own = compiles_of_participant_[i];
    const auto last = std::find_if(own.rbegin(), own.rend(), [&](std::int32_t index) {
      return !compiles_[static_cast<std::size_t>(index)].is_synthetic;
    });
    if (last == own.rend()) continue;
    const JobCompile& compile = compiles_[static_cast<std::size_t>(*last)];
    if (!IsFinished(compile.status)) end_position_[i] = SlotPosition(compile.slot);
  }
}

// The slot of each of these compiles; -1: none fits. The keys that agree most certainly are tried
// first.
std::vector<std::int32_t> Job::MatchSlots(const std::vector<std::int32_t>& compiles) const {
  std::vector<std::int32_t> slot_of(compiles.size(), -1);
  std::vector<char> is_taken(slots_.size());

  using Key = std::vector<std::int64_t>;
  // make_key: nothing if the compile does not qualify
  const auto pass = [&](auto&& make_key, bool is_of_any_value = false) {
    std::map<Key, std::deque<std::int32_t>> free_slots;
    for (const std::int32_t slot : slot_order_) {
      if (is_taken[static_cast<std::size_t>(slot)]) continue;
      if (std::optional<Key> key = make_key(slot_keys_[static_cast<std::size_t>(slot)]))
        free_slots[*key].push_back(slot);
    }
    if (free_slots.empty()) return;
    for (std::size_t i = 0; i < compiles.size(); ++i) {
      if (slot_of[i] >= 0) continue;
      const std::optional<Key> key = make_key(compiles_[static_cast<std::size_t>(compiles[i])]);
      if (!key) continue;
      const auto found = free_slots.find(*key);
      if (found == free_slots.end() || found->second.empty() ||
          AreApart(compiles_[static_cast<std::size_t>(compiles[i])],
                   slot_keys_[static_cast<std::size_t>(found->second.front())], is_of_any_value))
        continue;
      slot_of[i] = found->second.front();
      found->second.pop_front();
      is_taken[static_cast<std::size_t>(slot_of[i])] = 1;
    }
  };
  const auto when = [](bool qualifies, Key key) {
    return qualifies ? std::optional(std::move(key)) : std::nullopt;
  };
  pass([&](const JobCompile& c) {
    return when(true, {c.key_id, c.generation, c.function_id, c.line, c.graph_content});
  });
  pass([&](const JobCompile& c) {
    return when(c.variant_id >= 0, {c.variant_id, c.generation, c.function_id, c.file_id, c.line});
  });
  // The first compile of a function is that of the others, whatever it was given.
  const auto by_label = [&](const JobCompile& c) {
    return when(c.function_id >= 0, {c.key_id, c.generation, c.function_id, c.file_id, c.line});
  };
  pass(by_label);
  pass(by_label, true);
  pass([&](const JobCompile& c) {
    return when(c.graph_content != 0, {c.function_id, c.graph_content});
  });
  pass([&](const JobCompile& c) {
    return when(c.function_id >= 0, {c.key_id, c.generation, c.function_id});
  });
  pass([&](const JobCompile& c) {
    return when(c.function_id >= 0, {c.function_id, c.line, c.generation});
  });
  // Another job's compiles are no other compiles of this one.
  pass([&](const JobCompile& c) {
    const bool is_of_job = !participants_[static_cast<std::size_t>(c.participant)].is_of_other_job;
    return when(is_of_job, {c.key_id, c.generation});
  });
  return slot_of;
}

// Matches the compiles of the first member with the slots there are, and makes slots of those that
// match none. The other members have the same compiles.
void Job::AlignClass(const std::vector<RankIndex>& members) {
  const std::vector<std::int32_t>& compiles =
      compiles_of_participant_[static_cast<std::size_t>(members.front())];
  std::vector<std::int32_t> slot_of = MatchSlots(compiles);
  std::int32_t after = -1;  // the slot that new ones follow
  for (std::size_t i = 0; i < compiles.size(); ++i) {
    const JobCompile& compile = compiles_[static_cast<std::size_t>(compiles[i])];
    if (slot_of[i] < 0) {
      slot_of[i] = static_cast<std::int32_t>(slots_.size());
      slots_.push_back({string(compile.label_id),
                        compile.function_id < 0 ? std::string() : string(compile.function_id),
                        compile.file_id < 0 ? std::string() : string(compile.file_id),
                        compile.line});
      slot_keys_.push_back(compile);
      const auto place = std::find(slot_order_.begin(), slot_order_.end(), after);
      slot_order_.insert(after < 0 ? slot_order_.begin() : place + 1, slot_of[i]);
    }
    after = slot_of[i];
  }
  for (const RankIndex member : members) {
    std::vector<std::int32_t>& row = compile_of_[static_cast<std::size_t>(member)];
    row.assign(slots_.size(), -1);
    const std::vector<std::int32_t>& own =
        compiles_of_participant_[static_cast<std::size_t>(member)];
    for (std::size_t i = 0; i < own.size(); ++i) {
      row[static_cast<std::size_t>(slot_of[i])] = own[i];
      compiles_[static_cast<std::size_t>(own[i])].slot = slot_of[i];
    }
  }
}

}  // namespace tlparse
