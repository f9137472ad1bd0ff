// Compiles for which CUDA graphs were asked, and that run without one.
#include "facts/compiles/cuda_graphs.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>

#include "facts/text/shorten.h"
#include "findings/context.h"
#include "queries/findings/cuda_graphs.h"

namespace tlparse {
namespace {

struct SkippedGraphs {
  CudaGraphSkip skip;
  std::set<RankIndex> ranks;
  std::set<std::int32_t> slots;
  std::vector<std::int64_t> ids;
};

}  // namespace

Result<void> FindSkippedCudaGraphs(FindingContext& context) {
  // By place, else by reason: it names a node, whose name differs by compile.
  std::map<std::tuple<std::string, std::int64_t, std::string>, SkippedGraphs> groups;
  FOR_EACH_ROW(
      const SkippedCudaGraph& row,
      Query<SkippedCudaGraph>(context.database, {.in_logs = context.job.InLogs("m.record_id")})) {
    const JobCompile* const compile =
        row.compile_id ? context.job.FindCompile(*row.compile_id) : nullptr;
    if (compile == nullptr) continue;
    CudaGraphSkip skip = ReadCudaGraphSkip(row.reason);
    if (skip.is_chosen) continue;
    SkippedGraphs& group =
        groups[{skip.file, skip.line, skip.reason.substr(0, skip.reason.find(" ("))}];
    if (group.ids.empty()) group.skip = std::move(skip);
    group.ranks.insert(compile->participant);
    if (compile->slot >= 0) group.slots.insert(compile->slot);
    group.ids.push_back(row.record_id);
  }
  for (const auto& [key, group] : groups) {
    Finding& finding = context.Add(FindingKind::kCudaGraphSkipped, FindingSeverity::kNote);
    const std::vector<RankIndex> ranks(group.ranks.begin(), group.ranks.end());
    context.SetRanks(finding, ranks);
    const std::string where =
        context.SetCompiles(finding, {group.slots.begin(), group.slots.end()}, ranks);
    finding.cause = group.skip.reason;
    if (!group.skip.file.empty())
      finding.place = FindingPlace{group.skip.file, group.skip.line, {}};
    finding.title = fmt::format(
        "No CUDA graph for {}{}{}: {}", where.empty() ? "a compile" : where,
        context.AreAll(ranks) || !context.HasRanks() ? "" : " on " + context.WhoInside(ranks),
        finding.place ? " because of " + PlaceText(*finding.place) : "",
        Shorten(group.skip.reason, 200));
    finding.detail =
        "CUDA graphs were asked for (mode reduce-overhead or max-autotune, or backend cudagraphs); "
        "this code runs without.";
    finding.suggestion = group.skip.advice;
    finding.query =
        fmt::format("SELECT * FROM compilation_metric WHERE record_id IN {}", IdList(group.ids));
  }
  return {};
}

}  // namespace tlparse
