// The subcommands that make files for others, and translate what is said about them.
#pragma once

#include <span>
#include <string>

namespace tlparse {

int RunRedact(std::span<const std::string> arguments);
int RunUnredact(std::span<const std::string> arguments);
int RunBundle(std::span<const std::string> arguments);

}  // namespace tlparse
