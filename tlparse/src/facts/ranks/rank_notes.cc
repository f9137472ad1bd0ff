#include "facts/ranks/rank_notes.h"

#include <fmt/format.h>

#include "base/plural.h"

namespace tlparse {

void AddNotes(RanksAnswer& answer) {
  const Job& job = answer.job();
  for (const CacheFinding& finding : answer.cache.findings) {
    if (!IsNote(finding.cause.kind)) continue;
    answer.notes.push_back(fmt::format("cache, {}: {}: {} ({} in {})", job.NameRanks(finding.ranks),
                                       Title(finding.cause.kind), finding.cause.text,
                                       Count(finding.lookup_slots.size(), "lookup"),
                                       Count(finding.compile_slots.size(), "compile")));
  }
  for (const CollectiveClass& one : answer.collectives.classes) {
    for (const std::string& note : one.notes) answer.notes.push_back("collectives, " + note);
  }
}

}  // namespace tlparse
