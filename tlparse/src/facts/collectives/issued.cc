#include "facts/collectives/issued.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "facts/collectives/arrivals.h"
#include "facts/collectives/issued_batches.h"
#include "facts/collectives/issued_callers.h"
#include "facts/collectives/issued_group.h"
#include "facts/collectives/issued_members.h"
#include "inputs/common/collective_op.h"
#include "queries/facts/collectives/issued.h"

namespace tlparse {
namespace {

std::string BaseName(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// The rows of one rank in one group, before they are split into epochs.
struct Loaded {
  std::map<std::pair<std::int64_t, std::string>, std::size_t> rank_of;  // (rank or -1, path if -1)
  using ByRank = std::map<std::size_t, std::vector<IssuedCollective>>;
  std::map<std::string, ByRank> groups;
  std::map<std::string, ByRank> messages;  // sends and receives
  std::map<std::string, std::string> descriptions;
};

// Gloo's entries stay "scheduled" until they are retired. Others are scheduled until their device
// starts them, which is discovered with TORCH_NCCL_ENABLE_TIMING only.
IssuedProgress ProgressInDump(const IssuedCollectiveRow& row,
                              const std::set<std::int64_t>& with_starts) {
  if (row.state == "completed" || row.end_ns) return IssuedProgress::kCompleted;
  if (row.is_retired) return IssuedProgress::kRetired;
  if (row.state == "started" || row.time_discovered_started_ns) return IssuedProgress::kStarted;
  const std::string_view backend = BackendOf(row.op);
  if (row.state != "scheduled" || backend == "gloo" || backend == "c10d")
    return IssuedProgress::kOpen;
  return with_starts.contains(row.profile_id) ? IssuedProgress::kNotStarted
                                              : IssuedProgress::kScheduled;
}

IssuedCollective CollectiveOf(const IssuedCollectiveRow& row,
                              const std::set<std::int64_t>& with_starts) {
  IssuedCollective one;
  one.sequence = row.sequence_number;
  one.op = row.op;
  one.plain_op = PlainCollective(one.op);
  one.shapes = row.input_shapes;
  one.dtype = row.dtype;
  one.reduce_op = row.reduce_op;
  one.state = row.state;
  one.source = row.kind == "flight_recorder" ? IssuedSource::kDump
               : row.kind == "kineto"        ? IssuedSource::kProfile
                                             : IssuedSource::kLibtrace;
  one.progress = one.IsRecorded()                         ? ProgressInDump(row, with_starts)
                 : one.state == "completed" || row.end_ns ? IssuedProgress::kCompleted
                 : one.source == IssuedSource::kProfile   ? IssuedProgress::kIssued
                                                          : IssuedProgress::kOpen;
  one.start_ns = row.start_ns;
  one.device_start_ns = row.device_start_ns.value_or(0);
  one.end_ns = row.end_ns.value_or(0);
  one.timeout_ms = row.timeout_ms;
  one.graph_id = row.graph_id;
  one.label = row.label;
  one.function = row.function;
  one.file = row.file;
  one.line = row.line;
  one.code_line = row.code_line;
  one.thread = row.thread_id;
  one.join_key = row.join_key;
  one.run_row_id = row.id;
  one.stack_id = row.stack_id;
  one.is_p2p = row.is_p2p;
  return one;
}

std::size_t RankOf(const IssuedCollectiveRow& row, Loaded& loaded, IssuedJob& job) {
  const std::string path(row.path);
  const auto [found, is_new] =
      loaded.rank_of.try_emplace({row.rank.value_or(-1), row.rank ? "" : path}, job.ranks.size());
  if (is_new)
    job.ranks.push_back(
        {row.rank, row.process_id, path, row.rank ? fmt::format("{}", *row.rank) : BaseName(path)});
  IssuingRank& one = job.ranks[found->second];
  if (!one.process_id) one.process_id = row.process_id;
  return found->second;
}

// Where there are dumps, they alone count: a profile of another rank sees other moments, and spells
// sizes and types in its own way. Whether there are dumps.
bool DropUnrecorded(Loaded& loaded) {
  bool has_dump = !loaded.messages.empty();
  for (const auto& [name, by_rank] : loaded.groups) {
    for (const auto& [rank, issued] : by_rank)
      has_dump |= std::any_of(issued.begin(), issued.end(),
                              [](const auto& one) { return one.IsRecorded(); });
  }
  if (!has_dump) return false;
  for (auto group = loaded.groups.begin(); group != loaded.groups.end();) {
    for (auto rank = group->second.begin(); rank != group->second.end();) {
      std::vector<IssuedCollective>& issued = rank->second;
      issued.erase(std::remove_if(issued.begin(), issued.end(),
                                  [](const auto& one) { return !one.IsRecorded(); }),
                   issued.end());
      rank = issued.empty() ? group->second.erase(rank) : std::next(rank);
    }
    group = group->second.empty() ? loaded.groups.erase(group) : std::next(group);
  }
  return true;
}

// Numbers start again when a group is reset: only those after the last reset are comparable.
void KeepLastEpoch(std::vector<IssuedCollective>& issued) {
  std::size_t begin = 0;
  for (std::size_t i = 1; i < issued.size(); ++i) {
    if (issued[i].sequence <= 1 && issued[i - 1].sequence > 1) begin = i;
  }
  issued.erase(issued.begin(), issued.begin() + static_cast<std::ptrdiff_t>(begin));
  std::stable_sort(issued.begin(), issued.end(),
                   [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
}

// The dumps of ranks that record when collectives start.
Result<std::set<std::int64_t>> LoadStartRecorders(Database& database, std::int64_t run_id) {
  std::set<std::int64_t> dumps;
  FOR_EACH_ROW(const DumpWithStarts& row, Query<DumpWithStarts>(database, {.run_id = run_id}))
    dumps.insert(row.profile_id);
  return dumps;
}

void CountSources(IssuedJob& job) {
  std::set<std::size_t> known;
  std::map<IssuedSource, std::set<std::size_t>> by_source;
  for (const IssuedGroup& group : job.groups) {
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      known.insert(group.ranks[i]);
      for (const IssuedCollective& one : group.issued[i])
        by_source[one.source].insert(group.ranks[i]);
    }
  }
  for (const MessageGroup& group : job.message_groups) {
    known.insert(group.ranks.begin(), group.ranks.end());
    by_source[IssuedSource::kDump].insert(group.ranks.begin(), group.ranks.end());
  }
  job.known_ranks = known.size();
  job.dump_ranks = by_source[IssuedSource::kDump].size();
  job.profile_ranks = by_source[IssuedSource::kProfile].size();
  job.libtrace_ranks = by_source[IssuedSource::kLibtrace].size();
}

// What IssuedCollectiveRow leaves out, and what DropUnrecorded drops.
Result<void> LoadNotCompared(Database& database, const std::optional<std::int64_t>& launch,
                             bool has_dump, IssuedJob& job) {
  FOR_EACH_ROW(const IssuedNotCompared& row,
               Query<IssuedNotCompared>(
                   database, {.run_id = job.run_id, .launch = launch, .has_dump = has_dump})) {
    job.not_compared.push_back({row.calls,
                                row.kind == "flight_recorder" ? "dumps"
                                : row.kind == "kineto"        ? "profiles"
                                                              : "logs of libtrace",
                                std::string(row.reason)});
  }
  return {};
}

std::string GroupTitle(const std::string& name, const std::string& description) {
  return description.empty() || description == "undefined"
             ? fmt::format("group {}", name)
             : fmt::format("group {} ({})", description, name);
}

// The calls of each group become those of `job`.
void TakeCalls(Loaded& loaded, IssuedJob& job) {
  for (auto& [name, by_rank] : loaded.groups) {
    IssuedGroup group;
    group.name = name;
    group.description = loaded.descriptions[name];
    for (auto& [rank, issued] : by_rank) {
      KeepLastEpoch(issued);
      SettleBatches(issued);
      group.ranks.push_back(rank);
      group.issued.push_back(std::move(issued));
    }
    SetArrivals(group);
    job.groups.push_back(std::move(group));
  }
  for (auto& [name, by_rank] : loaded.messages) {
    MessageGroup group;
    group.name = name;
    group.description = loaded.descriptions[name];
    std::int64_t unnamed = 0;
    for (auto& [rank, issued] : by_rank) {
      KeepLastEpoch(issued);
      SettleBatches(issued);
      std::vector<IssuedMessage> messages = MessagesOf(issued);
      for (const IssuedCollective& one : issued) {
        if (IsEndOfBatch(one) || one.op.find_first_of("<>") != one.op.npos) continue;
        ++unnamed;
        std::int64_t& open_ns = job.ranks[rank].open_message_ns;
        if (one.IsOpen() && (open_ns == 0 || one.start_ns < open_ns)) open_ns = one.start_ns;
      }
      if (messages.empty()) continue;
      group.ranks.push_back(rank);
      group.issued.push_back(std::move(messages));
    }
    if (unnamed > 0)
      job.not_compared.push_back(
          {unnamed, "dumps", "they are sends or receives whose names do not tell the peer"});
    if (!group.ranks.empty()) job.message_groups.push_back(std::move(group));
  }
}

// From the dumps of each rank; of a dump without a rank, by its path.
Result<void> LoadRankFacts(Database& database, IssuedJob& job) {
  std::map<std::int64_t, IssuingRank*> by_rank;
  std::map<std::string, IssuingRank*, std::less<>> by_path;
  for (IssuingRank& one : job.ranks) {
    if (one.rank) {
      by_rank[*one.rank] = &one;
    } else {
      by_path[one.path] = &one;
    }
  }
  FOR_EACH_ROW(const DumpFile& row, Query<DumpFile>(database, {.run_id = job.run_id})) {
    IssuingRank* rank = nullptr;
    if (row.rank) {
      const auto found = by_rank.find(*row.rank);
      if (found != by_rank.end()) rank = found->second;
    } else if (const auto found = by_path.find(row.path); found != by_path.end()) {
      rank = found->second;
    }
    if (rank == nullptr) continue;
    rank->has_file = true;
    rank->is_whole = rank->is_whole && row.first_entry == 0;
    rank->last_known_ns = std::max(rank->last_known_ns, row.end_us * 1000);
  }
  return {};
}

}  // namespace

std::string IssuedCollective::Place() const {
  if (file.empty()) return {};
  const std::string place = fmt::format("{}:{}", BaseName(file), line);
  return caller_file.empty()
             ? place
             : fmt::format("{}:{} (in {})", BaseName(caller_file), caller_line, place);
}

bool IssuedCollective::MayBeCallOf(const IssuedCollective& other) const {
  const auto agree = [](const std::string& a, const std::string& b) {
    return a.empty() || b.empty() || a == b;
  };
  if (plain_op != other.plain_op || !agree(reduce_op, other.reduce_op)) return false;
  if (!file.empty() && !other.file.empty())
    return Place() == other.Place() && agree(function, other.function);
  // A line without a graph is outside of graphs, one without a line has a graph if it was joined.
  const bool is_outside = label.empty() && !file.empty();
  const bool other_is_outside = other.label.empty() && !other.file.empty();
  if ((is_outside && !other.label.empty()) || (other_is_outside && !label.empty())) return false;
  return agree(function, other.function);
}

bool IssuedCollective::MayLookLike(const IssuedCollective& other) const {
  return op == other.op && shapes == other.shapes && dtype == other.dtype &&
         (label.empty() || other.label.empty() || label == other.label) && MayBeCallOf(other);
}

std::string IssuedCollective::Title() const {
  std::string title = PrintedOp();
  if (!shapes.empty() && shapes != "[]") {
    const bool is_single = shapes.find("],[") == std::string::npos && shapes.size() > 3;
    std::string spaced;
    for (const char c : is_single ? shapes.substr(1, shapes.size() - 2) : shapes) {
      spaced += c;
      if (c == ',') spaced += ' ';
    }
    title += " " + spaced;
  }
  if (!dtype.empty()) title += " " + dtype;
  if (!reduce_op.empty()) title += fmt::format(" '{}'", reduce_op);
  if (!label.empty()) title += fmt::format(" from graph {}", label);
  if (!file.empty()) title += fmt::format("{} {}", label.empty() ? " from" : ",", Place());
  return title;
}

std::string IssuedJob::Sources() const {
  std::string text;
  for (const auto& [what, count] :
       {std::pair("dumps", dump_ranks), std::pair("profiles", profile_ranks),
        std::pair("logs of libtrace", libtrace_ranks)}) {
    if (count > 0)
      text += fmt::format("{}the {} of {} {}", text.empty() ? "" : " and ", what, count,
                          count == 1 ? "rank" : "ranks");
  }
  const bool has_logs =
      std::any_of(ranks.begin(), ranks.end(), [](const auto& rank) { return !!rank.process_id; });
  if (has_logs && dump_ranks + profile_ranks > 0) text += ", joined with their logs";
  return text;
}

std::string IssuedGroup::Title() const { return GroupTitle(name, description); }
std::string MessageGroup::Title() const { return GroupTitle(name, description); }

std::vector<const IssuedCollective*> IssuedGroup::At(std::size_t position,
                                                     std::int64_t sequence) const {
  std::vector<const IssuedCollective*> found;
  const std::vector<IssuedCollective>& all = issued[position];
  auto at = std::lower_bound(
      all.begin(), all.end(), sequence,
      [](const IssuedCollective& one, std::int64_t number) { return one.sequence < number; });
  for (; at != all.end() && at->sequence == sequence; ++at) found.push_back(&*at);
  return found;
}

Result<IssuedJob> LoadIssued(Database& database, std::int64_t run_id,
                             const std::optional<std::int64_t>& launch) {
  IssuedJob job;
  job.run_id = run_id;
  Loaded loaded;
  IssuedCallers callers;
  ASSIGN_OR_RETURN(const std::set<std::int64_t> with_starts, LoadStartRecorders(database, run_id));
  FOR_EACH_ROW(const IssuedCollectiveRow& row,
               Query<IssuedCollectiveRow>(database, {.run_id = run_id, .launch = launch})) {
    const std::string group(row.group_name);
    auto& groups = row.is_p2p ? loaded.messages : loaded.groups;
    std::vector<IssuedCollective>& calls = groups[group][RankOf(row, loaded, job)];
    calls.push_back(CollectiveOf(row, with_starts));
    RETURN_IF_ERROR(callers.Set(database, row.stack_id, calls.back()));
    // TorchComms has the backend for a description.
    if (!row.group_desc.empty() && row.group_desc != BackendOf(row.op))
      loaded.descriptions[group] = row.group_desc;
  }
  const bool has_dump = DropUnrecorded(loaded);
  TakeCalls(loaded, job);
  RETURN_IF_ERROR(LoadRankFacts(database, job));
  CountSources(job);
  SetPace(job);
  if (has_dump) RETURN_IF_ERROR(LoadCutDumps(database, job));
  if (job.empty()) RETURN_IF_ERROR(AddDumpedRanks(database, job));
  if (has_dump || job.profile_ranks > 0) RETURN_IF_ERROR(LoadMembers(database, launch, job));
  RETURN_IF_ERROR(LoadNotCompared(database, launch, has_dump, job));
  ASSIGN_OR_RETURN(job.profiled_traffic, LoadProfiledTraffic(database, run_id));
  return job;
}

Result<std::vector<GraphProgress>> CompareWithSchedule(Database& database, const IssuedJob& job) {
  // The collectives of each rank and graph, in order of time.
  std::map<std::pair<std::size_t, std::int64_t>, std::vector<const IssuedCollective*>> by_graph;
  for (const IssuedGroup& group : job.groups) {
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      if (job.ranks[group.ranks[i]].is_cut) continue;
      for (const IssuedCollective& one : group.issued[i]) {
        if (one.graph_id != 0 && one.code_line != 0)
          by_graph[{group.ranks[i], one.graph_id}].push_back(&one);
      }
    }
  }
  ASSIGN_OR_RETURN(PreparedQuery<CodeCollective> code,
                   PreparedQuery<CodeCollective>::Make(database));
  std::vector<GraphProgress> all;
  for (auto& [key, issued] : by_graph) {
    std::stable_sort(issued.begin(), issued.end(),
                     [](const auto* a, const auto* b) { return a->start_ns < b->start_ns; });
    GraphProgress progress;
    progress.rank = key.first;
    progress.label = issued.back()->label;
    progress.function = issued.back()->function;
    progress.issued = issued.size();
    bool is_behind = false;
    FOR_EACH_ROW(const CodeCollective& row, code.Run({.graph_id = key.second})) {
      ++progress.scheduled;
      if (!is_behind)
        ++progress.reached;
      else if (progress.next.empty())
        progress.next = fmt::format("{} group {}, line {} of the generated code",
                                    PlainCollective(row.op), row.group_name, row.code_line);
      is_behind |= row.code_line == issued.back()->code_line;
    }
    if (is_behind) all.push_back(std::move(progress));
  }
  std::stable_sort(all.begin(), all.end(), [](const GraphProgress& a, const GraphProgress& b) {
    return std::pair(a.rank, a.label) < std::pair(b.rank, b.label);
  });
  return all;
}

}  // namespace tlparse
