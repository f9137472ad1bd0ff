// Caches that some ranks hit and others missed, caches that were bypassed, one key with two codes.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "analysis/findings/context.h"
#include "analysis/ranks/cause.h"

namespace tlparse {
namespace {

// Lookups under one key that these ranks missed and others hit.
struct Cold {
  std::vector<std::int32_t> lookup_slots, slots;
  std::set<RankIndex> hit_ranks;
  std::vector<std::int64_t> ids;  // cache_event.id
  std::size_t lookups = 0;
  bool is_race = true;  // every hit came after one of these ranks had stored the entry
  std::optional<std::int64_t> since_us;
};

std::int64_t EndOf(const FindingContext& context, const JobLookup& lookup) {
  if (lookup.event_time_ns != 0) return (lookup.event_time_ns + lookup.time_taken_ns) / 1000;
  const JobCompile& compile = context.job.compiles()[static_cast<std::size_t>(lookup.compile)];
  return compile.start_us == 0 ? 0 : compile.start_us + compile.duration_us;
}

using ColdCaches = std::map<std::vector<RankIndex>, Cold>;

void Examine(const FindingContext& context, const LookupSlot& place, std::int32_t lookup_slot,
             ColdCaches& found) {
  std::map<std::int64_t, std::vector<const JobLookup*>> by_key;
  for (const std::int32_t index : place.lookups) {
    const JobLookup& lookup =
        context.ranks.cache.lookups.lookups()[static_cast<std::size_t>(index)];
    if (lookup.key_id != 0) by_key[lookup.key_id].push_back(&lookup);
  }
  for (const auto& [key, lookups] : by_key) {
    std::vector<RankIndex> missed, hit;
    std::int64_t stored_us = INT64_MAX, first_hit_us = INT64_MAX;
    for (const JobLookup* lookup : lookups) {
      if (lookup->state == CacheState::kMiss) {
        missed.push_back(lookup->participant);
        if (const std::int64_t end = EndOf(context, *lookup); end != 0)
          stored_us = std::min(stored_us, end);
      } else if (lookup->state == CacheState::kHit) {
        hit.push_back(lookup->participant);
        if (const std::int64_t end = EndOf(context, *lookup); end != 0)
          first_hit_us = std::min(first_hit_us, end);
      }
    }
    if (missed.empty() || hit.empty()) continue;
    std::sort(missed.begin(), missed.end());
    Cold& cold = found[missed];
    ++cold.lookups;
    cold.hit_ranks.insert(hit.begin(), hit.end());
    cold.lookup_slots.push_back(lookup_slot);
    if (cold.slots.empty() || cold.slots.back() != place.slot) cold.slots.push_back(place.slot);
    // Unknown times claim nothing.
    if (first_hit_us != INT64_MAX && stored_us != INT64_MAX && first_hit_us < stored_us)
      cold.is_race = false;
    for (const JobLookup* lookup : lookups) {
      if (lookup->state != CacheState::kMiss) continue;
      cold.ids.push_back(lookup->id);
      const std::int64_t start_us =
          context.job.compiles()[static_cast<std::size_t>(lookup->compile)].start_us;
      if (start_us != 0 && (!cold.since_us || start_us < *cold.since_us)) cold.since_us = start_us;
    }
  }
}

// Ranks that raced for entries of one shared cache are one finding.
void AddRaces(FindingContext& context, const ColdCaches& caches) {
  std::set<RankIndex> ranks;
  std::set<std::int32_t> slots;
  std::vector<std::int64_t> ids;
  std::size_t lookups = 0;
  for (const auto& [missed, cold] : caches) {
    if (!cold.is_race) continue;
    ranks.insert(missed.begin(), missed.end());
    slots.insert(cold.slots.begin(), cold.slots.end());
    ids.insert(ids.end(), cold.ids.begin(), cold.ids.end());
    lookups += cold.lookups;
  }
  if (ranks.empty()) return;
  Finding& finding = context.Add(FindingKind::kColdCache, FindingSeverity::kNote);
  const std::vector<RankIndex> who(ranks.begin(), ranks.end());
  context.SetRanks(finding, who);
  const std::string where =
      context.SetCompiles(finding, std::vector<std::int32_t>(slots.begin(), slots.end()));
  finding.title = fmt::format(
      "{} missed {} cache entr{} in {} that others of this launch hit later, under the same keys",
      context.Who(who), lookups, lookups == 1 ? "y" : "ies", where);
  finding.cause = "ranks that start together look for an entry before one of them has stored it";
  finding.detail =
      "The hits came after one of the ranks that missed had compiled: they share a cache.";
  finding.query = fmt::format("SELECT * FROM cache_event WHERE id IN {}", IdList(ids));
}

double CompileSeconds(const FindingContext& context, RankIndex rank,
                      const std::vector<std::int32_t>& slots) {
  double seconds = 0;
  for (const std::int32_t slot : slots) {
    const std::int32_t index = context.job.CompileOf(rank, slot);
    if (index < 0) continue;
    const JobCompile& one = context.job.compiles()[static_cast<std::size_t>(index)];
    seconds += static_cast<double>(one.duration_us + one.backward_duration_us) / 1e6;
  }
  return seconds;
}

void AddColdCaches(FindingContext& context) {
  ColdCaches caches;
  for (const std::int32_t slot : context.ranks.cache.lookups.order())
    Examine(context, context.ranks.cache.lookups.slots()[static_cast<std::size_t>(slot)], slot,
            caches);
  for (const auto& [missed, cold] : caches) {
    if (cold.is_race) continue;
    Finding& finding = context.Add(FindingKind::kColdCache, FindingSeverity::kWarning);
    context.SetRanks(finding, missed);
    const std::string where = context.SetCompiles(finding, cold.slots);
    const std::vector<RankIndex> hit(cold.hit_ranks.begin(), cold.hit_ranks.end());
    finding.title = fmt::format("{} missed {} cache entr{} in {} that {} hit under the same key{}",
                                context.Who(missed), cold.lookups, cold.lookups == 1 ? "y" : "ies",
                                where, context.WhoInside(hit), cold.lookups == 1 ? "" : "s");
    finding.cause = "the entries were not in the cache that these ranks asked";
    finding.since_us = cold.since_us;
    const double own = CompileSeconds(context, missed.front(), cold.slots);
    const double others = CompileSeconds(context, hit.front(), cold.slots);
    if (own > others && others > 0)
      finding.detail = fmt::format("These compiles took {:.1f} s on {}, {:.1f} s on {}.", own,
                                   context.WhoInside({missed.front()}), others,
                                   context.WhoInside({hit.front()}));
    finding.suggestion =
        "if the ranks have cache directories of their own (TORCHINDUCTOR_CACHE_DIR), share one, or "
        "fill all of them before the job";
    finding.query = fmt::format("SELECT * FROM cache_event WHERE id IN {}", IdList(cold.ids));
  }
  AddRaces(context, caches);
}

// What only some ranks have is a divergence, reported there or as evidence of another one.
bool IsTold(const std::vector<Finding>& findings, const Finding& own) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& one) {
    const bool is_same =
        one.kind == own.kind && !one.ranks.empty() && one.ranks == own.ranks &&
        std::find_first_of(one.compiles.begin(), one.compiles.end(), own.compiles.begin(),
                           own.compiles.end()) != one.compiles.end();
    return is_same || IsTold(one.evidence, own);
  });
}

// Lookups that ended alike for one reason, all layers and reasons apart.
struct ReasonFinding {
  CacheState state;
  std::string_view column;  // of cache_event_row: the text id of the reason
  FindingKind kind;
  std::string_view subject;  // "The <layer> <subject> in 0/0: <reason>"
  std::string_view suggestion;
};
constexpr ReasonFinding kReasonFindings[] = {
    {CacheState::kBypass, "bypass_reason_id", FindingKind::kCacheBypassed, "cache was bypassed",
     ""},
    {CacheState::kRemoteError, "remote_error_id", FindingKind::kRemoteCacheError,
     "cache's remote store gave no usable answer",
     "see whether the store runs, can be reached from these hosts, and lets them in; an entry "
     "without a valid signature was written with another key"},
};

Result<void> AddByReason(FindingContext& context, const ReasonFinding& what) {
  ASSIGN_OR_RETURN(
      Statement rows,
      context.database.Prepare(fmt::format(
          "SELECT e.compile_id, l.text, b.text, e.id FROM cache_event_row e JOIN text_row l ON "
          "l.id = e.layer_id LEFT JOIN text_row b ON b.id = e.{} WHERE e.state = {} ORDER BY e.id",
          what.column, static_cast<int>(what.state))));
  struct Group {
    std::set<RankIndex> ranks;
    std::set<std::int32_t> slots;
    std::vector<std::int64_t> ids;
    std::optional<std::int64_t> since_us;
  };
  std::map<std::pair<std::string, std::string>, Group> groups;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    const JobCompile* compile = context.job.FindCompile(rows.Int(0));
    if (compile == nullptr) continue;
    Group& group = groups[{std::string(rows.Text(1)), Shorten(rows.Text(2), 300)}];
    group.ranks.insert(compile->participant);
    if (compile->slot >= 0) group.slots.insert(compile->slot);
    group.ids.push_back(rows.Int(3));
    if (compile->start_us != 0 && (!group.since_us || compile->start_us < *group.since_us))
      group.since_us = compile->start_us;
  }
  std::vector<Finding> found;
  for (const auto& [key, group] : groups) {
    Finding& finding = found.emplace_back();
    finding.kind = what.kind;
    finding.severity = FindingSeverity::kWarning;
    context.SetRanks(finding, std::vector<RankIndex>(group.ranks.begin(), group.ranks.end()));
    const std::string where = context.SetCompiles(
        finding, std::vector<std::int32_t>(group.slots.begin(), group.slots.end()));
    finding.cause = key.second.empty() ? "no reason in the log" : key.second;
    finding.title =
        fmt::format("The {} {} in {}: {}", key.first, what.subject, where, finding.cause);
    finding.suggestion = what.suggestion;
    finding.since_us = group.since_us;
    finding.query = fmt::format("SELECT * FROM cache_event WHERE id IN {}", IdList(group.ids));
  }
  std::erase_if(found, [&](const Finding& one) { return IsTold(context.findings, one); });
  std::move(found.begin(), found.end(), std::back_inserter(context.findings));
  return {};
}

void AddSameKeys(FindingContext& context) {
  std::map<std::vector<RankIndex>, std::vector<const SameKeyCode*>> groups;
  for (const SameKeyCode& one : context.ranks.cache.same_key_codes) {
    if (!context.AreDamaged(one.ranks) && !context.AreDamaged(one.other_ranks))
      groups[one.other_ranks].push_back(&one);
  }
  for (const auto& [ranks, codes] : groups) {
    Finding& finding = context.Add(FindingKind::kOneKeyTwoCodes, FindingSeverity::kError);
    context.SetRanks(finding, ranks);
    std::vector<std::int64_t> ids;
    for (const SameKeyCode* one : codes) {
      ids.push_back(one->record_id);
      ids.push_back(one->other_record_id);
    }
    finding.title = fmt::format("{} generated other code than {} under {} equal cache key{}",
                                context.Who(ranks), context.WhoInside(codes.front()->ranks),
                                codes.size(), codes.size() == 1 ? "" : "s");
    finding.cause = "the cache key does not tell apart what the code depends on";
    finding.detail =
        "An entry that one rank stores is wrong for another one that loads it. "
        "'tlparse cache' shows the difference.";
    finding.query = fmt::format("SELECT * FROM output_code WHERE record_id IN {}", IdList(ids));
  }
}

}  // namespace

Result<void> FindCacheCauses(FindingContext& context) {
  if (context.HasRanks()) AddColdCaches(context);
  AddSameKeys(context);
  for (const ReasonFinding& what : kReasonFindings) RETURN_IF_ERROR(AddByReason(context, what));
  return {};
}

}  // namespace tlparse
