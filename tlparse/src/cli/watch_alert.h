// --alert 'KIND>SECONDSs' --exec CMD.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/findings/findings.h"
#include "base/result.h"

namespace tlparse {

struct WatchAlert {
  FindingKind kind = FindingKind::kStuck;
  std::int64_t age_s = 0;
};
// "stuck>300s", "stuck"; kUsage with what is wrong.
Result<WatchAlert> ParseAlert(const std::string& text);

// Starts the command and does not wait for it. Nothing of the finding is part of the command: it
// comes as JSON by standard input, and by the environment. No other file that is open here is open
// there.
void RunForFinding(const std::string& command, const Finding& finding);

}  // namespace tlparse
