#include "analysis/collectives/issued.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/collectives/issued_members.h"
#include "runtime/collective_op.h"

namespace tlparse {
namespace {

std::string BaseName(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// The rows of one rank in one group, before they are split into epochs.
struct Loaded {
  std::map<std::pair<std::int64_t, std::string>, std::size_t> rank_of;  // (rank or -1, path if -1)
  std::map<std::string, std::map<std::size_t, std::vector<IssuedCollective>>> groups;
  std::map<std::string, std::string> descriptions;
};

constexpr std::string_view kIssuedQuery =
    "SELECT c.rank, c.process_id, coalesce(p.path, 'libtrace'), c.group_name, c.sequence_number, "
    "c.op, c.input_shapes, c.dtype, c.reduce_op, c.state, e.is_retired, c.start_ns, c.end_ns, "
    "e.timeout_ms, c.graph_id, k.label, k.function, c.file, c.line, c.code_line, e.thread_id, "
    "c.join_key, c.id, e.group_desc, p.kind, e.time_discovered_started_ns, c.profile_id "
    "FROM collective_run c LEFT JOIN profile p ON p.id = c.profile_id "
    "LEFT JOIN recorder_entry e ON e.id = c.entry_id LEFT JOIN graph g ON g.id = c.graph_id "
    "LEFT JOIN compile k ON k.id = g.compile_id LEFT JOIN process q ON q.id = c.process_id "
    "LEFT JOIN log_file f ON f.id = q.log_file_id LEFT JOIN launch n ON n.id = q.launch_id "
    "WHERE c.peer_id IS NULL AND c.is_p2p = 0 "
    "AND c.group_name IS NOT NULL AND c.sequence_number IS NOT NULL AND c.start_ns IS NOT NULL "
    "AND coalesce(p.run_id, f.run_id) = ?1 AND (?2 IS NULL OR n.ordinal IS NULL OR n.ordinal = ?2) "
    "ORDER BY c.rank IS NULL, c.rank, 3, c.start_ns, e.recorder_id, c.id";

// Gloo's entries stay "scheduled" until they are retired. Others are scheduled until their device
// starts them, which is discovered with TORCH_NCCL_ENABLE_TIMING only.
IssuedProgress ProgressInDump(const Statement& row, std::string_view op, std::string_view state,
                              const std::set<std::int64_t>& with_starts) {
  if (state == "completed" || !row.IsNull(12)) return IssuedProgress::kCompleted;
  if (row.Int(10) == 1) return IssuedProgress::kRetired;
  if (state == "started" || !row.IsNull(25)) return IssuedProgress::kStarted;
  const std::string_view backend = BackendOf(op);
  if (state != "scheduled" || backend == "gloo" || backend == "c10d") return IssuedProgress::kOpen;
  return with_starts.count(row.Int(26)) > 0 ? IssuedProgress::kNotStarted
                                            : IssuedProgress::kScheduled;
}

IssuedCollective CollectiveOf(const Statement& row, const std::set<std::int64_t>& with_starts) {
  IssuedCollective one;
  one.sequence = row.Int(4);
  one.op = row.Text(5);
  one.plain_op = PlainCollective(one.op);
  one.shapes = row.Text(6);
  one.dtype = row.Text(7);
  one.reduce_op = row.Text(8);
  one.state = row.Text(9);
  one.source = row.Text(24) == "flight_recorder" ? IssuedSource::kDump
               : row.Text(24) == "kineto"        ? IssuedSource::kProfile
                                                 : IssuedSource::kLibtrace;
  one.progress = one.IsRecorded() ? ProgressInDump(row, one.op, one.state, with_starts)
                 : one.state == "completed" || !row.IsNull(12) ? IssuedProgress::kCompleted
                 : one.source == IssuedSource::kProfile        ? IssuedProgress::kIssued
                                                               : IssuedProgress::kOpen;
  one.start_ns = row.Int(11);
  one.end_ns = row.Int(12);
  one.timeout_ms = row.Int(13);
  one.graph_id = row.Int(14);
  one.label = row.Text(15);
  one.function = row.Text(16);
  one.file = row.Text(17);
  one.line = row.Int(18);
  one.code_line = row.Int(19);
  one.thread = row.Text(20);
  one.join_key = row.Text(21);
  one.run_row_id = row.Int(22);
  return one;
}

std::size_t RankOf(const Statement& row, Loaded& loaded, IssuedJob& job) {
  const std::string path(row.Text(2));
  const std::optional<std::int64_t> rank = row.OptionalInt(0);
  const auto [found, is_new] =
      loaded.rank_of.try_emplace({rank.value_or(-1), rank ? "" : path}, job.ranks.size());
  if (is_new)
    job.ranks.push_back(
        {rank, row.OptionalInt(1), path, rank ? fmt::format("{}", *rank) : BaseName(path)});
  IssuingRank& one = job.ranks[found->second];
  if (!one.process_id) one.process_id = row.OptionalInt(1);
  return found->second;
}

// Where there are dumps, they alone count: a profile of another rank sees other moments, and spells
// sizes and types in its own way. Whether there are dumps.
bool DropUnrecorded(Loaded& loaded) {
  bool has_dump = false;
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
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare("SELECT DISTINCT e.profile_id "
                       "FROM recorder_entry_row e JOIN profile p ON p.id = e.profile_id "
                       "WHERE p.run_id = ? "
                       "AND (e.state = 'started' OR e.time_discovered_started_ns IS NOT NULL)"));
  rows.Bind(1, run_id);
  std::set<std::int64_t> dumps;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return dumps;
    dumps.insert(rows.Int(0));
  }
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
  job.known_ranks = known.size();
  job.dump_ranks = by_source[IssuedSource::kDump].size();
  job.profile_ranks = by_source[IssuedSource::kProfile].size();
  job.libtrace_ranks = by_source[IssuedSource::kLibtrace].size();
}

// What kIssuedQuery leaves out, and what DropUnrecorded drops.
Result<void> LoadNotCompared(Database& database, const std::optional<std::int64_t>& launch,
                             bool has_dump, IssuedJob& job) {
  constexpr std::string_view kReasons[] = {
      "they are sends or receives", "they have neither a group nor a sequence number",
      "they have no group",         "they have no sequence number",
      "they have no time",          "where there are recorder dumps, these alone are compared",
  };
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "SELECT p.kind, CASE WHEN c.is_p2p = 1 THEN 0 WHEN c.group_name IS NULL "
          "AND c.sequence_number IS NULL THEN 1 WHEN c.group_name IS NULL THEN 2 "
          "WHEN c.sequence_number IS NULL THEN 3 WHEN c.start_ns IS NULL THEN 4 WHEN ?3 "
          "AND p.kind <> 'flight_recorder' THEN 5 END AS reason, count(*) "
          "FROM collective_run c JOIN profile p ON p.id = c.profile_id "
          "LEFT JOIN process q ON q.id = c.process_id LEFT JOIN launch n ON n.id = q.launch_id "
          "WHERE c.peer_id IS NULL "
          "AND p.run_id = ?1 AND (?2 IS NULL OR n.ordinal IS NULL OR n.ordinal = ?2) "
          "GROUP BY 1, 2 HAVING reason IS NOT NULL ORDER BY 1, 2"));
  rows.Bind(1, job.run_id);
  rows.Bind(2, launch);
  rows.Bind(3, std::int64_t{has_dump});
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return {};
    const std::string_view kind = rows.Text(0);
    job.not_compared.push_back({rows.Int(2),
                                kind == "flight_recorder" ? "dumps"
                                : kind == "kineto"        ? "profiles"
                                                          : "logs of libtrace",
                                kReasons[rows.Int(1)]});
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
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare("SELECT p.rank, p.path, p.end_us, e.first "
                       "FROM profile p LEFT JOIN (SELECT profile_id, min(recorder_id) AS first "
                       "FROM recorder_entry_row GROUP BY profile_id) e ON e.profile_id = p.id "
                       "WHERE p.run_id = ? AND p.kind = 'flight_recorder'"));
  rows.Bind(1, job.run_id);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return {};
    IssuingRank* rank = nullptr;
    if (!rows.IsNull(0)) {
      const auto found = by_rank.find(rows.Int(0));
      if (found != by_rank.end()) rank = found->second;
    } else if (const auto found = by_path.find(rows.Text(1)); found != by_path.end()) {
      rank = found->second;
    }
    if (rank == nullptr) continue;
    rank->has_file = true;
    rank->is_whole = rank->is_whole && rows.Int(3) == 0;
    rank->last_known_ns = std::max(rank->last_known_ns, rows.Int(2) * 1000);
  }
}

}  // namespace

std::string IssuedCollective::Place() const {
  return file.empty() ? std::string() : fmt::format("{}:{}", BaseName(file), line);
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

std::string IssuedGroup::Title() const {
  return description.empty() || description == "undefined"
             ? fmt::format("group {}", name)
             : fmt::format("group {} ({})", description, name);
}

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
  ASSIGN_OR_RETURN(const std::set<std::int64_t> with_starts, LoadStartRecorders(database, run_id));
  ASSIGN_OR_RETURN(Statement rows, database.Prepare(kIssuedQuery));
  rows.Bind(1, run_id);
  rows.Bind(2, launch);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    const std::size_t rank = RankOf(rows, loaded, job);
    const std::string group(rows.Text(3));
    loaded.groups[group][rank].push_back(CollectiveOf(rows, with_starts));
    if (!rows.IsNull(23)) loaded.descriptions[group] = rows.Text(23);
  }
  const bool has_dump = DropUnrecorded(loaded);
  for (auto& [name, by_rank] : loaded.groups) {
    IssuedGroup group;
    group.name = name;
    group.description = loaded.descriptions[name];
    for (auto& [rank, issued] : by_rank) {
      KeepLastEpoch(issued);
      group.ranks.push_back(rank);
      group.issued.push_back(std::move(issued));
    }
    job.groups.push_back(std::move(group));
  }
  RETURN_IF_ERROR(LoadRankFacts(database, job));
  CountSources(job);
  if (has_dump) RETURN_IF_ERROR(LoadCutDumps(database, job));
  if (has_dump || job.profile_ranks > 0) RETURN_IF_ERROR(LoadMembers(database, launch, job));
  RETURN_IF_ERROR(LoadNotCompared(database, launch, has_dump, job));
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
  ASSIGN_OR_RETURN(
      Statement code,
      database.Prepare(
          "SELECT op, group_name, code_line FROM collective "
          "WHERE graph_id = ? AND source = 'code' AND is_wait = 0 ORDER BY record_id, ordinal"));
  std::vector<GraphProgress> all;
  for (auto& [key, issued] : by_graph) {
    std::stable_sort(issued.begin(), issued.end(),
                     [](const auto* a, const auto* b) { return a->start_ns < b->start_ns; });
    GraphProgress progress;
    progress.rank = key.first;
    progress.label = issued.back()->label;
    progress.function = issued.back()->function;
    progress.issued = issued.size();
    code.Bind(1, key.second);
    bool is_behind = false;
    while (true) {
      ASSIGN_OR_RETURN(const bool has_row, code.Step());
      if (!has_row) break;
      ++progress.scheduled;
      if (!is_behind)
        ++progress.reached;
      else if (progress.next.empty())
        progress.next = fmt::format("{} group {}, line {} of the generated code",
                                    PlainCollective(code.Text(0)), code.Text(1), code.Int(2));
      is_behind |= code.Int(2) == issued.back()->code_line;
    }
    if (is_behind) all.push_back(std::move(progress));
  }
  std::stable_sort(all.begin(), all.end(), [](const GraphProgress& a, const GraphProgress& b) {
    return std::pair(a.rank, a.label) < std::pair(b.rank, b.label);
  });
  return all;
}

}  // namespace tlparse
