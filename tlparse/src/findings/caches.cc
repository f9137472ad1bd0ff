// Caches that were bypassed, and lookups that ended for one reason.
#include "queries/findings/caches.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/plural.h"
#include "facts/cache/cause.h"
#include "facts/compiles/advice.h"
#include "facts/text/shorten.h"
#include "findings/context.h"

namespace tlparse {
namespace {

// What only some ranks have is a divergence, reported there or as evidence of another one: what is
// known of it here is added there. Where there is no majority, a divergence names both sides.
bool IsTold(std::vector<Finding>& findings, const Finding& own) {
  return std::any_of(findings.begin(), findings.end(), [&](Finding& one) {
    const bool is_same =
        one.kind == own.kind && !own.ranks.empty() &&
        (one.ranks == own.ranks || (one.ranks.empty() && one.cause == own.cause)) &&
        std::find_first_of(one.compiles.begin(), one.compiles.end(), own.compiles.begin(),
                           own.compiles.end()) != one.compiles.end();
    if (is_same && one.suggestion.empty()) {
      one.suggestion = own.suggestion;
      one.changes = own.changes;
    }
    return is_same || IsTold(one.evidence, own);
  });
}

// Lookups that ended alike for one reason, all layers and reasons apart.
struct ReasonFinding {
  CacheState state;
  std::string_view column;  // of cache_event_row e: the text id of the reason
  FindingKind kind;
  std::string_view subject;  // "The <layer> <subject> in 0/0: <reason>"
  std::string_view suggestion;
};
constexpr ReasonFinding kReasonFindings[] = {
    {CacheState::kBypass, "e.bypass_reason_id", FindingKind::kCacheBypassed, "cache was bypassed",
     ""},
    {CacheState::kRemoteError, "e.remote_error_id", FindingKind::kRemoteCacheError,
     "cache's remote store gave no usable answer",
     "see whether the store runs, can be reached from these hosts, and lets them in; an entry "
     "without a valid signature was written with another key"},
};

// PyTorch caches no graph with such an op, and none that the optimizer of DistributedDataParallel has
// split at its buckets (torch/_dynamo/backends/distributed.py).
bool IsOfGraph(std::string_view cause) {
  return cause.starts_with("Unsupported call_function target") ||
         cause.starts_with("Can't cache HigherOrderOperator") ||
         cause.starts_with("Won't cache a graph with fakify_first_call");
}

// Whether what other compiles ask for was there: a start from empty caches loses nothing by a bypass.
bool HasHits(const FindingContext& context) {
  const std::vector<JobLookup>& lookups = context.ranks.cache.lookups.lookups();
  return std::any_of(lookups.begin(), lookups.end(),
                     [](const JobLookup& one) { return one.state == CacheState::kHit; });
}

// What a bypass costs: what the lookups of the layers below show, and the time of these compiles.
std::string CostOfBypass(const FindingContext& context, const std::string& layer,
                         const std::vector<RankIndex>& who,
                         const std::vector<std::int32_t>& slots) {
  std::string text =
      "These compiles take nothing from this cache and store nothing in it: what it would save is "
      "done again each time the program starts.";
  if (layer != "fx_graph") {
    std::size_t hits = 0, misses = 0;
    const LookupIndex& index = context.ranks.cache.lookups;
    for (const JobLookup& lookup : index.lookups()) {
      const LookupSlot& place = index.slots()[static_cast<std::size_t>(lookup.lookup_slot)];
      if (index.LayerName(place.layer_id) != "fx_graph" ||
          !std::binary_search(who.begin(), who.end(), lookup.participant) ||
          !std::binary_search(slots.begin(), slots.end(), place.slot))
        continue;
      ++(lookup.state == CacheState::kHit ? hits : misses);
    }
    if (hits + misses > 0)
      text += fmt::format(" The fx_graph cache was asked in them, with {} hit{} in {} lookup{}.",
                          hits, PluralS(hits), hits + misses, PluralS(hits + misses));
  }
  if (const std::optional<double> seconds = CompileSeconds(context, who.front(), slots))
    text += fmt::format(" {} took {:.1f} s{}.", slots.size() == 1 ? "The compile" : "The compiles",
                        *seconds, who.size() == 1 ? "" : " on " + context.WhoInside({who.front()}));
  return text;
}

Result<void> AddByReason(FindingContext& context, const ReasonFinding& what) {
  const std::vector<JobLookup>& lookups = context.ranks.cache.lookups.lookups();
  const bool has_any = std::any_of(lookups.begin(), lookups.end(),
                                   [&](const JobLookup& one) { return one.state == what.state; });
  // The lookups have none of a record that is cut off.
  if (!has_any && !context.job.HasCutRecords()) return {};
  struct Group {
    std::set<RankIndex> ranks;
    std::set<std::int32_t> slots;
    std::vector<std::int64_t> ids;
    std::optional<std::int64_t> since_us;
  };
  std::map<std::pair<std::string, std::string>, Group> groups;
  FOR_EACH_ROW(
      const LookupWithReason& row,
      Query<LookupWithReason>(context.database, {.reason_id = what.column,
                                                 .state = what.state,
                                                 .in_logs = context.job.InLogs("e.record_id")})) {
    const JobCompile* compile = row.compile_id ? context.job.FindCompile(*row.compile_id) : nullptr;
    if (compile == nullptr) continue;
    Group& group = groups[{std::string(row.layer), Shorten(row.reason, 300)}];
    group.ranks.insert(compile->participant);
    if (compile->slot >= 0) group.slots.insert(compile->slot);
    group.ids.push_back(row.id);
    if (compile->start_us != 0 && (!group.since_us || compile->start_us < *group.since_us))
      group.since_us = compile->start_us;
  }
  std::vector<Finding> found;
  for (const auto& [key, group] : groups) {
    Finding& finding = found.emplace_back();
    finding.kind = what.kind;
    finding.severity = FindingSeverity::kWarning;
    const std::vector<RankIndex> who(group.ranks.begin(), group.ranks.end());
    const std::vector<std::int32_t> slots(group.slots.begin(), group.slots.end());
    context.SetRanks(finding, who);
    const std::string where = context.SetCompiles(finding, slots, who);
    if (what.state == CacheState::kBypass)
      finding.detail = CostOfBypass(context, key.first, who, slots);
    finding.cause = key.second.empty() ? "no reason in the log" : key.second;
    const bool is_of_all = who.size() == context.job.participants().size();
    finding.title = fmt::format("The {} {} in {}{}{}: {}", key.first, what.subject, where,
                                is_of_all            ? ""
                                : context.HasRanks() ? " on "
                                                     : " in ",
                                is_of_all ? "" : context.WhoInside(who), finding.cause);
    finding.suggestion = what.suggestion;
    if (what.state == CacheState::kBypass) {
      finding.suggestion = AdviceForBypass(finding.cause);
      // What the graph holds is what the program is: nothing is to be set.
      if (IsOfGraph(finding.cause) || !HasHits(context)) finding.severity = FindingSeverity::kNote;
    }
    finding.since_us = group.since_us;
    finding.query = fmt::format("SELECT * FROM cache_event WHERE id IN {}", IdList(group.ids));
  }
  std::erase_if(found, [&](const Finding& one) { return IsTold(context.findings, one); });
  std::move(found.begin(), found.end(), std::back_inserter(context.findings));
  return {};
}

}  // namespace

Result<void> FindCacheCauses(FindingContext& context) {
  if (context.HasRanks()) RETURN_IF_ERROR(AddColdCaches(context));
  AddSameKeys(context);
  AddPrecompiled(context);
  for (const ReasonFinding& what : kReasonFindings) RETURN_IF_ERROR(AddByReason(context, what));
  return {};
}

}  // namespace tlparse
