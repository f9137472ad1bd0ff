// Finds the files that a job wrote: structured traces, profiles and dumps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "inputs/recognize.h"
#include "log/find_logs.h"

namespace tlparse {

// A file other than a log that a RuntimeReader can read.
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

// As FindLogs, and also examines the other files: profiles, recorder dumps and the like are
// recognised by content, in directories and when named. A named file of no known kind counts as a
// log.
Result<FoundInputs> FindInputs(const std::string& path);

// Adds the files of `part` behind those of `found`.
void AppendInputs(FoundInputs&& part, FoundInputs& found);

}  // namespace tlparse
