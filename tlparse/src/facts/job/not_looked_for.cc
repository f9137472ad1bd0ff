#include "facts/job/not_looked_for.h"

#include <fmt/format.h>

#include "queries/facts/job/not_looked_for.h"

namespace tlparse {

Result<std::string> NotLookedFor(Database& database, const std::optional<std::int64_t>& run_id,
                                 std::string_view else_where) {
  ASSIGN_OR_RETURN(const FirstRow<LogsAmongInputs> inputs,
                   First(Query<LogsAmongInputs>(database, {run_id})));
  if (inputs->has_logs) return std::string();
  return fmt::format(
      "not looked for: no structured trace is among the input (TORCH_TRACE=<directory> writes "
      "one){}",
      inputs->has_text ? fmt::format("; {}", else_where) : std::string());
}

Result<std::string> NoMessages(Database& database, std::int64_t run_id) {
  ASSIGN_OR_RETURN(const FirstRow<UnrecordedMessages> messages,
                   First(Query<UnrecordedMessages>(database, {run_id})));
  if (messages->calls == 0) return std::string();
  return fmt::format(
      "sends and receives: the gloo recorder counts them ({} in the dumps of {} {}) and holds none",
      messages->calls, messages->ranks, messages->ranks == 1 ? "rank" : "ranks");
}

}  // namespace tlparse
