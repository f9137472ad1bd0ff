#include "cli/not_looked_for.h"

#include <fmt/format.h>

#include <string_view>

namespace tlparse {

Result<std::string> NotLookedFor(Database& database, const std::optional<std::int64_t>& run_id,
                                 std::string_view else_where) {
  const std::string of_run = run_id ? fmt::format(" WHERE run_id = {}", *run_id) : std::string();
  ASSIGN_OR_RETURN(
      const std::int64_t has_logs,
      database.QueryInt(fmt::format("SELECT EXISTS (SELECT 1 FROM log_file{})", of_run)));
  if (has_logs != 0) return std::string();
  ASSIGN_OR_RETURN(const std::int64_t has_text,
                   database.QueryInt(
                       fmt::format("SELECT EXISTS (SELECT 1 FROM profile{} {} kind = 'torch_logs')",
                                   of_run, of_run.empty() ? "WHERE" : "AND")));
  return fmt::format(
      "not looked for: no structured trace is among the input (TORCH_TRACE=<directory> writes "
      "one){}",
      has_text != 0 ? fmt::format("; {}", else_where) : std::string());
}

}  // namespace tlparse
