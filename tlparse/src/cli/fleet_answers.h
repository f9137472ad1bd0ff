// The answers of `tlparse fleet`.
#pragma once

#include <span>
#include <string>

namespace tlparse {

// `name`: jobs, time, cache, ranks, breaks, recompiles, code, kernel. Returns the exit code.
int RunFleetAnswer(const std::string& name, std::span<const std::string> arguments);

}  // namespace tlparse
