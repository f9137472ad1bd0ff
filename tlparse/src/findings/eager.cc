// Ranks that run eagerly what the others compile.
#include "queries/findings/eager.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/plural.h"
#include "findings/context.h"

namespace tlparse {
namespace {

// The calls of a rank that no graph issued, where another rank issued the same from a graph.
struct EagerCalls {
  std::size_t count = 0;
  const IssuedCollective* first = nullptr;     // of the rank
  const IssuedCollective* of_other = nullptr;  // the same call, from a graph
  bool has_graph = false;                      // a graph of the rank issued a call
};

EagerCalls CallsOf(const IssuedJob& issued, std::size_t rank) {
  EagerCalls calls;
  for (const IssuedGroup& group : issued.groups) {
    const auto own = std::find(group.ranks.begin(), group.ranks.end(), rank);
    if (own == group.ranks.end()) continue;
    const auto position = static_cast<std::size_t>(own - group.ranks.begin());
    for (const IssuedCollective& call : group.issued[position]) {
      calls.has_graph |= call.graph_id != 0;
      for (std::size_t other = 0; other < group.ranks.size() && call.graph_id == 0; ++other) {
        const auto same = group.At(other, call.sequence);
        if (other == position || same.empty() || same.front()->graph_id == 0 ||
            same.front()->plain_op != call.plain_op)
          continue;
        ++calls.count;
        if (calls.first == nullptr) calls.first = &call, calls.of_other = same.front();
        break;
      }
    }
  }
  return calls;
}

}  // namespace

Result<std::vector<std::int64_t>> FindEagerRanks(FindingContext& context) {
  std::vector<std::int64_t> found;
  for (std::size_t i = 0; i < context.issued.ranks.size(); ++i) {
    const IssuingRank& one = context.issued.ranks[i];
    if (!one.rank || !one.has_file ||
        !std::binary_search(context.ranks.missing_ranks.begin(), context.ranks.missing_ranks.end(),
                            *one.rank))
      continue;
    const EagerCalls calls = CallsOf(context.issued, i);
    if (calls.count == 0 || calls.has_graph) continue;
    // Without its log no call can be joined with a graph: the stack of the call shows it.
    ASSIGN_OR_RETURN(
        const FirstRow<FramesOfCall> stack,
        First(Query<FramesOfCall>(context.database, {.run_row_id = calls.first->run_row_id})));
    if (stack->frames == 0 || stack->of_graphs > 0) continue;
    Finding& finding = context.Add(FindingKind::kRunsEagerly, FindingSeverity::kWarning);
    finding.ranks = {*one.rank};
    finding.rank_count = 1;
    finding.function = calls.of_other->function;
    finding.compiles = {calls.of_other->label};
    finding.cause = "no compiled graph";
    finding.title = fmt::format(
        "Rank {} runs eagerly: it issued {}{}, which other ranks issue from graph {} {}", *one.rank,
        calls.first->PrintedOp(), calls.first->Place().empty() ? "" : " at " + calls.first->Place(),
        calls.of_other->label, calls.of_other->function);
    finding.detail = fmt::format(
        "It has no log. Its recorder dump has {} call{} that others issued from compiled graphs; "
        "in the "
        "stack of the first is no compiled code.",
        calls.count, PluralS(calls.count));
    if (!calls.first->file.empty())
      finding.place = FindingPlace{calls.first->file, calls.first->line, {}};
    finding.suggestion = fmt::format(
        "look whether TORCHDYNAMO_DISABLE or TORCH_COMPILE_DISABLE is set for rank {}, and whether "
        "it "
        "calls the compiled function",
        *one.rank);
    finding.query =
        fmt::format("SELECT * FROM collective_run WHERE rank = {} ORDER BY start_us", *one.rank);
    found.push_back(*one.rank);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace tlparse
