// Why a compile was made again, as its log has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
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

// The values with which guards compared things, over the recompiles of one function on one rank. A
// mode with two values, such as train and eval, fails the guard of the newest entry at each recompile,
// even if another value, which changes each time, is the reason for the recompile.
class ComparedValues {
 public:
  void Add(const RecompileReason& reason);
  // Which of the entries to name: the newest, unless what another failed on has three values or more,
  // and more than what the newest failed on.
  std::size_t Telling(const std::vector<const RecompileReason*>& entries) const;

 private:
  std::size_t CountOf(const RecompileReason& reason) const;
  std::map<std::string, std::set<std::string>> values_;  // by subject and its line
};

// The newest entry first; empty for a first compile.
Result<std::vector<FailedEntry>> LoadFailedEntries(Database& database, std::int64_t compile_id);

// "0/1: n == 2; 0/0: n == 1", each behind `before`.
std::string FailedEntriesText(const std::vector<FailedEntry>& entries, std::string_view before);

}  // namespace tlparse
