#include "analysis/ranks/rank_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace tlparse {

void FindAbsent(RanksAnswer& answer, const std::optional<std::int64_t>& world_size) {
  const Job& job = answer.job();
  std::set<std::int64_t> present;
  for (std::size_t i = 0; i < job.participants().size(); ++i) {
    const JobParticipant& participant = job.participants()[i];
    if (participant.rank) present.insert(*participant.rank);
    if (participant.is_extra_log) answer.extra_logs.push_back(static_cast<RankIndex>(i));
  }
  present.insert(job.ranks_without_records().begin(), job.ranks_without_records().end());
  std::vector<char> has_compile(job.participants().size());
  for (const JobCompile& compile : job.compiles())
    has_compile[static_cast<std::size_t>(compile.participant)] = 1;
  for (std::size_t i = 0; i < has_compile.size(); ++i) {
    if (has_compile[i] == 0) answer.without_compiles.push_back(static_cast<RankIndex>(i));
  }
  if (present.empty()) return;
  // A rank out of range (a damaged or hostile envelope) does not count for the size of the job.
  constexpr std::int64_t kMostMissing = 100'000;
  const std::int64_t highest = *present.rbegin();
  if (!world_size && highest >= kMostMissing + static_cast<std::int64_t>(present.size())) return;
  answer.world_size = std::max(world_size.value_or(0), world_size ? 0 : highest + 1);
  for (std::int64_t rank = 0; rank < answer.world_size; ++rank) {
    if (present.count(rank) == 0) answer.missing_ranks.push_back(rank);
    if (static_cast<std::int64_t>(answer.missing_ranks.size()) >= kMostMissing) break;
  }
}

void AddNotes(RanksAnswer& answer) {
  const Job& job = answer.job();
  for (const CacheFinding& finding : answer.cache.findings) {
    if (!IsNote(finding.cause.kind)) continue;
    const std::size_t lookups = finding.lookup_slots.size(),
                      compiles = finding.compile_slots.size();
    answer.notes.push_back(fmt::format("cache, {}: {}: {} ({} lookup{} in {} compile{})",
                                       job.NameRanks(finding.ranks), Title(finding.cause.kind),
                                       finding.cause.text, lookups, lookups == 1 ? "" : "s",
                                       compiles, compiles == 1 ? "" : "s"));
  }
  for (const CollectiveClass& one : answer.collectives.classes) {
    for (const std::string& note : one.notes) answer.notes.push_back("collectives, " + note);
  }
}

}  // namespace tlparse
