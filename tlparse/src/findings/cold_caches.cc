// Caches that some ranks hit and others missed.
#include "queries/findings/cold_caches.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/plural.h"
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
  const std::vector<std::int32_t>& all =
      index.slots()[static_cast<std::size_t>(lookup_slot)].lookups;
  const auto has = [&](CacheState state) {
    return std::any_of(all.begin(), all.end(), [&](std::int32_t one) {
      return index.lookups()[static_cast<std::size_t>(one)].state == state;
    });
  };
  if (!has(CacheState::kMiss) || !has(CacheState::kHit)) return;
  std::map<std::int64_t, Lookups> by_key;
  for (const std::int32_t one : all) {
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
  const std::string where = context.SetCompiles(finding, {slots.begin(), slots.end()}, who);
  const bool is_each = std::all_of(caches.begin(), caches.end(), [&](const auto& one) {
    return !one.second.is_race || one.first == who;
  });
  finding.title = fmt::format(
      "{} missed {} cache entr{} in {} that others of this launch hit later, under the same key{}",
      context.Who(who),
      is_each ? std::to_string(lookups) : fmt::format("one or more of {}", lookups),
      lookups == 1 ? "y" : "ies", where, PluralS(lookups));
  finding.cause = "ranks that start together look for an entry before one of them has stored it";
  finding.detail =
      fmt::format("The hits came after {} had compiled, as they do where ranks share a cache.",
                  finding.ranks.empty() && who.size() > 1 ? "one of them"
                  : who.size() == 1                       ? context.WhoInside(who)
                                                          : "one of " + context.WhoInside(who));
  finding.query = fmt::format("SELECT * FROM cache_event WHERE id IN {}", IdList(ids));
}

// Whether an earlier launch missed all entries of these lookups: it began to fill the caches.
Result<bool> AreOfEarlierLaunch(FindingContext& context, const std::vector<std::int64_t>& ids) {
  if (context.job.launch() < 2) return false;
  ASSIGN_OR_RETURN(const FirstRow<MissedBefore> row,
                   First(Query<MissedBefore>(context.database, {.run_id = context.job.run_id(),
                                                                .launch = context.job.launch(),
                                                                .ids = ids})));
  return row && row->keys > 0 && row->keys == row->missed_before;
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

}  // namespace

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

Result<void> AddColdCaches(FindingContext& context) {
  const ColdCaches caches = ColdFinder(context).Find();
  for (const auto& [missed, cold] : caches) {
    if (cold.is_race) continue;
    Finding finding;
    finding.kind = FindingKind::kColdCache;
    finding.severity = FindingSeverity::kWarning;
    finding.launch = context.job.launch();
    context.SetRanks(finding, missed);
    const std::string where = context.SetCompiles(finding, cold.slots, missed);
    // Not every rank made every one of these lookups.
    std::vector<RankIndex> hit, hit_some;
    for (const auto& [rank, count] : cold.hits_of)
      (count == cold.lookups ? hit : hit_some).push_back(rank);
    finding.title =
        fmt::format("{} missed {} cache entr{} in {} that {} hit under the same key{}",
                    context.Who(missed), cold.lookups, cold.lookups == 1 ? "y" : "ies", where,
                    hit.empty() ? "others" : context.WhoInside(hit), PluralS(cold.lookups));
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
    ASSIGN_OR_RETURN(const bool is_of_launch, AreOfEarlierLaunch(context, cold.ids));
    if (is_of_launch) {
      finding.severity = FindingSeverity::kNote;
      finding.detail += fmt::format(
          "{}An earlier launch had missed these entries, and so filled them, on some "
          "ranks only.",
          finding.detail.empty() ? "" : " ");
    }
    Finding* const failure = FailureOf(context, finding);
    (failure != nullptr ? failure->evidence : context.findings).push_back(std::move(finding));
  }
  AddRaces(context, caches);
  return {};
}

}  // namespace tlparse
