#include "facts/ranks/unread_inputs.h"

#include <string_view>

#include "inputs/recorder/name.h"
#include "log/find_logs.h"
#include "queries/facts/ranks/unread_inputs.h"

namespace tlparse {

Result<std::vector<UnreadInput>> UnreadInputs(Database& database, std::int64_t run_id) {
  constexpr std::string_view kMark = "cannot be read: ";
  std::vector<UnreadInput> inputs;
  FOR_EACH_ROW(const UnreadInputRow& row, Query<UnreadInputRow>(database, {.run_id = run_id})) {
    const std::string_view message = row.message;
    const std::size_t mark = message.rfind(kMark);
    if (mark == message.npos) continue;
    UnreadInput input;
    input.reason = message.substr(mark + kMark.size());
    const std::string_view before = message.substr(0, mark);  // "<path>: it " or "<path>: "
    input.path = before.substr(0, before.rfind(": "));
    input.is_log = IsTraceFileName(input.path);
    input.is_dump = !input.is_log && IsDumpName(input.path);
    if (input.is_log) {
      if (const std::optional<int> rank = RankFromFileName(input.path)) input.rank = *rank;
    } else if (input.is_dump) {
      input.rank = RankFromDumpName(input.path);
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

}  // namespace tlparse
