// The user's frames of a stack, for --stack of answers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// "train.py:48 in step, train.py:80 in main": innermost first, without frames of PyTorch and Python. Empty: it has none.
Result<std::string> UserFramesOfStack(Database& database, std::int64_t stack_id);
// Of the stack that led to a compile; empty: its log has none.
Result<std::string> UserFramesOf(Database& database, std::int64_t compile_id);
// Of each graph break of a compile, at a record if given, that has a stack: where Dynamo was.
Result<std::vector<std::string>> UserFramesOfBreaks(Database& database, std::int64_t compile_id,
                                                    std::optional<std::int64_t> record_id = {});

// Of what rows show one after another, a line each: "stack of 0/0 forward (rank 2): train.py:48 in step". Rows that say
// the same of the same are one.
class ShownStacks {
 public:
  void Add(const std::string& what, const std::string& frames);
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

}  // namespace tlparse
