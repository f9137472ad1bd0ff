// Files and directories of the input that may not be opened: what they hold is unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

struct UnreadInput {
  std::string path;
  std::string reason;                // "Permission denied"
  std::optional<std::int64_t> rank;  // of a log or recorder dump, by its name
  bool is_log = false;               // by its name
  bool is_dump = false;              // by its name, a recorder's
};
// In the order in which they were found.
Result<std::vector<UnreadInput>> UnreadInputs(Database& database, std::int64_t run_id);

}  // namespace tlparse
