// Why a compile was made again, as its log has it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/compiles/advice.h"
#include "store/database.h"

namespace tlparse {

// What one earlier compile, a cache entry, failed on.
struct FailedEntry {
  std::string label;  // of the earlier compile; empty: unknown
  RecompileReason reason;
  std::string file;  // where the guard came from, maybe cut on the left; empty: unknown
  std::int64_t line = 0;
};

// The newest entry first; empty for a first compile.
Result<std::vector<FailedEntry>> LoadFailedEntries(Database& database, std::int64_t compile_id);

// "0/1: n == 2; 0/0: n == 1", each behind `before`.
std::string FailedEntriesText(const std::vector<FailedEntry>& entries, std::string_view before);

}  // namespace tlparse
