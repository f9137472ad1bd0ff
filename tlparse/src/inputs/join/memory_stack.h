// What the stack of an allocation says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "enums/memory.h"
#include "inputs/join/recorder_code.h"
#include "store/database.h"

namespace tlparse {

struct MemoryStack {
  MemoryCategory category = MemoryCategory::kUnknown;
  std::string file, function;  // the innermost Python frame outside PyTorch; empty: none
  std::int64_t line = 0;
  std::int64_t graph_id = 0;  // of the innermost frame of generated code; 0: none
  std::int64_t code_line = 0;
  std::string unknown_file;  // generated code that the log does not hold; empty: none
};

// Innermost frame first.
Result<MemoryStack> ReadMemoryStack(Database& database, std::int64_t stack_id,
                                    const RecorderCode& codes);

}  // namespace tlparse
