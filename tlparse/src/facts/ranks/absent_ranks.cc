#include "facts/ranks/absent_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <string_view>

namespace tlparse {
namespace {

// A rank out of range (a damaged or hostile input) does not count for the size of the job.
constexpr std::int64_t kMostMissing = 100'000;

void ListParticipants(RanksAnswer& answer) {
  const Job& job = answer.job();
  std::vector<char> has_compile(job.participants().size());
  for (const JobCompile& compile : job.compiles())
    has_compile[static_cast<std::size_t>(compile.participant)] = 1;
  for (std::size_t i = 0; i < has_compile.size(); ++i) {
    if (has_compile[i] == 0) answer.without_compiles.push_back(static_cast<RankIndex>(i));
    if (job.participants()[i].is_extra_log) answer.extra_logs.push_back(static_cast<RankIndex>(i));
  }
}

std::set<std::int64_t> RanksWithLogs(const Job& job) {
  std::set<std::int64_t> ranks(job.ranks_without_records().begin(),
                               job.ranks_without_records().end());
  for (const JobParticipant& participant : job.participants()) {
    if (participant.rank) ranks.insert(*participant.rank);
  }
  return ranks;
}

// The number that a text begins with; nothing: none, or no number of ranks.
std::optional<std::int64_t> CountIn(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() || number < 0) return std::nullopt;
  return number;
}

struct KnownSize {
  std::int64_t size = 0;
  std::string source;  // a sentence; empty: the highest rank with a log

  // What a source shows counts if nothing else shows more.
  void Take(std::int64_t shown, std::int64_t most, std::string sentence) {
    if (shown < size || shown > most || (shown == size && !source.empty())) return;
    size = shown;
    source = std::move(sentence);
  }
};

// The largest group of ranks that a collective of the generated code names: all_gather_into_tensor
// has the size of its group as an argument.
Result<void> TakeGroupsOfCode(Database& database, const Job& job, std::int64_t most,
                              KnownSize& known) {
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "SELECT DISTINCT c.arguments FROM collective_row c "
          "WHERE c.op LIKE '%all_gather_into_tensor%' AND c.arguments IS NOT NULL "
          "AND c.content_id IN (SELECT u.content_id FROM collective_use_row u "
          "JOIN compile k ON k.id = u.compile_id JOIN process p ON p.id = k.process_id "
          "JOIN launch n ON n.id = p.launch_id WHERE n.run_id = ? AND n.ordinal = ?)"));
  rows.Bind(1, job.run_id());
  rows.Bind(2, job.launch());
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return {};
    const std::string_view size = rows.Text(0).substr(0, rows.Text(0).find(','));
    if (size.empty() || size.find_first_not_of("0123456789") != std::string_view::npos) continue;
    if (const std::optional<std::int64_t> count = CountIn(size))
      known.Take(
          *count, most,
          fmt::format("A collective in the generated code names a group of {} ranks.", *count));
  }
}

// What dumps and profiles of the launch name: the job's number of ranks, their own rank, members of
// groups. A file whose process has no log here may be of any launch.
Result<void> TakeFiles(Database& database, const Job& job, std::int64_t most, KnownSize& known) {
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "WITH file AS (SELECT p.kind, p.own_rank, p.world_size, p.metadata "
          "FROM profile p "
          "LEFT JOIN process q ON q.id = p.process_id LEFT JOIN launch n ON n.id = q.launch_id "
          "WHERE p.run_id = ?1 AND p.kind IN ('flight_recorder', 'kineto') "
          "AND (n.ordinal = ?2 OR (n.ordinal IS NULL AND ?3 < 2))) "
          "SELECT kind, max(own_rank) + 1, 'is of rank ' || max(own_rank) "
          "FROM file GROUP BY kind "
          "UNION ALL SELECT kind, max(world_size), 'names ' || max(world_size) || ' ranks' "
          "FROM file GROUP BY kind "
          "UNION ALL SELECT 'flight_recorder', max(m.value) + 1, "
          "'names rank ' || max(m.value) || ' as a member of a group' "
          "FROM (SELECT DISTINCT g.value ->> '$.ranks' AS ranks "
          "FROM file f, json_each(f.metadata, '$.pg_config') g "
          "WHERE f.kind = 'flight_recorder' AND json_type(g.value) = 'object' AND g.key <> '') x, "
          "json_each(CASE WHEN json_valid(x.ranks) THEN x.ranks ELSE '[]' END) m "
          "WHERE m.type = 'integer'"));
  rows.Bind(1, job.run_id());
  rows.Bind(2, job.launch());
  rows.Bind(3, job.launch_count());
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return {};
    if (rows.IsNull(1)) continue;
    known.Take(rows.Int(1), most,
               fmt::format("{} {}.", rows.Text(0) == "kineto" ? "A profile" : "A recorder's dump",
                           rows.Text(2)));
  }
}

}  // namespace

Result<void> FindAbsent(Database& database, const std::optional<std::int64_t>& world_size,
                        RanksAnswer& answer) {
  ListParticipants(answer);
  const std::set<std::int64_t> present = RanksWithLogs(answer.job());
  if (present.empty()) return {};
  const std::int64_t most = kMostMissing + static_cast<std::int64_t>(present.size());
  KnownSize known;
  if (world_size) {
    known = {*world_size, "The number of ranks is as given with --world-size."};
  } else {
    if (*present.rbegin() >= most) return {};
    known.size = *present.rbegin() + 1;
    RETURN_IF_ERROR(TakeGroupsOfCode(database, answer.job(), most, known));
    RETURN_IF_ERROR(TakeFiles(database, answer.job(), most, known));
  }
  answer.world_size = known.size;
  answer.world_size_source = std::move(known.source);
  for (std::int64_t rank = 0; rank < answer.world_size; ++rank) {
    if (present.count(rank) == 0) answer.missing_ranks.push_back(rank);
    if (static_cast<std::int64_t>(answer.missing_ranks.size()) >= kMostMissing) break;
  }
  return {};
}

}  // namespace tlparse
