#include "inputs/join/process_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "queries/inputs/join/process_match.h"

namespace tlparse {
namespace {

struct Candidate {
  std::int64_t id = 0;
  std::int64_t pid = 0;
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> first_us, last_us;
};

struct Dump {
  std::int64_t id = 0;
  std::string kind;
  std::optional<std::int64_t> rank, pid, start_us, end_us;
};

struct Match {
  std::optional<std::int64_t> process_id;
  std::optional<std::int64_t> rank;
  std::string note;
};

// Of several the one whose log is nearest in time; nothing if two are equally near.
std::optional<std::size_t> Nearest(const std::vector<Candidate>& candidates, const Dump& dump) {
  if (candidates.size() == 1) return 0;
  if (!dump.start_us || !dump.end_us) return std::nullopt;
  std::optional<std::size_t> best;
  std::int64_t best_us = INT64_MAX;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& one = candidates[i];
    if (!one.first_us || !one.last_us) return std::nullopt;
    const std::int64_t distance_us =
        std::max<std::int64_t>({0, *one.first_us - *dump.end_us, *dump.start_us - *one.last_us});
    if (distance_us == best_us) return std::nullopt;
    if (distance_us > best_us) continue;
    best_us = distance_us;
    best = i;
  }
  return best;
}

Match Choose(const std::vector<Candidate>& candidates, const Dump& dump, const std::string& by) {
  if (candidates.empty())
    return {std::nullopt, dump.rank,
            fmt::format("no log of the process with {} is in the run", by)};
  const std::optional<std::size_t> chosen = Nearest(candidates, dump);
  if (!chosen)
    return {std::nullopt, dump.rank,
            fmt::format("{} processes have {}, and times do not tell which wrote the file",
                        candidates.size(), by)};
  return {candidates[*chosen].id, dump.rank ? dump.rank : candidates[*chosen].rank,
          "found by " + by};
}

Result<Match> MatchByFrames(Database& database, const std::vector<Candidate>& all,
                            const Dump& dump) {
  std::vector<Candidate> found;
  FOR_EACH_ROW(const ProcessOfFrames& row,
               Query<ProcessOfFrames>(database, {.profile_id = dump.id})) {
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const Candidate& one) { return one.id == row.process_id; });
    if (at != all.end()) found.push_back(*at);
  }
  ASSIGN_OR_RETURN(const FirstRow<EntryWithFrames> framed,
                   First(Query<EntryWithFrames>(database, {.profile_id = dump.id})));
  if (!framed) return Match{std::nullopt, std::nullopt, "the file names no rank and has no frames"};
  if (found.empty())
    return Match{std::nullopt, std::nullopt,
                 "the file names no rank, and no log holds the generated code of its frames"};
  if (found.size() > 1)
    return Match{std::nullopt, std::nullopt,
                 fmt::format("the file names no rank, and the logs of {} processes hold the "
                             "generated code of its frames",
                             found.size())};
  return Match{found.front().id, found.front().rank, "found by the generated code of its frames"};
}

// A snapshot of the allocator names neither its process nor, unless its name does, its rank.
Result<Match> MatchMemory(Database& database, const std::vector<Candidate>& all, const Dump& dump) {
  std::vector<Candidate> found;
  FOR_EACH_ROW(const ProcessOfMemory& row,
               Query<ProcessOfMemory>(database, {.profile_id = dump.id})) {
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const Candidate& one) { return one.id == row.process_id; });
    if (at != all.end()) found.push_back(*at);
  }
  if (found.size() == 1)
    return Match{found.front().id, found.front().rank, "found by the generated code in its stacks"};
  if (found.size() > 1)
    return Match{std::nullopt, std::nullopt,
                 fmt::format("the file names no rank, and the logs of {} processes hold the "
                             "generated code in its stacks",
                             found.size())};
  return Match{std::nullopt, std::nullopt,
               "the file names no rank, and no log holds generated code that is in its stacks"};
}

Result<Match> MatchOne(Database& database, const std::vector<Candidate>& all, const Dump& dump) {
  std::vector<Candidate> candidates;
  if (dump.pid) {
    for (const Candidate& one : all) {
      if (one.pid == *dump.pid && (!dump.rank || !one.rank || *one.rank == *dump.rank))
        candidates.push_back(one);
    }
    return Choose(candidates, dump, fmt::format("pid {}", *dump.pid));
  }
  if (dump.rank) {
    for (const Candidate& one : all) {
      if (one.rank == dump.rank) candidates.push_back(one);
    }
    return Choose(candidates, dump, fmt::format("rank {}", *dump.rank));
  }
  if (dump.kind == "memory_snapshot") return MatchMemory(database, all, dump);
  if (dump.kind == "flight_recorder") return MatchByFrames(database, all, dump);
  return Match{std::nullopt, std::nullopt,
               "the file names neither a process nor a rank, or several"};
}

}  // namespace

Result<void> MatchProcesses(Database& database, std::int64_t run_id) {
  std::vector<Candidate> all;
  FOR_EACH_ROW(const ProcessToMatch& row, Query<ProcessToMatch>(database, {.run_id = run_id})) {
    all.push_back({row.id, row.pid, row.rank, row.first_record_us, row.last_record_us});
  }
  std::vector<Dump> dumps;
  FOR_EACH_ROW(const DumpToMatch& row, Query<DumpToMatch>(database, {.run_id = run_id})) {
    dumps.push_back(
        {row.id, std::string(row.kind), row.own_rank, row.pid, row.start_us, row.end_us});
  }
  ASSIGN_OR_RETURN(
      Statement update,
      database.Prepare(
          "UPDATE profile SET process_id = ?2, rank = ?3, process_note = ?4 WHERE id = ?1"));
  for (const Dump& dump : dumps) {
    ASSIGN_OR_RETURN(const Match match, MatchOne(database, all, dump));
    update.Bind(1, dump.id);
    update.Bind(2, match.process_id);
    update.Bind(3, match.rank);
    update.Bind(4, std::string_view(match.note));
    RETURN_IF_ERROR(update.Run());
  }
  return {};
}

}  // namespace tlparse
