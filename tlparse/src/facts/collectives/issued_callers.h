// The user's lines that led to calls which libraries make.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/result.h"
#include "facts/collectives/issued.h"
#include "store/database.h"

namespace tlparse {

class IssuedCallers {
 public:
  // Sets `caller_file` and `caller_line` of a call whose line is a library's. `stack_id`: of its entry; 0:
  // none.
  Result<void> Set(Database& database, std::int64_t stack_id, IssuedCollective& call);

 private:
  std::map<std::int64_t, std::pair<std::string, std::int64_t>> by_stack_;
};

// Of two calls under one number the one that no rank issued before, where the other was: ranks part there.
// Null: neither.
const IssuedCollective* NewCall(const IssuedGroup& group, const IssuedCollective& a,
                                const IssuedCollective& b);

}  // namespace tlparse
