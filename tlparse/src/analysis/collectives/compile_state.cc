#include "analysis/collectives/compile_state.h"

#include <fmt/format.h>

namespace tlparse {

std::string StateOf(const Job& job, const LogDamage& damage, RankIndex rank, std::int32_t slot,
                    std::string_view side) {
  const std::int32_t compile = job.CompileOf(rank, slot);
  if (compile < 0)
    return damage.AnyIsIncomplete({rank})
               ? fmt::format("it is not in the log {}, which is cut off or damaged", side)
               : fmt::format("it was not compiled {}", side);
  const std::string& status =
      job.string(job.compiles()[static_cast<std::size_t>(compile)].status_id);
  // Its backward may be compiled at any later time.
  if (status == "ok" || status == "restarted")
    return damage.EndsEarly(job, rank)
               ? fmt::format("it is not in the log {}, which ends early", side)
               : std::string();
  return fmt::format("the compile {} {}",
                     status == "unfinished" ? "did not finish"
                     : status == "empty"    ? "made no graph"
                     : status == "skipped"  ? "was skipped"
                                            : "failed",
                     side);
}

}  // namespace tlparse
