#include "facts/cache/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "facts/cache/cache_findings.h"
#include "facts/cache/key_difference.h"
#include "facts/contents/graph_difference.h"
#include "facts/contents/input_difference.h"
#include "facts/job/majority.h"
#include "facts/job/roles.h"
#include "facts/text/shorten.h"

namespace tlparse {
namespace {

// A class while it is being found: with its lookups.
struct WorkClass : CacheClass {
  std::vector<std::int32_t> lookups;
  std::set<std::int64_t> keys;
};

class ClassFinder {
 public:
  ClassFinder(Database& database, CacheAnswer& answer, KeyComparer comparer)
      : database_(database), answer_(answer), comparer_(std::move(comparer)), collector_(answer) {}

  Result<void> Run() {
    RETURN_IF_ERROR(FindMissingCompiles(database_, answer_, collector_));
    for (const std::int32_t slot : answer_.lookups.order()) RETURN_IF_ERROR(Examine(slot));
    FindMajorities(answer_);
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

  Result<void> Examine(std::int32_t lookup_slot);
  Result<std::vector<WorkClass>> Classify(const LookupSlot& slot);
  Result<void> PutMostAlikeFirst(std::vector<WorkClass>& classes);
  void FindWithoutLookup(std::int32_t lookup_slot, CacheLookupAnswer& answer);
  Result<void> Explain(std::int32_t lookup_slot, const WorkClass& reference, const WorkClass& other,
                       bool has_majority);
  Result<void> NoteKeysWithinClass(std::int32_t lookup_slot, const WorkClass& one);
  Result<void> DescribeGraph(const JobLookup& a, const JobLookup& b, CacheFinding& finding);
  Result<void> DescribeInputs(const JobLookup& a, const JobLookup& b, CacheFinding& finding);

  Database& database_;
  CacheAnswer& answer_;
  KeyComparer comparer_;
  FindingCollector collector_;
};

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
  if (!answer.has_majority) RETURN_IF_ERROR(PutMostAlikeFirst(classes));
  FindWithoutLookup(lookup_slot, answer);
  for (std::size_t i = 1; i < classes.size(); ++i) {
    RETURN_IF_ERROR(Explain(lookup_slot, classes[0], classes[i], answer.has_majority));
  }
  for (const WorkClass& one : classes) RETURN_IF_ERROR(NoteKeysWithinClass(lookup_slot, one));
  for (WorkClass& one : classes) answer.classes.push_back(std::move(static_cast<CacheClass&>(one)));
  answer_.lookup_answers.push_back(std::move(answer));
  return {};
}

// Where no class is a majority: the one whose keys differ least from those of the others. What sets
// it apart is then a difference to most.
Result<void> ClassFinder::PutMostAlikeFirst(std::vector<WorkClass>& classes) {
  constexpr std::size_t kMostClassesCompared = 16;
  if (classes.size() < 3 || classes.size() > kMostClassesCompared) return {};
  std::vector<std::vector<KeyComponent>> components(classes.size());
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const KeySet& set = Lookup(classes[i].lookups.front()).set;
    if (set.set_id == 0) return {};
    ASSIGN_OR_RETURN(components[i], comparer_.index().Expand(set.set_id));
  }
  std::size_t best = 0, fewest = SIZE_MAX;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    std::size_t count = 0;
    for (std::size_t j = 0; j < classes.size(); ++j)
      count += classes[j].ranks.size() * CountDifferences(components[i], components[j]);
    if (count < fewest) best = i, fewest = count;
  }
  PutFirst(classes, best);
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
    const bool is_shown =
        IsFinished(compile.status) && !answer_.damage.EndsEarly(answer_.job, rank);
    (is_shown ? answer.without_lookup : answer.unfinished).push_back(rank);
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
  finding.source = difference.Source();
  finding.has_other_nodes = difference.only_in_a + difference.only_in_b > 0;
  finding.is_of_parameters = difference.is_of_parameters;
  finding.is_of_numbers = difference.is_of_numbers;
  return {};
}

// Whether these ranks are the first of a dimension of a mesh, as the first stage of a pipeline is.
bool AreFirstOfMesh(const Job& job, const std::vector<RankIndex>& who) {
  std::map<std::int64_t, bool> is_one;
  for (std::size_t i = 0; i < job.participants().size(); ++i) {
    const std::optional<std::int64_t> rank = job.participants()[i].rank;
    if (!rank) return false;
    is_one[*rank] = std::binary_search(who.begin(), who.end(), static_cast<RankIndex>(i));
  }
  return SliceOfMesh(is_one) == 0U;
}

// What was given to the compile, where that differs, is why its graphs do, unless PyTorch has
// traced other nodes.
Result<void> ClassFinder::DescribeInputs(const JobLookup& a, const JobLookup& b,
                                         CacheFinding& finding) {
  if (finding.has_other_nodes) return {};
  const Job& job = answer_.job;
  const std::vector<JobCompile>& compiles = job.compiles();
  ASSIGN_OR_RETURN(const std::vector<InputDifference> inputs,
                   CompareInputs(database_, compiles[static_cast<std::size_t>(a.compile)].id,
                                 compiles[static_cast<std::size_t>(b.compile)].id));
  if (inputs.empty()) return {};
  finding.cause.kind = CauseKind::kInputs;
  finding.cause.text = InputChanges(inputs);
  for (const std::vector<RankIndex>* const ranks : {&finding.against, &finding.ranks}) {
    std::vector<std::int64_t> ids;
    for (const RankIndex rank : *ranks) {
      const std::int32_t own =
          job.CompileOf(rank, compiles[static_cast<std::size_t>(a.compile)].slot);
      if (own >= 0) ids.push_back(compiles[static_cast<std::size_t>(own)].id);
    }
    ASSIGN_OR_RETURN(const bool differ, DifferAmong(database_, inputs, ids));
    if (!differ) continue;
    finding.cause.text +=
        fmt::format(" (from {} to {}; {} differ in it as well)", job.NameRanks({a.participant}),
                    job.NameRanks({b.participant}), job.NameRanks(*ranks));
    break;
  }
  finding.cause.is_of_first_stage =
      (AreWithoutGradient(inputs, false) && AreFirstOfMesh(job, finding.against)) ||
      (AreWithoutGradient(inputs, true) && AreFirstOfMesh(job, finding.ranks));
  finding.cause.is_of_sizes = std::all_of(
      inputs.begin(), inputs.end(),
      [](const InputDifference& one) { return DigitsAsZero(one.a) == DigitsAsZero(one.b); });
  finding.node.clear();
  finding.against_node.clear();
  finding.source.clear();
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
  // What one side has; `is_first`: the reference.
  const auto add_of_side = [&](CauseKind kind, bool is_first, std::string_view prefix,
                               std::string text) {
    CacheFinding finding = base;
    finding.cause.kind = kind;
    finding.cause.text = fmt::format("{}{}", is_first ? prefix : "", text);
    finding.cause.reason = std::move(text);
    finding.cause.is_of_first = is_first;
    collector_.Add(std::move(finding), lookup_slot, CompileSlot(lookup_slot));
  };
  const auto bypasses = [](const JobLookup& lookup) {
    return lookup.state == CacheState::kBypass || lookup.state == CacheState::kDisabled;
  };
  const auto reason = [](const JobLookup& lookup, const std::string& logged) {
    return !logged.empty()                         ? Shorten(logged, 300)
           : lookup.state == CacheState::kDisabled ? std::string("it is disabled")
                                                   : std::string("no reason given");
  };
  constexpr std::string_view kOnOthers = "on the others: ";
  if (bypasses(a) || bypasses(b)) {
    const bool is_other = bypasses(b);
    add_of_side(CauseKind::kBypass, !is_other, "the others bypass: ",
                is_other ? reason(b, other.bypass_reason) : reason(a, reference.bypass_reason));
    return {};
  }
  if ((a.state == CacheState::kRemoteError) != (b.state == CacheState::kRemoteError)) {
    const bool is_other = b.state == CacheState::kRemoteError;
    const std::string& error = is_other ? other.remote_error : reference.remote_error;
    add_of_side(CauseKind::kRemoteError, !is_other, kOnOthers,
                error.empty() ? "no reason given" : Shorten(error, 300));
    if (a.key_id != 0 && a.key_id == b.key_id) return {};
  }
  const bool both_miss_guards = a.state == b.state && other.guard == reference.guard;
  if ((a.state == CacheState::kGuardMiss || b.state == CacheState::kGuardMiss) &&
      !both_miss_guards) {
    const bool is_other = b.state == CacheState::kGuardMiss;
    const std::string& guard = is_other ? other.guard : reference.guard;
    add_of_side(CauseKind::kGuardMiss, !is_other, kOnOthers,
                guard.empty() ? "guard not logged" : Shorten(guard, 300));
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
        difference.fallback.empty() ? "the keys differ, no component of them does"
                                    : difference.fallback);
    return {};
  }
  for (Cause& cause : causes) {
    CacheFinding finding = base;
    if (cause.kind == CauseKind::kGraph) RETURN_IF_ERROR(DescribeGraph(a, b, finding));
    finding.cause = std::move(cause);
    finding.fallback = difference.fallback;
    // The graphs of one function with its gradients and without.
    const bool is_one_graph = finding.node.empty() && finding.against_node.empty();
    if (std::string change = GradientChange(finding.cause);
        finding.cause.kind == CauseKind::kGraph && is_one_graph && !change.empty()) {
      finding.cause.kind = CauseKind::kInputs;
      finding.cause.text = std::move(change);
    }
    if (finding.cause.kind == CauseKind::kGraph || finding.cause.kind == CauseKind::kInputs)
      RETURN_IF_ERROR(DescribeInputs(a, b, finding));
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
      finding.cause.text =
          fmt::format("{} keys, of which no component in the log differs", one.distinct_keys);
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

}  // namespace tlparse
