#include "facts/ranks/rank_notes.h"

#include <fmt/format.h>

namespace tlparse {

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
