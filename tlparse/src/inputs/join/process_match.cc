#include "inputs/join/process_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

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
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "WITH RECURSIVE frame(id) AS (SELECT stack_id FROM recorder_entry_row "
          "WHERE profile_id = ?1 AND stack_id IS NOT NULL UNION SELECT s.parent_id "
          "FROM frame f JOIN stack_frame s ON s.id = f.id WHERE s.parent_id IS NOT NULL) "
          "SELECT DISTINCT r.process_id FROM output_code o JOIN record_row r ON r.id = o.record_id "
          "WHERE o.path IN (SELECT s.file FROM frame f JOIN stack_frame s ON s.id = f.id)"));
  rows.Bind(1, dump.id);
  std::vector<Candidate> found;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const Candidate& one) { return one.id == rows.Int(0); });
    if (at != all.end()) found.push_back(*at);
  }
  ASSIGN_OR_RETURN(Statement frames,
                   database.Prepare("SELECT 1 FROM recorder_entry_row "
                                    "WHERE profile_id = ?1 AND stack_id IS NOT NULL LIMIT 1"));
  frames.Bind(1, dump.id);
  ASSIGN_OR_RETURN(const bool has_frames, frames.Step());
  if (!has_frames)
    return Match{std::nullopt, std::nullopt, "the file names no rank and has no frames"};
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
  if (dump.kind == "flight_recorder") return MatchByFrames(database, all, dump);
  return Match{std::nullopt, std::nullopt,
               "the file names neither a process nor a rank, or several"};
}

}  // namespace

Result<void> MatchProcesses(Database& database, std::int64_t run_id) {
  std::vector<Candidate> all;
  ASSIGN_OR_RETURN(
      Statement processes,
      database.Prepare("SELECT p.id, p.pid, p.rank, p.first_record_us, p.last_record_us "
                       "FROM process p JOIN log_file f ON f.id = p.log_file_id "
                       "WHERE f.run_id = ? ORDER BY p.id"));
  processes.Bind(1, run_id);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, processes.Step());
    if (!has_row) break;
    all.push_back({processes.Int(0), processes.Int(1), processes.OptionalInt(2),
                   processes.OptionalInt(3), processes.OptionalInt(4)});
  }
  std::vector<Dump> dumps;
  ASSIGN_OR_RETURN(
      Statement profiles,
      database.Prepare(
          "SELECT id, kind, own_rank, pid, start_us, end_us FROM profile "
          "WHERE run_id = ? AND kind IN ('flight_recorder', 'torch_logs', 'tritonparse') "
          "ORDER BY id"));
  profiles.Bind(1, run_id);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, profiles.Step());
    if (!has_row) break;
    dumps.push_back({profiles.Int(0), std::string(profiles.Text(1)), profiles.OptionalInt(2),
                     profiles.OptionalInt(3), profiles.OptionalInt(4), profiles.OptionalInt(5)});
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
