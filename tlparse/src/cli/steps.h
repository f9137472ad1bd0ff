// --steps of the commands about profiles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tlparse {

// "4" or "3-5". False: it is neither, and an error was printed.
bool ParseSteps(const std::string& text, std::optional<std::int64_t>& first,
                std::optional<std::int64_t>& last);

}  // namespace tlparse
