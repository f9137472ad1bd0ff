// The command `tlparse watch`.
#pragma once

#include <span>
#include <string>

namespace tlparse {

// Returns the exit code of the command.
int RunWatch(std::span<const std::string> arguments);

}  // namespace tlparse
