#include "analysis/cache/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "analysis/cache/key_difference.h"
#include "analysis/diff/graph_difference.h"
#include "analysis/majority.h"
#include "analysis/read_transaction.h"
#include "analysis/recompile_reasons.h"

namespace tlparse {
namespace {

// A class while it is being found: with its lookups.
struct WorkClass : CacheClass {
  std::vector<std::int32_t> lookups;
  std::set<std::int64_t> keys;
};

// Findings by cause and ranks, so that each is reported once.
class FindingCollector {
 public:
  explicit FindingCollector(CacheAnswer& answer) : answer_(answer) {}

  void Add(CacheFinding finding, std::int32_t lookup_slot, std::int32_t compile_slot) {
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
    const Key key{
        kind, is_for_all ? std::vector<RankIndex>() : finding.ranks,
        by_text ? finding.cause.text : std::string(),
        kind == CauseKind::kStorage ? finding.state + finding.against_state : std::string()};
    const auto [found, is_new] = index_.try_emplace(key, answer_.findings.size());
    if (is_new) {
      answer_.findings.push_back(std::move(finding));
    } else if (is_for_all && answer_.findings[found->second].ranks != finding.ranks) {
      std::vector<RankIndex>& ranks = answer_.findings[found->second].ranks;
      std::vector<RankIndex> all;
      std::set_union(ranks.begin(), ranks.end(), finding.ranks.begin(), finding.ranks.end(),
                     std::back_inserter(all));
      ranks = std::move(all);
    }
    CacheFinding& stored = answer_.findings[found->second];
    const auto add = [](std::vector<std::int32_t>& slots, std::int32_t slot) {
      if (slots.empty() || slots.back() != slot) slots.push_back(slot);
    };
    if (lookup_slot >= 0) add(stored.lookup_slots, lookup_slot);
    add(stored.compile_slots, compile_slot);
  }

 private:
  using Key = std::tuple<CauseKind, std::vector<RankIndex>, std::string, std::string>;
  CacheAnswer& answer_;
  std::map<Key, std::size_t> index_;
};

class ClassFinder {
 public:
  ClassFinder(Database& database, CacheAnswer& answer, KeyComparer comparer)
      : database_(database), answer_(answer), comparer_(std::move(comparer)), collector_(answer) {}

  Result<void> Run() {
    RETURN_IF_ERROR(FindMissingCompiles());
    for (const std::int32_t slot : answer_.lookups.order()) RETURN_IF_ERROR(Examine(slot));
    std::stable_sort(
        answer_.findings.begin(), answer_.findings.end(),
        [](const CacheFinding& a, const CacheFinding& b) { return a.cause.kind < b.cause.kind; });
    return {};
  }

 private:
  const JobLookup& Lookup(std::int32_t index) const {
    return answer_.lookups.lookups()[static_cast<std::size_t>(index)];
  }
  std::int32_t CompileSlot(std::int32_t lookup_slot) const {
    return answer_.lookups.slots()[static_cast<std::size_t>(lookup_slot)].slot;
  }

  Result<void> FindMissingCompiles();
  Result<void> Examine(std::int32_t lookup_slot);
  Result<std::vector<WorkClass>> Classify(const LookupSlot& slot);
  void FindWithoutLookup(std::int32_t lookup_slot, CacheLookupAnswer& answer);
  Result<void> Explain(std::int32_t lookup_slot, const WorkClass& reference, const WorkClass& other,
                       bool has_majority);
  Result<void> NoteKeysWithinClass(std::int32_t lookup_slot, const WorkClass& one);
  Result<void> DescribeGraph(const JobLookup& a, const JobLookup& b, CacheFinding& finding);

  Database& database_;
  CacheAnswer& answer_;
  KeyComparer comparer_;
  FindingCollector collector_;
};

Result<void> ClassFinder::FindMissingCompiles() {
  const Job& job = answer_.job;
  for (const std::int32_t slot : job.slot_order()) {
    CacheFinding finding;
    for (std::size_t i = 0; i < job.participants().size(); ++i) {
      const auto rank = static_cast<RankIndex>(i);
      (job.CompileOf(rank, slot) < 0 ? finding.ranks : finding.against).push_back(rank);
    }
    if (finding.ranks.empty() || finding.against.empty()) continue;
    finding.has_majority = finding.ranks.size() != finding.against.size();
    // The few are odd: those without the compile, or those with it.
    const bool few_have_it = finding.ranks.size() > finding.against.size();
    if (few_have_it) std::swap(finding.ranks, finding.against);
    finding.cause.kind = CauseKind::kMissingCompile;
    const RankIndex with_it = few_have_it ? finding.ranks.front() : finding.against.front();
    const std::int64_t compile_id =
        job.compiles()[static_cast<std::size_t>(job.CompileOf(with_it, slot))].id;
    ASSIGN_OR_RETURN(const std::vector<FailedEntry> entries,
                     LoadFailedEntries(database_, compile_id));
    const std::string reason = FailedEntriesText(entries, "");
    // A log that is cut or damaged does not show what was not compiled.
    const bool is_incomplete =
        answer_.damage.AnyIsIncomplete(few_have_it ? finding.against : finding.ranks);
    finding.cause.text = few_have_it
                             ? (is_incomplete ? "in the log here only" : "compiled here only")
                         : is_incomplete ? "not in the log, which is cut off or damaged"
                                         : "not compiled here";
    if (!reason.empty()) finding.cause.text += ", recompiled because " + Shorten(reason, 300);
    finding.state = few_have_it ? "compiled" : "absent";
    finding.against_state = few_have_it ? "absent" : "compiled";
    collector_.Add(std::move(finding), -1, slot);
  }
  return {};
}

Result<std::vector<WorkClass>> ClassFinder::Classify(const LookupSlot& slot) {
  // One key, one input: whatever else the log says
  std::unordered_map<std::int64_t, Hash128> evidence_of_key;
  std::map<std::tuple<CacheState, std::uint64_t, std::uint64_t, std::int64_t>, std::size_t> index;
  std::vector<WorkClass> classes;
  for (const std::int32_t lookup_index : slot.lookups) {
    const JobLookup& lookup = Lookup(lookup_index);
    Hash128 evidence;
    if (lookup.key_id == 0) {
      ASSIGN_OR_RETURN(evidence, comparer_.Evidence(lookup));
    } else if (const auto known = evidence_of_key.find(lookup.key_id);
               known != evidence_of_key.end()) {
      evidence = known->second;
    } else {
      ASSIGN_OR_RETURN(evidence, comparer_.Evidence(lookup));
      evidence_of_key.emplace(lookup.key_id, evidence);
    }
    const auto [found, is_new] = index.try_emplace(
        {lookup.state, evidence.low, evidence.high, lookup.guard_id}, classes.size());
    if (is_new) {
      WorkClass one;
      one.state = lookup.state;
      ASSIGN_OR_RETURN(one.key, database_.QueryText("SELECT key FROM cache_key_row WHERE id = ?",
                                                    lookup.key_id));
      ASSIGN_OR_RETURN(one.bypass_reason, TextOf(database_, lookup.bypass_id));
      ASSIGN_OR_RETURN(one.guard, TextOf(database_, lookup.guard_id));
      ASSIGN_OR_RETURN(one.remote_error, TextOf(database_, lookup.remote_error_id));
      classes.push_back(std::move(one));
    }
    WorkClass& one = classes[found->second];
    one.ranks.push_back(lookup.participant);
    one.lookups.push_back(lookup_index);
    if (lookup.key_id != 0) one.keys.insert(lookup.key_id);
  }
  for (WorkClass& one : classes) one.distinct_keys = one.keys.size();
  return classes;
}

Result<void> ClassFinder::Examine(std::int32_t lookup_slot) {
  ASSIGN_OR_RETURN(std::vector<WorkClass> classes,
                   Classify(answer_.lookups.slots()[static_cast<std::size_t>(lookup_slot)]));
  CacheLookupAnswer answer;
  answer.lookup_slot = lookup_slot;
  answer.has_majority = OrderByReference(classes);
  FindWithoutLookup(lookup_slot, answer);
  for (std::size_t i = 1; i < classes.size(); ++i) {
    RETURN_IF_ERROR(Explain(lookup_slot, classes[0], classes[i], answer.has_majority));
  }
  for (const WorkClass& one : classes) RETURN_IF_ERROR(NoteKeysWithinClass(lookup_slot, one));
  for (WorkClass& one : classes) answer.classes.push_back(std::move(static_cast<CacheClass&>(one)));
  answer_.lookup_answers.push_back(std::move(answer));
  return {};
}

void ClassFinder::FindWithoutLookup(std::int32_t lookup_slot, CacheLookupAnswer& answer) {
  const LookupSlot& slot = answer_.lookups.slots()[static_cast<std::size_t>(lookup_slot)];
  std::vector<char> has_lookup(answer_.job.participants().size());
  for (const std::int32_t index : slot.lookups)
    has_lookup[static_cast<std::size_t>(Lookup(index).participant)] = 1;
  for (std::size_t i = 0; i < has_lookup.size(); ++i) {
    const auto rank = static_cast<RankIndex>(i);
    const std::int32_t index = answer_.job.CompileOf(rank, slot.slot);
    if (has_lookup[i] != 0 || index < 0) continue;
    const JobCompile& compile = answer_.job.compiles()[static_cast<std::size_t>(index)];
    (answer_.job.IsFinished(compile) ? answer.without_lookup : answer.unfinished).push_back(rank);
  }
}

Result<void> ClassFinder::DescribeGraph(const JobLookup& a, const JobLookup& b,
                                        CacheFinding& finding) {
  const std::vector<JobCompile>& compiles = answer_.job.compiles();
  ASSIGN_OR_RETURN(
      const GraphDifference difference,
      CompareGraphs(database_, compiles[static_cast<std::size_t>(a.compile)].graph_content,
                    database_, compiles[static_cast<std::size_t>(b.compile)].graph_content));
  if (!difference.differs) return {};
  finding.node = difference.b_node;
  finding.against_node = difference.a_node;
  finding.source = difference.b_source.empty() ? difference.a_source : difference.b_source;
  return {};
}

Result<void> ClassFinder::Explain(std::int32_t lookup_slot, const WorkClass& reference,
                                  const WorkClass& other, bool has_majority) {
  const JobLookup& a = Lookup(reference.lookups.front());
  const JobLookup& b = Lookup(other.lookups.front());
  CacheFinding base;
  base.ranks = other.ranks;
  base.against = reference.ranks;
  base.has_majority = has_majority;
  base.state = Name(other.state);
  base.against_state = Name(reference.state);
  const auto add = [&](CauseKind kind, std::string text) {
    CacheFinding finding = base;
    finding.cause.kind = kind;
    finding.cause.text = std::move(text);
    collector_.Add(std::move(finding), lookup_slot, CompileSlot(lookup_slot));
  };
  const auto bypasses = [](const JobLookup& lookup) {
    return lookup.state == CacheState::kBypass || lookup.state == CacheState::kDisabled;
  };
  if (bypasses(b)) {
    add(CauseKind::kBypass,
        other.bypass_reason.empty() ? "no reason given" : Shorten(other.bypass_reason, 300));
    return {};
  }
  if (bypasses(a)) {
    add(CauseKind::kBypass,
        fmt::format("the others bypass: {}", Shorten(reference.bypass_reason, 300)));
    return {};
  }
  if ((a.state == CacheState::kRemoteError) != (b.state == CacheState::kRemoteError)) {
    const bool is_other = b.state == CacheState::kRemoteError;
    const std::string& error = is_other ? other.remote_error : reference.remote_error;
    add(CauseKind::kRemoteError,
        fmt::format("{}{}", is_other ? "" : "on the others: ",
                    error.empty() ? "no reason given" : Shorten(error, 300)));
    if (a.key_id != 0 && a.key_id == b.key_id) return {};
  }
  if (a.state == CacheState::kGuardMiss || b.state == CacheState::kGuardMiss) {
    const bool is_other = b.state == CacheState::kGuardMiss;
    const std::string& guard = is_other ? other.guard : reference.guard;
    add(CauseKind::kGuardMiss,
        fmt::format("{}{}", is_other ? "" : "on the others: ",
                    guard.empty() ? "guard not logged" : Shorten(guard, 300)));
  }
  if (a.key_id != 0 && a.key_id == b.key_id) {
    if (a.state != b.state && a.state != CacheState::kGuardMiss &&
        b.state != CacheState::kGuardMiss) {
      add(CauseKind::kStorage, fmt::format("same key, {} here and {} there: one side had no entry",
                                           Name(b.state), Name(a.state)));
    }
    return {};
  }
  ASSIGN_OR_RETURN(KeyDifference difference, comparer_.Compare(a, b));
  std::vector<Cause> causes = FindCauses(std::move(difference.differences),
                                         comparer_.Context(a.participant, b.participant));
  if (causes.empty()) {
    const bool is_note =
        difference.has_evidence && (difference.fallback.empty() || a.state == b.state);
    add(is_note ? CauseKind::kUnlogged : CauseKind::kUnknown,
        difference.fallback.empty() ? "keys differ, no component does: not a divergence of inputs"
                                    : difference.fallback);
    return {};
  }
  for (Cause& cause : causes) {
    CacheFinding finding = base;
    if (cause.kind == CauseKind::kGraph) RETURN_IF_ERROR(DescribeGraph(a, b, finding));
    finding.cause = std::move(cause);
    finding.fallback = difference.fallback;
    collector_.Add(std::move(finding), lookup_slot, CompileSlot(lookup_slot));
  }
  return {};
}

// Ranks of one class have different keys by expected differences: named once, with one pair as
// the example.
Result<void> ClassFinder::NoteKeysWithinClass(std::int32_t lookup_slot, const WorkClass& one) {
  if (one.distinct_keys < 2) return {};
  const JobLookup& a = Lookup(one.lookups.front());
  for (const std::int32_t index : one.lookups) {
    const JobLookup& b = Lookup(index);
    if (b.key_id == a.key_id || b.key_id == 0) continue;
    ASSIGN_OR_RETURN(KeyDifference difference, comparer_.Compare(a, b));
    CacheFinding finding;
    finding.ranks = one.ranks;
    finding.state = finding.against_state = Name(one.state);
    finding.fallback = difference.fallback;
    std::vector<Cause> causes = FindCauses(std::move(difference.differences),
                                           comparer_.Context(a.participant, b.participant));
    if (causes.empty()) {
      finding.cause.kind = CauseKind::kUnlogged;
      finding.cause.text = fmt::format(
          "{} keys, no component that the log shows differs: not a divergence of inputs",
          one.distinct_keys);
    } else {
      finding.cause = std::move(causes.back());
    }
    collector_.Add(std::move(finding), lookup_slot, CompileSlot(lookup_slot));
    return {};
  }
  return {};
}

}  // namespace

bool CacheAnswer::MayBeDamage(const CacheFinding& finding) const {
  const bool is_cut =
      finding.cause.kind == CauseKind::kMissingCompile &&
      damage.AnyIsIncomplete(finding.state == "absent" ? finding.ranks : finding.against);
  return is_cut || damage.MayExplain(finding.ranks, finding.against);
}

bool CacheAnswer::HasDivergence() const {
  return !same_key_codes.empty() ||
         std::any_of(findings.begin(), findings.end(), [&](const CacheFinding& finding) {
           return !IsExpected(finding.cause.kind) && !MayBeDamage(finding);
         });
}

Result<void> FindCacheClasses(Database& database, CacheAnswer& answer) {
  ASSIGN_OR_RETURN(KeyComparer comparer, KeyComparer::Make(database, answer.job, answer.lookups));
  return ClassFinder(database, answer, std::move(comparer)).Run();
}

Result<CacheAnswer> AnalyzeCache(Database& database, const CacheOptions& options) {
  ASSIGN_OR_RETURN(const ReadTransaction transaction, ReadTransaction::Begin(database));
  CacheAnswer answer;
  ASSIGN_OR_RETURN(answer.job, Job::Load(database, options.run, options.launch));
  ASSIGN_OR_RETURN(answer.graphs, JobGraphs::Load(database, answer.job));
  ASSIGN_OR_RETURN(answer.damage, FindLogDamage(database, answer.job));
  ASSIGN_OR_RETURN(answer.lookups, LookupIndex::Load(database, answer.job, answer.graphs));
  RETURN_IF_ERROR(FindCacheClasses(database, answer));
  ASSIGN_OR_RETURN(answer.economics, SumEconomics(database, answer.lookups));
  if (options.with_code_check) {
    ASSIGN_OR_RETURN(answer.same_key_codes, FindSameKeyCodes(database, answer.job));
  }
  if (!options.with_closest_keys) return answer;
  RankIndex participant = answer.job.HasSeveral() ? -1 : 0;
  if (options.rank) {
    for (std::size_t i = 0; i < answer.job.participants().size(); ++i) {
      if (answer.job.participants()[i].name == *options.rank)
        participant = static_cast<RankIndex>(i);
    }
    if (participant < 0 ||
        answer.job.participants()[static_cast<std::size_t>(participant)].name != *options.rank) {
      return Fail(ErrorCode::kNotFound,
                  fmt::format("run '{}' has no rank '{}'", answer.job.run_name(), *options.rank));
    }
  }
  if (participant >= 0) {
    ASSIGN_OR_RETURN(answer.closest_keys, FindClosestKeys(database, answer, participant));
  }
  return answer;
}

}  // namespace tlparse
