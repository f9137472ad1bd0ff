#include "facts/ranks/unread_inputs.h"

#include <string_view>

#include "inputs/recorder/name.h"
#include "log/find_logs.h"
#include "queries/facts/ranks/unread_inputs.h"

namespace tlparse {

Result<std::vector<UnreadInput>> UnreadInputs(Database& database, std::int64_t run_id) {
  constexpr std::string_view kMark = "cannot be read: ";  // "it cannot be read: Permission denied"
  std::vector<UnreadInput> inputs;
  FOR_EACH_ROW(const UnreadInputRow& row, Query<UnreadInputRow>(database, {.run_id = run_id})) {
    UnreadInput input;
    input.path = row.path;
    const std::size_t mark = row.message.find(kMark);
    input.reason = row.message.substr(mark == row.message.npos ? 0 : mark + kMark.size());
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
