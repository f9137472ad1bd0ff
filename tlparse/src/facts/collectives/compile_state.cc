#include "facts/collectives/compile_state.h"

#include <fmt/format.h>

namespace tlparse {

std::string StateOf(const Job& job, const LogDamage& damage, RankIndex rank, std::int32_t slot,
                    std::string_view side) {
  const std::int32_t compile = job.CompileOf(rank, slot);
  if (compile < 0)
    return damage.AnyIsIncomplete({rank})
               ? fmt::format("it is not in the log {}, which is cut off or damaged", side)
               : fmt::format("it was not compiled {}", side);
  const CompileStatus status = job.compiles()[static_cast<std::size_t>(compile)].status;
  // Its backward may be compiled at any later time.
  if (status == CompileStatus::kOk || status == CompileStatus::kRestarted)
    return damage.EndsEarly(job, rank)
               ? fmt::format("it is not in the log {}, which ends early", side)
               : std::string();
  return fmt::format("the compile {} {}",
                     status == CompileStatus::kUnfinished ? "did not finish"
                     : status == CompileStatus::kEmpty    ? "made no graph"
                     : status == CompileStatus::kSkipped  ? "was skipped"
                                                          : "failed",
                     side);
}

}  // namespace tlparse
