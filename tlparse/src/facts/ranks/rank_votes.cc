#include "facts/ranks/rank_votes.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "facts/job/graph_forms.h"

namespace tlparse {
namespace {

bool Contains(const std::vector<RankIndex>& ranks, RankIndex rank) {
  return std::binary_search(ranks.begin(), ranks.end(), rank);
}

// By slot: the form of the Dynamo graph that more than half of those have whose log has one; 0: none.
std::vector<std::int64_t> UsualGraphs(const Job& job, const GraphForms& forms) {
  std::vector<std::map<std::int64_t, std::size_t>> counts(job.slots().size());
  std::vector<std::size_t> all(job.slots().size());
  for (const JobCompile& compile : job.compiles()) {
    if (compile.slot < 0 || compile.graph_content == 0) continue;
    ++counts[static_cast<std::size_t>(compile.slot)][forms.FormOf(compile.graph_content)];
    ++all[static_cast<std::size_t>(compile.slot)];
  }
  std::vector<std::int64_t> usual(counts.size());
  for (std::size_t slot = 0; slot < counts.size(); ++slot) {
    for (const auto& [content, count] : counts[slot]) {
      if (2 * count > all[slot]) usual[slot] = content;
    }
  }
  return usual;
}

// In how many things a rank differs from most.
std::size_t CountOddities(const RanksAnswer& answer, const GraphForms& forms,
                          const std::vector<std::int64_t>& usual_graphs, RankIndex rank) {
  const Job& job = answer.job();
  std::size_t count = 0;
  for (const CacheFinding& finding : answer.cache.findings) {
    if (finding.has_majority && !IsExpected(finding.cause.kind) && Contains(finding.ranks, rank))
      count += finding.cause.kind != CauseKind::kMissingCompile || finding.state != "absent" ||
               answer.damage.Shows(job, rank, finding.compile_slots.front());
  }
  for (std::size_t slot = 0; slot < usual_graphs.size(); ++slot) {
    const std::int32_t index = job.CompileOf(rank, static_cast<std::int32_t>(slot));
    if (index < 0 || usual_graphs[slot] == 0) continue;
    const std::int64_t own = job.compiles()[static_cast<std::size_t>(index)].graph_content;
    if (own != 0 && forms.FormOf(own) != usual_graphs[slot]) ++count;
  }
  for (const CollectiveClass& one : answer.collectives.classes) {
    if (Contains(one.ranks, rank) &&
        std::any_of(one.mismatches.begin(), one.mismatches.end(),
                    [](const CollectiveMismatch& m) { return m.kind != MismatchKind::kState; }))
      ++count;
  }
  for (const ExecutionClass& one : answer.execution.classes) {
    if (!one.differences.empty() && !one.is_order_of_threads && Contains(one.ranks, rank)) ++count;
  }
  return count;
}

// Position of the last compile in a log; -1: none.
std::int32_t LastPosition(const Job& job, RankIndex rank) {
  const std::vector<std::int32_t>& order = job.slot_order();
  const auto last = std::find_if(order.rbegin(), order.rend(),
                                 [&](std::int32_t slot) { return job.CompileOf(rank, slot) >= 0; });
  return last == order.rend() ? -1 : job.SlotPosition(*last);
}

}  // namespace

bool IsVote(const RankAspect& aspect) {
  return !aspect.is_state && !aspect.is_absence && !aspect.is_of_lines;
}

Thing ThingOf(const RankAspect& aspect) {
  // Keys that differ by inputs or graphs, the graphs, and the code made of them are one thing.
  const bool is_of_program = aspect.area == AspectArea::kCode ||
                             aspect.cause == CauseKind::kInputs ||
                             aspect.cause == CauseKind::kGraph;
  return {is_of_program ? AspectArea::kGraphs : aspect.area,
          aspect.slots.empty() ? -1 : aspect.slots.front()};
}

bool IsOfProgram(const RankAspect& aspect) {
  return IsVote(aspect) && aspect.area == AspectArea::kGraphs && !aspect.is_of_numbers &&
         (!aspect.cause || aspect.cause == CauseKind::kGraph);
}

Result<std::size_t> ChooseReference(Database& database, const RanksAnswer& answer) {
  const Job& job = answer.job();
  ASSIGN_OR_RETURN(const GraphForms* const forms, GraphForms::Load(database, job));
  const std::vector<std::int64_t> usual_graphs = UsualGraphs(job, *forms);
  const auto key = [&](const RankClass& one) {
    const RankIndex rank = one.ranks.front();
    const bool is_early = answer.damage.EndEarly(job, one.ranks);
    return std::tuple(CountOddities(answer, *forms, usual_graphs, rank), is_early,
                      is_early ? -LastPosition(job, rank) : 0,
                      -static_cast<std::int64_t>(one.ranks.size()), rank);
  };
  std::size_t best = 0;
  auto least = key(answer.classes.front());
  for (std::size_t i = 1; i < answer.classes.size(); ++i) {
    if (auto own = key(answer.classes[i]); own < least) best = i, least = own;
  }
  return best;
}

bool IsAlikeAsFarAsItGoes(const RanksAnswer& answer, const RankClass& one) {
  const Job& job = answer.job();
  const std::int32_t last = LastPosition(job, one.ranks.front());
  return answer.damage.EndEarly(job, one.ranks) &&
         std::all_of(one.aspects.begin(), one.aspects.end(), [&](const RankAspect& aspect) {
           return !IsVote(aspect) ||
                  (aspect.cause == CauseKind::kMissingCompile && aspect.is_on_others &&
                   std::all_of(aspect.slots.begin(), aspect.slots.end(),
                               [&](std::int32_t slot) { return job.SlotPosition(slot) > last; }));
         });
}

void CountVotes(RanksAnswer& answer) {
  const Job& job = answer.job();
  std::map<Thing, std::size_t> odd, odd_in_program;
  std::size_t alike = 0;
  const auto is_of_job = [&](RankIndex rank) {
    return !job.participants()[static_cast<std::size_t>(rank)].is_of_other_job;
  };
  std::size_t voter_count = 0;
  for (std::size_t i = 0; i < job.participants().size(); ++i)
    voter_count += is_of_job(static_cast<RankIndex>(i));
  for (const RankClass& one : answer.classes) {
    if (!is_of_job(one.ranks.front())) continue;
    const bool differs_in_lines =
        std::all_of(one.aspects.begin(), one.aspects.end(),
                    [](const RankAspect& aspect) { return aspect.is_of_lines; });
    if (&one == &answer.classes.front() || differs_in_lines || IsAlikeAsFarAsItGoes(answer, one))
      alike += one.ranks.size();
    std::set<Thing> own, own_in_program;
    for (const RankAspect& aspect : one.aspects) {
      if (IsVote(aspect)) own.insert(ThingOf(aspect));
      if (IsOfProgram(aspect)) own_in_program.insert(ThingOf(aspect));
    }
    for (const Thing& thing : own) odd[thing] += one.ranks.size();
    for (const Thing& thing : own_in_program) odd_in_program[thing] += one.ranks.size();
  }
  answer.has_majority = 2 * alike > voter_count;
  std::map<std::int32_t, std::size_t> voters;
  std::size_t with_order = 0;
  for (const ExecutionClass& one : answer.execution.classes) with_order += one.ranks.size();
  const auto voters_on = [&](const Thing& thing) {
    const std::int32_t slot = thing.second;
    if (thing.first == AspectArea::kExecution) return with_order;
    if (slot < 0) return voter_count;
    const auto [found, is_new] = voters.try_emplace(slot);
    for (std::size_t i = 0; is_new && i < job.participants().size(); ++i) {
      const std::int32_t index = job.CompileOf(static_cast<RankIndex>(i), slot);
      found->second += index >= 0 && answer.damage.Shows(job, static_cast<RankIndex>(i), slot);
    }
    return found->second;
  };
  for (RankClass& one : answer.classes) {
    for (RankAspect& aspect : one.aspects) {
      const bool is_of_program = IsOfProgram(aspect);
      // A finding on caches knows, unless keys differ by numbers as well.
      if (!IsVote(aspect) || (aspect.cause && (!is_of_program || aspect.has_majority))) continue;
      const Thing thing = ThingOf(aspect);
      const std::size_t all = voters_on(thing);
      const std::size_t others = is_of_program ? odd_in_program[thing] : odd[thing];
      aspect.has_majority = all > others && 2 * (all - others) > all;
    }
  }
}

}  // namespace tlparse
