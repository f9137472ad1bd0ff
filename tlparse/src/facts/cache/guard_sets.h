// The guards of compiles as sets that are comparable between processes: what code that is kept for
// another process needs there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// What one side's guard needs and the other's does not; either may be empty.
struct GuardChange {
  std::string a, b;  // "SCALE == 2", "size=[4, 8] of x"
  bool operator==(const GuardChange&) const = default;
};

struct OneGuard {
  std::string key;            // without what differs between processes
  std::string text;           // as answers show it
  std::string kind, subject;  // by which two that differ are one guard that changed
  std::string expression;
};

// Without checks of identity, which precompiled code leaves out (torch/_dynamo/guards.py,
// CheckFunctionManager with caching_precompile: ID_MATCH, CLOSURE_MATCH, WEAKREF_ALIVE, DICT_VERSION).
class GuardSets {
 public:
  explicit GuardSets(Database& database) : database_(&database) {}
  // Of a content of guard_row, sorted by key.
  Result<const std::vector<OneGuard>*> Of(std::int64_t content_id);
  // The same number for contents whose sets are equal.
  Result<std::int64_t> ClassOf(std::int64_t content_id);
  Result<std::vector<GuardChange>> Changes(std::int64_t a, std::int64_t b);

 private:
  Database* database_;
  std::map<std::int64_t, std::vector<OneGuard>> known_;
  std::map<std::string, std::int64_t> classes_;
  std::map<std::int64_t, std::int64_t> class_of_;
};

// "<a> needs SCALE == 2, <b> SCALE == 3; <a> alone needs …", at most `most` changes.
std::string ChangesText(const std::vector<GuardChange>& changes, std::string_view a,
                        std::string_view b, std::size_t most);

}  // namespace tlparse
