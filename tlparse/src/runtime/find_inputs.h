// What a job left: its structured traces, and the profiles and dumps beside them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "log/find_logs.h"
#include "runtime/recognize.h"

namespace tlparse {

// A file that is no log and that a RuntimeReader can read.
struct RuntimeInput {
  std::string path;
  InputKind kind = InputKind::kUnknown;
  std::int64_t size_bytes = 0;  // on disk
};

struct FoundInputs {
  std::vector<FoundLog> logs;
  std::vector<RuntimeInput> runtime;  // in order of their paths
  std::vector<SkippedFile> skipped;
};

// As FindLogs, and what it did not take for a log is looked at: profiles, recorder dumps and the
// like are recognised by content, in directories and where they are named. A named file of no known
// kind is a log, as ever.
Result<FoundInputs> FindInputs(const std::string& path);

}  // namespace tlparse
