#include "facts/ranks/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "facts/contents/graph_difference.h"
#include "facts/job/majority.h"
#include "facts/ranks/aspect_text.h"
#include "facts/ranks/other_functions.h"
#include "facts/ranks/rank_facts.h"
#include "facts/ranks/rank_options.h"
#include "facts/ranks/rank_votes.h"
#include "facts/text/shorten.h"

namespace tlparse {
namespace {

class RankClassifier {
 public:
  RankClassifier(Database& database, RanksAnswer& answer, RankFacts facts, RankOptions options)
      : database_(database),
        answer_(answer),
        job_(answer.cache.job),
        facts_(std::move(facts)),
        options_(std::move(options)) {}

  Result<void> Run();

 private:
  // Index of the class that a rank is in, per answer; 0 for ranks that are in none.
  std::vector<std::int64_t> ClassIndex(const auto& classes) const;
  std::vector<std::set<std::int64_t>> FindingsOfRanks() const;
  Result<void> Classify();
  Result<void> DescribeAll();
  void DescribeBuild(RankClass& one) const;
  void DescribeOptions(RankClass& one) const;
  bool MadeLookup(const CacheFinding& finding, RankIndex rank) const;
  bool IsBetween(const CacheFinding& finding, const RankClass& one, bool there) const;
  void DescribeMissing(const CacheFinding& finding, RankClass& one, bool there) const;
  void DescribeFindings(RankClass& one) const;
  void DescribeCollectives(RankClass& one) const;
  void DescribeExecution(RankClass& one) const;
  Result<void> DescribeFacts(RankClass& one);
  bool Has(const std::vector<RankIndex>& ranks, RankIndex rank) const {
    return std::binary_search(ranks.begin(), ranks.end(), rank);
  }
  const JobParticipant& Participant(RankIndex rank) const {
    return job_.participants()[static_cast<std::size_t>(rank)];
  }

  Database& database_;
  RanksAnswer& answer_;
  const Job& job_;
  RankFacts facts_;
  RankOptions options_;
};

std::vector<std::int64_t> RankClassifier::ClassIndex(const auto& classes) const {
  std::vector<std::int64_t> index(job_.participants().size());
  for (std::size_t i = 0; i < classes.size(); ++i) {
    for (const RankIndex rank : classes[i].ranks)
      index[static_cast<std::size_t>(rank)] = static_cast<std::int64_t>(i);
  }
  return index;
}

std::vector<std::set<std::int64_t>> RankClassifier::FindingsOfRanks() const {
  std::vector<std::set<std::int64_t>> result(job_.participants().size());
  for (std::size_t i = 0; i < answer_.cache.findings.size(); ++i) {
    const CacheFinding& finding = answer_.cache.findings[i];
    if (IsNote(finding.cause.kind)) continue;
    for (const RankIndex rank : finding.ranks)
      result[static_cast<std::size_t>(rank)].insert(static_cast<std::int64_t>(i));
  }
  return result;
}

Result<void> RankClassifier::Classify() {
  const std::vector<std::int64_t> collectives = ClassIndex(answer_.collectives.classes);
  std::vector<std::int64_t> execution = ClassIndex(answer_.execution.classes);
  for (std::int64_t& one : execution) {
    if (one > 0 && answer_.execution.classes[static_cast<std::size_t>(one)].is_order_of_threads)
      one = 0;
  }
  const std::vector<std::set<std::int64_t>> findings = FindingsOfRanks();
  std::vector<std::set<std::int64_t>> tensors(job_.participants().size());
  for (std::size_t i = 0; i < answer_.execution.tensors.size(); ++i) {
    for (const RankIndex rank : answer_.execution.tensors[i].ranks)
      tensors[static_cast<std::size_t>(rank)].insert(static_cast<std::int64_t>(i));
  }
  const std::string& torch = facts_.common_torch();
  const std::string& python = facts_.common_python();
  std::unordered_map<Hash128, std::size_t, Hash128Hasher> index;
  for (std::size_t i = 0; i < job_.participants().size(); ++i) {
    const auto rank = static_cast<RankIndex>(i);
    SequenceHash hash;
    const Hash128 facts = facts_.Signature(rank);
    hash.Add(static_cast<std::int64_t>(facts.low));
    hash.Add(static_cast<std::int64_t>(facts.high));
    hash.Add(Participant(rank).torch_version.empty() ? torch : Participant(rank).torch_version);
    hash.Add(Participant(rank).python_version.empty() ? python : Participant(rank).python_version);
    hash.Add(options_.ClassOf(rank));
    hash.Add(collectives[i]);
    hash.Add(execution[i]);
    for (const std::int64_t finding : findings[i]) hash.Add(finding);
    hash.Add("tensors");
    for (const std::int64_t tensor : tensors[i]) hash.Add(tensor);
    const auto [found, is_new] = index.try_emplace(hash.Digest(), answer_.classes.size());
    if (is_new) answer_.classes.emplace_back();
    answer_.classes[found->second].ranks.push_back(rank);
  }
  if (OrderByReference(answer_.classes)) return {};
  ASSIGN_OR_RETURN(const std::size_t reference, ChooseReference(database_, answer_));
  PutFirst(answer_.classes, reference);
  return {};
}

void RankClassifier::DescribeBuild(RankClass& one) const {
  const JobParticipant& a = Participant(answer_.classes.front().ranks.front());
  const JobParticipant& b = Participant(one.ranks.front());
  std::string text;
  if (!a.torch_version.empty() && !b.torch_version.empty() && a.torch_version != b.torch_version) {
    text = fmt::format("torch {} → {}", a.torch_version, b.torch_version);
  }
  if (!a.python_version.empty() && !b.python_version.empty() &&
      a.python_version != b.python_version) {
    text += fmt::format("{}Python {} → {}", text.empty() ? "" : ", ", Shorten(a.python_version, 30),
                        Shorten(b.python_version, 30));
  }
  if (!text.empty()) one.aspects.push_back({AspectArea::kBuild, text});
}

bool RankClassifier::MadeLookup(const CacheFinding& finding, RankIndex rank) const {
  const LookupIndex& index = answer_.cache.lookups;
  return std::any_of(
      finding.lookup_slots.begin(), finding.lookup_slots.end(), [&](std::int32_t slot) {
        const auto& lookups = index.slots()[static_cast<std::size_t>(slot)].lookups;
        return std::any_of(lookups.begin(), lookups.end(), [&](std::int32_t lookup) {
          return index.lookups()[static_cast<std::size_t>(lookup)].participant == rank;
        });
      });
}

// Whether a finding is about a difference between the reference and this class. `there`: it names
// the reference.
bool RankClassifier::IsBetween(const CacheFinding& finding, const RankClass& one,
                               bool there) const {
  const RankIndex other = there ? one.ranks.front() : answer_.classes.front().ranks.front();
  // A log that ends before a compile is on neither side.
  if (finding.cause.kind == CauseKind::kMissingCompile) return Has(finding.against, other);
  if (finding.lookup_slots.empty()) return true;
  // Where there is no majority, lookups are compared with a reference of their own.
  return MadeLookup(finding, other) && (finding.has_majority || Has(finding.against, other));
}

void RankClassifier::DescribeMissing(const CacheFinding& finding, RankClass& one,
                                     bool there) const {
  const bool is_on_others = there != (finding.state == "absent");
  const std::vector<RankIndex>& lacking = is_on_others ? one.ranks : answer_.classes.front().ranks;
  const bool is_incomplete = answer_.damage.AnyIsIncomplete(lacking);
  const bool is_end = !answer_.damage.Shows(job_, lacking.front(), finding.compile_slots.front());
  const char* const what = is_on_others
                               ? (is_incomplete ? "not in the log, which is cut off or damaged"
                                  : is_end      ? "not in the log, which ends before it"
                                                : "not compiled here")
                           : is_incomplete || is_end ? "in the log here only"
                                                     : "compiled here only";
  const std::vector<RankIndex> who = {answer_.classes.front().ranks.front(), one.ranks.front()};
  one.aspects.push_back({AspectArea::kCompiles,
                         fmt::format("{}: {}{}{}", FirstTitles(job_, finding.compile_slots, who),
                                     what, finding.cause.recompiled.empty() ? "" : ", recompiled ",
                                     finding.cause.recompiled),
                         finding.compile_slots, finding.cause.kind, is_on_others, false,
                         finding.cause.recompiled});
  one.aspects.back().is_absence = is_on_others && is_end && !is_incomplete;
}

void RankClassifier::DescribeFindings(RankClass& one) const {
  const RankIndex reference = answer_.classes.front().ranks.front();
  for (const CacheFinding& finding : answer_.cache.findings) {
    const bool here = Has(finding.ranks, one.ranks.front()), there = Has(finding.ranks, reference);
    if (IsNote(finding.cause.kind) || here == there || !IsBetween(finding, one, there)) continue;
    const bool is_known_graph =
        there && finding.cause.kind == CauseKind::kGraph &&
        std::any_of(one.aspects.begin(), one.aspects.end(), [&](const RankAspect& aspect) {
          return aspect.cause == CauseKind::kGraph && aspect.slots == finding.compile_slots;
        });
    if (is_known_graph) continue;
    const std::vector<std::int32_t> slots =
        OfOneFunction(database_, job_, reference, one.ranks.front(), finding.compile_slots);
    if (slots.empty() && !finding.compile_slots.empty()) continue;
    if (finding.cause.kind == CauseKind::kMissingCompile) {
      DescribeMissing(finding, one, there);
    } else {
      // Nodes of two graphs can be told in either order: that from the reference to this class.
      const bool is_reversed = there && finding.cause.kind == CauseKind::kGraph &&
                               !(finding.node.empty() && finding.against_node.empty()) &&
                               Has(finding.against, one.ranks.front());
      const bool is_on_others = there != finding.cause.is_of_first && !is_reversed;
      std::string text =
          KeyText(finding, FirstTitles(job_, slots, {reference, one.ranks.front()}), is_reversed,
                  is_on_others ? job_.NameRanks(there ? finding.ranks : finding.against) : "");
      const auto is_same = [&](const RankAspect& aspect) { return aspect.text == text; };
      if (std::any_of(one.aspects.begin(), one.aspects.end(), is_same)) continue;
      one.aspects.push_back(
          {finding.cause.kind == CauseKind::kGraph ? AspectArea::kGraphs : AspectArea::kCache,
           std::move(text), slots, finding.cause.kind, is_on_others, false, finding.cause.plain()});
      one.aspects.back().group = job_.FormatRanks(finding.ranks);
      one.aspects.back().is_of_other_states = finding.state != finding.against_state;
      one.aspects.back().is_of_numbers = finding.is_of_numbers;
      one.aspects.back().is_of_sizes = finding.cause.is_of_sizes;
      one.aspects.back().is_of_first_stage = finding.cause.is_of_first_stage;
      one.aspects.back().is_of_parameters = finding.is_of_parameters;
      if (finding.cause.kind == CauseKind::kConfig || finding.cause.kind == CauseKind::kSetting)
        one.aspects.back().options = OptionsOf(finding.cause);
      SetPlace(one.aspects.back(), finding.source);
    }
    one.aspects.back().has_majority = finding.has_majority && here;
  }
}

// Without those that a component of a cache key names already.
void RankClassifier::DescribeOptions(RankClass& one) const {
  std::int32_t slot = -1;
  std::vector<RankOption> options;
  for (RankOptions::Change& change :
       options_.Compare(answer_.classes.front().ranks.front(), one.ranks.front())) {
    const bool is_told =
        std::any_of(one.aspects.begin(), one.aspects.end(), [&](const RankAspect& aspect) {
          return aspect.area == AspectArea::kBuild || aspect.cause == CauseKind::kBuild ||
                 std::any_of(aspect.options.begin(), aspect.options.end(),
                             [&](const RankOption& told) { return told.name == change.name; });
        });
    if (is_told) continue;
    if (slot < 0) slot = change.slot;
    options.push_back({std::move(change.name),
                       fmt::format("{} → {}", Shorten(OptionValue(change.from), 80),
                                   Shorten(OptionValue(change.to), 80)),
                       std::move(change.from)});
  }
  if (options.empty()) return;
  const std::string text = OptionsText(options);
  one.aspects.push_back({AspectArea::kOptions, text, {slot}, {}, false, false, text});
  one.aspects.back().options = std::move(options);
}

void RankClassifier::DescribeCollectives(RankClass& one) const {
  // They are compared with a reference of their own.
  const auto& classes = answer_.collectives.classes;
  if (classes.empty() || !Has(classes.front().ranks, answer_.classes.front().ranks.front())) return;
  for (const CollectiveClass& candidate : answer_.collectives.classes) {
    if (candidate.mismatches.empty() || !Has(candidate.ranks, one.ranks.front())) continue;
    const CollectiveMismatch& first = candidate.mismatches.front();
    const std::vector<RankIndex> who = {answer_.classes.front().ranks.front(), one.ranks.front()};
    const std::size_t count = candidate.mismatches.size() + candidate.left_out;
    one.aspects.push_back(
        {AspectArea::kCollectives,
         MismatchText(answer_.cache.graphs.Title(job_, first.graph_slot, who), first, count),
         {answer_.cache.graphs.graph_slots()[static_cast<std::size_t>(first.graph_slot)].slot},
         std::nullopt,
         false,
         std::all_of(candidate.mismatches.begin(), candidate.mismatches.end(),
                     [](const CollectiveMismatch& m) { return m.kind == MismatchKind::kState; })});
    RankAspect& aspect = one.aspects.back();
    aspect.is_absence = aspect.is_state;
    if (aspect.is_state) {
      aspect.is_on_others = first.item.empty();
      const RankClass& having = aspect.is_on_others ? answer_.classes.front() : one;
      aspect.reason = answer_.cache.graphs.Title(job_, first.graph_slot, {having.ranks.front()});
    }
    aspect.is_order =
        candidate.left_out == 0 && first.kind == MismatchKind::kOrder &&
        std::all_of(candidate.mismatches.begin(), candidate.mismatches.end(),
                    [](const CollectiveMismatch& m) {
                      return m.kind == MismatchKind::kOrder || m.kind == MismatchKind::kState;
                    });
  }
}

void RankClassifier::DescribeExecution(RankClass& one) const {
  const auto& classes = answer_.execution.classes;
  if (classes.empty() || !Has(classes.front().ranks, answer_.classes.front().ranks.front())) return;
  for (const ExecutionClass& candidate : answer_.execution.classes) {
    if (candidate.differences.empty() || candidate.is_order_of_threads ||
        !Has(candidate.ranks, one.ranks.front()))
      continue;
    const OrderDifference& first = candidate.differences.front();
    one.aspects.push_back({AspectArea::kExecution, OrderText(first)});
    if (candidate.has_same_graphs)
      one.aspects.back().reason = "Both ran the same graphs equally often.";
    one.aspects.back().is_absence =
        first.ran.empty() && first.next.empty() && answer_.damage.EndEarly(job_, one.ranks);
  }
  for (const TensorDivergence& divergence : answer_.execution.tensors) {
    if (divergence.ops.empty() || !Has(divergence.ranks, one.ranks.front())) continue;
    const TensorDivergence::Op& op = divergence.ops.front();
    one.aspects.push_back(
        {AspectArea::kTensors,
         fmt::format(
             "{}: {}",
             answer_.cache.graphs.Title(job_, divergence.graph_slot,
                                        {answer_.classes.front().ranks.front(), one.ranks.front()}),
             op.against_text.empty() ? fmt::format("{} {} here only", op.name, op.text)
             : op.text.empty() ? fmt::format("{} {} on the others only", op.name, op.against_text)
                               : fmt::format("{} {} → {}", op.name, op.against_text, op.text))});
  }
}

Result<void> RankClassifier::DescribeFacts(RankClass& one) {
  const RankIndex reference = answer_.classes.front().ranks.front(), rank = one.ranks.front();
  ASSIGN_OR_RETURN(std::vector<RankAspect> aspects, facts_.Compare(database_, reference, rank));
  const auto has = [&](AspectArea area) {
    return std::any_of(one.aspects.begin(), one.aspects.end(),
                       [&](const RankAspect& aspect) { return aspect.area == area; });
  };
  const bool is_explained = has(AspectArea::kGraphs) || has(AspectArea::kCache);
  for (RankAspect& aspect : aspects) {
    // Other graphs and other code follow from another key, which is named already.
    if ((aspect.area == AspectArea::kGraphs || aspect.area == AspectArea::kCode) && is_explained)
      continue;
    // A log that ends inside a compile does not show what breaks it.
    const RankIndex lacking = aspect.is_on_others ? rank : reference;
    if (aspect.area == AspectArea::kGraphBreaks &&
        !answer_.damage.Shows(job_, lacking, aspect.slots.front()))
      continue;
    one.aspects.push_back(std::move(aspect));
  }
  return {};
}

// Names of process groups are expected to differ, unless a lookup ended otherwise for them: classes
// that differ from the first in them only join it.
Result<void> RankClassifier::DescribeAll() {
  for (std::size_t i = 1; i < answer_.classes.size(); ++i) {
    RankClass& one = answer_.classes[i];
    DescribeBuild(one);
    DescribeFindings(one);
    DescribeOptions(one);
    RETURN_IF_ERROR(DescribeFacts(one));
    DescribeCollectives(one);
    DescribeExecution(one);
  }
  std::vector<RankIndex>& ranks = answer_.classes.front().ranks;
  std::erase_if(answer_.classes, [&](const RankClass& one) {
    const bool is_expected =
        !one.aspects.empty() &&
        std::all_of(one.aspects.begin(), one.aspects.end(), [](const RankAspect& aspect) {
          return aspect.cause == CauseKind::kProcessGroup;
        });
    if (is_expected) ranks.insert(ranks.end(), one.ranks.begin(), one.ranks.end());
    return is_expected;
  });
  std::sort(ranks.begin(), ranks.end());
  for (RankClass& one : answer_.classes) {
    std::erase_if(one.aspects, [](const RankAspect& aspect) {
      return aspect.cause == CauseKind::kProcessGroup && !aspect.is_of_other_states;
    });
  }
  return {};
}

Result<void> RankClassifier::Run() {
  RETURN_IF_ERROR(Classify());
  if (!answer_.classes.empty()) RETURN_IF_ERROR(DescribeAll());
  CountVotes(answer_);
  for (RankClass& one : answer_.classes) {
    facts_.SetCompileTime(one);
    one.is_damaged = answer_.damage.AreDamaged(one.ranks);
    // What a damaged log does not have its process may have done.
    if (answer_.damage.MayExplain(one.ranks, answer_.classes.front().ranks))
      std::erase_if(one.aspects, [](const RankAspect& aspect) { return aspect.is_absence; });
    one.is_cut = std::all_of(one.ranks.begin(), one.ranks.end(), [&](RankIndex rank) {
      return answer_.damage.is_cut[static_cast<std::size_t>(rank)] != 0;
    });
  }
  ASSIGN_OR_RETURN(answer_.slowest, facts_.FindSlowest(database_, answer_.cache));
  ASSIGN_OR_RETURN(answer_.stalled, facts_.FindStalled(database_, answer_.cache));
  return {};
}

}  // namespace

bool RanksAnswer::HasDivergence() const {
  if (!cache.same_key_codes.empty()) return true;
  if (classes.size() < 2 || classes.front().is_damaged) return false;
  return std::any_of(classes.begin() + 1, classes.end(),
                     [](const RankClass& one) { return !one.is_damaged; });
}

Result<void> ClassifyRanks(Database& database, RanksAnswer& answer) {
  ASSIGN_OR_RETURN(RankFacts facts,
                   RankFacts::Load(database, answer.cache.job, answer.cache.graphs));
  ASSIGN_OR_RETURN(RankOptions options, RankOptions::Load(database, answer.cache.job));
  return RankClassifier(database, answer, std::move(facts), std::move(options)).Run();
}

}  // namespace tlparse
