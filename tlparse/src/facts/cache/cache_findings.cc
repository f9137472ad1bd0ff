#include "facts/cache/cache_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "facts/cache/cause.h"
#include "facts/compiles/recompile_reasons.h"
#include "facts/compiles/recompile_texts.h"
#include "facts/text/shorten.h"

namespace tlparse {

// In another compile other inputs may differ: those that are named are of the first.
void FindingCollector::SayWhichInputs(const CacheFinding& other, std::int32_t compile_slot,
                                      CacheFinding& stored) const {
  const std::int32_t first = stored.compile_slots.front();
  if (stored.is_of_first || compile_slot == first || other.cause.text == stored.cause.text) return;
  stored.is_of_first = true;
  stored.cause.text += " in " + answer_.job.SlotOf(first, stored.Sides()).Title();
}

void FindingCollector::Add(CacheFinding finding, std::int32_t lookup_slot,
                           std::int32_t compile_slot) {
  // Options are compared by name, so other options are another finding; of graphs and inputs the
  // first example represents all.
  const CauseKind kind = finding.cause.kind;
  const bool by_text = kind == CauseKind::kConfig || kind == CauseKind::kSetting ||
                       kind == CauseKind::kComponent || kind == CauseKind::kBuild ||
                       kind == CauseKind::kBypass || kind == CauseKind::kGuardMiss ||
                       kind == CauseKind::kRemoteError || kind == CauseKind::kMissingCompile;
  // An expected difference is reported once for the job.
  const bool is_for_all =
      kind == CauseKind::kDevice || kind == CauseKind::kRankPath || kind == CauseKind::kUnlogged;
  Key key{kind, is_for_all ? std::vector<RankIndex>() : finding.ranks,
          by_text ? finding.cause.text : std::string(),
          kind == CauseKind::kStorage ? finding.state + finding.against_state : std::string()};
  // Where most ranks agree those that differ are odd; where none do, they are not.
  if ((kind == CauseKind::kGraph || kind == CauseKind::kInputs) && !finding.has_majority)
    std::get<2>(key) = "no majority";
  auto found = index_.find(key);
  // Not every rank makes every lookup: those on the other side are on it in all lookups.
  std::vector<RankIndex> against;
  if (found != index_.end()) {
    const std::vector<RankIndex>& known = answer_.findings[found->second].against;
    std::set_intersection(known.begin(), known.end(), finding.against.begin(),
                          finding.against.end(), std::back_inserter(against));
    if (against.empty() && known != finding.against) {
      std::get<2>(key) += '\n' + answer_.job.FormatRanks(finding.against);
      found = index_.find(key);
      against = finding.against;
    }
  }
  const bool is_new = found == index_.end();
  if (is_new) found = index_.emplace(key, answer_.findings.size()).first;
  if (!is_new && kind == CauseKind::kInputs)
    SayWhichInputs(finding, compile_slot, answer_.findings[found->second]);
  if (is_new) {
    answer_.findings.push_back(std::move(finding));
  } else if (is_for_all && answer_.findings[found->second].ranks != finding.ranks) {
    std::vector<RankIndex>& ranks = answer_.findings[found->second].ranks;
    std::vector<RankIndex> all;
    std::set_union(ranks.begin(), ranks.end(), finding.ranks.begin(), finding.ranks.end(),
                   std::back_inserter(all));
    ranks = std::move(all);
  }
  if (!is_new) answer_.findings[found->second].against = std::move(against);
  CacheFinding& stored = answer_.findings[found->second];
  const auto add = [](std::vector<std::int32_t>& slots, std::int32_t slot) {
    if (slots.empty() || slots.back() != slot) slots.push_back(slot);
  };
  if (lookup_slot >= 0) add(stored.lookup_slots, lookup_slot);
  add(stored.compile_slots, compile_slot);
}

namespace {

// Compiles that the same ranks lack: one, or the recompiles of a function.
struct MissingCompiles {
  CacheFinding finding;
  std::vector<std::int32_t> slots;
  std::vector<Recompile> recompiles;  // of a rank that has them

  std::string Because() const {
    if (recompiles.empty() || recompiles.front().entries.empty()) return {};
    const auto made = std::count_if(recompiles.begin(), recompiles.end(),
                                    [](const Recompile& one) { return !one.is_refused; });
    if (recompiles.size() == 1)
      return "because " + Shorten(FailedEntriesText(recompiles.front().entries, ""), 300);
    const std::string times = made == 1   ? "once"
                              : made == 2 ? "twice"
                                          : fmt::format("{} times", made);
    return fmt::format("{} ({})", times, Varied(recompiles));
  }
};

// Nothing: no rank lacks it, or none has it.
Result<std::optional<MissingCompiles>> FindMissing(Database& database, const CacheAnswer& answer,
                                                   std::int32_t slot) {
  const Job& job = answer.job;
  MissingCompiles missing;
  missing.slots = {slot};
  CacheFinding& finding = missing.finding;
  std::vector<RankIndex> ended;  // before it
  for (std::size_t i = 0; i < job.participants().size(); ++i) {
    const auto rank = static_cast<RankIndex>(i);
    if (job.participants()[i].is_of_other_job) continue;
    const bool has_it = job.CompileOf(rank, slot) >= 0;
    (has_it                                 ? finding.against
     : answer.damage.Shows(job, rank, slot) ? finding.ranks
                                            : ended)
        .push_back(rank);
  }
  const bool is_end = finding.ranks.empty();
  if (is_end) finding.ranks = std::move(ended);
  if (finding.ranks.empty() || finding.against.empty()) return std::optional<MissingCompiles>();
  finding.has_majority = finding.ranks.size() != finding.against.size();
  // The few are odd: those without the compile, or those with it.
  const bool few_have_it = !is_end && finding.ranks.size() > finding.against.size();
  if (few_have_it) std::swap(finding.ranks, finding.against);
  finding.cause.kind = CauseKind::kMissingCompile;
  const RankIndex with_it = few_have_it ? finding.ranks.front() : finding.against.front();
  const JobCompile& compile =
      job.compiles()[static_cast<std::size_t>(job.CompileOf(with_it, slot))];
  ASSIGN_OR_RETURN(std::vector<FailedEntry> entries, LoadFailedEntries(database, compile.id));
  missing.recompiles.push_back({.label = job.string(compile.label_id),
                                .is_refused = compile.status == CompileStatus::kSkipped,
                                .entries = std::move(entries)});
  // A log that is cut or damaged does not show what was not compiled.
  const bool is_incomplete =
      answer.damage.AnyIsIncomplete(few_have_it ? finding.against : finding.ranks);
  finding.cause.text = few_have_it ? (is_incomplete ? "in the log here only" : "compiled here only")
                       : is_incomplete ? "not in the log, which is cut off or damaged"
                       : is_end        ? "not in the log, which ends before it"
                                       : "not compiled here";
  finding.state = few_have_it ? "compiled" : "absent";
  finding.against_state = few_have_it ? "absent" : "compiled";
  return std::optional(std::move(missing));
}

}  // namespace

Result<void> FindMissingCompiles(Database& database, CacheAnswer& answer,
                                 FindingCollector& collector) {
  using Key = std::tuple<std::vector<RankIndex>, std::string, std::string, std::int64_t>;
  std::map<Key, std::size_t> known;  // recompiles of one function
  std::vector<MissingCompiles> all;
  for (const std::int32_t slot : answer.job.slot_order()) {
    ASSIGN_OR_RETURN(std::optional<MissingCompiles> missing, FindMissing(database, answer, slot));
    if (!missing) continue;
    const JobSlot& place = answer.job.slots()[static_cast<std::size_t>(slot)];
    const std::string& text = missing->finding.cause.text;
    if (!missing->recompiles.front().entries.empty()) {
      const auto [found, is_new] = known.try_emplace(
          Key{missing->finding.ranks, text + '\n' + place.function, place.file, place.line},
          all.size());
      if (!is_new) {
        MissingCompiles& earlier = all[found->second];
        earlier.slots.push_back(slot);
        earlier.recompiles.push_back(std::move(missing->recompiles.front()));
        continue;
      }
    }
    all.push_back(std::move(*missing));
  }
  for (MissingCompiles& one : all) {
    Cause& cause = one.finding.cause;
    cause.recompiled = one.Because();
    if (cause.recompiled.empty()) {
      for (const std::int32_t slot : one.slots) collector.Add(one.finding, -1, slot);
    } else {  // two functions may have been recompiled for the same
      cause.text += ", recompiled " + cause.recompiled;
      one.finding.compile_slots = std::move(one.slots);
      collector.AddApart(std::move(one.finding));
    }
  }
  return {};
}

void FindMajorities(CacheAnswer& answer) {
  // By kind, component and lookup: the ranks that differ.
  using Key = std::tuple<CauseKind, std::string, std::int32_t>;
  const auto key = [](const CacheFinding& finding, std::int32_t slot) {
    const std::vector<ComponentDifference>& components = finding.cause.differences;
    return Key{finding.cause.kind, components.empty() ? "" : components.front().name, slot};
  };
  std::map<Key, std::set<RankIndex>> odd;
  for (const CacheFinding& finding : answer.findings) {
    for (const std::int32_t slot : finding.lookup_slots)
      odd[key(finding, slot)].insert(finding.ranks.begin(), finding.ranks.end());
  }
  for (CacheFinding& finding : answer.findings) {
    if (finding.lookup_slots.empty()) continue;
    const std::int32_t slot = finding.lookup_slots.front();
    const std::size_t all = answer.lookups.slots()[static_cast<std::size_t>(slot)].lookups.size();
    finding.has_majority = 2 * (all - odd[key(finding, slot)].size()) > all;
  }
}

}  // namespace tlparse
