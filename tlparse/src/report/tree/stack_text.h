// Reads stacks from table stack_frame and writes them as text.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

class FileWriter;

struct StackFrame {
  std::int64_t id = 0;
  std::int64_t parent_id = 0;  // the caller; 0: outermost
  std::string file;
  std::int64_t line = 0;
  std::string function;
  std::string code;
};

// Remembers every frame it has read.
class StackReader {
 public:
  static Result<StackReader> Open(Database& database);
  // The frame with its callers, outermost first. Empty for id 0.
  Result<std::vector<const StackFrame*>> Stack(std::int64_t id);

 private:
  Database* database_ = nullptr;
  std::unordered_map<std::int64_t, StackFrame> frames_;
};

// "file:line in function" and the code, as HTML; generated files link to their dump.
void AppendFrame(const StackFrame& frame, const std::string& path_to_tree, FileWriter& out);

}  // namespace tlparse
