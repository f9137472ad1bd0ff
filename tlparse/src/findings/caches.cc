// Caches that some ranks hit and others missed, caches that were bypassed.
#include "queries/findings/caches.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "facts/cache/cause.h"
#include "facts/compiles/advice.h"
#include "facts/text/shorten.h"
#include "findings/context.h"

namespace tlparse {
namespace {

// Lookups under one key that these ranks missed and others hit.
struct Cold {
  std::vector<std::int32_t> slots;
  std::map<RankIndex, std::size_t> hits_of;  // by rank that hit: lookups
  std::vector<std::int64_t> ids;             // cache_event.id
  std::size_t lookups = 0;
  bool is_race = true;  // every hit came after one of these ranks had stored the entry
  std::optional<std::int64_t> since_us;
};

// When a lookup ended, at the latest; 0: unknown.
std::int64_t EndOf(const FindingContext& context, const JobLookup& lookup) {
  if (lookup.event_time_ns != 0) return (lookup.event_time_ns + lookup.time_taken_ns) / 1000;
  const JobCompile& compile = context.job.compiles()[static_cast<std::size_t>(lookup.compile)];
  return compile.start_us == 0 || compile.duration_us == 0 ? 0
                                                           : compile.start_us + compile.duration_us;
}

// When a lookup began, at the earliest; 0: unknown.
std::int64_t BeginOf(const FindingContext& context, const JobLookup& lookup) {
  return lookup.event_time_ns != 0
             ? lookup.event_time_ns / 1000
             : context.job.compiles()[static_cast<std::size_t>(lookup.compile)].start_us;
}

// When the rank that missed had stored the entry, at the latest; nothing: unknown. A lookup without
// a time may be of an entry that is stored after a later backward.
std::optional<std::int64_t> StoredAt(const FindingContext& context, const JobLookup& miss) {
  const JobCompile& compile = context.job.compiles()[static_cast<std::size_t>(miss.compile)];
  const bool is_known = miss.event_time_ns != 0
                            ? miss.time_taken_ns != 0
                            : compile.backward_duration_us == 0 && IsFinished(compile.status);
  if (!is_known) return std::nullopt;
  const std::int64_t end = EndOf(context, miss);
  return end == 0 ? std::nullopt : std::optional(end);
}

// Logs without rank that ended before any rank began are of other processes, as those that fill a
// cache before the job.
std::set<RankIndex> EndedBeforeTheRanks(const FindingContext& context) {
  std::int64_t first_us = INT64_MAX;
  const auto has_rank = [&](std::size_t i) {
    return context.job.participants()[i].rank.has_value();
  };
  for (std::size_t i = 0; i < context.status.size(); ++i) {
    if (has_rank(i))
      first_us = std::min(first_us, context.status[i].first_record_us.value_or(INT64_MAX));
  }
  std::set<RankIndex> earlier;
  for (std::size_t i = 0; i < context.status.size(); ++i) {
    if (!has_rank(i) && context.status[i].last_record_us.value_or(INT64_MAX) < first_us)
      earlier.insert(static_cast<RankIndex>(i));
  }
  return earlier;
}

// A rank that missed a key this long after another one had stored its entry asked another cache.
constexpr std::int64_t kStoreMarginUs = 5'000'000;

using Lookups = std::vector<const JobLookup*>;
using ColdCaches = std::map<std::vector<RankIndex>, Cold>;

class ColdFinder {
 public:
  explicit ColdFinder(const FindingContext& context)
      : context_(context), earlier_(EndedBeforeTheRanks(context)) {}

  ColdCaches Find() {
    for (const std::int32_t slot : context_.ranks.cache.lookups.order()) Examine(slot);
    return std::move(found_);
  }

 private:
  void Examine(std::int32_t lookup_slot);
  void ExamineKey(std::int32_t lookup_slot, const Lookups& lookups);
  bool IsLate(const JobLookup& miss, const Lookups& misses) const;
  void Add(std::int32_t lookup_slot, const Lookups& misses, const Lookups& hits, bool is_race);

  const FindingContext& context_;
  const std::set<RankIndex> earlier_;
  ColdCaches found_;
};

void ColdFinder::Examine(std::int32_t lookup_slot) {
  const LookupIndex& index = context_.ranks.cache.lookups;
  std::map<std::int64_t, Lookups> by_key;
  for (const std::int32_t one : index.slots()[static_cast<std::size_t>(lookup_slot)].lookups) {
    const JobLookup& lookup = index.lookups()[static_cast<std::size_t>(one)];
    if (lookup.key_id != 0) by_key[lookup.key_id].push_back(&lookup);
  }
  for (const auto& [key, lookups] : by_key) ExamineKey(lookup_slot, lookups);
}

bool ColdFinder::IsLate(const JobLookup& miss, const Lookups& misses) const {
  const std::int64_t begin = BeginOf(context_, miss);
  return begin != 0 && std::any_of(misses.begin(), misses.end(), [&](const JobLookup* other) {
           if (other->participant == miss.participant) return false;
           const std::optional<std::int64_t> stored = StoredAt(context_, *other);
           return stored && begin > *stored + kStoreMarginUs;
         });
}

void ColdFinder::ExamineKey(std::int32_t lookup_slot, const Lookups& lookups) {
  Lookups misses, hits, late, early;
  for (const JobLookup* lookup : lookups) {
    if (lookup->state == CacheState::kMiss) misses.push_back(lookup);
    if (lookup->state == CacheState::kHit) hits.push_back(lookup);
  }
  if (misses.empty() || hits.empty()) return;
  std::int64_t stored_us = INT64_MAX, first_hit_us = INT64_MAX;
  for (const JobLookup* miss : misses) {
    if (IsLate(*miss, misses)) {
      late.push_back(miss);
    } else if (earlier_.count(miss->participant) == 0) {
      early.push_back(miss);
      if (const std::int64_t end = EndOf(context_, *miss); end != 0)
        stored_us = std::min(stored_us, end);
    }
  }
  for (const JobLookup* hit : hits) {
    if (const std::int64_t end = EndOf(context_, *hit); end != 0)
      first_hit_us = std::min(first_hit_us, end);
  }
  // Unknown times claim nothing.
  const bool is_cold =
      first_hit_us != INT64_MAX && stored_us != INT64_MAX && first_hit_us < stored_us;
  if (is_cold) {
    late.insert(late.end(), early.begin(), early.end());
    early.clear();
  }
  if (!late.empty()) Add(lookup_slot, late, hits, false);
  if (!early.empty()) Add(lookup_slot, early, hits, true);
}

void ColdFinder::Add(std::int32_t lookup_slot, const Lookups& misses, const Lookups& hits,
                     bool is_race) {
  std::vector<RankIndex> missed;
  for (const JobLookup* miss : misses) missed.push_back(miss->participant);
  std::sort(missed.begin(), missed.end());
  Cold& cold = found_[missed];
  ++cold.lookups;
  for (const JobLookup* hit : hits) ++cold.hits_of[hit->participant];
  const std::int32_t slot =
      context_.ranks.cache.lookups.slots()[static_cast<std::size_t>(lookup_slot)].slot;
  if (cold.slots.empty() || cold.slots.back() != slot) cold.slots.push_back(slot);
  if (!is_race) cold.is_race = false;
  for (const JobLookup* miss : misses) {
    cold.ids.push_back(miss->id);
    const std::int64_t start_us =
        context_.job.compiles()[static_cast<std::size_t>(miss->compile)].start_us;
    if (start_us != 0 && (!cold.since_us || start_us < *cold.since_us)) cold.since_us = start_us;
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
  const bool is_each = std::all_of(caches.begin(), caches.end(), [&](const auto& one) {
    return !one.second.is_race || one.first == who;
  });
  finding.title = fmt::format(
      "{} missed {} cache entr{} in {} that others of this launch hit later, under the same key{}",
      context.Who(who),
      is_each ? std::to_string(lookups) : fmt::format("one or more of {}", lookups),
      lookups == 1 ? "y" : "ies", where, lookups == 1 ? "" : "s");
  finding.cause = "ranks that start together look for an entry before one of them has stored it";
  finding.detail =
      fmt::format("The hits came after {} had compiled, as they do where ranks share a cache.",
                  finding.ranks.empty() && who.size() > 1 ? "one of them"
                  : who.size() == 1                       ? context.WhoInside(who)
                                                          : "one of " + context.WhoInside(who));
  finding.query = fmt::format("SELECT * FROM cache_event WHERE id IN {}", IdList(ids));
}

// Nothing: the log lacks the time of one of them.
std::optional<double> CompileSeconds(const FindingContext& context, RankIndex rank,
                                     const std::vector<std::int32_t>& slots) {
  double seconds = 0;
  for (const std::int32_t slot : slots) {
    const std::int32_t index = context.job.CompileOf(rank, slot);
    if (index < 0) continue;
    const JobCompile& one = context.job.compiles()[static_cast<std::size_t>(index)];
    if (!one.Seconds()) return std::nullopt;
    seconds += *one.Seconds();
  }
  return seconds;
}

// The finding that a compile failed on these ranks in which they missed entries; nullptr: none.
Finding* FailureOf(FindingContext& context, const Finding& cold) {
  const auto found =
      std::find_if(context.findings.begin(), context.findings.end(), [&](const Finding& one) {
        return one.kind == FindingKind::kCompileFailed && one.ranks == cold.ranks &&
               std::find_first_of(one.compiles.begin(), one.compiles.end(), cold.compiles.begin(),
                                  cold.compiles.end()) != one.compiles.end();
      });
  return found == context.findings.end() ? nullptr : &*found;
}

void AddColdCaches(FindingContext& context) {
  const ColdCaches caches = ColdFinder(context).Find();
  for (const auto& [missed, cold] : caches) {
    if (cold.is_race) continue;
    Finding finding;
    finding.kind = FindingKind::kColdCache;
    finding.severity = FindingSeverity::kWarning;
    finding.launch = context.job.launch();
    context.SetRanks(finding, missed);
    const std::string where = context.SetCompiles(finding, cold.slots);
    // Not every rank made every one of these lookups.
    std::vector<RankIndex> hit, hit_some;
    for (const auto& [rank, count] : cold.hits_of)
      (count == cold.lookups ? hit : hit_some).push_back(rank);
    finding.title =
        fmt::format("{} missed {} cache entr{} in {} that {} hit under the same key{}",
                    context.Who(missed), cold.lookups, cold.lookups == 1 ? "y" : "ies", where,
                    hit.empty() ? "others" : context.WhoInside(hit), cold.lookups == 1 ? "" : "s");
    finding.cause = "the entries were not in the cache that these ranks asked";
    finding.since_us = cold.since_us;
    const std::optional<double> own = CompileSeconds(context, missed.front(), cold.slots);
    const std::optional<double> others =
        hit.empty() ? std::nullopt : CompileSeconds(context, hit.front(), cold.slots);
    if (own && others && *own > *others && *others > 0)
      finding.detail = fmt::format("These compiles took {:.1f} s on {}, {:.1f} s on {}.", *own,
                                   context.WhoInside({missed.front()}), *others,
                                   context.WhoInside({hit.front()}));
    if (!hit_some.empty())
      finding.detail += fmt::format("{}{} hit only some of them.",
                                    finding.detail.empty() ? "" : " ", context.Who(hit_some));
    finding.changes.push_back({ChangeKind::kSharedCache, {}, {}, {}, {}});
    finding.suggestion =
        "if the ranks have cache directories of their own (TORCHINDUCTOR_CACHE_DIR), share one, or "
        "fill all of them before the job; if they were filled, look at what those that missed "
        "printed: an entry that cannot be read is a miss";
    finding.query = fmt::format("SELECT * FROM cache_event WHERE id IN {}", IdList(cold.ids));
    Finding* const failure = FailureOf(context, finding);
    (failure != nullptr ? failure->evidence : context.findings).push_back(std::move(finding));
  }
  AddRaces(context, caches);
}

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
                          hits, hits == 1 ? "" : "s", hits + misses, hits + misses == 1 ? "" : "s");
  }
  if (const std::optional<double> seconds = CompileSeconds(context, who.front(), slots))
    text += fmt::format(" {} took {:.1f} s{}.", slots.size() == 1 ? "The compile" : "The compiles",
                        *seconds, who.size() == 1 ? "" : " on " + context.WhoInside({who.front()}));
  return text;
}

Result<void> AddByReason(FindingContext& context, const ReasonFinding& what) {
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
    const std::string where = context.SetCompiles(finding, slots);
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
    if (what.state == CacheState::kBypass) finding.suggestion = AdviceForBypass(finding.cause);
    finding.since_us = group.since_us;
    finding.query = fmt::format("SELECT * FROM cache_event WHERE id IN {}", IdList(group.ids));
  }
  std::erase_if(found, [&](const Finding& one) { return IsTold(context.findings, one); });
  std::move(found.begin(), found.end(), std::back_inserter(context.findings));
  return {};
}

}  // namespace

Result<void> FindCacheCauses(FindingContext& context) {
  if (context.HasRanks()) AddColdCaches(context);
  AddSameKeys(context);
  for (const ReasonFinding& what : kReasonFindings) RETURN_IF_ERROR(AddByReason(context, what));
  return {};
}

}  // namespace tlparse
