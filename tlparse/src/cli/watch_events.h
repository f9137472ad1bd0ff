// The lines of `tlparse watch --json`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "facts/job/status.h"
#include "findings/findings.h"

namespace tlparse {

// Whether the job is judged as running or as one that has ended.
std::string JobEvent(bool is_running);
// Where a process stands.
std::string StatusEvent(const ProcessStatus& row, std::int64_t hits, std::int64_t lookups);
// `state`: "open", "changed", "settled".
std::string FindingEvent(std::string_view state, const Finding& finding);
std::string EndEvent(std::string_view database);

}  // namespace tlparse
