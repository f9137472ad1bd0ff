// Which line of the user's code ran, by the Python frames of a profile.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// A frame that is open on a thread. PyTorch writes the line that called it since 2.14.
struct OpenFrame {
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t name_id = 0;
  std::string name;  // "train.py(27): step", "<built-in method randn …>", "nn.Module: Linear_0"
  std::int64_t file_id = 0;  // of the line that called it; 0: not in the file
  std::int64_t line = 0;
  std::string file;
};

struct UserLine {
  std::int64_t line = 0;  // 0: not known
  std::string file;
  std::string function;  // empty: not known
  // Where the line is not known: "step (train.py:27)", the function it is of; empty: none of the user's.
  std::string inside;
  std::int64_t id = 0;  // of the text of the file, or of the function's frame: tells equal ones
};

// Outer frames come first. A frame names the line that called it: where the innermost one is a function
// of the user's, which of its lines ran is not known.
UserLine UserLineOf(const std::vector<OpenFrame>& frames);

// Profiles name files from where Python finds modules ("train.py"): the path of the only file of the
// database's stacks that ends so, or the name as it is.
class WholePaths {
 public:
  Result<std::string> Of(Database& database, const std::string& file);

 private:
  std::map<std::string, std::string> paths_;
};

}  // namespace tlparse
