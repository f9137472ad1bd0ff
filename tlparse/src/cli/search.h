// The command `tlparse search`.
#pragma once

#include <span>
#include <string>

namespace tlparse {

int RunSearch(std::span<const std::string> arguments);

}  // namespace tlparse
