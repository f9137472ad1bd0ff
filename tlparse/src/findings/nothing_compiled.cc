// A job whose compiles all made no graph: it runs as if there were no torch.compile.
#include "queries/findings/nothing_compiled.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "findings/context.h"

namespace tlparse {
namespace {

bool IsAboutDdp(const Finding& graph_break) {
  return graph_break.detail.find("torch/nn/parallel/distributed.py") != std::string::npos;
}

}  // namespace

Result<void> FindNothingCompiled(FindingContext& context) {
  const std::vector<JobCompile>& compiles = context.job.compiles();
  const bool is_whole = context.live == nullptr && !context.AreDamaged(context.All());
  const bool has_graph = std::any_of(compiles.begin(), compiles.end(), [](const JobCompile& one) {
    return one.status != CompileStatus::kEmpty || one.slot < 0;
  });
  if (compiles.empty() || !is_whole || has_graph) return {};
  // A log without graphs may be one that another program thinned out: the metrics must say it.
  ASSIGN_OR_RETURN(
      const FirstRow<OpsOfGraphs> ops,
      First(Query<OpsOfGraphs>(context.database, {.in_logs = context.job.InLogs("m.record_id")})));
  if (!ops || ops->no_ops == 0 || ops->with_ops > 0) return {};
  std::set<std::int32_t> slots;
  for (const JobCompile& one : compiles) slots.insert(one.slot);
  Finding finding;
  finding.kind = FindingKind::kNothingCompiled;
  finding.severity = FindingSeverity::kWarning;
  const std::string which =
      context.SetCompiles(finding, {slots.begin(), slots.end()}, context.All());
  finding.title = fmt::format("Nothing was compiled: {} made no graph", which);
  finding.detail = "The program runs as it would without torch.compile.";
  finding.cause = "no graph";
  finding.rank_count = context.All().size();
  finding.query =
      fmt::format("SELECT id, rank, label, status FROM compile WHERE {}", context.OfLaunch());
  // Why: the breaks.
  const auto is_break = [](const Finding& one) { return one.kind == FindingKind::kGraphBreak; };
  const auto first = std::stable_partition(context.findings.begin(), context.findings.end(),
                                           [&](const Finding& one) { return !is_break(one); });
  finding.evidence.assign(std::make_move_iterator(first),
                          std::make_move_iterator(context.findings.end()));
  context.findings.erase(first, context.findings.end());
  if (!finding.evidence.empty()) finding.place = finding.evidence.front().place;
  const bool is_of_ddp = std::any_of(finding.evidence.begin(), finding.evidence.end(), IsAboutDdp);
  finding.suggestion =
      is_of_ddp ? "compile the module inside of DistributedDataParallel: module.compile(), or "
                  "DistributedDataParallel(torch.compile(module))"
      : finding.evidence.empty()
          ? "look whether the function that is compiled works on tensors itself"
          : "remove the first graph break, or compile the functions that it calls";
  context.findings.push_back(std::move(finding));
  return {};
}

}  // namespace tlparse
