// --alert 'KIND>SECONDSs' --exec CMD.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "findings/findings.h"

namespace tlparse {

struct WatchAlert {
  FindingKind kind = FindingKind::kStuck;
  std::int64_t age_s = 0;
};
// "stuck>300s", "stuck"; kUsage with what is wrong.
Result<WatchAlert> ParseAlert(const std::string& text);

// Starts the command in a shell and does not wait for it. The command's text holds nothing of the
// finding: its JSON is the standard input, its kind, id and title are in TLPARSE_FINDING_KIND, _ID
// and _TITLE. The command inherits no file but standard output and error. A shell that cannot be
// started is reported on standard error.
void RunForFinding(const std::string& command, const Finding& finding);

}  // namespace tlparse
