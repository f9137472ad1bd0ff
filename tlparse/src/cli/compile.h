// The command `tlparse compile`.
#pragma once

#include <span>
#include <string>

namespace tlparse {

int RunCompile(std::span<const std::string> arguments);

}  // namespace tlparse
