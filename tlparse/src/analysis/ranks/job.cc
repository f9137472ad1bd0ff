#include "analysis/ranks/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "store/hash128.h"

namespace tlparse {
namespace {

std::string_view FileName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// "a/dedicated_log_torch_trace_rank_0_ab12cd34.log.gz" → without folders and endings.
std::string LogStem(std::string_view path) {
  std::string_view name = FileName(path);
  for (const std::string_view ending : {".gz", ".zst", ".log", ".txt"}) {
    if (name.size() > ending.size() && name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  return std::string(name == "-" ? "stdin" : name);
}

// What tells two logs of one rank apart: the random end of the name that PyTorch gives, else the
// whole name.
std::string LogSuffix(std::string_view path) {
  const std::string stem = LogStem(path);
  constexpr std::size_t kRandomSize = 8;
  if (stem.starts_with("dedicated_log_torch_trace_") && stem.size() > kRandomSize)
    return stem.substr(stem.size() - kRandomSize);
  return stem;
}

}  // namespace

std::string FormatRankRanges(const std::vector<std::int64_t>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(ranks[i]);
    if (end - i == 2) text += fmt::format(",{}", ranks[end - 1]);
    if (end - i > 2) text += fmt::format("-{}", ranks[end - 1]);
    i = end;
  }
  return text;
}

Result<std::int64_t> FindRun(Database& database, std::string_view run_name) {
  if (run_name.empty()) {
    ASSIGN_OR_RETURN(const std::int64_t latest, database.QueryInt("SELECT max(id) FROM run"));
    if (latest == 0)
      return Fail(ErrorCode::kNotFound,
                  fmt::format("the database '{}' holds no run", database.path()));
    return latest;
  }
  ASSIGN_OR_RETURN(Statement find, database.Prepare("SELECT id FROM run WHERE name = ?"));
  find.Bind(1, run_name);
  ASSIGN_OR_RETURN(const bool has_row, find.Step());
  if (has_row) return find.Int(0);
  ASSIGN_OR_RETURN(
      const std::string names,
      database.QueryText(
          "SELECT group_concat(name, ', ') FROM (SELECT name FROM run ORDER BY id LIMIT 20)"));
  return Fail(ErrorCode::kNotFound,
              fmt::format("no run '{}' in '{}'; there is: {}", run_name, database.path(), names));
}

std::string JobSlot::Title() const {
  std::string title = label;
  if (!function.empty()) title += ' ' + function;
  if (generation > 0) title += fmt::format(" (after reset {})", generation);
  return title;
}

std::int32_t Job::Intern(std::string_view text) {
  const auto [found, is_new] =
      string_ids_.try_emplace(std::string(text), static_cast<std::int32_t>(strings_.size()));
  if (is_new) strings_.emplace_back(text);
  return found->second;
}

Result<Job> Job::Load(Database& database, std::string_view run_name) {
  Job job;
  ASSIGN_OR_RETURN(job.run_id_, FindRun(database, run_name));
  ASSIGN_OR_RETURN(job.run_name_, database.QueryText(fmt::format(
                                      "SELECT name FROM run WHERE id = {}", job.run_id_)));
  RETURN_IF_ERROR(job.LoadParticipants(database));
  RETURN_IF_ERROR(job.LoadCompiles(database));
  RETURN_IF_ERROR(job.LoadGraphs(database));
  job.FindSequenceClasses();
  job.AlignAll();
  return job;
}

// A file with at most one rank is one participant: children that 2.6 lets write into their parent's
// file belong to it.
Result<void> Job::LoadParticipants(Database& database) {
  struct Row {
    std::int64_t process_id;
    std::optional<std::int64_t> rank;
    std::string torch_version, python_version;
  };
  struct File {
    std::string path;
    std::optional<std::int64_t> name_rank;
    std::vector<Row> processes;
  };
  std::map<std::int64_t, File> files;
  ASSIGN_OR_RETURN(Statement logs,
                   database.Prepare("SELECT id, path, name_rank FROM log_file WHERE run_id = ?"));
  logs.Bind(1, run_id_);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, logs.Step());
    if (!has_row) break;
    files[logs.Int(0)] = {std::string(logs.Text(1)), logs.OptionalInt(2), {}};
  }
  ASSIGN_OR_RETURN(
      Statement processes,
      database.Prepare("SELECT p.id, p.log_file_id, p.rank, p.torch_version, p.python_version "
                       "FROM process p JOIN log_file f ON f.id = p.log_file_id "
                       "WHERE f.run_id = ? ORDER BY p.id"));
  processes.Bind(1, run_id_);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, processes.Step());
    if (!has_row) break;
    files[processes.Int(1)].processes.push_back({processes.Int(0), processes.OptionalInt(2),
                                                 processes.OptionalText(3).value_or(""),
                                                 processes.OptionalText(4).value_or("")});
  }
  for (const auto& [id, file] : files) {
    std::set<std::int64_t> ranks;
    for (const Row& row : file.processes) {
      if (row.rank) ranks.insert(*row.rank);
    }
    std::map<std::optional<std::int64_t>, JobParticipant> by_rank;
    const std::optional<std::int64_t> only =
        ranks.empty() ? file.name_rank : std::optional(*ranks.begin());
    if (file.processes.empty()) by_rank[file.name_rank];
    for (const Row& row : file.processes) {
      JobParticipant& participant = by_rank[ranks.size() <= 1 ? only : row.rank];
      participant.process_ids.push_back(row.process_id);
      if (participant.torch_version.empty()) participant.torch_version = row.torch_version;
      if (participant.python_version.empty()) participant.python_version = row.python_version;
    }
    for (auto& [rank, participant] : by_rank) {
      participant.rank = rank;
      participant.log_path = file.path;
      participants_.push_back(std::move(participant));
    }
  }
  std::stable_sort(participants_.begin(), participants_.end(),
                   [](const JobParticipant& a, const JobParticipant& b) {
                     if (a.rank.has_value() != b.rank.has_value()) return a.rank.has_value();
                     return a.rank < b.rank;
                   });
  std::set<std::string> names;
  std::optional<std::int64_t> previous;
  for (std::size_t i = 0; i < participants_.size(); ++i) {
    JobParticipant& participant = participants_[i];
    if (participant.rank) {
      participant.is_extra_log = previous == participant.rank;
      previous = participant.rank;
      participant.name = std::to_string(*participant.rank);
      if (participant.is_extra_log) participant.name += '_' + LogSuffix(participant.log_path);
    } else {
      participant.name = "log:" + LogStem(participant.log_path);
    }
    const std::string base = participant.name;
    for (int n = 2; !names.insert(participant.name).second; ++n)
      participant.name = fmt::format("{}#{}", base, n);
    for (const std::int64_t process : participant.process_ids) {
      participant_of_process_[process] = static_cast<RankIndex>(i);
    }
  }
  if (participants_.empty())
    return Fail(ErrorCode::kNotFound, fmt::format("run '{}' has no logs", run_name_));
  return {};
}

Result<void> Job::LoadCompiles(Database& database) {
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "SELECT id, process_id, label, function, file, line, status, start_time_us, duration_us, "
          "backward_duration_us, generation, is_synthetic FROM compile ORDER BY id"));
  compiles_of_participant_.resize(participants_.size());
  std::vector<std::int64_t> synthetic_count(participants_.size());
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    const RankIndex participant = ParticipantOfProcess(rows.Int(1));
    if (participant < 0) continue;
    JobCompile compile;
    compile.id = rows.Int(0);
    compile.participant = participant;
    compile.is_synthetic = rows.Int(11) != 0;
    // A synthetic label is a line number, which says nothing about other ranks: their order does.
    compile.label_id =
        compile.is_synthetic
            ? Intern(fmt::format("unknown#{}",
                                 synthetic_count[static_cast<std::size_t>(participant)]++))
            : Intern(rows.Text(2));
    if (!rows.IsNull(3)) compile.function_id = Intern(rows.Text(3));
    if (!rows.IsNull(4)) compile.file_id = Intern(rows.Text(4));
    compile.line = rows.Int(5);
    compile.status_id = Intern(rows.Text(6));
    compile.start_us = rows.Int(7);
    compile.duration_us = rows.Int(8);
    compile.backward_duration_us = rows.Int(9);
    compile.generation = static_cast<std::int32_t>(rows.Int(10));
    const auto index = static_cast<std::int32_t>(compiles_.size());
    compile_index_.emplace(compile.id, index);
    compiles_of_participant_[static_cast<std::size_t>(participant)].push_back(index);
    compiles_.push_back(compile);
  }
  return {};
}

Result<void> Job::LoadGraphs(Database& database) {
  // The last one of a compile: earlier attempts were thrown away.
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "SELECT compile_id, content_id FROM graph_text_row WHERE stage_id IN "
          "(SELECT id FROM text_row WHERE text = 'dynamo_output_graph') ORDER BY record_id"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return {};
    const auto found = compile_index_.find(rows.Int(0));
    if (found != compile_index_.end())
      compiles_[static_cast<std::size_t>(found->second)].graph_content = rows.Int(1);
  }
}

const JobCompile* Job::FindCompile(std::int64_t compile_id) const {
  const auto found = compile_index_.find(compile_id);
  return found == compile_index_.end() ? nullptr
                                       : &compiles_[static_cast<std::size_t>(found->second)];
}

RankIndex Job::ParticipantOfProcess(std::int64_t process_id) const {
  const auto found = participant_of_process_.find(process_id);
  return found == participant_of_process_.end() ? -1 : found->second;
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
      hash.Add(compile.label_id);
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

// Matches one member's compiles with the slots there are, most certain agreement first, and makes
// slots of what is left.
void Job::AlignClass(const std::vector<RankIndex>& members) {
  const std::vector<std::int32_t>& compiles =
      compiles_of_participant_[static_cast<std::size_t>(members.front())];
  std::vector<std::int32_t> slot_of(compiles.size(), -1);
  std::vector<char> is_taken(slots_.size());

  using Key = std::vector<std::int64_t>;
  const auto pass = [&](auto&& make_key) {  // make_key: nothing if the compile does not qualify
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
      if (found == free_slots.end() || found->second.empty()) continue;
      slot_of[i] = found->second.front();
      found->second.pop_front();
      is_taken[static_cast<std::size_t>(slot_of[i])] = 1;
    }
  };
  const auto when = [](bool qualifies, Key key) {
    return qualifies ? std::optional(std::move(key)) : std::nullopt;
  };
  pass([&](const JobCompile& c) {
    return when(true, {c.label_id, c.generation, c.function_id, c.line, c.graph_content});
  });
  pass([&](const JobCompile& c) {
    return when(c.graph_content != 0, {c.function_id, c.graph_content});
  });
  pass([&](const JobCompile& c) {
    return when(c.function_id >= 0, {c.label_id, c.generation, c.function_id});
  });
  pass([&](const JobCompile& c) {
    return when(c.function_id >= 0, {c.function_id, c.line, c.generation});
  });
  pass([&](const JobCompile& c) { return when(true, {c.label_id, c.generation}); });

  std::int32_t after = -1;  // the slot that new ones follow
  for (std::size_t i = 0; i < compiles.size(); ++i) {
    const JobCompile& compile = compiles_[static_cast<std::size_t>(compiles[i])];
    if (slot_of[i] < 0) {
      slot_of[i] = static_cast<std::int32_t>(slots_.size());
      slots_.push_back({string(compile.label_id), compile.generation,
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
