// One finding of an answer about all.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tlparse {

// The document of findings with nothing but the finding of this id, also where it is evidence of
// another. Nothing: there is none.
std::optional<std::string> OnlyFinding(std::string_view findings, std::string_view id);

}  // namespace tlparse
