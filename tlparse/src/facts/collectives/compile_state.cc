#include "facts/collectives/compile_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace tlparse {

namespace {

// Whether a log has no compile after that of `slot`.
bool IsLast(const Job& job, RankIndex rank, std::int32_t slot) {
  return std::none_of(job.slot_order().begin(), job.slot_order().end(), [&](std::int32_t other) {
    return job.SlotPosition(other) > job.SlotPosition(slot) && job.CompileOf(rank, other) >= 0;
  });
}

}  // namespace

std::string StateOf(const Job& job, const LogDamage& damage, RankIndex rank, const GraphSlot& graph,
                    std::string_view side) {
  const std::int32_t compile = job.CompileOf(rank, graph.slot);
  if (compile < 0)
    return damage.AnyIsIncomplete({rank})
               ? fmt::format("it is not in the log {}, which is cut off or damaged", side)
               : fmt::format("it was not compiled {}", side);
  const CompileStatus status = job.compiles()[static_cast<std::size_t>(compile)].status;
  // Its backward may be compiled at any later time.
  if (status == CompileStatus::kOk || status == CompileStatus::kRestarted ||
      status == CompileStatus::kLoaded)
    return damage.EndsEarly(job, rank)
               ? fmt::format("it is not in the log {}, which ends early", side)
           : graph.direction == Direction::kBackward && IsLast(job, rank, graph.slot)
               ? fmt::format("the log {} ends before this backward", side)
               : std::string();
  return fmt::format("the compile {} {}",
                     status == CompileStatus::kUnfinished ? "did not finish"
                     : status == CompileStatus::kEmpty    ? "made no graph"
                     : status == CompileStatus::kSkipped  ? "was skipped"
                                                          : "failed",
                     side);
}

}  // namespace tlparse
